"""Which points of a grid of support vector machines descend on one stored K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.expression import bind_columns
from mercer.gram.definite import looks_indefinite
from mercer.gram.sizes import stored_below
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.sharing import Sharing
from mercer.points import take
from mercer.problems import MarginPath
from mercer.resources import memory_budget
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group
from mercer.selection.sharing.known import asks_for_probabilities, asks_only_for_answers
from mercer.selection.sharing.margin.asking import GridPoint
from mercer.selection.sharing.margin.group import Margins, OneKernel
from mercer.selection.sharing.margin.several_kernels import side_by_side
from mercer.selection.sharing.parts import Parts
from mercer.selection.sharing.share import register
from mercer.selection.sharing.sorted_rows import Sorted, sorted_rows


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
