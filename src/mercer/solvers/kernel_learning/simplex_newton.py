"""Weights of kernels by Newton steps over the simplex: multiple kernel learning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import PrecomputedGram
from mercer.gram.sizes import stored_dtype
from mercer.problems import BoxQP
from mercer.problems.kernel_learning.kernel_combination import KernelCombination, WeightedDuals
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.kernel_learning.combination_point import Point, answered
from mercer.solvers.margin.smo import SMO

_FINER = 0.1  # of tol: how well programmes are answered, so that their errors do not decide
_FINEST = 1e-14
_ENOUGH = 0.1  # of the predicted gain that a step must bring
_SHRUNK = 0.7  # of the gap, where the gain of a step cannot be seen
_FAR = 0.1  # relative gap: above, the quadratic model misleads
_ROUGH = 3.0  # times what was asked: a gap of machines that rounding of float32 leaves
_STALLED = 1e6  # damping, in units of the slope
_LEAST_SHARE = 1e-8  # of weights off the border of the simplex
_QUADRATIC = SMO(tol=1e-10, max_iter=1_000_000)


@dataclass(frozen=True)
class SimplexNewton(Solver):
    """Damped Newton steps on the optimal value as a function of the weights.

    Each step minimises a quadratic model over the simplex, itself a small box programme, and is
    taken if it brings a share of what the model promised; else the model is made stiffer. Weights
    that are zero at the optimum become exactly zero. The programmes start from their last answers.

    Parameters
    ----------
    tol : float
        What the duality gap may be, relative to the objective.
    max_iter : int
        Largest number of steps.
    """

    answers = KernelCombination

    tol: float = 1e-4
    max_iter: int = 200

    def _obstacle(self, problem: KernelCombination) -> str | None:
        """Take combinations of kernels."""
        if not problem.grams:
            return "there is no kernel to give a weight to"
        return None

    def run(self, problem: KernelCombination, watch: Watch, start: Any = None) -> Solution:
        """Step until the gap is below the tolerance, nothing is gained, or a limit is reached."""
        count = len(problem.grams)
        weights = np.full(count, 1.0 / count) if start is None else _on_simplex(start.weights)
        search = _SimplexRun(problem, watch, max(_FINER * self.tol, _FINEST))
        point = search.at(weights, None)
        iteration, status = 0, Status.ITERATION_LIMIT
        while iteration < self.max_iter:
            stop = watch.tick(iteration, point.relative_gap)
            if point.relative_gap <= self.tol or stop or point.status is Status.NOT_CONVEX:
                status = Status.SOLVED
                break
            iteration += 1
            further = search.step(point) or search.inward(point)
            if further is None:
                status = Status.INACCURATE
                break
            point = further
        point = search.best or point
        if point.relative_gap <= self.tol:
            status = Status.SOLVED
        value = WeightedDuals(point.weights, point.duals)
        status = Status.NOT_CONVEX if point.status is Status.NOT_CONVEX else status
        if point.relative_gap > self.tol:
            status = watch.stopped or status
        return report(self, value, status, iteration, watch)


@dataclass
class _SimplexRun:
    """What is remembered from step to step.

    Attributes
    ----------
    problem : KernelCombination
        What is asked.
    watch : Watch
        The clock.
    precision : float
        How well programmes are answered.
    damping : float
        What is added to the curvature, in units of the slope.
    balancings : int
        How many steps of the other kind, good from afar, are left.
    share : float
        What the last step off the border gave to all kernels together.
    dtype : numpy dtype
        Type of the weighted sum of matrices.
    best : Point or None
        The answer with the smallest gap so far.
    """

    problem: KernelCombination
    watch: Watch
    precision: float
    damping: float = 1e-3
    balancings: int = 8
    share: float = 0.1
    dtype: Any = field(init=False)
    best: Point | None = None

    def __post_init__(self) -> None:
        self.dtype = stored_dtype(self.problem.grams[0].shape[0])

    def step(self, point: Point) -> Point | None:
        """Return a better point, or the same answered better; None where neither can be had."""
        if self._needs_digits(point):
            self.dtype = np.dtype(np.float64)
            return self.at(point.weights, point)
        if self.balancings and point.relative_gap > _FAR:
            self.balancings -= 1
            return self.at(_balanced(point), point)
        self.balancings = 0  # what a Newton step set to zero would stay zero
        H = point.curvature()
        while self.damping <= _STALLED:
            target, gain = _model_minimum(point, H, self.damping)
            noise = self._noise(point)
            if gain <= noise:
                return self._last(target, point)
            trial = self.at(target, point)
            if self.watch.stopped:
                return trial if trial.upper < point.upper else point
            if trial.upper <= point.upper - _ENOUGH * gain + noise + trial.machine_gap:
                self.damping = max(self.damping / 10.0, 1e-9)
                return trial
            self.damping = 10.0 * max(self.damping, 1e-7)
        return None

    def inward(self, point: Point) -> Point | None:
        """Step off the border of the simplex, where no step along it helps; None where it is tried.

        With few kernels left their sum may be singular. Then many b are best, slopes jump, and the
        b at hand bounds nothing; close by it is the one that other kernels like best.
        """
        if point.weights.all() or self.share <= _LEAST_SHARE or self.watch.stopped:
            return None
        self.share, self.damping = self.share / 10.0, 1e-3
        equal = self.share / len(point.weights)
        return self.at((1.0 - self.share) * point.weights + equal, point)

    def _noise(self, point: Point) -> float:
        """Return what values are uncertain by."""
        return max(point.machine_gap, 1e-14 * abs(point.upper))

    def _last(self, target: Array, point: Point) -> Point | None:
        """Step where the gain is too small to be seen: what is seen is whether the gap shrinks.

        Where it does not, the slopes were those of a rough answer, which is made finer.
        """
        finest = self.precision <= _FINEST
        self.precision = max(self.precision / 100.0, _FINEST)
        trial = self.at(target, point)
        if trial.relative_gap < _SHRUNK * point.relative_gap:
            return trial
        return None if finest or self.watch.stopped else self.at(point.weights, point)

    def at(self, weights: Array, earlier: Point | None) -> Point:
        """Answer the programmes at some weights."""
        found = answered(
            self.problem, weights, self.precision, self.watch, earlier, dtype=self.dtype
        )
        if self.best is None or found.relative_gap < self.best.relative_gap:
            self.best = found
        return found

    def _needs_digits(self, point: Point) -> bool:
        rough = point.machine_gap > _ROUGH * self.precision * abs(point.upper)
        return rough and point.relative_gap < _FAR and self.dtype == np.float32


def _balanced(point: Point) -> Array:
    """Return the best weights for the parts of f as they are: proportional to their norms."""
    return _on_simplex(point.weights * np.sqrt(np.maximum(point.halves, 0.0)))


def _model_minimum(point: Point, H: Array, damping: float) -> tuple[Array, float]:
    """Minimise s'(t - d) + (t - d)'(H + damping)(t - d)/2 over the simplex; give t, and gain."""
    d, unit = point.weights, float(point.halves.max())
    if not unit > 0:
        return d, 0.0
    bent = H / unit + damping * np.eye(len(d))
    slope = -point.halves / unit
    nothing = np.zeros(len(d))
    model = BoxQP(PrecomputedGram(bent), bent @ d - slope, nothing, nothing + 1.0, 1.0)
    found = _QUADRATIC.run(model, Watch(), None).value.coef
    target = _on_simplex(found)
    move = target - d
    return target, -unit * float(slope @ move + 0.5 * move @ bent @ move)


def _on_simplex(weights: Array) -> Array:
    kept = np.maximum(np.asarray(weights, dtype=np.float64), 0.0)
    return np.asarray(kept / kept.sum())
