"""Constructor arguments: names of other libraries, deprecated names and unknown names.

For unknown arguments such as `SVC(gamma=1)`, Python's error only names the argument. Mercer's
errors also suggest the equivalent or the nearest argument.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, ClassVar, Self, TypeVar


class NamedArguments:
    """Base of classes whose constructors explain unknown arguments.

    Attributes
    ----------
    other_names : dict of str to str
        Names in other libraries and their replacement in Mercer. `{value}` is replaced with the
        argument.
    alternatives : frozenset of str
        Names that the constructor accepts in addition to its signature.
    """

    other_names: ClassVar[Mapping[str, str]] = {}
    alternatives: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create the object. Raise for unknown names."""
        kind: Any = cls
        known = arguments_of(kind)
        if not kwargs.keys() <= known:
            name = next(name for name in kwargs if name not in known)
            raise TypeError(unknown(cls, name, kwargs[name]))
        if args:
            cls.check_first(args[0])
        return super().__new__(cls)

    @classmethod
    def check_first(cls, given: Any) -> None:
        """Raise if the first argument was probably meant for another parameter."""

    @classmethod
    def what_stands_for(cls, name: str) -> str | None:
        """Return the replacement of another library's name."""
        return cls.other_names.get(name)


@functools.cache
def arguments_of(kind: Any) -> frozenset[str]:
    """Return the names that a constructor accepts."""
    parameters = inspect.signature(kind.__init__).parameters
    return frozenset({*parameters, *kind.alternatives} - {"self"})


@functools.cache
def first_argument(kind: Any) -> str:
    """Return the name of a constructor's first argument."""
    return [*inspect.signature(kind.__init__).parameters, "", ""][1]


def unknown(kind: Any, name: str, value: Any) -> str:
    """Return the error message for an unknown argument, with a suggestion.

    Examples
    --------
    >>> from mercer import SVC
    >>> print(unknown(SVC, "max_iters", 5))
    SVC: there is no parameter 'max_iters'; did you mean 'max_iter'?
    """
    start, hint = f"{kind.__name__}: there is no parameter {name!r}", kind.what_stands_for(name)
    if hint is not None:
        written = repr(value)
        return f"{start}: {hint.replace('{value}', written if len(written) <= 20 else '...')}"
    own = {argument.lower(): argument for argument in sorted(arguments_of(kind))}
    near = get_close_matches(name.lower(), own, n=1)
    if near:
        return f"{start}; did you mean {own[near[0]]!r}?"
    return f"{start}; there are {', '.join(own.values())}"


K = TypeVar("K", bound=type[NamedArguments])
T = TypeVar("T", bound=type)
Conversion = Callable[[str, str, Any], Any]
"""Converts an argument (owner, name, value) to the value of the parameter it replaces."""


def also_named(parameter: str, **conversions: Conversion) -> Callable[[K], K]:
    """Accept other names of a dataclass parameter, each with a conversion.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(gamma=0.125)
    Gaussian(scale=2.0)
    """

    def extend(kind: K) -> K:
        init: Any = kind.__init__
        place = [field.name for field in fields(kind)].index(parameter)  # type: ignore[arg-type]

        @functools.wraps(init)
        def converting(self: Any, *args: Any, **kwargs: Any) -> None:
            for name in conversions.keys() & kwargs.keys():
                if parameter in kwargs or len(args) > place:
                    raise TypeError(
                        f"{kind.__name__}: {parameter} and {name} are the same; pass only one"
                    )
                kwargs[parameter] = conversions[name](kind.__name__, name, kwargs.pop(name))
            init(self, *args, **kwargs)

        kind.__init__ = converting  # type: ignore[method-assign]
        kind.alternatives = kind.alternatives | conversions.keys()
        return kind

    return extend


def renamed_field(new: str, old: str) -> Callable[[T], T]:
    """Accept the deprecated name of a dataclass field with a warning."""

    def extend(kind: T) -> T:
        init: Any = kind.__init__  # type: ignore[misc]

        @functools.wraps(init)
        def renaming(self: Any, *args: Any, **kwargs: Any) -> None:
            if old in kwargs:
                _warn_of_old_name(kind, old, new)
                kwargs[new] = kwargs.pop(old)
            init(self, *args, **kwargs)

        kind.__init__ = renaming  # type: ignore[misc]
        setattr(kind, old, renamed(new, old))
        return kind

    return extend


def renamed(new: str, old: str) -> property:
    """Return a deprecated alias of a property."""

    def read(self: Any) -> Any:
        _warn_of_old_name(type(self), old, new)
        return getattr(self, new)

    return property(read, doc=f"Deprecated name of `{new}`.")


def _warn_of_old_name(kind: type, old: str, new: str) -> None:
    text = f"{kind.__name__}: {old} is deprecated; its name is {new}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
