"""Is every setting of a path at its optimum? Each is judged as if it had been solved alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.certificates.margin.box_qp import convexity
from mercer.certificates.margin.many import judged_together
from mercer.problems import MarginPath, PathDuals

_TOL = 1e-3


@dataclass(frozen=True)
class MarginPathQuantities:
    """Measures of the answers along a regularization path.

    Attributes
    ----------
    settings, programmes : int
        How many settings there are, and programmes of each.
    worst : int
        The number, from 0, of the setting with the largest violation.
    violations, relative_gaps : tuple of float
        For each setting the largest among its programmes.
    violation, relative_gap, intercept_error, infeasibility : float
        The largest among all settings.
    value_error : float
        Largest error of a value at a row that was asked for, in units of f.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by construction,
        rounding where K was factored, infinite where that is not shown.
    """

    settings: int
    programmes: int
    worst: int
    violations: tuple[float, ...]
    relative_gaps: tuple[float, ...]
    violation: float
    relative_gap: float
    intercept_error: float
    infeasibility: float
    value_error: float
    indefiniteness: float = 0.0


@certify.register
def _(problem: MarginPath, value: PathDuals, tol: float | None = None) -> Certificate:
    if len(problem.settings) != len(value.solved):
        raise ValueError(f"{len(problem.settings)} settings, but {len(value.solved)} answers")
    convex = convexity(*problem.problems)
    tol = _TOL if tol is None else tol
    found = [
        judged_together(problem.at(setting), value.at(s), tol, convex)
        for s, setting in enumerate(problem.settings)
    ]
    error = _value_error(problem, value)
    measured = [one.quantities for one in found]
    quantities = MarginPathQuantities(
        len(found),
        len(problem.problems),
        int(np.argmax([q.violation for q in measured])),
        tuple(float(q.violation) for q in measured),
        tuple(float(q.relative_gap) for q in measured),
        max(q.violation for q in measured),
        max(q.relative_gap for q in measured),
        max(q.intercept_error for q in measured),
        max(q.infeasibility for q in measured),
        error,
        convex.shift,
    )
    wrong = [s for s, one in enumerate(found) if not one.ok]
    statement = (
        f"at {len(found) - len(wrong)} of {len(found)} settings the answer is the optimum to the "
        f"tolerance (worst: number {quantities.worst}, violation {quantities.violation:.1e}); "
        f"values at the rows asked for are off by {error:.1e} at most"
    )
    return Certificate(not wrong and error <= tol, quantities, tol, statement)


def _value_error(problem: MarginPath, value: PathDuals) -> float:
    """Return the largest error of a value, from K in float64 and the coefficients alone."""
    if not len(problem.evaluation_rows):
        return 0.0
    true = [problem.values(k, b) for k, b in enumerate(value.coef)]
    return float(np.abs(np.stack(true, axis=1) - value.values).max(initial=0.0))
