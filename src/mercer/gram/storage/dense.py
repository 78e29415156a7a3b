"""K stored whole."""

from __future__ import annotations

from mercer.array_types import Array, Index, Points
from mercer.backends import choose_backend
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.gram.source import Source


class DenseGram(Gram):
    """The matrix in memory, evaluated once.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the matrix.
    matrix : (n, n) array, optional
        The matrix, if it has been evaluated already.
    """

    source: Source

    def __init__(self, source: Source, matrix: Array | None = None) -> None:
        self.source = source
        self.shape = (source.n, source.n)
        self.dtype = source.dtype
        self.valid = source.valid
        self._matrix = source.pairs().dense() if matrix is None else matrix
        self._matrix.setflags(write=False)
        self._diag: Array | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return int(self._matrix.nbytes)

    def diag(self) -> Array:
        """Evaluate the diagonal, once; in float64 whatever the matrix is stored in."""
        if self._diag is None:
            self._diag = self.source.diag()
            self._diag.setflags(write=False)  # handed out again and again
        return self._diag

    def rows(self, index: Index) -> Array:
        """Read rows."""
        return self._matrix[index]

    def __matmul__(self, V: Array) -> Array:
        product = choose_backend().symmetric_product(self._matrix, columns_of(V))
        return product[:, 0] if V.ndim == 1 else product

    def dense(self) -> Array:
        """Return the stored matrix, read-only."""
        return self._matrix

    def cross(self, Z: Points) -> Cross:
        """Bind new points."""
        return self.source.cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Expand over the points."""
        return self.source.expand(coef)
