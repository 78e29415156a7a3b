"""From a fitted machine to the JSON text and the arrays of a file."""

from __future__ import annotations

from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array
from mercer.expression import Expression
from mercer.files.container import DTYPES, MOST_TENSORS, digest
from mercer.files.errors import ModelFormatError
from mercer.files.kernel_text import KnownKernels, write_kernel
from mercer.files.machine_parts import column_names, parts_of_machine, state_of
from mercer.files.nodes import (
    FEW,
    LONG,
    LONG_TEXT,
    LONG_TEXTS,
    SMALL,
    STORED_AS,
    is_wasteful,
)
from mercer.files.schema.record import ENUMS, record_name
from mercer.files.strict_json import MOST_DEPTH
from mercer.files.written_nodes import function_node, integer_node, scalar_node
from mercer.kernels import Kernel
from mercer.points import to_host

_DEPTH = MOST_DEPTH // 2  # records within records: each takes a few brackets
_OWN = MOST_TENSORS - 8  # arrays with a name of their own; beyond, small ones are put together


class Encoder:
    """Writes values as nodes, and keeps the arrays they speak of.

    Parameters
    ----------
    machine : object
        What will be written: its kernels are looked up.

    """

    def __init__(self, machine: Any) -> None:
        self._arrays: dict[str, Array] = {}
        self._references: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._aliases: dict[tuple[Any, ...], list[Any]] = {}
        self._texts: dict[str, int] = {}
        self._sparse_arrays: list[Any] = []
        self._kernels: KnownKernels | None = None
        self._machine = machine

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return the node of a value; `where` is its path, for refusals and names of arrays."""
        if depth > _DEPTH:
            raise ModelFormatError(f"{where} is nested deeper than {_DEPTH}")
        if value is None or type(value) is bool:
            return value
        if type(value) is str:
            return self._text(value)
        if type(value) is int:
            return integer_node(value, where)
        if type(value) is float:
            return value if np.isfinite(value) else {"number": repr(value)}
        try:
            return self._encode_object(value, where, depth)
        except ModelFormatError as refusal:
            if str(refusal).startswith(where.partition(".")[0]):
                raise
            raise ModelFormatError(f"{where}: {refusal}") from None

    def _encode_object(self, value: Any, where: str, depth: int) -> Any:
        value = to_host(value)  # rows that lie on a card are rows like others to a file
        if isinstance(value, np.generic):
            return scalar_node(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sparse.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, Kernel):
            return self._kernel(value, where, depth)
        if isinstance(value, Expression):
            kernel = self._known().kernel_of(value)
            return self._kernel(kernel, where, depth, "formula", "expression")
        if type(value) in (list, tuple):
            return self._sequence(value, where, depth)
        if type(value) in (set, frozenset):
            return {"set": [self.encode(v, where, depth + 1) for v in sorted(value)]}
        if type(value) is dict:
            keys = self._sequence(list(value), f"{where}.keys", depth)
            values = self._sequence(list(value.values()), where, depth)
            return {"dict": [keys, values]}
        if isinstance(value, Enum) and type(value).__name__ in ENUMS:
            return {"enum": [type(value).__name__, value.name]}
        return self._record(value, where, depth)

    def _record(self, value: Any, where: str, depth: int) -> Any:
        name = record_name(value)
        if name is None:
            return function_node(value, where)
        fields = state_of(value)
        encoded = {
            field: self.encode(held, f"{where}.{field}", depth + 1)
            for field, held in fields.items()
        }
        return {"record": [name, encoded]}

    def _kernel(
        self, kernel: Kernel, where: str, depth: int, whole: str = "", text: str = "kernel"
    ) -> Any:
        """Return the node of a kernel: its text, or a record where features stand for it."""
        if not isinstance(kernel, ApproximateKernel):
            return {text: self._text(write_kernel(kernel))}
        node = self._record(kernel, where, depth)
        return {whole: node} if whole else node

    def _text(self, text: str) -> Any:
        """Return a text, or its number among the long ones: those are kept once, in an array."""
        if len(text) <= LONG_TEXT:
            return text
        return {"long": self._texts.setdefault(text, len(self._texts))}

    def _known(self) -> KnownKernels:
        if self._kernels is None:
            found = list(parts_of_machine(self._machine))
            kernels = [part for part in found if isinstance(part, Kernel)]
            self._kernels = KnownKernels(kernels, column_names(found))
        return self._kernels

    # --- lists -------------------------------------------------------------------------------

    def _sequence(self, value: Any, where: str, depth: int) -> Any:
        kind = type(value).__name__
        packed = self._packed(value, where, depth)
        if packed is not None:
            return {"packed": {"kind": kind, "of": packed}}
        items = [self.encode(v, f"{where}.{i}", depth + 1) for i, v in enumerate(value)]
        return items if kind == "list" else {"tuple": items}

    def _packed(self, value: Any, where: str, depth: int) -> Any:
        """Return a long list of one type as an array, or as lists of its members' parts."""
        kinds = set(map(type, value))
        if len(kinds) != 1 or len(value) <= FEW:
            return None
        if kinds == {dict} and len({tuple(each) for each in value}) == 1 and value[0]:
            keys = self._sequence(list(value[0]), f"{where}.keys", depth)
            parts = self._columns([list(each.values()) for each in value], where, depth)
            return {"dicts": [len(value), keys, parts]}
        name = record_name(value[0])
        if name is not None:
            states = [state_of(each) for each in value]
            if len({tuple(state) for state in states}) == 1 and states[0]:
                parts = self._columns([list(state.values()) for state in states], where, depth)
                fields = dict(zip(states[0], parts, strict=True))
                return {"records": [name, len(value), fields]}
        return self._packed_numbers(value, kinds.pop(), where) if len(value) > LONG else None

    def _columns(self, rows: list[list[Any]], where: str, depth: int) -> list[Any]:
        columns = zip(*rows, strict=True)
        return [
            self._sequence(list(column), f"{where}.{i}", depth + 1)
            for i, column in enumerate(columns)
        ]

    def _packed_numbers(self, value: Any, kind: type, where: str) -> Any:
        if kind is str:
            return self._words(np.array(value, dtype=object), where)
        if kind is float:
            return self._array(np.array(value, dtype=np.float64), where)
        if kind is int and all(-(2**63) <= each < 2**63 for each in value):
            return self._array(np.array(value, dtype=np.int64), where)
        return None

    # --- arrays ------------------------------------------------------------------------------

    def _array(self, value: Array, where: str) -> Any:
        given = value
        if isinstance(value, np.ma.MaskedArray):
            return self._masked(value, where)
        if type(value) is not np.ndarray:
            raise ModelFormatError(f"{where} is a {type(value).__name__}, and no plain array")
        if value.dtype.kind in "OU":
            return self._strings(value, where)
        name = value.dtype.newbyteorder("=").name
        other = STORED_AS.get(name)
        if other is None and np.dtype(name) not in DTYPES.values():
            raise ModelFormatError(f"{where} is an array of {value.dtype}, which no file can hold")
        node: dict[str, Any] = {}
        if other is not None:
            node["dtype"] = name
            value = value.view("i8") if name in ("uint64",) or name[0] == "d" else value
        wanted = np.dtype(name if other is None else other)
        if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous:
            node["order"], value = "F", value.T  # products of other orders round otherwise
        stored = np.ascontiguousarray(value, dtype=wanted)
        node["tensor"], alias = self._keep(stored, where, given)
        if alias:
            node["alias"] = alias
        return {"array": node}

    def _keep(self, value: Array, where: str, given: Any = None) -> tuple[dict[str, Any], int]:
        """Return where an array is in the file, and which of the equal ones it is.

        Equal arrays are kept once; those that are not the same have numbers, since to change one
        must not change the other. The reader makes copies of these, so large ones have at most two.
        """
        key: tuple[Any, ...] = (value.dtype, value.shape, digest(value))
        same = self._aliases.setdefault(key, [])
        alias = 0
        if given is not None:
            alias = next((i for i, each in enumerate(same) if each is given), len(same))
            if alias == len(same):
                same.append(given)
        if alias and value.nbytes > SMALL:
            key, alias = (*key, alias // 2), alias % 2
        if key not in self._references:
            name, count = where, 1
            while name in self._arrays or name == "__metadata__":
                count += 1
                name = f"{where}.{count}"
            self._references[key] = {"name": name}
            self._arrays[name] = value
        return self._references[key], alias

    def finish(self) -> dict[str, Array]:
        """Return the arrays by name; if there are too many, small ones are put into one each type.

        The nodes that were handed out then say where in it.
        """
        if self._texts:
            self._words(np.array(list(self._texts), dtype=object), LONG_TEXTS)
        if len(self._arrays) <= _OWN:
            return self._arrays
        order = sorted(
            self._arrays,
            key=lambda name: (not name.startswith(LONG_TEXTS), -self._arrays[name].nbytes),
        )
        tensors = {name: self._arrays[name] for name in order[:_OWN]}
        pools: dict[str, list[Array]] = {}
        references = {each["name"]: each for each in self._references.values()}
        for name in order[_OWN:]:
            array = self._arrays[name]
            pool = f"packed.{array.dtype.name}"
            parts = pools.setdefault(pool, [])
            place = {"start": sum(part.size for part in parts), "shape": list(array.shape)}
            references[name].update(name=pool, **place)
            parts.append(array.ravel())
        return tensors | {pool: np.concatenate(parts) for pool, parts in pools.items()}

    def _masked(self, value: Any, where: str) -> Any:
        data = self._array(np.asarray(value.data), where)
        mask = self._array(np.ma.getmaskarray(value), f"{where}.mask")
        return {"masked": {"data": data, "mask": mask}}

    def _sparse(self, value: Any, where: str) -> Any:
        for i, each in enumerate(self._sparse_arrays):
            if each is value:
                return {"again": i}
        self._sparse_arrays.append(value)
        value = value if value.format in ("csr", "csc") else value.tocsr()
        parts = {
            name: self._array(np.asarray(getattr(value, name)), f"{where}.{name}")
            for name in ("data", "indices", "indptr")
        }
        matrix = isinstance(value, sparse.spmatrix)
        form = {"shape": list(value.shape), "format": value.format, "matrix": matrix}
        return {"sparse": {**parts, **form}}

    def _strings(self, value: Array, where: str) -> Any:
        items = value.ravel().tolist()
        if value.dtype.kind == "U" or all(type(item) is str for item in items):
            return self._words(value, where)
        if value.ndim == 1 and items and all(type(item) in (list, tuple) for item in items):
            flat = list(chain.from_iterable(items))
            if all(type(word) is str for word in flat):
                ends = np.cumsum([len(item) for item in items], dtype=np.int64)
                words = self._words(np.array(flat, dtype=object), f"{where}.words")
                return {"tokens": {"words": words, "ends": self._array(ends, f"{where}.rows")}}
        return {"objects": {"shape": list(value.shape), "items": self._sequence(items, where, 0)}}

    def _words(self, value: Array, where: str) -> Any:
        words = [word.encode("utf-8", "surrogatepass") for word in value.ravel().tolist()]
        text = np.frombuffer(b"".join(words), dtype=np.uint8)
        plain = value.dtype.kind == "O" or is_wasteful(value.nbytes, len(text))
        ends = np.cumsum([len(word) for word in words], dtype=np.int64)
        return {
            "words": {
                "text": self._keep(text, f"{where}.text")[0],
                "ends": self._keep(ends, f"{where}.ends")[0],
                "shape": list(value.shape),
                "dtype": "object" if plain else value.dtype.str[1:],
            }
        }
