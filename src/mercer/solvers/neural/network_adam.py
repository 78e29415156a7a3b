"""Adam for networks: short steps on a few rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.solvers.base import Status, Watch
from mercer.solvers.neural.torch_loss import TorchObjective
from mercer.solvers.neural.training import HeldOut, NetworkSolver


@dataclass(frozen=True)
class NetworkAdam(NetworkSolver):
    """Steps of Adam (Kingma and Ba, 2015) on a few rows at a time, drawn anew in every pass.

    Parameters
    ----------
    tol : float
        Largest derivative of the objective, on all rows, to reach.
    max_iter : int
        Largest number of passes over the rows.
    patience : int or None
        Passes without an improvement on the rows held out after which to stop.
    seed : int
        Of the start, the order of the rows and the draws.
    batch_size : int
        Rows of a step.
    learning_rate : float
        Length of steps.
    """

    batch_size: int = 64
    learning_rate: float = 1e-3

    def _descend(
        self, problem: Any, at: Array, watch: Watch, held: HeldOut, rng: np.random.Generator
    ) -> tuple[Status, int]:
        objective, at = TorchObjective(problem), at.copy()
        moments = np.zeros((2, len(at)))
        n, steps = len(problem.X), 0
        draw = getattr(problem, "draws", None)
        held.look(at)
        for epoch in range(1, self.max_iter + 1):
            summed = np.zeros(len(at))
            with watch.keeping():
                order = rng.permutation(n)
                for first in range(0, n, self.batch_size):
                    deadline.check()
                    index = np.sort(order[first : first + self.batch_size])
                    noise = None
                    if draw is not None:
                        noise = rng.standard_normal((draw, len(index), problem.layout.code))
                    _, slope = objective(at, index, noise)
                    summed += slope * (problem.weights[index].sum() / problem.weights.sum())
                    steps += 1
                    at -= adam_step(moments, slope, steps, self.learning_rate)
            if not np.isfinite(at).all():
                return Status.INACCURATE, epoch
            if held.look(at):
                return Status.EARLY_STOPPED, epoch
            size = float(np.abs(summed).max())
            if watch.tick(epoch, size):
                return watch.stopped or Status.STOPPED, epoch
            if size <= self.tol and self._is_stationary(problem, objective, held):
                return Status.SOLVED, epoch
        done = self._is_stationary(problem, objective, held)
        return (Status.SOLVED if done else Status.ITERATION_LIMIT), self.max_iter

    def _is_stationary(self, problem: Any, objective: TorchObjective, held: HeldOut) -> bool:
        assert held.kept is not None
        fixed = problem.noise(len(problem.X)) if hasattr(problem, "noise") else None
        return bool(np.abs(objective(held.kept, noise=fixed)[1]).max() <= self.tol)


_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8  # of the paper


def adam_step(moments: Array, slope: Array, steps: int, rate: float) -> Array:
    """Return the step of Adam, and renew its two running means in place.

    Examples
    --------
    >>> import numpy as np
    >>> adam_step(np.zeros((2, 1)), np.array([4.0]), 1, 0.1).round(6)
    array([0.1])
    """
    moments[0] += (1.0 - _FIRST) * (slope - moments[0])
    moments[1] += (1.0 - _SECOND) * (slope**2 - moments[1])
    mean = moments[0] / (1.0 - _FIRST**steps)
    spread = moments[1] / (1.0 - _SECOND**steps)
    return np.asarray(rate * mean / (np.sqrt(spread) + _SMALL))
