"""Training of autoencoders: L-BFGS, Adam, early stopping, and objectives in torch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import singledispatch
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from math import log, pi
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mercer import deadline
from mercer.array_types import Array
from mercer.machines.neural.problem import (
    NOISE_FLOOR,
    Autoencoding,
    NetworkLayout,
    NetworkParameters,
    VariationalAutoencoding,
    parameter_count,
)
from mercer.resources import thread_limit
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- base of solvers -----------------------------------------------------------------------------
#
# Random starts, and early stopping by the loss of held-out samples.


@dataclass
class EarlyStopping:
    """Early stopping on held-out rows: the best parameters are kept.

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
        self, problem: Any, at: Array, watch: Watch, held: EarlyStopping, rng: np.random.Generator
    ) -> tuple[Status, int]:
        """Descend from parameters; return how that ended and after how many steps."""

    def run(self, problem: Any, watch: Watch, start: NetworkParameters | None = None) -> Solution:
        """Descend from a start that is drawn, or given."""
        rng = np.random.default_rng([self.seed, 2])
        at = problem.start(rng) if start is None else start.parameters
        held = EarlyStopping(problem, self.patience)
        rows = min(len(problem.X), getattr(self, "batch_size", len(problem.X)))
        with torch_threads(6.0 * problem.size * rows * getattr(problem, "draws", 1)):
            status, steps = self._descend(problem, at, watch, held, rng)
        assert held.kept is not None  # every descent looks at its start
        detail = "" if not held.losses else f"held-out loss {held.best:.4g}"
        return report(self, NetworkParameters(held.kept), status, steps, watch, detail)


# --- L-BFGS --------------------------------------------------------------------------------------


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
        self, problem: Any, at: Array, watch: Watch, held: EarlyStopping, rng: np.random.Generator
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
        self, problem: Any, value: Any, found: Any, held: EarlyStopping, ended: list[Status]
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


# --- Adam ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkAdam(NetworkSolver):
    """Steps of Adam (Kingma and Ba, 2015) on a few rows at a time, drawn again in every epoch.

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
        self, problem: Any, at: Array, watch: Watch, held: EarlyStopping, rng: np.random.Generator
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

    def _is_stationary(self, problem: Any, objective: TorchObjective, held: EarlyStopping) -> bool:
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


# --- objectives in torch -------------------------------------------------------------------------
#
# Objectives of autoencoders in torch, for gradients by automatic differentiation.
#
# `problem.py` has the same formulas in NumPy, with gradients by hand: certificates use those, so
# that they are independent of torch.

_THREAD_WORK = 5e8  # multiplications of a step for each thread: a tenth of a second
INSTALL = 'pip install "mercer[torch]"'


def has_torch() -> bool:
    """Return whether torch is installed, without importing it."""
    return find_spec("torch") is not None


def layers(torch: Any, part: tuple[Any, Sequence[int]], activation: str, rows: Any) -> Any:
    """Return the output of a network for rows, from its parameters and the units of its layers."""
    parameters, sizes = part
    between = {
        "identity": lambda x: x,
        "logistic": torch.sigmoid,
        "relu": torch.relu,
        "tanh": torch.tanh,
    }[activation]
    held, at = rows, 0
    for layer, (m, k) in enumerate(pairwise(sizes), start=2):
        W = parameters[at : at + m * k].reshape(m, k)
        held = torch.addmm(parameters[at + m * k : at + (m + 1) * k], held, W)
        held = held if layer == len(sizes) else between(held)
        at += (m + 1) * k
    return held


def parts(layout: NetworkLayout, parameters: Any) -> tuple[Any, Any]:
    """Return the parameters of encoder and decoder, each with the units of its layers."""
    cut = parameter_count(layout.encoder)
    return (parameters[:cut], layout.encoder), (parameters[cut:], layout.decoder)


@singledispatch
def row_losses(problem: Any, torch: Any, parameters: Any, rows: Any, noise: Any) -> Any:
    """Return what each row adds to the objective, before weights and penalty."""
    raise TypeError(f"no network for {type(problem).__name__}")


@row_losses.register
def _(problem: Autoencoding, torch: Any, parameters: Any, rows: Any, noise: Any) -> Any:
    encoder, decoder = parts(problem.layout, parameters)
    codes = layers(torch, encoder, problem.layout.activation, rows)
    back = layers(torch, decoder, problem.layout.activation, codes)
    return ((back - rows) ** 2).mean(dim=1)


@row_losses.register
def _(problem: VariationalAutoencoding, torch: Any, parameters: Any, rows: Any, noise: Any) -> Any:
    encoder, decoder = parts(problem.layout, parameters)
    q, d = problem.layout.code, rows.shape[1]
    codes = layers(torch, encoder, problem.layout.activation, rows)
    m, r = codes[:, :q], codes[:, q:]
    z = (m + torch.exp(0.5 * r) * noise).reshape(-1, q)
    back = layers(torch, decoder, problem.layout.activation, z)
    back = back.reshape(len(noise), len(rows), d)
    if problem.likelihood == "bernoulli":
        logs = (rows * back - torch.nn.functional.softplus(back)).sum(dim=2)
    else:
        v = NOISE_FLOOR + torch.exp(parameters[-1])
        logs = -0.5 * (((rows - back) ** 2).sum(dim=2) / v + d * (log(2.0 * pi) + torch.log(v)))
    kl = 0.5 * (m * m + torch.exp(r) - r - 1.0).sum(dim=1)
    return (kl - logs.mean(dim=0)) / d


@contextmanager
def torch_threads(work: float) -> Iterator[None]:
    """Let torch use as many threads as the work of a step is worth, and no more than configured.

    For small layers its threads wait for each other: with two on a busy computer a step took twenty
    times as long as with one.

    Parameters
    ----------
    work : float
        Multiplications of a step.
    """
    torch = import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(thread_limit(), int(work / _THREAD_WORK))))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class TorchObjective:
    """The objective of a problem as a function of NumPy's numbers.

    Parameters
    ----------
    problem : Autoencoding or VariationalAutoencoding
        The problem.
    """

    def __init__(self, problem: Any) -> None:
        self.torch = import_module("torch")
        self.problem = problem
        self.rows = self.torch.from_numpy(np.ascontiguousarray(problem.X))
        self.weights = self.torch.from_numpy(np.ascontiguousarray(problem.weights))
        self.penalized = self.torch.from_numpy(problem.penalized())

    def __call__(
        self, parameters: Array, index: Array | None = None, noise: Array | None = None
    ) -> tuple[float, Array]:
        """Return the objective on rows, all unless an index is given, and its derivatives."""
        at = self.torch.tensor(parameters, dtype=self.torch.float64, requires_grad=True)
        chosen = slice(None) if index is None else self.torch.from_numpy(index)
        drawn = None if noise is None else self.torch.from_numpy(noise)
        each = row_losses(self.problem, self.torch, at, self.rows[chosen], drawn)
        share = self.weights[chosen] / self.weights[chosen].sum()
        loss = share @ each + 0.5 * self.problem.penalty * (self.penalized * at * at).sum()
        loss.backward()
        return float(loss.detach()), at.grad.numpy()


# --- choice --------------------------------------------------------------------------------------

choose.register(Autoencoding)(lambda problem: NetworkLBFGS())
choose.register(VariationalAutoencoding)(lambda problem: NetworkLBFGS())
