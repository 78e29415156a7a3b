"""When the interior point method falls short: descents that go on from where it ended.

Pair steps on K itself where that can be stored, steps on single variables in the space of the
features where it cannot. Neither is fast here, but both go on for as long as something is gained.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.policy import LARGEST_STORED
from mercer.problems import BoxQP
from mercer.resources import within_budget
from mercer.solvers.base import Watch
from mercer.solvers.linear_margin.feature_box import feature_box
from mercer.solvers.linear_margin.screening import FeatureProgramme
from mercer.solvers.margin.descent import Criterion, begin
from mercer.solvers.margin.smo import StoredEngine, answer

_STEPS, _STEPS_PER_ROW = 1_000_000, 100
_EPOCHS = 300


def fall_back(
    problem: BoxQP,
    P: FeatureProgramme,
    b: Array,
    criterion: Criterion,
    tol: float,
    watch: Watch,
    most: int | None = None,
) -> tuple[Array, int]:
    """Return a better b if one is found, and its pair steps or passes, `most` of them allowed.

    The b given must be inside its box and have its sums.
    """
    base = problem.unwrapped.base
    n, points = len(b), base.shape[0]
    alone = problem.group is not None and bool((problem.group < 0).any())
    # K, and room for the copies that are made of parts of it
    if not alone and max(n, points) <= LARGEST_STORED and within_budget(2 * 8 * points * points):
        engine = StoredEngine(
            choose_backend().stored(base.dense()), watch, most or max(_STEPS, _STEPS_PER_ROW * n)
        )
        part = begin(engine, problem, b)
        answer(engine, [part], criterion, tol)
        return part.b, part.steps
    F = problem.linear - problem.gram @ b
    offsets = np.atleast_1d(np.asarray(problem.offsets(b, F)))
    within = 0.5 * criterion.first(problem, F, tol)
    rows = choose_backend().features(P.rows.factor, P.rows.index)
    found = rows.descend(feature_box(P, b, offsets), within, most or _EPOCHS, watch.tick)
    return found.b, found.epochs
