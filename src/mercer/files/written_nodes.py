"""Small nodes of the JSON text as they are written: integers, NumPy's scalars, known functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.files.errors import ModelFormatError
from mercer.files.nodes import SCALARS
from mercer.files.schema.record import FUNCTIONS


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
    """Return the name of a function of the fixed table; refuse all other objects."""
    for name, function in FUNCTIONS.items():
        if value is function:
            return {"function": name}
    kind = type(value).__name__
    if callable(value):
        raise ModelFormatError(
            f"{where} is a function ({getattr(value, '__name__', kind)}), and a model file holds "
            "no code; set it to None, or use pickle among people who trust each other"
        )
    raise ModelFormatError(
        f"{where} is of type {type(value).__module__}.{kind}, which a model file cannot hold"
    )
