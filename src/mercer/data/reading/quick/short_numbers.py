"""Decimal numbers of a delimited text, many at a time.

Nearly all numbers in tables are a few digits with a point: "0.64", "-12", "1813". Eight bytes of
text are one integer of 64 bits, in which all digits are worked on at once. Digits and a power of
ten below 2^53 are exact, and their quotient is rounded once: the number is the one that Python's
`float` reads. Longer ones are read by `long_numbers`; exponents, words for gaps and whatever else
there is one by one.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.data.cells import number_of
from mercer.data.reading.chunks import Chunk
from mercer.data.reading.convert import Cells
from mercer.data.reading.quick.eight_bytes import (
    BYTES,
    FIRST,
    U8,
    UP,
    bytes_from,
    eight_digits,
    first_point,
)
from mercer.data.reading.quick.long_numbers import BEFORE, CAN_READ, long_numbers

_AT_ONCE = 1 << 15  # entries: what is computed with stays in the cache
_ENOUGH = 0.5  # of the entries: where fewer can be read so, other ways are faster
_MINUS, _LINE_END = 45, 10
_POWERS = 10.0 ** np.arange(BYTES + 1)


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
    found = _numbers(padded, starts + BEFORE, lengths, cells)
    return None if found is None else found.reshape(-1, len(places))


def _numbers(padded: Array, starts: Array, lengths: Array, cells: Cells) -> Array | None:
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
    values /= _POWERS[decimals]
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
