"""Quasi-Newton steps for networks, on all rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mercer import deadline
from mercer.array_types import Array
from mercer.solvers.base import Status, Watch
from mercer.solvers.neural.torch_loss import TorchObjective
from mercer.solvers.neural.training import HeldOut, NetworkSolver


@dataclass(frozen=True)
class NetworkLBFGS(NetworkSolver):
    """Limited-memory quasi-Newton steps on all rows; draws of a variational bound are fixed.

    Parameters
    ----------
    tol : float
        Largest derivative of the objective to reach.
    max_iter : int
        Largest number of steps.
    patience : int or None
        Looks at the rows held out without an improvement after which to stop.
    seed : int
        Of the start.
    memory : int
        Changes of the gradient that are remembered.
    """

    memory: int = 20

    def _descend(
        self, problem: Any, at: Array, watch: Watch, held: HeldOut, rng: np.random.Generator
    ) -> tuple[Status, int]:
        objective = TorchObjective(problem)
        fixed = problem.noise(len(problem.X)) if hasattr(problem, "noise") else None
        ended: list[Status] = []
        latest: list[Array] = [at]  # the slope where the line search ended
        held.look(at)

        def value(parameters: Array) -> tuple[float, Array]:
            deadline.check()
            found, slope = objective(parameters, noise=fixed)
            latest[0] = slope
            return found if np.isfinite(found) else np.finfo(float).max, slope

        def after_step(parameters: Array) -> None:
            if held.look(parameters):
                ended.append(Status.EARLY_STOPPED)
                raise StopIteration
            if watch.tick(len(watch.trace) + 1, float(np.abs(latest[0]).max())):
                ended.append(watch.stopped or Status.STOPPED)
                raise StopIteration

        options: Any = {
            "maxiter": self.max_iter,
            "maxfun": 20 * self.max_iter,
            "maxcor": self.memory,
            "gtol": self.tol,
            "ftol": 0.0,
            "maxls": 40,
        }
        found: Any = None
        with watch.keeping():
            step: Any = after_step
            found = minimize(value, at, jac=True, method="L-BFGS-B", callback=step, options=options)
        if found is None:  # cut short within a step
            return Status.TIME_LIMIT, len(watch.trace)
        return self._ending(problem, value, found, held, ended)

    def _ending(
        self, problem: Any, value: Any, found: Any, held: HeldOut, ended: list[Status]
    ) -> tuple[Status, int]:
        if ended:
            return ended[0], int(found.nit)
        if held.patience is None or not len(problem.held_out):
            held.kept = found.x
        assert held.kept is not None
        if np.abs(value(held.kept)[1]).max() <= self.tol:
            return Status.SOLVED, int(found.nit)
        if held.losses and held.kept is not found.x and np.abs(found.jac).max() <= self.tol:
            return Status.EARLY_STOPPED, int(found.nit)
        at_limit = int(found.nit) >= self.max_iter
        return (Status.ITERATION_LIMIT if at_limit else Status.INACCURATE), int(found.nit)
