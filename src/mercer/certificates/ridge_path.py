"""Is the path's answer right? At the chosen penalties it must solve their linear system."""

from __future__ import annotations

from mercer.certificates.base import Certificate, certify
from mercer.problems import Coefficients, LinearSystem, PathValue, RidgePath


@certify.register
def _(problem: RidgePath, value: PathValue, tol: float | None = None) -> Certificate:
    chosen = problem.penalties[value.best]
    system = LinearSystem(problem.gram, problem.targets, chosen, problem.row_weights, problem.bias)
    return certify(system, Coefficients(value.coef, value.intercept, value.weights), tol)
