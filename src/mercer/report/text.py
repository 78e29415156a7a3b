"""Format words and numbers for a page: visible characters only, and short."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

_PICTURES = 0x2400  # Unicode block of visible symbols for control characters
_HIDDEN = "�"
_TOO_LONG = "…"
_LEFTWARDS = ("R", "AL", "AN")  # letters written from right to left
_OPEN, _CLOSE = "\u2068", "\u2069"  # isolate text of another direction


def clean(content: Any, most: int = 60) -> str:
    r"""Return content as one line of visible text of at most `most` characters.

    Control characters become visible symbols. Direction marks and invisible characters are
    replaced, so that a column name cannot change the text around it. Longer text is cut in the
    middle because long names often differ at their ends. Right-to-left text is isolated, so that
    adjacent numbers keep their positions.

    Examples
    --------
    >>> clean("a\tb")
    'a␉b'
    >>> clean("x" * 100, most=9)
    'xxxx…xxxx'
    """
    cut = _cut(_text(content, most), most)
    kept = (_OPEN, _CLOSE) if _is_balanced(cut) else ()  # text was cleaned before
    shown = "".join(one if one in kept else _visible(one) for one in cut)
    leftwards = any(unicodedata.bidirectional(one) in _LEFTWARDS for one in shown)
    return f"{_OPEN}{shown}{_CLOSE}" if leftwards and _OPEN not in shown else shown


def _is_balanced(text: str) -> bool:
    """Return whether all isolates in a text are closed."""
    depth = 0
    for letter in text:
        depth += (letter == _OPEN) - (letter == _CLOSE)
        if depth < 0:
            return False
    return depth == 0


def clean_lines(content: Any, most: int = 20_000) -> str:
    """Clean a text of several lines, cut at its end."""
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
    # spaces of other scripts become spaces; direction marks, surrogates and others are replaced
    return " " if unicodedata.category(letter) == "Zs" else _HIDDEN


def count(number: float, noun: str = "", plural: str = "") -> str:
    """Write an integer with a noun in singular or plural.

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
    """Write a number with `digits` significant digits. Integers are exact, words are cleaned.

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
    """Write a fraction as a percentage."""
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
    """Write a duration with a suitable unit."""
    for unit, factor in (("µs", 1e6), ("ms", 1e3), ("s", 1.0)):
        if seconds * factor < 1000 or unit == "s":
            break
    if unit == "s" and seconds >= 120:
        return f"{seconds / 60:.3g} min"
    return f"{seconds * factor:.3g} {unit}"


def listed(names: Sequence[Any], most: int = 5) -> str:
    """Write the first names as a list and, if there are more, their number.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    said = [clean(name, 40) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(said)} and {len(names) - most:,} more"
    return ", ".join(said[:-1]) + (" and " if len(said) > 1 else "") + said[-1] if said else "none"
