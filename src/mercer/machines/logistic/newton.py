"""Newton's method for smooth risks, with and without regularization."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.factorizations import eigh
from mercer.backends.lapack import one_blas_thread
from mercer.gram import FactoredGram, exact
from mercer.machines.logistic.descent import (
    SMALL_NOT_CONVEX,
    DescentResult,
    Direction,
    Element,
    FeatureSpace,
    RowSpace,
    Space,
    descend,
    is_single,
    space_of,
)
from mercer.machines.logistic.problem import (
    CERTIFIED,
    LogLoss,
    LossCurvature,
    SmoothRisk,
    SquaredLoss,
    rounding_of_dual,
    signs,
)
from mercer.machines.ridge.problem import Coefficients
from mercer.resources import require_memory
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose
from mercer.solvers.linear_algebra import weighted_gram

# --- newton --------------------------------------------------------------------------------------
#
# Newton's method for smooth risks: a factor of the Hessian, or conjugate gradients.

_SMALL = 400  # unknowns: up to here the Hessian is factored
_WIDEST = 1200  # features: up to here their scatter matrix is decomposed
_CG_STEPS = 500
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class NewtonRisk(Solver):
    """Newton steps with a line search.

    A Cholesky factor of the Hessian solves small systems. Conjugate gradients solve larger ones:
    they only need products with the features, or with K. On dense features the Hessian of the
    mean curvature preconditions them. A loss that is not convex is minimized from several starting
    points, and the best result is kept.

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
        space = space_of(problem.of_weight_one())
        with _systems_alone(space):
            best = best_of(space, self, watch, lambda at: _direction(at, watch))
            value = space.answer(best.arrival.element)
        status = best.arrival.status
        if status is Status.SOLVED and _is_hidden(space, best.arrival):
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
        found.append(descend(space, zero, _direction(space, watch), 1e-6, 100, watch).element)
        space.problem = problem
    listed = [found[-1], zero, *found[:-1]]
    listed += [found[-1].times(4.0**j) for j in range(1, solver.n_init)]
    yield from listed[: solver.n_init]


def _is_hidden(space: Space, found: DescentResult) -> bool:
    """Return whether rounding of u'Ku may hide how far the objective is from the optimum."""
    problem = space.problem
    if not problem.loss.convex:
        return False
    squares = np.zeros(problem.columns)
    if isinstance(space, FeatureSpace):  # penalty w = -F'u at the minimum
        squares = np.square(problem.penalty * found.element.coef).sum(axis=0)
    u = space.weighted_slopes(found.element)
    lost = rounding_of_dual(problem, exact(problem.gram), u, squares)
    return not lost <= CERTIFIED * abs(found.objective)


def _systems_alone(space: Space) -> AbstractContextManager[None]:
    """Keep linear algebra to one thread where a card multiplies: what is left here is small."""
    there = isinstance(space, FeatureSpace) and isinstance(space.F, CardRows)
    return one_blas_thread() if there else nullcontext()


def _direction(space: Space, watch: Watch) -> Direction:
    """Return how steps are solved for: by a factor of the Hessian, or by conjugate gradients."""
    mean = None
    if isinstance(space, FeatureSpace):
        d, convex = space.F.shape[1], space.problem.loss.convex
        if (d + 1) * space.problem.columns <= (_SMALL if convex else SMALL_NOT_CONVEX):
            return lambda u, g: _exact(space, u, g)
        if convex and d <= _WIDEST and not is_sparse(space.F):
            mean = MeanHessian(space)
    return lambda u, g: _by_conjugate_gradients(space, u, g, watch, mean)


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


class MeanHessian:
    """Hessian of a risk on dense features, as if each sample had the mean curvature.

    The Hessian is sum_i s_i B_i x x_i x_i' + penalty I, with B_i the curvature between the scores
    of sample i. With the mean of the B_i in place of each, it is the Kronecker product of a small
    matrix and the scatter matrix of the features, which two eigendecompositions invert. As a
    preconditioner it leaves conjugate gradients few iterations, whatever the condition number of
    the features.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    """

    def __init__(self, space: FeatureSpace) -> None:
        self._space = space
        scatter = weighted_gram(space.F, space.problem.weights)
        self._sizes, self._axes = eigh(scatter)
        self._total = float(space.problem.weights.sum())

    def inverse(self, curvature: LossCurvature) -> Callable[[Element], Element]:
        """Return the map that applies the inverse to an element."""
        space, problem, U = self._space, self._space.problem, self._axes
        sizes, V = np.linalg.eigh(curvature.mean(problem.weights))
        sizes = np.maximum(sizes, 0.0)
        weights = np.multiply.outer(self._sizes, sizes) + problem.penalty
        biases = self._total * sizes
        moves = (biases > 1e3 * _EPS * biases.max(initial=0.0)) & problem.bias
        inverse_b = np.where(moves, 1.0 / np.where(moves, biases, 1.0), 0.0)

        def apply(g: Element) -> Element:
            coef = U @ ((U.T @ g.coef @ V) / weights) @ V.T
            # the bias of a gradient is the derivative times the squared length of its feature
            return space.element(coef, V @ (inverse_b * (V.T @ g.bias)) / space.scale)

        return apply


def _by_conjugate_gradients(
    space: Space, u: Element, g: Element, watch: Watch, mean: MeanHessian | None = None
) -> Element:
    """Solve for the step, to an accuracy that grows near the minimum."""
    curvature = space.problem.loss.curvature(u.scores, space.problem.codes)
    scale = space.tolerance(u)
    relative = np.sqrt(max(space.inner(g, g), 0.0)) / scale if scale > 0 else 0.0
    goal = float(min(0.1, np.sqrt(relative)))
    precondition = None if mean is None else mean.inverse(curvature)
    step, positive = _conjugate_gradients(space, curvature, g, goal, watch, precondition)
    if not positive and not space.problem.loss.convex:
        step, _ = _conjugate_gradients(space, curvature.convex(), g, goal, watch, None)
    return step


def _conjugate_gradients(
    space: Space,
    curvature: LossCurvature,
    g: Element,
    goal: float,
    watch: Watch,
    precondition: Callable[[Element], Element] | None,
) -> tuple[Element, bool]:
    """Solve H step = -g to a relative residual; return whether all curvature was positive."""
    step, residual = space.zero(), g.times(-1.0)
    p = residual if precondition is None else precondition(residual)
    size = space.inner(residual, p)
    target = size * goal**2
    for _ in range(_CG_STEPS):
        image = space.curved(curvature, p)
        curved = space.inner(p, image)
        if not curved > 0:
            return step, False
        t = size / curved
        step, residual = step.plus(t, p), residual.plus(-t, image)
        z = residual if precondition is None else precondition(residual)
        before, size = size, space.inner(residual, z)
        if size <= target or watch.late:
            break
        p = z.plus(size / before, p)
    return step, True


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
