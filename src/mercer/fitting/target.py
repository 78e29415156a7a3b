"""Target of a fit, and the split into training and held-out rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Kind
from mercer.data.column import FEW_LABELS, ROWS, are_labels

if TYPE_CHECKING:
    from mercer.data import Table


# --- targets -------------------------------------------------------------------------------------
#
# The target column: its task, its classes and its rows.

TASKS = ("classification", "regression")
_MOST_CLASSES = 200  # more distinct words are names or text
_SMALLEST = ROWS  # rows of a class: two for training, one for evaluation
_SHOWN = 6  # classes in a message
_LONGEST = 1000  # longest label in characters


@dataclass(frozen=True)
class Target:
    """The target column.

    Attributes
    ----------
    table : Table
        Rows that have a target and belong to a sufficiently large class.
    name : str
        Name of the column.
    task : str
        "classification" or "regression".
    classes : tuple
        Labels, sorted; empty for regression.
    notes : tuple of str
        Decisions about the target.
    left_out : tuple of str
        Notes on rows that were dropped.
    """

    table: Table
    name: str
    task: str
    classes: tuple[Any, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def read_target(table: Table, name: str, task: str | None) -> Target:
    """Determine task and classes of the target, and drop rows without a target.

    Parameters
    ----------
    table : Table
        Table with the target column.
    name : str
        Target column.
    task : str or None
        Task specified by the user.

    Returns
    -------
    Target
        Target with notes on all decisions.
    """
    if name not in table.columns:
        known = ", ".join(map(repr, table.columns[:20]))
        raise ValueError(f"fit: target={name!r} is not a column of the table; choose from {known}")
    if task is not None and task not in TASKS:
        raise ValueError(f"fit: task={task!r} must be 'classification', 'regression' or None")
    if len(table.columns) < 2:
        raise ValueError(f"fit: the table has no columns other than the target {name!r}")
    notes, left_out = [], []
    there = ~missing_of(table[name])
    if not there.any():
        raise ValueError(f"fit: the target {name!r} is missing in every row")
    if not there.all():
        left_out.append(
            f"{int((~there).sum())} of {len(table)} rows have no target and were dropped."
        )
        table = table.rows(there)
    if task is None:
        task, why = _guessed(table, name)
        notes.append(why)
    if task == "regression":
        notes += _check_numbers(table, name)
        return Target(table, name, task, (), (*left_out, *notes), tuple(left_out))
    return _with_classes(table, name, notes, left_out)


def target_values(table: Table, name: str, task: str) -> Array:
    """Return the target as an array for estimators.

    Parameters
    ----------
    table : Table
        Table in which all rows have a target.
    name : str
        Target column.
    task : {"classification", "regression"}
        Determines whether the target is returned as labels or numbers.

    Returns
    -------
    (n,) array
        float64 for regression. For classification, integers if all labels are, otherwise words.
    """
    values = table[name]
    if task == "regression":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind == "f" and (values == np.rint(values)).all():
        return np.asarray(values, dtype=np.int64)
    if values.dtype != object:
        return np.asarray(values)
    # NumPy stores all entries at the length of the longest: one long entry can exhaust memory
    longest = max(map(len, values.tolist()), default=0)
    if longest > _LONGEST:
        raise ValueError(
            f"fit: the target {name!r} has a label of {longest} characters, more than {_LONGEST}: "
            "it is text, not a class; use short labels"
        )
    return np.asarray(values.astype(str))


def missing_of(values: Array) -> Array:
    """Return a mask of the missing entries of a column."""
    if values.dtype == object:
        return np.array([entry is None for entry in values.tolist()], dtype=bool)
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _guessed(table: Table, name: str) -> tuple[str, str]:
    kind, values = table.kinds[name], table[name]
    if kind is Kind.DATE:
        raise ValueError(
            f"fit: the target {name!r} contains dates; convert them to numbers, "
            "such as days until an event"
        )
    if values.dtype.kind in "biuf" and kind is Kind.NUMBER:
        if not are_labels(values):
            return "regression", f"{name!r} is a column of numbers: regression."
        return "classification", (
            f"{name!r} has {len(np.unique(values))} distinct integers, which are used as "
            "classes; for regression, pass task='regression'."
        )
    return "classification", f"{name!r} is a column of kind {kind.value}: classification."


def _check_numbers(table: Table, name: str) -> list[str]:
    values = table[name]
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"fit: task='regression' requires numbers, but the target {name!r} is a column of kind "
            f"{table.kinds[name].value}{_odd_words(values)}"
        )
    bad = np.flatnonzero(~np.isfinite(values.astype(np.float64)))
    if len(bad):
        raise ValueError(f"fit: the target {name!r} is infinite in row {int(bad[0])}")
    different = len(np.unique(values))
    if different < 2:
        raise ValueError(
            f"fit: the target {name!r} is {values[0].item()!r} in every row; there is nothing to "
            "learn"
        )
    if different <= min(FEW_LABELS, len(values) // 2):
        return [f"{name!r} has only {different} distinct values; predictions can lie between them."]
    return []


def _with_classes(table: Table, name: str, notes: list[str], left_out: list[str]) -> Target:
    labels = target_values(table, name, "classification")
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) > _MOST_CLASSES:
        raise ValueError(
            f"fit: the target {name!r} has {len(classes)} distinct values, too many for classes "
            f"(at most {_MOST_CLASSES}); for a numeric target, pass task='regression'"
        )
    small = classes[counts < _SMALLEST]
    if len(small) and len(classes) - len(small) >= 2:
        lost = int(counts[counts < _SMALLEST].sum())
        left_out.append(
            f"Classes with fewer than {_SMALLEST} rows are too small for training and evaluation: "
            f"{_words(small)}; their {lost} rows were dropped."
        )
        table = table.rows(~np.isin(labels, small))
        labels = target_values(table, name, "classification")
        classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"fit: the target {name!r} is {classes[0].item()!r} in every row; two classes are "
            "needed"
        )
    if counts.min() < _SMALLEST:
        raise ValueError(
            f"fit: class {classes[counts.argmin()].item()!r} of the target {name!r} has "
            f"{counts.min()} row(s); at least {_SMALLEST} rows of two classes are needed"
            f"{_odd_words(table[name])}"
        )
    notes.append(_shares(classes, counts))
    found, lost_rows = tuple(classes.tolist()), tuple(left_out)
    return Target(table, name, "classification", found, (*lost_rows, *notes), lost_rows)


def _odd_words(values: Array) -> str:
    """Name the words that keep a column from being numeric, if nearly all entries are numbers."""
    if values.dtype != object:
        return ""
    odd = [word for word in values.tolist() if word is not None and not _is_number(word)]
    if not odd or 2 * len(odd) > len(values):
        return ""
    word = odd[0][:30]
    return (
        f"; {len(values) - len(odd)} of its {len(values)} entries are numbers, but {len(odd)} are "
        f"not, such as {word!r}: if that marks missing values, pass missing={word!r}"
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _shares(classes: Array, counts: Array) -> str:
    order = np.argsort(-counts, kind="stable")
    shown = ", ".join(f"{classes[k]} ({counts[k]} rows)" for k in order[:_SHOWN])
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    text = f"Classes: {shown}{more}."
    if counts.max() > 3 * counts.min():
        text += (
            " The classes are imbalanced: use the balanced accuracy and the area under the ROC "
            "curve. To select by the former, pass scoring='balanced_accuracy'."
        )
    return text


def _words(labels: Array) -> str:
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(map(str, labels[:_SHOWN].tolist())) + more


def rows_with_target(table: Table, target: str, *, task: str | None = None) -> Table:
    """Return the rows that `mercer.fit` uses for training and evaluation.

    Parameters
    ----------
    table : Table
        Any table.
    target : str
        Target column.
    task : {"classification", "regression"} or None
        Task. If None, determined from the column.

    Returns
    -------
    Table
        Table without rows that lack a target and without classes of fewer than three rows.

    Examples
    --------
    >>> from mercer.data import Table
    >>> from mercer.fitting import rows_with_target
    >>> table = Table.of({"x": range(8), "y": ["a", "b"] * 3 + [None, "a"]})
    >>> len(rows_with_target(table, "y"))
    7
    """
    return read_target(table, target, task).table


# --- splitting -----------------------------------------------------------------------------------
#
# Split into training and held-out rows, independent of the order of rows and columns.
#
# Rows are sorted by a hash of their entries, so that the split does not depend on their order.
# Rows that are equal in all columns but the target are assigned to the same part, because a model
# must not be evaluated on training rows.

_MISSING = 0x9E3779B97F4A7C15  # an arbitrary number
_EARLIEST = 2  # least number of training rows of a class


@dataclass(frozen=True, eq=False)
class Split:
    """Training and held-out rows of a table.

    Attributes
    ----------
    train, held_out : Table
        Rows without the target column.
    train_target, held_out_target : arrays
        Labels or numbers.
    train_rows, held_out_rows : int arrays
        Indices of the rows in the table.
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
    """Split a table as in `mercer.fit`: seeded and stratified, with equal rows in one part.

    Parameters
    ----------
    table : Table
        Table in which all rows have a target.
    target : str
        Target column.
    task : {"classification", "regression"}
        Task.
    test : float
        Fraction of the rows to hold out.
    random_state : int
        Random seed.

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
    """Return a mask of held-out rows, for rows sorted by key."""
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    size = np.diff(np.append(first, len(keys)))
    held = np.zeros(len(first), dtype=bool)
    for label in np.unique(labels):  # labels of the first of equal rows
        mine = rng.permutation(np.flatnonzero(labels[first] == label))
        rows = np.cumsum(size[mine])
        if not len(mine):
            continue
        wanted = min(round(test * rows[-1]), max(0, rows[-1] - _EARLIEST))
        held[mine[rows <= wanted]] = True
    return np.repeat(held, size)


def row_keys(table: Table) -> Array:
    """Return a hash of each row that depends only on its entries by column name.

    Parameters
    ----------
    table : Table
        Any columns.

    Returns
    -------
    (n,) uint64 array
        Hashes; equal for equal rows.
    """
    keys = np.zeros(len(table), dtype=np.uint64)
    for name in table.dense_columns:
        salt = np.uint64(_number(name))
        keys += _mixed(_bits(table[name]) ^ salt)
    if table.csr is not None:  # entries that are not stored contribute zero
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
    """Mix bits as in splitmix64, so that sums of mixed numbers rarely collide."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
