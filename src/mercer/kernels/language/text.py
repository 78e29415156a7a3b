"""How kernels are written down, so that `eval` (and `mercer.kernels.parse`) read them back.

Functions are the exception: they print their qualified name, which does not read back.
"""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel


class Binding(IntEnum):
    """How strongly a kernel's text holds together; weaker ones need brackets."""

    SUM = 1
    PRODUCT = 2
    POWER = 3
    ATOM = 4


def call(kernel: Kernel) -> str:
    """Write a kernel as the call that makes it."""
    arguments = (f"{f.name}={value(getattr(kernel, f.name))}" for f in fields(kernel))
    return f"{type(kernel).__name__}({', '.join(arguments)})"


def in_parentheses(kernel: Kernel, binding: Binding) -> str:
    """Write a kernel, in brackets if it binds more weakly than asked."""
    return repr(kernel) if kernel.binding >= binding else f"({kernel!r})"


def value(parameter: Any) -> str:
    """Write one parameter."""
    if callable(parameter) and not isinstance(parameter, type):
        return name(parameter)
    if isinstance(parameter, float) and parameter == inf:
        return "float('inf')"  # `inf` alone is not a Python name
    return repr(parameter)


def name(function: Any) -> str:
    """Write the qualified name of a function; an object without one writes itself."""
    qualified = getattr(function, "__qualname__", None)
    return repr(function) if qualified is None else f"{function.__module__}.{qualified}"
