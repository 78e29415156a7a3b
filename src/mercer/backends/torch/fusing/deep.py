"""Rows of many features: the products of the library of the card, and the formula in plain torch.

A generated kernel holds a tile of rows from beginning to end only where their features are few.
Where they are many, little is gained by evaluating the formula within the product. On an H200 the
matrix of 60000 x 784 rows, sent and stored, took 0.23 s this way and 0.39 s feature by feature,
which the sample had chosen over one product of all depth. No kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch

from mercer.backends.lowering.program import Program
from mercer.backends.torch.device import full_float32, parts
from mercer.backends.torch.fusing.leaves import Leaf
from mercer.backends.torch.fusing.tiling import HELD, Way
from mercer.backends.torch.program import Block, run
from mercer.expression import SqDist

Tensor: TypeAlias = torch.Tensor

_ENTRIES = 1 << 27  # of a block: half a gigabyte of float32
_DEPTH = 128  # columns of h h' at a time
_EIGHT = 8  # 16-bit numbers: what tensor cores want rows to begin at
_WIDTH = 1 << 14  # columns whose float32 products are added up before float64 takes over


def is_deep(leaves: Sequence[Leaf]) -> bool:
    """Return whether a product of one leaf is all that takes time, and cuBLAS can make it.

    Parameters
    ----------
    leaves : sequence of Leaf
        Of a program, as kernels read them.
    """
    if len(leaves) != 1 or leaves[0].way is not Way.PRODUCTS or leaves[0].depth <= HELD:
        return False
    return leaves[0].x.rows.is_cuda and "dtype" in torch.ops.aten.mm.overloads()


class DeepProducts:
    """A program of one leaf, whose product is made in blocks.

    Parameters
    ----------
    program : Program
        What is evaluated.
    leaf : Leaf
        Its only operands.
    terms : sequence of pairs of tensors
        Values of row terms, padded as the rows are.
    shape : tuple of int
        Rows and columns.
    """

    def __init__(
        self,
        program: Program,
        leaf: Leaf,
        terms: Sequence[tuple[Tensor, Tensor]],
        shape: tuple[int, int],
    ) -> None:
        self._program, self._leaf, self._terms, self._shape = program, leaf, terms, shape

    def block(self, rows: slice, columns: slice) -> Tensor:
        """Return some rows and columns of K, in float32."""
        leaf = self._leaf
        small = _EIGHT * (2 * leaf.depth // (3 * _EIGHT))  # of h l' and l h'; see `leaves.split`
        found = product_of(leaf.x.rows[rows], leaf.y.rows[columns], small)
        if isinstance(self._program.leaves[0], SqDist):
            both = leaf.x.squares[rows, None] + leaf.y.squares[columns]
            found = torch.sub(both, found, alpha=leaf.factor)
            found.masked_fill_(found <= both.mul_(leaf.least), 0.0)
        else:
            found = found.mul_(leaf.factor)
        terms = [(u[rows], w[columns]) for u, w in self._terms]
        return run(self._program, Block([found], terms, [], found))

    def product(self, right: Tensor) -> Tensor:
        """Return K right in float64."""
        n, m = self._shape
        out = torch.zeros((n, right.shape[1]), dtype=torch.float64, device=right.device)
        with full_float32():
            for part in parts(n, _ENTRIES // _WIDTH):
                for across in parts(m, _WIDTH):
                    out[part] += self.block(part, across) @ right[across]
        return out

    def nearest(self) -> Tensor:
        """Return the number of the column with the smallest entry of each row of K."""
        n, m = self._shape
        height = max(1, _ENTRIES // m)
        return torch.cat([self.block(part, slice(0, m)).argmin(dim=1) for part in parts(n, height)])


def product_of(x: Tensor, y: Tensor, small: int) -> Tensor:
    """Return x y' of 16-bit numbers, with float32 sums; the first `small` columns matter little.

    Tensor cores cut off what does not fit beside the sum so far, always downwards. So the others
    are multiplied some at a time, and these products added up by other units, which round.
    """
    found = _plain(x[:, :small], y[:, :small])
    for begin in range(small, x.shape[1], _DEPTH):
        part = slice(begin, begin + _DEPTH)
        found += _plain(x[:, part], y[:, part])
    return found


def _plain(x: Tensor, y: Tensor) -> Tensor:
    if x.is_cuda:
        return torch.mm(x, y.T, out_dtype=torch.float32)
    return x.float() @ y.float().T
