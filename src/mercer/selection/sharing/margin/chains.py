"""All settings of a question in one walk: each starts where a neighbour ended, and is then checked.

K is stored in float32 where that resolves the tolerance; what it could spoil is settled in float64
(`unsettled.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import Chain
from mercer.problems import BoxQP
from mercer.selection.sharing.base import Stop, Stopped
from mercer.selection.sharing.margin.accuracy import PathAnswers, Wide, settle, unsettled
from mercer.selection.sharing.margin.fold_programmes import FoldProgrammes, Setting
from mercer.solvers.base import Watch
from mercer.solvers.margin.convergence import SHARE
from mercer.solvers.margin.descent import BoxState, begin
from mercer.solvers.margin.smo import StoredEngine, limit_of

_FARTHEST = 30.0  # times C: what a walk makes in one step
_BELOW = 0.99  # of tol: what fits of a machine aim at


def ladder(settings: Sequence[Setting]) -> tuple[tuple[Setting, ...], tuple[int, ...]]:
    """Order settings, each once, and give the place of the one that each starts from.

    Upwards along C, wide tubes first; the smallest C of a tube starts from that of the last tube.
    A far larger C starts anew: coefficients that were scaled with it would be far too large, and F
    would lose its digits.
    """
    ordered = sorted(set(settings), key=lambda s: (-s.epsilon, s.nu, s.C))
    starts, first = [], -1
    for place, setting in enumerate(ordered):
        before = ordered[place - 1]
        if place and (before.epsilon, before.nu) == (setting.epsilon, setting.nu):
            starts.append(place - 1 if setting.C <= _FARTHEST * before.C else -1)
        else:
            starts.append(first)
            first = place
    return tuple(ordered), tuple(starts)


def solve_chains(
    question: FoldProgrammes,
    settings: Sequence[Setting],
    starts: Sequence[int],
    judged: Array,
    tol: float,
    wide: Wide,
    stop: Stop,
) -> PathAnswers:
    """Answer a question at settings in the order of a `ladder`."""
    problems = [question.problem(k, question.base) for k in range(question.count)]
    base = problems[0].unwrapped.base
    engine = StoredEngine(base.dense(), Watch(lambda _: stop()), limit_of(tuple(problems)))
    stages = [
        replace(question.stage(setting), start=start)
        for setting, start in zip(settings, starts, strict=True)
    ]
    chains = [
        Chain(_begun(engine, problem).box(), problem.totals, stages, judged) for problem in problems
    ]
    aim = _BELOW * tol
    ends = choose_backend().box_chains(
        engine.K, chains, SHARE * aim, engine.limit, lambda steps, violation: stop()
    )
    if stop():
        raise Stopped
    answers = PathAnswers(question, settings, judged, ends, np.ones(len(settings), dtype=bool))
    settle(engine, answers, unsettled(engine, answers, tol, wide), aim, wide)
    if stop():
        raise Stopped
    return answers


def _begun(engine: StoredEngine, problem: BoxQP) -> BoxState:
    """Return a place to start from, and the linear term in place of F."""
    start = np.zeros(len(problem.linear))
    if problem.totals.any():
        start = begin(engine, problem, None).b
    return BoxState(problem, start, problem.linear)
