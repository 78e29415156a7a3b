"""Class `Encoder`: a fitted estimator as JSON nodes and arrays, its kernels as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array
from mercer.compat.sklearn.kernels import ShiftedPower
from mercer.expression import Expression
from mercer.files.container import (
    DTYPES,
    MOST_DEPTH,
    MOST_HEADER,
    MOST_TENSORS,
    ModelFormatError,
    digest,
)
from mercer.files.schema.records import ENUMS, FUNCTIONS, RECORDS, Fields, record_name
from mercer.kernels import Constant, Kernel, Linear, Polynomial, Precomputed
from mercer.kernels.parser import parse
from mercer.rows.points import to_host

# --- encode --------------------------------------------------------------------------------------
#
# From a fitted estimator to the JSON text and the arrays of a file.

_DEPTH = MOST_DEPTH // 2  # records within records: each takes a few brackets
_OWN = MOST_TENSORS - 8  # arrays with a name of their own; beyond, small ones are put together


class Encoder:
    """Writes values as nodes, and keeps the arrays they speak of.

    Parameters
    ----------
    machine : object
        The value to write, for its kernels.
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
        """Return the node of a value; `where` is its path, for errors and names of arrays."""
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
        value = to_host(value)  # GPU tensors are stored like arrays
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
            raise ModelFormatError(
                f"{where} is a {type(value).__name__}, which is not a plain array"
            )
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

        The nodes returned before then show its position.
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


# --- nodes ---------------------------------------------------------------------------------------
#
# How values are written in the JSON text of a file.
#
# Numbers, strings, truth values and null are themselves, lists are lists. All else is an object
# with one key, which gives its kind:
#
# ==============  ============================================================================
# key             what follows
# ==============  ============================================================================
# ``array``       {"tensor": place, ...}: an array; "dtype" if it is none of the five, "order" if
#                 "F", "alias" if an equal array is another; a place is {"name"}, or {"name", "start",  # noqa: E501
#                 "shape"} in an array that holds several
# ``masked``      {"data", "mask"}: an array of which some entries do not count
# ``words``       {"text": place, "ends": place, "shape", "dtype"}: strings in UTF-8, one after
#                 another
# ``tokens``      {"words", "ends"}: rows that are lists of strings
# ``objects``     {"shape", "items"}: an array of few values of several types
# ``sparse``      {"data", "indices", "indptr", "shape", "format", "matrix"}: CSR or CSC
# ``scalar``      [dtype, value]: a number of NumPy
# ``number``      "nan", "inf" or "-inf"
# ``kernel``      the text of a kernel; ``expression``: its formula is meant; ``formula``: that of a
#                 kernel of features, which is a record
# ``long``        the number of a long text; all of them are in the arrays "texts.text", "texts.ends"  # noqa: E501
# ``again``       the number of a sparse array that came before
# ``tuple``       [...]; ``set``: [...]
# ``dict``        [keys, values]
# ``packed``      {"kind": "list" or "tuple", "of": node}: a list of one type as an array or words;
#                 as ``records``, [name, count, {field: list}]; as ``dicts``, [count, keys, lists]
# ``record``      [name, {field: value}]
# ``enum``        [name, member]; ``function``: its name
# ==============  ============================================================================

# types that are stored as another: in a file there are five
STORED_AS = {
    "bool": "u1",
    "int8": "i4",
    "int16": "i4",
    "uint16": "i4",
    "uint32": "i8",
    "uint64": "i8",
    "float16": "f4",
    **{f"datetime64[{unit}]": "i8" for unit in ("D", "h", "m", "s", "ms", "us", "ns")},
}
SCALARS = frozenset(
    name for name in (*STORED_AS, "uint8", "int32", "int64", "float32", "float64")
    if not name.startswith("datetime")
)  # fmt: skip
SMALL = 512  # bytes: equal arrays up to this size may be many
LONG = 32  # a list of more numbers or strings than this goes into an array
FEW = 4  # of more records or dictionaries alike, each field is one list
LONG_TEXT = 64  # characters: longer texts are kept once, in an array
LONG_TEXTS = "texts"  # how the names of these arrays begin


def is_wasteful(size: int, text: int) -> bool:
    """Return whether strings of one width take far more memory than a file has of them.

    Such arrays come back as objects, so that a small file never asks for much memory.
    """
    return size > max(2**20, 16 * text)


def holds_same(array: np.ndarray, name: str) -> bool:
    """Return whether stored numbers are all numbers of the type they stand for."""
    if name == "bool":
        return bool((array <= 1).all())
    if name.startswith("datetime64") or name == "uint64":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        back = array.astype(name).astype(array.dtype)
    return bool(np.array_equal(back, array, equal_nan=array.dtype.kind == "f"))


# --- written nodes -------------------------------------------------------------------------------
#
# Small nodes of the JSON text: integers, NumPy's scalars, known functions.


def integer_node(value: int, where: str) -> int:
    """Return an integer that other readers of JSON can hold, too."""
    if not -(2**63) <= value < 2**64:
        raise ModelFormatError(f"{where} is a number of more than 64 bits")
    return value


def scalar_node(value: Any, where: str) -> Any:
    """Return a number of NumPy with the name of its type."""
    name = value.dtype.name
    if isinstance(value, np.str_):
        return str(value)
    if name not in SCALARS:
        raise ModelFormatError(f"{where} is of NumPy's type {name}, which no file can hold")
    plain = value.item()
    if isinstance(plain, float) and not np.isfinite(plain):
        plain = {"number": repr(plain)}
    return {"scalar": [name, plain]}


def function_node(value: Any, where: str) -> Any:
    """Return the name of a function of the fixed table; raise for all other objects."""
    for name, function in FUNCTIONS.items():
        if value is function:
            return {"function": name}
    kind = type(value).__name__
    if callable(value):
        raise ModelFormatError(
            f"{where} is a function ({getattr(value, '__name__', kind)}), and a model file holds "
            "no code; set it to None, or use pickle if the readers of the file trust its source"
        )
    raise ModelFormatError(
        f"{where} is of type {type(value).__module__}.{kind}, which a model file cannot hold"
    )


# --- estimator parts -----------------------------------------------------------------------------
#
# The parts of an estimator: fields that files may hold, nested parts, names of columns.


def state_of(value: Any) -> Fields:
    """Return the fields of an object that files may hold; a certificate is made first."""
    described = RECORDS[str(record_name(value))]
    if "_judgement" in vars_of(value) or "_asked" in vars_of(value):
        # a certificate that waits is made now; a stream has none to make
        _ = getattr(value, "certificate_", None)
    return described.fields_of(value)


def vars_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, if it has any."""
    return getattr(value, "__dict__", {})


def parts_of_machine(machine: Any) -> Iterator[Any]:
    """Return everything inside an estimator except arrays."""
    return _parts_within(machine, set())


def _parts_within(value: Any, seen: set[int]) -> Iterator[Any]:
    if id(value) in seen or isinstance(value, np.ndarray | np.generic | str | int | float):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, list | tuple):
        inner: Any = value
    elif isinstance(value, dict):
        inner = value.values()
    elif record_name(value) is not None:
        inner = state_of(value).values()
    else:
        return
    for part in inner:
        yield from _parts_within(part, seen)


def column_names(found: list[Any]) -> Iterator[list[str]]:
    """Return the names of columns that parts of an estimator use."""
    for part in found:
        for name in ("feature_names_in_", "names"):
            names = vars_of(part).get(name)
            if isinstance(names, np.ndarray | list | tuple) and len(names):
                yield [str(each) for each in names]


# --- kernel text ---------------------------------------------------------------------------------
#
# Kernels as text, and errors for kernels without a text form.

_NUMBER = r"(-?\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?)"
_SHIFTED_POWER = re.compile(
    rf"ShiftedPower\(gamma={_NUMBER}, coef0={_NUMBER}, degree=(-?\d{{1,9}})\)"
)


def write_kernel(kernel: Kernel) -> str:
    """Return the text from which `read_kernel` makes an equal kernel, or raise.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> write_kernel(0.1 * Gaussian(1 / 3) + Linear().on(["age"]))
    "0.1 * Gaussian(scale=0.3333333333333333) + Linear().on(['age'])"
    """
    text = repr(kernel)
    try:
        same = read_kernel(text) == kernel
    except ValueError:
        same = False
    if not same:
        raise ModelFormatError(
            f"the kernel {text[:200]} does not read back from its text: it holds a function, or is "
            "of a class of your own, and a model file holds no code. Compute the matrix and use "
            "kernel='precomputed', or a kernel of mercer.kernels"
        )
    return text


def read_kernel(text: str) -> Kernel:
    """Read a kernel by the library's own parser; nothing is executed."""
    power = _SHIFTED_POWER.fullmatch(text)
    if power is not None:  # scikit-learn's, with a shift that the language has no word for
        gamma, coef0, degree = power.groups()
        return ShiftedPower(float(gamma), float(coef0), int(degree))
    return parse(text, longest=MOST_HEADER)


class KnownKernels:
    """The kernels of an estimator that is saved, by their formulas.

    Fitted estimators hold the formula of their kernel, with column names as numbers. A formula
    travels as the text of a kernel that writes it.

    Parameters
    ----------
    kernels : iterable of Kernel
        The kernels of the estimator.
    names : iterable of sequences of str
        Names of columns, for kernels that speak of them.
    """

    def __init__(self, kernels: Iterable[Kernel], names: Iterable[Any]) -> None:
        named = list(names)
        self._found: list[tuple[Expression, Kernel]] = []
        for kernel in chain((Linear(),), *map(_with_parts, kernels)):
            if isinstance(kernel, Precomputed):
                continue
            for bound in (kernel, *(numbered(kernel, list(each)) for each in named)):
                self._found.append((bound.expression(), bound))

    def kernel_of(self, expression: Expression) -> Kernel:
        """Return a kernel with this formula."""
        for formula, kernel in self._found:
            if formula == expression:
                return kernel
        raise ModelFormatError("a formula does not belong to a kernel of the estimator")


def _with_parts(kernel: Kernel) -> Iterator[Kernel]:
    """Return a kernel, and where features stand for it the kernels that these are made of."""
    yield kernel
    if isinstance(kernel, ApproximateKernel):
        yield from _parts_of_kernel(kernel.kernel)


def _parts_of_kernel(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    if isinstance(kernel, Polynomial):  # sketches contain the base of the power
        yield Linear() + Constant(kernel.offset)
    for value in vars(kernel).values():
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Kernel):
                yield from _parts_of_kernel(inner)


def numbered(kernel: Kernel, names: list[Any]) -> Kernel:
    """Return the kernel with numbers in the place of the names of columns."""
    if isinstance(kernel, ApproximateKernel):
        return kernel  # it speaks of numbers already
    place = {name: i for i, name in enumerate(names)}
    changed: dict[str, Any] = {}
    for name, value in kernel.get_params(deep=True).items():
        if name.rpartition("__")[2] == "columns" and isinstance(value, tuple):
            changed[name] = [place.get(column, column) for column in value]
    return kernel.with_params(**changed) if changed else kernel


def read_expression(text: str) -> Expression:
    """Return the formula of the kernel of a text."""
    return read_kernel(text).expression()
