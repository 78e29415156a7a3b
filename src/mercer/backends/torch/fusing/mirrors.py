"""A block written across the diagonal of a symmetric matrix: tiles are turned inside the card.

A plain copy of a transpose reads single entries of rows that lie far apart.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton

from mercer.backends.torch.fusing.launch import compiled

Tensor: TypeAlias = torch.Tensor

_SIDE = 64  # of a tile
_MIRROR = """
@triton.jit(do_not_specialize=["n", "m"])
def kernel(n, m, X, OUT, WIDE, APART, SIDE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    there = (i[:, None] < n) & (j[None, :] < m)
    x = tl.load(X + i[:, None] * WIDE + j[None, :], mask=there)
    back = (j[:, None] < m) & (i[None, :] < n)
    tl.store(OUT + j[:, None] * APART + i[None, :], tl.trans(x), mask=back)
"""


def write_mirrored(block: Tensor, out: Tensor) -> None:
    """Write the transpose of a block (n, m) to a part (m, n) of a matrix, rows of both unbroken."""
    n, m = block.shape
    grid = (triton.cdiv(n, _SIDE), triton.cdiv(m, _SIDE))
    with torch.cuda.device_of(block):  # Triton launches on the current one
        compiled(_MIRROR)[grid](n, m, block, out, block.stride(0), out.stride(0), SIDE=_SIDE)
