"""Whether two machines are the same: every attribute and every answer, bit for bit."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import FrozenArray
from mercer.expression import Expression
from mercer.kernels import Kernel

QUESTIONS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
FORGOTTEN = {"_relaxation", "_tree", "scorer_", "cv_results_"}


def differences(a: Any, b: Any, where: str = "", seen: set | None = None) -> list[str]:
    """Return where two objects differ, their attributes looked through."""
    seen = set() if seen is None else seen
    if id(a) in seen:
        return []
    seen.add(id(a))
    if isinstance(a, np.dtype | type):
        return [] if np.dtype(a) == np.dtype(b) else [f"{where}: {a} and {b}"]
    if type(a) is not type(b):
        return [f"{where}: {type(a)} and {type(b)}"]
    for kinds, compare in _KINDS:
        if isinstance(a, kinds):
            return compare(a, b, where, seen)
    return _objects(a, b, where, seen)


def _formulas(a: Any, b: Any, where: str, seen: set) -> list[str]:
    """Compare by value; features inside, which are no values, by what they hold."""
    return [] if a == b else _objects(a, b, where, seen)


def _values(a: Any, b: Any, where: str, seen: set) -> list[str]:
    return [] if a == b else [f"{where}: {a!r} and {b!r}"]


def _numbers(a: Any, b: Any, where: str, seen: set) -> list[str]:
    return [] if np.array_equal(a, b, equal_nan=True) else [f"{where}: {a!r} and {b!r}"]


def _lists(a: Any, b: Any, where: str, seen: set) -> list[str]:
    if len(a) != len(b):
        return [f"{where}: {len(a)} and {len(b)} items"]
    return [d for i in range(len(a)) for d in differences(a[i], b[i], f"{where}[{i}]", seen)]


def _dicts(a: Any, b: Any, where: str, seen: set) -> list[str]:
    if list(a) != list(b):
        return [f"{where}: keys {list(a)[:9]} and {list(b)[:9]}"]
    return [d for key in a for d in differences(a[key], b[key], f"{where}.{key}", seen)]


def _sparse(a: Any, b: Any, where: str, seen: set) -> list[str]:
    parts = ("data", "indices", "indptr", "shape")
    return _lists([getattr(a, x) for x in parts], [getattr(b, x) for x in parts], where, seen)


def _arrays(a: Any, b: Any, where: str, seen: set) -> list[str]:
    if a.dtype != b.dtype or a.shape != b.shape:
        return [f"{where}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"]
    if a.dtype == object:
        return differences(a.ravel().tolist(), b.ravel().tolist(), where, seen)
    same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return [] if same else [f"{where}: entries"]


def _objects(a: Any, b: Any, where: str, seen: set) -> list[str]:
    if is_dataclass(a) and not isinstance(a, type):
        names = [each.name for each in fields(a)]
        pairs = [(name, getattr(a, name), getattr(b, name)) for name in names]
        return [d for name, x, y in pairs for d in differences(x, y, f"{where}.{name}", seen)]
    left, right = (
        {name: value for name, value in vars(x).items() if name not in FORGOTTEN} for x in (a, b)
    )
    if left.keys() != right.keys():
        return [f"{where}: attributes {sorted(left.keys() ^ right.keys())}"]
    return differences(left, {name: right[name] for name in left}, where, seen)


_KINDS = (
    (np.ndarray, _arrays),
    ((sparse.sparray, sparse.spmatrix), _sparse),
    ((Kernel, Expression), _formulas),
    ((FrozenArray, str, int, Enum, type(None), FunctionType), _values),
    ((float, np.generic), _numbers),
    ((list, tuple), _lists),
    (dict, _dicts),
)


def answers(machine: Any, rows: Any) -> dict[str, Any]:
    """Return all that a machine says of new rows."""
    found = {}
    for name in QUESTIONS:
        try:
            question = getattr(machine, name)
        except AttributeError:
            continue
        try:
            found[name] = question(rows)
        except (ValueError, NotImplementedError, AttributeError) as refusal:
            found[name] = str(refusal)
    return found
