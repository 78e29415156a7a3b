"""Class means: their coefficients are known, their lengths are one product with K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems import ClassMeans, Means
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_ROUNDING = 1e-7  # of the longest row: means nearer than that cannot be told apart


@dataclass(frozen=True)
class Averages(Solver):
    """Average the rows of each class."""

    answers = ClassMeans

    def run(self, problem: ClassMeans, watch: Watch, start: Any = None) -> Solution:
        """Multiply once."""
        coef = problem.shares()
        products = coef.T @ (problem.gram @ coef)
        squared = products.diagonal().copy()
        same = _closest(products) <= _ROUNDING**2 * np.abs(problem.gram.diag()).max(initial=0.0)
        status, seen = Status.SOLVED, ""
        if same:
            status, seen = Status.INACCURATE, "two means are the same to rounding"
        return report(self, Means(coef, squared), status, 1, watch, seen)


def _closest(products: Array) -> float:
    """Return the smallest squared distance between two means; infinite if there is only one."""
    squared = products.diagonal()
    apart = squared[:, None] + squared - 2 * products
    return float(apart[np.triu_indices(len(apart), 1)].min(initial=np.inf))
