"""Is the path's answer right? At the chosen penalties it must solve their linear system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.problems import Coefficients, LinearSystem, PathValue, RidgePath

_TIE = 1e-5  # scores this close count as equal when a penalty is chosen


@certify.register
def _(problem: RidgePath, value: PathValue, tol: float | None = None) -> Certificate:
    chosen = problem.penalties[value.best]
    system = LinearSystem(problem.gram, problem.targets, chosen, problem.row_weights, problem.bias)
    judged = certify(system, Coefficients(value.coef, value.intercept, value.weights), tol)
    best = value.scores[value.best, np.arange(len(value.best))]
    consistent = (best <= value.scores.min(axis=0) * (1 + _TIE)).all()
    statement = (
        f"{judged.statement}; the leave-one-out errors that chose the penalty are not judged"
    )
    return replace(judged, ok=bool(judged.ok and consistent), statement=statement)
