"""What a backend must do, verb by verb. `reference` is the specification of each.

A backend gets plain data: an expression (`mercer.expression`), points (`mercer.points`), arrays.
It never sees kernels, Grams or machines. The abstract classes here are the whole border:

`Backend`
    turns an expression and points into `Pairs`, and runs the compiled loops of solvers;
`Pairs`
    an expression bound to rows X and columns Y. It can be asked for blocks and products, so a
    matrix that is never stored and one that is stored look alike from above;
`Features`
    rows of explicit features, dense or CSR, for solvers that work in their space.

`StoredMatrix`, `Factor` (`stored.py`)
    a symmetric matrix that is stored, and its Cholesky factor, wherever the backend keeps them.

Dense factorisations of a stored matrix (`cholesky`, `band_reduce`, `eigh`) are verbs too, since
where the matrix lies decides who factors it. A torch backend replaces all of them for tensors on a
device, where stored matrices and their factors stay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer, Form
from mercer.backends.landmark_rows import BoundRows
from mercer.backends.lapack import solved_with_determinant
from mercer.backends.long_arrays import Operator
from mercer.backends.perceptron_state import LinearFunctions, PassCounts
from mercer.backends.stored import Factor, StoredMatrix
from mercer.card_rows import CardRows
from mercer.expression import Expression
from mercer.points import to_host

_TRIP = 1 << 21  # entries of a block of rows: 16 MB


class RowParts(NamedTuple):
    """Where columns of V, each for itself, are read and their products are wanted.

    Attributes
    ----------
    ends : (g,) int64 array
        Where parts of the rows end, ascending, the last at the last row.
    reads : (g, k) bool array
        Whether column c is read in part g; it is taken to be zero where it is not.
    writes : (g, k) bool array
        Whether the product is wanted there; it is zero where it is not.
    """

    ends: Array
    reads: Array
    writes: Array


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
    def dense(self, *, padded: bool = False) -> Array:
        """Evaluate the whole matrix; exactly symmetric when Y is X.

        Its rows may be some entries apart where it is `padded`: large ones are sooner written so.
        """

    @abstractmethod
    def stored(self) -> StoredMatrix:
        """Evaluate the whole matrix of Y that is X, where the backend works with it."""

    def packed_factor(self) -> Factor | None:
        """Factor the matrix of Y that is X, in float64, where a backend holds its triangle alone.

        For matrices too large for `stored`. None where it has no room, knows no such way, or the
        matrix is not positive definite.
        """
        return None

    @abstractmethod
    def matmul(self, V: Array) -> Array:
        """Multiply by V (m, k) without storing the matrix; float64 result (n, k)."""

    def operator(self) -> Operator:
        """Return products with arrays that lie where those are made."""
        return Operator(self.matmul)

    def part(self, index: Array, columns: Array | None = None) -> Pairs | None:
        """Return some rows, and columns, as pairs of the same points where these lie.

        For products with parts of K. None where to bind the points anew costs as little.
        """
        return None

    def stored_part(self, index: Array) -> StoredMatrix | None:
        """Store the matrix of some points with themselves, where the points lie; Y is X.

        None where to bind them anew costs as little, as for `part`.
        """
        return None

    def round_trip(self, U: Array, change: Callable[[slice, Array], Array]) -> Array:
        """Return K' g(K U) in float64, every row evaluated once.

        g is given the numbers of some rows and their values (r, k), and returns (r, j).
        """
        total: Any = 0.0
        step = max(1, _TRIP // max(1, self.shape[1]))
        for first in range(0, self.shape[0], step):
            part = slice(first, min(first + step, self.shape[0]))
            K = self.rows(part).astype(float, copy=False)
            total = total + K.T @ change(part, K @ U)
        return np.asarray(total)


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


@dataclass(frozen=True, eq=False)
class FeatureBox:
    """A box programme on rows of features.

    Minimises b'(FF' + diag(shift))b/2 - linear'b + epsilon'|b| over lower <= b <= upper, the b of
    each group summing to its total.

    Attributes
    ----------
    linear, lower, upper : (n,) float64
        The linear term and the box, which may be infinite.
    group : (n,) int8
        Number of the group of each variable; -1 for none.
    totals : (groups,) float64
        What the groups sum to.
    start : (n,) float64
        A point of the box.
    offsets : (groups,) float64
        Guess of the multipliers of the sums.
    shift, epsilon : (n,) float64, optional
        Added to the diagonal; nonnegative cost of |b_i|.
    """

    linear: Array
    lower: Array
    upper: Array
    group: Array
    totals: Array
    start: Array
    offsets: Array
    shift: Array | None = None
    epsilon: Array | None = None


@dataclass(frozen=True, eq=False)
class FeatureAnswer:
    """Where a descent on features ended.

    Attributes
    ----------
    b : (n,) float64
        The variables; those at a bound, or at zero with epsilon > 0, are there exactly. Sums
        hold up to what moves an offset by the tolerance.
    offsets : (groups,) float64
        The multipliers of the sums.
    epochs : int
        Passes over the variables.
    violation : float
        Largest rise plus largest fall that the last pass over all variables met; infinite before
        the first.
    """

    b: Array
    offsets: Array
    epochs: int
    violation: float


@dataclass(frozen=True, eq=False)
class Groups:
    """Points to be parted so that each is near the mean of its group, and where to start.

    Minimises sum_i weights_i |phi_i - m_i|^2, m_i the weighted mean of the group of point i.

    Attributes
    ----------
    starts : (r, n) int32, or (r, k, d) float64
        Labels of r starts, from 0; no group is empty. Or, for rows of features, k means of each:
        points begin with the nearest, and a mean that is nearest to none has the farthest point.
    count : int
        How many groups.
    weights : (n,) float64
        Positive weights of the points.
    diagonal : (n,) float64
        |phi_i|^2.
    max_iter : int
        Largest number of steps of each start: assignments and sweeps.
    refine : bool
        Whether single points are moved at the end.
    """

    starts: Array
    count: int
    weights: Array
    diagonal: Array
    max_iter: int
    refine: bool


@dataclass(frozen=True, eq=False)
class GroupAnswer:
    """Where one start ended.

    Attributes
    ----------
    labels : (n,) int32
        The group of each point; no group is empty.
    trace : (steps + 1, 2) float64
        The objective of the start and after every step, strictly falling, and the seconds since
        the call began. Empty if the start was not reached before the work was stopped.
    settled : bool
        Whether no step was left that lowers the objective by more than rounding.
    """

    labels: Array
    trace: Array
    converged: bool


Poll = Callable[[int, float], bool]
"""Called now and then by a long loop with its iteration and its measure of what is left to do;
True asks it to stop at once and return what it has."""


class Features(ABC):
    """Rows of features: F[index], dense or CSR, float64. Every verb is interruptible.

    Attributes
    ----------
    shape : tuple of int
        (n, d).
    """

    shape: tuple[int, int]

    @abstractmethod
    def matvec(self, w: Array) -> Array:
        """Return F w."""

    @abstractmethod
    def rmatvec(self, x: Array) -> Array:
        """Return F'x; x may lie where `placed` puts it."""

    def placed(self, x: Any) -> Any:
        """Return a vector of one number for each row where the work with it is done."""
        return to_host(x)

    def values(self, w: Array) -> Any:
        """Return F w there."""
        return self.matvec(w)

    @abstractmethod
    def gram(self, weights: Array, centre: Array, group: Array, groups: int) -> Array:
        """Return A' diag(weights) A for A = [F - 1 centre', E], E[i, g] = 1 if group[i] is g.

        Weights are not negative; a negative group has no column. `centre` must be zero for CSR.
        """

    @abstractmethod
    def descend(
        self, box: FeatureBox, tol: float, max_epochs: int, poll: Poll | None
    ) -> FeatureAnswer:
        """Solve a box programme by coordinate descent; repeatable. Polled with epochs."""

    @abstractmethod
    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Part the rows as `Backend.partition` does with K = F F'."""


class Backend(ABC):
    """Where arithmetic runs."""

    name: str

    @abstractmethod
    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points; Y is None for the square, symmetric case."""

    def placed(self, X: Points, entries: int = 0) -> Points:
        """Return rows of a fit where all of its work with them is done: on a card, or here.

        Parameters
        ----------
        X : Points
            The rows.
        entries : int
            Numbers that are made of them and worked with there, if these are more than the rows.
        """
        return to_host(X)

    @abstractmethod
    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Evaluate e(x_i, x_i) for every row: (n,)."""

    @abstractmethod
    def neighbours(
        self, expression: Expression, X: Points, Y: Points | None, count: int
    ) -> tuple[Array, Array]:
        """Find the `count` nearest rows of Y for each row of X, in feature space.

        Returns numbers (n, count), int64, and squared distances k(x, x) + k(y, y) - 2 k(x, y),
        float64, ascending; equally near rows by their number. Y is None for neighbours within X,
        where no row is its own. A number is -1 where kernel values are not finite. Interruptible;
        the same for any number of threads.
        """

    @abstractmethod
    def empty(self, n: int, m: int) -> Array:
        """Return an uninitialised C-ordered float64 matrix: from pages used before if any.

        Zeroing fresh pages of a large matrix can take the system longer than filling it takes us.
        """

    @abstractmethod
    def symmetric_product(self, K: Array, V: Array, parts: RowParts | None = None) -> Array:
        """Return K V in float64 for a stored symmetric K (float32 or float64) and V (n, k).

        Parts say what of V is to be read, and what of the product is wanted: the rest is no work.
        Only one triangle of K need be read. Entries of float32 may be multiplied in float32, with
        sums in float64 over tiles. Does not depend on the number of threads. Interruptible.
        """

    @abstractmethod
    def stored(self, K: Array) -> StoredMatrix:
        """Hold a symmetric K (float32 or float64), which nobody may write to from now on."""

    def keeps(self, size: float) -> bool:
        """Return whether a matrix of so many bytes is soon made, and has room, off the processor.

        On a card entries cost so little that all of them are stored before anyone looks at some.
        """
        return False

    def expect_boxes(self, form: Form) -> bool:
        """Return whether something is made ready for box programmes, beside what comes before them.

        They will be on a float32 matrix.

        Parameters
        ----------
        form : Form
            What they will be like.
        """
        return False

    def descends_on_several(self, variables: int, dtype: Any) -> bool:
        """Return whether box programmes on several stored matrices run side by side.

        Parameters
        ----------
        variables : int
            Of the largest programme.
        dtype : numpy dtype
            Type of the matrices.
        """
        return False

    @abstractmethod
    def cholesky_factor(self, A: Array) -> Factor | None:
        """Factor the C-ordered float64 A = L L'; None if it is not positive definite. Destroys A.

        Interruptible.
        """

    @abstractmethod
    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Return all eigenvalues of a symmetric float64 A, ascending, and their vectors as columns.

        Raises `numpy.linalg.LinAlgError` where the algorithm gives up. Interruptible.
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
        """Return diag((K + shift I)^-1) for every shift from K = Q B Q': (len(shifts), n).

        A shift at which K + shift I is not positive definite gives a row of NaN.
        """

    @abstractmethod
    def box_qps(
        self, K: Array, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Solve box programmes that share one stored K (float32 or float64), all to `tol`.

        Sequential minimal optimisation with second-order selection, until no violating pair of a
        box is above `tol` or `max_iter` pair steps were made in it. Answers do not depend on the
        number of threads. Interruptible; `poll` is told the steps of all boxes so far, and the
        largest violation known.
        """

    @abstractmethod
    def box_paths(
        self, K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Solve paths of box programmes on one stored K, every step as `box_qps` would.

        Answers do not depend on the number of threads. Interruptible; polled as `box_qps` is.
        """

    @abstractmethod
    def partition(self, K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Part points with a stored K (float32 or float64) from every start.

        Steps of Lloyd until no label changes or, with `refine`, until few do; then sweeps of moves
        of single points that lower the objective. Answers do not depend on the number of threads.
        Interruptible; `poll` is told the steps of all starts and the lowest objective so far.
        """

    @abstractmethod
    def perceptron(
        self,
        X: Any,
        codes: Array,
        order: Array | None,
        rules: LinearFunctions,
        step: float,
        interruptible: bool,
    ) -> PassCounts:
        """Walk over rows X (float64, C order or CSR) in the order given, learning from mistakes.

        A row is a mistake where its class (`codes`, int64) is not strictly ahead: it is then added
        to its function and, with more than two classes, taken off that of the best other class.
        `step` is the number of the first row, for `late`. Raises in the middle, half learned, only
        where `interruptible`.
        """

    def solve_with_determinant(self, C: Array, right: Array) -> tuple[Array, float, float]:
        """Return C^-1 right by an LU decomposition, the sign of det C and the log of its size.

        For judges of what was found by Cholesky factors. NaN where C is singular.
        """
        return solved_with_determinant(C, right)

    def landmark_rows(
        self, expression: Expression, X: Points, landmarks: Points, factor: Factor
    ) -> BoundRows | None:
        """Bind points to landmarks whose matrix is factored, on a card; None without one."""
        return None

    def fourier_features(
        self, X: CardRows, frequencies: Array, amplitude: float
    ) -> CardRows | None:
        """Return amplitude times the cosines of X w, and its sines, for columns w: (n, 2 m).

        On the card of the rows, in float64; None where that is not this backend's, or has no room.
        """
        return None

    @abstractmethod
    def features(self, F: Any, index: Array | None) -> Features:
        """Bind rows of features: F (N, d) float64, C order or CSR; those of `index` if given.

        F may be `CardRows` where those are of this backend: they are worked with where they lie.
        """
