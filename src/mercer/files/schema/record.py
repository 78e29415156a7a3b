"""Records: classes that a file may name, with their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from mercer.files.errors import ModelFormatError
from mercer.files.schema.types import Checker, Sizes, Type, read_type

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
        What group it belongs to, if any.
    whole : bool
        Whether a file may hold it as its machine.
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
_EXPLAINED = {  # types whose text alone does not say what is right
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
    """Refuse fields that are not those of a record; return their sizes.

    Parameters
    ----------
    described : Record
        What is expected.
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
    for name, kind in described.types.items():
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
