"""Methods that a machine has only with some of its parameters, and that say which."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from mercer.foreign_arrays import METHODS, answering_in_kind

Method = Callable[..., Any]


def offered_if(check: Callable[[Any], bool]) -> Callable[[Method], Any]:
    """Make a method one that is there only where `check` passes.

    scikit-learn's `available_if` does the same, but keeps the reason to itself: here the
    AttributeError that `check` raises is what people read. `hasattr` is false all the same.
    """

    def offered(method: Method) -> _Offered:
        rows = method.__name__ in METHODS
        return _Offered(answering_in_kind(method) if rows else method, check)

    return offered


class _Offered:
    def __init__(self, method: Method, check: Callable[[Any], bool]) -> None:
        self.method, self.check = method, check
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, machine: Any, owner: type | None = None) -> Any:
        if machine is None:
            return self.method
        if not self.check(machine):
            raise AttributeError(
                f"{type(machine).__name__} has no attribute {self.method.__name__!r}"
            )
        return MethodType(self.method, machine)
