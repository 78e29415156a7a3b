"""Class `Column`: entries and kind; detection of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan
from numbers import Real
from typing import Any, Literal

import numpy as np

from mercer.array_types import Array
from mercer.data.errors import DataError, shorten
from mercer.data.kinds import Kind, date_of, kind_of, number_of, truth_of

# --- column --------------------------------------------------------------------------------------
#
# One column: its entries as an array, its kind, and how to see it as another kind.

Parsed = Literal["number", "word", "date"]
DATES = np.dtype("datetime64[us]")
_WORDS = {Kind.CATEGORY, Kind.TEXT, Kind.IDENTIFIER}  # kinds whose entries are words
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table.

    Attributes
    ----------
    values : array
        float64 with nan, objects (str, or None if missing), or datetime64[us] with NaT.
    kind : Kind
        Kind of the column.
    parsed : {"number", "word", "date"}
        Type of the entries when read from a file, before conversion to the kind. For example,
        codes "007" read as numbers become the words "7".
    """

    values: Array
    kind: Kind
    parsed: Parsed

    @staticmethod
    def of(name: str, values: Array, kind: Kind | None = None) -> Column:
        """Create a column of a given or inferred kind."""
        truths = truths_in(values) if kind is None else None
        if truths is not None:  # as data frames hold them, so that the same model is fitted
            values, kind = truths, Kind.BINARY
        parsed: Parsed = {"f": "number", "M": "date"}.get(values.dtype.kind, "word")  # type: ignore[assignment]
        column = Column(_locked(values), Kind.CATEGORY, parsed)
        if kind is None:
            kind = Kind.DATE if _are_dates(values) else kind_of(name, values)
        return column.as_kind(name, kind)

    def as_kind(self, name: str, kind: Kind) -> Column:
        """Convert the column to another kind. Raise if an entry cannot be converted."""
        values, parsed = self.values, self.parsed
        if kind in _WORDS:
            values = as_words(values)
        elif kind is Kind.NUMBER:
            parsed = "number" if values.dtype.kind == "O" else parsed
            values = _as_numbers(name, values)
        elif kind is Kind.DATE:
            parsed, values = "date", _as_dates(name, values)
        elif len(different(values)) > 2:
            raise DataError(
                f"has {len(different(values))} distinct values; a binary column has at most two. "
                "Use the kind category or number",
                column=name,
            )
        return Column(_locked(values), kind, parsed)

    def take(self, index: Any) -> Column:
        """Select rows."""
        return Column(_locked(self.values[index]), self.kind, self.parsed)

    @property
    def missing(self) -> Array:
        """A mask of the entries that are missing."""
        return missing_of(self.values)


def _are_dates(values: Array) -> bool:
    """Return whether all words that are not missing are dates."""
    if values.dtype.kind != "O":
        return False
    present = {entry for entry in values.tolist() if entry is not None}
    return bool(present) and all(date_of(entry) is not None for entry in present)


def truths_in(values: Array) -> Array | None:
    """Convert words that are all true or false to 1 and 0; otherwise return None."""
    if values.dtype.kind != "O":
        return None
    known = {entry: truth_of(entry) for entry in set(values.tolist()) if entry is not None}
    if not known or None in known.values():
        return None
    return np.array([np.nan if entry is None else known[entry] for entry in values], dtype=float)


def missing_of(values: Array) -> Array:
    """Return a mask of the entries that are missing."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "M":
        return np.isnat(values)
    return np.fromiter((entry is None for entry in values), bool, len(values))


def different(values: Array) -> list[Any]:
    """Return the distinct entries that are not missing, sorted."""
    if values.dtype.kind == "O":
        return sorted({entry for entry in values.tolist() if entry is not None})
    return list(np.unique(values[~missing_of(values)]).tolist())


def as_words(values: Array) -> Array:
    """Convert entries to words: integers without a decimal point, dates in ISO 8601."""
    if values.dtype.kind == "O":
        return values
    if values.dtype.kind == "M":
        return _objects([None if day is None else _day(day) for day in values.tolist()])
    known, place = np.unique(values, return_inverse=True)
    words = _objects([None if isnan(number) else word_of(number) for number in known.tolist()])
    return np.asarray(words[place])


def word_of(number: float) -> str:
    """Convert a number to a word.

    Examples
    --------
    >>> word_of(7.0), word_of(0.1)
    ('7', '0.1')
    """
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _day(day: Any) -> str:
    if isinstance(day, int):  # microseconds, of a year that Python's dates do not have
        return str(np.datetime64(day, "us"))
    text: str = day.isoformat(sep=" ")
    return text.removesuffix(" 00:00:00")


def _as_numbers(name: str, values: Array) -> Array:
    if values.dtype.kind == "f":
        return values
    if values.dtype.kind == "M":
        days = (values - np.datetime64(0, "us")) / _DAY
        return np.where(np.isnat(values), np.nan, days)
    found = np.empty(len(values))
    for row, entry in enumerate(values.tolist()):
        number = np.nan if entry is None else number_of(entry)
        number = truth_of(entry) if number is None else number
        if number is None:
            raise DataError(
                f"{shorten(entry)!r} in row {row} is not a number; use the kind category, or "
                "add this word to missing",
                column=name,
            )
        found[row] = number
    return found


def _as_dates(name: str, values: Array) -> Array:
    if values.dtype.kind == "M":
        return values
    if values.dtype.kind == "f":
        raise DataError(
            "holds numbers, which cannot be converted to dates; write dates as 2024-12-31, or "
            "use the kind number",
            column=name,
        )
    entries = values.tolist()
    known = {entry: None if entry is None else date_of(entry) for entry in dict.fromkeys(entries)}
    for entry, day in known.items():
        if entry is not None and day is None:
            raise DataError(
                f"{shorten(entry)!r} in row {entries.index(entry)} is not a date; write dates as "
                "2024-12-31 or 2024-12-31 23:59:59",
                column=name,
            )
    place = {entry: k for k, entry in enumerate(known)}
    days = np.array(list(known.values()), dtype=DATES)
    return days[np.fromiter(map(place.__getitem__, entries), np.intp, len(entries))]


# --- entries of any origin ------------------------------------------------------------------


def entries_of(name: str, values: Sequence[Any]) -> Array:
    """Convert Python values to an array of numbers, dates or words."""
    present = [entry for entry in values if not is_missing(entry)]
    if all(isinstance(entry, Real | np.bool_) for entry in present):
        try:
            return np.array(
                [np.nan if is_missing(entry) else float(entry) for entry in values], dtype=float
            )
        except OverflowError:
            raise DataError("holds an integer out of range of float64", column=name) from None
    if present and all(
        isinstance(entry, datetime | np.datetime64) or _is_day(entry) for entry in present
    ):
        return np.array([None if is_missing(e) else _utc(e) for e in values], dtype=DATES)
    for entry in present:
        if not isinstance(entry, str | bytes | Real | np.generic) and not _is_day(entry):
            raise DataError(
                f"holds {type(entry).__name__} objects; a column holds numbers, words or dates",
                column=name,
            )
    return _objects([None if is_missing(entry) else _word(entry) for entry in values])


def is_missing(entry: Any) -> bool:
    """Return whether an entry is None, nan, NaT or the NA of pandas."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(entry != entry)  # noqa: PLR0124  nan and NaT of any type
    except (TypeError, ValueError):
        return False


def _is_day(entry: Any) -> bool:
    return type(entry).__name__ == "date"


def _utc(entry: Any) -> Any:
    if isinstance(entry, datetime) and entry.tzinfo is not None:
        return entry.astimezone(UTC).replace(tzinfo=None)
    return entry


def _word(entry: Any) -> str:
    if isinstance(entry, bytes):
        return entry.decode("utf-8", errors="replace")
    truth = isinstance(entry, bool | np.bool_)
    return word_of(float(entry)) if isinstance(entry, Real) and not truth else str(entry)


def _objects(entries: list[Any]) -> Array:
    found = np.empty(len(entries), dtype=object)
    found[:] = entries
    return found


def _locked(values: Array) -> Array:
    if values.flags.writeable:
        values = values.view()
        values.flags.writeable = False
    return values


# --- labels --------------------------------------------------------------------------------------
#
# Labels or a quantity: the one rule that `fit`, `choose` and `check` tell them by.

FEW_LABELS = (
    10  # different whole numbers that are labels whichever they are: digits, grades, counts
)
MANY = 30  # that are labels if they number classes through: 26 letters
ROWS = 3  # of each of those: two to learn from and one to judge by; a quantity has a rare largest


def are_labels(y: Array) -> bool:
    """Return whether a target contains labels instead of a numeric quantity.

    Words and Boolean values are labels. So are integers with at most 10 distinct values, and
    integers with at most 30 consecutive values from 0 or 1 and three rows each.

    Parameters
    ----------
    y : (n,) array
        Target without missing values.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_labels(np.array(["a", "b"])), are_labels(np.array([3.0, 5.0, 8.0]))
    (True, True)
    >>> are_labels(np.repeat(np.arange(26), 5)), are_labels(np.arange(0, 130, 5))
    (True, False)
    """
    if y.ndim != 1:
        return False
    if y.dtype.kind in "OUSb":
        return True
    if y.dtype.kind not in "iuf":
        return False
    different, counts = np.unique(y, return_counts=True)
    if not np.isfinite(different).all() or (different != np.floor(different)).any():
        return False
    if len(different) <= FEW_LABELS:
        return True
    through = different[0] in (0, 1) and different[-1] - different[0] == len(different) - 1
    return bool(len(different) <= MANY and through and counts.min() >= ROWS)
