"""Eight bytes of text as one integer of 64 bits, whose digits are worked on all at once.

The first byte of the text is the lowest of the integer. NumPy does this for thousands of entries
with each call.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array

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
