"""Column kinds: inference, and parsing of cells."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import Enum
from math import isinf
from typing import Any

import numpy as np

from mercer.array_types import Array

# --- cells ---------------------------------------------------------------------------------------
#
# What the text of one cell of a file is: missing, a number, a date, or a word.

MISSING = (
    "", "?", ".", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-nan",
    "-NaN", "NaT", "null", "NULL", "Null", "None",
)  # fmt: skip
"""Default markers of missing values: those of pandas, ARFF, R and SAS."""

# `++` and `*+` never give back what they took: no word takes longer than its length
_NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)
_DATE = re.compile(
    r"\d{4}([-/])\d\d\1\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)


def number_of(word: str) -> float | None:
    """Parse a number. Return None if invalid, and infinity out of range of float64.

    Examples
    --------
    >>> number_of("-1.5e3"), number_of("inf"), number_of("0x10"), number_of("1_000")
    (-1500.0, inf, None, None)
    """
    word = word.strip()
    if _NUMBER.fullmatch(word) or _INFINITE.fullmatch(word):
        return float(word)
    return None


def truth_of(word: str) -> float | None:
    """Parse true or false in any case as 1 or 0. Return None if invalid.

    Examples
    --------
    >>> truth_of("True"), truth_of("FALSE"), truth_of("yes")
    (1.0, 0.0, None)
    """
    return {"true": 1.0, "false": 0.0}.get(word.strip().casefold())


def overflows(word: str) -> bool:
    """Return whether a number is out of range of float64, such as 1e400."""
    word = word.strip()
    return bool(_NUMBER.fullmatch(word)) and isinf(float(word))


def has_decimal_comma(word: str) -> bool:
    """Return whether a word is a number with a decimal comma, such as 3,14.

    Examples
    --------
    >>> has_decimal_comma("3,14"), has_decimal_comma("1.234,5"), has_decimal_comma("a,1")
    (True, True, False)
    """
    return bool(_DECIMAL_COMMA.fullmatch(word.strip()))


def date_of(word: str) -> datetime | None:
    """Parse a date of ISO 8601 (2024-12-31, 2024/12/31, 2024-12-31T23:59:59Z) as UTC.

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


# --- kinds ---------------------------------------------------------------------------------------
#
# Kinds of columns, and how they are inferred from the entries.
#
# Numbers are numbers, of which two different ones are binary. The words true and false, in any
# case, are the numbers 1 and 0, as truth values of data frames are. Other words are binary if there
# are two different ones, text if there are many and most entries are of several words, categories
# if there are few or each comes several times, and otherwise identifiers: names of the rows, which
# tell nothing about other rows. Whole numbers are identifiers only if no two are equal *and* the
# column is named like one.

FEW_WORDS = 20  # different words that are categories in any table
REPEATED = 4  # times that a word comes on average: more different words are categories, too
WORDS = 2.5  # in a typical entry: running text
WORD = re.compile(r"(?u)\b\w\w+\b")  # what counts as a word, as scikit-learn has it
SAMPLE = 10_000  # entries that the number of words is measured on
# "id", "user_id", "userId", "passenger.id", row names of R and pandas
_LIKE_ID = re.compile(
    r"(?i:id|identifier|.*[\s_.\-]id|row_?names?|row_?number|index|unnamed: ?0|uuid|guid)"
    r"|.*[a-z0-9]I[dD]"
)


class Kind(Enum):
    """Kind of a column.

    Examples
    --------
    >>> Kind("category")
    <Kind.CATEGORY: 'category'>
    >>> [kind.value for kind in Kind]
    ['number', 'category', 'binary', 'text', 'date', 'identifier']
    """

    NUMBER = "number"
    CATEGORY = "category"
    BINARY = "binary"
    TEXT = "text"
    DATE = "date"
    IDENTIFIER = "identifier"

    @property
    def entries(self) -> str:
        """Plural for messages, as in "holds categories"."""
        plural = {"category": "categories", "binary": "one of two values", "text": "text"}
        return plural.get(self.value, self.value + "s")


def kind_named(kind: Any) -> Kind:
    """Return a kind by its name.

    Examples
    --------
    >>> kind_named("Category"), kind_named(Kind.TEXT)
    (<Kind.CATEGORY: 'category'>, <Kind.TEXT: 'text'>)
    """
    if isinstance(kind, Kind):
        return kind
    try:
        return Kind(str(kind).lower())
    except ValueError:
        known = ", ".join(one.value for one in Kind)
        raise ValueError(f"kind {kind!r} must be one of {known}") from None


def kind_of(name: str, values: Array) -> Kind:
    """Infer the kind of a column from its name and entries.

    Parameters
    ----------
    name : str
        Name of the column.
    values : array
        Numbers with nan, words with None, or dates with NaT.

    Returns
    -------
    Kind

    Examples
    --------
    >>> kind_of("age", np.array([31.0, np.nan, 40.0, 52.0]))
    <Kind.NUMBER: 'number'>
    >>> kind_of("sick", np.array(["yes", "no", None, "no"], dtype=object))
    <Kind.BINARY: 'binary'>
    """
    if values.dtype.kind == "M":
        return Kind.DATE
    if values.dtype.kind == "f":
        return _kind_of_numbers(name, values)
    present = [entry for entry in values.tolist() if entry is not None]
    different = len(set(present))
    if different == 2:
        return Kind.BINARY
    if different > FEW_WORDS and words_of_an_entry(present) >= WORDS:
        return Kind.TEXT
    repeated = len(present) >= REPEATED * different
    return Kind.CATEGORY if different <= FEW_WORDS or repeated else Kind.IDENTIFIER


def words_of_an_entry(present: list[str]) -> float:
    """Return the median number of words per entry."""
    some = present[:: max(1, len(present) // SAMPLE)]
    return float(np.median([len(WORD.findall(text)) for text in some])) if some else 0.0


def _kind_of_numbers(name: str, values: Array) -> Kind:
    present = values[~np.isnan(values)]
    if not len(present):
        return Kind.NUMBER
    low, high = present.min(), present.max()
    two = low < high and bool(((present == low) | (present == high)).all())
    if two and (len(present) > 2 or (low, high) == (0.0, 1.0)):  # two rows alone say nothing
        return Kind.BINARY
    if _LIKE_ID.fullmatch(name) and len(present) == len(values) and are_all_different(present):
        return Kind.IDENTIFIER
    return Kind.NUMBER


def are_all_different(values: Array) -> bool:
    """Return whether entries are distinct integers."""
    if len(values) <= 2 or not bool((values == np.floor(values)).all()):
        return False
    return len(np.unique(values)) == len(values)


def count_the_rows(values: Array) -> bool:
    """Return whether numbers increase by one per row."""
    return len(values) > FEW_WORDS and bool((np.diff(values) == 1.0).all())
