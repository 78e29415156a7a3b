"""Canonical correlations of views with explicit features: QR of each, SVD of what they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from mercer.gram import FactoredGram
from mercer.problems import Correlation
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.correlation.views import correlate, has_features, view_of_features


@dataclass(frozen=True)
class QRCorrelation(Solver):
    """F = Q R for each view; correlations are the cosines of the principal angles.

    Any penalty, any rank: directions below 1e-10 of the largest singular value are not counted.
    """

    answers = Correlation

    def _obstacle(self, problem: Correlation) -> str | None:
        """Take two views with dense features."""
        if not all(has_features(gram) for gram, _ in problem.views):
            return (
                "QRCorrelation needs explicit dense features of both views; use "
                "solver=CholeskyCorrelation()"
            )
        return None

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Orthonormalise both, compare."""
        x, y = (
            view_of_features(cast(FactoredGram, gram), problem.form, penalty)
            for gram, penalty in problem.views
        )
        return correlate(self, problem, x, y, watch)
