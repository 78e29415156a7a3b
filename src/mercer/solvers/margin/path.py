"""Regularization paths on a stored K: each setting starts where a neighbour ended.

K may be stored in float32; what that could spoil is checked and mended in float64
(`path_accuracy.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import BoxPath, BoxPathAnswer, PathStep
from mercer.gram import DenseGram, PrecomputedGram
from mercer.problems import BoxQP, MarginPath, PathDuals, PathSetting
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.margin.convergence import SHARE
from mercer.solvers.margin.curvature import curvature_among
from mercer.solvers.margin.descent import BoxState, begin, infinite_bounds
from mercer.solvers.margin.path_accuracy import Float64Matrix, PathState, inaccurate, mend
from mercer.solvers.margin.smo import StoredEngine, limit_of, resting

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
        runs = [_Run(self, problem, watch) for problem in problems]
        _descend_together(runs)
        return [run.conclude(watch) for run in runs]


class _Run:
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


def _descend_together(runs: Sequence[_Run]) -> None:
    """Descend on all matrices at once; those of one matrix, tolerance and limit are one call."""
    alike: dict[tuple[float, int], dict[int, list[_Run]]] = {}
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
