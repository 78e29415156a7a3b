"""Newton's method and L-BFGS for smooth risks, with and without regularization."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.gram import DenseGram, FactoredGram, PrecomputedGram, exact
from mercer.machines.logistic.descent import (
    DescentResult,
    Direction,
    Element,
    FeatureSpace,
    RowSpace,
    Space,
    TriangularSpace,
    descend,
    factored_space,
    is_single,
    near,
    space_of,
)
from mercer.machines.logistic.newton_cg import (
    WIDEST,
    HessianPreconditioner,
    SampledHessian,
    is_sampled,
)
from mercer.machines.logistic.problem import LogLoss, LossCurvature, SmoothRisk, SquaredLoss, signs
from mercer.machines.ridge.problem import Coefficients
from mercer.resources import require_memory
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose
from mercer.solvers.linear_algebra import weighted_gram

# --- quasi newton --------------------------------------------------------------------------------
#
# Directions from the last changes of place and gradient, in the metric of functions.


class LBFGSMemory:
    """The last changes of place and gradient, and the direction they suggest.

    Parameters
    ----------
    space : Space
        Where.
    size : int
        Changes that are remembered.
    shape : Shape or None
        What is known of the curvature before any change was seen; looked at anew after 1, 2, 4, 8,
        ... steps. None for nothing.
    """

    def __init__(self, space: Space, size: int, shape: HessianPreconditioner | None = None) -> None:
        self._space, self._shape, self.steps = space, shape, 0
        self._undo: Callable[[Element], Element] | None = None
        self._changes: deque[tuple[Element, Element, float]] = deque(maxlen=size)
        self._last: tuple[Element, Element] | None = None

    def __call__(self, u: Element, g: Element) -> Element:
        """Return where to go from u with gradient g."""
        space = self._space
        if self._last is not None:
            s, y = space.change(u, self._last[0]), space.change(g, self._last[1])
            product = space.inner(s, y)
            if product > 1e-12 * space.inner(y, y) ** 0.5 * space.inner(s, s) ** 0.5:
                self._changes.append((s, y, product))
        self._last = u, g
        if self._shape is not None and self.steps & (self.steps - 1) == 0:
            self._undo = self._shape.at(u)
        self.steps += 1
        return self._direction(g)

    def _direction(self, g: Element) -> Element:
        space, d = self._space, g.times(-1.0)
        if not self._changes:
            return self._first(d)
        shares = []
        for s, y, product in reversed(self._changes):
            share = space.inner(s, d) / product
            shares.append(share)
            d = d.plus(-share, y)
        s, y, product = self._changes[-1]
        if self._undo is None:
            d = d.times(product / space.inner(y, y))
        else:
            d = self._undo(d).times(product / space.inner(y, self._undo(y)))
        for (s, y, product), share in zip(self._changes, reversed(shares), strict=True):
            d = d.plus(share - space.inner(y, d) / product, s)
        return d

    def _first(self, d: Element) -> Element:
        """Go as far as the shape says, or as the steepest curvature lets it be."""
        if self._undo is not None:
            return self._undo(d)
        space, problem = self._space, self._space.problem
        most = problem.loss.steepest(problem.columns) * float(
            problem.weights @ (space.lengths**2 + space.scale)
        )
        return d.times(1.0 / (problem.penalty + most))


# --- newton --------------------------------------------------------------------------------------
#
# Newton's method for smooth risks: exact steps where the system is small, else by gradients.

_SMALL = 1200  # unknowns: up to here their matrix is factored
_CHEAP = 40  # features times functions: up to here it is made sooner than avoided
_TALL = 20  # times as many rows as features: the matrix costs no more than a dozen gradients
_CG_STEPS = 500
_MEMORY = 10
_EASY = 40  # quasi-Newton steps before Newton's
_NEAR = 3e-5  # gradient, relative, from which one step of Newton's is worth many
_FEW = 40  # conjugate gradients that cost no more than the matrix
_LOSES = 1e-6  # of the objective, on the way from the space to the words of the problem


@dataclass(frozen=True)
class NewtonRisk(Solver):
    """Newton steps with a line search.

    The equations of a step are solved by a Cholesky factor where they are few, else by conjugate
    gradients, which need products with the features, or with K, only. With many features or
    classes forty cheap steps go before, which learn the curvature on the way, beginning with that
    of the mean row; mostly they are enough. A loss that is not convex is started from several
    points, and the best end is kept.

    Parameters
    ----------
    tol : float
        Gradient to reach, relative to what pulls on the function.
    max_iter : int
        Largest number of steps of each start.
    n_init : int
        Starts, for a loss that is not convex.
    """

    answers = SmoothRisk

    tol: float = 1e-10
    max_iter: int = 200
    n_init: int = 4

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Descend from zero, or from every start."""
        space, semidefinite = _space(problem.of_weight_one())
        with _systems_alone(space):
            best = best_of(space, self, watch, lambda at: _direction(at, self.tol, watch))
            value = space.answer(best.arrival.element)
        status = best.arrival.status
        if status is Status.SOLVED and not semidefinite:
            status = Status.NOT_CONVEX
        elif status is Status.SOLVED and isinstance(space, TriangularSpace):
            reached = best.arrival.objective
            if not space.problem.objective(value) - reached <= _LOSES * abs(reached):
                status = Status.INACCURATE
        return report(self, value, status, best.steps, watch, best.detail)


@dataclass(frozen=True, eq=False)
class Best:
    """The best of several descents, the steps of all, and what is to be said of it."""

    arrival: DescentResult
    steps: int
    detail: str


def best_of(
    space: Space, solver: Any, watch: Watch, direction: Callable[[Space], Direction]
) -> Best:
    """Descend from every start, and keep the best end; of a K in float32, go on in float64."""
    best, steps, tried = None, 0, 0
    for element in starts(space, solver, watch):
        found = descend(space, element, direction(space), solver.tol, solver.max_iter, watch)
        steps, tried = steps + found.steps, tried + 1
        if best is None or found.objective < best.objective:
            best = found
        if watch.stopped is not None:
            break
    assert best is not None  # there is always one start
    if isinstance(space, RowSpace) and watch.stopped is None and is_single(space.gram):
        precise = RowSpace(replace(space.problem, gram=exact(space.gram)))
        start = precise.element(best.element.coef, best.element.bias)
        best = descend(precise, start, direction(precise), solver.tol, solver.max_iter, watch)
        steps += best.steps
    if space.problem.loss.convex:
        return Best(best, steps, "")
    status = watch.stopped or best.status  # a search cut short is not what was asked for
    detail = f"the loss is not convex: the best of {tried} starts, perhaps not the best of all"
    return Best(replace(best, status=status), steps, detail)


def starts(space: Space, solver: Any, watch: Watch) -> Iterator[Element]:
    """Return where descents begin: convex ones at zero; others at what convex losses find, too.

    The same rule, ever steeper: all that is used are the rows, so that neither their order nor
    repetition instead of weight leads elsewhere.
    """
    zero, problem = space.zero(), space.problem
    if problem.loss.convex:
        yield zero
        return
    # softmax scores compare classes; those of squares are rules of one class against the rest
    convex = [SquaredLoss(), LogLoss()] if problem.columns == 1 else [SquaredLoss()]
    found = []
    for loss in convex:
        space.problem = replace(problem, loss=loss)
        found.append(descend(space, zero, _direction(space, 1e-6, watch), 1e-6, 100, watch).element)
        space.problem = problem
    listed = [found[-1], zero, *found[:-1]]
    listed += [found[-1].times(4.0**j) for j in range(1, solver.n_init)]
    yield from listed[: solver.n_init]


def _systems_alone(space: Space) -> AbstractContextManager[None]:
    """Keep linear algebra to one thread where a card multiplies: what is left here is small."""
    there = isinstance(space, FeatureSpace) and isinstance(space.F, CardRows)
    return one_blas_thread() if there else nullcontext()


def _space(problem: SmoothRisk) -> tuple[Space, bool]:
    gram, k = problem.gram, problem.columns
    if isinstance(gram, FactoredGram):
        return space_of(problem), True
    stored = isinstance(gram, DenseGram | PrecomputedGram)
    if stored and gram.shape[0] * k <= _SMALL:
        return factored_space(problem)
    return space_of(problem), True


def _direction(space: Space, tol: float, watch: Watch) -> Direction:
    k = space.problem.columns
    if not isinstance(space, FeatureSpace):
        return lambda u, g: _by_gradients(space, u, g, watch)
    d, convex = space.F.shape[1], space.problem.loss.convex
    small = (d + 1) * k <= _SMALL
    tall = k == 1 and space.F.shape[0] >= _TALL * d and not is_sparse(space.F)
    if small and (not convex or d * k <= _CHEAP or tall):
        return lambda u, g: _exact(space, u, g)
    if d > WIDEST and is_sampled(space):
        sampled = SampledHessian(space)
        return lambda u, g: sampled.direction(u, g, tol, watch)
    if not convex or is_sparse(space.F) or d > WIDEST:
        return lambda u, g: _by_gradients(space, u, g, watch)
    return _Shaped(space, tol, watch, small)


class _Shaped:
    """Goes by what steps tell of the curvature, beside its shape; in earnest if that takes long."""

    def __init__(self, space: FeatureSpace, tol: float, watch: Watch, small: bool) -> None:
        self._space, self._tol, self._watch, self._small = space, tol, watch, small
        self._shape = HessianPreconditioner(space)
        self._easy = LBFGSMemory(space, _MEMORY, self._shape)
        self._few = True

    def __call__(self, u: Element, g: Element) -> Element:
        if self._easy.steps < _EASY and not near(self._space, u, g, _NEAR):
            return self._easy(u, g)
        if self._few:
            most = _FEW if self._small else _CG_STEPS
            step, solved = self._shape.step(u, g, self._tol, self._watch, most)
            self._few = solved or not self._small
            if self._few:
                return step
        return _exact(self._space, u, g)


def _exact(space: FeatureSpace, u: Element, g: Element) -> Element:
    """Solve for the step."""
    problem = space.problem
    bend = problem.loss.curvature(u.scores, problem.codes)
    right = np.concatenate([g.coef, g.bias[None, :] / space.scale]).T.ravel()
    d, k = space.F.shape[1], problem.columns
    # a loss that is not convex may bend down here: then go by what bends up
    curves = (bend,) if problem.loss.convex else (bend, bend.convex())
    for curve, ridge in [(curve, 0.0) for curve in curves] + [(curves[-1], 1e2), (curves[-1], 1e6)]:
        H = _matrix(space, curve)
        sizes = np.abs(H.diagonal())
        # of each entry where it bends up: biases must not be held back by features of size 1e8
        sizes = sizes if problem.loss.convex else np.full(len(H), sizes.max())
        H.flat[:: len(H) + 1] += ridge * np.finfo(float).eps * sizes
        try:
            factor = linalg.cho_factor(H, check_finite=False)
        except linalg.LinAlgError:
            continue
        step = -linalg.cho_solve(factor, right, check_finite=False).reshape(k, d + 1).T
        return space.element(np.ascontiguousarray(step[:d]), step[d])
    return g.times(-1.0)


def _matrix(space: FeatureSpace, bend: LossCurvature) -> Array:
    """Return the second derivatives by weights and biases, function after function."""
    problem, F = space.problem, space.F
    d, k = F.shape[1], problem.columns
    H = np.zeros((k, d + 1, k, d + 1))
    for c in range(k):
        for e in range(c + 1):
            curvature = bend.between(c, e)
            if curvature is None:
                continue
            h = problem.weights * curvature
            H[c, :d, e, :d] = weighted_gram(F, h)
            H[c, d, e, :d] = H[c, :d, e, d] = F.T @ h
            H[c, d, e, d] = h.sum()
            H[e, :, c, :] = H[c, :, e, :].T
    for c in range(k):
        H[c, range(d), c, range(d)] += problem.penalty
    if not problem.bias:
        H[:, d], H[:, :, :, d] = 0.0, 0.0
        H[range(k), d, range(k), d] = 1.0
    elif bend.shares is not None:  # all biases up alike: no probability changes, any curve will do
        H[:, d, :, d] += max(float(np.einsum("cc->", H[:, d, :, d])), 1.0) / k**2
    return H.reshape(k * (d + 1), k * (d + 1))


def _by_gradients(space: Space, u: Element, g: Element, watch: Watch) -> Element:
    """Solve for the step by conjugate gradients, the more exactly the nearer the end."""
    bend = space.problem.loss.curvature(u.scores, space.problem.codes)
    step, left = space.zero(), g.times(-1.0)
    way, size = left, space.inner(left, left)
    scale = space.tolerance(u)
    share = min(0.1, np.sqrt(np.sqrt(size) / scale)) if scale > 0 else 0.1
    goal = size * share**2
    for _ in range(_CG_STEPS):
        ahead = space.curved(bend, way)
        curvature = space.inner(way, ahead)
        if not curvature > 0:
            break
        t = size / curvature
        step, left = step.plus(t, way), left.plus(-t, ahead)
        before, size = size, space.inner(left, left)
        if size <= goal or watch.late:
            break
        way = left.plus(size / before, way)
    return step


# --- lbfgs ---------------------------------------------------------------------------------------
#
# L-BFGS for smooth risks, in the metric of functions: one product with K for each gradient.


@dataclass(frozen=True)
class LBFGSRisk(Solver):
    """Quasi-Newton steps that remember a few changes of the gradient.

    Parameters
    ----------
    tol : float
        Gradient to reach, relative to what pulls on the function.
    max_iter : int
        Largest number of steps.
    memory : int
        Changes that are remembered.
    n_init : int
        Starts, for a loss that is not convex.
    """

    answers = SmoothRisk

    tol: float = 1e-7
    max_iter: int = 5000
    memory: int = 20
    n_init: int = 4

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Descend from zero, or from every start."""
        space = space_of(problem.of_weight_one())
        best = best_of(space, self, watch, lambda at: LBFGSMemory(at, self.memory))
        value = space.answer(best.arrival.element)
        return report(self, value, best.arrival.status, best.steps, watch, best.detail)


# --- unpenalized ---------------------------------------------------------------------------------
#
# Newton's method where nothing holds the weights back: least squares, logistic regression, tanh.
#
# Without a penalty the answer is the weights themselves; coefficients of rows that give them are
# not unique, and the shortest are taken. The machine has seen to it before that convex losses have
# a minimum, and that no plane has all rows of a class on its side.
#
# The tanh loss may have none all the same. As weights grow along w, it tends to twice the weight of
# the rows that w puts on the wrong side (of rows on the plane, to at most that). It has a minimum
# if and only if some weights have a loss no larger than all these limits. The smallest limit is
# that of the fewest mistakes, which is NP-hard to find; a limit below the best minimum found
# proves that this is not the answer, and the solver says so.

_SHORTEST = 1e-10
_CLOSE = 1e-7  # gradient, relative, up to which a descent that rounding stops has arrived
_FLATTEST = 0.1  # curvature of the tanh loss along a step, over its slopes: at most 2
_SETTLED = 1e-3  # of scores, on which tanh has scale one: what a step may change at a minimum
_STARTS = np.outer(4.0 ** np.arange(-3, 5), [1, -1]).ravel()  # times weights of least squares


@dataclass(frozen=True)
class UnpenalizedNewton(Solver):
    """Newton steps, halved until they pay, for two classes, squares or tanh, features of full rank.

    Parameters
    ----------
    tol : float
        Gradient, relative to what pulls on the function, at which it ends.
    max_iter : int
        Largest number of steps of each start.
    """

    answers = SmoothRisk

    tol: float = 1e-12
    max_iter: int = 100

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        if problem.penalty == 0 and isinstance(problem.gram, FactoredGram):
            return None
        return (
            "UnpenalizedNewton is for penalty=0 and a kernel with fewer features than rows "
            "(Linear, low-degree Polynomial); use NewtonRisk() for others"
        )

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Solve weighted least squares until the gradient is small."""
        n, d = problem.gram.factor.shape
        what = f"{n} rows of {d} features, three times"
        require_memory(3 * 8 * n * (d + 1), what, "Use penalty > 0.")
        F = augmented(problem)
        if problem.loss.convex:
            zero = np.zeros((F.shape[1], problem.columns))
            end, detail = self._descend(problem, F, zero, watch), ""
        else:
            ends = [self._best(each, F, watch) for each in one_by_one(problem)]
            statuses = {end.status for end in ends}
            rank = (watch.stopped, Status.NO_MINIMUM, Status.ITERATION_LIMIT, Status.INACCURATE)
            status = next((each for each in rank if each in statuses), Status.SOLVED)
            w = np.column_stack([end.w for end in ends])
            end = Descended(w, status, sum(end.steps for end in ends))
            detail = f"the loss is not convex: the best of {len(_STARTS)} starts"
        return report(self, held(problem, F, end.w), end.status, end.steps, watch, detail)

    def _descend(self, problem: SmoothRisk, F: Array, w: Array, watch: Watch) -> Descended:
        """Descend from some weights."""
        before = w
        status, done, left, level = Status.ITERATION_LIMIT, 0, np.inf, False
        for done in range(self.max_iter + 1):
            last = left
            f = F @ w
            value, slopes = problem.both(f)
            reach = np.abs(F).T @ np.abs(slopes)
            gradient = F.T @ slopes
            left = float((np.abs(gradient) / np.maximum(reach, 1e-300)).max(initial=0.0))
            if left <= self.tol or watch.tick(done, left):
                status = Status.SOLVED if left <= self.tol else watch.stopped or Status.STOPPED
                break
            stalled = level and left > 0.5 * last
            if stalled and last < left:
                w, left = before, last
            ahead = None
            if not stalled:
                ahead, level = _step(problem, F, w, value, slopes)
            if ahead is None:
                status = Status.SOLVED if left <= _CLOSE else Status.INACCURATE
                break
            w, before = ahead, w
        return Descended(w, status, done)

    def _best(self, problem: SmoothRisk, F: Array, watch: Watch) -> Descended:
        """Descend from several starts a loss of two classes that is not convex; keep the lowest.

        Ends that are minima go before others: where the loss only falls on, there is no answer.
        """
        root = np.sqrt(problem.weights)[:, None]
        squares = np.linalg.lstsq(root * F, root * signs(problem.codes), rcond=None)[0]
        ends, steps = [], 0
        for factor in _STARTS:
            ends.append(self._descend(problem, F, factor * squares, watch))
            steps += ends[-1].steps
            if watch.stopped is not None:
                return replace(ends[-1], steps=steps)
        settled = [end for end in ends if _is_settled(problem, F, end.w)]
        best = min(settled or ends, key=lambda end: problem.risk(F @ end.w))
        limit = min(limit_of_risk(problem, F, sign * end.w) for end in ends for sign in (1, -1))
        value = problem.risk(F @ best.w)
        slopes = problem.weighted_slopes(F @ best.w)
        if not settled or limit < value - _rounding(F, best.w, value, slopes):
            return Descended(best.w, Status.NO_MINIMUM, steps)
        return replace(best, steps=steps)


@dataclass(frozen=True, eq=False)
class Descended:
    """Where a descent without a penalty ended: weights (d, k), why, and after how many steps."""

    w: Array
    status: Status
    steps: int


def one_by_one(problem: SmoothRisk) -> list[SmoothRisk]:
    """Return the questions of each class against the rest that a loss of several is the sum of."""
    if problem.columns == 1:
        return [problem]
    classes = range(problem.count)
    return [replace(problem, codes=(problem.codes == c).astype(int), count=2) for c in classes]


def limit_of_risk(problem: SmoothRisk, F: Array, w: Array) -> float:
    """Bound the limit of the tanh loss of two classes as weights grow along w, from above.

    Rows whose side rounding hides (Higham 3.1) count as wrong.
    """
    f = F @ w
    hidden = np.finfo(float).eps * (len(w) + 1) * (np.abs(F) @ np.abs(w))
    wrong = (signs(problem.codes) * f <= hidden)[:, 0]
    return 2.0 * float(problem.weights[wrong].sum())


def _is_settled(problem: SmoothRisk, F: Array, w: Array) -> bool:
    """Return whether the loss bends up in all directions, and Newton's step is small."""
    slopes = problem.weighted_slopes(F @ w)
    bends, step = _bends_and_step(problem, F, w, slopes, 0.0)
    return bool((bends > 0).all() and np.abs(F @ step).max() <= _SETTLED)


def _bends_and_step(
    problem: SmoothRisk, F: Array, w: Array, slopes: Array, flattest: float
) -> tuple[Array, Array]:
    """Return the curvature of the tanh loss of two classes, and Newton's step by its sizes.

    Curvature is relative to the sizes of the slopes, F'|diag(slopes)|F, in whose terms no row's is
    more than two: it tells up from down where both are tiny, as all slopes are far out.
    """
    root = np.sqrt(np.abs(slopes))
    Q, R = np.linalg.qr(root * F)
    bend = problem.weights[:, None] * problem.loss.curvature(F @ w, problem.codes).own
    ratio = np.divide(bend, np.abs(slopes), out=np.zeros_like(bend), where=root > 0)
    bends, axes = np.linalg.eigh(Q.T @ (ratio * Q))
    sizes = np.maximum(np.abs(bends), max(flattest, np.finfo(float).tiny))[:, None]
    along = axes.T @ (Q.T @ (np.sign(slopes) * root)) / sizes
    return bends, -np.linalg.lstsq(R, axes @ along, rcond=None)[0]


def augmented(problem: SmoothRisk) -> Array:
    """Return the features, with a column of ones for the bias last."""
    F = np.asarray(to_dense(problem.gram.factor), dtype=np.float64)
    return np.column_stack([F, np.ones(len(F))]) if problem.bias else F


def held(problem: SmoothRisk, F: Array, w: Array) -> Coefficients:
    """Return weights and bias, with the shortest coefficients of rows that give the weights."""
    d = F.shape[1] - int(problem.bias)
    bias = w[d] if problem.bias else np.zeros(w.shape[1])
    coef = np.linalg.lstsq(F[:, :d].T, w[:d], rcond=None)[0]
    return Coefficients(np.asarray(coef), np.asarray(bias), w[:d])


def _step(
    problem: SmoothRisk, F: Array, w: Array, value: float, slopes: Array
) -> tuple[Array | None, bool]:
    """Return Newton's step, halved until it pays, and whether it promises less than rounding.

    Near the minimum a step gains the square of its length, which values of the risk cannot resolve
    long before gradients are exact. So a step need not pay more than rounding may hide; where none
    promises more, the caller asks whether the gradient still falls.
    """
    if problem.loss.convex:
        step = _convex_step(problem, F, w, slopes)
    else:
        step = _bends_and_step(problem, F, w, slopes, _FLATTEST)[1]
    promised, t = float((slopes * (F @ step)).sum()), 1.0
    hidden = 2 * _rounding(F, w, value, slopes)  # of both values
    while t > _SHORTEST and promised < 0:
        if problem.risk(F @ (w + t * step)) <= value + 1e-4 * t * promised + hidden:
            return np.asarray(w + t * step), -promised <= 2 * hidden  # half of it is gained
        t *= 0.5
    return None, True


def _convex_step(problem: SmoothRisk, F: Array, w: Array, slopes: Array) -> Array:
    """Return Newton's step, function by function."""
    bend = problem.loss.curvature(F @ w, problem.codes).times(np.ones_like(slopes))
    curved = problem.weights[:, None] * np.maximum(bend, 1e-300)
    step = np.zeros_like(w)
    for column in range(w.shape[1]):
        root = np.sqrt(curved[:, column])
        step[:, column] = -np.linalg.lstsq(root[:, None] * F, slopes[:, column] / root, rcond=None)[
            0
        ]
    return step


def _rounding(F: Array, w: Array, value: float, slopes: Array) -> float:
    """Bound the rounding error of the risk, to first order and in any order of summation.

    The values F w are off by (d + 1) u |F| |w| at most (Higham, Accuracy and Stability, 3.1), which
    moves the risk by its slopes; a sum of n losses, none negative and each off by a few u, by
    (n + 8) u of itself. Twice u is `eps`.
    """
    n, d = F.shape
    moved = float((np.abs(slopes) * (np.abs(F) @ np.abs(w))).sum())
    return float(np.finfo(float).eps * ((n + 8) * abs(value) + (d + 1) * moved))


# --- choice -------------------------------------------------------------------------------------


@choose.register
def _(problem: SmoothRisk) -> Solver:
    return NewtonRisk() if problem.penalty > 0 else UnpenalizedNewton()
