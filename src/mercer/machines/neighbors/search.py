"""Search for nearest or most similar samples, and votes of neighbors."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.deadline import check
from mercer.expression import SQUARABLE, Dot, Expression
from mercer.gram import Source
from mercer.gram.graph import neighbours
from mercer.gram.precomputed import rectangle
from mercer.machines.base.targets import DistinctRows
from mercer.resources import rows_at_once
from mercer.rows.points import is_objects, row_count

# --- nearest samples -----------------------------------------------------------------------------
#
# Search by distance, in a space of samples or in a given matrix.

_BLOCK = 2048  # rows compared at a time, if the memory budget allows


@dataclass(frozen=True, eq=False)
class FoundRows:
    """The nearest training rows of some rows, nearest first, ties to the smallest number.

    Attributes
    ----------
    index : (m, count) int array
        Numbers of training rows.
    key : (m, count) array
        What they are ordered by, ascending: squared distances, half of them up to a constant for
        each row, or similarities with their sign turned.
    similarity : (m, count) array
        k(z, x).
    """

    index: Array
    key: Array
    similarity: Array


class NeighbourSearch(ABC):
    """Training rows that can be searched."""

    @abstractmethod
    def among(self, count: int) -> FoundRows:
        """Find the nearest rows of every training row, itself excepted."""

    @abstractmethod
    def of(self, Z: Points, count: int) -> FoundRows:
        """Find the nearest training rows of new rows."""

    @abstractmethod
    def own(self) -> tuple[Array, Array]:
        """Return key and similarity of every training row with itself."""


@dataclass(frozen=True, eq=False)
class RowSearch(NeighbourSearch):
    """Rows and a kernel; the compiled search never stores their matrix.

    Attributes
    ----------
    source : Source
        The kernel and the training rows, divided by the unit.
    unit : float
        What distances of the rows are counted in; see `unit_of`.
    """

    source: Source
    unit: float = 1.0

    def among(self, count: int) -> FoundRows:
        """Compare all training rows."""
        return self._found(*neighbours(self.source, count), self.source)

    def of(self, Z: Points, count: int) -> FoundRows:
        """Compare new rows with training rows."""
        Z = Z if self.unit == 1.0 else Z / self.unit
        new = Source(self.source.expression, Z)
        return self._found(*neighbours(self.source, count, Z), new)

    def own(self) -> tuple[Array, Array]:
        """Return zero, and k(x, x)."""
        diag = self.source.diag()
        return np.zeros(len(diag)), diag

    def _found(self, index: Array, squared: Array, rows: Source) -> FoundRows:
        # halves: the sum of two lengths may be out of range where no similarity is
        with np.errstate(over="ignore", invalid="ignore"):  # refused where votes are made of them
            lengths = 0.5 * rows.diag()[:, None] + 0.5 * self.source.diag()[index]
            return FoundRows(index, squared, lengths - 0.5 * squared)


def unit_of(expression: Expression, X: Points) -> float:
    """Return the power of two by which rows are divided before a linear kernel compares them.

    One for other kernels, and for rows whose squares are numbers. Neighbors do not depend on it.

    Examples
    --------
    >>> from mercer.expression import Dot
    >>> unit_of(Dot(), np.array([[3.0], [1.0]])), unit_of(Dot(), np.array([[0.0], [2.0**-600]]))
    (1.0, 2.409919865102884e-181)
    """
    if not isinstance(expression, Dot) or expression.steps or is_objects(X):
        return 1.0
    exponent = int(np.frexp(float(abs(X).max()) if X.shape[0] * X.shape[1] else 1.0)[1])
    return 1.0 if abs(exponent) <= SQUARABLE else float(np.ldexp(1.0, exponent - 1))


@dataclass(frozen=True, eq=False)
class MatrixSearch(NeighbourSearch):
    """A given matrix; k(z, z) of new rows is not in it, and not needed for the order.

    Attributes
    ----------
    matrix : (n, n) array
        K between the training rows.
    rows : (n,) int array
        Which columns of matrices to come they are.
    given : int
        How many columns these have.
    """

    matrix: Array
    rows: Array
    given: int

    def among(self, count: int) -> FoundRows:
        """Read all rows."""
        return self._nearest(self.matrix, count, own=True)

    def of(self, Z: Points, count: int) -> FoundRows:
        """Read new rows."""
        return self._nearest(rectangle(Z, self.given), count, own=False)

    def own(self) -> tuple[Array, Array]:
        """Return k(x, x) / 2 - k(x, x), and k(x, x)."""
        diag = self.matrix.diagonal().astype(np.float64)
        return -0.5 * diag, diag

    def _nearest(self, K: Array, count: int, own: bool) -> FoundRows:
        lengths = self.matrix.diagonal().astype(np.float64)
        parts = []
        for first in range(0, max(len(K), 1), _BLOCK):
            block = np.asarray(K[first : first + _BLOCK], dtype=np.float64)
            block = block if own else block[:, self.rows]
            key = self._key(block, lengths)
            if own:
                key[np.arange(len(key)), first + np.arange(len(key))] = np.inf
            parts.append(_smallest_of(key, block, count))
        return FoundRows(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _key(self, block: Array, lengths: Array) -> Array:
        """Return half of squared distances less k(z, z): the double may be out of range."""
        return np.asarray(0.5 * lengths - block)


@dataclass(frozen=True, eq=False)
class Copies:
    """Which training rows the distinct rows of a search stand for.

    Attributes
    ----------
    rows : tuple of int arrays
        The copies of each distinct row, ascending.
    owner : dict of int to int
        For each training row that counts, its distinct row.
    """

    rows: tuple[Array, ...]
    owner: dict[int, int]

    def of_new_rows(self, found: FoundRows, count: int) -> tuple[Array, Array]:
        """Return numbers and keys of the nearest copies."""
        if len(self.owner) == len(self.rows):  # no row twice
            return np.concatenate(self.rows)[found.index], found.key
        parts = [self._listed(*pair) for pair in zip(found.index, found.key, strict=True)]
        return self._cut(parts, count)

    def of_training_rows(self, found: FoundRows, own: Array, count: int) -> tuple[Array, Array]:
        """Do the same for the training rows, each without itself."""
        parts = []
        for row in sorted(self.owner):
            place = self.owner[row]
            index = np.concatenate([[place], found.index[place]])
            rows, keys = self._listed(index, np.concatenate([[own[place]], found.key[place]]))
            parts.append((rows[rows != row], keys[rows != row]))
        return self._cut(parts, count)

    def _listed(self, index: Array, key: Array) -> tuple[Array, Array]:
        rows = [self.rows[int(place)] for place in index]
        copies, keys = np.concatenate(rows), np.repeat(key, [len(some) for some in rows])
        order = np.lexsort((copies, keys))
        return copies[order], keys[order]

    @staticmethod
    def _cut(parts: list[tuple[Array, Array]], count: int) -> tuple[Array, Array]:
        rows = np.array([rows[:count] for rows, _ in parts], dtype=np.int64).reshape(-1, count)
        return rows, np.array([keys[:count] for _, keys in parts]).reshape(-1, count)


def copies_of(rows: DistinctRows) -> Copies:
    """Return the training rows behind distinct rows; those of weight zero are nobody's copies."""
    kept = np.flatnonzero(rows.group >= 0)
    order = kept[np.argsort(rows.group[kept], kind="stable")]
    counts = np.bincount(rows.group[kept], minlength=len(rows.first))
    split = tuple(np.split(order, np.cumsum(counts)[:-1]))
    owner = dict(zip(kept.tolist(), rows.group[kept].tolist(), strict=True))
    return Copies(split, owner)


def smallest(key: Array, count: int) -> Array:
    """Return the columns of the smallest numbers of each row, ascending, ties by column.

    Examples
    --------
    >>> smallest(np.array([[3.0, 1.0, 2.0, 1.0, 2.0]]), 3)
    array([[1, 3, 2]])
    """
    if not count:
        return np.zeros((len(key), 0), dtype=np.int64)
    last = np.partition(key, count - 1, axis=1)[:, count - 1 : count]
    chosen = key <= last
    excess = chosen.sum(axis=1) - count
    tied = np.flatnonzero(excess)  # more columns are as large as the last one than have a place
    if len(tied):
        equal = key[tied] == last[tied]
        late = np.cumsum(equal, axis=1) > equal.sum(axis=1, keepdims=True) - excess[tied, None]
        chosen[tied] &= ~(equal & late)
    index = np.nonzero(chosen)[1].reshape(len(key), count)
    order = np.argsort(np.take_along_axis(key, index, axis=1), axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1)


def _smallest_of(key: Array, block: Array, count: int) -> tuple[Array, Array, Array]:
    """Return columns, keys and similarities of the smallest keys of each row."""
    index = smallest(key, count)
    at = np.take_along_axis
    return index, at(key, index, axis=1), at(block, index, axis=1)


def with_copies(
    found: FoundRows, own: tuple[Array, Array], w: Array, copies: Array
) -> tuple[FoundRows, Array]:
    """Put what is left of each row itself among its neighbours, where its distance belongs."""
    key, similarity = own
    joined = FoundRows(
        np.column_stack([found.index, np.arange(len(key))]),
        np.column_stack([found.key, key]),
        np.column_stack([found.similarity, similarity]),
    )
    weight = np.column_stack([w, copies])
    order = np.lexsort((joined.index, joined.key), axis=1)
    at = np.take_along_axis
    turned = FoundRows(*(at(part, order, axis=1) for part in vars(joined).values()))
    return turned, at(weight, order, axis=1)


# --- most similar samples ------------------------------------------------------------------------
#
# Search by the largest similarity instead of the smallest distance.

_ARRAYS = 4  # of a block: similarities, keys, and two while they are sorted


@dataclass(frozen=True, eq=False)
class RowSimilarity(NeighbourSearch):
    """Rows and a kernel; similarities are computed by blocks and not stored.

    Attributes
    ----------
    source : Source
        The kernel and the training rows.
    """

    source: Source

    def among(self, count: int) -> FoundRows:
        """Compare all training rows."""
        return self._most(self.source.X, count, own=True)

    def of(self, Z: Points, count: int) -> FoundRows:
        """Compare new rows with training rows."""
        return self._most(Z, count, own=False)

    def own(self) -> tuple[Array, Array]:
        """Return -k(x, x), and k(x, x)."""
        diag = self.source.diag()
        return -diag, diag

    def _most(self, Z: Points, count: int, own: bool) -> FoundRows:
        cross, m = self.source.cross(Z), row_count(Z)
        step = rows_at_once(self.source.n, _BLOCK, arrays=_ARRAYS)
        parts = []
        for first in range(0, max(m, 1), step):
            check()
            block = np.asarray(cross.rows(slice(first, min(first + step, m))), dtype=np.float64)
            key = -block
            if not np.isfinite(key).all():
                raise ValueError(
                    "kernel value not finite: rows of X are too large to be compared. "
                    "Scale the features, or use a smaller degree."
                )
            if own:
                key[np.arange(len(key)), first + np.arange(len(key))] = np.inf
            parts.append(_smallest_of(key, block, count))
        return FoundRows(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class MatrixSimilarity(MatrixSearch):
    """A given matrix of similarities, which need not be positive semidefinite."""

    def own(self) -> tuple[Array, Array]:
        """Return -k(x, x), and k(x, x)."""
        diag = self.matrix.diagonal().astype(np.float64)
        return -diag, diag

    def _key(self, block: Array, lengths: Array) -> Array:
        return -block


# --- votes ---------------------------------------------------------------------------------------
#
# Votes of neighbors, equal or weighted by similarity, and the class that wins.

Weighing = Callable[[Array, Array], Array]


def plain(ballots: Array, similarity: Array) -> Array:
    """Count every vote once."""
    return ballots


def similar(ballots: Array, similarity: Array) -> Array:
    """Weigh votes by k(z, x); rows of negative similarity do not vote."""
    return np.asarray(ballots * np.maximum(relative(similarity), 0.0))


def signed(ballots: Array, similarity: Array) -> Array:
    """Weigh votes by k(z, x), whatever its sign."""
    return np.asarray(ballots * relative(similarity))


def relative(similarity: Array) -> Array:
    """Divide each row by the power of two above its largest entry: sums of votes are then finite.

    Examples
    --------
    >>> relative(np.array([[1.5e308, -1e308], [3.0, 1.0]]))[1]
    array([0.75, 0.25])
    """
    exponent = np.frexp(abs(similarity).max(axis=1, keepdims=True))[1]
    return np.asarray(np.ldexp(similarity, -exponent))


WEIGHINGS: dict[str, Weighing] = {"plain": plain, "similarity": similar, "signed": signed}


def votes(
    found: FoundRows, w: Array, k: float, codes: Array, count: int, weighing: Weighing = plain
) -> Array:
    """Count the votes of the k nearest rows: (m, classes), none negative.

    A row votes as often as its weight w (m, count) says; the last one only with what is left of k.
    `weighing` says how much a vote counts; where none does, all do. A vote against a class is one
    for the others, in equal parts: with two classes the larger total is the sign of
    sum_n k(z, x_n) (2 y_n - 1).
    """
    ballots = np.clip(k - (np.cumsum(w, axis=1) - w), 0.0, w)
    weighed = weighing(ballots, found.similarity)
    counted = weighed.any(axis=1, keepdims=True)
    ballots = np.where(counted, weighed, ballots)
    cells = np.arange(len(w))[:, None] * count + codes[found.index]
    total = np.bincount(cells.ravel(), np.maximum(ballots, 0.0).ravel(), len(w) * count)
    total = total.reshape(len(w), count)
    against = np.maximum(-ballots, 0.0)
    if against.any():
        lost = np.bincount(cells.ravel(), against.ravel(), len(w) * count).reshape(total.shape)
        total = total + (lost.sum(axis=1, keepdims=True) - lost) / max(count - 1, 1)
    return np.asarray(total)


def warn_of_silent_rows(found: FoundRows, w: Array, k: float, weighing: Weighing) -> None:
    """Warn where neighbours of negative similarity lose their votes."""
    ballots = np.clip(k - (np.cumsum(w, axis=1) - w), 0.0, w)
    lost: Array = np.asarray(((ballots > 0) & (found.similarity < 0)).any(axis=1))
    if weighing is similar and lost.any():
        warnings.warn(
            f"NearestNeighbors: {int(lost.sum())} of {len(lost)} rows have neighbours of negative "
            "similarity, which do not vote with votes='similarity'; with votes='signed' they vote "
            "for the other classes",
            UserWarning,
            stacklevel=3,
        )


def winners(total: Array, found: FoundRows, w: Array, codes: Array) -> Array:
    """Return the class with most votes; of several, the one with the nearest row that counts.

    Classes that only have votes against others may have no such row; then it is the first.
    """
    best = total.max(axis=1, keepdims=True)
    tied: Array = np.asarray(total >= best * (1 - 1e-12))
    choice = total.argmax(axis=1)
    several = np.flatnonzero(tied.sum(axis=1) > 1)
    if len(several):
        near = codes[found.index[several]]
        among = np.logical_and(np.take_along_axis(tied[several], near, axis=1), w[several] > 0)
        first = near[np.arange(len(several)), among.argmax(axis=1)]
        choice[several] = np.where(among.any(axis=1), first, choice[several])
    return np.asarray(choice)
