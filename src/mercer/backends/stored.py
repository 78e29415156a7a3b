"""Matrices that a backend holds where it works with them, and their Cholesky factors.

On a processor both are arrays in its memory. On a card they stay there: solvers ask for products,
factors and solutions, and only what is small travels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mercer.array_types import Array, Index
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.long_arrays import Operator

if TYPE_CHECKING:
    from mercer.backends.contract import GroupAnswer, Groups, Poll


class Factor(ABC):
    """L of a positive definite A = L L', held where it was computed."""

    @abstractmethod
    def solve(self, right: Array) -> Array:
        """Return A^-1 right, float64, for a vector or for columns."""

    @abstractmethod
    def half_solve(self, right: Array, transposed: bool = False) -> Array:
        """Return L^-1 right, or L'^-1 right, float64, for columns (n, k)."""

    def solve_there(self, right: Any) -> Any:
        """Return A^-1 right for columns that lie where the factor does."""
        return self.solve(right)

    def half_there(self, right: Any) -> Any:
        """Return L^-1 right for columns that lie where the factor does."""
        return self.half_solve(right)

    def here(self) -> Factor:
        """Return the same in the memory of the processor."""
        return self

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal of L."""

    @abstractmethod
    def lower(self) -> Array:
        """Return L, zeros above its diagonal, in the memory of the processor."""

    @abstractmethod
    def inverse(self) -> Array:
        """Return A^-1; the factor may be overwritten, nothing is to be asked of it afterwards."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """Return the diagonal of A^-1; the factor may be overwritten, as by `inverse`."""


PathsOn: TypeAlias = "tuple[StoredMatrix, Sequence[BoxPath]]"
"""A stored matrix, and paths on it."""


class StoredMatrix(ABC):
    """A symmetric K, float32 or float64, of which every entry is stored. Nobody writes to it.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    dtype : numpy dtype
        Type of the entries.
    descends_elsewhere : bool
        Whether descents on it take the memory of a device, which looks after that itself.
    """

    shape: tuple[int, int]
    dtype: Any
    descends_elsewhere: bool = False

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that it takes, wherever it lies."""

    @abstractmethod
    def dense(self) -> Array:
        """Return all of it in the memory of the processor, read-only."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal in float64."""

    @abstractmethod
    def rows(self, index: Index) -> Array:
        """Return some rows."""

    @abstractmethod
    def product(self, V: Array) -> Array:
        """Return K V in float64 for V (n, k); as `Backend.symmetric_product`."""

    def operator(self) -> Operator:
        """Return its products with arrays that lie where it does."""
        return Operator(self.product)

    @abstractmethod
    def combination(self, points: Array, coef: Array) -> Array:
        """Return the sum of the rows `points`, each times its coefficient, in float64."""

    @abstractmethod
    def cholesky(
        self,
        shift: Array,
        scale: Array | None = None,
        less: tuple[Array, Array | None] | None = None,
    ) -> Factor | None:
        """Factor diag(scale) K diag(scale) + diag(shift) in float64; None if it is not definite.

        With `less` = U, E, U E' + E U' is taken off, or U U' where E is None.
        """

    @abstractmethod
    def box_qps(
        self, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Solve box programmes on it; see `Backend.box_qps`."""

    @abstractmethod
    def box_paths(
        self, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Solve paths of box programmes on it; see `Backend.box_paths`."""

    def box_paths_on_several(
        self, work: Sequence[PathsOn], tol: float, max_iter: int, poll: Poll | None
    ) -> list[list[BoxPathAnswer]]:
        """Solve paths on several matrices, of which this is the first.

        One matrix after another, unless a backend has room to work on all of them at once.
        """
        return [K.box_paths(paths, tol, max_iter, poll) for K, paths in work]

    @abstractmethod
    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Part its points; see `Backend.partition`."""
