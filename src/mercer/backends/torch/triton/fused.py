"""Fused float32 products with K on a GPU, for few and for many features."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Index
from mercer.backends.lowering import FlatProgram, lower
from mercer.backends.torch.device import Device, full_float32, parts
from mercer.backends.torch.evaluate import CenteredRows, Operands, PairBlock, compare, run
from mercer.backends.torch.triton.leaves import SPLITS, Leaf, giver, padded, prepare, prepare_all
from mercer.backends.torch.triton.source import HELD, LeafLayout, exponents, is_expressible
from mercer.expression import Dot, SqDist

# --- deep ----------------------------------------------------------------------------------------
#
# Rows of many features: the products of the library of the card, and the formula in plain torch.
#
# A generated kernel holds a tile of rows from beginning to end only where their features are few.
# Where they are many, little is gained by evaluating the formula within the product. On an H200
# the matrix of 60000 x 784 rows, sent and stored, took 0.23 s this way and 0.39 s feature by
# feature, which the sample had chosen over one product of all depth. No kernel is compiled.

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
    if len(leaves) != 1 or leaves[0].way is not LeafLayout.PRODUCTS or leaves[0].depth <= HELD:
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
        program: FlatProgram,
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
        return run(self._program, PairBlock([found], terms, [], found))

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


# --- fused ---------------------------------------------------------------------------------------
#
# Fused float32 work on a card: an expression is one Triton kernel, and its matrix is not stored.
#
# Operands of products are split into two numbers of 16 bits each, x = h + l, and x y is taken as
# h h' + h l' + l h': 22 bits, from three products of tensor cores. Rows are brought near 2^8
# first, by one power of two for all, so that small numbers keep their bits. Where a sample, run
# through the kernel itself, says that this, or distances from products at all, lose digits,
# features are compared one by one in float32; where that does, too, nothing is fused. Distances
# that products cannot tell from zero are zero, so that equal rows are.

# Of the largest entry of a sample: what the kernel may be off there. The worst of all entries may
# be twice as far off, and 3e-6 is what a backend is allowed.
_ROUNDING = 1.5e-6
_HALF_ROUNDING = 2e-3  # the same for one product of 16-bit numbers, which must be asked for
_SAMPLED = 32  # longest rows, and as many spread over all, on each side
# What products make of the distance of a row to itself, over twice its squared length: at least, by
# rounding of both lengths and of the split; and the largest of all rows, over that of the sample.
_LEAST_DISTANCE = 2.0**-21
_UNSEEN = 2.0
_SHORT = 2.0**-20  # of the largest squared length: shorter rows keep few bits, and tell of no other


def is_available() -> bool:
    """Return whether Triton is installed; torch brings it where it works."""
    return importlib.util.find_spec("triton") is not None


class FusedPairs:
    """A program and its operands, ready for kernels.

    Parameters
    ----------
    program : Program
        What is evaluated.
    leaves : sequence of Leaf
        Operands.
    row_terms : sequence of pairs of tensors
        Values of row terms.
    shape : tuple of int
        Rows and columns.
    """

    def __init__(
        self,
        program: FlatProgram,
        leaves: Sequence[Leaf],
        row_terms: Sequence[tuple[Tensor, Tensor]],
        shape: tuple[int, int],
    ) -> None:
        self._program, self._leaves, self.shape = program, leaves, shape
        self._terms = [
            (padded(u.to(torch.float32)), padded(w.to(torch.float32))) for u, w in row_terms
        ]

    @cached_property
    def deep(self) -> DeepProducts | None:
        """What makes one product of many features by the library of the card, where it can."""
        if not is_deep(self._leaves):
            return None
        return DeepProducts(self._program, self._leaves[0], self._terms, self.shape)

    def transposed(self) -> FusedPairs:
        """Return K', of the same operands."""
        leaves = [replace(leaf, x=leaf.y, y=leaf.x) for leaf in self._leaves]
        other = FusedPairs(self._program, leaves, [], (self.shape[1], self.shape[0]))
        other._terms = [(w, u) for u, w in self._terms]
        return other

    def part(self, rows: Tensor, columns: Tensor | None) -> FusedPairs:
        """Return some rows, and columns, of the same operands."""
        leaves = [leaf.taken(rows, columns) for leaf in self._leaves]
        width = self.shape[1] if columns is None else len(columns)
        other = FusedPairs(self._program, leaves, [], (len(rows), width))
        other._terms = [
            (padded(u[rows]), w if columns is None else padded(w[columns])) for u, w in self._terms
        ]
        return other

    def product(self, right: Tensor) -> Tensor:
        """Return K right for a float32 (m, k) tensor, in float64."""
        if self.deep is not None:
            return self.deep.product(right)
        from mercer.backends.torch.triton.launch import multiply  # noqa: PLC0415  imports Triton

        operands = (self._arguments(), self._ways(), self.shape)
        return multiply(self._program, *operands, right, self._wants_zeros)

    def rows(self, part: slice) -> Tensor:
        """Return some rows of K."""
        if self.deep is not None:
            return self.deep.block(part, slice(0, self.shape[1]))
        from mercer.backends.torch.triton.launch import write_rows  # noqa: PLC0415  imports Triton

        return write_rows(self._program, self._arguments(), self._ways(), self.shape, part)

    def nearest(self) -> Tensor:
        """Return the number of the column with the smallest entry of each row of K."""
        if self.deep is not None:
            return self.deep.nearest()
        from mercer.backends.torch.triton.launch import find_nearest  # noqa: PLC0415  imports Triton

        if self._closest is None:
            return find_nearest(self._program, self._arguments(), self._ways(), self.shape)
        return self._closest.search()

    @cached_property
    def _closest(self) -> Any:
        """What searches squared distances by one product; None for other formulas."""
        from mercer.backends.torch.triton.nearest import MOST_COLUMNS, Closest  # noqa: PLC0415  imports Triton

        (leaf, *others), (kind, *_) = self._leaves, self._program.leaves
        plain = not (others or self._program.ops) and isinstance(kind, SqDist)
        if (
            plain
            and leaf.way is LeafLayout.SPLIT
            and leaf.features
            and self.shape[1] <= MOST_COLUMNS
        ):
            return Closest(leaf, self.shape)
        return None

    @cached_property
    def _wants_zeros(self) -> bool:
        """Whether the formula tells distances that products cannot tell from zero.

        Exponentials of other distances are off by as much as those of small ones.
        """
        read = exponents(self._program)
        for i, (kind, leaf) in enumerate(zip(self._program.leaves, self._leaves, strict=True)):
            if not (leaf.way.is_product and isinstance(kind, SqDist)):
                continue
            longest = float(leaf.x.squares.amax() + leaf.y.squares.amax())
            factor = abs(read[i].c0) if i in read else float("inf")
            seen = factor * leaf.least * longest / _UNSEEN
            if not seen <= (_ROUNDING if leaf.features else _HALF_ROUNDING):
                return True
        return False

    def _ways(self) -> tuple[tuple[LeafLayout, int], ...]:
        return tuple((leaf.way, leaf.depth) for leaf in self._leaves)

    def _arguments(self) -> list[Any]:
        leaves = [argument for leaf in self._leaves for argument in leaf.arguments()]
        return [*leaves, *(values for term in self._terms for values in term)]


# --- binding -----------------------------------------------------------------------------------


def fuse(
    program: FlatProgram,
    operands: Sequence[Operands],
    row_terms: Sequence[tuple[Tensor, Tensor]],
    shape: tuple[int, int],
    device: Device,
    halves: bool = False,
) -> FusedPairs | None:
    """Prepare operands for kernels; None where nothing can be fused.

    Parameters
    ----------
    program : Program
        What is evaluated.
    operands : sequence of Operands
        The rows of its leaves.
    row_terms : sequence of pairs of tensors
        Values of its row terms, in float64.
    shape : tuple of int
        Rows and columns.
    device : Device
        Where.
    halves : bool
        Whether one product of 16-bit numbers is enough, with errors of about 1e-4.
    """
    resident = all(o.rows.is_resident and o.columns.is_resident for o in operands)
    something = bool(operands) and min(shape) > 0
    if not (something and resident and is_expressible(program) and is_available()):
        return None
    features = sum(SPLITS * o.rows.shape[1] for o in operands)
    if not device.has_room(4.0 * features * sum(shape)):
        return None
    for half in (True, False) if halves else (False,):
        for ways in _ways_to_compare(operands, device):
            if _is_accurate(program, operands, row_terms, ways, half):
                leaves = prepare_all(operands, ways, halves=half)
                both = zip(operands, leaves, strict=True)
                told = [_with_zeros(o, leaf, half) for o, leaf in both]
                return FusedPairs(program, told, row_terms, shape)
    return None


def _ways_to_compare(operands: Sequence[Operands], device: Device) -> list[list[LeafLayout]]:
    """Return what to try, the fastest first.

    Distances of many features are soonest made of products in float64, where a card is good at
    these: 784 features of 60000 rows took 0.49 s feature by feature.
    """
    products = [
        LeafLayout.PRODUCTS if isinstance(o.leaf, Dot | SqDist) else LeafLayout.COLUMNS
        for o in operands
    ]
    shared = [
        way if giver(o, operands) is None else LeafLayout.SHARED
        for o, way in zip(operands, products, strict=True)
    ]
    differences = [
        LeafLayout.COLUMNS if isinstance(o.leaf, SqDist) else way
        for o, way in zip(operands, products, strict=True)
    ]
    deep = any(isinstance(o.leaf, SqDist) and SPLITS * o.rows.shape[1] > HELD for o in operands)
    every = [shared, products, differences]
    if deep and device.has_float64_cores:
        every = [ways for ways in every if ways != differences or ways == products]
    return [ways for k, ways in enumerate(every) if ways not in every[:k]]


# --- whether float32 is enough -------------------------------------------------------------------


def _is_accurate(
    program: FlatProgram,
    operands: Sequence[Operands],
    row_terms: Sequence[tuple[Tensor, Tensor]],
    ways: Sequence[LeafLayout],
    halves: bool,
) -> bool:
    """Compare what the kernel itself makes of a sample with float64.

    Long rows with themselves are in the sample. Tensor cores do not round sums as other units do,
    so nothing but the kernel tells how exact it is; and nothing else whether the card has room.
    """
    from triton.runtime.errors import OutOfResources  # noqa: PLC0415  Triton may be missing

    rows, columns = _sample(operands, "rows"), _sample(operands, "columns")
    exact = [compare(o.leaf, o.rows.block(rows), o.columns.block(columns)) for o in operands]
    terms = [(u[rows], w[columns]) for u, w in row_terms]
    like = exact[0].new_empty((len(rows), len(columns)))
    wanted = run(program, PairBlock(exact, terms, [], like))
    if not bool(wanted.isfinite().all()):
        return False
    leaves = prepare_all(operands, ways, rows, columns, halves)
    sample = FusedPairs(program, leaves, terms, (len(rows), len(columns)))
    try:
        with np.errstate(all="ignore"):  # Triton's interpreter is NumPy
            error = (sample.rows(slice(0, len(rows))) - wanted).abs().amax()
    except OutOfResources:
        return False
    return bool(error <= (_HALF_ROUNDING if halves else _ROUNDING) * wanted.abs().amax())


def _with_zeros(operands: Operands, leaf: Leaf, halves: bool) -> Leaf:
    """Say which distances are zero: what the kernel makes of rows and themselves, and some more."""
    if not leaf.way.is_product or not isinstance(operands.leaf, SqDist):
        return leaf
    rows = _sample([operands], "rows")
    own = prepare(operands._replace(columns=operands.rows), leaf.way, rows, rows, halves)
    distances = FusedPairs(lower(SqDist()), [own], [], (len(rows), len(rows)))
    with np.errstate(all="ignore"):
        found = distances.rows(slice(0, len(rows))).diagonal()
    longest = max(float(side.squares.amax()) for side in (leaf.x, leaf.y))
    shortest = max(_SHORT * longest, torch.finfo(torch.float32).tiny)
    twice = 2.0 * own.x.squares[: len(rows)].clamp(min=shortest)
    share = float((found / twice).amax())
    return replace(leaf, least=max(_LEAST_DISTANCE, _UNSEEN * share))


def _sample(operands: Sequence[Operands], side: str) -> Index:
    """Choose the longest rows by the first leaf, and some spread over all."""
    rows: CenteredRows = getattr(operands[0], side)
    count = rows.shape[0]
    lengths = rows.block(slice(None)).square().sum(dim=1)
    longest = lengths.topk(min(_SAMPLED, count)).indices
    spread = torch.linspace(0, count - 1, min(_SAMPLED, count), device=lengths.device).long()
    return torch.cat([longest, spread]).unique()
