"""NumPy's operators for rows on a card, by the copy of them on the host."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mercer.card_rows.arrays import CardArray

Kind = TypeVar("Kind", bound=type)


def is_matrix(value: Any) -> bool:
    """Return whether a value is numbers of float64: a vector, or a matrix on the host."""
    if isinstance(value, CardArray):
        return True
    return isinstance(value, np.ndarray) and value.ndim in (1, 2) and value.dtype == np.float64


def host_of(value: Any) -> Any:
    """Return rows on a card, or their transpose, on the host; anything else as it is."""
    return value.on_host() if hasattr(value, "on_host") else value


def with_operators(kind: Kind) -> Kind:
    """Give a class that has `on_host` the operators of arrays."""
    for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
        setattr(kind, f"__{name}__", _by_host(getattr(operator, name)))
        setattr(kind, f"__r{name}__", _by_host(getattr(operator, name), reflected=True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg"):
        setattr(kind, f"__{name}__", _by_host(getattr(operator, name)))
    kind.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]
    return kind


def _by_host(verb: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        mine = [self.on_host(), *map(host_of, others)]
        return verb(*(reversed(mine) if reflected else mine))

    return method
