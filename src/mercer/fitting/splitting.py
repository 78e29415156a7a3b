"""Rows to learn from and rows to judge by, whatever the order of rows and columns in the table.

Rows are first put into an order of their own, by a hash of what is in them, so that a table that
was sorted, or comes in another order tomorrow, is split alike. Rows that are alike in all columns
but the target go to the same side: a model must not be judged by rows that it has seen.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.array_types import Array
from mercer.fitting.targets import target_values

if TYPE_CHECKING:
    from mercer.data import Table

_MISSING = 0x9E3779B97F4A7C15  # any number will do
_EARLIEST = 2  # rows of a class that stay with those learnt from


@dataclass(frozen=True, eq=False)
class Split:
    """A table in two.

    Attributes
    ----------
    train, held_out : Table
        Columns without the target.
    train_target, held_out_target : arrays
        Labels or numbers.
    train_rows, held_out_rows : int arrays
        Which rows of the table these are.
    """

    train: Table
    train_target: Array
    held_out: Table
    held_out_target: Array
    train_rows: Array
    held_out_rows: Array


def split(
    table: Table, target: str, *, task: str, test: float = 0.2, random_state: int = 0
) -> Split:
    """Split a table as `mercer.fit` does: seeded, classes in their shares, equal rows together.

    Parameters
    ----------
    table : Table
        All rows have a target.
    target : str
        The column that is predicted.
    task : {"classification", "regression"}
        What the target is.
    test : float
        Share of the rows that are held out; 0 holds out none.
    random_state : int
        The seed.

    Returns
    -------
    Split
        Both parts.

    Examples
    --------
    >>> from mercer.data import Table
    >>> from mercer.fitting import split
    >>> table = Table.of({"x": range(10), "y": ["a", "b"] * 5})
    >>> parts = split(table, "y", task="classification", test=0.4)
    >>> len(parts.train), sorted(parts.held_out_target.tolist())
    (6, ['a', 'a', 'b', 'b'])
    """
    features, y = table.drop(target), target_values(table, target, task)
    keys = row_keys(features)
    order = np.lexsort([row_keys(table[[target]]), keys])
    labels = y[order] if task == "classification" else np.zeros(len(y))
    held = np.zeros(len(y), dtype=bool)
    rng = np.random.default_rng(random_state)
    if test > 0:
        held[order] = _held_out(keys[order], labels, test, rng)
    train, rest = order[~held[order]], order[held[order]]
    return Split(features.rows(train), y[train], features.rows(rest), y[rest], train, rest)


def _held_out(keys: Array, labels: Array, test: float, rng: np.random.Generator) -> Array:
    """Return which rows are held out, of rows in the order of their keys."""
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    size = np.diff(np.append(first, len(keys)))
    held = np.zeros(len(first), dtype=bool)
    for label in np.unique(labels):  # of the first row of those that are alike
        mine = rng.permutation(np.flatnonzero(labels[first] == label))
        rows = np.cumsum(size[mine])
        if not len(mine):
            continue
        wanted = min(round(test * rows[-1]), max(0, rows[-1] - _EARLIEST))
        held[mine[rows <= wanted]] = True
    return np.repeat(held, size)


def row_keys(table: Table) -> Array:
    """Return a number for each row that depends on its entries by column name, and nothing else.

    Parameters
    ----------
    table : Table
        Any columns.

    Returns
    -------
    (n,) uint64 array
        Equal for equal rows.
    """
    keys = np.zeros(len(table), dtype=np.uint64)
    for name in table.dense_columns:
        salt = np.uint64(_number(name))
        keys += _mixed(_bits(table[name]) ^ salt)
    if table.csr is not None:  # entries that are not stored add nothing
        rows = table.csr.tocsr()
        salts = np.array([_number(name) for name in table.sparse_columns], dtype=np.uint64)
        parts = _mixed(_bits(rows.data) ^ salts[rows.indices])
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(parts, dtype=np.uint64)])
        keys += ends[rows.indptr[1:]] - ends[rows.indptr[:-1]]
    return keys


def _bits(column: Array) -> Array:
    if column.dtype.kind in "mM":
        return column.astype("datetime64[us]").view(np.int64).astype(np.uint64)
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64) + 0.0  # no negative zero
        return np.where(np.isnan(numbers), np.uint64(_MISSING), numbers.view(np.uint64))
    known: dict[Any, int] = {None: _MISSING}
    found = np.empty(len(column), dtype=np.uint64)
    for i, entry in enumerate(column.tolist()):
        if entry not in known:
            known[entry] = _number(str(entry))
        found[i] = known[entry]
    return found


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(x: Array) -> Array:
    """Scatter bits, as splitmix64 ends: sums of mixed numbers hardly ever meet by chance."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
