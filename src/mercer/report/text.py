"""Words and numbers as a page shows them: cleaned of what cannot be seen, and short."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

_PICTURES = 0x2400  # where Unicode has a visible sign for each control character
_HIDDEN = "�"
_TOO_LONG = "…"
_LEFTWARDS = ("R", "AL", "AN")  # letters that are written from right to left
_OPEN, _CLOSE = "\u2068", "\u2069"  # what stands between does not move what stands beside


def clean(content: Any, most: int = 60) -> str:
    r"""Return content as one line of visible text of at most `most` characters.

    Control characters get their visible signs, and marks that turn the direction of writing or are
    not seen at all are replaced: a column name must not rewrite what stands beside it. What is
    longer is cut in the middle, since long names often differ at their ends. What is written from
    right to left is set apart, so that numbers beside it stay in their place.

    Examples
    --------
    >>> clean("a\tb")
    'a␉b'
    >>> clean("x" * 100, most=9)
    'xxxx…xxxx'
    """
    cut = _cut(_text(content, most), most)
    kept = (_OPEN, _CLOSE) if _is_balanced(cut) else ()  # of a text that was cleaned before
    shown = "".join(one if one in kept else _visible(one) for one in cut)
    leftwards = any(unicodedata.bidirectional(one) in _LEFTWARDS for one in shown)
    return f"{_OPEN}{shown}{_CLOSE}" if leftwards and _OPEN not in shown else shown


def _is_balanced(text: str) -> bool:
    """Return whether everything that is set apart in a text ends in it."""
    depth = 0
    for letter in text:
        depth += (letter == _OPEN) - (letter == _CLOSE)
        if depth < 0:
            return False
    return depth == 0


def clean_lines(content: Any, most: int = 20_000) -> str:
    """Do the same for a text of many lines, cut at its end."""
    text = str(content)
    kept = text[:most] + (f"\n{_TOO_LONG}" if len(text) > most else "")
    return "".join(one if one in "\n" else _visible(one) for one in kept.expandtabs(4))


def _text(content: Any, most: int) -> str:
    if isinstance(content, str):
        return str(content)
    if isinstance(content, bytes):
        return content[: 4 * most].decode("utf-8", "replace")
    return str(content)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = (most - 1) - (most - 1) // 2
    tail = most - 1 - head
    return text[:head] + _TOO_LONG + (text[-tail:] if tail else "")


def _visible(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 32:
        return chr(_PICTURES + code)
    if code == 127:
        return chr(0x2421)
    # spaces of other scripts are spaces; what is left are marks of direction, halves of pairs, ...
    return " " if unicodedata.category(letter) == "Zs" else _HIDDEN


def count(number: float, noun: str = "", plural: str = "") -> str:
    """Write a whole number, with a noun in its right form.

    Examples
    --------
    >>> count(4601, "row"), count(1, "class", "classes")
    ('4,601 rows', '1 class')
    """
    said = f"{int(number):,}"
    if not noun:
        return said
    return f"{said} {noun if number == 1 else plural or noun + 's'}"


def figure(value: Any, digits: int = 4) -> str:
    """Write a number with so many significant digits; whole numbers whole, words cleaned.

    Examples
    --------
    >>> figure(0.123456), figure(12000), figure(1.5e-9), figure(True)
    ('0.1235', '12,000', '1.5e-09', 'yes')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if not isinstance(value, float | np.floating):
        return clean(value)
    number = float(value)
    if not math.isfinite(number):
        return "not a number" if math.isnan(number) else ("∞" if number > 0 else "−∞")
    said = f"{number:.{digits}g}"
    if 1000 <= abs(number) < 1e7:
        said = f"{number:,.0f}"
    return said.replace("-", "−", 1) if said.startswith("-") else said


def share(value: float, digits: int = 1) -> str:
    """Write a share in per cent."""
    return "–" if not math.isfinite(value) else f"{100 * value:.{digits}f} %"


def size(n_bytes: float) -> str:
    """Write a size in bytes.

    Examples
    --------
    >>> size(999), size(2_500_000)
    ('999 bytes', '2.5 MB')
    """
    if n_bytes < 1000:
        return f"{int(n_bytes)} bytes"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if n_bytes < 1000 or unit == "GB":
            break
    return f"{n_bytes:.3g} {unit}"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    for unit, factor in (("µs", 1e6), ("ms", 1e3), ("s", 1.0)):
        if seconds * factor < 1000 or unit == "s":
            break
    if unit == "s" and seconds >= 120:
        return f"{seconds / 60:.3g} min"
    return f"{seconds * factor:.3g} {unit}"


def listed(names: Sequence[Any], most: int = 5) -> str:
    """Write some names in a row, and how many there are beside.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    said = [clean(name, 40) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(said)} and {len(names) - most:,} more"
    return ", ".join(said[:-1]) + (" and " if len(said) > 1 else "") + said[-1] if said else "none"
