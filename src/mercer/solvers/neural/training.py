"""What solvers of networks share: a start that is drawn, and rows held out that say the end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems.neural.autoencoding import Autoencoding, NetworkParameters
from mercer.problems.neural.variational import VariationalAutoencoding
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.neural.torch_loss import INSTALL, has_torch, torch_threads


@dataclass
class HeldOut:
    """What rows held out say on the way: the parameters that served them best are kept.

    Parameters
    ----------
    problem : Autoencoding or VariationalAutoencoding
        Whose rows are held out; without any, the last parameters are kept.
    patience : int or None
        Looks without an improvement after which to stop; None never stops.
    """

    problem: Any
    patience: int | None
    best: float = np.inf
    kept: Array | None = None
    idle: int = 0
    losses: list[float] = field(default_factory=list)

    def look(self, parameters: Array) -> bool:
        """Note how the rows held out fare; True means that they have not gained for long."""
        if self.patience is None or not len(self.problem.held_out):
            self.kept = parameters.copy()
            return False
        loss = self.problem.held_out_loss(parameters)
        self.losses.append(loss)
        if self.kept is None or loss < self.best:
            self.best, self.kept, self.idle = loss, parameters.copy(), 0
        else:
            self.idle += 1
        return self.idle >= self.patience


@dataclass(frozen=True)
class NetworkSolver(Solver):
    """Base of solvers that train networks.

    Parameters
    ----------
    tol : float
        Largest derivative of the objective to reach.
    max_iter : int
        Largest number of steps, or of passes over the rows.
    patience : int or None
        Looks at the rows held out without an improvement after which to stop.
    seed : int
        Of the start, the order of the rows, and draws that change from pass to pass.
    """

    answers = (Autoencoding, VariationalAutoencoding)

    tol: float = 1e-4
    max_iter: int = 2000
    patience: int | None = None
    seed: int = 0

    def _obstacle(self, problem: Any) -> str | None:
        return None if has_torch() else f"{type(self).__name__} trains with torch: {INSTALL}"

    @abstractmethod
    def _descend(
        self, problem: Any, at: Array, watch: Watch, held: HeldOut, rng: np.random.Generator
    ) -> tuple[Status, int]:
        """Descend from parameters; return how that ended and after how many steps."""

    def run(self, problem: Any, watch: Watch, start: NetworkParameters | None = None) -> Solution:
        """Descend from a start that is drawn, or given."""
        rng = np.random.default_rng([self.seed, 2])
        at = problem.start(rng) if start is None else start.parameters
        held = HeldOut(problem, self.patience)
        rows = min(len(problem.X), getattr(self, "batch_size", len(problem.X)))
        with torch_threads(6.0 * problem.size * rows * getattr(problem, "draws", 1)):
            status, steps = self._descend(problem, at, watch, held, rng)
        assert held.kept is not None  # every descent looks at its start
        detail = "" if not held.losses else f"held-out loss {held.best:.4g}"
        return report(self, NetworkParameters(held.kept), status, steps, watch, detail)
