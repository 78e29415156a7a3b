"""Gradient descent, and stochastic gradients with a chosen or an annealed step size."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.machines.logistic.problem import Loss, LossCurvature, SmoothRisk
from mercer.machines.ridge.problem import Coefficients
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- stream preconditioner -----------------------------------------------------------------------
#
# What a stream tells of the curvature of its risk: the scatter of its rows, and how they bend.
#
# Gradient steps are taken in this shape (see `preconditioned`), so that neither the scale of
# columns nor what they have in common slows them down.

WIDEST = 256  # features: up to here their scatter is kept
_GROWTH = 1.5  # batches until the shape is looked at anew, times those so far
_FLATTEST = 0.1  # share of the steepest curvature that is always reckoned with
_SINGULAR = 1e-10


class StreamPreconditioner:
    """The mean curvature of what has been seen of a stream; a constant feature goes last.

    Parameters
    ----------
    features : int
        Features, without the constant one.
    """

    def __init__(self, features: int) -> None:
        self.full = features <= WIDEST
        self._width = features + 1
        self._scatter: Any = np.zeros((self._width, self._width)) if self.full else 0.0
        self._bend: Any = 0.0
        self._weight, self._batches, self._next = 0.0, 0, 0.0

    def see(self, F: Any, weights: Array, bend: LossCurvature, loss: Loss, share: float) -> None:
        """Take a batch into account; `share` is the penalty of the squared norm for one row."""
        total = float(weights.sum())
        self._weight += total
        self._batches += 1
        gain = total / self._weight
        self._scatter = self._scatter + gain * (self._moments(F, weights / total) - self._scatter)
        gain = 2.0 / (self._batches + 1.0)  # rows bend otherwise as the weights move
        self._bend = self._bend + gain * (bend.convex().mean(weights) - self._bend)
        if self._batches > self._next:
            self._next = _GROWTH * self._batches
            self._look(loss, share)

    def pace(self, F: Any, weights: Array) -> float:
        """Return the step that a batch of these rows surely bears."""
        total = float(weights.sum())
        if not self.full:
            batch_scatter = self._moments(F, weights / total)
            return float(self._axes / max(self._axes, batch_scatter))
        rows = (_with_ones(F) / self._scales) @ self._axes
        longer = float(weights @ (np.square(rows) / self._sizes).sum(axis=1)) / total / self._width
        # few rows in many directions: their own scatter is that much larger than that of all
        return float(1.0 / ((1.0 + np.sqrt(self._width / len(weights))) ** 2 * max(1.0, longer)))

    def undo(self, G: Array, g: Array) -> tuple[Array, Array]:
        """Return what a gradient by weights G and biases g is, less the curvature."""
        whole = np.vstack([G, g]) @ self._turn
        if self.full:
            whole = whole / self._scales[:, None]
            whole = self._axes @ ((self._axes.T @ whole) / np.outer(self._sizes, self._bends))
            whole = whole / self._scales[:, None]
        else:
            whole = whole / (self._axes * self._bends)
        whole = whole @ self._turn.T
        return whole[:-1], whole[-1]

    def _moments(self, F: Any, shares: Array) -> Any:
        """Return the scatter of rows, or only the mean of their squared lengths."""
        if not self.full:
            squares = F.multiply(F) if is_sparse(F) else np.square(F)
            return float(shares @ np.asarray(squares.sum(axis=1)).ravel()) + 1.0
        rows = _with_ones(F)
        return rows.T @ (shares[:, None] * rows)

    def _look(self, loss: Loss, share: float) -> None:
        """Decompose what has been seen."""
        bends, self._turn = np.linalg.eigh(self._bend)
        self._bends = np.maximum(bends, _FLATTEST * loss.steepest(len(bends)))
        penalty = share / float(self._bends.min())
        if not self.full:
            self._axes = self._scatter + penalty
            return
        scatter = self._scatter.copy()
        scatter.flat[: -1 : self._width + 1] += penalty
        self._scales = np.sqrt(np.maximum(scatter.diagonal(), np.finfo(float).tiny))
        known = self._weight / (self._weight + self._width)  # few rows: columns as if unrelated
        scatter *= known / np.multiply.outer(self._scales, self._scales)
        scatter.flat[:: self._width + 1] += 1.0 - known
        sizes, self._axes = np.linalg.eigh(scatter)
        self._sizes = np.maximum(sizes, _SINGULAR)


def _with_ones(F: Any) -> Array:
    return np.column_stack([to_dense(F), np.ones(F.shape[0])])


# --- annealed ------------------------------------------------------------------------------------
#
# Stochastic gradients with a step that is annealed: for streams, and for more rows than patience.
#
# Steps are taken in the shape that the rows so far give the risk (see `stream_shape`) and shrink
# as (1 + t / hold)^-power; what is handed back is the average of the places visited, later ones
# counting more.

_LATER = 4.0  # power of the step with which places count in the average, plus one


@dataclass(frozen=True)
class AnnealedGradient(Solver):
    """Gradient steps on batches of rows, drawn without replacement in each pass.

    Parameters
    ----------
    step : float
        Length of the first step, in units of what a batch surely bears.
    power : float
        Steps shrink as (1 + t / hold)^-power; 0 for steps of one length.
    hold : float
        After so many steps the shrinking sets in.
    batch : int
        Rows of a step.
    epochs : int
        Passes over the rows, in a fit; a stream is passed once.
    average : bool
        Whether to hand back the average of the places visited.
    random_state : int
        Seed of the order of rows, in a fit; a stream is taken in its own order.
    tol : float
        Gradient, relative to what pulls on the function, at which a fit stops before its passes
        are over. What did not come there says so.
    """

    answers = SmoothRisk

    step: float = 1.0
    power: float = 0.5
    hold: float = 30.0
    batch: int = 32
    epochs: int = 20
    average: bool = True
    random_state: int = 0
    tol: float = 3e-3

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        """Take smooth risks with explicit features."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return (
            "AnnealedGradient needs a SmoothRisk whose kernel has an explicit finite feature map "
            "(Linear, low-degree Polynomial); use NewtonRisk() for others"
        )

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Pass over the rows a number of times, in a new order each time."""
        F = problem.gram.factor
        n, total = len(problem.codes), float(problem.weights.sum())
        share, rng = problem.penalty / total, np.random.default_rng(self.random_state)
        sgd = SGDState(self, F.shape[1], problem.columns, problem.bias)
        weights = problem.weights * n / total
        done, left, status = 0, np.inf, Status.ITERATION_LIMIT
        for done in range(1, self.epochs + 1):
            order = rng.permutation(n)
            for first in range(0, n, self.batch):
                if watch.late:
                    break
                rows = order[first : first + self.batch]
                sgd.move(F[rows], problem.codes[rows], weights[rows], problem.loss, share)
            left = _left(problem, *sgd.place)
            if not np.isfinite(left):
                status = Status.NOT_FINITE
                break
            if left <= self.tol:
                status = Status.SOLVED
                break
            if watch.tick(done, left):
                break
        w, b = sgd.place
        coef = -problem.weighted_slopes(np.asarray(F @ w + b)) / problem.penalty
        seen = (
            f"{done} passes of gradient steps; the gradient is {left:.1e} of what pulls on the "
            "function, and more epochs bring it down"
        )
        if not problem.loss.convex:
            seen += "; the loss is not convex, and this is where one start led"
        return report(self, Coefficients(coef, b, w), watch.stopped or status, done, watch, seen)


def _left(problem: SmoothRisk, w: Array, b: Array) -> float:
    """Return the size of the gradient, relative to what pulls on the function before it cancels."""
    F, diagonal = problem.gram.factor, problem.gram.diag()
    with np.errstate(over="ignore", invalid="ignore"):
        weighted_slopes = problem.weighted_slopes(np.asarray(F @ w + b))
        sizes = problem.sizes(weighted_slopes)
        gradient = problem.penalty * w + F.T @ weighted_slopes
        reach = float((np.sqrt(diagonal) @ sizes).sum())
        left = float(np.sqrt(np.square(gradient).sum())) / reach if reach > 0 else 0.0
        if problem.bias:
            left = max(
                left, float(np.abs(weighted_slopes.sum(axis=0)).max() / max(sizes.sum(), 1e-300))
            )
    return left


@dataclass(eq=False)
class SGDState:
    """Where a descent stands on its stream; `move` takes one batch."""

    solver: AnnealedGradient
    features: int
    columns: int
    bias: bool
    steps: int = 0
    w: Array = field(init=False)
    b: Array = field(init=False)
    mean_w: Array = field(init=False)
    mean_b: Array = field(init=False)
    shape: StreamPreconditioner = field(init=False)

    def __post_init__(self) -> None:
        self.w, self.b = np.zeros((self.features, self.columns)), np.zeros(self.columns)
        self.mean_w, self.mean_b = self.w.copy(), self.b.copy()
        self.shape = StreamPreconditioner(self.features)

    def copy(self) -> SGDState:
        """Return a walk that goes on alone from here."""
        twin = copy.copy(self)
        twin.shape = copy.copy(self.shape)
        twin.mean_w, twin.mean_b = self.mean_w.copy(), self.mean_b.copy()
        return twin

    @property
    def place(self) -> tuple[Array, Array]:
        """Weights and biases to hand back."""
        return (self.mean_w, self.mean_b) if self.solver.average else (self.w, self.b)

    def move(self, F: Any, codes: Array, weights: Array, loss: Loss, share: float) -> None:
        """Take one step; `share` is the penalty of the squared norm for one row."""
        if not weights.any():
            return
        scores = np.asarray(F @ self.w + self.b)
        bend, slopes = loss.curvature(scores, codes), loss.slopes(scores, codes)
        self.shape.see(F, weights, bend, loss, share)
        pace = self.solver.step * self.shape.pace(F, weights)
        pace *= (1.0 + self.steps / self.solver.hold) ** -self.solver.power
        weighted_slopes = weights[:, None] * slopes / len(codes)
        change = np.asarray(F.T @ weighted_slopes) + share * self.w
        change, change_b = self.shape.undo(change, weighted_slopes.sum(axis=0))
        self.w = self.w - pace * change
        if self.bias:
            self.b = self.b - pace * change_b
        self.steps += 1
        gain = min(1.0, _LATER / (self.steps + _LATER - 1.0))
        self.mean_w += gain * (self.w - self.mean_w)
        self.mean_b += gain * (self.b - self.mean_b)


# --- gradient ------------------------------------------------------------------------------------
#
# Plain gradient descent and stochastic gradients with a chosen step, as textbooks have them.
#
# The cost is the mean over rows, C = (sum_i s_i loss(f(x_i), y_i) + penalty / 2 |f|^2) / sum_i
# s_i, and steps are along its gradient, with nothing to precondition it. Coefficients of rows are
# changed beside weights of features, so that both are one function at every step; without
# features, steps are those of the function itself. Steps that are too long explode: that is told,
# and the best place on the way is kept.

_EXPLODED = 1e8  # times the first cost: beyond, nothing comes back
_GAP = 1e-7  # of the objective: a tenth of what certificates ask
_POWERS = 30  # iterations for the largest curvature, in the sentence about steps


def wrong_setting(solver: Solver, sizes: tuple[str, ...], count: str) -> str | None:
    """Say what is wrong with the step, with numbers not below zero, or with a count, if anything.

    Parameters
    ----------
    solver : Solver
        Whose settings.
    sizes : tuple of str
        Which must be finite numbers, not negative.
    count : str
        Which must be a whole number, not negative.
    """
    name, step, steps = type(solver).__name__, vars(solver)["step"], getattr(solver, count)
    if not (isinstance(step, Real) and 0 < float(step) < np.inf):
        return f"{name}: step={step!r} must be positive, and finite"
    for size in sizes:
        value = getattr(solver, size)
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            return f"{name}: {size}={value!r} must be positive, or zero"
    if not (isinstance(steps, Integral) and int(steps) >= 0):
        return f"{name}: {count}={steps!r} must be a whole number, positive or zero"
    return None


@dataclass(frozen=True)
class GradientDescent(Solver):
    """Steps of one length along the gradient of the mean cost.

    Parameters
    ----------
    step : float
        Length eta of a step: w - eta dC/dw, b - eta dC/db. Above 2 over the largest curvature
        of C it explodes, far below it crawls.
    max_iter : int
        Largest number of steps.
    tol : float
        Gradient, relative to what pulls on the function, at which it ends.

    Notes
    -----
    `solution_.trace` has the cost C before each step in `measure`.
    """

    answers = SmoothRisk

    step: float = 0.1
    max_iter: int = 1000
    tol: float = 1e-7

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        return wrong_setting(self, ("tol",), "max_iter")

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Go down until the gradient is small, or the cost explodes."""
        at, done = _Iterate(problem, start), 0
        status = Status.ITERATION_LIMIT
        for done in range(self.max_iter + 1):
            ended = at.judge(self.tol, watch, done)
            if ended is not None or done == self.max_iter:
                status = ended or status
                break
            at.move(self.step / at.total, at.slopes, problem.penalty)
        return at.reported(self, status, done, watch, at.longest())


@dataclass(frozen=True)
class StochasticGradient(Solver):
    """Steps along the gradient of one row's cost, rows drawn at random.

    Parameters
    ----------
    step : float
        Length eta of the first step: w - eta (loss' x_n + penalty / n w).
    decay : float
        Steps shrink as eta / (1 + decay t / n), t the number of steps so far; 0 for steps of one
        length, which wiggle about the minimum for ever.
    epochs : int
        As many steps as there are rows are an epoch; after each the gradient of all rows is looked
        at.
    tol : float
        Gradient, relative to what pulls on the function, at which it ends.
    random_state : int
        Seed of the rows drawn.

    Notes
    -----
    `solution_.trace` has the mean cost of all rows after each epoch in `measure`.
    """

    answers = SmoothRisk

    step: float = 0.1
    decay: float = 0.0
    epochs: int = 50
    tol: float = 1e-7
    random_state: int = 0

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        wrong = wrong_setting(self, ("decay", "tol"), "epochs")
        if wrong is not None:
            return wrong
        seed: Any = self.random_state
        if not (isinstance(seed, Integral) and int(seed) >= 0):
            return f"StochasticGradient: random_state={seed!r} must be a whole number, not negative"
        if isinstance(problem.gram, FactoredGram):
            return None
        return (
            "StochasticGradient needs a kernel with an explicit finite feature map (Linear, "
            "low-degree Polynomial); use GradientDescent() or NewtonRisk() for others"
        )

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Take as many steps as there are rows, look, and so on."""
        at, n, done = _Iterate(problem, start), len(problem.codes), 0
        rng, heights = np.random.default_rng(self.random_state), np.cumsum(problem.weights)
        status = Status.ITERATION_LIMIT
        for done in range(self.epochs + 1):
            ended = at.judge(self.tol, watch, done)
            if ended is not None or done == self.epochs:
                status = ended or status
                break
            drawn = np.searchsorted(heights, rng.random(n) * heights[-1], side="right")
            for t, row in enumerate(np.minimum(drawn, n - 1).tolist(), start=done * n):
                at.move_by_row(row, self.step / (1.0 + self.decay * t / n))
        return at.reported(self, status, done, watch, at.longest_by_row())


class _Iterate:
    """Where a descent stands: coefficients of rows, weights of features, bias, and the best."""

    def __init__(self, problem: SmoothRisk, start: Coefficients | None) -> None:
        n, k = len(problem.codes), problem.columns
        self.problem, self.total = problem, float(problem.weights.sum())
        self.F: Any = problem.gram.factor if isinstance(problem.gram, FactoredGram) else None
        self.a = np.zeros((n, k)) if start is None else start.coef.copy()
        self.b = np.zeros(k) if start is None else start.intercept.copy()
        self.w = None if self.F is None else np.asarray(self.F.T @ self.a)
        self.first = self.lowest = np.inf
        self.best = self._held()
        self.left = np.inf
        self.slopes = np.zeros((n, k))

    def judge(self, tol: float, watch: Watch, step: int) -> Status | None:
        """Look at cost and gradient; say why to end, if so."""
        problem = self.problem
        with np.errstate(over="ignore", invalid="ignore"):
            image = np.asarray(problem.gram @ self.a if self.F is None else self.F @ self.w)
            risk, self.slopes = problem.both(image + self.b)
            squared = (self.a * image).sum() if self.w is None else np.square(self.w).sum()
            cost = (risk + 0.5 * problem.penalty * float(squared)) / self.total
            gradient = self._gradient()
        if step == 0:
            self.first = cost
        if not np.isfinite(cost) or cost > _EXPLODED * max(self.first, np.finfo(float).tiny):
            watch.tick(step, cost if np.isfinite(cost) else np.inf)
            return Status.DIVERGED
        if cost <= self.lowest:
            self.lowest, self.best = cost, self._held()
        proven = gradient**2 <= _GAP * 2 * problem.penalty * abs(cost * self.total)
        stopped = watch.tick(step, cost)
        if self.left <= tol and (proven or problem.penalty == 0 or not problem.loss.convex):
            return Status.SOLVED
        return watch.stopped if stopped else None

    def move(self, length: float, slopes: Array, penalty: float) -> None:
        """Take a step of all rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            keep = 1.0 - length * penalty
            self.a = keep * self.a - length * slopes
            if self.w is not None:
                self.w = keep * self.w - length * np.asarray(self.F.T @ slopes)
            if self.problem.bias:
                self.b = self.b - length * slopes.sum(axis=0)

    def move_by_row(self, row: int, length: float) -> None:
        """Take a step of one row."""
        assert self.w is not None
        problem, x = self.problem, self.F[[row]]
        with np.errstate(over="ignore", invalid="ignore"):
            code = problem.codes[row : row + 1]
            slope = problem.loss.slopes(np.asarray(x @ self.w) + self.b, code)
            keep = 1.0 - length * problem.penalty / self.total
            if keep != 1.0:
                self.a *= keep
                self.w *= keep
            self.a[row] -= length * slope[0]
            self.w -= length * np.asarray(x.T @ slope)
            if problem.bias:
                self.b = self.b - length * slope[0]

    def reported(
        self, solver: Solver, status: Status, done: int, watch: Watch, longest: float
    ) -> Solution:
        """Return where it ended, or the best place of a way that exploded."""
        value = self.best if status is Status.DIVERGED else self._held()
        seen = f"the gradient is {self.left:.1e} of what pulls on the function"
        if status in (Status.DIVERGED, Status.ITERATION_LIMIT):
            seen += f"; a step of more than about {longest:.2g} explodes"
        if not self.problem.loss.convex:
            seen += "; the loss is not convex, and this is where one start led"
        return report(solver, value, watch.stopped or status, done, watch, seen)

    def _held(self) -> Coefficients:
        w = None if self.w is None else self.w.copy()
        return Coefficients(self.a.copy(), self.b.copy(), w)

    def _gradient(self) -> float:
        """Note the gradient, relative to what pulls before it cancels; return its norm."""
        problem, slopes = self.problem, self.slopes
        sizes = problem.sizes(slopes)
        if self.w is not None:
            left = problem.penalty * self.w + np.asarray(self.F.T @ slopes)
            size = float(np.sqrt(np.square(left).sum()))
        else:
            rows = problem.penalty * self.a + slopes
            size = float(np.sqrt(max(float((rows * (problem.gram @ rows)).sum()), 0.0)))
        reach = float((np.sqrt(np.maximum(problem.gram.diag(), 0.0)) @ sizes).sum())
        self.left = size / reach if reach > 0 else 0.0
        if problem.bias:
            balance = np.abs(slopes.sum(axis=0)) / np.maximum(sizes.sum(axis=0), 1e-300)
            self.left = max(self.left, float(balance.max()))
        return size

    def longest_by_row(self) -> float:
        """Return 2 over the largest curvature of the cost of one row."""
        problem = self.problem
        f = np.zeros((1, problem.columns))
        bend = problem.loss.curvature(f, problem.codes[:1]).times(np.ones((1, problem.columns)))
        lengths = problem.gram.diag() + problem.bias
        steepest = float(np.abs(bend).max(initial=0.0)) * float(lengths.max(initial=0.0))
        total = steepest + problem.penalty / self.total
        return 2.0 / total if total > 0 else np.inf

    def longest(self) -> float:
        """Return 2 over the largest curvature of the mean cost, by power iteration at zero."""
        problem, n = self.problem, len(self.problem.codes)
        bend = problem.loss.curvature(np.zeros((n, problem.columns)), problem.codes)
        share = problem.weights / self.total
        v, curvature = np.ones((n, problem.columns)) + np.arange(n)[:, None] % 7, 0.0
        for _ in range(_POWERS):
            moved = share[:, None] * bend.times(v)
            grown = np.asarray(problem.gram @ moved) + problem.bias * moved.sum(axis=0)
            size = float(np.linalg.norm(grown))
            if not np.isfinite(size) or size == 0:
                break
            curvature, v = size / float(np.linalg.norm(v)), grown / size
        total = curvature + problem.penalty / self.total
        return 2.0 / total if total > 0 else np.inf
