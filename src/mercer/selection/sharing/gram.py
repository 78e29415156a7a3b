"""One matrix for all folds and points of a kernel: folds read their rows and columns from it.

Machines are refitted for each point and fold, but their kernel is evaluated once. This is possible
where a fit and its answers need nothing but k(x_i, x_j); where they need more (the rows themselves,
or k(z, z) of new rows), or scorers may look at the rows, each fit evaluates the kernel anew. So it
does where that is sooner done than checking a given matrix: rows of few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from mercer.array_types import Array, Points
from mercer.expression import Expression, Opaque, bind_columns, walk
from mercer.gram import Source
from mercer.gram.policy import SHARED_ROWS_PER_FEATURE
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.kernels.features import dimension
from mercer.machines.base.approximate import is_exact
from mercer.machines.base.inputs import training_rows_alone
from mercer.machines.base.sharing import SharedMatrix
from mercer.points import is_objects, is_sparse, row_count
from mercer.resources import MemoryBudgetError, call_threads
from mercer.selection.running.rows import Rows, take_square
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.known import asks_only_for_answers
from mercer.selection.sharing.parts import Parts
from mercer.selection.sharing.refit import judge_fit
from mercer.selection.sharing.share import register

_COPIES = 5  # for each fit at work: the matrix of its fold, and what its solver makes of it
_WIDE = 200  # columns: fewer, and a kernel is evaluated sooner than a matrix is checked


class OneGram(Group):
    """Points of one kernel, fold by fold.

    Parameters
    ----------
    task : Task
        What is tuned.
    points : sequence of dict
        All points.
    positions : sequence of int
        Those that have this kernel.
    source : Source
        The kernel on all rows.
    parts : Parts
        What it has in common with others.
    """

    def __init__(
        self,
        task: Task,
        points: Sequence[Point],
        positions: Sequence[int],
        source: Source,
        parts: Parts,
    ) -> None:
        self.task, self.source, self.parts = task, source, parts
        self.points = tuple(positions)
        self.units = tuple((fold,) for fold in range(len(task.splits)))
        self.size = 8.0 * source.n**2 * (1 + parts.count + _COPIES * call_threads(np.inf))
        self._settings = {position: points[position] for position in positions}
        self._K: Array | None = None

    def prepare(self) -> None:
        """Evaluate the kernel."""
        self._K = self.parts.dense(self.source)

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Fit each point to the rows of a fold, with parts of the matrix in place of rows."""
        (fold,) = self.units[unit]
        train, test = self.task.splits[fold]
        parts = _Parts(take_square(self._K, train, train), take_square(self._K, test, train))
        found = {}
        for position, point in self._settings.items():
            judged = judge_fit(self.task, partial(self._rows, parts, point), fold, stop)
            if judged.failure.startswith(MemoryBudgetError.__name__):
                raise MemoryBudgetError(judged.failure)  # without a stored matrix there is a way
            found[position, fold] = judged
        return found

    def release(self) -> None:
        """Drop the matrix."""
        self._K = None

    def _rows(self, parts: _Parts, point: Point) -> Rows:
        machine = self.task.machine_at(point).set_params(kernel=Precomputed())
        return _Cut(machine, parts, True)


class _Parts:
    """The matrix among rows learnt from, and that of rows judged by against them."""

    def __init__(self, train: Any, test: Any) -> None:
        self.inside, self.across = train, test


class _Cut(Rows):
    """Rows of one fold, cut out already."""

    def train(self, index: Array) -> Any:
        return self.data.inside

    def test(self, index: Array, train: Array) -> Any:
        return self.data.across


@register(SharedMatrix)
def by_gram(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points by their kernel."""
    if get_tags(task.machine).input_tags.pairwise:
        return []  # there is nothing to evaluate
    if not asks_only_for_answers(task.scorers, task.machine):
        return []
    rows, names = checked_rows(task)
    by_kernel: list[tuple[Kernel, list[int]]] = []
    for position, kernel in kernels_of(task, points, rows).items():
        for known, positions in by_kernel:
            if known == kernel:
                positions.append(position)
                break
        else:
            by_kernel.append((kernel, [position]))
    formulas = [bind_columns(kernel.expression(), names) for kernel, _ in by_kernel]
    parts = Parts(formulas, rows)
    return [
        OneGram(task, points, positions, Source(formula, rows, np.dtype(np.float64)), parts)
        for formula, (_, positions) in zip(formulas, by_kernel, strict=True)
        if _is_costly(formula, rows)
    ]


def checked_rows(task: Task) -> tuple[Points, list[str] | None]:
    """Return all rows as a machine would take them, and the names of their columns.

    Rows that no machine could take are an error of the whole task, told by their place in it.
    """
    witness = clone(task.machine)
    rows = training_rows_alone(witness, task.X, False)
    names = getattr(witness, "feature_names_in_", None)
    return rows, None if names is None else list(names)


def kernels_of(task: Task, points: Sequence[Point], rows: Points) -> dict[int, Kernel]:
    """Return the kernel of each point that has one; given matrices and features are left out.

    Kernels given by name take their scale from all rows, those of test folds included.
    """
    found: dict[int, Kernel] = {}
    for position, point in enumerate(points):
        try:
            machine = task.machine_at(point)
            kernel = resolve(machine.kernel, rows, task.weights)
        except (ValueError, TypeError):
            continue  # refitting will say what is wrong with it
        if is_exact(machine) and not isinstance(kernel, Precomputed):
            found[position] = kernel
    return found


def _is_costly(expression: Expression, rows: Points) -> bool:
    """Return whether evaluating the kernel takes longer than reading a matrix and checking it."""
    if is_objects(rows) or any(isinstance(part, Opaque) for part in walk(expression)):
        return True
    features = dimension(expression, rows.shape[1])
    if features is not None and SHARED_ROWS_PER_FEATURE * features < row_count(rows):
        return False
    return is_sparse(rows) or rows.shape[1] >= _WIDE
