"""Kernels of `sklearn.metrics.pairwise`: evaluated by Mercer where it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from mercer.array_types import Array
from mercer.compat.sklearn.base.kernels import written
from mercer.kernels import Kernel


def known_kernel(machine: Any, gamma: float) -> Kernel | None:
    """Return the kernel of the parameters, if it is one that is evaluated here."""
    if isinstance(machine.kernel, Kernel):
        return machine.kernel
    if not isinstance(machine.kernel, str):
        return None
    return written(machine.kernel, gamma, float(machine.coef0), machine.degree)


def kernel_matrix(machine: Any, X: Any, Y: Any, gamma: float | None) -> Array:
    """Return the matrix of scikit-learn's function; X itself, if that is the matrix.

    Y is None for the matrix of the rows of a fit. NumPy rounds a product of a matrix with itself
    otherwise than one of two equal matrices, so new rows are never those of the fit themselves:
    what a machine answers, and what a copy of it does, are the same bits.
    """
    if isinstance(machine.kernel, str) and machine.kernel == "precomputed":
        return np.asarray(X)
    if callable(machine.kernel):
        params = machine.kernel_params or {}
    else:
        params = {"degree": machine.degree, "coef0": machine.coef0}
        params |= {} if gamma is None else {"gamma": gamma}
    if isinstance(Y, np.ndarray) and np.may_share_memory(X, Y):
        X = X.copy()
    options: dict[str, Any] = {"metric": machine.kernel, "filter_params": True, **params}
    jobs = getattr(machine, "n_jobs", None)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        return np.asarray(pairwise_kernels(X, Y, n_jobs=jobs, **options))
