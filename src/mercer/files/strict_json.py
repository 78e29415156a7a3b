"""JSON that is looked at before it is parsed: size, depth, no key twice, no NaN."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from mercer.files.errors import ModelFormatError

MOST_DEPTH = 64  # brackets within brackets: pipelines of machines within machines have about 25
# the end may lack: a string that is not closed is passed over once, not from each of its quotes
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = re.compile(rb"[^][{}]+")


def read_json(data: bytes) -> Any:
    """Parse JSON in UTF-8, refusing what two readers could understand differently.

    Parameters
    ----------
    data : bytes
        The text; the caller has bounded its length.

    Returns
    -------
    object
        As `json.loads` gives it.

    Examples
    --------
    >>> read_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> read_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    mercer.files.errors.ModelFormatError: the key 'a' is there twice
    """
    _refuse_depth(data)
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse_constant
        )
    except ModelFormatError:
        raise
    except (ValueError, RecursionError) as refusal:
        raise ModelFormatError(f"the header is no JSON ({refusal})") from None


def _refuse_depth(data: bytes) -> None:
    brackets = _NOT_BRACKETS.sub(b"", _STRING.sub(b"", data))
    depth = 0
    for sign in brackets:
        depth += 1 if sign in b"[{" else -1
        if depth > MOST_DEPTH:
            raise ModelFormatError(f"the header is nested deeper than {MOST_DEPTH}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ModelFormatError(f"the key {twice[:80]!r} is there twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ModelFormatError(f"{name} is no number of JSON")


def write_json(value: Any) -> str:
    """Write JSON without spaces; floats are written so that they read back exactly."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
