"""What a backend must do, verb by verb. `reference` is the specification of each.

A backend gets plain data: an expression (`mercer.expression`), points (`mercer._points`), arrays.
It never sees kernels, Grams or machines. The two abstract classes here are the whole border:

`Backend`
    turns an expression and points into `Pairs`, and runs the compiled loops of solvers;
`Pairs`
    an expression bound to rows X and columns Y. It can be asked for blocks and products, so a
    matrix that is never stored and one that is stored look alike from above.

Dense factorisations of a stored matrix (`cholesky`, `band_reduce`) are verbs too, since where the
matrix lies decides who factors it. A torch backend replaces all of them for tensors on a device;
arrays then stay on the device until `to_host`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer._types import Array, Index, Points
from mercer.expression import Expression


class Pairs(ABC):
    """K[i, j] = e(x_i, y_j) for rows X (n) and columns Y (m); evaluated on demand.

    Attributes
    ----------
    shape : tuple of int
        (n, m).
    dtype : numpy dtype
        float32 or float64: the type of blocks. Products accumulate in float64 over tiles.
    """

    shape: tuple[int, int]
    dtype: Any

    @abstractmethod
    def rows(self, index: Index) -> Array:
        """Evaluate the rows `index` (slice or integer array) against all columns: (len, m)."""

    @abstractmethod
    def dense(self) -> Array:
        """Evaluate the whole matrix; exactly symmetric when Y is X."""

    @abstractmethod
    def matmul(self, V: Array) -> Array:
        """Multiply by V (m, k) without storing the matrix; float64 result (n, k)."""


@dataclass(frozen=True)
class Band:
    """K = Q B Q' with B of half-width `width`.

    Attributes
    ----------
    Qt : (n, n) float64, C order
        The transpose of Q.
    lower : (n, width + 1) float64
        lower[j, k] = B[j + k, j]; zero where j + k >= n.
    width : int
        Half band width.
    """

    Qt: Array
    lower: Array
    width: int


Poll = Callable[[int, float], bool]
"""Called now and then by a long loop with its iteration and its measure of what is left to do;
True asks it to stop at once and return what it has."""


class Backend(ABC):
    """Where arithmetic runs."""

    name: str

    @abstractmethod
    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points; Y is None for the square, symmetric case."""

    @abstractmethod
    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Evaluate e(x_i, x_i) for every row: (n,)."""

    @abstractmethod
    def empty(self, n: int, m: int) -> Array:
        """Give an uninitialised C-ordered float64 matrix, from pages used before if there are any.

        Zeroing fresh pages of a large matrix can take the system longer than filling it takes us.
        """

    @abstractmethod
    def cholesky(self, A: Array) -> int:
        """Factor the C-ordered float64 A = L L' in place (lower triangle; the upper is kept).

        Returns 0, or the one-based order of the first leading minor that is not positive.
        Interruptible.
        """

    @abstractmethod
    def band_reduce(self, A: Array, width: int) -> Band:
        """Reduce a symmetric float64 matrix to a band by orthogonal steps; destroys A.

        Interruptible.
        """

    @abstractmethod
    def band_inverse_diagonals(self, band: Band, shifts: Array) -> Array:
        """Give diag((K + shift I)^-1) for every shift from K = Q B Q': (len(shifts), n).

        A shift at which K + shift I is not positive definite gives a row of NaN.
        """

    @abstractmethod
    def smo(
        self,
        K: Array,
        linear: Array,
        lower: Array,
        upper: Array,
        start: Array,
        tol: float,
        max_iter: int,
        poll: Poll | None,
    ) -> tuple[Array, int, float]:
        """Minimise b'Kb/2 - linear'b over lower <= b <= upper, sum(b) = sum(start).

        Sequential minimal optimisation with second-order selection on a stored K, from the feasible
        `start`, until the largest violating pair is below `tol`. Gives (b, iterations, violation).
        """
