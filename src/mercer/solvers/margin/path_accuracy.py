"""Answers along a path that float32 could spoil: found by a sample in float64, and mended there.

What rounding of K does to f grows with the coefficients, so a sample of rows is evaluated where
they are largest. Settings whose error would be seen in their tolerance go on from where they are:
on a float64 matrix of all rows where they would need much of it; else from the exact gradient, as
single fits do (`convergence.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import BoxPath, BoxPathAnswer, PathStep
from mercer.gram.exact_parts import exact_sums
from mercer.problems import BoxQP, MarginPath, PathSetting
from mercer.solvers.margin.convergence import DOUBLE, EXACT, SHARE, note_error, refine
from mercer.solvers.margin.descent import BoxState
from mercer.solvers.margin.smo import StoredEngine

Float64Matrix = Callable[[float], Array | None]
"""Returns K in float64 where so many of its entries are more work than all of it."""

_LOOKS = 2  # programmes with the largest coefficients, whose errors speak for all
_SAMPLE = 16  # rows of each, learnt from and wanted
_ROUNDS = 4.0  # times that a setting which is mended looks at K between its support vectors
_ASKING = 1e5  # entries of K that are evaluated in the time it takes to ask for some
_ALLOWED = 0.2  # of tol: errors in a sample that leave the largest, too, within the tolerance

Mended = tuple[int, int, float]
"""A setting, a programme, and by how much its F is off: infinite where that is not known."""


class PathState:
    """Where all settings of a path ended.

    Parameters
    ----------
    problem : MarginPath
        What was asked.
    settings : sequence of PathSetting
        At which settings, in the order in which they were solved.
    ends : sequence of ChainAnswer
        One for each programme, a row of its arrays for each setting. Better answers take the place
        of those that are mended.
    tol : float
        Largest violation, in units of the programme where these are less than 1.

    Attributes
    ----------
    solved : (settings,) bool array
        Whether there is an answer within the tolerance.
    """

    def __init__(
        self,
        problem: MarginPath,
        settings: Sequence[PathSetting],
        ends: Sequence[BoxPathAnswer],
        tol: float,
    ) -> None:
        self.problem, self.settings, self.ends, self.tol = problem, settings, ends, tol
        self.solved = np.ones(len(settings), dtype=bool)

    @cached_property
    def sizes(self) -> Array:
        """Return the sums of |b| (settings, programmes)."""
        return np.array([np.abs(end.b).sum(axis=1) for end in self.ends]).T

    @cached_property
    def allowed(self) -> Array:
        """Return what each violation may be (settings, programmes)."""
        scales = [problem.scale for problem in self.problem.problems]
        known = [self.tol * min(1.0, 1.0 if scale is None else scale) for scale in scales]
        found = np.array([known] * len(self.settings))
        for k in [k for k, scale in enumerate(scales) if scale is None]:
            for s in range(len(self.settings)):
                found[s, k] = allowed(self.part(s, k), self.tol)
        return found

    def programme(self, s: int, k: int) -> BoxQP:
        """Write a programme at a setting."""
        return self.problem.programme(k, self.settings[s])

    def part(self, s: int, k: int) -> BoxState:
        """Return where a programme of a setting stands."""
        end = self.ends[k]
        state = BoxState(self.programme(s, k), end.b[s].copy(), end.gradient[s].copy())
        state.violation = float(end.violation[s])
        return state

    def used(self, s: int, k: int) -> int:
        """Count the support vectors of a programme."""
        return int(np.count_nonzero(self.ends[k].b[s]))

    def keep(self, s: int, k: int, part: BoxState, offsets: float | Array, values: Array) -> None:
        """Take over a better answer, and note whether it is good enough."""
        end = self.ends[k]
        end.b[s], end.gradient[s], end.violation[s] = part.b, part.F, part.violation
        end.offsets[s], end.values[s] = offsets, values
        self.solved[s] &= part.violation <= allowed(part, self.tol)


def allowed(part: BoxState, tol: float) -> float:
    """Return what the violation of a programme may be: zero where its classes are not apart."""
    if not np.isfinite(part.violation):
        return tol
    if part.problem.margin_is_hidden(part.b, part.F):
        return 0.0
    return tol * min(1.0, part.problem.unit(part.b, part.F))


def inaccurate(engine: StoredEngine, state: PathState, matrix: Float64Matrix) -> list[Mended]:
    """Return settings and programmes whose F, or values at the wanted rows, are too wrong.

    Errors are in proportion to the coefficients; infinite where a descent did not end well. F may
    be right where values at other rows are not: large coefficients of opposite signs, whose terms
    cancel, are rounded before they are added.
    """
    sizes, limits = state.sizes, state.allowed
    least = float(limits.min())
    wrong = ~(np.array([end.violation for end in state.ends]).T <= limits)
    rates = np.zeros(2)
    if all(end.confirmed for end in state.ends):
        rounded = False  # where the descent was, F was compared with float64 already
    else:
        seen = engine.rounding > EXACT
        rounded = seen or _seen_in_float64(engine.K.diagonal(), sizes, least)
    if rounded:
        order = np.argsort(np.where(wrong, -1.0, sizes), axis=None)[::-1]
        looks = [divmod(int(at), len(state.ends)) for at in order[:_LOOKS]]
        K = matrix(sum(2 * _SAMPLE * state.used(s, k) + _ASKING for s, k in looks))
        scale = np.maximum([sizes[look] for look in looks], np.finfo(float).tiny)
        rates = (_errors(state, looks, K) / scale).max(axis=1)
    if least > 0 and not rates.any() and not wrong.any():
        return []
    errors = np.where(wrong, np.inf, rates[0] * sizes)
    found = (errors > _ALLOWED * limits) | (rates[1] * sizes > limits)
    if least <= 0:  # without a margin no step makes one
        state.solved &= (limits > 0).all(axis=1)
        found &= state.solved[:, None]
    return [(int(s), int(k), float(errors[s, k])) for s, k in np.argwhere(found)]


def mend(
    engine: StoredEngine, state: PathState, found: Sequence[Mended], matrix: Float64Matrix
) -> None:
    """Answer in float64 what is inaccurate, until no violation is above what it may be."""
    work = sum(_ROUNDS * (state.used(s, k) ** 2 + _ASKING) for s, k, _ in found)
    K = matrix(work) if found else None
    if K is not None:
        _mend_on(K, engine, state, found)
        return
    for s, k, error in found:
        part = state.part(s, k)
        part.error = error
        aim = float(state.allowed[s, k])
        if part.problem.scale is None:  # by the answer so far; the next may have a smaller margin
            aim *= SHARE
        confirmed = refine(engine, part, aim).confirmed
        if engine.watch.stopped:
            state.solved[:] = False
            return
        values = _values([part], state.problem.evaluation_rows)[:, 0]
        state.keep(s, k, part, part.problem.offsets(part.b, part.F), values)
        state.solved[s] &= confirmed


def _mend_on(K: Array, engine: StoredEngine, state: PathState, found: Sequence[Mended]) -> None:
    """Take pair steps on K in float64; F is computed anew at their start."""
    paths = []
    for s, k, _ in found:
        problem = state.programme(s, k)
        box = BoxState(problem, state.ends[k].b[s], problem.linear).box()
        paths.append(BoxPath(box, problem.totals, [PathStep()], state.problem.evaluation_rows))
    aim = min(float(state.allowed[s, k]) for s, k, _ in found)
    if any(state.problem.problems[k].scale is None for _, k, _ in found):
        aim *= SHARE
    ends = choose_backend().box_paths(K, paths, aim, engine.limit, engine.watch.tick)
    if engine.watch.stopped:
        state.solved[:] = False
        return
    for (s, k, _), end in zip(found, ends, strict=True):
        part = BoxState(state.programme(s, k), end.b[0], end.gradient[0])
        part.violation = float(end.violation[0])
        state.keep(s, k, part, end.offsets[0], end.values[0])


def _seen_in_float64(diagonal: Array, sizes: Array, tol: float) -> bool:
    """Return whether rounding of float64, of K times the coefficients, could be seen."""
    entries = float(np.abs(diagonal).max(initial=0.0))
    return DOUBLE * entries * float(sizes.max(initial=0.0)) > _ALLOWED * tol


def _errors(state: PathState, looks: Sequence[tuple[int, int]], K: Array | None) -> Array:
    """Return errors of F at support vectors, and of values at wanted rows: the largest of a sample.

    A column for each of some settings and programmes, all evaluated together.
    """
    parts = [state.part(s, k) for s, k in looks]
    own = [_some_used(part) for part in parts]
    others = _some(np.arange(len(state.problem.evaluation_rows)))
    rows = [part.points(index) for part, index in zip(parts, own, strict=True)]
    true = _values(parts, np.concatenate([*rows, state.problem.evaluation_rows[others]]), K)
    ends = np.cumsum([len(index) for index in own])
    errors = np.empty((2, len(looks)))
    for number, ((s, k), part, index) in enumerate(zip(looks, parts, own, strict=True)):
        products = true[ends[number] - len(index) : ends[number], number]
        if part.unwrapped.shift is not None:
            products = products + part.unwrapped.shift[index] * part.b[index]
        note_error(part, index, products)
        off = true[ends[-1] :, number] - state.ends[k].values[s, others]
        errors[:, number] = part.error, np.abs(off).max(initial=0.0)
    return errors


def _some_used(part: BoxState) -> Array:
    """Return some support vectors, none of them at its bound where there are others."""
    free = np.flatnonzero(part.free())
    return _some(free if len(free) else np.flatnonzero(part.b))


def _some(index: Array) -> Array:
    return index[:: max(1, len(index) // _SAMPLE)][:_SAMPLE]


def _values(parts: Sequence[BoxState], points: Array, K: Array | None = None) -> Array:
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
