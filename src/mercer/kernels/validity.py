"""Is this function a kernel? Looked at on data: symmetry and the smallest eigenvalue of K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Points
from mercer.backends import choose_backend
from mercer.expression import bind_columns
from mercer.kernels.base import Kernel
from mercer.kernels.columns import column_names
from mercer.points import as_points, is_objects, row_count, take


@dataclass(frozen=True)
class Validity:
    """The verdict of `is_valid`; true when the matrix is symmetric positive semidefinite.

    Attributes
    ----------
    smallest_eigenvalue : float
        Of the symmetric part of K; NaN if K has entries that are not finite.
    asymmetry : float
        Largest |k(x, y) - k(y, x)|.
    tol : float
        What counts as zero.
    n_samples : int
        Rows that were looked at.
    """

    smallest_eigenvalue: float
    asymmetry: float
    tol: float
    n_samples: int

    def __bool__(self) -> bool:
        return self.asymmetry <= self.tol and self.smallest_eigenvalue >= -self.tol

    @property
    def statement(self) -> str:
        """The verdict in words."""
        rows = f"on {self.n_samples} rows"
        if np.isnan(self.smallest_eigenvalue):
            return f"not a kernel {rows}: it has values that are not finite"
        if self.asymmetry > self.tol:
            return f"not a kernel {rows}: k(x, y) and k(y, x) differ by up to {self.asymmetry:.3g}"
        eigenvalue = f"the smallest eigenvalue is {self.smallest_eigenvalue:.3g}"
        if self.smallest_eigenvalue < -self.tol:
            return f"not positive semidefinite {rows}: {eigenvalue}"
        return f"symmetric and positive semidefinite {rows}: {eigenvalue}"


def is_valid(k: Kernel, X: Any, n_samples: int = 200, tol: float | None = None) -> Validity:
    """Look at the matrix of a kernel on sampled rows: is it symmetric and positive semidefinite.

    A "yes" is evidence from these rows, a "no" is proof.

    Parameters
    ----------
    k : Kernel
        For example `FromCallable(f)` for a function f of one's own.
    X : array-like, sparse matrix, DataFrame, or list of sequences
        Rows to sample from.
    n_samples : int
        Rows that are looked at, drawn without replacement, the same ones each time.
    tol : float, optional
        What counts as zero; 1e-10 of the largest eigenvalue by default.

    Returns
    -------
    Validity

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Sigmoid
    >>> X = [[0.1, 0.0], [1.0, 1.0], [2.0, -1.0]]
    >>> bool(is_valid(Gaussian(), X)), bool(is_valid(Sigmoid(offset=-1.0), X))
    (True, False)
    >>> print(is_valid(Sigmoid(offset=-1.0), X).statement)
    not positive semidefinite on 3 rows: the smallest eigenvalue is -1.22
    """
    rows = _sample(as_points(X), n_samples)
    formula = bind_columns(k.expression(), column_names(X))
    # as two blocks, since one block is symmetric by construction
    K = choose_backend().pairs(formula, rows, rows, np.float64).dense()
    if not np.all(np.isfinite(K)):
        return Validity(np.nan, np.nan, tol or 0.0, len(K))
    eigenvalues = linalg.eigvalsh((K + K.T) / 2)
    zero = 1e-10 * float(np.abs(eigenvalues).max()) if tol is None else tol
    return Validity(float(eigenvalues[0]), float(np.abs(K - K.T).max()), zero, len(K))


def _sample(X: Points, n_samples: int) -> Points:
    n = row_count(X)
    if n == 0:
        raise ValueError("is_valid: X has no rows")
    if n > n_samples:
        X = take(X, np.sort(np.random.default_rng(0).choice(n, n_samples, replace=False)))
    if is_objects(X):
        return X
    # the kernel is judged, not the rounding of float32
    return X.astype(np.float64, copy=False)
