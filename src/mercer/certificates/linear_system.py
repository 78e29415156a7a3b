"""Is it the solution of the linear system? The residual says which targets it solves exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mercer._types import Array
from mercer.certificates.base import Certificate, certify
from mercer.gram import FactoredGram, exact
from mercer.problems import Coefficients, LinearSystem

_TOL = 1e-6


@dataclass(frozen=True)
class LinearSystemQuantities:
    """Measures of an answer to a linear system; over several targets, the worst.

    Attributes
    ----------
    residual : float
        Norm of what is left of the equations: of y - (K + penalty S^-1) a - b, or, in the space of
        the features, of F'S (y - F w - b) - penalty w.
    relative_residual : float
        The same over the norm of the right-hand side, y or F'S y.
    bias_condition : float
        |sum of a| over the sum of |a|; zero for an optimal bias, and without one.
    """

    residual: float
    relative_residual: float
    bias_condition: float


@certify.register
def _(problem: LinearSystem, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    primal = isinstance(problem.gram, FactoredGram) and value.weights is not None
    R, right, pull = (_primal if primal else _dual)(problem, value)
    residual = _norms(R)
    relative = residual / np.maximum(_norms(right), np.finfo(float).tiny)
    size = np.maximum(np.abs(pull).sum(axis=0), np.finfo(float).tiny)
    bias = np.abs(pull.sum(axis=0)) / size if problem.bias else np.zeros(1)
    quantities = LinearSystemQuantities(_worst(residual), _worst(relative), _worst(bias))
    ok = quantities.relative_residual <= tol and quantities.bias_condition <= tol
    statement = (
        "the answer solves the ridge equations exactly once their right-hand side is changed by "
        f"{quantities.relative_residual:.1e} of its norm"
    )
    return Certificate(bool(ok), quantities, tol, statement)


def _dual(problem: LinearSystem, value: Coefficients) -> tuple[Array, Array, Array]:
    """Give the residual, the right-hand side, and the pulls that a bias must balance."""
    return problem.residual(value, exact(problem.gram)), problem.targets, value.coef


def _primal(problem: LinearSystem, value: Coefficients) -> tuple[Array, Array, Array]:
    F: Any = cast(FactoredGram, problem.gram).factor
    s = problem.row_weights[:, None]
    pull = s * (problem.targets - F @ value.weights - value.intercept)
    return F.T @ pull - problem.penalties * value.weights, F.T @ (s * problem.targets), pull


def _norms(A: Array) -> Array:
    """Give the norms of columns, also where squares would overflow or vanish."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    return np.asarray(largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0))


def _worst(x: Array) -> float:
    return float(x.max(initial=0.0)) if np.isfinite(x).all() else float("inf")
