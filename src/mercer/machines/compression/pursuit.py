"""Search for a reduced set: pivoted Cholesky pursuit, and vectors moved by the gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mercer import deadline
from mercer.array_types import Array, FrozenArray, Points
from mercer.gram import Source, exact
from mercer.kernels import Gaussian
from mercer.machines.compression.problem import (
    ReducedSet,
    Reduction,
    are_within,
    rounding_of,
    squared_errors,
)
from mercer.resources import require_memory
from mercer.rows.points import is_objects, is_sparse, take
from mercer.solvers.base import Status, Watch
from mercer.solvers.certificate import Certificate, certify

# --- pursuit -------------------------------------------------------------------------------------
#
# Which vectors to keep: pivoted Cholesky, where the pivot is the vector that explains most of f.
#
# With the vectors S kept, the best coefficients are those of the projection of f on their span, and
# |f - g|^2 is what is left of |f|^2. A new vector j lowers it by r(x_j)^2 / d_j, r being what is
# left
# of f and d_j the squared distance of k(x_j, .) from the span; both follow from one more column of
# the Cholesky factor. A vector with d_j = 0 depends on those that are kept: nothing is lost with
# it.

_DEPENDENT = 1e-13  # of k(x, x): the rounding of squared distances from the span
_COLUMNS = 64  # of the factor at first; then twice as many whenever they are filled


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions f_c = sum_i coef_ic k(x_i, .) of a machine.

    Attributes
    ----------
    source : Source
        The kernel and the vectors x_i.
    coef : (n, k) array
        Their coefficients.
    allowed : (n, k) bool array or None
        Which vectors a function may have, where not all: those of the two classes it is between.
    """

    source: Source
    coef: Array
    allowed: Array | None = None

    @property
    def norms(self) -> Array:
        """Return |f| of every function; zero for what is rounding alone."""
        if not len(self.coef):
            return np.zeros(self.coef.shape[1])
        values = exact(self.source.in_float64()) @ self.coef
        squares = (self.coef * values).sum(axis=0)
        return np.asarray(np.sqrt(np.where(squares > self.hidden, squares, 0.0)))

    @property
    def hidden(self) -> Array:
        """Return what rounding hides of |f|^2."""
        return rounding_of(np.sqrt(np.abs(self.source.diag())), self.coef)


@dataclass(frozen=True, eq=False)
class KeptVectors:
    """Vectors that stand for all.

    Attributes
    ----------
    origin : (m,) int array
        The vectors that they are, or began at.
    vectors : Points
        The vectors.
    coef : (m, k) array
        Their coefficients.
    """

    origin: Array
    vectors: Points
    coef: Array


@dataclass(eq=False)
class Pursuit:
    """The choice on its way: which vectors are kept so far, and what they leave of f.

    Parameters
    ----------
    functions : Functions
        The vectors and functions.
    weights : (k,) array
        What the squared error of each function counts.
    """

    functions: Functions
    weights: Array
    picks: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = self.functions.source.in_float64()
        self._pairs = source.pairs()
        self._own = source.diag()
        self._left = self._own.copy()
        self._values = self._pairs.matmul(self.functions.coef)  # what is left of f, at the vectors
        self._factor = np.empty((len(self._own), min(_COLUMNS, len(self._own))))
        self._shares: list[Array] = []
        self.squares = np.maximum((self.functions.coef * self._values).sum(axis=0), 0.0)

    def best(self) -> int:
        """Return the vector that gains most; -1 if all others depend on those that are kept."""
        free = self._left > _DEPENDENT * np.abs(self._own)
        if not free.any():
            return -1
        gains = np.full(len(free), -1.0)
        gains[free] = np.square(self._values[free]) @ self.weights / self._left[free]
        return int(gains.argmax())

    def keep(self, j: int) -> None:
        """Keep a vector: one column of the factor more."""
        m = len(self.picks)
        if m == self._factor.shape[1]:
            self._grow()
        row = np.asarray(self._pairs.rows(np.array([j])), dtype=np.float64)[0]
        column = (row - self._factor[:, :m] @ self._factor[j, :m]) / np.sqrt(self._left[j])
        self._factor[:, m] = column
        share = self._values[j] / column[j]
        self._shares.append(share)
        self._values -= np.multiply.outer(column, share)
        self._left -= np.square(column)
        self._left[j] = 0.0  # itself, whatever rounding says
        self.squares = np.maximum(self.squares - np.square(share), 0.0)
        self.picks.append(j)

    def kept(self, count: int) -> KeptVectors:
        """Return the first vectors that were kept, with the coefficients that are best for them."""
        origin = np.array(self.picks[:count], dtype=np.int64)
        coef = np.zeros((0, self.functions.coef.shape[1]))
        if len(origin):
            L = self._factor[origin, : len(origin)]
            shares = np.array(self._shares[:count])
            if self.functions.allowed is None:
                coef = solve_triangular(L, shares, lower=True, trans="T")
            else:  # K = L L' among the vectors, and L times the shares is f there
                coef = best_coefficients(L @ L.T, L @ shares, self.functions.allowed[origin])
        return KeptVectors(origin, take(self.functions.source.X, origin), coef)

    def _grow(self) -> None:
        n, m = self._factor.shape
        more = min(2 * m, n)
        require_memory(
            8 * n * more,
            f"compress: {more} of {n} vectors at a time",
            "Ask for fewer with n_vectors, or for a larger tol",
        )
        wider = np.empty((n, more))
        wider[:, :m] = self._factor
        self._factor = wider


def best_coefficients(K: Array, values: Array, allowed: Array | None) -> Array:
    """Return the coefficients of the projection of each f on the span of the vectors it may have.

    Parameters
    ----------
    K : (m, m) array
        The kernel among the vectors.
    values : (m, k) array
        f there.
    allowed : (m, k) bool array or None
        Which vectors each f may have.
    """
    if allowed is None:
        return solved(K, values)
    coef = np.zeros_like(values)
    patterns, which = np.unique(allowed, axis=1, return_inverse=True)
    for p, pattern in enumerate(patterns.T):
        rows, columns = np.flatnonzero(pattern), np.flatnonzero(which.ravel() == p)
        if len(rows):
            coef[np.ix_(rows, columns)] = solved(
                K[np.ix_(rows, rows)], values[np.ix_(rows, columns)]
            )
    return coef


def solved(K: Array, values: Array) -> Array:
    """Solve K b = values; vectors may nearly depend on each other."""
    shifted = K + np.diag(_DEPENDENT * np.diag(K))
    try:
        return np.asarray(cho_solve(cho_factor(shifted, lower=True), values))
    except LinAlgError:
        return np.asarray(lstsq(shifted, values)[0])


# --- moving --------------------------------------------------------------------------------------
#
# Vectors that need not be training rows: moved by the gradient of |f - g|^2 (Burges).
#
# With the best coefficients b for vectors v, the error only depends on v, and its derivative is
# that of |f - sum_j b_j k(v_j, .)|^2 at fixed b: by v_j, -2 sum_c b_jc (grad f_c - grad
# g_c)(v_j). For the Gaussian kernel grad k(x, .)(v) = k(x, v) (x - v) / scale^2.

_RIDGE = 1e-10  # on the diagonal of K(v, v): vectors may run into each other


def refuse_immovable(kernel: Any, points: Any) -> None:
    """Refuse kernels and rows without a gradient."""
    if not isinstance(kernel, Gaussian):
        raise ValueError(
            f"compress: move=True needs the Gaussian kernel, not {kernel!r}; with move=False "
            "vectors are chosen among those there are, for any kernel"
        )
    if is_sparse(points) or is_objects(points):
        raise ValueError(
            "compress: move=True makes dense vectors; fit to dense rows, or move=False"
        )


@dataclass(frozen=True, eq=False)
class _Move:
    """The error of vectors in units of the scale, less |f|^2, and its gradient."""

    points: Array
    coef: Array
    allowed: Array | None
    shape: tuple[int, int]

    def coefficients(self, V: Array) -> tuple[Array, Array, Array, Array]:
        """Return the best coefficients, K(v, x), K(v, v) and f(v)."""
        across = np.exp(-0.5 * cdist(V, self.points, "sqeuclidean"))
        among = np.exp(-0.5 * cdist(V, V, "sqeuclidean"))
        values = across @ self.coef
        among[np.diag_indices_from(among)] += _RIDGE
        return best_coefficients(among, values, self.allowed), across, among, values

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """Return the error and its gradient."""
        V = flat.reshape(self.shape)
        B, across, among, values = self.coefficients(V)
        pull = (B @ self.coef.T) * across
        push = (B @ B.T) * among
        slope = pull @ self.points - pull.sum(axis=1)[:, None] * V
        slope -= push @ V - push.sum(axis=1)[:, None] * V
        return -float((B * values).sum()), -2.0 * slope.ravel()


def moved(
    f: Functions, kept: KeptVectors, weights: Array, kernel: Gaussian, max_iter: int
) -> KeptVectors:
    """Return the vectors moved to where they explain most of f.

    Parameters
    ----------
    f : Functions
        The functions.
    kept : Kept
        The vectors to begin with.
    weights : (k,) array
        What the squared error of each function counts.
    kernel : Gaussian
        The kernel.
    max_iter : int
        Largest number of steps.
    """
    if not len(kept.origin):
        return kept
    scale = np.asarray(
        kernel.scale.array if isinstance(kernel.scale, FrozenArray) else kernel.scale
    )
    points = np.asarray(f.source.X, dtype=np.float64)
    middle = points.mean(axis=0)  # which rounding is measured from
    start = (np.asarray(kept.vectors, dtype=np.float64) - middle) / scale
    allowed = None if f.allowed is None else f.allowed[kept.origin]
    move = _Move((points - middle) / scale, f.coef * np.sqrt(weights), allowed, start.shape)

    def late(_: Any) -> None:
        if deadline.is_over():
            raise StopIteration

    options: Any = {"options": {"maxiter": max_iter}, "callback": late}

    found: Any = minimize(
        move,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        **options,
    )
    V = found.x.reshape(start.shape)
    coef = replace(move, coef=f.coef).coefficients(V)[0]
    return KeptVectors(kept.origin, V * scale + middle, coef)


# --- search --------------------------------------------------------------------------------------
#
# The search for few vectors: how many are needed, which, and where they go if they may move.

_MORE = 1.25  # times as many vectors, where those that functions may have do not do yet


@dataclass(frozen=True, eq=False)
class ErrorGoal:
    """What is asked: errors of all functions, as shares of their norms.

    Attributes
    ----------
    norms : (k,) array
        |f| of every function.
    tol : float
        Largest error, as a share of it.
    hidden : (k,) array
        What rounding hides of |f|^2.
    """

    norms: Array
    tol: float
    hidden: Array

    @property
    def weights(self) -> Array:
        """What the squared error of each function counts."""
        nothing = np.zeros_like(self.norms)
        return np.divide(1.0, np.square(self.norms), out=nothing, where=self.norms > 0)

    def share(self, squares: Array) -> float:
        """Return the largest relative error of squared ones; 0 for what rounding hides."""
        seen = np.where(squares <= self.hidden, 0.0, squares)
        return float(np.sqrt((seen * self.weights).max(initial=0.0)))

    def is_met(self, squares: Array) -> bool:
        """Return whether no more vectors are needed."""
        share = self.share(squares)
        return share == 0.0 or share <= self.tol < np.inf


def search(
    f: Functions, tol: float, n_vectors: int | None, watch: Watch, kernel: Any, max_iter: int
) -> tuple[KeptVectors, Status]:
    """Choose vectors one after another; then move them, if a kernel to move by is given.

    Parameters
    ----------
    f : Functions
        What to compress.
    tol : float
        Largest relative error; infinite if it does not matter.
    n_vectors : int or None
        Most vectors.
    watch : Watch
        The clock.
    kernel : Gaussian or None
        To move vectors by.
    max_iter : int
        Most steps of moving them.
    """
    goal = ErrorGoal(f.norms, tol, f.hidden)
    pursuit = Pursuit(f, goal.weights)
    most = len(f.coef) if n_vectors is None else min(n_vectors, len(f.coef))
    _extend(pursuit, goal, most, watch)
    kept = pursuit.kept(len(pursuit.picks))
    with deadline.cut_short() as cut:  # there is an answer from here on
        kept = _allowed(f, pursuit, goal, most, watch)
        if kernel is not None:
            kept = _moved(f, pursuit, kept, goal, partial(moved, kernel=kernel, max_iter=max_iter))
    late = Status.TIME_LIMIT if cut or deadline.is_over() else Status.SOLVED
    return kept, watch.stopped or late


def _moved(
    f: Functions, pursuit: Pursuit, kept: KeptVectors, goal: ErrorGoal, move: Any
) -> KeptVectors:
    """Return the vectors where they explain most, and no more of them than are needed."""

    def relocated(count: int) -> KeptVectors:
        found: KeptVectors = move(f, pursuit.kept(count), goal.weights)
        return found

    best = _better(f, kept, relocated(len(kept.origin)))
    if goal.tol == np.inf or not is_within(f, best, goal.tol):
        return best
    return _fewest(f, goal.tol, len(kept.origin), relocated, best)


def _extend(
    pursuit: Pursuit, goal: ErrorGoal, most: int, watch: Watch, enough: bool = True
) -> None:
    """Keep the vector that gains most, until enough is explained or there are enough."""
    while len(pursuit.picks) < most:
        if enough and goal.is_met(pursuit.squares):
            return
        if watch.tick(len(pursuit.picks), goal.share(pursuit.squares)):
            return
        best = pursuit.best()
        if best < 0:
            return
        pursuit.keep(best)


def _allowed(
    f: Functions, pursuit: Pursuit, goal: ErrorGoal, most: int, watch: Watch
) -> KeptVectors:
    """Return the vectors; more of them where functions may have some of them only."""
    kept = pursuit.kept(len(pursuit.picks))
    if f.allowed is None or goal.tol == np.inf:
        return kept
    low = 0
    while not is_within(f, kept, goal.tol) and watch.stopped is None:
        low = len(pursuit.picks)
        _extend(pursuit, goal, min(most, int(_MORE * low) + 1), watch, enough=False)
        if len(pursuit.picks) == low:  # what depends on others is not theirs to have
            return everything(f) if most == len(f.coef) else kept
        kept = pursuit.kept(len(pursuit.picks))
    return _fewest(f, goal.tol, len(pursuit.picks), pursuit.kept, kept, low)


def _fewest(
    f: Functions,
    tol: float,
    high: int,
    make: Callable[[int], KeptVectors],
    best: KeptVectors,
    low: int = 0,
) -> KeptVectors:
    """Return the fewest vectors that do, by bisection; `high` of them do."""
    while high - low > 1 and not deadline.is_over():
        middle = (low + high) // 2
        fewer = make(middle)
        if is_within(f, fewer, tol):
            best, high = fewer, middle
        else:
            low = middle
    return best


def _better(f: Functions, one: KeptVectors, two: KeptVectors) -> KeptVectors:
    """Return the vectors with the smaller error: a search may end higher than it began."""
    weights = ErrorGoal(f.norms, np.inf, f.hidden).weights
    errors = [float((_measured(f, part)[0] * weights).max(initial=0.0)) for part in (one, two)]
    return two if errors[1] < errors[0] else one


def is_within(f: Functions, kept: KeptVectors, tol: float) -> bool:
    """Return whether vectors stand for all vectors with an error of at most tol."""
    return are_within(*_measured(f, kept), tol)


def _measured(f: Functions, kept: KeptVectors) -> tuple[Array, Array, Array]:
    return squared_errors(Reduction(f.source, f.coef), ReducedSet(kept.vectors, kept.coef))


def everything(f: Functions) -> KeptVectors:
    """Keep all vectors as they are."""
    return KeptVectors(np.arange(len(f.coef)), f.source.X, f.coef)


def judged(f: Functions, kept: KeptVectors, tol: float) -> Certificate:
    """Judge vectors in the place of all vectors."""
    return certify(Reduction(f.source, f.coef), ReducedSet(kept.vectors, kept.coef), tol)
