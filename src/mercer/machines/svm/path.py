"""Regularization paths of SVMs by SMO with warm starts, and several QPs in sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.box_programs import BoxPath, BoxPathAnswer, PathStep
from mercer.gram import DenseGram, PrecomputedGram
from mercer.gram.accurate_products import exact_sums
from mercer.machines.svm.descent import BoxState, begin, curvature_among, infinite_bounds
from mercer.machines.svm.problem import BoxQP, Duals, Many, MarginPath, PathDuals, PathSetting
from mercer.machines.svm.refinement import DOUBLE, EXACT, SHARE, note_error, refine
from mercer.machines.svm.smo import StoredEngine, limit_of, resting
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- path accuracy -------------------------------------------------------------------------------
#
# Answers along a path that float32 could spoil: found by a sample in float64, and mended there.
#
# What rounding of K does to f grows with the coefficients, so a sample of rows is evaluated where
# they are largest. Settings whose error would be seen in their tolerance go on from where they
# are: on a float64 matrix of all rows where they would need much of it; else from the exact
# gradient, as single fits do (`refinement.py`).

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


# --- path ----------------------------------------------------------------------------------------
#
# Regularization paths on a stored K: each setting starts where a neighbour ended.
#
# K may be stored in float32; what that could spoil is checked and mended in float64 (`path.py`).

_FARTHEST = 30.0  # times C: what one warm start bridges
_DIGITS = 12  # of a share nu: more of them are rounding of its factor


@dataclass(frozen=True)
class SMOPath(Solver):
    """Pair steps on a K that is stored, for all settings of a path, with warm starts.

    Parameters
    ----------
    tol : float
        Largest violation of a pair at the end, in units of the programme where these are less
        than 1.
    max_iter : int or None
        Largest number of pair steps of a programme at a setting; None takes max(10^7, 100 n).
    float64 : callable or None
        Called with a number of entries of K that are about to be evaluated in float64; returns K
        in float64 where that is more work than to make, or to have, all of it, else None. For a K
        in float32 whose copy several paths share.
    """

    answers = MarginPath

    tol: float = 1e-3
    max_iter: int | None = None
    float64: Float64Matrix | None = None

    def _obstacle(self, problem: MarginPath) -> str | None:
        """Take feasible paths of programmes with slack on one stored Gram."""
        wrong = path_refusal(problem)
        if wrong is not None:
            return wrong
        if not isinstance(problem.base, DenseGram | PrecomputedGram):
            return "SMOPath is for a stored Gram; use Each(WorkingSets()) or Each(InteriorPoint())"
        if any(map(_is_unbounded, problem.problems)):
            return "infinite bounds have no factor: answer each setting by itself, with Each(SMO())"
        return None

    def run(self, problem: Any, watch: Watch, start: Any = None) -> Solution:
        """Descend along the settings in the order of their warm starts."""
        return self.run_all([problem], watch)[0]

    def run_all(self, problems: Sequence[MarginPath], watch: Watch) -> list[Solution]:
        """Answer several paths, side by side where their matrices lie together on a card.

        Parameters
        ----------
        problems : sequence of MarginPath
            Paths that this solver does not refuse; on one Gram, or on several.
        watch : Watch
            Told the steps of all.
        """
        if watch.tick(0, np.inf):  # compiled loops are done with small problems before they ask
            return [report(self, _unsolved(p), Status.STOPPED, 0, watch) for p in problems]
        runs = [_PathRun(self, problem, watch) for problem in problems]
        _descend_together(runs)
        return [run.conclude(watch) for run in runs]


class _PathRun:
    """A path on its way: where it is solved, and in which order.

    Parameters
    ----------
    solver : SMOPath
        Whose tolerances hold.
    problem : MarginPath
        What is asked.
    watch : Watch
        Told the steps.
    """

    def __init__(self, solver: SMOPath, problem: MarginPath, watch: Watch) -> None:
        self.solver, self.problem = solver, problem
        self.settings, self.starts, self.place = warm_starts(problem)
        limit = solver.max_iter or limit_of(problem.problems)
        stored: Any = problem.base
        self.engine = StoredEngine(stored.stored, watch, limit)
        scales = [one.scale for one in problem.problems if one.scale]
        self.tol = SHARE * solver.tol * min([1.0, *scales])
        self.ends: Sequence[BoxPathAnswer] = ()

    def paths(self) -> list[BoxPath]:
        """Write the programmes as backends see them."""
        steps = [
            PathStep(setting.bound, setting.epsilon, setting.shift, setting.total, start)
            for setting, start in zip(self.settings, self.starts, strict=True)
        ]
        rows = self.problem.evaluation_rows
        return [
            BoxPath(_begun(self.engine, one).box(), one.totals, steps, rows)
            for one in self.problem.problems
        ]

    def conclude(self, watch: Watch) -> Solution:
        """Check what the descent found, and mend what float32 could have spoilt."""
        state = PathState(self.problem, self.settings, self.ends, self.solver.tol)
        if watch.stopped:
            state.solved[:] = False
        else:
            matrix = _matrix_of(self.engine, self.solver.float64)
            mend(self.engine, state, inaccurate(self.engine, state, matrix), matrix)
        steps = int(sum(end.iterations.sum() for end in self.ends))
        status, seen = _ending(self.problem, state, watch)
        return report(self.solver, _answer(state, self.place), status, steps, watch, seen)


def _descend_together(runs: Sequence[_PathRun]) -> None:
    """Descend on all matrices at once; those of one matrix, tolerance and limit are one call."""
    alike: dict[tuple[float, int], dict[int, list[_PathRun]]] = {}
    for run in runs:
        on = alike.setdefault((run.tol, run.engine.limit), {})
        on.setdefault(id(run.engine.K), []).append(run)
    for (tol, limit), by_matrix in alike.items():
        written = [[run.paths() for run in some] for some in by_matrix.values()]
        work = [
            (some[0].engine.K, [path for paths in own for path in paths])
            for some, own in zip(by_matrix.values(), written, strict=True)
        ]
        tick = runs[0].engine.watch.tick
        answers = work[0][0].box_paths_on_several(work, tol, limit, tick)
        for some, own, ends in zip(by_matrix.values(), written, answers, strict=True):
            left = iter(ends)
            for run, paths in zip(some, own, strict=True):
                run.ends = [next(left) for _ in paths]


def path_refusal(problem: MarginPath) -> str | None:
    """Return why a path makes no sense, with the setting that is to blame."""
    if not problem.problems or not problem.settings:
        return "there is no programme, or no setting, to answer"
    base = problem.base
    if any(one.unwrapped.base is not base for one in problem.problems):
        return "the programmes of a path must share a Gram"
    for number, setting in enumerate(problem.settings):
        least = min(setting.bound, setting.shift, setting.total)
        together = setting.bound + setting.shift + setting.total + setting.epsilon
        if not (least > 0 and setting.epsilon >= 0 and isfinite(together)):
            return f"settings[{number}]: factors must be positive and finite, got {setting}"
        if problem.summed and problem.infeasible(setting):
            return (
                f"settings[{number}] is infeasible: no point of the box has the required sums. "
                "Use a smaller total, or a larger bound"
            )
    if problem.rows is not None and len(problem.rows):
        rows = np.asarray(problem.rows)
        if rows.min() < 0 or rows.max() >= base.shape[0]:
            return f"rows must be numbers from 0 to {base.shape[0] - 1}, those of the shared Gram"
    return None


def _is_unbounded(problem: BoxQP) -> bool:
    """Return whether nothing holds some variable back, neither a bound nor the diagonal."""
    # products are the quickest look at arrays so short, of which there are many
    squared = float(problem.upper @ problem.upper) + float(problem.lower @ problem.lower)
    return not isfinite(squared) and bool(np.any(infinite_bounds(problem)))


def warm_starts(
    problem: MarginPath,
) -> tuple[tuple[PathSetting, ...], tuple[int, ...], Array]:
    """Order the settings of a path, each once, and say where each of them starts.

    Upwards along C, wide tubes first; the smallest C of a tube starts from that of the last tube.
    A far larger C starts anew: coefficients that were scaled with it would be far too large, and F
    would lose its digits.

    Returns
    -------
    settings : tuple of PathSetting
        In the order in which they are solved.
    starts : tuple of int
        The place of the one that each starts from; -1 for none.
    place : (settings,) int array
        Where each setting of the problem is among them.
    """
    summed = bool(problem.summed)
    key = {
        setting: (-setting.epsilon, *_share_and_cost(setting, summed))
        for setting in problem.settings
    }
    ordered = sorted(key, key=lambda setting: key[setting])
    starts, first = [], -1
    for number, setting in enumerate(ordered):
        before = key[ordered[number - 1]]
        if number and before[:2] == key[setting][:2]:
            near = key[setting][2] <= _FARTHEST * before[2]
            starts.append(number - 1 if near else -1)
        else:
            starts.append(first)
            first = number
    number_of = {setting: number for number, setting in enumerate(ordered)}
    place = np.array([number_of[setting] for setting in problem.settings])
    return tuple(ordered), tuple(starts), place


def _share_and_cost(setting: PathSetting, summed: bool) -> tuple[float, float]:
    """Return nu, as far as sums depend on it, and C: a bound, or the inverse of a shift."""
    share = float(f"{setting.total / setting.bound:.{_DIGITS}g}") if summed else 1.0
    return share, setting.bound / setting.shift


def _begun(engine: StoredEngine, problem: BoxQP) -> BoxState:
    """Return a place to start from, and the linear term in place of F."""
    start = np.zeros(len(problem.linear))
    if problem.totals.any():
        start = begin(engine, problem, None).b
    return BoxState(problem, start, problem.linear)


def _matrix_of(engine: StoredEngine, copy: Float64Matrix | None) -> Float64Matrix:
    """Return what gives K in float64: K itself where it is, or the copy that others share."""
    if engine.K.dtype == np.float64:
        return lambda work: engine.K.dense()
    return copy or (lambda work: None)


def _ending(problem: MarginPath, state: PathState, watch: Watch) -> tuple[Status, str]:
    """Return how the path ended as a whole, and what was seen on the way."""
    if watch.stopped:
        return watch.stopped, ""
    if not problem.base.valid:
        last = [state.part(len(state.settings) - 1, k) for k in range(len(problem.problems))]
        if (bend := curvature_among(last, stored=True)) is not None:
            return Status.NOT_CONVEX, f"a direction of curvature {bend:.2g} was seen"
    wrong = int(np.count_nonzero(~state.solved))
    if not wrong:
        return Status.SOLVED, ""
    return Status.INACCURATE, f"{wrong} of {len(state.solved)} settings"


def _unsolved(problem: MarginPath) -> PathDuals:
    """Return the feasible points where a run that is stopped at once stands."""
    parts = [[resting(one, None) for one in problem.at(s).problems] for s in problem.settings]
    numbers = range(len(problem.problems))
    coef = tuple(np.array([row[k].b for row in parts]) for k in numbers)
    offsets = [[one.problem.offsets(one.b, one.F) for one in row] for row in parts]
    return PathDuals(
        coef,
        tuple(np.array([np.atleast_1d(row[k]) for row in offsets]) for k in numbers),
        np.stack([problem.values(k, coef[k]) for k in numbers], axis=1),
        np.zeros(len(problem.settings), dtype=bool),
    )


def _answer(state: PathState, place: Any) -> PathDuals:
    """Put the answers in the order in which their settings were asked for."""
    if state.settings == state.problem.settings:
        place = slice(None)  # as they are, without a copy
    return PathDuals(
        tuple(end.b[place] for end in state.ends),
        tuple(end.offsets[place] for end in state.ends),
        np.array([end.values[place] for end in state.ends]).swapaxes(0, 1),
        state.solved[place],
    )


# --- many ----------------------------------------------------------------------------------------
#
# Several programmes, one after another: for Grams that no solver takes as a family.


@dataclass(frozen=True)
class Each(Solver):
    """Answer every programme of `Many`, or of each setting of a `MarginPath`, with one solver.

    Parameters
    ----------
    solver : Solver
        What answers a single programme.
    """

    answers = (Many, MarginPath)

    solver: Solver

    def _obstacle(self, problem: Many | MarginPath) -> str | None:
        """Take what the inner solver takes."""
        if isinstance(problem, MarginPath):
            return path_refusal(problem) or self._obstacle(problem.at(problem.settings[0]))
        if not problem.problems:
            return "there is no programme to answer"
        refusals = (self.solver.refuses(part) for part in problem.problems)
        return next((refusal for refusal in refusals if refusal is not None), None)

    def run(self, problem: Many | MarginPath, watch: Watch, start: Any = None) -> Solution:
        """Go through the programmes; a limit or the callback ends all of them."""
        if isinstance(problem, MarginPath):
            return self._along(problem, watch)
        found: list[Solution] = []
        for k, part in enumerate(problem.problems):
            begin = None if start is None else start.parts[k]
            found.append(self.solver.run(part, watch, begin))
        duals = Duals(tuple(solution.value for solution in found))
        return self._together(duals, found, watch, "programmes")

    def _along(self, problem: MarginPath, watch: Watch) -> Solution:
        """Answer one setting after another, each from the answer of a neighbour."""
        settings, starts, place = warm_starts(problem)
        found: list[Solution] = []
        for setting, start in zip(settings, starts, strict=True):
            before = None if start < 0 else found[start].value
            found.append(self.run(problem.at(setting), watch, before))
        value = _as_path(problem, [found[number] for number in place])
        return self._together(value, found, watch, "settings")

    def _together(self, value: Any, found: list[Solution], watch: Watch, what: str) -> Solution:
        wrong = [k for k, solution in enumerate(found) if not solution.status.ok]
        status = watch.stopped or (found[wrong[0]].status if wrong else Status.SOLVED)
        detail = f"{len(wrong)} of {len(found)} {what}; number {wrong[0]} first" if wrong else ""
        return report(self, value, status, sum(s.iterations for s in found), watch, detail)


def _as_path(problem: MarginPath, found: list[Solution]) -> PathDuals:
    """Put answers at all settings side by side, with their values at the rows asked for."""
    duals = [solution.value.parts for solution in found]
    numbers = range(len(problem.problems))
    return PathDuals(
        tuple(np.array([parts[k].coef for parts in duals]) for k in numbers),
        tuple(np.array([np.atleast_1d(parts[k].intercept) for parts in duals]) for k in numbers),
        np.stack(
            [problem.values(k, np.array([parts[k].coef for parts in duals])) for k in numbers], 1
        ),
        np.array([solution.status.ok for solution in found]),
    )
