"""Distances of chosen pairs, in float64, as sums of squared or absolute differences."""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton

from mercer.backends.torch.fusing.launch import compiled
from mercer.expression import AbsDist, Expression, SqDist

Tensor: TypeAlias = torch.Tensor

_HEIGHT, _DEPTH, _WARPS = 32, 32, 4  # rows and features at a time: eight numbers a thread

_MEASURE = """
@triton.jit
def kernel(n, d, count, X, Y, NUMBERS, OUT, BM: tl.constexpr, BD: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    there = rows < n
    which = rows * count + tl.program_id(1)
    columns = tl.load(NUMBERS + which, mask=there, other=-1)
    known = columns >= 0
    total = tl.zeros((BM, BD), tl.float64)
    for begin in range(0, d, BD):
        inner = begin + tl.arange(0, BD)
        mask = known[:, None] & (inner < d)[None, :]
        x = tl.load(X + rows[:, None] * d + inner[None, :], mask=mask, other=0.0)
        y = tl.load(Y + columns[:, None] * d + inner[None, :], mask=mask, other=0.0)
        apart = x.to(tl.float64) - y.to(tl.float64)
        total += TERM
    distance = tl.where(known, tl.sum(total, axis=1), float("inf"))
    tl.store(OUT + which, distance, mask=there)
"""
_TERMS: dict[type[Expression], str] = {SqDist: "apart * apart", AbsDist: "tl.abs(apart)"}


def measure(X: Tensor, Y: Tensor, numbers: Tensor, key: Expression) -> Tensor:
    """Return the distance of each row of X to the rows of Y of these numbers.

    Parameters
    ----------
    X, Y : (n, d) and (m, d) tensors
        Rows, of any type.
    numbers : (n, c) int64 tensor
        Rows of Y; a negative one is infinitely far.
    key : SqDist or AbsDist
        The distance.
    """
    out = torch.empty(numbers.shape, dtype=torch.float64, device=X.device)
    n, count = numbers.shape
    with torch.cuda.device_of(X):  # Triton launches on the current one
        compiled(_MEASURE.replace("TERM", _TERMS[type(key)]))[(triton.cdiv(n, _HEIGHT), count)](
            n,
            X.shape[1],
            count,
            X.contiguous(),
            Y.contiguous(),
            numbers.contiguous(),
            out,
            BM=_HEIGHT,
            BD=_DEPTH,
            num_warps=_WARPS,
        )
    return out
