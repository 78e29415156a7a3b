"""Nearest neighbors in feature space, graphs of them, and connected components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.neighbor_order import closeness
from mercer.backends.operands import operand
from mercer.expression import AbsDist, Pow, SqDist, Statistic, bind_columns, walk
from mercer.gram.accurate_products import gamma
from mercer.gram.base import Cross, Expansion, Gram, columns_of, exact
from mercer.gram.evaluated import CachedGram, DenseGram, LazyGram, Source, mapped_once
from mercer.gram.precomputed import rectangle, symmetrised
from mercer.gram.sparse import SparseCross, SparseGram
from mercer.kernels import Kernel, Precomputed
from mercer.resources import require_memory
from mercer.rows.chunks import in_pieces
from mercer.rows.points import is_objects, is_sparse, row_count, take, to_dense

# --- neighbours ----------------------------------------------------------------------------------
#
# The nearest training points in feature space, for each training point or each new one.

# of the largest number in a comparison: what sums in another order may differ by
ROUNDINGS = 16 * float(np.finfo(np.float64).eps)
_ROUNDINGS_OF_A_SUM = 16  # beside two for each feature, as tiles add up products
_DIGITS = 1e11 * float(np.finfo(np.float64).eps)  # of a larger distance ten digits are left
_AT_ONCE = 4096  # rows whose differences from one row are held together
_LONG = 1e4  # k(z, z) over the largest k(x, x), from where on four digits of distances are lost
_SEARCHED = 4  # arrays of features of new points: they, their bound copy, and float32 guesses
_QUERIES = 256  # new points that are compared with all others at a time


def neighbours(source: Source, count: int, Z: Points | None = None) -> tuple[Array, Array]:
    """Find the nearest training points by |phi(z) - phi(x)|^2 = k(z, z) + k(x, x) - 2 k(z, x).

    Parameters
    ----------
    source : Source
        The kernel and the training points.
    count : int
        How many to find, at least 1.
    Z : Points, optional
        New points; the training points themselves when not given, each without itself.

    Returns
    -------
    index : (m, count) int64 array
        Numbers of training points, nearest first, ties to the smallest number.
    squared : (m, count) float64 array
        Their squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> source = Source(Gaussian(1.0).expression(), np.array([[0.0], [1.0], [3.0]]))
    >>> neighbours(source, 1)[0].ravel()
    array([1, 0, 1])
    >>> neighbours(source, 2, np.array([[2.5]]))[0]
    array([[2, 1]])
    """
    there = source.n - 1 if Z is None else source.n
    if not 1 <= count <= there:
        raise ValueError(f"{count} neighbours were asked for, but a row can have 1 to {there} here")
    index, squared = _searched(source, count, Z)
    bad = np.flatnonzero((index < 0).any(axis=1))
    if len(bad):
        shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"kernel value not finite: {len(bad)} row(s) of X ({shown}) are at no finite distance "
            f"from {count} others. Scale the features, or use a smaller degree."
        )
    if Z is not None and not closeness(source.expression).direct:
        _search_again(source, Z, index, squared)
    return index, squared


def _searched(source: Source, count: int, Z: Points | None) -> tuple[Array, Array]:
    """Search; features of new points are written a few at a time."""
    search = choose_backend().neighbours
    if Z is None:
        return search(source.expression, source.X, None, count)
    bound = mapped_once(source.expression, source.X)
    if not bound.width:
        return search(source.expression, Z, source.X, count)

    def found(rows: Points) -> Array:
        return np.stack(search(bound.expression, bound.of(rows), bound.points, count), axis=1)

    both = in_pieces(found, Z, bound.width, _SEARCHED)
    return both[:, 0].astype(np.int64), np.ascontiguousarray(both[:, 1])


def _search_again(source: Source, Z: Points, index: Array, squared: Array) -> None:
    """Search anew, without k(z, z), for new points beside whose k(z, z) all others lose digits.

    It is the same in all distances of z, and only their differences count.
    """
    lengths = source.diag()
    own = choose_backend().diagonal(source.expression, Z, np.float64)
    longest = float(np.abs(lengths).max(initial=0.0))
    again = np.flatnonzero(own > _LONG * longest)
    for part in np.array_split(again, len(again) // _QUERIES + 1):
        deadline.check()
        far = take(Z, part)
        pairs = choose_backend().pairs(source.expression, far, source.X, np.float64)
        key = lengths - 2.0 * np.asarray(pairs.dense())
        chosen = np.argsort(key, axis=1, kind="stable")[:, : index.shape[1]]
        index[part] = chosen
        squared[part] = np.maximum(np.take_along_axis(key, chosen, axis=1) + own[part, None], 0.0)


def is_exact(source: Source) -> bool:
    """Return whether `neighbours` compares rows by squared differences of their entries.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, Laplacian
    >>> X = np.zeros((2, 1))
    >>> [is_exact(Source(kernel(1.0).expression(), X)) for kernel in (Gaussian, Laplacian)]
    [True, False]
    """
    order = closeness(source.expression)
    return order.direct and order.key == SqDist()


@singledispatch
def nearness(gram: Gram, points: Array) -> tuple[Array, Array]:
    """Return what neighbours are ordered by, in float64, and how much of it may be rounding.

    Parameters
    ----------
    gram : Gram
        K.
    points : (m,) int array
        Some of its points.

    Returns
    -------
    key : (m, n) array
        Rises with the distance from each of these points to all points: half the squared distance
        in feature space minus half of k(x, x) of the point, or a distance of the rows themselves if
        that has the same order and loses no digits.
    rounding : (m, n) array
        What rounding may have changed a key by; zeros where that is a share of the key.
    """
    lengths = gram.diag()
    key = 0.5 * lengths - np.asarray(gram.rows(points), dtype=np.float64)
    return key, np.asarray(gamma(_ROUNDINGS_OF_A_SUM + gram.rank) * _longer(lengths, points))


def _longer(lengths: Array, points: Array) -> Array:
    own = 0.5 * np.abs(lengths)  # of halves: twice the longest vector may be out of range
    return np.asarray(own[points, None] + own)


def _compare_again(key: Array, Z: Array, X: Points, kind: type[Statistic]) -> None:
    """Compute distances anew, by differences of entries, that are small beside the rows.

    Tiles compare dense rows around their mean, which a single one far away takes from the others,
    and sparse ones by products: both are rounded in the size of the rows.
    """
    power = 2.0 if kind is SqDist else 1.0
    Z = np.asarray(Z, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.abs(Z if is_sparse(X) else Z - X.mean(axis=0)) ** power
        doubtful = _DIGITS * (2 * X.shape[1] + _ROUNDINGS_OF_A_SUM) * far.sum(axis=1)
        for row, at in enumerate(Z):
            deadline.check()
            # (rows that are farther from the mean are not near this one by rounding alone)
            again = np.flatnonzero(~(key[row] > doubtful[row]))
            for part in np.array_split(again, len(again) // _AT_ONCE + 1):
                apart = np.abs(to_dense(take(X, part)).astype(np.float64) - at)
                key[row, part] = (apart**power).sum(axis=1)


@nearness.register(DenseGram)
@nearness.register(CachedGram)
@nearness.register(LazyGram)
def _(gram: DenseGram | CachedGram | LazyGram, points: Array) -> tuple[Array, Array]:
    source = gram.source
    order = closeness(source.expression)
    pairs = choose_backend().pairs(order.key, take(source.X, points), source.X, np.float64)
    key = np.array(pairs.rows(slice(0, len(points))))
    if order.direct and isinstance(order.key, SqDist | AbsDist):
        rows = operand(order.key, source.X)
        _compare_again(key, to_dense(take(rows, points)), rows, type(order.key))
    if order.direct:
        return key, np.zeros(key.shape)
    lengths = source.diag()
    rounding = np.asarray(_of_a_kernel(source) * _longer(lengths, points))
    return np.asarray(0.5 * key - 0.5 * lengths[points, None]), rounding


def _of_a_kernel(source: Source) -> float:
    """Return what k(x, y) rounds by, over k(x, x) + k(y, y).

    Sums over features round by gamma_d of the product of lengths, Higham (3.5), and a power p of
    them by p times as much.
    """
    powers = [abs(at.exponent) for at in walk(source.expression) if isinstance(at, Pow)]
    width = 0 if is_objects(source.X) else source.X.shape[1]
    return 2.0 * gamma(int((width + _ROUNDINGS_OF_A_SUM) * max([1.0, *powers])))


# --- components ----------------------------------------------------------------------------------
#
# Which points of a graph hang together: a Gram read as weights of edges.

_ENTRIES_AT_ONCE = 1 << 22


def components(gram: Gram) -> Array:
    """Return the connected components numbers, the largest first.

    Points are joined where K_ij is not zero. In a full matrix one row mostly reaches everybody,
    and no more rows are read than that takes.

    Parameters
    ----------
    gram : Gram
        K.

    Returns
    -------
    (n,) int array
        The number of each point's component; of equally large ones the one with the first point
        comes first.
    """
    if gram.csr is not None:
        found = np.asarray(connected_components(gram.csr, directed=False)[1], dtype=np.int64)
    else:
        # single precision underflows where double does not: the type of storage decides nothing
        found = _by_rows(exact(gram) if gram.dtype == np.float32 else gram)
    return _largest_first(found)


def _by_rows(gram: Gram) -> Array:
    n = gram.shape[0]
    number = np.full(n, -1, dtype=np.int64)
    step = max(1, min(64, _ENTRIES_AT_ONCE // max(n, 1)))  # few: one mostly is enough
    count = 0
    for seed in range(n):
        if number[seed] >= 0:
            continue
        number[seed] = count
        frontier = np.array([seed])
        while len(frontier):
            reached = []
            for first in range(0, len(frontier), step):
                unseen = number < 0
                if not unseen.any():
                    return number
                joined = gram.rows(frontier[first : first + step]) != 0
                fresh = np.flatnonzero(joined.any(axis=0) & unseen)
                number[fresh] = count
                reached.append(fresh)
            frontier = np.concatenate(reached)
        count += 1
    return number


def _largest_first(number: Array) -> Array:
    sizes = np.bincount(number)
    first = np.full(len(sizes), len(number))
    np.minimum.at(first, number, np.arange(len(number)))
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[order] = np.arange(len(sizes))
    return np.asarray(rank[number])


# --- graph ---------------------------------------------------------------------------------------
#
# Graphs of nearest neighbours: few edges in place of n^2 similarities.
#
# An edge runs from a point to each of its nearest others in feature space. The graph is
# symmetrised as the mean of both directions, so an edge that only one end asked for counts half.

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
