"""Choose the solver of box QPs: one, several on one Gram, and a path."""

from __future__ import annotations

import numpy as np

from mercer.gram import CachedGram, FactoredGram, LazyGram
from mercer.gram.policy import SQUARED
from mercer.machines.svm.path import Each, SMOPath
from mercer.machines.svm.primal.crossover import DualDescent
from mercer.machines.svm.primal.interior_point import InteriorPoint
from mercer.machines.svm.problem import BoxQP, Duals, Many, MarginPath, PathDuals
from mercer.machines.svm.smo import SMO
from mercer.machines.svm.subset_descent import WorkingSets
from mercer.solvers.base import Solver
from mercer.solvers.dispatch import choose, is_finite


@choose.register
def _(problem: BoxQP) -> Solver:
    base = problem.unwrapped.base
    if isinstance(base, FactoredGram):
        return InteriorPoint() if base.rank <= SQUARED else DualDescent()
    return WorkingSets() if isinstance(base, LazyGram | CachedGram) else SMO()


@choose.register
def _(problem: Many) -> Solver:
    one = choose(problem.problems[0]) if problem.problems else SMO()
    bases = {id(part.unwrapped.base) for part in problem.problems}
    # those that share a Gram are answered together, by solvers that can
    return one if isinstance(one, SMO | WorkingSets) and len(bases) < 2 else Each(one)


@choose.register
def _(problem: MarginPath) -> Solver:
    if not problem.problems or SMOPath().refuses(problem) is None:
        return SMOPath()
    return Each(choose(problem.problems[0]))


@is_finite.register
def _(value: Duals) -> bool:
    return all(map(is_finite, value.parts))


@is_finite.register
def _(value: PathDuals) -> bool:
    # settings that are not solved say so
    held = (*value.coef, *value.intercept, value.values)
    return all(bool(np.isfinite(part[value.solved]).all()) for part in held)
