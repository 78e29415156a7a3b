"""Similarity of tasks: a matrix, read by the numbers of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, FrozenArray, Points
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven
from mercer.points import to_dense


@proven
@dataclass(frozen=True, repr=False)
class Coregionalized(Kernel):
    """k(t, u) = B[t, u] for rows that hold the number of a task, 0, 1, ...

    A product with a kernel of other columns is the intrinsic model of coregionalisation, a sum of
    such products the linear one.

    Parameters
    ----------
    B : array-like of shape (n_tasks, n_tasks)
        Covariance of the tasks, positive semidefinite: the identity for tasks that have nothing in
        common, all ones for one function shared by all.

    Examples
    --------
    >>> from mercer.kernels import Coregionalized, Gaussian
    >>> k = Coregionalized([[1.0, 0.9], [0.9, 2.0]]).on([0]) * Gaussian(1.0).on([1])
    >>> k([[0, 3.0], [1, 3.0]]).tolist()
    [[1.0, 0.9], [0.9, 2.0]]
    """

    B: Sequence[Sequence[float]] | Array

    def __post_init__(self) -> None:
        self._store(B=checks.psd_matrix("Coregionalized", "B", self.B))

    def expression(self) -> Expression:
        """Look the numbers up."""
        assert isinstance(self.B, FrozenArray)
        return ex.Opaque(TaskTable(self.B))


@dataclass(frozen=True)
class TaskTable:
    """Entries of a matrix by the numbers of its rows and columns.

    Attributes
    ----------
    B : FrozenArray
        The matrix.
    """

    B: FrozenArray

    def __call__(self, X: Points, Y: Points) -> Array:
        """Look up all pairs."""
        return np.asarray(self.B.array[np.ix_(self._tasks(X), self._tasks(Y))])

    def self_values(self, X: Points) -> Array:
        """Look up the diagonal."""
        return np.asarray(self.B.array.diagonal()[self._tasks(X)])

    def _tasks(self, X: Points) -> Array:
        """Read the numbers of tasks; refuse what is none."""
        numbers, count = to_dense(X), len(self.B.array)
        if numbers.ndim != 2 or numbers.shape[1] != 1:
            raise ValueError(
                f"Coregionalized reads one column, the number of the task, but was given "
                f"{numbers.shape[1]}; choose it with .on([column])"
            )
        tasks = numbers[:, 0].astype(np.intp)
        wrong = np.flatnonzero((tasks != numbers[:, 0]) | (tasks < 0) | (tasks >= count))
        if len(wrong):
            raise ValueError(
                f"Coregionalized: task {numbers[wrong[0], 0]:g} in row {wrong[0]} must be a whole "
                f"number from 0 to {count - 1}, the last row of B"
            )
        return tasks
