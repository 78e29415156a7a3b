"""Neighbours by a key that is no distance of rows: float32 tiles guess, float64 decides.

Some more columns than asked for are found by float32 tiles and ordered by their keys in float64. A
row is done if all other columns are farther even when its bound of the rounding is taken off; the
few that are not are searched again in float64 tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.lowering.inputs import operand, stays_sparse
from mercer.backends.lowering.lower import lower
from mercer.backends.lowering.paired import PairedRows
from mercer.backends.lowering.rounding import is_bounded, tile_error
from mercer.expression import Dot, Expression, RowSum, SelfValue, SqDist, add, multiply, walk
from mercer.points import row_count, take

Bind = Callable[[Expression, Points, Points | None, Any], Any]
_FEW_COLUMNS = 1024  # float64 tiles are as quick
_FEW_ROWS = 64
_TRIED = 128  # rows that show whether guesses are any good
_GOOD = 0.8  # share of rows that must be done by guesses


@dataclass(frozen=True, eq=False)
class Guess:
    """The nearest columns of each row, and whether they are known to be these."""

    index: Array
    key: Array
    sure: Array


@dataclass(frozen=True, eq=False)
class Guesses:
    """A search by guesses.

    Attributes
    ----------
    bind : callable
        Returns native pairs of an expression, rows, columns (None: the rows) and a type.
    key : Expression
        Small for close pairs.
    guessed : Expression
        The same in a form that compares rows once.
    X, Y : Points
        Rows and columns (None: the rows).
    pairs : PairedRows
        The key at chosen pairs.
    """

    bind: Bind
    key: Expression
    guessed: Expression
    X: Points
    Y: Points | None
    pairs: PairedRows

    def find(self, count: int) -> tuple[Array, Array]:
        """Find the nearest columns of each row, by ascending key, then by number."""
        m = row_count(self.X)
        every = np.arange(m)
        if m <= _FEW_ROWS:
            return self._exactly(every, count)
        error = tile_error(lower(self.guessed), self.X, self._columns)
        error *= 1 + 1e-6  # that of float64, too
        if m > 4 * _TRIED:
            some = np.linspace(0, m - 1, _TRIED).astype(np.int64)
            if self._guess(some, count, error).sure.mean() < _GOOD:
                return self._exactly(every, count)
        found = self._guess(every, count, error)
        again = np.flatnonzero(~found.sure)
        if len(again):
            found.index[again], found.key[again] = self._exactly(again, count)
        return found.index, found.key

    @property
    def _columns(self) -> Points:
        return self.X if self.Y is None else self.Y

    def _guess(self, rows: Array, count: int, error: Array) -> Guess:
        there = row_count(self._columns) - int(self.Y is None)
        more = min(there, count + count // 4 + 3)
        index, rough = self._nearest(self.guessed, rows, more, np.float32)
        found, key = self._decided(index, rows, count)
        beyond = np.inf if more == there else rough[:, -1] - error[rows]
        return Guess(found, key, (index >= 0).all(axis=1) & (beyond > key[:, -1]))

    def _exactly(self, rows: Array, count: int) -> tuple[Array, Array]:
        there = row_count(self._columns) - int(self.Y is None)
        index, _ = self._nearest(self.key, rows, min(there, count + count // 4 + 3), np.float64)
        return self._decided(index, rows, count)

    def _decided(self, index: Array, rows: Array, count: int) -> tuple[Array, Array]:
        """Order candidates by their keys in float64 and keep the first ones."""
        key = self.pairs.at(index, rows)
        missing = (index < 0) | ~(key < np.inf)
        index, key = np.where(missing, -1, index), np.where(missing, np.inf, key)
        order = np.lexsort((index, key), axis=1)[:, :count]
        return np.take_along_axis(index, order, axis=1), np.take_along_axis(key, order, axis=1)

    def _nearest(self, key: Expression, rows: Array, count: int, dtype: Any) -> tuple[Array, Array]:
        """Find candidates by tiles; where Y is X, without the row itself."""
        if len(rows) == row_count(self.X):
            found: tuple[Array, Array] = self.bind(key, self.X, self.Y, dtype).nearest(count, None)
            return found
        some = take(self.X, rows)
        if self.Y is not None:
            index, value = self.bind(key, some, self.Y, dtype).nearest(count, None)
            return index, value
        index, value = self.bind(key, some, self.X, dtype).nearest(count + 1, None)
        own = index == rows[:, None]
        own[~own.any(axis=1), -1] = True  # one entry of each row goes
        shape = (len(rows), count)
        return index[~own].reshape(shape), value[~own].reshape(shape)


def guesses(bind: Bind, key: Expression, X: Points, Y: Points | None, count: int) -> Guesses | None:
    """Return the search, or None where the key has no bound of its rounding or it does not pay."""
    columns = X if Y is None else Y
    program = lower(key)
    if row_count(columns) < max(_FEW_COLUMNS, 8 * count) or not is_bounded(program):
        return None
    for leaf in program.leaves:
        if stays_sparse(operand(leaf, X), None if Y is None else operand(leaf, Y), np.float64):
            return None
    return Guesses(bind, key, compared_once(key), X, Y, PairedRows.of(program, X, columns))


def compared_once(key: Expression) -> Expression:
    """Write x'y as (|x|^2 + |y|^2 - |x - y|^2) / 2 where the distance is there anyway.

    Examples
    --------
    >>> len(lower(compared_once(Dot() * SqDist())).leaves)
    1
    """
    steps = {leaf.steps for leaf in walk(key) if isinstance(leaf, SqDist)}

    def rewrite(value: Any) -> Any:
        if isinstance(value, Dot) and value.steps in steps:
            lengths = RowSum(SelfValue(value))
            return add(multiply(0.5, lengths), multiply(-0.5, SqDist(value.steps)))
        if isinstance(value, Expression):
            return type(value)(**{f.name: rewrite(getattr(value, f.name)) for f in fields(value)})
        return tuple(map(rewrite, value)) if isinstance(value, tuple) else value

    rewritten: Expression = rewrite(key)
    return rewritten
