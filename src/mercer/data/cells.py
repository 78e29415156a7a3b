"""What the text of one cell of a file is: missing, a number, a date, or a word."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isinf

MISSING = (
    "", "?", ".", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-nan",
    "-NaN", "NaT", "null", "NULL", "Null", "None",
)  # fmt: skip
"""Words that stand for a missing entry: those of pandas, ARFF, R and SAS."""

# `++` and `*+` never give back what they took: no word takes longer than its length
_NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)
_DATE = re.compile(
    r"\d{4}([-/])\d\d\1\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)


def number_of(word: str) -> float | None:
    """Read a number; nothing if it is none, and infinity for one beyond float64.

    Examples
    --------
    >>> number_of("-1.5e3"), number_of("inf"), number_of("0x10"), number_of("1_000")
    (-1500.0, inf, None, None)
    """
    word = word.strip()
    if _NUMBER.fullmatch(word) or _INFINITE.fullmatch(word):
        return float(word)
    return None


def overflows(word: str) -> bool:
    """Return whether digits stand for a number beyond float64, such as 1e400."""
    word = word.strip()
    return bool(_NUMBER.fullmatch(word)) and isinf(float(word))


def has_decimal_comma(word: str) -> bool:
    """Return whether a word is a number in the way of 3,14.

    Examples
    --------
    >>> has_decimal_comma("3,14"), has_decimal_comma("1.234,5"), has_decimal_comma("a,1")
    (True, True, False)
    """
    return bool(_DECIMAL_COMMA.fullmatch(word.strip()))


def date_of(word: str) -> datetime | None:
    """Read a date of ISO 8601 (2024-12-31, 2024/12/31, 2024-12-31T23:59:59Z), as UTC.

    Examples
    --------
    >>> date_of("2024-12-31 23:00+02:00")
    datetime.datetime(2024, 12, 31, 21, 0)
    >>> date_of("31/12/2024") is None
    True
    """
    if not _DATE.fullmatch(word):
        return None
    if "." in word:  # Python keeps six digits of a second
        head, _, tail = word.partition(".")
        digits = re.match(r"\d+", tail)
        assert digits is not None
        word = f"{head}.{digits[0][:6]:0<6}{tail[digits.end() :]}"
    try:
        day = datetime.fromisoformat(word.replace("/", "-"))
        return day.astimezone(UTC).replace(tzinfo=None) if day.tzinfo is not None else day
    except (ValueError, OverflowError):
        return None
