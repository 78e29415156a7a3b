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

from mercer._types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import Chain, ChainAnswer, Stage
from mercer.gram.exact import exact_rows
from mercer.selection.sharing.questions import Question, Setting
from mercer.solvers.descent import Part
from mercer.solvers.refine import refine
from mercer.solvers.stored import Stored

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
class Walked:
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

    question: Question
    settings: Sequence[Setting]
    judged: Array
    ends: Sequence[ChainAnswer]
    settled: Array

    @cached_property
    def sizes(self) -> Array:
        """Give the sums of |b| (settings, programmes)."""
        return np.stack([np.abs(end.b).sum(axis=1) for end in self.ends], axis=1)

    def part(self, s: int, k: int) -> Part:
        """Give where a programme of a setting stands."""
        end, problem = self.ends[k], self.question.problem(k, self.settings[s])
        return Part(problem, end.b[s].copy(), end.gradient[s].copy(), float(end.violation[s]))

    def used(self, s: int, k: int) -> int:
        """Count the support vectors of a programme."""
        return int(np.count_nonzero(self.ends[k].b[s]))

    def keep(self, s: int, k: int, values: Array, offsets: float | Array, good: bool) -> None:
        """Take over a better answer."""
        self.ends[k].values[s], self.ends[k].offsets[s] = values, offsets
        self.settled[s] &= good


def doubts(engine: Stored, walked: Walked, tol: float, wide: Wide) -> list[tuple[int, int, float]]:
    """Give settings and programmes whose F, or sums, are too wrong, and by how much F is.

    Errors are in proportion to the coefficients; infinite where a descent did not end well. F may
    be right where sums at other rows are not: large coefficients of opposite signs, whose terms
    cancel, are rounded before they are added.
    """
    sizes = walked.sizes
    wrong = ~(np.stack([end.violation for end in walked.ends], axis=1) <= tol)
    rates = np.zeros(2)
    entries = float(np.abs(engine.K.diagonal()).max(initial=0.0))
    seen = _DOUBLE * entries * float(sizes.max(initial=0.0)) > _ALLOWED * tol
    if engine.rounding > _EXACT or seen:
        order = np.argsort(np.where(wrong, -1.0, sizes), axis=None)[::-1]
        looks = [divmod(int(at), len(walked.ends)) for at in order[:_LOOKS]]
        K = wide(sum(2 * _SAMPLE * walked.used(s, k) + _ASKING for s, k in looks))
        for s, k in looks:
            size = max(float(sizes[s, k]), np.finfo(float).tiny)
            rates = np.maximum(rates, _errors(walked, s, k, K) / size)
    errors = np.where(wrong, np.inf, rates[0] * sizes)
    doubtful = (errors > _ALLOWED * tol) | (rates[1] * sizes > tol)
    return [(int(s), int(k), float(errors[s, k])) for s, k in np.argwhere(doubtful)]


def settle(
    engine: Stored,
    walked: Walked,
    doubtful: Sequence[tuple[int, int, float]],
    aim: float,
    wide: Wide,
) -> None:
    """Answer what is in doubt in float64, until no violation is above `aim`."""
    work = sum(_ROUNDS * (walked.used(s, k) ** 2 + _ASKING) for s, k, _ in doubtful)
    K = wide(work) if doubtful else None
    if K is not None:
        _descend(engine, walked, doubtful, aim, K)
        return
    for s, k, error in doubtful:
        part = walked.part(s, k)
        part.error = error
        good = refine(engine, part, aim).confirmed
        if engine.watch.stopped:
            return
        values = _sums(part, walked.judged)
        walked.keep(s, k, values, part.problem.offsets(part.b, part.F), good)


def _descend(
    engine: Stored,
    walked: Walked,
    doubtful: Sequence[tuple[int, int, float]],
    aim: float,
    K: Array,
) -> None:
    """Take pair steps on K in float64; F is computed anew at their start."""
    chains = []
    for s, k, _ in doubtful:
        problem = walked.question.problem(k, walked.settings[s])
        box = Part(problem, walked.ends[k].b[s], problem.linear).box()
        chains.append(Chain(box, problem.totals, [Stage()], walked.judged))
    ends = choose_backend().box_chains(K, chains, aim, engine.limit, engine.watch.tick)
    for (s, k, _), end in zip(doubtful, ends, strict=True):
        walked.keep(s, k, end.values[0], end.offsets[0], bool(end.violation[0] <= aim))


def _errors(walked: Walked, s: int, k: int, K: Array | None) -> Array:
    """Give the largest errors of F, at support vectors, and of sums at judged rows, by a sample."""
    part, judged = walked.part(s, k), walked.judged
    used = np.flatnonzero(part.free())
    own = _some(used if len(used) else np.flatnonzero(part.b))
    others = _some(np.arange(len(judged)))
    held = part.held
    points = np.concatenate([own if held.index is None else held.index[own], judged[others]])
    true, beyond = np.split(_sums(part, points, K), [len(own)])
    if held.shift is not None:
        true = true + held.shift[own] * part.b[own]
    of_F = np.abs(part.problem.linear[own] - true - part.F[own]).max(initial=0.0)
    of_sums = np.abs(beyond - walked.ends[k].values[s, others]).max(initial=0.0)
    return np.array([of_F, of_sums])


def _some(index: Array) -> Array:
    return index[:: max(1, len(index) // _SAMPLE)][:_SAMPLE]


def _sums(part: Part, points: Array, K: Array | None = None) -> Array:
    """Give f without its constant in float64, from its matrix or from the points."""
    base = part.held.base
    used, coef = part.on_base(np.flatnonzero(part.b), part.b[part.b != 0])
    if K is not None:
        return np.asarray(K[np.ix_(points, used)] @ coef)
    full = np.zeros(base.shape[0])
    full[used] = coef
    return exact_rows(base, points, full)
