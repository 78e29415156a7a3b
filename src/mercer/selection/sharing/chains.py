"""All settings of a question in one walk: each starts where a neighbour ended, and is then checked.

K is stored in float32 where that resolves the tolerance. What rounding of K does to f grows with
the coefficients, so a sample of rows is evaluated in float64 where they are largest; settings whose
error would be seen in their tolerance go on from the exact gradient, as single fits do, and are
evaluated from the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer._types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import Box, Chain, ChainAnswer
from mercer.gram.exact import exact_rows
from mercer.problems import BoxQP
from mercer.selection.sharing.base import Stop, Stopped
from mercer.selection.sharing.questions import Question, Setting
from mercer.solvers.base import Watch
from mercer.solvers.descent import Part, begin
from mercer.solvers.refine import SHARE, refine
from mercer.solvers.smo import limit_of
from mercer.solvers.stored import Stored

_FARTHEST = 30.0  # times C: what a walk makes in one step
_BELOW = 0.99  # of tol: what fits of a machine aim at
_LOOKS = 2  # programmes with the largest coefficients, whose errors speak for all
_SAMPLE = 16  # rows of each
_EXACT = 1e-10  # relative rounding below which K needs no check, unless
_DOUBLE = 1e-11  # of K times the coefficients, what descents make of float64, could be seen
_ALLOWED = 0.2  # of tol: errors in a sample that leave the largest, too, within the tolerance


@dataclass(frozen=True, eq=False)
class Walked:
    """Answers to all settings of a question.

    Attributes
    ----------
    values : (settings, programmes, rows) array
        Sums over the coefficients at the judged rows.
    offsets : (settings, programmes, groups) array
        The multipliers.
    settled : (settings,) bool array
        Whether there is an answer within the tolerance.
    """

    values: Array
    offsets: Array
    settled: Array


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


def walk(
    question: Question,
    settings: Sequence[Setting],
    starts: Sequence[int],
    judged: Array,
    tol: float,
    stop: Stop,
) -> Walked:
    """Answer a question at settings in the order of a `ladder`."""
    problems = [question.problem(k, question.base) for k in range(question.count)]
    base = problems[0].held.base
    engine = Stored(base.dense(), Watch(lambda _: stop()), limit_of(tuple(problems)))
    stages = [
        replace(question.stage(setting), start=start)
        for setting, start in zip(settings, starts, strict=True)
    ]
    chains = [Chain(_box(engine, problem), problem.totals, stages, judged) for problem in problems]
    aim = _BELOW * tol
    found = choose_backend().box_chains(
        engine.K, chains, SHARE * aim, engine.limit, lambda steps, violation: stop()
    )
    if stop():
        raise Stopped
    values = np.stack([answer.values for answer in found], axis=1)
    offsets = np.stack([answer.offsets for answer in found], axis=1)
    violation = np.stack([answer.violation for answer in found], axis=1)
    settled = np.ones(len(settings), dtype=bool)
    blurred = _blurred(engine, question, settings, found, judged) > tol
    for s, k, error in _doubtful(engine, question, settings, found, violation, tol):
        part = _part(question.problem(k, settings[s]), found[k], s)
        part.error = error
        settled[s] &= refine(engine, part, aim).confirmed
        if engine.watch.stopped:
            raise Stopped
        offsets[s, k] = part.problem.offsets(part.b, part.F)
        values[s, k] = _values(part, judged)
        blurred[s, k] = False
    for s, k in np.argwhere(blurred):
        part = _part(question.problem(int(k), settings[s]), found[k], int(s))
        values[s, k] = _values(part, judged)
        if stop():
            raise Stopped
    return Walked(values, offsets, settled)


def _box(engine: Stored, problem: BoxQP) -> Box:
    held = problem.held
    start = np.zeros(len(problem.linear))
    if problem.totals.any():
        start = begin(engine, problem, None).b
    return Box(
        problem.linear,
        start,
        problem.lower,
        problem.upper,
        np.ascontiguousarray(problem.kinks) if np.any(problem.kink) else None,
        held.shift,
        problem.group,
        held.index,
    )


def _part(problem: BoxQP, answer: ChainAnswer, s: int) -> Part:
    violation = float(answer.violation[s])
    return Part(problem, answer.b[s].copy(), answer.gradient[s].copy(), violation)


def _doubtful(
    engine: Stored,
    question: Question,
    settings: Sequence[Setting],
    found: Sequence[ChainAnswer],
    violation: Array,
    tol: float,
) -> list[tuple[int, int, float]]:
    """Give settings and programmes whose F is wrong by more than a share of `tol`, and by how much.

    The error is in proportion to the coefficients; it is infinite where a descent did not end well.
    """
    sizes = np.stack([np.abs(answer.b).sum(axis=1) for answer in found], axis=1)
    wrong = ~(violation <= tol)
    rate = 0.0
    entries = float(np.abs(engine.K.diagonal()).max(initial=0.0))
    seen = _DOUBLE * entries * float(sizes.max(initial=0.0)) > _ALLOWED * tol
    if engine.rounding > _EXACT or seen:
        largest = np.argsort(np.where(wrong, -1.0, sizes), axis=None)[::-1][:_LOOKS]
        for s, k in zip(*np.unravel_index(largest, sizes.shape), strict=True):
            part = _part(question.problem(int(k), settings[s]), found[k], int(s))
            rate = max(rate, _error(part) / max(float(sizes[s, k]), np.finfo(float).tiny))
    errors = np.where(wrong, np.inf, rate * sizes)
    return [(int(s), int(k), float(errors[s, k])) for s, k in np.argwhere(errors > _ALLOWED * tol)]


def _blurred(
    engine: Stored,
    question: Question,
    settings: Sequence[Setting],
    found: Sequence[ChainAnswer],
    judged: Array,
) -> Array:
    """Give the errors of sums at the judged rows, by a sample of those.

    F may be right where these are not: large coefficients of opposite signs, whose terms cancel,
    are rounded before they are added.
    """
    sizes = np.stack([np.abs(answer.b).sum(axis=1) for answer in found], axis=1)
    if engine.rounding <= _EXACT or not len(judged):
        return np.zeros(sizes.shape)
    some = np.arange(0, len(judged), max(1, len(judged) // _SAMPLE))[:_SAMPLE]
    rate = 0.0
    for at in np.argsort(sizes, axis=None)[::-1][:_LOOKS]:
        s, k = divmod(int(at), len(found))
        part = _part(question.problem(k, settings[s]), found[k], s)
        error = np.abs(_values(part, judged[some]) - found[k].values[s, some]).max()
        rate = max(rate, float(error) / max(float(sizes[s, k]), np.finfo(float).tiny))
    return rate * sizes


def _error(part: Part) -> float:
    """Give the largest error of F that a sample of support vectors shows."""
    used = np.flatnonzero(part.free())
    used = used if len(used) else np.flatnonzero(part.b)
    rows = used[:: max(1, len(used) // _SAMPLE)][:_SAMPLE]
    true = part.problem.linear[rows] - exact_rows(part.problem.gram, rows, part.b)
    return float(np.abs(true - part.F[rows]).max(initial=0.0))


def _values(part: Part, judged: Array) -> Array:
    """Evaluate f without its constant in float64, from the points."""
    base = part.held.base
    points, coef = part.on_base(np.arange(len(part.b)), part.b)
    full = np.zeros(base.shape[0])
    full[points] = coef
    return exact_rows(base, judged, full)
