"""A small language for the types of fields, and the check of a value against one.

::

    type    =  option { "|" option }
    option  =  name [ "[" sizes "]" ] [ "{" inner "=" outer { "," ... } "}" ] [ "=" size ]
               [ "<" size ] | ("list" | "tuple" | "dict") "(" type ")"

===================  ===================================================================
name                 value
===================  ===================================================================
none bool int text   as in Python
pattern              a regular expression of words that takes linear time
float, number        a finite float; any float
f8 f4 f              a finite array: float64, float32, either
F                    an array of float64 that may hold infinity and NaN
i8 i4 i b            an array of int64, int32, either; of truth values
array                any array
labels               an array of numbers, truth values or strings
words                an array of strings
rows                 rows of numbers, dense or CSR, or strings or lists of strings
csr                  a sparse array
kernel expression    by their text
param                whatever a parameter may be: all of the above, lists, machines
Name, @group         a record of that name, or of a group of names
===================  ===================================================================

Sizes are letters, equal wherever a record has the same letter, or numbers: `coef: f8[s,k]` beside
`points: rows[s,d]` says that there is a coefficient for each point. `Name{k=c}` says that the size
k inside is c here; `int=d` that the number is the size d; `i8[n]<k` that all entries are places
among k.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from mercer.expression import Expression
from mercer.files.token_patterns import is_linear_pattern
from mercer.kernels import Kernel

Sizes = dict[str, int]

_OPTION = re.compile(
    r"(?P<name>@?\w+)"
    r"(?:\((?P<inside>.*)\))?"
    r"(?:\[(?P<sizes>[\w,]*)\])?"
    r"(?:\{(?P<given>[\w=,]*)\})?"
    r"(?:=(?P<equals>\w+))?"
    r"(?:<(?P<below>\w+))?"
)
_CONTAINERS = {"list": list, "tuple": tuple, "dict": dict}


@dataclass(frozen=True)
class Option:
    """One way for a value to be right."""

    name: str
    sizes: tuple[str, ...] | None = None
    given: tuple[tuple[str, str], ...] = ()
    equals: str = ""
    below: str = ""
    inside: Type | None = None


@dataclass(frozen=True)
class Type:
    """What a field may hold: one of several options.

    Attributes
    ----------
    text : str
        As it was written.
    options : tuple of Option
        Any of these.
    """

    text: str
    options: tuple[Option, ...] = field(repr=False)


def read_type(text: str) -> Type:
    """Read a type from its text.

    Examples
    --------
    >>> [option.name for option in read_type("none | f8[n,k]").options]
    ['none', 'f8']
    """
    return Type(text, tuple(_read_option(part.strip()) for part in _split(text)))


def _split(text: str) -> list[str]:
    """Split at the bars that stand outside of parentheses."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _read_option(text: str) -> Option:
    found = _OPTION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no type")
    sizes, given = found["sizes"], found["given"]
    return Option(
        found["name"],
        None if sizes is None else tuple(filter(None, sizes.split(","))),
        tuple(
            (a, b) for a, _, b in (pair.partition("=") for pair in (given or "").split(",")) if a
        ),
        found["equals"] or "",
        found["below"] or "",
        read_type(found["inside"]) if found["inside"] is not None else None,
    )


# --- is a value of a type? -----------------------------------------------------------------------

SizesOf = Callable[[Any], Mapping[str, int]]


@dataclass(frozen=True)
class Checker:
    """Checks values against types.

    Attributes
    ----------
    name_of : callable
        Returns the name of the record that an object is, or None.
    groups : mapping of str to frozenset of str
        Names of records by group.
    sizes_of : callable
        Returns the sizes inside an object that is a record.
    """

    name_of: Callable[[Any], str | None]
    groups: Mapping[str, frozenset[str]]
    sizes_of: SizesOf

    def fits(self, value: Any, kind: Type, sizes: Sizes) -> bool:
        """Return whether a value is of a type; what its sizes are is added to `sizes`."""
        for option in kind.options:
            trial = dict(sizes)
            if self._is(value, option, trial):
                sizes.update(trial)
                return True
        return False

    def _is(self, value: Any, option: Option, sizes: Sizes) -> bool:
        if option.name in _CONTAINERS:
            return self._holds(value, option, sizes)
        simple = _SIMPLE.get(option.name)
        if simple is not None:
            return simple(value) and _has_sizes(value, option, sizes)
        if option.name == "param":
            return self._is_param(value)
        return self._is_record(value, option, sizes)

    def _holds(self, value: Any, option: Option, sizes: Sizes) -> bool:
        wanted: Any = _CONTAINERS[option.name]
        if type(value) is not wanted:
            return False
        if option.sizes is not None and not _bind(option.sizes, (len(value),), sizes):
            return False
        members = value.values() if option.name == "dict" else value
        return option.inside is None or all(self.fits(v, option.inside, sizes) for v in members)

    def _is_record(self, value: Any, option: Option, sizes: Sizes) -> bool:
        name = self.name_of(value)
        if name is None:
            return False
        wanted = option.name
        right = name in self.groups[wanted[1:]] if wanted.startswith("@") else name == wanted
        if not right:
            return False
        inner = self.sizes_of(value) if option.given else {}
        return all(a not in inner or _bind((b,), (inner[a],), sizes) for a, b in option.given)

    def _is_param(self, value: Any) -> bool:
        if isinstance(value, list | tuple | set | frozenset):
            return all(map(self._is_param, value))
        if isinstance(value, dict):
            return all(map(self._is_param, value.values()))
        if value is None or isinstance(value, bool | int | float | str | np.generic | Kernel):
            return True
        return (
            isinstance(value, np.ndarray | sparse.sparray | sparse.spmatrix)
            or self.name_of(value) is not None
        )


def _bind(symbols: tuple[str, ...], shape: tuple[int, ...], sizes: Sizes) -> bool:
    """Return whether sizes agree with what they are elsewhere; new ones are kept."""
    if len(symbols) != len(shape):
        return False
    for symbol, size in zip(symbols, shape, strict=True):
        expected = int(symbol) if symbol.isdigit() else sizes.setdefault(symbol, size)
        if symbol != "_" and expected != size:
            return False
    return True


def _has_sizes(value: Any, option: Option, sizes: Sizes) -> bool:
    if option.equals and not _bind((option.equals,), (int(value),), sizes):
        return False
    if option.sizes is not None:
        shape = tuple(value.shape)
        short = option.name == "rows" and len(shape) == 1  # strings have no columns
        symbols = option.sizes[:1] if short else option.sizes
        if not _bind(symbols, shape, sizes):
            return False
    if not option.below or not value.size:
        return True
    return bool(value.min() >= 0) and (
        option.below not in sizes or bool(value.max() < sizes[option.below])
    )


def _array(dtypes: str, finite: bool = True) -> Callable[[Any], bool]:
    allowed = {np.dtype(name) for name in dtypes.split()}

    def check(value: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype not in allowed:
            return False
        return not finite or value.dtype.kind != "f" or bool(np.isfinite(value).all())

    return check


def is_words(value: Any) -> bool:
    """Return whether a value is an array of strings."""
    if not isinstance(value, np.ndarray):
        return False
    if value.dtype.kind == "O":
        return all(type(word) is str for word in value.ravel())
    return bool(value.dtype.kind == "U")


def _is_labels(value: Any) -> bool:
    return is_words(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


def _is_csr(value: Any) -> bool:
    return isinstance(value, sparse.csr_array | sparse.csr_matrix)


def _is_rows(value: Any) -> bool:
    if _is_csr(value):
        return bool(np.isfinite(value.data).all())
    if not isinstance(value, np.ndarray):
        return False
    if value.dtype.kind == "O":
        return value.ndim == 1 and all(isinstance(row, str | list | tuple) for row in value)
    if value.dtype.kind == "U":
        return value.ndim == 1
    number = value.ndim == 2 and value.dtype.kind in "fiub"
    return number and bool(np.isfinite(value).all())


_SIMPLE: dict[str, Callable[[Any], bool]] = {
    "none": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "int": lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float | np.floating) and bool(np.isfinite(value)),
    "number": lambda value: isinstance(value, float | np.floating),
    "text": lambda value: isinstance(value, str),
    "pattern": is_linear_pattern,
    "f8": _array("f8"),
    "f4": _array("f4"),
    "f": _array("f4 f8"),
    "F": _array("f8", finite=False),
    "i8": _array("i8"),
    "i4": _array("i4"),
    "i": _array("i4 i8"),
    "b": _array("?"),
    "array": lambda value: isinstance(value, np.ndarray),
    "labels": _is_labels,
    "words": is_words,
    "rows": _is_rows,
    "csr": _is_csr,
    "kernel": lambda value: isinstance(value, Kernel),
    "expression": lambda value: isinstance(value, Expression),
}
