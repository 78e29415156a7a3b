"""What backends have in common whose matrices lie in memory of the processor."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends.contract import Backend
from mercer.backends.host_matrix import HostFactor, HostMatrix
from mercer.backends.lapack import interruptible
from mercer.backends.stored import Factor, StoredMatrix


class HostBackend(Backend):
    """A backend on the processor: matrices are arrays, and LAPACK decomposes them."""

    def stored(self, K: Array) -> StoredMatrix:
        """Keep the array."""
        return HostMatrix(K)

    def cholesky_factor(self, A: Array) -> Factor | None:
        """Factor in place."""
        return HostFactor(A) if self.cholesky(A) == 0 else None

    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Leave it to LAPACK."""
        values, vectors = interruptible(np.linalg.eigh, A)
        return values, vectors
