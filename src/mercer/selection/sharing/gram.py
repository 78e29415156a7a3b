"""One kernel matrix for all folds and candidates, common parts of kernels, and sorted rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.utils import get_tags

from mercer.array_types import Array, Points
from mercer.expression import (
    Add,
    Constant,
    Exp,
    Expression,
    Mul,
    Opaque,
    Pow,
    Statistic,
    bind_columns,
    walk,
)
from mercer.gram import Source
from mercer.gram.policy import SHARED_ROWS_PER_FEATURE
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.kernels.features import dimension
from mercer.machines.base.approximate import is_exact
from mercer.machines.base.inputs import training_rows_alone
from mercer.machines.base.sharing import SharedMatrix
from mercer.machines.base.targets import check_weights, refuse_targets
from mercer.resources import MemoryBudgetError, call_threads
from mercer.rows.points import is_objects, is_sparse, row_count, take
from mercer.selection.folds import FitRows, take_square
from mercer.selection.sharing.base import (
    Group,
    Judged,
    Stop,
    asks_only_for_answers,
    judge_fit,
    register,
)
from mercer.selection.task import Point, Task

# --- gram ----------------------------------------------------------------------------------------
#
# One matrix for all folds and points of a kernel: folds read their rows and columns from it.
#
# Machines are refitted for each point and fold, but their kernel is evaluated once. This is
# possible where a fit and its answers need nothing but k(x_i, x_j); where they need more (the
# rows themselves, or k(z, z) of new rows), or scorers may look at the rows, each fit evaluates
# the kernel anew. So it does where that is sooner done than checking a given matrix: rows of few
# numbers.

_COPIES = 5  # for each fit at work: the matrix of its fold, and what its solver makes of it
_GRAM_WIDE = 200  # columns: fewer, and a kernel is evaluated sooner than a matrix is checked


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

    def _rows(self, parts: _Parts, point: Point) -> FitRows:
        machine = self.task.machine_at(point).set_params(kernel=Precomputed())
        return _Cut(machine, parts, True)


class _Parts:
    """The matrix among rows learnt from, and that of rows judged by against them."""

    def __init__(self, train: Any, test: Any) -> None:
        self.inside, self.across = train, test


class _Cut(FitRows):
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
    return is_sparse(rows) or rows.shape[1] >= _GRAM_WIDE


# --- parts ---------------------------------------------------------------------------------------
#
# Parts that several kernels of a grid have in common: evaluated once, put together by rules.
#
# 0.5 * Spectrum(3) + Gaussian(2.0), and the same with another weight or scale, need the matrix of
# the spectrum kernel once. Only parts that cost more to evaluate than a matrix costs to read are
# kept: functions of two blocks (strings, the user's own) and statistics of many columns, such as
# the squared distances that Gaussians of all scales are made of. Of numbers in few columns the
# whole formula is evaluated anew, tile by tile, in less time than parts take to add.

_PARTS_WIDE = 1500  # columns: at half of that, evaluating distances takes as long as an exponential


class Parts:
    """Matrices of parts that are common to several formulas on the same rows.

    Parameters
    ----------
    formulas : sequence of Expression
        The kernels of a grid, each once.
    X : Points
        All rows.
    """

    def __init__(self, formulas: Sequence[Expression], X: Points) -> None:
        uses = Counter(part for formula in formulas for part in set(costly(formula, X)))
        self._common = {part for part, count in uses.items() if count > 1}
        self._matrices: dict[tuple[Expression, Any], Array] = {}

    @property
    def count(self) -> int:
        """Count the matrices that are kept."""
        return len(self._common)

    def has_part_of(self, source: Source) -> bool:
        """Return whether K is put together from parts that are kept."""
        return any(part in self._common for part in walk(source.expression))

    def dense(self, source: Source, *, padded: bool = False) -> Array:
        """Return K, from its parts where it has common ones; else its rows may be `padded`."""
        if not self.has_part_of(source):
            return source.pairs().dense(padded=padded)
        K = self._put_together(source.expression, source)
        # a part alone is K itself, and stays as it is
        return np.array(K, dtype=source.dtype, order="C")

    def _put_together(self, formula: Expression, source: Source) -> Any:
        """Return a matrix, or a number for a constant."""
        if isinstance(formula, Constant):
            return source.dtype.type(formula.value)
        if formula in self._common:
            return self._part(formula, source)
        if isinstance(formula, Add):
            return reduce(np.add, (self._put_together(one, source) for one in formula.terms))
        if isinstance(formula, Mul):
            return reduce(np.multiply, (self._put_together(one, source) for one in formula.factors))
        if isinstance(formula, Pow):
            return self._put_together(formula.base, source) ** source.dtype.type(formula.exponent)
        if isinstance(formula, Exp):
            return np.exp(self._put_together(formula.of, source))
        return replace(source, expression=formula).pairs().dense()

    def _part(self, part: Expression, source: Source) -> Array:
        key = (part, source.dtype)
        if key not in self._matrices:
            self._matrices[key] = replace(source, expression=part).pairs().dense()
        return self._matrices[key]


def costly(formula: Expression, X: Points) -> list[Expression]:
    """Return the parts of a formula that are worth keeping; row terms are not looked into."""
    wide = not is_objects(X) and (is_sparse(X) or X.shape[1] >= _PARTS_WIDE)
    return [
        part
        for part in walk(formula)
        if isinstance(part, Opaque) or (wide and isinstance(part, Statistic))
    ]


# --- sorted rows ---------------------------------------------------------------------------------
#
# Rows in the order in which a stored matrix of support vector machines is read best.
#
# They are sorted by class, and within a class by the folds they are judged in, so that what a
# fold learns from is a few long runs.

_SORTED = 32  # folds that rows are sorted by: with more, each leaves few rows out


@dataclass(frozen=True, eq=False)
class Sorted:
    """All rows of a task in the order in which they are stored.

    Attributes
    ----------
    X : Points
        Rows, or the matrix between them.
    names : list of str or None
        Names of the columns.
    place : (n,) int array
        Where each row of the task is.
    targets : (n,) array
        Labels or targets, in the new order; zeros where there are none.
    weight : (n,) array
        How often each row counts, in the new order.
    classes : int
        How many labels there are; zero where targets are no labels.
    """

    X: Points
    names: list[str] | None
    place: Array
    targets: Array
    weight: Array
    classes: int = 0


def sorted_rows(task: Task, machine: Any, given: bool) -> Sorted:
    """Check all rows, and sort them by class and fold."""
    witness = clone(machine)
    X = training_rows_alone(witness, task.X, given)
    n = row_count(X)
    labelled = is_classifier(machine)
    targets = np.zeros(n) if is_outlier_detector(machine) else _targets(task, labelled, n)
    weight = check_weights(machine, task.weights, n)
    splits = task.splits[:_SORTED]
    keys = np.zeros((len(splits) + 1, n), dtype=np.int64)
    for key, (train, _) in zip(keys, splits, strict=False):
        key[train] = 1
    classes = 0
    if labelled:
        labels, keys[-1] = np.unique(targets, return_inverse=True)
        classes = len(labels)
    order = np.lexsort(keys)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    names = getattr(witness, "feature_names_in_", None)
    return Sorted(
        take_square(X, order, order) if given else take(X, order),
        None if names is None else list(names),
        place,
        targets[order],
        weight[order],
        classes,
    )


def _targets(task: Task, labelled: bool, n: int) -> Array:
    y = np.asarray(task.y)
    if y.shape != (n,):
        raise ValueError("there must be one label or target for each row")
    if labelled:
        refuse_targets(y)
        return y
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("targets must be finite")
    return y
