"""Class `Decoder`: JSON text and arrays of a file to an estimator, without running code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array
from mercer.expression import Expression
from mercer.files.container import ModelFormatError, write_json
from mercer.files.encode import (
    LONG_TEXTS,
    SCALARS,
    STORED_AS,
    holds_same,
    is_wasteful,
    read_expression,
    read_kernel,
)
from mercer.files.schema.records import ENUMS, FUNCTIONS, RECORDS, Record, Sizes, check_fields

# --- decode --------------------------------------------------------------------------------------
#
# From the JSON text and the arrays of a file to an estimator. Nothing is imported, nothing is run.

_COPIES = 2**24  # bytes of copies of equal arrays, in addition to twice the size of the file
_REFUSALS = (ValueError, TypeError, OverflowError, AttributeError, IndexError, KeyError)


class Decoder:
    """Reads nodes.

    Parameters
    ----------
    tensors : mapping of str to array
        The arrays of the file.
    """

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._tensors = tensors
        self._spare = 2 * sum(array.nbytes for array in tensors.values()) + _COPIES
        self._used: set[str] = set()
        self._taken: dict[tuple[Any, ...], Array] = {}
        self._made: dict[tuple[Any, ...], Array] = {}
        self._texts: list[str] | None = None
        self._sparse_arrays: list[Any] = []
        self._sizes: dict[int, Sizes] = {}
        self._kept: list[Any] = []  # so that no identity in `_sizes` is used again

    def decode(self, node: Any) -> Any:
        """Return the value of a node."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise ModelFormatError(f"a value has the keys {sorted(node)!r:.80}; one is expected")
        ((tag, body),) = node.items()
        read = _READERS.get(tag)
        if read is None:
            raise ModelFormatError(f"unknown kind of value {tag!r:.60}")
        return read(self, body)

    def unused(self) -> list[str]:
        """Return the names of arrays that nothing spoke of."""
        return sorted(self._tensors.keys() - self._used)

    # --- records -----------------------------------------------------------------------------

    def _record(self, body: Any) -> Any:
        name, fields = items_of(body, 2)
        described = record_of(name)
        if not isinstance(fields, dict):
            raise ModelFormatError(f"{name}: fields are expected")
        for field in fields.keys() - described.types.keys():
            raise ModelFormatError(f"{name} has no field {field!r:.60}")
        found = {}
        for field, node in fields.items():
            try:
                found[field] = self.decode(node)
            except ModelFormatError as refusal:
                raise ModelFormatError(f"{name}.{field}: {refusal}") from None
            except _REFUSALS as refusal:
                raise ModelFormatError(f"{name}.{field}: {refusal}") from None
        return self._built(described, found)

    def _built(self, described: Any, found: dict[str, Any]) -> Any:
        sizes = check_fields(described, found, self._sizes)
        try:
            built = described.build(found)
        except ModelFormatError:
            raise
        except _REFUSALS as refusal:
            raise ModelFormatError(f"{described.name}: {refusal}") from None
        self._sizes[id(built)] = sizes
        self._kept.append(built)
        return built

    def _records(self, body: Any) -> list[Any]:
        name, count, columns = items_of(body, 3)
        described = record_of(name)
        if not isinstance(columns, dict) or type(count) is not int:
            raise ModelFormatError(f"{name}: a count and lists are expected")
        for field in columns.keys() - described.types.keys():
            raise ModelFormatError(f"{name} has no field {field!r:.60}")
        lists = {field: self.decode(node) for field, node in columns.items()}
        for field, values in lists.items():
            if not isinstance(values, list) or len(values) != count:
                raise ModelFormatError(f"{name}.{field}: a list of {count} values is expected")
        if not lists:
            raise ModelFormatError(f"{name}: the fields are missing")
        return [
            self._built(described, {field: values[i] for field, values in lists.items()})
            for i in range(count)
        ]

    def _text(self, body: Any) -> str:
        """Return a text, or that of a number among the long ones."""
        if isinstance(body, str):
            return body
        number = keys_of(body, {"long"})["long"]
        if self._texts is None:
            parts = {key: {"name": f"{LONG_TEXTS}.{key}"} for key in ("text", "ends")}
            count = len(self._tensor(parts["ends"]))
            self._texts = self._words({**parts, "shape": [count], "dtype": "object"}).tolist()
        if type(number) is not int or not 0 <= number < len(self._texts):
            raise ModelFormatError(f"unknown text {number!r:.60}")
        return self._texts[number]

    def _again(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._sparse_arrays):
            raise ModelFormatError(f"unknown sparse array {number!r:.60}")
        return self._sparse_arrays[number]

    # --- lists -------------------------------------------------------------------------------

    def _packed(self, body: Any) -> Any:
        parts = keys_of(body, {"kind", "of"})
        of = parts["of"]
        if isinstance(of, dict) and of.keys() == {"records"}:
            values = self._records(of["records"])
        elif isinstance(of, dict) and of.keys() == {"dicts"}:
            values = self._dicts(of["dicts"])
        else:
            array = self.decode(of)
            if not isinstance(array, np.ndarray) or array.ndim != 1:
                raise ModelFormatError("a long list must hold a list")
            values = array.tolist()
        if parts["kind"] not in ("list", "tuple"):
            raise ModelFormatError(f"a long list is of kind {parts['kind']!r:.60}")
        return values if parts["kind"] == "list" else tuple(values)

    def _dicts(self, body: Any) -> list[Any]:
        count, keys, lists = (self.decode(part) for part in items_of(body, 3))
        if type(count) is not int or not isinstance(keys, list) or not isinstance(lists, list):
            raise ModelFormatError("dictionaries have a count, keys and lists")
        if len(lists) != len(keys) or not keys or len(set(keys)) < len(keys):
            raise ModelFormatError("dictionaries have a list for each key")
        if any(not isinstance(values, list) or len(values) != count for values in lists):
            raise ModelFormatError(f"dictionaries have lists of {count} values")
        return [dict(zip(keys, values, strict=True)) for values in zip(*lists, strict=True)]

    def _dict(self, body: Any) -> dict[Any, Any]:
        keys, values = (self.decode(part) for part in items_of(body, 2))
        if not isinstance(keys, list) or not isinstance(values, list):
            raise ModelFormatError("a dictionary has lists of keys and values")
        found = dict(zip(keys, values, strict=True))
        if len(found) < len(keys):
            raise ModelFormatError("a key of a dictionary occurs twice")
        return found

    # --- arrays ------------------------------------------------------------------------------

    def _tensor(self, place: Any, alias: Any = 0) -> Array:
        """Return the array at a place; of several that are equal, each its own."""
        parts = keys_of(place, {"name"}, {"start", "shape"})
        name = parts["name"]
        if not isinstance(name, str) or name not in self._tensors:
            raise ModelFormatError(f"unknown array {name!r:.60}")
        if type(alias) is not int or alias < 0:
            raise ModelFormatError(f"{alias!r:.60} is not the number of an array")
        array = self._tensors[name]
        self._used.add(name)
        start = 0
        if len(parts) > 1:
            start, array = part_of(array, parts)
        key = (name, start, array.shape, alias)
        if key not in self._taken:
            self._spare -= array.nbytes if alias else 0
            if self._spare < 0:
                raise ModelFormatError("the estimator would take far more memory than its file")
            self._taken[key] = array.copy() if alias else array
        return self._taken[key]

    def _array(self, body: Any) -> Array:
        parts = keys_of(body, {"tensor"}, {"dtype", "order", "alias"})
        alias, name, order = parts.get("alias", 0), parts.get("dtype"), parts.get("order", "C")
        key = (write_json(parts["tensor"]), alias, str(name), str(order))
        if key in self._made:
            return self._made[key]
        array = self._tensor(parts["tensor"], alias)
        if name is not None:
            array = as_type(array, name)
        if order not in ("C", "F"):
            raise ModelFormatError(f"order {order!r:.60} is neither C nor F")
        self._made[key] = array.T if order == "F" else array
        return self._made[key]

    def _masked(self, body: Any) -> Any:
        parts = keys_of(body, {"data", "mask"})
        data, mask = self.decode(parts["data"]), self.decode(parts["mask"])
        if not isinstance(data, np.ndarray) or not isinstance(mask, np.ndarray):
            raise ModelFormatError("a masked array has no entries")
        if mask.dtype != np.bool_ or mask.shape != data.shape:
            raise ModelFormatError("the mask of an array has another shape")
        return np.ma.MaskedArray(data, mask)

    def _words(self, body: Any) -> Array:
        parts = keys_of(body, {"text", "ends", "shape", "dtype"})
        text, ends = self._tensor(parts["text"]), self._tensor(parts["ends"])
        shape = shape_of(parts["shape"])
        check_ends(ends, len(text), "strings")
        if text.dtype != np.uint8 or text.ndim != 1 or len(ends) != prod(shape):
            raise ModelFormatError(f"there are {len(ends)} strings for the shape {shape}")
        data = text.tobytes()
        starts = [0, *ends.tolist()]
        words = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]
        array = np.empty(len(words), dtype=object)
        array[:] = words
        return typed_words(array, parts["dtype"]).reshape(shape)

    def _tokens(self, body: Any) -> Array:
        parts = keys_of(body, {"words", "ends"})
        words, ends = self.decode(parts["words"]), self.decode(parts["ends"])
        if not isinstance(words, np.ndarray) or words.ndim != 1 or words.dtype != object:
            raise ModelFormatError("rows of strings have no strings")
        check_ends(ends, len(words), "rows")
        starts = [0, *ends.tolist()]
        rows = np.empty(len(ends), dtype=object)
        for i in range(len(ends)):
            rows[i] = words[starts[i] : starts[i + 1]].tolist()
        return rows

    def _objects(self, body: Any) -> Array:
        parts = keys_of(body, {"shape", "items"})
        shape, items = shape_of(parts["shape"]), self.decode(parts["items"])
        if not isinstance(items, list) or len(items) != prod(shape):
            raise ModelFormatError(f"an array of shape {shape} has other entries")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _sparse(self, body: Any) -> Any:
        parts = keys_of(body, {"data", "indices", "indptr", "shape", "format", "matrix"})
        shape = shape_of(parts["shape"])
        if len(shape) != 2:
            raise ModelFormatError(f"a sparse array has the shape {shape}")
        if parts["format"] not in ("csr", "csc"):
            raise ModelFormatError(f"unknown sparse format {parts['format']!r:.60}")
        lines, across = shape if parts["format"] == "csr" else shape[::-1]
        data, indices, indptr = (self.decode(parts[key]) for key in ("data", "indices", "indptr"))
        check_sparse(data, indices, indptr, lines, across)
        kinds = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix)
        kind = kinds[2 * (parts["format"] == "csc") + (parts["matrix"] is True)]
        made = kind((data, indices, indptr), shape=shape)
        made.indices, made.indptr = indices, indptr  # of the type they had
        self._sparse_arrays.append(made)
        return made


# outside of the class: a decoder that held its own methods would be freed late, with all arrays
_READERS: dict[str, Callable[[Decoder, Any], Any]] = {
    "array": Decoder._array,
    "words": Decoder._words,
    "tokens": Decoder._tokens,
    "objects": Decoder._objects,
    "sparse": Decoder._sparse,
    "again": Decoder._again,
    "masked": Decoder._masked,
    "packed": Decoder._packed,
    "record": Decoder._record,
    "dict": Decoder._dict,
    "scalar": lambda _, body: scalar_of(body),
    "number": lambda _, body: number_of(body),
    "enum": lambda _, body: member_of(body),
    "function": lambda _, body: function_of(body),
    "kernel": lambda self, body: read_kernel(self._text(body)),
    "expression": lambda self, body: read_expression(self._text(body)),
    "formula": lambda self, body: formula_of(self.decode(body)),
    "long": lambda self, body: self._text({"long": body}),
    "tuple": lambda self, body: tuple(self.decode(list_of(body))),
    "set": lambda self, body: set(self.decode(list_of(body))),
}


# --- small nodes ---------------------------------------------------------------------------------
#
# Small nodes of the JSON text, read without trust: numbers, choices, shapes, ends of rows.

_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def record_of(name: Any) -> Record:
    """Return the record of a name in the fixed table."""
    if not isinstance(name, str) or name not in RECORDS:
        raise ModelFormatError(f"unknown class {name!r:.60}")
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
        raise ModelFormatError(f"{body!r:.60} is not a shape")
    return tuple(body)


def scalar_of(body: Any) -> Any:
    """Return a number of NumPy."""
    name, value = items_of(body, 2)
    if not isinstance(name, str) or name not in SCALARS:
        raise ModelFormatError(f"unknown number type {name!r:.60}")
    if isinstance(value, dict):
        value = number_of(value.get("number"))
    if type(value) not in (bool, int, float):
        raise ModelFormatError(f"{value!r:.60} is not a number")
    return np.dtype(name).type(value)


def number_of(body: Any) -> float:
    """Return a number that JSON has no word for."""
    if not isinstance(body, str) or body not in _NUMBERS:
        raise ModelFormatError(f"{body!r:.60} is not a number")
    return _NUMBERS[body]


def member_of(body: Any) -> Any:
    """Return a member of one of the enumerations in the fixed table."""
    name, member = items_of(body, 2)
    if not isinstance(name, str) or name not in ENUMS or not isinstance(member, str):
        raise ModelFormatError(f"unknown choice {name!r:.60}")
    if member not in ENUMS[name].__members__:
        raise ModelFormatError(f"{name} has no member {member!r:.60}")
    return ENUMS[name][member]


def formula_of(kernel: Any) -> Expression:
    """Return the formula of a kernel of features."""
    if not isinstance(kernel, ApproximateKernel):
        raise ModelFormatError("the formula does not belong to a kernel")
    return kernel.expression()


def function_of(body: Any) -> Any:
    """Return one of the functions in the fixed table."""
    if not isinstance(body, str) or body not in FUNCTIONS:
        raise ModelFormatError(f"unknown function {body!r:.60}")
    return FUNCTIONS[body]


def check_ends(ends: Any, last: int, what: str) -> None:
    """Raise an error if the ends decrease, or do not end at the last."""
    good = isinstance(ends, np.ndarray) and ends.ndim == 1 and ends.dtype.kind == "i"
    if not good or (len(ends) and (ends[0] < 0 or (np.diff(ends) < 0).any())):
        raise ModelFormatError(f"the ends of {what} decrease")
    if (int(ends[-1]) if len(ends) else 0) != last:
        raise ModelFormatError(f"the ends of {what} do not end at the last entry")


def check_sparse(data: Any, indices: Any, indptr: Any, lines: int, across: int) -> None:
    """Check that three arrays are those of so many rows of a sparse array (columns, if by them)."""
    for name, part in (("indices", indices), ("indptr", indptr)):
        if not isinstance(part, np.ndarray) or part.dtype.kind != "i" or part.ndim != 1:
            raise ModelFormatError(f"{name} of a sparse array must be a list of integers")
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
        raise ModelFormatError(f"unknown number type {name!r:.60}")
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
        raise ModelFormatError(f"{name!r:.60} is not a string type")
    return array.astype(f"<U{int(width)}")
