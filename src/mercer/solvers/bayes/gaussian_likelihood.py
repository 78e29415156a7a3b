"""Means and covariances of classes in closed form, kept above a floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.lapack import interruptible
from mercer.problems.bayes.gaussian_classes import GaussianClasses, Spread
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class GaussianLikelihood(Solver):
    """The closed form of `GaussianClasses`: sample covariances with eigenvalues kept above a floor.

    Columns are brought to variance one first, so that their units do not matter.
    """

    answers = GaussianClasses

    def run(self, problem: GaussianClasses, watch: Watch, start: Any = None) -> Solution:
        """Decompose each covariance."""
        mean, scale = problem.filled().mean, problem.scale()
        sample, _ = problem.sample()
        if sample.ndim == 2:
            values, vectors = sample, None
        else:
            pairs = [interruptible(np.linalg.eigh, one) for one in sample]
            values = np.array([found for found, _ in pairs])
            vectors = np.array([found for _, found in pairs])
        raised = int(np.count_nonzero(values < problem.floor))
        value = Spread(mean, scale, np.maximum(values, problem.floor), vectors)
        detail = f"{raised} variances raised to the floor" if raised else ""
        return report(self, value, Status.SOLVED, 1, watch, detail)
