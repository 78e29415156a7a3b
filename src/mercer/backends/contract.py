"""Interface of a backend: its methods, kernel matrices, factors, features, and their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends import factorizations
from mercer.backends.box_programs import (
    Box,
    BoxAnswer,
    BoxPath,
    BoxPathAnswer,
    FeatureAnswer,
    FeatureBox,
    Form,
)
from mercer.expression import Expression
from mercer.rows.device_rows import CardRows
from mercer.rows.points import to_host

# --- contract ------------------------------------------------------------------------------------
#
# What a backend must do, verb by verb. `reference` is the specification of each.
#
# A backend gets plain data: an expression (`mercer.expression`), points (`mercer.rows.points`),
# arrays. It never sees kernels, Grams or machines. The abstract classes here are the whole
# border:
#
# `Backend`
#     turns an expression and points into `Pairs`, and runs the compiled loops of solvers;
# `Pairs`
#     an expression bound to rows X and columns Y. It can be asked for blocks and products, so a
#     matrix that is never stored and one that is stored look alike from above;
# `BackendFeatures`
#     rows of explicit features, dense or CSR, for solvers that work in their space.
#
# `StoredMatrix`, `Factor`
#     a symmetric matrix that is stored, and its Cholesky factor, wherever the backend keeps them.
#
# Dense factorisations of a stored matrix (`cholesky`, `band_reduce`, `eigh`) are verbs too, since
# where the matrix lies decides who factors it. A torch backend replaces all of them for tensors
# on a device, where stored matrices and their factors stay.

Poll = Callable[[int, float], bool]
"""Called now and then by a long loop with its iteration and its measure of what is left to do;
True asks it to stop at once and return what it has."""


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
        return factorizations.solve_with_determinant(C, right)

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
    def features(self, F: Any, index: Array | None) -> BackendFeatures:
        """Bind rows of features: F (N, d) float64, C order or CSR; those of `index` if given.

        F may be `CardRows` where those are of this backend: they are worked with where they lie.
        """


# --- pairs ---------------------------------------------------------------------------------------

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
    converged : bool
        Whether no step was left that lowers the objective by more than rounding.
    """

    labels: Array
    trace: Array
    converged: bool


class BackendFeatures(ABC):
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


# --- stored --------------------------------------------------------------------------------------
#
# Matrices that a backend holds where it works with them, and their Cholesky factors.
#
# On a processor both are arrays in its memory. On a card they stay there: solvers ask for
# products, factors and solutions, and only what is small travels.


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
        less: tuple[Array, Array] | None = None,
    ) -> Factor | None:
        """Factor diag(scale) K diag(scale) + diag(shift) in float64; None if it is not definite.

        With `less` = U, E, U E' + E U' is taken off.
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


# --- long arrays ---------------------------------------------------------------------------------
#
# Arrays with one long side, where products with them are made, and operators on such.
#
# On a processor they are NumPy arrays, on a card they stay there. Both know `@`, `.T`, slices and
# arithmetic in place, so methods that keep many long vectors (Krylov spaces) are written once;
# what differs is here.

_CACHED = 1 << 18  # entries of W that are read at a time, so that two columns read them once


class LongArrays:
    """float64 arrays in the memory of the processor."""

    def empty(self, rows: int, n: int) -> Any:
        """Return an array that is to be filled."""
        from mercer.backends import choose_backend  # noqa: PLC0415  backends make such arrays

        return choose_backend().empty(rows, n)

    def has_room(self, size: float) -> bool:
        """Return whether so many bytes may be taken."""
        return True

    def put(self, A: Any) -> Any:
        """Return a copy of what is here, or there already, to be written to."""
        return np.array(A, dtype=np.float64)

    def lent(self, A: Array) -> Any:
        """Return what is here, there; not to be written to."""
        return A

    def get(self, A: Any) -> Array:
        """Return what is there in the memory of the processor."""
        return np.asarray(A)

    def turned(self, A: Any) -> Any:
        """Return the transpose, its rows unbroken."""
        return np.ascontiguousarray(A.T)

    def squared_lengths(self, W: Any) -> Array:
        """Return the sums of squares of columns, in the memory of the processor."""
        return np.asarray(np.einsum("ij,ij->j", W, W))

    def rounded(self, A: Any) -> Any:
        """Return a copy in float32."""
        return A.astype(np.float32)

    def take_off(self, W: Any, V: Any, out: Any) -> None:
        """Subtract W W'V from `out`, for many columns W, in float32 or float64."""
        step = max(1, _CACHED // W.shape[1])
        parts = [slice(first, first + step) for first in range(0, len(W), step)]
        V = V.astype(W.dtype, copy=False)
        inner = np.zeros((W.shape[1], V.shape[1]))
        for part in parts:
            inner += W[part].T @ V[part]
        inner = inner.astype(W.dtype, copy=False)
        for part in parts:
            out[part] -= W[part] @ inner


HERE = LongArrays()


@dataclass(frozen=True)
class Operator:
    """A symmetric matrix by its products.

    Attributes
    ----------
    apply : callable
        Returns A V in float64 for V (n, b); both lie where `arrays` says.
    arrays : LongArrays
        Where.
    """

    apply: Callable[[Any], Any]
    arrays: LongArrays = HERE

    def here(self) -> Operator:
        """Return the same for arrays in the memory of the processor."""
        if self.arrays is HERE:
            return self
        there = self.arrays
        return Operator(lambda V: there.get(self.apply(there.put(V))))


# --- landmark rows -------------------------------------------------------------------------------
#
# Rows k(x, z) of points x at landmarks z, with weights and targets, where a card works with them.
#
# The features of a point are F = L^-1 k(z, x) for k(z, z) = L L'. Sums over all points are made
# on the card, and only what has the size of the landmarks travels.


class LandmarkRows(ABC):
    """F of all points, with the weights s and the targets y of a least squares problem."""

    @abstractmethod
    def pull(self) -> tuple[Array, Array]:
        """Return F'S y (m, t) and F's (m,), to the digits of float32."""

    @abstractmethod
    def product(self, W: Array, level: Array) -> tuple[Array, Array]:
        """Return F'S (F W - level) and the sums of S (F W - level), to the digits of float32."""

    @abstractmethod
    def residual(self, W: Array, level: Array) -> tuple[Array, Array, Array]:
        """Return F'S (y + level - F W), the sums of S (y + level - F W), and F's, in float64.

        Of rows that are stored to 40 bits, or in full.
        """

    @abstractmethod
    def factor(self, index: Array, share: Array, lone: float, penalty: float) -> Factor:
        """Return the Cholesky factor of G'TG + penalty I for some points and their weights T.

        G are features less their mean by T. The landmarks count beside, each with a weight `lone`:
        one may be alone in its direction, which other points would not show. What is not positive
        definite for rounding gets more on its diagonal.
        """


class BoundRows(ABC):
    """F of all points, before weights and targets are known."""

    @abstractmethod
    def __call__(self, weights: Array, targets: Array, bias: bool) -> LandmarkRows:
        """Send weights (n,) and targets (n, t); say whether there is a bias."""

    @abstractmethod
    def squared_lengths(self) -> Array:
        """Return the squared lengths of F in float64, (n,)."""

    @abstractmethod
    def features(self) -> CardRows | None:
        """Return F in float64, where it was made; None where that has no room for it."""


# --- perceptron state ----------------------------------------------------------------------------
#
# What a perceptron changes, and what it tells of a walk: passed to a backend and back.


@dataclass(frozen=True, eq=False)
class LinearFunctions:
    """Linear functions of rows that a perceptron changes in place: one, or one for each class.

    Attributes
    ----------
    weights : (d, k) float64
        A column for each function.
    bias : (k,) float64
        Their constants.
    has_bias : bool
        Whether constants are learned.
    late, late_bias : like weights and bias, optional
        Sums of step times change: over T steps the mean of the weights is weights - late / T.
    tally : (3,) float64, optional
        Rows seen, mistakes made, largest squared length: counted row by row, so that a walk that is
        interrupted has counted what it learned.
    """

    weights: Array
    bias: Array
    has_bias: bool
    late: Array | None = None
    late_bias: Array | None = None
    tally: Array | None = None


class PassCounts(NamedTuple):
    """What a walk over rows met.

    Attributes
    ----------
    mistakes : int
        Rows whose class was not ahead, ties included.
    longest : float
        Largest squared length of a row.
    bad : int
        The first row whose squared length is not finite; then nothing was learned. -1 for none.
    """

    mistakes: int
    longest: float
    bad: int
