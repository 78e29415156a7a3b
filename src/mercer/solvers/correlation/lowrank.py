"""Canonical correlations from few rows of each Gram: pivoted Cholesky, then small matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mercer.backends.lapack import interruptible
from mercer.gram import FactoredGram, Gram, pivoted_cholesky
from mercer.problems import Correlation
from mercer.problems.correlation import Shrinkage
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.correlation.views import (
    BasisView,
    correlate,
    has_features,
    spectral,
    view_of_features,
)

_CUT = 1e-12  # eigenvalues of F'F, of the largest


@dataclass(frozen=True)
class LowRankCorrelation(Solver):
    """G ~ F F' from at most `rank` rows of each Gram.

    No correlation moves by more than the trace left over the penalty, summed over the views
    (`CanonicalPairs.bound`); in practice by about a thousandth of that.

    Parameters
    ----------
    rank : int
        Largest number of rows of each Gram that are looked at.
    random_state : int
        Seed of the draws.
    """

    answers = Correlation

    rank: int = 500
    random_state: int = 0

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Factor both, compare."""
        n = problem.gram_x.shape[0]
        require_memory(
            6 * 8 * n * min(self.rank, n), f"factors of rank {self.rank}", "Use a smaller rank."
        )
        x, y = (
            view_by_rows(gram, problem.form, p, self.rank, self.random_state)
            for gram, p in problem.views
        )
        return correlate(self, problem, x, y, watch)


def view_by_rows(
    gram: Gram, form: Shrinkage, penalty: float, rank: int, random_state: int
) -> BasisView:
    """Return a view from few rows of its Gram; exactly where it has no more features than that."""
    if has_features(gram) and cast(FactoredGram, gram).rank <= rank:
        return view_of_features(cast(FactoredGram, gram), form, penalty)
    part = pivoted_cholesky(gram, rank, random_state)
    F = part.factor
    s, Z = interruptible(np.linalg.eigh, F.T @ F)
    kept = s > _CUT * s.max(initial=0.0)
    U = F @ (Z[:, kept] / np.sqrt(s[kept]))
    return spectral(U, s[kept], form, penalty, part.trace_left)
