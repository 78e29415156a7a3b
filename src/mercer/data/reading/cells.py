"""Convert fields of text to columns, one at a time or vectorized, or by pyarrow."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isinf, nan
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.column import Parsed
from mercer.data.errors import DataError, Limits, shorten
from mercer.data.kinds import number_of, overflows
from mercer.data.reading.records import Chunk, Records, has_long_line, lines_of

# --- convert -------------------------------------------------------------------------------------
#
# Fields of a text as the entries of a column: numbers or words.


@dataclass(frozen=True, eq=False)
class Cells:
    """How fields become entries.

    Attributes
    ----------
    missing : frozenset of str
        Words that stand for a missing entry.
    decimal : str
        The decimal point of numbers.
    """

    missing: frozenset[str]
    decimal: str

    @property
    def plain(self) -> bool:
        """Whether no number stands for a missing entry, and the decimal point is a point."""
        return self.decimal == "." and not any(number_of(word) is not None for word in self.missing)


class NotANumberError(Exception):
    """A field that is no number, in a column of numbers."""

    def __init__(self, row: int, word: str) -> None:
        super().__init__(row, word)
        self.row, self.word = row, word


def words_from(fields: Sequence[str], cells: Cells) -> Array:
    """Return fields as words without blanks around, None where missing."""
    # each different field once: most columns of words have few
    entries = {field: field.strip() for field in set(fields)}
    known = {field: None if word in cells.missing else word for field, word in entries.items()}
    found = np.empty(len(fields), dtype=object)
    found[:] = list(map(known.__getitem__, fields))
    return found


def numbers_from(fields: Sequence[str], cells: Cells, name: str, records: Records) -> Array:
    """Return fields as numbers, nan where missing.

    Raises
    ------
    NotANumberError
        If a field is none.
    DataError
        If it is one beyond float64.
    """
    quick = _quickly(fields, cells) if cells.plain else None
    if quick is None or np.isinf(quick).any():
        return _one_by_one(fields, cells, name, records)
    # what Python's float takes and a table does not: 1_000, and digits of other scripts
    text = "".join(fields)
    if "_" in text or not text.isascii():
        return _one_by_one(fields, cells, name, records)
    return quick


def _quickly(fields: Sequence[str], cells: Cells) -> Array | None:
    missing = cells.missing
    try:
        return np.fromiter(map(float, fields), np.float64, len(fields))
    except ValueError:
        pass
    try:
        return np.array([nan if field in missing else float(field) for field in fields])
    except ValueError:
        return None


def numbers_at_once(
    chunk: Chunk,
    width: int,
    places: Sequence[int],
    delimiter: str,
    cells: Cells,
    *,
    gaps: bool,
) -> Array | None:
    """Return columns of a piece that is numbers all over, by NumPy's own reader of text.

    Takes 0.6 of the time of cutting fields and reading them one by one. Nothing is returned where
    it cannot be done: quotes, other words, records of another length, numbers beyond float64.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    width : int
        Fields of a record.
    places : sequence of int
        The columns that are wanted.
    delimiter : str
        Between fields.
    cells : Cells
        What is missing.
    gaps : bool
        Whether to look for missing entries; where there are none that takes time for nothing.
    """
    if chunk.quoted or not cells.plain or not chunk.data.isascii() or not places:
        return None
    lines = [line for line in lines_of(chunk.data, "", chunk.line) if line]
    commas = width - 1
    if not lines or any(line.count(delimiter) != commas for line in lines):
        return None
    if gaps:
        lines = _with_nan(lines, delimiter, cells.missing)
    try:
        found = np.loadtxt(
            lines, delimiter=delimiter, comments=None, usecols=tuple(places), ndmin=2
        )
    except ValueError:
        return None
    return None if len(found) != len(lines) or np.isinf(found).any() else found


def _with_nan(lines: list[str], delimiter: str, missing: Collection[str]) -> list[str]:
    """Write nan in place of the words for missing entries."""
    text = "\n".join(["", *lines, ""])
    for word in missing:
        if word not in text or word.lower() == "nan":
            continue
        for left in (delimiter, "\n"):
            for right in (delimiter, "\n"):
                while left + word + right in text:  # twice: neighbours share a delimiter
                    text = text.replace(left + word + right, f"{left}nan{right}")
    return text[1:-1].split("\n")


def _one_by_one(fields: Sequence[str], cells: Cells, name: str, records: Records) -> Array:
    missing, comma = cells.missing, cells.decimal == ","
    found = np.empty(len(fields))
    for row, field in enumerate(fields):
        word = field.strip()
        if word in missing:
            found[row] = nan
            continue
        if comma:
            if "." in word:
                raise NotANumberError(row, word)
            word = word.replace(",", ".")
        number = number_of(word)
        if number is None:
            raise NotANumberError(row, field.strip())
        if isinf(number) and overflows(word):
            raise DataError(
                f"{shorten(word)!r} is beyond float64; call the column a category, or scale it",
                line=records.lines[row],
                column=name,
            )
        found[row] = number
    return found


# --- eight bytes ---------------------------------------------------------------------------------
#
# Eight bytes of text as one integer of 64 bits, whose digits are worked on all at once.
#
# The first byte of the text is the lowest of the integer. NumPy does this for thousands of
# entries with each call.

BYTES = 8
U8 = np.uint64
_ONES, _HIGHS = U8(0x0101010101010101), U8(0x8080808080808080)
_POINTS, _ZEROS = U8(0x2E2E2E2E2E2E2E2E), U8(0x3030303030303030)  # "........", "00000000"
_SIXES, _LEFT, _RIGHT = U8(0x0606060606060606), U8(0xF0F0F0F0F0F0F0F0), U8(0x0F0F0F0F0F0F0F0F)
_PLACES = U8(0x0001020304050607)  # times 256^p has p as its last byte
_PAIRS, _FOURS = U8(0x00FF00FF00FF00FF), U8(0x0000FFFF0000FFFF)
_SIZES = range(BYTES + 1)
FIRST = np.array([256**k - 1 for k in _SIZES], dtype=U8)  # the first k bytes
LAST = ~np.array([256 ** (BYTES - k) - 1 for k in _SIZES], dtype=U8)  # the last k bytes
UP = np.array([8 * (BYTES - k) if k else 0 for k in _SIZES], dtype=U8)  # bits: first k to last k
_FILLED = np.array([int(_ZEROS) & (256 ** (BYTES - k) - 1) for k in _SIZES], dtype=U8)


def bytes_from(padded: Array) -> Array:
    """Return the eight bytes from each place of a text on; a view."""
    return np.ndarray((len(padded) - BYTES + 1,), "<u8", padded.data, strides=(1,))


def first_point(text: Array) -> tuple[Array, Array]:
    """Find the first decimal point: 256^p if it is in place p, 0 without one; and p."""
    other = text ^ _POINTS  # a byte is zero where there is a point
    bit = other - _ONES
    bit &= ~other
    bit &= _HIGHS
    bit &= -bit  # only the lowest one is sure
    bit >>= U8(7)
    return bit, ((_PLACES * bit) >> U8(56)).astype(np.intp)


def eight_digits(text: Array, size: Array) -> tuple[Array, Array]:
    """Read the last bytes, so many of them, as digits; return where they are digits, too.

    The bytes before them must be zero; the array of texts is used up.
    """
    text |= _FILLED[size]  # zeros in front
    right = (text & _LEFT) == _ZEROS
    right &= ((text + _SIXES) & _LEFT) == _ZEROS
    text &= _RIGHT
    text *= U8(10 * 2**8 + 1)  # pairs of digits
    text >>= U8(8)
    text &= _PAIRS
    text *= U8(100 * 2**16 + 1)  # fours
    text >>= U8(16)
    text &= _FOURS
    text *= U8(10000 * 2**32 + 1)  # all eight
    text >>= U8(32)
    return text, right


# --- long numbers --------------------------------------------------------------------------------
#
# Decimal numbers of up to 19 digits, as programs write float64: "-1.2345678901234567".
#
# The digits are one integer below 2^64 and the power of ten is exact in the extended precision of
# x86 (64 bits), so that their quotient has one rounding error. It is the right number in float64,
# too, unless it lies next to the middle between two of them: those few are left to others.

_DIGITS = 19  # of an integer below 2^64
BEFORE = 3 * BYTES  # bytes that are looked at before the end of an entry
_LONG_NUMBERS_POWERS = np.array([10**k for k in range(_DIGITS + 1)], dtype=U8)
_EXTENDED = _LONG_NUMBERS_POWERS.astype(np.longdouble)
# bits of the extended number beyond those of float64, and what they are in the middle of two
_BEYOND, _MIDDLE = U8(0x7FF), U8(0x400)

CAN_READ = (
    np.finfo(np.longdouble).nmant == 63
    and np.dtype(np.longdouble).itemsize == 16
    and sys.byteorder == "little"
)
"""Whether this machine has the extended precision of x86."""


def long_numbers(words: Array, minus: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Read entries with a decimal point among their first eight signs.

    Parameters
    ----------
    words : array of uint64
        The eight bytes from each place of the text on; at least 24 stand before every end.
    minus : array of bool
        Which entries have a sign, which stands before their start.
    starts, lengths : arrays
        Where they are.

    Returns
    -------
    values : array
        Numbers.
    right : array of bool
        Which of them are what Python's `float` reads.
    """
    text = words[starts]
    bit, place = first_point(text)
    decimals = lengths - place - 1
    right = (bit != 0) & (decimals >= 0) & (decimals <= _DIGITS)
    right &= lengths > 1  # a point alone is no number
    np.clip(decimals, 0, _DIGITS, out=decimals)
    text <<= UP[place]
    text &= LAST[place]
    whole, good = eight_digits(text, place)
    right &= good & ((whole == 0) | (place + decimals <= _DIGITS))
    number = whole * _LONG_NUMBERS_POWERS[decimals]
    ends, left, scale = starts + lengths, decimals, U8(1)
    for back in range(BYTES, BEFORE + 1, BYTES):  # eight decimals at a time, the last ones first
        size = np.clip(left, 0, BYTES)
        digits, good = eight_digits(words[ends - back] & LAST[size], size)
        right &= good
        number += digits * scale
        scale *= U8(10**BYTES) if back < BEFORE else U8(1)
        left = left - BYTES
        if left.max() <= 0:
            break
    quotient = number.astype(np.longdouble)
    quotient /= _EXTENDED[decimals]
    beyond = quotient.view(U8)[::2] & _BEYOND
    right &= (beyond - (_MIDDLE - U8(1))) > U8(2)
    values: Array = quotient.astype(np.float64)
    np.negative(values, out=values, where=minus)
    return values, right


# --- short numbers -------------------------------------------------------------------------------
#
# Decimal numbers of a delimited text, many at a time.
#
# Nearly all numbers in tables are a few digits with a point: "0.64", "-12", "1813". Eight bytes
# of text are one integer of 64 bits, in which all digits are worked on at once. Digits and a
# power of ten below 2^53 are exact, and their quotient is rounded once: the number is the one
# that Python's `float` reads. Longer ones are read by `long_numbers`; exponents, words for gaps
# and whatever else there is one by one.

_AT_ONCE = 1 << 15  # entries: what is computed with stays in the cache
_ENOUGH = 0.5  # of the entries: where fewer can be read so, other ways are faster
_MINUS, _LINE_END = 45, 10
_SHORT_NUMBERS_POWERS = 10.0 ** np.arange(BYTES + 1)


def short_numbers(
    chunk: Chunk, width: int, places: list[int], delimiter: str, cells: Cells, longest: int
) -> Array | None:
    """Return columns of a piece of text whose entries are mostly decimal numbers.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    width : int
        Fields of a record.
    places : list of int
        The columns that are wanted.
    delimiter : str
        Between fields.
    cells : Cells
        What is missing.
    longest : int
        Bytes of a field beyond which the careful way says what is wrong.

    Returns
    -------
    (n, k) array or None
        None where quotes, blank lines, other words, records of another length, numbers beyond
        float64 or many long entries ask for another way.
    """
    data = chunk.data
    if chunk.quoted or not cells.plain or not data.isascii() or not places:
        return None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\r" in data:
        return None
    data = data if data.endswith(b"\n") else data + b"\n"
    padded = np.frombuffer(bytes(BEFORE) + data + bytes(BYTES), dtype=np.uint8)
    signs = padded[BEFORE : BEFORE + len(data)]
    ends = np.flatnonzero((signs == ord(delimiter)) | (signs == _LINE_END))
    if len(ends) % width or np.any(signs[ends[width - 1 :: width]] != _LINE_END):
        return None
    if np.count_nonzero(signs == _LINE_END) != len(ends) // width:
        return None
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts
    if lengths.max() > longest or (width == 1 and not lengths.all()):  # blank lines of one column
        return None
    if places != list(range(width)):
        starts = starts.reshape(-1, width)[:, places].ravel()
        lengths = lengths.reshape(-1, width)[:, places].ravel()
    found = _short_numbers_numbers(padded, starts + BEFORE, lengths, cells)
    return None if found is None else found.reshape(-1, len(places))


def _short_numbers_numbers(
    padded: Array, starts: Array, lengths: Array, cells: Cells
) -> Array | None:
    found = np.empty(len(starts))
    known: dict[bytes, float] = {}
    words, text = bytes_from(padded), padded.tobytes()
    for begin in range(0, len(starts), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        start, length = starts[part], lengths[part]
        minus = padded[start] == _MINUS
        values, right = _short(words, minus, start + minus, length - minus)
        others = np.flatnonzero(~right)
        if CAN_READ and len(others):
            places = (minus[others], (start + minus)[others], (length - minus)[others])
            values[others], right[others] = long_numbers(words, *places)
            others = np.flatnonzero(~right)
        if len(others) > (1.0 - _ENOUGH) * len(values):
            return None
        if len(others):
            at = zip(start[others].tolist(), length[others].tolist(), strict=True)
            entries = [text[begin : begin + size] for begin, size in at]
            if not _learn(set(entries).difference(known), known, cells):
                return None
            values[others] = [known[entry] for entry in entries]
        found[part] = values
    return found


def _short(words: Array, minus: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Read entries of at most eight signs; return which ones are such numbers, too."""
    size = lengths if lengths.max() <= BYTES else np.where(lengths <= BYTES, lengths, 0)
    text = words[starts]
    text &= FIRST[size]
    bit, place = first_point(text)
    point = bit != 0
    size = size - point
    decimals = np.where(point, size - place, 0)
    # digits before the point stay, those behind it move up; without one all stay
    bit -= U8(1)
    before = text & bit
    text >>= U8(8)
    text &= ~bit
    text |= before
    text <<= UP[size]
    number, right = eight_digits(text, size)
    right &= size > 0
    values: Array = number.astype(np.float64)
    values /= _SHORT_NUMBERS_POWERS[decimals]
    np.negative(values, out=values, where=minus)
    return values, right


def _learn(texts: set[bytes], known: dict[bytes, float], cells: Cells) -> bool:
    """Read other entries one by one; return whether all are numbers or missing."""
    for text in texts:
        word = text.decode("ascii").strip()
        number = np.nan if word in cells.missing else number_of(word)
        if number is None or np.isinf(number):
            return False
        known[text] = number
    return True


# --- arrow ---------------------------------------------------------------------------------------
#
# The quick way through a piece of delimited text: pyarrow, where it is installed.
#
# It reads the easy cases, which are nearly all: no quotes, no number in an odd spelling. Whatever
# it refuses, and whatever it might see differently, goes the way of `chunks` and `convert`, so
# that a file is the same table with and without pyarrow.

# bytes: pyarrow cuts a piece into blocks of so many, and one block keeps one thread busy; threads
# that are started for it gain nothing, and may abort the process while it ends
_BLOCK = 1 << 20


@cache
def pyarrow() -> Any:
    """Return pyarrow with its reader of CSV, or None where it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415  optional
        import pyarrow.csv  # noqa: PLC0415
    except ImportError:
        return None
    return pa


def is_easy(chunk: Chunk, cells: Cells, limits: Limits) -> bool:
    """Return whether a piece is read alike by both ways."""
    if chunk.quoted or not cells.plain or has_long_line(chunk.data, limits.field):
        return False
    if chunk.data.startswith(codecs.BOM_UTF8):  # which pyarrow takes off wherever a piece begins
        return False
    if b"\r" in chunk.data and chunk.data.count(b"\r") != chunk.data.count(b"\r\n"):
        return False
    if chunk.data.isascii():
        return True
    try:
        chunk.data.decode("utf-8")
    except UnicodeDecodeError:
        return False  # the other way says where
    return True


def arrow_columns(
    chunk: Chunk, names: Sequence[str], parsed: Mapping[str, Parsed], cells: Cells, delimiter: str
) -> dict[str, Array] | None:
    """Return columns of a piece as numbers or words; nothing if it is none of the easy cases.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    names : sequence of str
        Of all columns.
    parsed : mapping
        The columns that are wanted, and what they are read as.
    cells : Cells
        What is missing.
    delimiter : str
        Between fields.
    """
    pa = pyarrow()
    types = {n: pa.float64() if what == "number" else pa.string() for n, what in parsed.items()}
    try:
        table = pa.csv.read_csv(
            pa.py_buffer(chunk.data),
            read_options=pa.csv.ReadOptions(
                column_names=list(names), block_size=_BLOCK, use_threads=len(chunk.data) > _BLOCK
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter, quote_char=False, newlines_in_values=False
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                include_columns=list(parsed),
                null_values=sorted(cells.missing),
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    found = {}
    for name, what in parsed.items():
        column = table.column(name)
        values = _arrow_numbers(column) if what == "number" else _words(column, cells)
        if values is None:
            return None
        found[name] = values
    return found


def _arrow_numbers(column: Any) -> Array | None:
    values: Array = column.to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(values).all() if column.null_count else np.isfinite(values.sum())
    if finite:
        return values
    # infinity may be 1e400, and nan may be written in a way that only one of the two ways takes
    odd = np.isinf(values).any() or int(np.isnan(values).sum()) != column.null_count
    return None if odd else values


def _words(column: Any, cells: Cells) -> Array:
    coded = column.combine_chunks().dictionary_encode()
    if hasattr(coded, "num_chunks"):  # a chunked array, in some versions
        coded = coded.combine_chunks() if coded.num_chunks != 1 else coded.chunk(0)
    words = [word.strip() for word in coded.dictionary.to_pylist()]
    known = np.empty(len(words) + 1, dtype=object)
    known[:-1] = [None if word in cells.missing else word for word in words]
    found: Array = known[coded.indices.fill_null(len(words)).to_numpy()]
    return found
