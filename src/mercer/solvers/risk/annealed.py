"""Stochastic gradients with a step that is annealed: for streams, and for more rows than patience.

Steps are taken in the shape that the rows so far give the risk (see `stream_shape`) and shrink as
(1 + t / hold)^-power; what is handed back is the average of the places visited, later ones counting
more.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.problems import Coefficients
from mercer.problems.risk.losses import Loss
from mercer.problems.risk.smooth_risk import SmoothRisk
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.risk.stream_preconditioner import StreamPreconditioner

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
            "(Linear, low-degree Polynomial); use NewtonRisk() or LBFGSRisk() for others"
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
