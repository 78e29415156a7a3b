"""Support vector machines: one matrix for each kernel, one path for all C, tubes and nu of a fold.

Whatever machine asks for a `MarginPath` (`machines/base/sharing.py`) is judged here. Rows are
sorted (`sorted_rows.py`) so that what a fold learns from is a few long runs of the matrix, read in
place.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.gram import Gram, Source
from mercer.gram.build import evaluated_gram, is_kept, matrix_gram, stored_gram
from mercer.gram.exact_parts import Float64Copy
from mercer.gram.extremes import refuse_overflow
from mercer.gram.policy import SHARED_FLOAT64_ROWS
from mercer.gram.sizes import box_bytes
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.base import is_proven
from mercer.machines.base.sharing import Fold, FoldPath
from mercer.problems import MarginPath, PathDuals
from mercer.resources import call_threads
from mercer.selection.running.rows import Rows, take_rows
from mercer.selection.running.task import Task
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.margin.asking import Asked, GridPoint, answer
from mercer.selection.sharing.parts import Parts, costly
from mercer.selection.sharing.refit import judge_fit, score
from mercer.selection.sharing.sorted_rows import Sorted

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
    members : list of Member
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
        def rows() -> Rows:
            return Rows.of(self.task.machine_at(member.point), self.task.X)

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
