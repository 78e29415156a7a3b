"""Class means: their coefficients are known, their lengths are one product with K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.problems import ClassMeans, Means
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class Averages(Solver):
    """Average the rows of each class."""

    def refuses(self, problem: Any) -> str | None:
        """Take class means."""
        if not isinstance(problem, ClassMeans):
            return f"Averages answers ClassMeans problems, not {type(problem).__name__}"
        return None

    def run(self, problem: ClassMeans, watch: Watch, start: Any = None) -> Solution:
        """Multiply once."""
        coef = problem.shares()
        squared = np.einsum("ij,ij->j", coef, problem.gram @ coef)
        return report(self, Means(coef, squared), Status.SOLVED, 1, watch)
