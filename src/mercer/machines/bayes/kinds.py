"""What kind of attribute each column is: told, or seen from its type and values.

==========================================  ===========
text, objects, declared categories          categorical
true/false, or no number but 0 and 1        binary
integers, at most 20 different ones         categorical
a sparse matrix without negative entries    count
any other numbers                           gaussian
==========================================  ===========
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.parameters import refuse
from mercer.machines.bayes.columns import Column, Table
from mercer.points import is_sparse

KINDS = ("categorical", "binary", "count", "gaussian")
_FEW = 20  # different integers: more of them are measurements
_STEP = 4096  # rows of a block
_LOOK = 256  # rows that rule most columns out before all rows are looked at


def check_kinds(machine: Any) -> None:
    """Require None, a kind, a sequence of kinds, or kinds by column."""
    given = machine.kinds
    if given is None:
        return
    if isinstance(given, str):
        named = [given]
    else:
        try:
            named = list(given.values() if isinstance(given, Mapping) else given)
        except TypeError:
            named = [given]
    if any(not isinstance(kind, str) or kind not in KINDS for kind in named):
        words = ", ".join(map(repr, KINDS))
        refuse(machine, "kinds", given, f"be None, or made of {words}: one, a list, or by column")


def kinds_of(machine: Any, table: Table) -> Array:
    """Return the kind of each column."""
    given, d = machine.kinds, table.shape[1]
    if isinstance(given, str):
        return np.full(d, given, dtype=object)
    if given is None or isinstance(given, Mapping):
        found = _inferred(table)
        for name, kind in (given or {}).items():
            found[_place(machine, name, d)] = kind
        return found
    if len(given) != d:
        refuse(machine, "kinds", given, f"have {d} entries, one per column")
    return np.array(list(given), dtype=object)


def _place(machine: Any, name: Any, d: int) -> int:
    names = getattr(machine, "feature_names_in_", None)
    if names is not None and name in names:
        return int(np.flatnonzero(names == name)[0])
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < d:
        return int(name)
    raise ValueError(f"{type(machine).__name__}: kinds names the column {name!r}, which X has not")


def _inferred(table: Table) -> Array:
    X = table.matrix
    if X is None:
        return np.array([_kind(column) for column in table.columns], dtype=object)
    if is_sparse(X):
        negative = X.nnz and X.data.min() < 0
        return np.full(X.shape[1], "gaussian" if negative else "count", dtype=object)
    found = np.full(X.shape[1], "gaussian", dtype=object)
    if X.dtype.kind == "b":
        found[:] = "binary"
    elif X.dtype.kind in "iu":
        found[:] = [_kind(Column(X[:, j])) for j in range(X.shape[1])]
    else:
        possible = np.flatnonzero(_binary(X[:_LOOK]))
        for first in range(0, len(X), _STEP):
            block = X[first : first + _STEP]
            every = len(possible) == X.shape[1]
            possible = possible[_binary(block if every else block[:, possible])]
        missing = [j for j in possible if np.isnan(X[:_LOOK, j]).all() and np.isnan(X[:, j]).all()]
        found[possible] = "binary"
        found[missing] = "gaussian"
    return found


def _binary(X: Array) -> Array:
    """Return which columns hold zeros, ones and NaN only."""
    with np.errstate(over="ignore"):
        good = X * X == X  # of numbers, zero and one only
    return np.asarray(good.all(axis=0) if good.all() else (good | np.isnan(X)).all(axis=0))


def _kind(column: Column) -> str:
    x = column.numbers
    if x is None or column.declared:
        return "categorical"
    if column.whole:
        return _whole_kind(x[~np.isnan(x)])
    if x.dtype.kind == "b":
        return "binary"
    if x.dtype.kind == "f":
        binary = bool(_binary(x[:_LOOK])) and bool(_binary(x)) and not np.isnan(x).all()
        return "binary" if binary else "gaussian"
    return _whole_kind(x)


def _whole_kind(x: Array) -> str:
    """Return the kind of a column of integers, those that are there."""
    if not len(x):
        return "gaussian"
    lowest, highest = x.min(), x.max()
    if lowest >= 0 and highest <= 1:
        return "binary"
    few = all(_different(part) <= _FEW for part in (x[:_LOOK], x))
    return "categorical" if few else "gaussian"


def _different(x: Array) -> int:
    """Count the different integers of a column."""
    lowest, highest = int(x.min()), int(x.max())
    if highest - lowest > 4 * len(x) + 1024:
        return len(np.unique(x))
    # of narrow types, differences need not fit
    steps = x.astype(np.int64, copy=False) if x.dtype.kind == "i" else x
    return int(np.count_nonzero(np.bincount((steps - lowest).astype(np.intp))))
