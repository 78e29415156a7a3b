"""Graphs of nearest neighbours: few edges in place of n^2 similarities.

An edge runs from a point to each of its nearest others in feature space. The graph is symmetrised
as the mean of both directions, so an edge that only one end asked for counts half.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.expression import bind_columns
from mercer.gram.base import Cross, Expansion, columns_of
from mercer.gram.graphs.neighbours import neighbours
from mercer.gram.source import Source
from mercer.gram.storage.precomputed import rectangle, symmetrised
from mercer.gram.storage.sparse import SparseCross, SparseGram
from mercer.kernels import Kernel, Precomputed
from mercer.points import row_count, take
from mercer.resources import require_memory

_ROWS_AT_ONCE = 64  # of the graph; few, so that most of their shared block is on an edge


class EdgeWeight(Enum):
    """What an edge of a neighbour graph weighs."""

    BINARY = "one"
    KERNEL = "the kernel of its ends"


class JoiningRule(ABC):
    """How points are joined to training points."""

    @abstractmethod
    def edges(self, Z: Points | None = None) -> Any:
        """Return the directed edges of new points, or of the training points to others: CSR."""


@dataclass(frozen=True, eq=False)
class NeighbourRule(JoiningRule):
    """Points are joined to the nearest training points in the space of a kernel.

    Attributes
    ----------
    source : Source
        The kernel and the training points.
    count : int
        How many of the nearest training points each point is joined to.
    weight : EdgeWeight
        What such an edge weighs.
    """

    source: Source
    count: int
    weight: EdgeWeight

    def edges(self, Z: Points | None = None) -> Any:
        """Return the directed edges of new points, or of the training points to others: CSR."""
        index, _ = neighbours(self.source, self.count, Z)
        if self.weight is EdgeWeight.BINARY:
            data = np.ones(index.size)
        else:
            data = self._similarity(self.source.X if Z is None else Z, index)
        return _directed(data, index, self.source.n)

    def _similarity(self, Z: Points, index: Array) -> Array:
        """Evaluate k(z, x) along the edges; from a distance, small ones would be rounding."""
        out = np.empty(index.shape)
        for first in range(0, len(index), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            columns, place = np.unique(index[rows], return_inverse=True)
            block = self.source.in_float64().only(columns).cross(take(Z, rows)).dense()
            out[rows] = np.take_along_axis(block, place.reshape(index[rows].shape), axis=1)
        return out.ravel()


@dataclass(frozen=True, eq=False)
class LargestRule(JoiningRule):
    """Points are joined to those with the largest entries in their rows of a given matrix.

    Attributes
    ----------
    matrix : (n, n) array
        The training points against themselves.
    count : int
        How many.
    weight : EdgeWeight
        What an edge weighs; the entry itself for `EdgeWeight.KERNEL`.
    """

    matrix: Array
    count: int
    weight: EdgeWeight

    def edges(self, Z: Points | None = None) -> Any:
        """Keep the largest entries of each row; of the training points' rows not the diagonal."""
        n = len(self.matrix)
        rows = np.array(self.matrix if Z is None else rectangle(Z, n), dtype=np.float64)
        if Z is None:
            np.fill_diagonal(rows, -np.inf)
        index = np.argsort(-rows, axis=1, kind="stable")[:, : self.count]
        data = np.take_along_axis(rows, index, axis=1)
        if self.weight is EdgeWeight.BINARY:
            data = (data > 0).astype(np.float64)
        return _directed(data.ravel(), index, n)


class GraphGram(SparseGram):
    """The symmetrised graph of nearest neighbours.

    Parameters
    ----------
    rule : JoiningRule
        How points are joined. New points are joined to their nearest training
        points by the same rule.
    """

    def __init__(self, rule: JoiningRule) -> None:
        self.rule = rule
        directed = rule.edges()
        matrix = sparse.csr_array((directed + directed.T) * 0.5)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self._take(matrix)

    def cross(self, Z: Points) -> Cross:
        """Join new points to their nearest training points."""
        return SparseCross(self.rule.edges(Z))

    def expand(self, coef: Array) -> Expansion:
        """Expand over the edges of new points."""
        coef = columns_of(coef)
        return GraphExpansion(self.rule, coef, np.zeros(coef.shape[1]))


@dataclass(frozen=True, eq=False)
class GraphExpansion(Expansion):
    """f(z) = sum_i c_i a(z, x_i) + b, over the edges of z."""

    rule: JoiningRule
    coef: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Find the neighbours of new points, and add up."""
        return np.asarray(self.rule.edges(Z) @ self.coef + self.offset)

    def plus(self, offset: Array) -> GraphExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


def neighbour_graph(
    kernel: Kernel,
    X: Points,
    count: int,
    weight: EdgeWeight = EdgeWeight.BINARY,
    names: list[str] | None = None,
) -> GraphGram:
    """Join each point to its nearest others.

    Parameters
    ----------
    kernel : Kernel
        What near is: distances are those of its feature space. For `Precomputed()` the largest
        entries of each row of the matrix are kept.
    X : Points
        The training points; for `Precomputed()` the dense matrix itself.
    count : int
        How many others each point is joined to.
    weight : EdgeWeight
        What an edge weighs.
    names : list of str, optional
        Names of the columns of X, for kernels that speak of columns by name.

    Returns
    -------
    GraphGram
        The mean of the graph and its transpose.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> neighbour_graph(Linear(), np.array([[0.0], [1.0], [3.0]]), 1).dense()
    array([[0. , 1. , 0. ],
           [1. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    """
    require_memory(
        80 * row_count(X) * count,
        f"a graph of {count} neighbours of each of {row_count(X)} points",
        "Use fewer neighbours, or fewer rows.",
    )
    if isinstance(kernel, Precomputed):
        return GraphGram(LargestRule(symmetrised(np.asarray(X)), count, weight))
    source = Source(bind_columns(kernel.expression(), names), X)
    return GraphGram(NeighbourRule(source, count, weight))


def _directed(data: Array, index: Array, n: int) -> Any:
    rows, width = index.shape
    starts = np.arange(rows + 1) * width
    matrix = sparse.csr_array((data, index.ravel(), starts), shape=(rows, n))
    matrix.sum_duplicates()  # sorts the columns
    return matrix
