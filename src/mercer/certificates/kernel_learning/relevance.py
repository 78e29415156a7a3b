"""Do the scales stand where no small change helps? Slopes, and the value computed another way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import solved_if_regular
from mercer.certificates.base import Certificate, certify
from mercer.gram import Source, exact
from mercer.gram.build import matrix_gram
from mercer.problems import RidgePath
from mercer.problems.kernel_learning.relevance import (
    LeaveOneOut,
    Likelihood,
    Relevance,
    RidgeMeasure,
    Scaled,
)
from mercer.solvers import CholeskyPath, Watch
from mercer.solvers.kernel_learning.ridge_slopes import measured

_TOL = 1e-3
_AGREE = 1e-6


@dataclass(frozen=True)
class RelevanceQuantities:
    """Measures of learnt scales.

    Attributes
    ----------
    value : float
        The mean squared leave-one-out error, or the log-likelihood of all rows.
    stationarity : float
        Largest slope, by the logarithm of a scale or of the penalty, that does not point out of the
        bounds: of the logarithm of the error, or of the log-likelihood of one row.
    value_error : float
        Difference of the value, as it is minimised, to one computed another way.
    at_lower, at_upper : int
        How many scales, the penalty included, are at a bound.
    """

    value: float
    stationarity: float
    value_error: float
    at_lower: int
    at_upper: int


@certify.register
def _(problem: Relevance, value: Scaled, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    reached, gradient = measured(problem, value)
    expression, _ = problem.family(np.asarray(value.scales, dtype=np.float64))
    K = exact(Source(expression, problem.X)).dense()
    error = float(abs(another_way(problem.measure, problem, K, value.penalty) - reached))
    logs = value.logs
    near = problem.at_bounds(logs)
    steepest = float(np.abs(problem.uphill(near, gradient)).max())
    free = problem.lower < problem.upper
    quantities = RelevanceQuantities(
        problem.measure.reported(problem, reached),
        steepest,
        error,
        int(np.sum(free & (near <= problem.lower))),
        int(np.sum(free & (near >= problem.upper))),
    )
    ok = steepest <= tol and error <= _AGREE
    statement = (
        f"no scale has a slope above {steepest:.1e}; {quantities.at_upper} of {len(logs)} "
        "parameters are at their upper bound"
    )
    return Certificate(bool(ok), quantities, tol, statement)


@singledispatch
def another_way(measure: RidgeMeasure, problem: Relevance, K: Array, penalty: float) -> float:
    """Compute what is minimised without the code that minimised it."""
    raise TypeError(f"no other way to compute {type(measure).__name__}")


@another_way.register
def _(measure: LeaveOneOut, problem: Relevance, K: Array, penalty: float) -> float:
    path = RidgePath(
        matrix_gram(K), problem.targets, problem.row_weights, np.array([penalty]), problem.bias
    )
    value = CholeskyPath().run(path, Watch()).value
    return float(np.log(value.scores.sum()))


@another_way.register
def _(measure: Likelihood, problem: Relevance, K: Array, penalty: float) -> float:
    s, Y, n = problem.row_weights, problem.targets, len(problem.row_weights)
    C = K + np.diag(penalty / s)
    total, targets = float(s.sum()), Y.shape[1]
    ones = np.ones((n, 1))
    solved = solved_if_regular(C, np.column_stack([Y, ones]))
    log_determinant = float(np.linalg.slogdet(C)[1] + np.log(s).sum())
    squares = np.sum(Y * solved[:, :-1], axis=0)
    if problem.bias:
        inverse_sum = float(solved[:, -1].sum())
        squares = squares - solved[:, :-1].sum(axis=0) ** 2 / inverse_sum
        log_determinant += float(np.log(inverse_sum))
    free = total - problem.bias
    log_determinant += (total - n) * float(np.log(penalty))
    fit = float(np.sum(free * (np.log(squares / free) + 1.0 + np.log(2.0 * np.pi))))
    return float(0.5 * (targets * log_determinant + fit) / (total * targets))
