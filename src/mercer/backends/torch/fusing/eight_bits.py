"""exp(c0 |x - y|^2 + c1) of rows of 8-bit numbers with themselves: the whole matrix in one pass.

Tensor cores add up products of 8-bit numbers in 32-bit integers, so that a tile of the half above
the diagonal has every digit of its distances. It is written on both sides of the diagonal, and
nothing else: 60000 x 60000 entries are 14 GB, which take longer to go through once more than to
find.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources

from mercer.backends.torch.fusing.launch import compiled
from mercer.backends.torch.symmetric.whole_numbers import DEPTH

Tensor: TypeAlias = torch.Tensor

# 60000 rows of 784 features took an H200 9.0 ms; tiles of 128, which leave no room for a second
# program beside the first, took 11.6. To write zeros takes 3.1.
_SIDE = 64  # of a tile
_TOGETHER = 32  # tiles: so many by so many are found one after another, their rows read near by
_WARPS, _STAGES = 4, 3
_EXPONENTIAL = """
@triton.jit
def kernel(n, depth, squares, X, LENGTHS, FACTOR, SUMMAND, OUT, apart,
           SIDE: tl.constexpr, DEPTH: tl.constexpr, TOGETHER: tl.constexpr):
    # squares of tiles, the triangle of them folded: one row of it, then the one as far from below
    p = tl.program_id(1)
    q = tl.program_id(2)
    below = p >= squares - q
    high = tl.where(below, squares - 1 - q, q)
    wide = high + tl.where(below, p - (squares - q), p)
    twice = below & (squares - 1 - q <= q)
    i = high * TOGETHER + tl.program_id(0) // TOGETHER
    j = wide * TOGETHER + tl.program_id(0) % TOGETHER
    if (i <= j) & (j * SIDE < n) & (twice == 0):
        rows = i * SIDE + tl.arange(0, SIDE)
        columns = j * SIDE + tl.arange(0, SIDE)
        # past the last one the last again: loads need no masks
        x = tl.minimum(rows, n - 1).to(tl.int64)
        y = tl.minimum(columns, n - 1).to(tl.int64)
        across = tl.arange(0, DEPTH)
        left = X + x[:, None] * depth + across[None, :]
        right = X + y[None, :] * depth + across[:, None]
        products = tl.zeros((SIDE, SIDE), tl.int32)
        for k in range(0, depth, DEPTH):
            x8 = tl.load(left + k)
            y8 = tl.load(right + k)
            products = tl.dot(x8, y8, products, out_dtype=tl.int32)
        lengths = tl.load(LENGTHS + x)[:, None] + tl.load(LENGTHS + y)[None, :]
        distances = (lengths - 2 * products).to(tl.float64)
        found = tl.exp(tl.load(FACTOR) * distances + tl.load(SUMMAND)).to(tl.float32)
        inside = (rows < n)[:, None] & (columns < n)[None, :]
        tl.store(OUT + rows.to(tl.int64)[:, None] * apart + columns[None, :], found, mask=inside)
        if i < j:
            back = (columns < n)[:, None] & (rows < n)[None, :]
            there = OUT + columns.to(tl.int64)[:, None] * apart + rows[None, :]
            tl.store(there, tl.trans(found), mask=back)
"""


def fill_exponential(K: Tensor, k: Tensor, lengths: Tensor, factor: float, summand: float) -> bool:
    """Write exp(factor |k_i - k_j|^2 + summand) to all of a matrix.

    Parameters
    ----------
    K : (n, n) float32 tensor
        Where to; its rows are unbroken.
    k : (n or more, depth) int8 tensor
        The rows, their depth a multiple of `DEPTH`.
    lengths : (n or more,) int32 tensor
        Sums of squares of these.
    factor, summand : float
        The constants, in float64.

    Returns
    -------
    bool
        Whether the card has room for tiles, and Triton knows such products; if not, nothing was
        written.
    """
    n = len(K)
    squares = triton.cdiv(n, _SIDE * _TOGETHER)
    # numbers that a kernel is called with are float32 to Triton
    constants = [
        torch.full((1,), c, dtype=torch.float64, device=K.device) for c in (factor, summand)
    ]
    sizes = {"SIDE": _SIDE, "DEPTH": DEPTH, "TOGETHER": _TOGETHER}
    grid = (_TOGETHER * _TOGETHER, squares + 1, triton.cdiv(squares, 2))
    try:
        with torch.cuda.device_of(K):  # Triton launches on the current one
            compiled(_EXPONENTIAL)[grid](
                *(n, k.shape[1], squares, k, lengths, *constants, K, K.stride(0)),
                **sizes,
                num_warps=_WARPS,
                num_stages=_STAGES,
            )
    except (OutOfResources, CompilationError):
        return False
    return True
