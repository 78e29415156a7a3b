"""Stochastic gradients with a step that is annealed: for streams, and for more rows than patience.

Steps shrink as (1 + t / hold)^-power, in units of one over the curvature of the loss on an average
row; what is handed back is the average of the places visited, later ones counting more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._types import Array
from mercer.gram import FactoredGram
from mercer.problems import Coefficients
from mercer.problems.losses import Loss
from mercer.problems.smooth_risk import SmoothRisk
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class AnnealedGradient(Solver):
    """Gradient steps on batches of rows, drawn without replacement in each pass.

    Parameters
    ----------
    step : float
        Length of the first step, in units of one over the curvature of the loss.
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
    """

    step: float = 1.0
    power: float = 0.5
    hold: float = 100.0
    batch: int = 32
    epochs: int = 20
    average: bool = True
    random_state: int = 0

    def refuses(self, problem: Any) -> str | None:
        """Take smooth risks with explicit features."""
        if isinstance(problem, SmoothRisk) and isinstance(problem.gram, FactoredGram):
            return None
        return (
            "AnnealedGradient needs a SmoothRisk whose kernel has an explicit finite feature map "
            "(Linear, low-degree Polynomial); use NewtonRisk() or LBFGSRisk() for others"
        )

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Pass over the rows a number of times, in a new order each time."""
        F = problem.gram.factor  # type: ignore[attr-defined]
        n, total = len(problem.codes), float(problem.weights.sum())
        share, rng = problem.penalty / total, np.random.default_rng(self.random_state)
        walk = Walk(self, F.shape[1], problem.columns, problem.bias)
        weights = problem.weights * n / total
        done = 0
        for done in range(1, self.epochs + 1):
            order = rng.permutation(n)
            for first in range(0, n, self.batch):
                rows = order[first : first + self.batch]
                walk.move(F[rows], problem.codes[rows], weights[rows], problem.loss, share)
            if watch.tick(done, walk.length):
                break
        w, b = walk.place
        coef = -problem.pulls(np.asarray(F @ w + b)) / problem.penalty
        status = watch.stopped or Status.SOLVED
        seen = f"{done} passes of gradient steps; the last step was {walk.length:.1e} long"
        return report(self, Coefficients(coef, b, w), status, done, watch, seen)


@dataclass(eq=False)
class Walk:
    """Where a descent stands on its stream; `move` takes one batch."""

    solver: AnnealedGradient
    features: int
    columns: int
    bias: bool
    steps: int = 0
    size: float = 0.0
    length: float = float("nan")
    w: Array = field(init=False)
    b: Array = field(init=False)
    mean_w: Array = field(init=False)
    mean_b: Array = field(init=False)

    def __post_init__(self) -> None:
        self.w, self.b = np.zeros((self.features, self.columns)), np.zeros(self.columns)
        self.mean_w, self.mean_b = self.w.copy(), self.b.copy()

    @property
    def place(self) -> tuple[Array, Array]:
        """Weights and biases to hand back."""
        return (self.mean_w, self.mean_b) if self.solver.average else (self.w, self.b)

    def move(self, F: Any, codes: Array, weights: Array, loss: Loss, share: float) -> None:
        """Take one step; `share` is the penalty of the squared norm for one row."""
        squared = F.multiply(F).sum() if hasattr(F, "multiply") else np.square(F).sum()
        size = float(squared) / len(codes) + 1.0
        self.size += (size - self.size) / min(self.steps + 1, 1000)
        # a batch of rows that are longer than usual must not throw the weights across
        steepest = loss.steepest(self.columns) * max(self.size, size) + share
        pace = self.solver.step / steepest
        pace *= (1.0 + self.steps / self.solver.hold) ** -self.solver.power
        pulls = weights[:, None] * loss.slopes(np.asarray(F @ self.w + self.b), codes) / len(codes)
        change = np.asarray(F.T @ pulls)
        # the penalty is stepped implicitly: however large, it cannot throw the weights across zero
        before = self.w
        self.w = (self.w - pace * change) / (1.0 + pace * share)
        if self.bias:
            self.b = self.b - pace * pulls.sum(axis=0)
        self.length = float(np.sqrt(np.square(self.w - before).sum()))
        self.steps += 1
        gain = 2.0 / (self.steps + 1.0)
        self.mean_w += gain * (self.w - self.mean_w)
        self.mean_b += gain * (self.b - self.mean_b)
