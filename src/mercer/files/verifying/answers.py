"""Which stored answer belongs to which problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.problems import (
    BoxQP,
    CanonicalPairs,
    ClassMeans,
    ClassTables,
    Clusters,
    Coefficients,
    Correlation,
    Directions,
    Discriminant,
    Dual,
    Duals,
    Eigenproblem,
    Evidence,
    GaussianClasses,
    KernelAlignment,
    KernelCombination,
    LaplaceEvidence,
    LaplacePosterior,
    LinearSystem,
    Many,
    Modes,
    Partition,
    PathValue,
    ProcessClassification,
    ProcessPosterior,
    ProcessRegression,
    RidgePath,
    Separation,
    SmoothRisk,
    TaskEvidence,
    TaskPosterior,
    TaskRegression,
    WeightedDuals,
)
from mercer.problems.bayes.class_means import Means
from mercer.problems.bayes.class_tables import ClassModel
from mercer.problems.bayes.gaussian_classes import Spread
from mercer.problems.entropy import Expectations, GibbsAnswer
from mercer.problems.kernel_learning.kernel_alignment import KernelWeights
from mercer.problems.mixture.gaussian_mixture import GaussianParts
from mercer.problems.mixture.mixture import Mixture
from mercer.problems.mixture.table_mixture import TableParts
from mercer.problems.mixture.topics import TopicParts
from mercer.problems.separation import Separator
from mercer.solvers import Solution


def _rows(problem: Any, coef: Any) -> bool:
    """Return whether there are as many coefficients as rows, if there are any."""
    return coef is None or bool(len(coef) == problem.gram.shape[0])


def _many(problem: Any, value: Any) -> bool:
    asked, held = problem.problems, value.parts
    return [len(one.linear) for one in asked] == [len(one.coef) for one in held]


def _path(problem: Any, value: Any) -> bool:
    shape = (len(problem.penalties), problem.targets.shape[1])
    return _rows(problem, value.coef) and bool(value.scores.shape == shape)


def _logs(problem: Any, value: Any) -> bool:
    return value.logs is not None and bool(value.logs.shape == problem.lower.shape)


def _pairs(problem: Any, value: Any) -> bool:
    return bool(len(value.coef_x) == problem.gram_x.shape[0] and len(value.values) == problem.count)


def _modes(problem: Any, value: Any) -> bool:
    return bool(
        len(value.vectors) == problem.gram.shape[0] and len(value.values) == problem.n_pairs
    )


def _parts(problem: Any, table: Any) -> bool:
    return bool(table.shape == (problem.count, problem.X.shape[1]))


def _topics(problem: Any, value: Any) -> bool:
    shape = (problem.X.shape[0], problem.count)
    return _parts(problem, value.table) and bool(value.proportions.shape == shape)


Fits = Callable[[Any, Any], bool]

# the answer, the problems it may belong to, and whether sizes agree
_BELONGS: tuple[tuple[type, tuple[type, ...], Fits], ...] = (
    (Dual, (BoxQP,), lambda p, v: len(v.coef) == len(p.linear)),
    (Duals, (Many,), _many),
    (Coefficients, (LinearSystem, SmoothRisk), lambda p, v: _rows(p, v.coef)),
    (PathValue, (RidgePath,), _path),
    (ProcessPosterior, (ProcessRegression,), lambda p, v: _rows(p, v.coef)),
    (ProcessPosterior, (Evidence,), _logs),
    (LaplacePosterior, (ProcessClassification,), lambda p, v: v.coef.shape == p.signs.shape),
    (LaplacePosterior, (LaplaceEvidence,), _logs),
    (TaskPosterior, (TaskRegression,), lambda p, v: v.coef.shape == p.targets.shape),
    (TaskPosterior, (TaskEvidence,), _logs),
    (Modes, (Eigenproblem,), _modes),
    (Clusters, (Partition,), lambda p, v: len(v.labels) == p.gram.shape[0]),
    (CanonicalPairs, (Correlation,), _pairs),
    (Directions, (Discriminant,), lambda p, v: _rows(p, v.coef)),
    (Means, (ClassMeans,), lambda p, v: _rows(p, v.coef)),
    (Separator, (Separation,), lambda p, v: _rows(p, v.coef)),
    (ClassModel, (ClassTables,), lambda p, v: v.tables.shape == p.tables.shape),
    (Spread, (GaussianClasses,), lambda p, v: v.mean.shape == p.moments.mean.shape),
    (GaussianParts, (Mixture,), lambda p, v: _parts(p, v.means)),
    (TableParts, (Mixture,), lambda p, v: _parts(p, v.table)),
    (TopicParts, (Mixture,), _topics),
    (GibbsAnswer, (Expectations,), lambda p, v: len(v.multipliers) == len(p.targets)),
    (KernelWeights, (KernelAlignment,), lambda p, v: len(v.weights) == len(p.grams)),
    (WeightedDuals, (KernelCombination,), lambda p, v: len(v.weights) == len(p.grams)),
)


class StoredAnswers:
    """The solutions of a stored machine, to be handed out to the problems they belong to.

    Parameters
    ----------
    solutions : list of Solution
        Those found in the machine.

    Attributes
    ----------
    given : int
        How often one was handed out.
    """

    def __init__(self, solutions: list[Solution]) -> None:
        self._solutions = solutions
        self.given = 0

    def __call__(self, problem: Any) -> Solution | None:
        """Return the solution of a problem, if one of these is its own."""
        for solution in self._solutions:
            for kind, problems, fits in _BELONGS:
                right = isinstance(solution.value, kind) and isinstance(problem, problems)
                if right and fits(problem, solution.value):
                    self.given += 1
                    return solution
        return None
