"""When a loss without a penalty has a minimum: features of full rank, classes that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.machines.base.parameters import refuse
from mercer.points import to_dense
from mercer.problems import LogLoss, SmoothRisk
from mercer.solvers import GradientDescent, StochasticGradient, UnpenalizedNewton
from mercer.solvers.ridge.design import ENTRY_ROUNDING, resolved

_SOLVERS = (GradientDescent, StochasticGradient, UnpenalizedNewton)
_CLEAR = 1e-9  # of the rows: a plane that puts so much on the right side is no rounding


def check_unpenalized(machine: Any) -> None:
    """Refuse penalty=0 with options for which it means nothing."""
    if machine.penalty != 0:
        return
    if machine.loss == "tanh":
        refuse(machine, "penalty", 0, "be positive with loss='tanh', which has no minimum without")
    if machine.solver is not None and not isinstance(machine.solver, _SOLVERS):
        names = ", ".join(kind.__name__ for kind in _SOLVERS)
        refuse(machine, "solver", machine.solver, f"be None or one of {names} with penalty=0")


def refuse_without_minimum(machine: Any, problem: SmoothRisk, origin: Array | None = None) -> None:
    """Refuse a problem without a penalty that has no minimum, or many.

    Weights that all rows leave alone can be anything, and where a plane has all rows of a class on
    its side, the logistic loss falls for ever as weights grow. `origin` was taken off all rows.
    """
    if problem.penalty != 0:
        return
    owner = type(machine).__name__
    if problem.gram.factor is None:
        raise ValueError(
            f"{owner}: penalty=0 needs a kernel with fewer features than rows (Linear, low-degree "
            "Polynomial): otherwise any labels are reached exactly, in many ways. Use penalty > 0"
        )
    logistic = isinstance(problem.loss, LogLoss)
    if logistic and problem.count > 2:
        raise ValueError(
            f"{owner}: penalty=0 with loss='log' takes two classes; of more, adding one function "
            "to all of them changes nothing, and none is the answer. Use a small penalty > 0"
        )
    F, lengths = _features(problem.gram, problem.bias, origin)
    sigma, Vt = np.linalg.svd(F, full_matrices=False)[1:]
    rank = int(resolved(sigma, Vt, lengths, F.shape).sum())
    if rank < F.shape[1]:
        raise ValueError(
            f"{owner}: penalty=0, but the {F.shape[1]} features (the constant of the bias counted) "
            f"have rank {rank}, so many weights are equally good. Leave columns out that depend on "
            "others, use bias=False where a feature is constant, more rows, or a small penalty > 0"
        )
    if logistic and _separable(F, problem):
        raise ValueError(
            f"{owner}: penalty=0, but a plane has all rows of a class on its side, so that the "
            "loss falls for ever as weights grow: there is no minimum. Use penalty > 0"
        )


def _features(gram: Gram, bias: bool, origin: Array | None) -> tuple[Array, Array]:
    """Return features in units of their largest entry, and the lengths they had at the origin.

    Columns that are constant but for rounding are zero.
    """
    F = np.asarray(to_dense(gram.factor), dtype=np.float64)
    far = np.zeros(F.shape[1]) if origin is None else np.abs(origin)
    size = np.abs(F).max(axis=0, initial=0.0)
    F = F * (size > ENTRY_ROUNDING * far)
    size = np.where(size > 0, size, 1.0)
    F = F / size
    lengths = np.hypot(np.linalg.norm(F, axis=0), np.sqrt(len(F)) * far / size)
    if not bias:
        return F, lengths
    return np.column_stack([F, np.ones(len(F))]), np.append(lengths, np.sqrt(len(F)))


def _separable(F: Any, problem: SmoothRisk) -> bool:
    """Return whether y_i w'x_i >= 0 for all rows and > 0 for some: a linear programme."""
    signed = np.where(problem.codes == 1, 1.0, -1.0)[:, None] * F
    found = linprog(
        -signed.sum(axis=0),
        A_ub=np.vstack([-signed, signed]),
        b_ub=np.concatenate([np.zeros(len(F)), np.ones(len(F))]),
        bounds=(None, None),
        method="highs",
    )
    return bool(found.status == 0 and float(found.fun or 0.0) < -_CLEAR)
