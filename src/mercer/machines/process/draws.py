"""Functions drawn from a Gaussian process: normal vectors of a given covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.kernels import Precomputed
from mercer.machines.base.inputs import read_array
from mercer.machines.base.machine import kernel_of
from mercer.points import as_points, is_sequence_data


def drawn(covariance: Array, count: int, source: np.random.RandomState) -> Array:
    """Draw normal vectors of mean zero.

    Parameters
    ----------
    covariance : (n, n) array
        Positive semidefinite; eigenvalues that rounding made negative are taken for zero.
    count : int
        How many.
    source : RandomState
        Where random numbers come from.

    Returns
    -------
    (n, count) array
    """
    values, vectors = interruptible(np.linalg.eigh, covariance)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(half @ source.standard_normal((len(values), count)))


def prior_matrix(machine: Any, X: Any) -> Array:
    """Return k(x, x') of rows: with the kernel of the fit, or of the parameter before one."""
    name = type(machine).__name__
    if not is_sequence_data(X):
        X = as_points(read_array(name, X, "X", accept_sparse="csr"))
    kernel = getattr(machine, "kernel_", None)
    kernel = kernel_of(machine.kernel, X) if kernel is None else kernel
    if isinstance(kernel, Precomputed):
        raise ValueError(
            f"{name}: a precomputed kernel has no prior at new rows; pass a kernel of rows"
        )
    return np.asarray(kernel(X), dtype=np.float64)
