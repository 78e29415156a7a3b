"""Covariances of rows, and solutions with them, for the discriminants."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.covariance import ledoit_wolf

from mercer.array_types import Array
from mercer.backends.lapack import interruptible


def shrunk(X: Array) -> Array:
    """Estimate a covariance as Ledoit and Wolf do, in units of the columns."""
    spread = X.std(axis=0)
    spread[spread == 0] = 1.0
    found = ledoit_wolf((X - X.mean(axis=0)) / spread)[0]
    return np.asarray(spread[:, None] * found * spread)


def by_estimator(estimator: Any, X: Array) -> Array:
    """Return what an estimator of the caller's finds."""
    estimator.fit(X)
    if not hasattr(estimator, "covariance_"):
        raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
    return np.asarray(estimator.covariance_, dtype=np.float64)


def solved_by_units(covariance: Array, b: Array) -> Array:
    """Solve with columns in units of their own: powers of two, so that no digit is touched."""
    own = covariance.diagonal()
    units = np.ldexp(1.0, np.frexp(np.sqrt(np.where(own > 0, own, 1.0)))[1])
    scaled = covariance / units / units[:, None]
    return np.asarray(linalg.solve(scaled, b / units, assume_a="pos") / units)


def whitening(within: Array, tol: float) -> Array:
    """Return the map to columns in which the rows within classes have covariance one.

    Columns are scaled first; directions with a standard deviation of at most `tol` are left out.
    """
    spread = within.std(axis=0)
    spread[spread == 0] = 1.0
    scaled = within / spread / np.sqrt(len(within))
    _, sigma, Vt = interruptible(np.linalg.svd, scaled, full_matrices=False)
    kept = sigma > tol
    return np.asarray((Vt[kept] / spread).T / sigma[kept])
