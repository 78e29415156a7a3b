"""How features are laid out for a tile of rows: padded, and cut into pieces of tensor cores."""

from __future__ import annotations

from enum import Enum

BAND = 512  # rows whose features lie together, one feature of all of them after the other
UNROLLED = 8  # features of a leaf by columns are padded to a multiple of this
STEP = 64  # features of a product at a time, where all of a row do not fit registers
HELD = 512  # features of a product that a tile of rows holds from beginning to end
_LEAST_PIECE = 16  # depth of the smallest product of tensor cores
_MOST_PIECE = 256


class Way(Enum):
    """How a leaf is compared."""

    PRODUCTS = "products"  # of 16-bit numbers as they lie
    SPLIT = "split"  # of 16-bit numbers h, and l beside them: three products
    SHARED = "shared"  # the product of another leaf, moved to its own origin
    COLUMNS = "columns"

    @property
    def is_product(self) -> bool:
        """Whether tensor cores multiply operands of this leaf."""
        return self in (Way.PRODUCTS, Way.SPLIT)


def padded_depth(way: Way, features: int) -> int:
    """Return how many features rows are padded to.

    Examples
    --------
    >>> padded_depth(Way.SPLIT, 90), padded_depth(Way.PRODUCTS, 700)
    (96, 704)
    """
    unit = UNROLLED
    if way.is_product:
        unit = _LEAST_PIECE if features <= HELD else STEP
    return max(unit, -(-features // unit) * unit)


def pieces(depth: int) -> list[tuple[int, int]]:
    """Cut a depth into powers of two, each with where it begins.

    Examples
    --------
    >>> pieces(272)
    [(0, 256), (256, 16)]
    """
    found, begin = [], 0
    while begin < depth:
        width = min(_MOST_PIECE, 1 << (depth - begin).bit_length() - 1)
        found.append((begin, width))
        begin += width
    return found
