"""Schema language: types of fields and their check, records, and safe regular expressions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse

from mercer.expression import Expression
from mercer.files.container import ModelFormatError
from mercer.kernels import Kernel

# --- token patterns ------------------------------------------------------------------------------
#
# Regular expressions that a model file may hold: those that every text is matched with in time.
#
# A pattern such as ``(\w+\s?)+!`` takes time exponential in the length of a text, and a file is
# not trusted to hold none. Taken is one class of characters, repeated: its matches are the runs
# of these characters, found in one pass. A boundary ``\b`` may end it where the characters are
# those of words, since a run ends at one anyway; after other classes each shorter end would be
# tried.

_LONGEST = 200  # signs of a pattern
_REPEATED = r"(?:\+|\{[0-9]{1,2},?\})?"
_LINEAR = re.compile(
    r"(?:\(\?[aiu]+\))?(?:\\b)?"
    rf"(?:(?P<word>\\w)(?P=word)*{_REPEATED}(?:\\b)?"
    rf"|(?P<set>\\[dDsSW]|\[[^\[\]\\]+\]|\[(?:[^\[\]\\]|\\[wdsWDS\-.'])+\])(?P=set)*{_REPEATED})"
)


def is_linear_pattern(value: Any) -> bool:
    r"""Return whether a text is a pattern whose matches take time linear in the text searched.

    Examples
    --------
    >>> is_linear_pattern(r"(?u)\b\w\w+\b"), is_linear_pattern("[a-z'-]{2,}")
    (True, True)
    >>> is_linear_pattern(r"(\w+\s?)+!"), is_linear_pattern(r"[a-z]+\b")
    (False, False)
    """
    if not isinstance(value, str) or len(value) > _LONGEST or not _LINEAR.fullmatch(value):
        return False
    try:
        re.compile(value)
    except (re.error, OverflowError):
        return False
    return True


# --- types ---------------------------------------------------------------------------------------
#
# A small language for the types of fields, and the check of a value against one.
#
# ::
#
#     type    =  option { "|" option }
#     option  =  name [ "[" sizes "]" ] [ "{" inner "=" outer { "," ... } "}" ] [ "=" size ]
#                [ "<" size ] | ("list" | "tuple" | "dict") "(" type ")"
#
# ===================  ===================================================================
# name                 value
# ===================  ===================================================================
# none bool int text   as in Python
# pattern              a regular expression of words that takes linear time
# float, number        a finite float; any float
# f8 f4 f              a finite array: float64, float32, either
# F                    an array of float64 that may hold infinity and NaN
# i8 i4 i b            an array of int64, int32, either; of truth values
# shape                a tuple of sizes
# array                any array
# labels               an array of numbers, truth values or strings
# words                an array of strings
# rows                 rows of numbers, dense or CSR, or strings or lists of strings
# csr                  a sparse array
# kernel expression    by their text
# param                any value of a parameter: all of the above, lists, estimators
# Name, @group         a record of that name, or of a group of names
# ===================  ===================================================================
#
# Sizes are letters, equal wherever a record has the same letter, or numbers: `coef: f8[s,k]`
# with `points: rows[s,d]` states that there is a coefficient for each point. `Name{k=c}` states
# that the size k inside is c here; `int=d` that the number is the size d; `i8[n]<k` that all
# entries are places among k, which another field must say: the table is not built otherwise. With
# `i8[n]<k?` that field may lack, as it does in files of earlier releases.

Sizes = dict[str, int]

_OPTION = re.compile(
    r"(?P<name>@?\w+)"
    r"(?:\((?P<inside>.*)\))?"
    r"(?:\[(?P<sizes>[\w,]*)\])?"
    r"(?:\{(?P<given>[\w=,]*)\})?"
    r"(?:=(?P<equals>\w+))?"
    r"(?:<(?P<below>\w+\??))?"
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
    """The type of a field: one of several options.

    Attributes
    ----------
    text : str
        The text of the type.
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
        raise ValueError(f"{text!r} is not a type")
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


def all_options(kind: Type) -> list[Option]:
    """Return the options of a type, those inside of containers among them."""
    inner = [all_options(option.inside) for option in kind.options if option.inside is not None]
    return [*kind.options, *(option for found in inner for option in found)]


def bounds_of(kind: Type) -> set[str]:
    """Return the sizes that entries of a type are places among."""
    return {option.below.rstrip("?") for option in all_options(kind)} - {""}


def sizes_said(kind: Type) -> set[str]:
    """Return the sizes that values of a type may say."""
    options = all_options(kind)
    letters = [(*(o.sizes or ()), o.equals, *(outer for _, outer in o.given)) for o in options]
    return {letter for found in letters for letter in found} - {"", "_"}


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
        """Return whether a value is of a type; add its sizes to `sizes`."""
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
    """Return whether sizes agree with those found before; keep new ones."""
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
        shape = value if option.name == "shape" else tuple(value.shape)
        short = option.name == "rows" and len(shape) == 1  # strings have no columns
        symbols = option.sizes[:1] if short else option.sizes
        if not _bind(symbols, shape, sizes):
            return False
    if not option.below or not value.size:
        return True
    letter = option.below.rstrip("?")
    if letter not in sizes:
        return letter != option.below and bool(value.min() >= 0)
    return bool(value.min() >= 0 and value.max() < sizes[letter])


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


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(size) is int and size >= 0 for size in value)


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
    "shape": _is_shape,
    "array": lambda value: isinstance(value, np.ndarray),
    "labels": _is_labels,
    "words": is_words,
    "rows": _is_rows,
    "csr": _is_csr,
    "kernel": lambda value: isinstance(value, Kernel),
    "expression": lambda value: isinstance(value, Expression),
}


# --- record --------------------------------------------------------------------------------------
#
# Records: classes that a file may name, with their fields.

Fields = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A class that a file may name.

    Attributes
    ----------
    name : str
        Its name in files: never changed, whatever the class is called.
    kind : type
        The class.
    types : dict of str to Type
        Its fields.
    optional : frozenset of str
        Those that need not be there.
    parameters : frozenset of str
        Those that the constructor takes.
    group : str
        Its group, if any.
    whole : bool
        Whether a file may hold it as its estimator.
    state : callable
        Returns the fields of an object.
    make : callable
        Returns the object of fields.
    check : callable
        Raises `ValueError` if an object is not whole in a way that types do not say.
    bare : bool
        Whether the constructor is left out, and the attributes are set.
    forgets : frozenset of str
        Attributes that are not saved: they are made again when they are asked for.
    """

    name: str
    kind: type
    types: Mapping[str, Type]
    optional: frozenset[str]
    parameters: frozenset[str]
    group: str = ""
    whole: bool = False
    state: Callable[[Any], Fields] | None = None
    make: Callable[[Fields], Any] | None = None
    check: Callable[[Any], None] | None = None
    bare: bool = False
    forgets: frozenset[str] = frozenset()

    def fields_of(self, value: Any) -> Fields:
        """Return the fields of an object."""
        if self.state is not None:
            return self.state(value)
        if is_dataclass(value):
            return {each.name: getattr(value, each.name) for each in fields(value)}
        held = vars(value).items()
        return {name: field for name, field in held if name not in self.forgets}

    def build(self, found: Fields) -> Any:
        """Return the object of fields whose types have been checked."""
        built = self._build(found)
        if self.check is not None and not found.keys() <= self.parameters:
            self.check(built)
        return built

    def _build(self, found: Fields) -> Any:
        if self.make is not None:
            return self.make(found)
        if is_dataclass(self.kind) and all(each.init for each in fields(self.kind)):
            return self.kind(**found)
        if is_dataclass(self.kind) or self.bare:
            built: Any = object.__new__(self.kind)
            vars(built).update(found)
            return built
        given = {name: found[name] for name in self.parameters if name in found}
        built = self.kind(**given)
        vars(built).update(found)
        return built


RECORDS: dict[str, Record] = {}
ENUMS: dict[str, type[Enum]] = {}
FUNCTIONS: dict[str, Callable[..., Any]] = {}
_NAMES: dict[type, str] = {}
_GROUPS: dict[str, frozenset[str]] = {}
_EXPLAINED = {  # types whose text alone does not explain itself
    "pattern": r"one class of characters, repeated, such as \w+ or [a-z]{2,} (what other patterns "
    "take may grow without bound)"
}


def record(
    kind: type,
    text: str = "",
    *,
    name: str = "",
    group: str = "",
    closed: bool = False,
    **options: Any,
) -> None:
    """Let files hold a class.

    Parameters
    ----------
    kind : type
        The class.
    text : str
        Its fields: lines of "name, name: type"; a mark "?" after a name says that the field need
        not be there. Parameters of the constructor that are not listed are of type `param`.
    name : str
        Its name in files, if that is not the name of the class.
    group : str
        A group of classes that may stand in each other's place.
    closed : bool
        Whether the fields listed are all.
    **options : object
        See `Record`.
    """
    types, optional = _read_fields(text)
    name = name or kind.__name__
    said = set().union(*map(sizes_said, types.values()))
    for each, typed in types.items():
        if not bounds_of(typed) <= said:
            raise ValueError(f"{name}.{each}: {typed.text}: no field gives their number")
    parameters = frozenset(_parameters(kind))
    if not closed:
        for parameter in parameters - types.keys():
            types[parameter] = read_type("param")
    made = Record(name, kind, types, optional, parameters, group, **options)
    if name in RECORDS or kind in _NAMES:
        raise ValueError(f"{name} is there twice")
    RECORDS[name] = made
    _NAMES[kind] = name
    if group:
        _GROUPS[group] = _GROUPS.get(group, frozenset()) | {name}


def retired(name: str, options: str, make: Callable[[Fields], Any]) -> None:
    """Let files of the last version hold a class that is no more, and be read as another.

    Parameters
    ----------
    name : str
        Its name in files.
    options : str
        Names of its fields, which are parameters.
    make : callable
        Returns what takes its place.
    """
    types = {option: read_type("param") for option in options.split()}
    every = frozenset(types)
    RECORDS[name] = Record(name, type(None), types, every, every, make=make)


def _read_fields(text: str) -> tuple[dict[str, Type], frozenset[str]]:
    types, optional = {}, set()
    for line in filter(str.strip, text.splitlines()):
        names, _, kind = line.partition(":")
        for name in (part.strip() for part in names.split(",")):
            plain = name.rstrip("?")
            types[plain] = read_type(kind.strip())
            if plain != name:
                optional.add(plain)
    return types, frozenset(optional)


def _parameters(kind: type) -> list[str]:
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return [name for name in inspect.signature(kind).parameters if name != "self"]


def record_name(value: Any) -> str | None:
    """Return the name of the record that an object is: by its very class, not one above it."""
    return _NAMES.get(type(value))


def name_of(value: Any) -> str | None:
    """Return what types call an object: a record, a choice, or a function of the library."""
    if isinstance(value, Enum):
        return type(value).__name__ if type(value) in ENUMS.values() else None
    if any(value is function for function in FUNCTIONS.values()):
        return "function"
    return record_name(value)


# --- checks --------------------------------------------------------------------------------------


def check_fields(described: Record, found: Fields, inside: Mapping[int, Sizes]) -> Sizes:
    """Raise an error if the fields are not those of a record; return their sizes.

    Parameters
    ----------
    described : Record
        The expected record.
    found : dict
        The fields.
    inside : mapping of int to dict
        Sizes of the records among the fields, by identity.
    """
    unfitted = found.keys() <= described.parameters
    missing = described.types.keys() - found.keys() - described.optional
    if missing and not (unfitted and described.whole):
        raise ModelFormatError(f"{described.name} lacks {sorted(missing)[0]!r}")
    for name in found.keys() - described.types.keys():
        raise ModelFormatError(f"{described.name} has no field {name!r:.60}")
    checker = Checker(name_of, _GROUPS, lambda value: inside.get(id(value), {}))
    sizes: Sizes = {}
    for name, kind in sorted(described.types.items(), key=lambda item: bool(bounds_of(item[1]))):
        if name in found and not checker.fits(found[name], kind, sizes):
            known = _show_sizes(kind, sizes)
            expected = _EXPLAINED.get(kind.text, kind.text)
            raise ModelFormatError(
                f"{described.name}.{name} is {_show(found[name])}, but {expected} is expected"
                + (f" where {known}" if known else "")
            )
    return sizes


def _show(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and shape:  # records may have a `shape` of their own
        return f"an array of {dtype} and shape {shape}"
    if isinstance(value, str | bool | int | float) or value is None:
        return f"{value!r:.60}"
    return f"of type {type(value).__name__}"


def _show_sizes(kind: Type, sizes: Sizes) -> str:
    letters = [s for option in kind.options for s in option.sizes or ()]
    return ", ".join(f"{s} = {sizes[s]}" for s in dict.fromkeys(letters) if s != "_" and s in sizes)


# --- estimator -----------------------------------------------------------------------------------
#
# Estimators: records that a file may hold as a whole.

_COLUMNS = """
    n_features_in_?: int=d
    feature_names_in_?: words[d]
"""
JUDGED = """
    solution_: Solution
    _judgement: Certificate
"""
_APPROXIMATED = """
    approximation?: param
    approximation_error_?, approximation_error_x_?, approximation_error_y_?: StatedError
"""
FITTED = JUDGED + "kernel_: kernel\n"


def machine(kind: type, text: str, *, name: str = "", **options: Any) -> None:
    """Register an estimator; its attributes are described here, its parameters need no description.

    Parameters
    ----------
    kind : type
        The class.
    text : str
        Its fitted attributes: lines of "name, name: type".
    name : str
        Its name in files, if that is not the name of the class.
    **options : object
        See `mercer.files.schema.records.Record`.
    """
    if "approximation" in signature(kind).parameters:
        text += _APPROXIMATED
    record(kind, _COLUMNS + text, name=name, group="machine", whole=True, **options)
