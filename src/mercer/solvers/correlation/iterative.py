"""Canonical correlations from products alone: conjugate gradients inside block Lanczos.

For sparse rows of many columns, where neither the Gram nor F'F can be stored. Every product with
H = I - penalty (G + penalty)^-1 is solved by conjugate gradients; with a penalty of a hundredth of
the trace the system has a condition of at most a hundred, and a dozen products do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram, Gram
from mercer.problems import Correlation
from mercer.problems.correlation import Squared
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.correlation.cholesky import SMALLEST, tiny
from mercer.solvers.correlation.views import View, correlate, has_features, view_of_features


@dataclass(frozen=True, eq=False)
class ProductView(View):
    """H by conjugate gradients.

    Attributes
    ----------
    gram : Gram
        G.
    penalty : float
        The penalty.
    tol : float
        Relative residual of each solve.
    """

    gram: Gram
    penalty: float
    tol: float
    left: float = 0.0

    @property
    def n(self) -> int:
        """Count the rows."""
        return self.gram.shape[0]

    @property
    def rank(self) -> None:
        """Nobody counted."""

    def shrink(self, V: Array) -> Array:
        """Multiply by I - penalty (G + penalty)^-1."""
        return np.asarray(V - self.penalty * self.coef(V))

    def coef(self, P: Array) -> Array:
        """Solve (G + penalty) C = P, all columns side by side."""
        P = np.asarray(P, dtype=np.float64)
        C, R = np.zeros_like(P), P.copy()
        D, size = R.copy(), np.einsum("ij,ij->j", R, R)
        goal = self.tol**2 * size
        for _ in range(10 * self.n):
            going = size > goal
            if not going.any():
                break
            AD = self.gram @ D + self.penalty * D
            step = np.where(going, size / np.where(going, np.einsum("ij,ij->j", D, AD), 1.0), 0.0)
            C += step * D
            R -= step * AD
            new = np.einsum("ij,ij->j", R, R)
            D = R + np.where(going, new / np.where(going, size, 1.0), 0.0) * D
            size = new
        return C


@dataclass(frozen=True)
class IterativeCorrelation(Solver):
    """Block Lanczos on products, each solved by conjugate gradients.

    Parameters
    ----------
    tol : float
        Largest residual of a squared correlation.
    """

    answers = Correlation

    tol: float = 1e-9

    def _obstacle(self, problem: Correlation) -> str | None:
        """Take the form (G + penalty)^2 with penalties that are not tiny."""
        if not isinstance(problem.form, Squared):
            return (
                "without storing the Gram, only the form (K + penalty)^2 can be answered; use "
                "form='squared', or CCA(rank=...)"
            )
        if any(tiny(gram, penalty) for gram, penalty in problem.views):
            return (
                f"without storing the Gram, penalties above {SMALLEST:g} of its trace are needed; "
                "use a larger penalty, or CCA(rank=...)"
            )
        return None

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Iterate on products."""
        x, y = (self._view(gram, penalty) for gram, penalty in problem.views)
        return correlate(self, problem, x, y, watch, self.tol)

    def _view(self, gram: Gram, penalty: float) -> View:
        if has_features(gram):
            return view_of_features(cast(FactoredGram, gram), Squared(), penalty)
        return ProductView(gram, penalty, 0.01 * self.tol)
