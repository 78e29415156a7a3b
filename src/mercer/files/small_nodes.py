"""Small nodes of the JSON text, read without trust: numbers, choices, shapes, ends of rows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array
from mercer.expression import Expression
from mercer.files.errors import ModelFormatError
from mercer.files.nodes import SCALARS, STORED_AS, holds_same, is_wasteful
from mercer.files.schema.record import ENUMS, FUNCTIONS, RECORDS, Record

_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def record_of(name: Any) -> Record:
    """Return the record of a name in the fixed table."""
    if not isinstance(name, str) or name not in RECORDS:
        raise ModelFormatError(f"there is no class {name!r:.60} in a model file")
    return RECORDS[name]


def keys_of(body: Any, needed: set[str], allowed: frozenset[str] | set[str] = frozenset()) -> Any:
    """Return a node that has the keys it needs, and no others."""
    if not isinstance(body, dict) or not needed <= body.keys() <= needed | allowed:
        raise ModelFormatError(f"a value needs the keys {', '.join(sorted(needed))}")
    return body


def items_of(body: Any, count: int) -> list[Any]:
    """Return a list of so many."""
    if not isinstance(body, list) or len(body) != count:
        raise ModelFormatError(f"a list of {count} is expected")
    return body


def list_of(body: Any) -> list[Any]:
    """Return a list."""
    if not isinstance(body, list):
        raise ModelFormatError("a list is expected")
    return body


def shape_of(body: Any) -> tuple[int, ...]:
    """Return a list of sizes as a shape."""
    if not all(type(size) is int and 0 <= size < 2**48 for size in list_of(body)) or len(body) > 8:
        raise ModelFormatError(f"{body!r:.60} is no shape")
    return tuple(body)


def scalar_of(body: Any) -> Any:
    """Return a number of NumPy."""
    name, value = items_of(body, 2)
    if not isinstance(name, str) or name not in SCALARS:
        raise ModelFormatError(f"there is no type of numbers {name!r:.60}")
    if isinstance(value, dict):
        value = number_of(value.get("number"))
    if type(value) not in (bool, int, float):
        raise ModelFormatError(f"{value!r:.60} is no number")
    return np.dtype(name).type(value)


def number_of(body: Any) -> float:
    """Return a number that JSON has no word for."""
    if not isinstance(body, str) or body not in _NUMBERS:
        raise ModelFormatError(f"{body!r:.60} is no number")
    return _NUMBERS[body]


def member_of(body: Any) -> Any:
    """Return a member of one of the enumerations in the fixed table."""
    name, member = items_of(body, 2)
    if not isinstance(name, str) or name not in ENUMS or not isinstance(member, str):
        raise ModelFormatError(f"there is no choice {name!r:.60}")
    if member not in ENUMS[name].__members__:
        raise ModelFormatError(f"{name} has no member {member!r:.60}")
    return ENUMS[name][member]


def formula_of(kernel: Any) -> Expression:
    """Return the formula of a kernel of features."""
    if not isinstance(kernel, ApproximateKernel):
        raise ModelFormatError("a formula is that of no kernel")
    return kernel.expression()


def function_of(body: Any) -> Any:
    """Return one of the functions in the fixed table."""
    if not isinstance(body, str) or body not in FUNCTIONS:
        raise ModelFormatError(f"there is no function {body!r:.60} in a model file")
    return FUNCTIONS[body]


def check_ends(ends: Any, last: int, what: str) -> None:
    """Refuse ends that go back, or do not end where the last is."""
    good = isinstance(ends, np.ndarray) and ends.ndim == 1 and ends.dtype.kind == "i"
    if not good or (len(ends) and (ends[0] < 0 or (np.diff(ends) < 0).any())):
        raise ModelFormatError(f"the ends of {what} go back")
    if (int(ends[-1]) if len(ends) else 0) != last:
        raise ModelFormatError(f"the ends of {what} do not end where the last is")


def check_sparse(data: Any, indices: Any, indptr: Any, lines: int, across: int) -> None:
    """Check that three arrays are those of so many rows of a sparse array (columns, if by them)."""
    for name, part in (("indices", indices), ("indptr", indptr)):
        if not isinstance(part, np.ndarray) or part.dtype.kind != "i" or part.ndim != 1:
            raise ModelFormatError(f"{name} of a sparse array are no list of integers")
    if not isinstance(data, np.ndarray) or data.shape != indices.shape:
        raise ModelFormatError("a sparse array has as many numbers as places")
    if len(indptr) != lines + 1 or indptr[0] != 0:
        raise ModelFormatError(f"a sparse array of {lines} rows has as many ends")
    check_ends(indptr[1:], len(data), "rows of a sparse array")
    if len(indices) and (indices.min() < 0 or indices.max() >= across):
        raise ModelFormatError(f"a sparse array has places outside of {across} columns")


def part_of(array: Array, place: dict[str, Any]) -> tuple[int, Array]:
    """Return one of several arrays that are kept in one."""
    if place.keys() != {"name", "start", "shape"} or array.ndim != 1:
        raise ModelFormatError("a place in an array has no start and shape")
    shape, start = shape_of(place["shape"]), place["start"]
    size = prod(shape)
    if type(start) is not int or not 0 <= start <= start + size <= len(array):
        raise ModelFormatError(f"a place at {start!r:.60} of shape {shape} is outside of its array")
    return start, array[start : start + size].reshape(shape)


def as_type(array: Array, name: Any) -> Array:
    """Return stored numbers as the type they stand for."""
    if not isinstance(name, str) or name not in STORED_AS:
        raise ModelFormatError(f"there is no type of numbers {name!r:.60}")
    if array.dtype != np.dtype(STORED_AS[name]) or not holds_same(array, name):
        raise ModelFormatError(f"an array of {array.dtype} does not hold {name}")
    view = name == "uint64" or name.startswith("datetime64")
    return array.view(name) if view else array.astype(name)


def typed_words(array: Array, name: Any) -> Array:
    """Return strings in the type they had: objects, or of one width."""
    if name == "object":
        return array
    width = name[1:] if isinstance(name, str) and name[:1] == "U" else ""
    longest = max((len(word) for word in array), default=0)
    text = sum(len(word) for word in array)
    right = width.isdigit() and len(width) < 10 and longest <= int(width)
    if not right or is_wasteful(4 * int(width) * len(array), 4 * text):
        raise ModelFormatError(f"{name!r:.60} is no type of strings")
    return array.astype(f"<U{int(width)}")
