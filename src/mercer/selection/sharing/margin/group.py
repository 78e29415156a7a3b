"""Support vector machines: one matrix for each kernel, one walk for all C, tubes and nu of a fold.

Rows are sorted (`sorted_rows.py`) so that what a fold learns from is a few long runs of the matrix,
read in place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.gram import Gram, Source
from mercer.gram.build import evaluated_gram, matrix_gram, refuse_overflow, stored_below
from mercer.gram.policy import SHARED_FLOAT64_ROWS
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.kernels.base import is_proven
from mercer.machines import SVC, SVR, OneClassSVM
from mercer.machines.base.parameters import is_real
from mercer.problems.margin.svm import HARDEST
from mercer.resources import call_threads, memory_budget
from mercer.selection.running.rows import Rows, take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.known import asks_only_for_answers
from mercer.selection.sharing.margin.chains import ladder, solve_chains
from mercer.selection.sharing.margin.fold_programmes import (
    QUESTIONS,
    FoldProgrammes,
    Learnt,
    Setting,
    same_question,
    setting_of,
)
from mercer.selection.sharing.margin.matrices import indefinite, of_answers, of_matrix
from mercer.selection.sharing.margin.sorted_rows import Sorted, sorted_rows
from mercer.selection.sharing.parts import Parts, costly
from mercer.selection.sharing.refit import judge_fit, score
from mercer.selection.sharing.share import register

_WIDENED = 4.0  # times all entries: what folds ask for before K in float64 is worth its memory
_RESOLVED = 50.0  # roundings of F: what a descent can resolve


@dataclass(frozen=True, eq=False)
class Member:
    """A point of the grid that is answered by a walk."""

    position: int
    point: Point
    machine: Any
    setting: Setting


class Margins(Group):
    """Points with one kernel.

    Parameters
    ----------
    task : Task
        What is tuned.
    rows : Sorted
        Its rows.
    kernel : Kernel
        What similarity is.
    members : sequence of Member
        The points.
    parts : Parts
        What the kernel has in common with others.
    budget : float
        Bytes that may be taken.
    """

    spreads = True

    def __init__(
        self,
        task: Task,
        rows: Sorted,
        kernel: Kernel,
        members: Sequence[Member],
        parts: Parts,
        budget: float,
    ) -> None:
        self.task, self.rows, self.kernel, self.members = task, rows, kernel, members
        self.parts = parts
        self.points = tuple(member.position for member in members)
        self.units = tuple((fold,) for fold in range(len(task.splits)))
        self.source = self._source()
        entry = 8.0 if self.source is None else float(self.source.dtype.itemsize)
        self.size = of_matrix(len(rows.place), entry) + _of_answers(task, rows, members)
        self.size += entry * len(rows.place) ** 2 * parts.count
        self.questions = _questions(members)
        self.gram: Gram | None = None
        self.wide: Array | None = None  # K in float64, once it was worth it
        self.widening = threading.Lock()
        doubled = 8.0 * len(rows.place) ** 2
        fits = 2 * (self.size + doubled) <= budget  # two groups at a time
        self.may_widen = entry < 8 and fits and not self._is_costly()
        self.size += doubled * self.may_widen

    def _source(self) -> Source | None:
        """Say where K comes from, and in which precision; None where it is given."""
        if isinstance(self.kernel, Precomputed):
            return None
        expression = bind_columns(self.kernel.expression(), self.rows.names)
        source = Source(expression, self.rows.X, np.dtype(np.float64), is_proven(self.kernel))
        if self._needs_float64(source):
            return source
        return replace(source, dtype=np.dtype(np.float32))

    def _is_costly(self) -> bool:
        """Return whether entries take so long that those that are needed cost less than all."""
        source = self.source
        return source is not None and bool(costly(source.expression, source.X))

    def prepare(self) -> None:
        """Evaluate the kernel on all rows."""
        if self.source is None:
            self.gram = matrix_gram(self.rows.X)
            return
        gram = evaluated_gram(self.source, self.parts.dense(self.source, padded=True))
        refuse_overflow(gram, self.kernel, None)
        self.gram = gram

    def release(self) -> None:
        """Forget the matrices."""
        self.gram = self.wide = None

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Walk along all settings of a fold, question by question."""
        (fold,) = self.units[unit]
        judged: dict[tuple[int, int], Judged] = {}
        for members in self.questions:
            for member, one in self._judge(members, fold, stop):
                judged[member.position, fold] = one
        return judged

    def _judge(
        self, members: Sequence[Member], fold: int, stop: Stop
    ) -> list[tuple[Member, Judged]]:
        started = time.perf_counter()
        machine = members[0].machine
        question = self._question(
            machine, self.task.splits[fold][0], [member.setting for member in members]
        )
        good = [m for m in members if question is not None and _feasible(question, m)]
        refitted = [member for member in members if member not in good]
        out = [(member, self._refit(member, fold, stop)) for member in refitted]
        if question is None or not good:
            return out
        settings, starts = ladder([member.setting for member in good])
        scored = self._scored(fold)
        judged = self.rows.place[np.concatenate([index for index, _ in scored])]
        answers = solve_chains(
            question, settings, starts, judged, float(machine.tol), self._widen, stop
        )
        seconds = (time.perf_counter() - started) / len(members)
        number = {setting: s for s, setting in enumerate(settings)}
        for member in good:
            s = number[member.setting]
            one = None
            if answers.settled[s]:
                one = self._score(question, (*answers.answer(s), member.setting), scored, seconds)
            out.append((member, one or self._refit(member, fold, stop)))
        return out

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

    def _question(
        self, machine: Any, train: Array, settings: list[Setting]
    ) -> FoldProgrammes | None:
        """Write the programmes of a fold; None where no fit is possible, which a fit explains."""
        rows, gram = self.rows, self.gram
        places = np.sort(rows.place[train])
        places = places[rows.weight[places] > 0]
        if gram is None or not len(places):
            return None
        learnt = Learnt(gram, places, rows.targets[places], rows.weight[places])
        try:
            question: FoldProgrammes = QUESTIONS[type(machine)](learnt, machine, settings)
        except ValueError:
            return None
        return question

    def _widen(self, work: float) -> Array | None:
        """Return K in float64, evaluated once, where folds would ask for it several times over."""
        gram, source, n = self.gram, self.source, len(self.rows.place)
        if gram is not None and gram.dtype == np.float64:
            return gram.dense()
        if source is None or not self.may_widen or len(self.units) * work < _WIDENED * n * n:
            return None
        with self.widening:
            if self.wide is None:
                self.wide = source.in_float64().pairs().dense(padded=True)
            return self.wide

    def _score(
        self,
        question: FoldProgrammes,
        answer: tuple[Array, Array, Setting],
        scored: Sequence[tuple[Array, tuple[Any, ...]]],
        seconds: float,
    ) -> Judged | None:
        """Score a setting; None where it has no decision function, which a fit explains."""
        started = time.perf_counter()
        values, offsets, setting = answer
        found: list[dict[str, float]] = []  # of rows left out, and of those learnt from
        end = 0
        for index, y in scored:
            begin, end = end, end + len(index)
            try:
                known = question.known(values[:, begin:end], offsets, setting)
            except ValueError:
                return None
            found.append(score(self.task, known, np.empty((len(index), 0)), y, index))
        seen = found[1] if self.task.train_scores else {}
        return Judged(found[0], seen, seconds, time.perf_counter() - started)

    def _refit(self, member: Member, fold: int, stop: Stop) -> Judged:
        def rows() -> Rows:
            return Rows.of(self.task.machine_at(member.point), self.task.X)

        return judge_fit(self.task, rows, fold, stop)

    def _needs_float64(self, source: Source) -> bool:
        """Return whether float32 would not resolve the tolerance, or costs as much."""
        if source.n <= SHARED_FLOAT64_ROWS:
            return True
        tol = min(float(member.machine.tol) for member in self.members)
        return bool(_RESOLVED * np.finfo(np.float32).eps * self._level(source) > tol)

    def _level(self, source: Source) -> float:
        """Return the size of F: that of targets, or what sums of coefficients make of K."""
        targets = self.rows.targets
        asked = float(np.abs(targets).max(initial=0.0)) if targets.dtype.kind == "f" else 1.0
        largest = float(np.abs(source.diag()).max(initial=0.0))
        nu = [m.setting.nu * m.setting.C for m in self.members if m.machine.nu is not None]
        return max(asked, max(nu, default=0.0) * largest * float(self.rows.weight.sum()))


@register(SVC, SVR, OneClassSVM)
def margins(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group the points of support vector machines by kernel, where a walk can answer them."""
    if not asks_only_for_answers(task.scorers, task.machine):
        return []
    machines = [task.machine_at(point) for point in points]
    members = [
        Member(position, point, machine, setting_of(machine))
        for position, (point, machine) in enumerate(zip(points, machines, strict=True))
        if _shareable(machine)
    ]
    try:
        return _grouped(task, members)
    except (TypeError, ValueError, MemoryError):
        return []  # fits will say, each, what is wrong


def _shareable(machine: Any) -> bool:
    """Return whether a machine asks for nothing but programmes that differ by factors."""
    try:  # what a fit would refuse is fitted, so that it is refused
        getattr(machine, "_check_parameters", machine._check_solving)()
    except (TypeError, ValueError):
        return False
    plain = (
        machine.criterion == "violation"
        and machine.max_iter is None
        and machine.time_limit is None
        and machine.callback is None
        and not getattr(machine, "probability", False)
    )
    if not plain:
        return False
    costs = getattr(machine, "C", 1.0), getattr(machine, "epsilon", 0.0)
    if not all(is_real(cost) and 0 <= cost < HARDEST for cost in costs) or costs[0] == 0:
        return False
    return machine.nu is None or (is_real(machine.nu) and 0 < machine.nu <= 1)


def _grouped(task: Task, members: Sequence[Member]) -> list[Group]:
    by_kernel: list[tuple[Kernel, float, list[Member]]] = []
    rows: dict[bool, Sorted] = {}
    named: dict[str, Kernel] = {}
    several: bool | None = None  # lowest points on a given matrix
    budget = memory_budget()
    for member in members:
        kernel = member.machine.kernel
        given = _is_given(member.machine)
        if given not in rows:
            rows[given] = sorted_rows(task, member.machine, given)
        if isinstance(kernel, str):
            if kernel not in named:
                named[kernel] = resolve(kernel, rows[given].X, rows[given].weight)
            kernel = named[kernel]
        kernel = resolve(kernel)
        if given and several is None:
            several = indefinite(rows[given].X)
        if given and several:
            continue
        held = next((one for one in by_kernel if one[0] == kernel), None)
        if held is None:
            asked = rows[given]
            below = stored_below(kernel, asked.X, len(asked.place), asked.names, budget)
            held = (kernel, below, [])
            by_kernel.append(held)
        if member.setting.C < held[1]:
            held[2].append(member)
    kept = [(kernel, some) for kernel, _, some in by_kernel if some]
    parts = _parts([kernel for kernel, _ in kept], rows.get(False))
    return [
        Margins(task, rows[isinstance(kernel, Precomputed)], kernel, some, parts, budget)
        for kernel, some in kept
    ]


def _parts(kernels: Sequence[Kernel], rows: Sorted | None) -> Parts:
    """Return what the kernels have in common."""
    if rows is None:
        return Parts([], np.empty((0, 0)))
    told = [kernel for kernel in kernels if not isinstance(kernel, Precomputed)]
    return Parts([bind_columns(kernel.expression(), rows.names) for kernel in told], rows.X)


def _is_given(machine: Any) -> bool:
    kernel = machine.kernel
    return isinstance(kernel, Precomputed) or kernel == "precomputed"


def _of_answers(task: Task, rows: Sorted, members: Sequence[Member]) -> float:
    """Return the bytes of all answers of the units at work."""
    classes = len(np.unique(rows.targets)) if isinstance(task.machine, SVC) else 2
    judged = len(rows.place) if task.train_scores else max(len(test) for _, test in task.splits)
    at_work = min(len(task.splits), call_threads(np.inf))
    return at_work * len(members) * of_answers(len(rows.place), classes, judged)


def _questions(members: Sequence[Member]) -> list[list[Member]]:
    """Take members together that differ by factors only."""
    found: list[tuple[dict[str, Any], list[Member]]] = []
    for member in members:
        params = same_question(member.machine)
        held = next((some for other, some in found if other == params), None)
        if held is None:
            found.append((params, held := []))
        held.append(member)
    return [some for _, some in found]


def _feasible(question: FoldProgrammes, member: Member) -> bool:
    """Return whether there is an answer: not for every nu."""
    if member.machine.nu is None:
        return True
    try:
        for number in range(question.count):
            question.problem(number, member.setting)
    except ValueError:
        return False
    return True
