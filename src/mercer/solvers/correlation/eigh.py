"""Canonical correlations by the eigenvectors of both Grams, with an explicit cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mercer.backends import choose_backend
from mercer.gram import FactoredGram, Gram
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
from mercer.solvers.spectral.eigh import DECOMPOSED


@dataclass(frozen=True)
class EighCorrelation(Solver):
    """All eigenpairs of both Grams: any form, any penalty however small, and the ranks.

    Parameters
    ----------
    cut : float
        Eigenvalues below this share of the largest count as zero.
    """

    answers = Correlation

    cut: float = 1e-12

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Decompose both, compare."""
        x, y = (view_by_eigh(gram, problem.form, p, self.cut) for gram, p in problem.views)
        return correlate(self, problem, x, y, watch)


def view_by_eigh(gram: Gram, form: Shrinkage, penalty: float, cut: float) -> BasisView:
    """Return a view by LAPACK's eigenpairs; by QR where there are features."""
    if has_features(gram):
        return view_of_features(cast(FactoredGram, gram), form, penalty)
    n = gram.shape[0]
    require_memory(
        DECOMPOSED * 8 * n * n,
        f"the eigendecomposition of {n} points",
        "Use a low rank (CCA(rank=...)), or a form and penalty that allow a Cholesky factor.",
        held=2 * gram.nbytes,
    )
    s, U = choose_backend().eigh(np.asarray(gram.dense(), dtype=np.float64))
    # what centring leaves of a constant view is rounding of means, alike in all n^2 entries
    noise = 4 * n**1.5 * float(np.finfo(float).eps) * _size(gram)
    kept = s > max(cut * s.max(initial=0.0), noise)
    return spectral(U[:, kept], s[kept], form, penalty)


def _size(gram: Gram) -> float:
    """Return the largest entry of the Gram before it was scaled and centred."""
    base: Any = gram
    while hasattr(base, "base"):
        base = base.base
    return float(np.abs(base.diag()).max(initial=0.0))
