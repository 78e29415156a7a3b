"""Is it the solution of the linear system? The residual says which targets it solves exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from mercer._types import Array
from mercer.certificates.base import Certificate, certify
from mercer.gram import FactoredGram, exact
from mercer.problems import Coefficients, LinearSystem

_TOL = 1e-6
_ROUNDING = 1e-8  # of the largest numbers: a hundredth of tol is a million roundings


@dataclass(frozen=True)
class LinearSystemQuantities:
    """Measures of an answer to a linear system; over several targets, the worst.

    Attributes
    ----------
    residual : float
        Norm of what is left of the equations: of y - (K + penalty S^-1) a - b, or, in the space of
        the features, of F'S (y - F w - b) - penalty w. There the weights w are judged, of which a
        is only the other form: a residual divided by the penalty, exact to rounding of y / penalty.
    relative_residual : float
        The same over the norm of the right-hand side, y or F'S y (without the mean of y when there
        is a bias, which takes that up).
    bias_condition : float
        |sum of a| over the sum of |a|; zero for an optimal bias, and without one.
    """

    residual: float
    relative_residual: float
    bias_condition: float


@certify.register
def _(problem: LinearSystem, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        quantities = _measure(problem, value)
    ok = quantities.relative_residual <= tol and quantities.bias_condition <= tol
    statement = (
        "the answer solves the ridge equations exactly once their right-hand side is changed by "
        f"{quantities.relative_residual:.1e} of its norm"
    )
    return Certificate(bool(ok), quantities, tol, statement)


def _measure(problem: LinearSystem, value: Coefficients) -> LinearSystemQuantities:
    primal = isinstance(problem.gram, FactoredGram) and value.weights is not None
    judged = (_primal if primal else _dual)(problem, value)
    residual = _norms(judged.residual)
    relative = residual / _size(_norms(judged.right), _norms(judged.largest))
    bias = np.zeros(1)
    if problem.bias:
        pulls, most = np.abs(judged.pull).sum(axis=0), np.abs(judged.most_pull).sum(axis=0)
        bias = np.abs(judged.pull.sum(axis=0)) / _size(pulls, most)
    return LinearSystemQuantities(_worst(residual), _worst(relative), _worst(bias))


class _Judged(NamedTuple):
    """What is left of the equations, and what it is measured by.

    A bias takes up the mean of the targets, so the right-hand side counts without it; `largest`
    and `most_pull` are the sizes before anything cancelled, which set the level of rounding.
    """

    residual: Array
    right: Array
    largest: Array
    pull: Array
    most_pull: Array


def _dual(problem: LinearSystem, value: Coefficients) -> _Judged:
    y, penalised = problem.targets, problem.penalties > 0
    inverse = np.where(penalised, 1.0 / np.where(penalised, problem.penalties, 1.0), 0.0)
    return _Judged(
        problem.residual(value, exact(problem.gram)),
        _centred(problem, y),
        y,
        value.coef,
        problem.row_weights[:, None] * y * inverse,
    )


def _primal(problem: LinearSystem, value: Coefficients) -> _Judged:
    F: Any = cast(FactoredGram, problem.gram).factor
    s, y = problem.row_weights[:, None], problem.targets
    pull = s * (y - F @ value.weights - value.intercept)
    residual = F.T @ pull - problem.penalties * value.weights
    return _Judged(
        residual, F.T @ (s * _centred(problem, y)), abs(F.T) @ np.abs(s * y), pull, s * y
    )


def _centred(problem: LinearSystem, y: Array) -> Array:
    s = problem.row_weights
    return np.asarray(y - s @ y / s.sum()) if problem.bias else y


def _size(measured: Array, largest: Array) -> Array:
    """Give what to divide by: never so little that rounding alone would count as an error."""
    return np.maximum(np.maximum(measured, _ROUNDING * largest), np.finfo(float).tiny)


def _norms(A: Array) -> Array:
    """Give the norms of columns, also where squares would overflow or vanish."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    return np.asarray(largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0))


def _worst(x: Array) -> float:
    return float(x.max(initial=0.0)) if np.isfinite(x).all() else float("inf")
