"""Answers of a walk that float32 could spoil: found by a sample in float64, and settled there.

What rounding of K does to f grows with the coefficients, so a sample of rows is evaluated where
they are largest. Settings whose error would be seen in their tolerance go on from where they are:
on a float64 matrix of all rows, made once for a kernel, where they would need much of it; else from
the exact gradient, as single fits do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import Chain, ChainAnswer, Stage
from mercer.gram.exact_parts import exact_sums
from mercer.selection.sharing.margin.fold_programmes import FoldProgrammes, Setting
from mercer.solvers.margin.convergence import refine
from mercer.solvers.margin.descent import BoxState
from mercer.solvers.margin.smo import StoredEngine

Wide = Callable[[float], Array | None]
"""Gives K in float64 where so many of its entries, in every fold, are more work than all of it."""

_LOOKS = 2  # programmes with the largest coefficients, whose errors speak for all
_SAMPLE = 16  # rows of each, learnt from and judged
_ROUNDS = 4.0  # times that a setting in doubt looks at K between its support vectors
_ASKING = 1e5  # entries of K that are evaluated in the time it takes to ask for some
_EXACT = 1e-10  # relative rounding below which K needs no check, unless
_DOUBLE = 1e-11  # of K times the coefficients, what descents make of float64, could be seen
_ALLOWED = 0.2  # of tol: errors in a sample that leave the largest, too, within the tolerance


@dataclass(frozen=True, eq=False)
class PathAnswers:
    """Where all settings of a question ended.

    Attributes
    ----------
    question : Question
        What was asked.
    settings : sequence of Setting
        At which settings.
    judged : (t,) int array
        Rows of K where sums are wanted.
    ends : sequence of ChainAnswer
        One for each programme, a row of its arrays for each setting. Better sums and multipliers
        take the place of those in doubt.
    settled : (settings,) bool array
        Whether there is an answer within the tolerance.
    """

    question: FoldProgrammes
    settings: Sequence[Setting]
    judged: Array
    ends: Sequence[ChainAnswer]
    settled: Array

    @cached_property
    def sizes(self) -> Array:
        """Return the sums of |b| (settings, programmes)."""
        return np.stack([np.abs(end.b).sum(axis=1) for end in self.ends], axis=1)

    def answer(self, s: int) -> tuple[Array, Array]:
        """Return sums (programmes, rows) and multipliers (programmes, groups) of a setting."""
        values = np.array([end.values[s] for end in self.ends])
        return values, np.array([end.offsets[s] for end in self.ends])

    def part(self, s: int, k: int) -> BoxState:
        """Return where a programme of a setting stands."""
        end, problem = self.ends[k], self.question.problem(k, self.settings[s])
        return BoxState(problem, end.b[s].copy(), end.gradient[s].copy(), float(end.violation[s]))

    def used(self, s: int, k: int) -> int:
        """Count the support vectors of a programme."""
        return int(np.count_nonzero(self.ends[k].b[s]))

    def keep(self, s: int, k: int, values: Array, offsets: float | Array, good: bool) -> None:
        """Take over a better answer."""
        self.ends[k].values[s], self.ends[k].offsets[s] = values, offsets
        self.settled[s] &= good


def unsettled(
    engine: StoredEngine, answers: PathAnswers, tol: float, wide: Wide
) -> list[tuple[int, int, float]]:
    """Return settings and programmes whose F, or sums, are too wrong, and by how much F is.

    Errors are in proportion to the coefficients; infinite where a descent did not end well. F may
    be right where sums at other rows are not: large coefficients of opposite signs, whose terms
    cancel, are rounded before they are added.
    """
    sizes = answers.sizes
    wrong = ~(np.stack([end.violation for end in answers.ends], axis=1) <= tol)
    rates = np.zeros(2)
    if engine.rounding > _EXACT or _seen_in_float64(engine.K, sizes, tol):
        order = np.argsort(np.where(wrong, -1.0, sizes), axis=None)[::-1]
        looks = [divmod(int(at), len(answers.ends)) for at in order[:_LOOKS]]
        K = wide(sum(2 * _SAMPLE * answers.used(s, k) + _ASKING for s, k in looks))
        scale = np.maximum([sizes[look] for look in looks], np.finfo(float).tiny)
        rates = (_errors(answers, looks, K) / scale).max(axis=1)
    errors = np.where(wrong, np.inf, rates[0] * sizes)
    doubtful = (errors > _ALLOWED * tol) | (rates[1] * sizes > tol)
    return [(int(s), int(k), float(errors[s, k])) for s, k in np.argwhere(doubtful)]


def settle(
    engine: StoredEngine,
    answers: PathAnswers,
    doubtful: Sequence[tuple[int, int, float]],
    aim: float,
    wide: Wide,
) -> None:
    """Answer what is in doubt in float64, until no violation is above `aim`."""
    work = sum(_ROUNDS * (answers.used(s, k) ** 2 + _ASKING) for s, k, _ in doubtful)
    K = wide(work) if doubtful else None
    if K is not None:
        _descend(engine, answers, doubtful, aim, K)
        return
    for s, k, error in doubtful:
        part = answers.part(s, k)
        part.error = error
        good = refine(engine, part, aim).confirmed
        if engine.watch.stopped:
            return
        values = _sums([part], answers.judged)[:, 0]
        answers.keep(s, k, values, part.problem.offsets(part.b, part.F), good)


def _descend(
    engine: StoredEngine,
    answers: PathAnswers,
    doubtful: Sequence[tuple[int, int, float]],
    aim: float,
    K: Array,
) -> None:
    """Take pair steps on K in float64; F is computed anew at their start."""
    chains = []
    for s, k, _ in doubtful:
        problem = answers.question.problem(k, answers.settings[s])
        box = BoxState(problem, answers.ends[k].b[s], problem.linear).box()
        chains.append(Chain(box, problem.totals, [Stage()], answers.judged))
    ends = choose_backend().box_chains(K, chains, aim, engine.limit, engine.watch.tick)
    for (s, k, _), end in zip(doubtful, ends, strict=True):
        answers.keep(s, k, end.values[0], end.offsets[0], bool(end.violation[0] <= aim))


def _seen_in_float64(K: Array, sizes: Array, tol: float) -> bool:
    entries = float(np.abs(K.diagonal()).max(initial=0.0))
    return _DOUBLE * entries * float(sizes.max(initial=0.0)) > _ALLOWED * tol


def _errors(answers: PathAnswers, looks: Sequence[tuple[int, int]], K: Array | None) -> Array:
    """Return errors of F at support vectors, and of sums at judged rows: the largest of a sample.

    A column for each of some settings and programmes, all evaluated together.
    """
    parts = [answers.part(s, k) for s, k in looks]
    own = [_some_used(part) for part in parts]
    others = _some(np.arange(len(answers.judged)))
    rows = [part.points(index) for part, index in zip(parts, own, strict=True)]
    true = _sums(parts, np.concatenate([*rows, answers.judged[others]]), K)
    ends = np.cumsum([len(index) for index in own])
    errors = np.empty((2, len(looks)))
    for number, ((s, k), part, index) in enumerate(zip(looks, parts, own, strict=True)):
        at_own = true[ends[number] - len(index) : ends[number], number]
        if part.unwrapped.shift is not None:
            at_own = at_own + part.unwrapped.shift[index] * part.b[index]
        of_F = part.problem.linear[index] - at_own - part.F[index]
        of_sums = true[ends[-1] :, number] - answers.ends[k].values[s, others]
        errors[:, number] = [np.abs(e).max(initial=0.0) for e in (of_F, of_sums)]
    return errors


def _some_used(part: BoxState) -> Array:
    """Return some support vectors, none of them at its bound where there are others."""
    free = np.flatnonzero(part.free())
    return _some(free if len(free) else np.flatnonzero(part.b))


def _some(index: Array) -> Array:
    return index[:: max(1, len(index) // _SAMPLE)][:_SAMPLE]


def _sums(parts: Sequence[BoxState], points: Array, K: Array | None = None) -> Array:
    """Return f without its constant (points, parts) in float64: from its matrix, or the points."""
    base = parts[0].unwrapped.base
    coef = np.zeros((base.shape[0], len(parts)))
    for column, part in zip(coef.T, parts, strict=True):
        used = np.flatnonzero(part.b)
        np.add.at(column, part.points(used), part.b[used])
    used = np.flatnonzero(coef.any(axis=1))
    if K is not None:
        return np.asarray(K[np.ix_(points, used)] @ coef[used])
    return exact_sums(base, points, used, coef[used])
