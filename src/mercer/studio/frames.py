"""Messages as JSON: non-finite numbers by name, large arrays as base64."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from mercer.array_types import Array

_NAMES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_PACKED = {"f": ("float32", "<f4"), "i": ("int32", "<i4"), "u": ("int32", "<i4")}
_SMALL = ("int8", "<i1")


def text_of(frame: Any) -> str:
    """Write a message; numbers that are not finite are the words "inf", "-inf" and "nan".

    Examples
    --------
    >>> text_of({"id": 1, "gap": float("inf")})
    '{"id":1,"gap":"inf"}'
    """
    return json.dumps(plain(frame), separators=(",", ":"), allow_nan=False)


def plain(value: Any) -> Any:
    """Return a JSON value: Python numbers, lists, and words for non-finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"x": np.array([1.0, np.nan]), "n": np.int64(3)})
    {'x': [1.0, 'nan'], 'n': 3}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def number(value: Any) -> Any:
    """Return the number that a word of `text_of` stands for; return other values unchanged."""
    return _NAMES.get(value, value) if isinstance(value, str) else value


def packed(values: Array, *, small: bool = False) -> dict[str, Any]:
    """Write an array by its bytes, in base64: float32, int32, or int8 for small integers.

    Examples
    --------
    >>> import numpy as np
    >>> packed(np.array([[1.0, 2.0]]))
    {'shape': [1, 2], 'float32': 'AACAPwAAAEA='}
    """
    name, code = _SMALL if small else _PACKED[values.dtype.kind]
    with np.errstate(over="ignore"):  # beyond float32 is beyond any picture
        made = np.ascontiguousarray(values, dtype=code)
    return {"shape": list(values.shape), name: base64.b64encode(made.tobytes()).decode("ascii")}
