"""Is the path's answer right? At the chosen penalties it must solve their linear system.

Leave-one-out errors would take the inverse of the matrix to judge. What is asked of them is that
they agree with one another: residuals with the score that they make, and that with the choice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.problems import Coefficients, LinearSystem, PathValue, RidgePath
from mercer.problems.ridge.ridge_path import NEGLIGIBLE

_SAME = 1e-6  # of a score: what summing in another order may change, and more
_TIE = 1e-5  # scores this close count as equal when a penalty is chosen


@certify.register
def _(problem: RidgePath, value: PathValue, tol: float | None = None) -> Certificate:
    chosen = problem.penalties[value.best]
    system = LinearSystem(problem.gram, problem.targets, chosen, problem.row_weights, problem.bias)
    judged = certify(system, Coefficients(value.coef, value.intercept, value.weights), tol)
    best = value.scores[value.best, np.arange(len(value.best))]
    with np.errstate(over="ignore", invalid="ignore"):  # squares of targets of 1e200 are infinite
        rounding = 2 * NEGLIGIBLE * np.square(np.abs(problem.targets).max(axis=0, initial=0.0))
        consistent = (best <= value.scores.min(axis=0) * (1 + _TIE) + rounding).all()
        found = _scores(problem, value)
        agree = (np.abs(best - found) <= _SAME * best + np.finfo(float).tiny) | (best == found)
    statement = (
        f"{judged.statement}; of the leave-one-out errors that chose the penalty only their "
        "agreement with one another is judged"
    )
    ok = judged.ok and consistent and agree.all()
    return replace(judged, ok=bool(ok), statement=statement)


def _scores(problem: RidgePath, value: PathValue) -> Array:
    """Return the weighted mean squares of the residuals, in units of which none overflows."""
    unit = np.maximum(np.abs(value.residuals).max(axis=0), np.finfo(float).tiny)
    share = problem.row_weights / problem.row_weights.sum()
    return np.asarray(share @ np.square(value.residuals / unit) * unit * unit)
