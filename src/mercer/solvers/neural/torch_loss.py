"""Objectives of autoencoders as torch writes them, for derivatives by its automatic rules.

The same formulas stand in `problems/neural` in NumPy, with derivatives by hand: certificates use
those, so that neither is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import singledispatch
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from math import log, pi
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems.neural.autoencoding import Autoencoding
from mercer.problems.neural.network import NetworkLayout, parameter_count
from mercer.problems.neural.variational import NOISE_FLOOR, VariationalAutoencoding
from mercer.resources import thread_limit

_THREAD_WORK = 5e8  # multiplications of a step for each thread: a tenth of a second
INSTALL = 'pip install "mercer[torch]"'


def has_torch() -> bool:
    """Return whether torch is installed, without importing it."""
    return find_spec("torch") is not None


def layers(torch: Any, part: tuple[Any, Sequence[int]], activation: str, rows: Any) -> Any:
    """Return what a network, its parameters and the units of its layers, makes of rows."""
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

    On small layers its threads wait for each other: with two on a busy machine a step took twenty
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
        What is asked.
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
