"""Support vector machines: paths over C, epsilon and nu on a stored kernel matrix, or several."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.gram import Gram, Source
from mercer.gram.accurate_products import Float64Copy
from mercer.gram.build import (
    descends_beside_others,
    evaluated_gram,
    is_kept,
    matrix_gram,
    refuse_overflow,
    stored_gram,
)
from mercer.gram.definite import looks_indefinite
from mercer.gram.policy import SHARED_FLOAT64_ROWS, box_bytes, dense_bytes, stored_below
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.algebra import is_proven
from mercer.machines.base.sharing import Fold, FoldPath, Sharing
from mercer.machines.svm.path import SMOPath
from mercer.machines.svm.problem import MarginPath, PathDuals
from mercer.resources import call_threads, memory_budget
from mercer.rows.points import take
from mercer.selection.folds import FitRows, take_rows
from mercer.selection.sharing.base import (
    Group,
    Judged,
    Stop,
    Stopped,
    asks_for_probabilities,
    asks_only_for_answers,
    judge_fit,
    register,
    score,
)
from mercer.selection.sharing.gram import Parts, Sorted, costly, sorted_rows
from mercer.selection.task import Point, Task
from mercer.solvers.base import Watch
from mercer.solvers.dispatch import choose

# --- group ---------------------------------------------------------------------------------------
#
# Support vector machines: one matrix for each kernel, one path for all C, tubes and nu of a fold.
#
# Whatever machine asks for a `MarginPath` (`machines/base/sharing.py`) is judged here. Rows are
# sorted (`gram.py`) so that what a fold learns from is a few long runs of the matrix, read in
# place.

_RESOLVED = 50.0  # roundings of F: what a descent can resolve


@dataclass(frozen=True, eq=False)
class OneKernel:
    """Points with one kernel, on folds where they have it.

    Attributes
    ----------
    kernel : Kernel
        What similarity is.
    folds : tuple of int
        The folds.
    below : float
        Costs from here on are left to fits, which do not descend on K.
    members : list of GridPoint
        The points.
    """

    kernel: Kernel
    folds: tuple[int, ...]
    below: float
    members: list[GridPoint]


class Margins(Group):
    """Points with one kernel.

    Parameters
    ----------
    task : Task
        What is tuned.
    rows : Sorted
        Its rows.
    points : OneKernel
        The kernel, and what is judged.
    parts : Parts
        What the kernel has in common with others.
    budget : float
        Bytes that may be taken.
    """

    spreads = True

    def __init__(
        self, task: Task, rows: Sorted, points: OneKernel, parts: Parts, budget: float
    ) -> None:
        self.task, self.rows, self.kernel, self.members = task, rows, points.kernel, points.members
        self.parts = parts
        self.points = tuple(member.position for member in points.members)
        self.units = tuple((fold,) for fold in points.folds)
        self.source = self._source()
        dtype = np.dtype(np.float64) if self.source is None else self.source.dtype
        n = len(rows.place)
        self.size = float(box_bytes(n, n, dtype))
        self.size += self.answer_bytes(min(len(task.splits), call_threads(np.inf)))
        self.size += dtype.itemsize * n**2 * parts.count
        self.paths = _alike(points.members)
        self.gram: Gram | None = None
        self.float64: Float64Copy | None = None
        self.stays = self._stays()
        fits = 2 * (self.size + 8.0 * n**2) <= budget and not self.stays  # two groups at a time
        if self.source is not None and dtype.itemsize < 8 and fits and not self._is_costly():
            self.float64 = Float64Copy(self.source, len(self.units))
            self.size += 8.0 * n**2

    def answer_bytes(self, folds: int) -> float:
        """Return the bytes of coefficients, gradients and values of so many folds."""
        task, rows, classes = self.task, self.rows, max(2, self.rows.classes)
        values = len(rows.place) if task.train_scores else max(len(test) for _, test in task.splits)
        programmes = max(1, classes * (classes - 1) // 2)
        each = 16.0 * classes * len(rows.place) + 24.0 * programmes * values
        return folds * len(self.members) * each

    def _source(self) -> Source | None:
        """Return where K comes from, and in which precision; None where it is given."""
        if isinstance(self.kernel, Precomputed):
            return None
        expression = bind_columns(self.kernel.expression(), self.rows.names)
        source = Source(expression, self.rows.X, np.dtype(np.float64), is_proven(self.kernel))
        if self._needs_float64(source):
            return source
        return replace(source, dtype=np.dtype(np.float32))

    def _stays(self) -> bool:
        """Return whether K is made on a device and stays there."""
        if self.source is None or self.parts.has_part_of(self.source):
            return False
        return is_kept(self.source)

    def _is_costly(self) -> bool:
        """Return whether entries take so long that those that are needed cost less than all."""
        source = self.source
        return source is not None and bool(costly(source.expression, source.X))

    def prepare(self) -> None:
        """Evaluate the kernel on all rows."""
        if self.source is None:
            self.gram = matrix_gram(self.rows.X)
            return
        if self.stays:
            gram = stored_gram(self.source)
        else:
            gram = evaluated_gram(self.source, self.parts.dense(self.source, padded=True))
        refuse_overflow(gram, self.kernel, None)
        self.gram = gram

    def release(self) -> None:
        """Forget the matrices."""
        self.gram = self.float64 = None

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Solve for all settings of a fold, path by path."""
        (fold,) = self.units[unit]
        judged: dict[tuple[int, int], Judged] = {}
        for asked in self.ask(fold):
            started = time.perf_counter()
            (found,) = answer([asked], stop)
            seconds = (time.perf_counter() - started) / len(asked.members)
            judged |= self.tell(asked, found, seconds, stop)
        return judged

    def ask(self, fold: int) -> list[Asked]:
        """Write the problems of a fold: one for points that are one path."""
        scored = self._scored(fold)
        found = []
        for members in self.paths:
            path, feasible = self._path(members, fold, scored)
            found.append(Asked(members, fold, scored, path, feasible, self.float64))
        return found

    def tell(
        self, asked: Asked, found: PathDuals | None, seconds: float, stop: Stop
    ) -> dict[tuple[int, int], Judged]:
        """Score the points of a path; those it has no answer for are fitted."""
        judged: dict[tuple[int, int], Judged] = {}
        place = {member: s for s, member in enumerate(asked.feasible)}
        for number, member in enumerate(asked.members):
            one, s = None, place.get(number)
            if asked.path is not None and found is not None and s is not None and found.solved[s]:
                one = self._score(asked.path, found, s, asked.scored, seconds)
            judged[member.position, asked.fold] = one or self._refit(member, asked.fold, stop)
        return judged

    def _scored(self, fold: int) -> list[tuple[Array, tuple[Any, ...]]]:
        """Return the rows left out, in the order of the matrix, and their targets.

        The same of those learnt from, if they are scored, too.
        """
        train, test = self.task.splits[fold]
        found = []
        for rows in (test, train) if self.task.train_scores else (test,):
            index = rows[np.argsort(self.rows.place[rows])]
            y = () if self.task.y is None else (take_rows(self.task.y, index),)
            found.append((index, y))
        return found

    def _path(
        self,
        members: Sequence[GridPoint],
        fold: int,
        scored: Sequence[tuple[Array, tuple[Any, ...]]],
    ) -> tuple[FoldPath | None, list[int]]:
        """Write the problem of a fold, and say which of its settings have an answer.

        None where no fit is possible, which a fit explains.
        """
        rows, gram = self.rows, self.gram
        places = np.sort(rows.place[self.task.splits[fold][0]])
        places = places[rows.weight[places] > 0]
        if gram is None or not len(places):
            return None, []
        evaluation_rows = rows.place[np.concatenate([index for index, _ in scored])]
        asked = Fold(gram, places, rows.targets[places], rows.weight[places], evaluation_rows)
        try:
            path = members[0].sharing.path(asked, [member.machine for member in members])
        except ValueError:
            return None, []
        problem: MarginPath = path.problem
        every = range(len(problem.settings))
        if not problem.summed:
            return path, list(every)
        return path, [s for s in every if not problem.infeasible(problem.settings[s])]

    def _score(
        self,
        path: FoldPath,
        value: PathDuals,
        setting: int,
        scored: Sequence[tuple[Array, tuple[Any, ...]]],
        seconds: float,
    ) -> Judged | None:
        """Score a setting; None where it has no decision function, which a fit explains."""
        started = time.perf_counter()
        found: list[dict[str, float]] = []  # of rows left out, and of those learnt from
        end = 0
        for index, y in scored:
            begin, end = end, end + len(index)
            try:
                known = path.known(value, setting, slice(begin, end))
            except ValueError:
                return None
            found.append(score(self.task, known, np.empty((len(index), 0)), y, index))
        seen = found[1] if self.task.train_scores else {}
        return Judged(found[0], seen, seconds, time.perf_counter() - started)

    def _refit(self, member: GridPoint, fold: int, stop: Stop) -> Judged:
        def rows() -> FitRows:
            return FitRows.of(self.task.machine_at(member.point), self.task.X)

        return judge_fit(self.task, rows, fold, stop)

    def _needs_float64(self, source: Source) -> bool:
        """Return whether float32 would not resolve the tolerance, or costs as much."""
        if source.n <= SHARED_FLOAT64_ROWS or not source.fits_float32():
            return True
        tol = min(member.sharing.tol for member in self.members)
        return bool(_RESOLVED * np.finfo(np.float32).eps * self._level(source) > tol)

    def _level(self, source: Source) -> float:
        """Return the size of F: that of targets, or what sums of coefficients make of K."""
        targets = self.rows.targets
        asked = float(np.abs(targets).max(initial=0.0)) if targets.dtype.kind == "f" else 1.0
        largest = float(np.abs(source.diag()).max(initial=0.0))
        total = max(member.sharing.total for member in self.members)
        return max(asked, total * largest * float(self.rows.weight.sum()))


def _alike(members: Sequence[GridPoint]) -> list[list[GridPoint]]:
    """Take members together that differ only in the parameters of their path."""
    found: list[tuple[Any, list[GridPoint]]] = []
    for member in members:
        sharing = member.sharing
        varied = {*sharing.parameters, *sharing.kernel_parameters}
        params = member.machine.get_params(deep=False).items()
        same = (sharing.parameters, {name: value for name, value in params if name not in varied})
        group = next((some for other, some in found if other == same), None)
        if group is None:
            found.append((same, group := []))
        group.append(member)
    return [some for _, some in found]


# --- asking --------------------------------------------------------------------------------------
#
# What is asked of a solver for points that are one path on a fold, and its answers.


@dataclass(frozen=True, eq=False)
class GridPoint:
    """A point of the grid that is answered by a path."""

    position: int
    point: Point
    machine: Any
    sharing: Sharing


@dataclass(frozen=True, eq=False)
class Asked:
    """Points that are one path on a fold.

    Attributes
    ----------
    members : sequence of GridPoint
        The points.
    fold : int
        The fold.
    scored : list of tuples
        Rows that are scored, and their targets.
    path : FoldPath or None
        The problem, and what becomes of its answer; None where no fit is possible.
    feasible : list of int
        Which settings have an answer.
    float64 : Float64Copy or None
        What makes K in float64.
    """

    members: Sequence[GridPoint]
    fold: int
    scored: Sequence[tuple[Array, tuple[Any, ...]]]
    path: FoldPath | None
    feasible: list[int]
    float64: Float64Copy | None

    def problem(self) -> MarginPath | None:
        """Return the settings that have an answer; None where no solver of paths takes them."""
        if self.path is None or not self.feasible:
            return None
        problem: MarginPath = self.path.problem
        if len(self.feasible) < len(problem.settings):
            kept = tuple(problem.settings[number] for number in self.feasible)
            problem = replace(problem, settings=kept)
        return problem if isinstance(choose(problem), SMOPath) else None


def answer(asked: Sequence[Asked], stop: Stop) -> list[PathDuals | None]:
    """Answer what is asked, all of it together; None for what no solver of paths takes."""
    found: list[PathDuals | None] = [None] * len(asked)
    alike: dict[tuple[float, Any], list[tuple[int, MarginPath]]] = {}
    for number, one in enumerate(asked):
        if (problem := one.problem()) is not None:
            key = (one.members[0].sharing.tol, one.float64)
            alike.setdefault(key, []).append((number, problem))
    for (tol, float64), some in alike.items():
        # not by `solve`: what is not solved is fitted, and that fit tells how it ended
        watch = Watch(lambda _: stop())
        solver = SMOPath(tol=tol, float64=float64)
        solutions = solver.run_all([problem for _, problem in some], watch)
        if watch.stopped or stop():
            raise Stopped
        for (number, _), solution in zip(some, solutions, strict=True):
            found[number] = solution.value
    return found


# --- several kernels -----------------------------------------------------------------------------
#
# Points of several kernels, whose matrices lie on a card together: all folds of all at once.
#
# The programmes of one kernel, folds times costs, fill a third of a card. So kernels do not
# follow one another there: as many matrices as have room are made, and what is asked of all of
# them is one descent.

_COPIES = 6  # of answers: bounds, tubes and rows of programmes, and products that confirm them


class SeveralKernels(Group):
    """Points of several kernels on the same folds.

    Parameters
    ----------
    groups : sequence of Margins
        The points of each kernel, whose matrices stay on a device.
    """

    def __init__(self, groups: Sequence[Margins]) -> None:
        self.groups = groups
        self.points = tuple(point for group in groups for point in group.points)
        self.units = (tuple(fold for unit in groups[0].units for fold in unit),)
        self.size = sum(group.answer_bytes(len(self.units[0])) for group in groups)

    @property
    def kind(self) -> str:
        """Name of what is shared: that of each of them."""
        return self.groups[0].kind

    def prepare(self) -> None:
        """Evaluate all kernels."""
        for group in self.groups:
            group.prepare()

    def release(self) -> None:
        """Forget the matrices."""
        for group in self.groups:
            group.release()

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Solve for all settings of all kernels and folds."""
        started = time.perf_counter()
        asked = [
            (group, one)
            for group in self.groups
            for fold in self.units[unit]
            for one in group.ask(fold)
        ]
        found = answer([one for _, one in asked], stop)
        count = sum(len(one.members) for _, one in asked)
        seconds = (time.perf_counter() - started) / max(1, count)
        judged: dict[tuple[int, int], Judged] = {}
        for (group, one), value in zip(asked, found, strict=True):
            judged |= group.tell(one, value, seconds, stop)
        return judged


def side_by_side(groups: Sequence[Margins]) -> list[Group]:
    """Take kernels together whose matrices have room on a device beside one another.

    Parameters
    ----------
    groups : sequence of Margins
        The points of each kernel.
    """
    found: list[Group] = []
    together: list[Margins] = []
    for group in groups:
        source = group.source
        if source is None or not group.stays or not _descends(group, source):
            found.append(group)
            continue
        others = sum(float(dense_bytes(source.n, source.dtype)) for _ in together)
        beside = others + sum(_programme_bytes(one) for one in [*together, group])
        alike = not together or group.units == together[0].units
        if together and not (alike and is_kept(source, beside)):
            found.append(_joined(together))
            together = []
        together.append(group)
    return [*found, *([_joined(together)] if together else [])]


def _joined(groups: Sequence[Margins]) -> Group:
    return SeveralKernels(groups) if len(groups) > 1 else groups[0]


def _descends(group: Margins, source: Source) -> bool:
    """Return whether programmes of a kernel run on the device where its matrix stays."""
    smallest = min(len(group.task.splits[fold][0]) for (fold,) in group.units)
    return descends_beside_others(source, smallest)


def _programme_bytes(group: Margins) -> float:
    """Return what programmes of all folds take on the device beside the matrix."""
    return _COPIES * group.answer_bytes(len(group.units))


# --- grouping ------------------------------------------------------------------------------------
#
# Which points of a grid of support vector machines descend on one stored K.


@register(Sharing)
def margins(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group the points of machines that ask for a `MarginPath` by their kernel."""
    if not asks_only_for_answers(task.scorers, task.machine):
        return []
    if asks_for_probabilities(task.scorers):
        return []  # of which paths know nothing
    members = []
    for position, point in enumerate(points):
        machine = task.machine_at(point)
        sharing = machine.sharing()
        if sharing is not None and sharing.problem is MarginPath:
            members.append(GridPoint(position, point, machine, sharing))
    try:
        return _grouped(task, members)
    except (TypeError, ValueError, MemoryError):
        return []  # fits will say, each, what is wrong


def _grouped(task: Task, members: Sequence[GridPoint]) -> list[Group]:
    by_kernel: list[OneKernel] = []
    rows: dict[bool, Sorted] = {}
    resolved: dict[Any, list[tuple[Kernel, tuple[int, ...]]]] = {}
    several: bool | None = None  # lowest points on a given matrix
    budget = memory_budget()
    for member in members:
        given = member.sharing.precomputed
        if given not in rows:
            rows[given] = sorted_rows(task, member.machine, given)
        asked = rows[given]
        if given and several is None:
            several = looks_indefinite(asked.X)
        if given and several:
            continue
        kernels = _kernels(task, member, asked, resolved)
        if any(isinstance(kernel, Precomputed) is not given for kernel, _ in kernels):
            raise RuntimeError(
                f"{type(member.machine).__name__}.sharing says precomputed={given}, which its "
                "kernel is not: pass Sharing(..., precomputed=self._is_precomputed())"
            )
        entries = [_entry(by_kernel, kernel, folds, asked, budget) for kernel, folds in kernels]
        if all(member.sharing.cost < one.below for one in entries):
            for one in entries:
                one.members.append(member)
    kept = [one for one in by_kernel if one.members]
    parts = _parts([one.kernel for one in kept], rows.get(False))
    made = [
        Margins(task, rows[isinstance(one.kernel, Precomputed)], one, parts, budget) for one in kept
    ]
    return side_by_side(made)


def _kernels(
    task: Task,
    member: GridPoint,
    rows: Sorted,
    known: dict[Any, list[tuple[Kernel, tuple[int, ...]]]],
) -> list[tuple[Kernel, tuple[int, ...]]]:
    """Return the kernel of a point for all folds, or that of each.

    Kernels given by name take their scale from all rows, those of test folds included, unless the
    machine says otherwise.
    """
    sharing = member.sharing
    key: Any = tuple(getattr(member.machine, name) for name in sharing.kernel_parameters)
    try:
        if key in known:
            return known[key]
    except TypeError:  # kernels of one's own may have no hash
        key = id(member)
    folds = range(len(task.splits))
    if not sharing.kernel_of_fold:
        known[key] = [(sharing.kernel(rows.X, rows.weight), tuple(folds))]
        return known[key]
    found: list[tuple[Kernel, tuple[int, ...]]] = []
    for fold in folds:
        places = np.sort(rows.place[task.splits[fold][0]])
        found.append((sharing.kernel(take(rows.X, places), rows.weight[places]), (fold,)))
    known[key] = found
    return found


def _entry(
    by_kernel: list[OneKernel], kernel: Kernel, folds: tuple[int, ...], rows: Sorted, budget: float
) -> OneKernel:
    """Return what holds the points of a kernel on some folds, new where there is none."""
    for one in by_kernel:
        if one.folds == folds and one.kernel == kernel:
            return one
    below = stored_below(kernel, rows.X, len(rows.place), rows.names, budget)
    by_kernel.append(OneKernel(kernel, folds, below, []))
    return by_kernel[-1]


def _parts(kernels: Sequence[Kernel], rows: Sorted | None) -> Parts:
    """Return what the kernels have in common."""
    if rows is None:
        return Parts([], np.empty((0, 0)))
    evaluated = [kernel for kernel in kernels if not isinstance(kernel, Precomputed)]
    return Parts([bind_columns(kernel.expression(), rows.names) for kernel in evaluated], rows.X)
