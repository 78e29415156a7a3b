"""What the tolerance of a support vector solver speaks of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems import BoxQP


@dataclass(frozen=True)
class Violation:
    """The largest violation of the optimality conditions by a pair: LIBSVM's rule.

    In units of the decision function, so 10^-3 means: no point is on the wrong side of its
    condition by more than that. Where only the answer tells these units (the margin of a nu form,
    the radius of a ball) they are taken from it.
    """

    def measure(self, problem: BoxQP, b: Array, F: Array) -> float:
        """Return the largest violation."""
        return problem.violation(b, F)

    def allowed(self, problem: BoxQP, b: Array, F: Array, tol: float) -> float:
        """Return what the measure may be: `tol` in units of the problem."""
        return tol * problem.unit(b, F)

    def first(self, problem: BoxQP, F: Array, tol: float) -> float:
        """Return the violation to descend to before anything is measured in float64."""
        spread = float(np.ptp(F)) if problem.scale is None and len(F) else 0.0
        return tol * (problem.scale or spread or 1.0)

    def settled(self, problem: BoxQP) -> bool:
        """Return whether what is allowed is known before there is an answer."""
        return problem.scale is not None


@dataclass(frozen=True)
class Gap:
    """The duality gap relative to the objective: a bound on what is left to gain."""

    def measure(self, problem: BoxQP, b: Array, F: Array) -> float:
        """Return the gap."""
        return problem.gap(b, F - problem.spread(problem.offsets(b, F)))

    def allowed(self, problem: BoxQP, b: Array, F: Array, tol: float) -> float:
        """Return what the gap may be: `tol` of the objective."""
        objective = 0.5 * float(b @ (problem.linear + F)) - float(problem.kinks @ np.abs(b))
        return tol * max(abs(objective), problem.rounding(b))

    def settled(self, problem: BoxQP) -> bool:
        """Return whether what is allowed is known before there is an answer."""
        return False

    def first(self, problem: BoxQP, F: Array, tol: float) -> float:
        """Return the violation to descend to before anything is measured in float64."""
        return _START * max(float(np.ptp(F)), np.finfo(float).tiny) if len(F) else tol


Criterion = Violation | Gap
VIOLATION = Violation()

_START = 1e-3 / 2  # of the spread of F; for a classifier, whose F is from -1 to 1, LIBSVM's 10^-3
