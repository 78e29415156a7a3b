"""When the interior point method falls short: descents that go on from where it ended.

Pair steps on K itself where that is small, steps on single variables in the space of the features
where it is not. Neither is fast here: both go on while something is gained, until about a second's
work is done.
"""

from __future__ import annotations

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.policy import STORED_UNSEEN
from mercer.problems import BoxQP
from mercer.resources import within_budget
from mercer.solvers.base import Watch
from mercer.solvers.linear_margin.feature_box import feature_box
from mercer.solvers.linear_margin.screening import FeatureProgramme
from mercer.solvers.margin.descent import Criterion, begin
from mercer.solvers.margin.smo import StoredEngine, answer

_ENTRIES = 1e9  # of K or of the features that steps may read: about a second
_STEPS = 1_000_000  # on a K of few rows, where a step takes longer than to read it
_FEWEST = 10  # passes over the features, however many those are
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
    if _can_store(problem):
        base = problem.unwrapped.base
        steps = int(min(_STEPS, _ENTRIES / base.shape[0]))
        engine = StoredEngine(choose_backend().stored(base.dense()), watch, most or steps)
        part = begin(engine, problem, b)
        answer(engine, [part], criterion, tol)
        return part.b, part.steps
    F = problem.linear - problem.gram @ b
    offsets = np.atleast_1d(np.asarray(problem.offsets(b, F)))
    within = 0.5 * criterion.first(problem, F, tol)
    rows = choose_backend().features(P.rows.factor, P.rows.index)
    epochs = int(min(_EPOCHS, max(_FEWEST, _ENTRIES / (len(b) * P.rows.width))))
    found = rows.descend(feature_box(P, b, offsets), within, most or epochs, watch.tick)
    return found.b, found.epochs


def _can_store(problem: BoxQP) -> bool:
    """Return whether K is small, fits the budget, and is written well within the time left."""
    base = problem.unwrapped.base
    points, width = base.shape[0], base.factor.shape[1]
    alone = problem.group is not None and bool((problem.group < 0).any())
    if alone or max(len(problem.linear), points) > STORED_UNSEEN:
        return False
    left = deadline.seconds_left()
    in_time = left is None or points**2 * width < left * _ENTRIES
    # K, and room for the copies that are made of parts of it
    return in_time and within_budget(2 * 8 * points * points)
