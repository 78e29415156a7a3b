"""What landmarks leave out of a prior, which data tell nothing about: it is added to variances.

The posterior of features alone is sure of itself where no landmark is near, since f is taken for
zero there. With k(z, z') less the kernel of the landmarks added, the prior at new rows is the
kernel's own (the deterministic training conditional of Quinonero-Candela and Rasmussen, 2005).
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from mercer.approximation import ApproximateKernel, Nystrom
from mercer.array_types import Array, Points
from mercer.gram.storage.factored import over_features, squared_lengths
from mercer.kernels import Kernel


def variance_left_out(kernel: Kernel, Z: Points) -> Array:
    """Return k(z, z) less what landmarks explain of it; zero for other kernels: (n,)."""
    if not _has_landmarks(kernel):
        return np.zeros(Z.shape[0])
    explained = over_features(squared_lengths, kernel.phi, Z, kernel.phi.dimension)
    return np.asarray(np.maximum(kernel.kernel.diag(Z) - explained, 0.0))


def covariance_left_out(kernel: Kernel, Z: Points) -> Array:
    """Return k(z, z') less what landmarks explain of it; zero for other kernels: (n, n)."""
    if not _has_landmarks(kernel):
        return np.zeros((Z.shape[0], Z.shape[0]))
    phi = kernel.phi(Z)
    left: Array = np.asarray(kernel.kernel(Z), dtype=np.float64) - phi @ phi.T
    np.fill_diagonal(left, np.maximum(left.diagonal(), 0.0))  # below by rounding only
    return left


def _has_landmarks(kernel: Kernel) -> TypeGuard[ApproximateKernel]:
    """Return whether the rest is a kernel itself; that of random features is but noise."""
    return isinstance(kernel, ApproximateKernel) and isinstance(kernel.approximation, Nystrom)
