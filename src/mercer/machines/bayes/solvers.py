"""Closed-form estimates of Bayes classifiers: counts, means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.factorizations import eigh
from mercer.machines.bayes.problem import (
    LOG_ZERO,
    ClassModel,
    ClassTables,
    GaussianClasses,
    Spread,
    smoothed_log,
)
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- counting ------------------------------------------------------------------------------------
#
# Probabilities from counts: naive Bayes in closed form.


@dataclass(frozen=True)
class Counting(Solver):
    """The closed form of `ClassTables`: fractions of smoothed counts, means and variances."""

    answers = ClassTables

    def run(self, problem: ClassTables, watch: Watch, start: Any = None) -> Solution:
        """Divide."""
        a = problem.alpha
        missed = problem.seen - problem.hits
        model = ClassModel(
            _log(problem.prior),
            _tables(problem),
            smoothed_log(problem.hits, problem.seen, a, 2),
            smoothed_log(missed, problem.seen, a, 2),
            _words(problem.counts, a),
            *_gaussians(problem),
        )
        return report(self, model, Status.SOLVED, 1, watch)


def _log(prior: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(prior), LOG_ZERO))


def _tables(problem: ClassTables) -> Array:
    if not len(problem.starts):
        return np.zeros_like(problem.tables)
    values, totals = problem.sizes(), np.add.reduceat(problem.tables, problem.starts, axis=1)
    total, value = (np.repeat(part, values + 1, axis=-1) for part in (totals, values))
    return smoothed_log(problem.tables, total, problem.alpha, value)


def _words(counts: Array, alpha: float) -> Array:
    # words that no class ever had have no effect: smoothed, they would all favor the class with
    # the fewest words. In the wide tables of text streams they are most
    used = counts.any(axis=0)
    total, values = counts.sum(axis=1, keepdims=True), int(np.count_nonzero(used))
    if values == counts.shape[1]:
        return smoothed_log(counts, total, alpha, values)
    logs = np.zeros_like(counts)
    logs[:, used] = smoothed_log(counts[:, used], total, alpha, values)
    return logs


def _gaussians(problem: ClassTables) -> tuple[Array, Array]:
    """Return means and variances; where a class has no entry of a column, those of all classes."""
    own, every = problem.moments, problem.moments.total()
    known = own.weight > 0
    mean = np.where(known, own.mean, every.mean)
    variance = np.where(known, own.variance(), every.variance())
    return mean, np.maximum(variance, problem.floors)


# --- gaussian likelihood -------------------------------------------------------------------------
#
# Means and covariances of classes in closed form, kept above a floor.


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
            pairs = [eigh(one) for one in sample]
            values = np.array([found for found, _ in pairs])
            vectors = np.array([found for _, found in pairs])
        raised = int(np.count_nonzero(values < problem.floor))
        value = Spread(mean, scale, np.maximum(values, problem.floor), vectors)
        detail = f"{raised} variances raised to the floor" if raised else ""
        return report(self, value, Status.SOLVED, 1, watch, detail)


# --- choice -------------------------------------------------------------------------------------

choose.register(ClassTables)(lambda problem: Counting())
choose.register(GaussianClasses)(lambda problem: GaussianLikelihood())
