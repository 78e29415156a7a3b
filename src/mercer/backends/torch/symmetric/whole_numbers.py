"""Rows whose entries are whole multiples of one unit, as those of images: their exact distances.

An image stores a pixel as one of 256 levels. Whatever it was divided by afterwards, rows are

    x = low + unit * k,    k = 0 ... 255,

and a squared distance is unit^2 |k - k'|^2. With 128 taken off, k fits 8 bits with a sign, and
tensor cores add up products of these in 32-bit integers, twice as fast as those of 16-bit numbers:
every digit of |k - k'|^2 is right, since it is at most d 255^2 < 2^31. What is lost is the rounding
of x itself: how far it is from low + unit * k is looked at for every entry, and may be a unit in
the last place of the largest (float32; a few of float64), or of what rows span where that is less.
So distances have as many digits as the rows. MNIST over 255: relative errors of 3e-16, and of 2e-8
where rows are float32.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, TypeAlias

import torch

Tensor: TypeAlias = torch.Tensor

_LEVELS = 255  # of a pixel, beside the darkest
_MIDDLE = 128  # what is taken off, so that 8 bits with a sign hold the rest
_ROUNDINGS = 8  # of float64, in the largest entry: a division, a subtraction, another division
_LOOKED_AT = 64  # rows that tell of most tables that they are no images
DEPTH = 128  # features that a kernel multiplies at a time; libraries want multiples of 16
_ROWS = 32  # more than there are: the library takes 17 at least, and multiples of 8
_DEEPEST = 1 << 15  # features: of more, squared distances may pass 2^31
_SQUARABLE = (1e-140, 1e140)  # spans: squares of their units, and sums of these, keep all digits


class WholeNumbers(NamedTuple):
    """Rows as whole numbers.

    Attributes
    ----------
    k : (padded rows, padded features) int8 tensor
        The levels, less 128; more rows and features are zero.
    squares : (padded rows,) int32 tensor
        Sums of squares of these.
    unit : float
        What a level stands for.
    """

    k: Tensor
    squares: Tensor
    unit: float

    def squared_distances(self, rows: slice, columns: slice) -> Tensor:
        """Return squared distances of some rows and others, in float64.

        Parameters
        ----------
        rows, columns : slice
            Which ones, from a beginning to an end.
        """
        height, width = rows.stop - rows.start, columns.stop - columns.start
        tall, wide = max(_ROWS, height), 8 * -(-width // 8)
        x, y = self.k[rows.start : rows.start + tall], self.k[columns.start : columns.start + wide]
        products = _products(x, y)[:height, :width]
        found = torch.sub(self.squares[columns], products, alpha=2)  # below 2^31
        found += self.squares[rows, None]
        return found.double().mul_(self.unit**2)


def whole_numbers(X: Tensor) -> WholeNumbers | None:
    """Return rows as whole numbers; None where they are none.

    Parameters
    ----------
    X : (n, d) float32 or float64 tensor
        The rows, as they are.

    Examples
    --------
    >>> found = whole_numbers(torch.tensor([[0.0, 1.0], [0.2, 0.4]], dtype=torch.float64))
    >>> found.squared_distances(slice(0, 1), slice(0, 2))
    tensor([[0.0000, 0.4000]], dtype=torch.float64)
    >>> whole_numbers(torch.tensor([[0.0, 1.0], [0.2, 0.3333]], dtype=torch.float64)) is None
    True
    """
    if not X.numel() or X.shape[1] > _DEEPEST or not X.is_floating_point():
        return None
    low, high = (float(end) for end in torch.stack(X.aminmax()).tolist())
    rounding = max(torch.finfo(X.dtype).eps, _ROUNDINGS * torch.finfo(torch.float64).eps)
    # entries far from zero that span little would pass as whatever they are rounded to
    allowed = rounding * min(high - low, max(abs(low), abs(high)))
    for span, steps in _scales(high - low):
        if _levels(X[:_LOOKED_AT], low, span, steps, allowed) is not None:
            k = _levels(X, low, span, steps, allowed)
            return None if k is None else _padded(k, span / steps)
    return None


def _scales(span: float) -> list[tuple[float, int]]:
    """Return what so many levels may span: all entries, or a power of two for each level."""
    if span == 0:
        return [(1.0, 1)]  # all rows are equal
    if not _SQUARABLE[0] < span < _SQUARABLE[1]:
        return []
    mantissa, exponent = math.frexp(span / _LEVELS)
    return [(span, _LEVELS), (math.ldexp(1.0, exponent - (mantissa == 0.5)), 1)]


def _levels(X: Tensor, low: float, span: float, steps: int, allowed: float) -> Tensor | None:
    """Return the level of each entry less 128, if every one is at a level but for its rounding."""
    above = X.double() - low
    k = (above * (steps / span)).round_()
    # what a division left, as it is made, so that nothing is added to it
    off = (k * span).div_(steps).sub_(above).abs_().amax()
    return (k - _MIDDLE).to(torch.int8) if bool(off <= allowed) else None


def _padded(k: Tensor, unit: float) -> WholeNumbers:
    n, d = k.shape
    held = k.new_zeros((n + _ROWS, DEPTH * -(-d // DEPTH)))
    held[:n, :d] = k
    squares = k.to(torch.int32).square_().sum(dim=1, dtype=torch.int32)
    return WholeNumbers(held, torch.nn.functional.pad(squares, (0, _ROWS)), unit)


@cache
def multiplies(device: str) -> bool:
    """Return whether a device multiplies 8-bit numbers, and right: asked once, of a small product.

    Parameters
    ----------
    device : str
        As torch names it.
    """
    x = torch.arange(_ROWS * DEPTH).remainder(256).sub(_MIDDLE).to(torch.int8).view(_ROWS, DEPTH)
    wanted = x.double() @ x.double().T
    try:
        found = _products(x.to(device), x.to(device))
    except (RuntimeError, NotImplementedError):  # a library without it
        return False
    return bool((found.cpu() == wanted).all())


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Return x y' of 8-bit numbers, exact; int32."""
    if x.is_cuda:
        return torch._int_mm(x, y.T)
    return (x.double() @ y.double().T).to(torch.int32)  # below 2^53: exact, too
