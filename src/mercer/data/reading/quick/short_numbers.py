"""Short decimal numbers of a delimited text, many at a time.

Nearly all numbers in tables are a few digits with a point: "0.64", "-12", "1813". Eight bytes of
text are one integer of 64 bits, in which all digits are worked on at once, and NumPy does that for
thousands of entries with each call. Digits and a power of ten below 2^53 are exact, and their
quotient is rounded once: the number is the one that Python's `float` reads. Longer entries,
exponents, words for gaps and whatever else there is are read one by one.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.data.cells import number_of
from mercer.data.reading.chunks import Chunk
from mercer.data.reading.convert import Cells

_BYTES = 8  # of an entry without its sign: one integer
_AT_ONCE = 1 << 15  # entries: what is computed with stays in the cache
_ENOUGH = 0.5  # of the entries: where fewer are short, other ways are faster
_MINUS, _LINE_END = 45, 10

_U8 = np.uint64
_ONES, _HIGHS = _U8(0x0101010101010101), _U8(0x8080808080808080)
_POINTS, _ZEROS = _U8(0x2E2E2E2E2E2E2E2E), _U8(0x3030303030303030)  # "........", "00000000"
_SIXES, _LEFT, _RIGHT = _U8(0x0606060606060606), _U8(0xF0F0F0F0F0F0F0F0), _U8(0x0F0F0F0F0F0F0F0F)
_PLACES = _U8(0x0001020304050607)  # times 256^p has p as its first byte
_SIZES = range(_BYTES + 1)
_FIRST = np.array([256**k - 1 for k in _SIZES], dtype=_U8)  # the first k bytes
_UP = np.array([8 * (_BYTES - k) if k else 0 for k in _SIZES], dtype=_U8)  # bits, to the far end
_FILLED = np.array([int(_ZEROS) & (256 ** (_BYTES - k) - 1) for k in _SIZES], dtype=_U8)
_POWERS = 10.0 ** np.arange(_BYTES + 1)


def short_numbers(
    chunk: Chunk, width: int, places: list[int], delimiter: str, cells: Cells, longest: int
) -> Array | None:
    """Return columns of a piece of text whose entries are mostly short numbers.

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
    padded = np.frombuffer(data + bytes(_BYTES), dtype=np.uint8)
    signs = padded[: len(data)]
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
    found = _numbers(data, padded, starts, lengths, cells)
    return None if found is None else found.reshape(-1, len(places))


def _numbers(
    data: bytes, padded: Array, starts: Array, lengths: Array, cells: Cells
) -> Array | None:
    found = np.empty(len(starts))
    known: dict[bytes, float] = {}
    # the eight bytes from each place on
    words = np.ndarray((len(padded) - _BYTES + 1,), "<u8", padded.data, strides=(1,))
    for begin in range(0, len(starts), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        values, short = _short(words, padded, starts[part], lengths[part])
        others = np.flatnonzero(~short)
        if len(others) > (1.0 - _ENOUGH) * len(values):
            return None
        if len(others):
            at = zip((starts[part][others]).tolist(), (lengths[part][others]).tolist(), strict=True)
            texts = [data[start : start + length] for start, length in at]
            if not _learn(set(texts).difference(known), known, cells):
                return None
            values[others] = [known[text] for text in texts]
        found[part] = values
    return found


def _short(words: Array, padded: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Read entries; return which ones are short numbers, too."""
    minus = padded[starts] == _MINUS
    if minus.any():
        starts, lengths = starts + minus, lengths - minus
    size = lengths if lengths.max() <= _BYTES else np.where(lengths <= _BYTES, lengths, 0)
    text = words[starts]
    text &= _FIRST[size]
    # a byte is zero in `other` where it is a point; only the lowest one counts
    other = text ^ _POINTS
    bit = other - _ONES
    bit &= ~other
    bit &= _HIGHS
    bit &= -bit
    bit >>= _U8(7)  # 256^p if the point is in place p, 0 without one
    point = bit != 0
    size = size - point
    place = ((_PLACES * bit) >> _U8(56)).astype(np.intp)
    decimals = np.where(point, size - place, 0)
    # digits before the point stay, those behind it move up; without one all stay
    bit -= _U8(1)
    other = text & bit
    text >>= _U8(8)
    text &= ~bit
    text |= other
    text <<= _UP[size]
    text |= _FILLED[size]  # zeros in front
    right = (text & _LEFT) == _ZEROS
    right &= ((text + _SIXES) & _LEFT) == _ZEROS
    right &= size > 0
    text &= _RIGHT
    # pairs of digits, then fours, then all eight
    text *= _U8(10 * 2**8 + 1)
    text >>= _U8(8)
    text &= _U8(0x00FF00FF00FF00FF)
    text *= _U8(100 * 2**16 + 1)
    text >>= _U8(16)
    text &= _U8(0x0000FFFF0000FFFF)
    text *= _U8(10000 * 2**32 + 1)
    text >>= _U8(32)
    values = text.astype(np.float64)
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
