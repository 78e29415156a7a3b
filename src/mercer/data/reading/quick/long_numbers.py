"""Decimal numbers of up to 19 digits, as programs write float64: "-1.2345678901234567".

The digits are one integer below 2^64 and the power of ten is exact in the extended precision of x86
(64 bits), so that their quotient has one rounding error. It is the right number in float64, too,
unless it lies next to the middle between two of them: those few are left to others.
"""

from __future__ import annotations

import sys

import numpy as np

from mercer.array_types import Array
from mercer.data.reading.quick.eight_bytes import BYTES, LAST, U8, UP, eight_digits, first_point

_DIGITS = 19  # of an integer below 2^64
BEFORE = 3 * BYTES  # bytes that are looked at before the end of an entry
_POWERS = np.array([10**k for k in range(_DIGITS + 1)], dtype=U8)
_EXTENDED = _POWERS.astype(np.longdouble)
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
    number = whole * _POWERS[decimals]
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
