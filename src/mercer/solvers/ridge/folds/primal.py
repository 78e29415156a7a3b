"""All penalties of a fold where the kernel has few features: one small eigenproblem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.problems import FoldedPathValue, FoldedRidgePath
from mercer.problems.ridge.folded_path import FeatureMoments
from mercer.solvers.base import Solution, Watch
from mercer.solvers.ridge.folds.fits import ended
from mercer.solvers.ridge.folds.fold_solver import FoldSolver

_REFINEMENTS = 2
_BOUND = 1e-8  # of the spread of the targets: what a prediction may be off
_NOTHING = 1e-200


@dataclass(frozen=True)
class PrimalFolds(FoldSolver):
    """Decompose F'SF of each fold, where K = F F'.

    F'SF of the rows learnt from is that of all rows less that of the rows left out.
    """

    def refuses(self, problem: Any) -> str | None:
        """Take ridge paths over folds whose Gram is factored."""
        refusal = super().refuses(problem)
        if refusal is None and not isinstance(problem.gram, FactoredGram):
            return "PrimalFolds needs a kernel with an explicit finite feature map"
        return refusal

    def run(self, problem: FoldedRidgePath, watch: Watch, start: Any = None) -> Solution:
        """Decompose for each fold; every penalty is then a few products."""
        assert problem.folds is not None
        moments = problem.moments
        if moments is None:
            moments = FeatureMoments.of(problem.gram, problem.row_weights, problem.bias)
        n, D = moments.F.shape
        k, p = len(problem.folds), len(problem.penalties)
        values, weights = np.empty((k, n, p)), np.empty((k, D, p))
        met, intercept = np.zeros((k, p), dtype=bool), np.empty((k, p))
        done = 0
        with watch.keeping(lambda: done > 0):
            for fold, rows in enumerate(problem.folds):
                if watch.tick(fold, k - fold):
                    break
                V, constant, met[fold] = _fold(problem, moments, rows)
                values[fold], weights[fold] = moments.F @ V + constant, V
                intercept[fold] = constant - moments.mean @ V
                done = fold + 1
        return ended(self, FoldedPathValue(values, met, intercept, None, weights), done, watch)


def _fold(
    problem: FoldedRidgePath, moments: FeatureMoments, rows: Array
) -> tuple[Array, Array, Array]:
    """Fit to some rows: (F'SF + p) v = F'S (y - b), all centred where there is a bias.

    Returns v and b for each penalty, and whether they are right.
    """
    F, y, penalties = moments.F, problem.targets, problem.penalties
    s = np.zeros(len(F))
    s[rows] = problem.row_weights[rows]
    total, N = s.sum(), _square(problem, moments, s)
    right, mean, middle = F.T @ (s * y), np.zeros(len(N)), 0.0
    if problem.bias:
        mean, middle = s @ F / total, float(s @ y / total)
        N = N - total * np.outer(mean, mean)
        right = F.T @ (s * (y - middle)) - mean * (s @ (y - middle))
    eigenvalues, U = np.linalg.eigh(N)
    V = np.zeros((len(N), len(penalties)))
    left = np.repeat(right[:, None], len(penalties), axis=1)
    for _ in range(1 + _REFINEMENTS):
        V += U @ ((U.T @ left) / (np.maximum(eigenvalues, 0.0)[:, None] + penalties))
        left = right[:, None] - N @ V - V * penalties
    # what is left moves a prediction by phi(z)'(N + p)^-1 left
    off = np.linalg.norm(left, axis=0) * moments.longest / penalties
    met = off <= _BOUND * np.sqrt(s @ np.square(y - middle) / total) + _NOTHING
    return V, np.asarray(middle - mean @ V), np.asarray(met)


def _square(problem: FoldedRidgePath, moments: FeatureMoments, s: Array) -> Array:
    """Return F'SF for weights that are zero outside of the fold."""
    out = np.flatnonzero((s == 0) & (problem.row_weights > 0))
    if 2 * len(out) > len(s):
        return np.asarray(moments.F.T @ (s[:, None] * moments.F))
    F = moments.F[out]
    return np.asarray(moments.square - F.T @ (problem.row_weights[out, None] * F))
