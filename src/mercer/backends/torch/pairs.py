"""Kernel matrices and products on a device, symmetric ones by halves, or on several GPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from copy import copy
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.contract import Operator, Pairs, StoredMatrix
from mercer.backends.host import HostMatrix
from mercer.backends.lowering import Code, FlatProgram, lower
from mercer.backends.row_values import diagonal, row_values
from mercer.backends.torch.device import (
    Device,
    DeviceArrays,
    full_float32,
    into_float32_range,
    parts,
    tensor_type,
    to_host,
)
from mercer.backends.torch.evaluate import (
    External,
    Operands,
    PairBlock,
    WholeNumbers,
    bind,
    compare,
    multiplies,
    plain_index,
    run,
    within,
)
from mercer.backends.torch.exact.products import ExactPairs, OnePass
from mercer.backends.torch.factors import PackedFactor, packed_bytes, packed_cholesky
from mercer.backends.torch.matrices import DeviceMatrix
from mercer.backends.torch.triton.fused import FusedPairs, fuse
from mercer.backends.torch.triton.source import HELD
from mercer.expression import Expression, SqDist
from mercer.resources import MemoryBudgetError
from mercer.rows.points import row_count, take

# --- halves --------------------------------------------------------------------------------------
#
# Products with a symmetric matrix whose upper half alone is evaluated, block by block.

Tensor: TypeAlias = torch.Tensor
Evaluate: TypeAlias = Callable[[slice, slice], Tensor]


def product_by_halves(evaluate: Evaluate, right: Tensor, width: int, height: int) -> Tensor:
    """Return K right in float64: entries above the diagonal count for both sides of it.

    Parameters
    ----------
    evaluate : callable
        Returns the block of some rows and columns, in float64.
    right : (n, k) float64 tensor
        What K is multiplied by.
    width, height : int
        Of a block, at most.
    """
    n, out = len(right), torch.zeros_like(right)
    for part in parts(n, height):
        for some in parts(n - part.start, width):
            across = slice(part.start + some.start, part.start + some.stop)
            block = evaluate(part, across)
            out[part] += block @ right[across]
            beyond = slice(max(across.start, part.stop), across.stop)
            if beyond.start < beyond.stop:
                out[beyond] += block[:, beyond.start - across.start :].T @ right[part]
    return out


# --- filling -------------------------------------------------------------------------------------
#
# A symmetric kernel matrix, written on a device from the half above its diagonal.

_SPLITS = 3  # operands that a generated kernel makes of a feature


def fill(K: Tensor, evaluate: Evaluate, entries: int, fuses: bool) -> None:
    """Write all of K from blocks that begin at the diagonal.

    Parameters
    ----------
    K : (n, n) tensor
        Where to.
    evaluate : callable
        Returns some rows and columns.
    entries : int
        Of a block.
    fuses : bool
        Whether kernels of Triton may be used.
    """
    n = len(K)
    for part in parts(n, entries // max(1, n)):
        block = evaluate(part, slice(part.start, n))
        K[part, part.start :] = block
        _mirror(block, K[part.start :, part], fuses)
        square = K[part, part]
        square.copy_(square.triu() + square.triu(1).T)


def whole_rows(
    program: FlatProgram, leaves: Sequence[Operands], device: Device
) -> WholeNumbers | None:
    """Return the rows of squared distances as 8-bit numbers; None where they are no such work.

    They are if rows have many features. With few a generated kernel is as fast.

    Parameters
    ----------
    program : Program
        What is evaluated.
    leaves : sequence of Operands
        What its statistics compare.
    device : Device
        Where.
    """
    if len(leaves) != 1 or program.externals or not device.has_int8_cores:
        return None
    (leaf, rows, _) = leaves[0]
    if not isinstance(leaf, SqDist) or _SPLITS * rows.shape[1] <= HELD:
        return None
    try:
        return rows.whole if multiplies(device.name) else None
    except torch.cuda.OutOfMemoryError:  # blocks of the rows need less than levels of all
        torch.cuda.empty_cache()
        return None


def by_whole_numbers(
    program: FlatProgram, whole: WholeNumbers, row_terms: Sequence[tuple[Tensor, Tensor]]
) -> Evaluate:
    """Return what evaluates blocks in float32 from distances of 8-bit numbers.

    Parameters
    ----------
    program : Program
        What is evaluated.
    whole : WholeNumbers
        What its one statistic compares.
    row_terms : sequence of pairs of tensors
        Values of its row terms.
    """

    def evaluate(part: slice, across: slice) -> Tensor:
        distances = whole.squared_distances(part, across)
        terms = [(u[part], w[across]) for u, w in row_terms]
        return run(program, PairBlock([distances], terms, [], distances), torch.float32)

    return evaluate


def fill_at_once(K: Tensor, program: FlatProgram, whole: WholeNumbers, fuses: bool) -> bool:
    """Write all of a float32 K by one kernel, if it is an exponential; return whether it is.

    Parameters
    ----------
    K : (n, n) tensor
        Where to.
    program : Program
        What is evaluated.
    whole : WholeNumbers
        What its one statistic compares.
    fuses : bool
        Whether kernels of Triton may be used.
    """
    if not fuses or [op.code for op in program.ops] != [Code.EXP] or K.device != whole.k.device:
        return False
    from mercer.backends.torch.triton.special import fill_exponential  # noqa: PLC0415  imports Triton

    (op,) = program.ops
    return fill_exponential(K, whole.k, whole.squares, op.c0 * whole.unit**2, op.c1)


def _mirror(block: Tensor, out: Tensor, fuses: bool) -> None:
    if not (block.is_cuda and out.is_cuda and fuses and block.stride(1) == 1):
        out.copy_(block.T)
        return
    from mercer.backends.torch.triton.special import write_mirrored  # noqa: PLC0415  imports Triton

    write_mirrored(block, out)


# --- pairs ---------------------------------------------------------------------------------------
#
# An expression bound to points, evaluated on a device in blocks.

# Triangles that a packed factor is made for (it, and a preconditioner made of it), and their share
# of what is free: the rest is for rows, and blocks of features.
PACKED, PACKED_SHARE = 2, 0.8
_WIDTH = 1 << 15  # columns of a block in products: rows of it fill the rest


class TorchPairs(Pairs):
    """An expression bound to points: blocks in float64, or kernels in float32 where these do.

    Parameters
    ----------
    expression : Expression
        What is evaluated.
    X, Y : Points
        Rows and columns; Y is None when it is X.
    dtype : numpy dtype
        float32 or float64, whatever the type of the points.
    device : Device
        Where.
    fused : bool
        Whether float32 work may run as one generated kernel (see `fused.py`).
    halves : bool
        Whether such kernels may take one product of 16-bit numbers for three.

    Attributes
    ----------
    leaves : list of Operands
        What the statistics compare.
    """

    def __init__(
        self,
        expression: Expression,
        X: Points,
        Y: Points | None,
        dtype: Any,
        device: Device,
        fused: bool = False,
        halves: bool = False,
    ) -> None:
        columns = X if Y is None else Y
        self._expression, self._X = expression, X
        self.shape = (row_count(X), row_count(columns))
        self.dtype = np.dtype(dtype)
        self._type, self._device, self._symmetric = tensor_type(dtype), device, Y is None
        self._fuses, self._halves = fused, halves
        self._may_fuse = fused and self._type is torch.float32
        self._program = lower(expression)
        self.leaves = [bind(leaf, X, Y, device) for leaf in self._program.leaves]
        self._row_terms = []
        for term in self._program.row_terms:
            u = device.put(row_values(term, X))
            self._row_terms.append((u, u if Y is None else device.put(row_values(term, columns))))

        def inner(part: Expression) -> Callable[[Index, slice], Tensor]:
            return TorchPairs(part, X, Y, np.float64, device).block

        self._externals = [External(e, X, columns, device, inner) for e in self._program.externals]

    @cached_property
    def _fused(self) -> FusedPairs | None:
        if not self._may_fuse:
            return None
        try:
            return fuse(
                self._program, self.leaves, self._row_terms, self.shape, self._device, self._halves
            )
        except torch.cuda.OutOfMemoryError:  # blocks need less than operands of all rows
            torch.cuda.empty_cache()
            return None

    @cached_property
    def cores(self) -> ExactPairs | None:
        """The same on float64 tensor cores; None where these do not serve."""
        if not self._fuses or self._type is not torch.float64:
            return None
        return ExactPairs.of(self._program, self.leaves, self._device)

    def rows(self, index: Index) -> Array:
        """Evaluate the rows `index` against all columns."""
        index = plain_index(index, self.shape[0])
        count = index.stop - index.start if isinstance(index, slice) else len(index)
        out = np.empty((count, self.shape[1]), dtype=self.dtype)

        def fill(entries: int) -> None:
            for part in parts(count, entries // max(1, self.shape[1])):
                out[part] = to_host(self.block(within(index, part), slice(0, self.shape[1])))

        self._device.in_blocks(fill, f"a block of {self.shape[1]} columns of the kernel matrix")
        return out

    def dense(self, *, padded: bool = False) -> Array:
        """Evaluate the whole matrix; a symmetric one from the half above its diagonal."""
        if not self._symmetric:
            return self.rows(slice(0, self.shape[0]))
        there = self._evaluated()
        if there is not None:
            return to_host(there)
        out = np.empty(self.shape, dtype=self.dtype)
        self._fill(torch.from_numpy(out))
        return out

    def stored(self) -> StoredMatrix:
        """Keep the matrix on the device; on the host where it has no room."""
        there = self._evaluated()
        if there is None:
            return HostMatrix(self.dense())
        return DeviceMatrix(there, self._device, exact=self._in_float64())

    def packed_factor(self) -> PackedFactor | None:
        """Factor the symmetric matrix as a triangle, each panel evaluated where it stays."""
        n, needed = self.shape[0], PACKED * packed_bytes(self.shape[0])
        if not self._device.is_card or needed > PACKED_SHARE * self._device.free():
            return None

        def panel(part: slice) -> Tensor:
            mine = self._device.empty((n - part.start, part.stop - part.start), torch.float64)

            def fill(entries: int) -> None:
                for some in parts(len(mine), entries // (part.stop - part.start)):
                    rows = slice(part.start + some.start, part.start + some.stop)
                    mine[some] = self.block(rows, part)

            self._device.in_blocks(fill, f"a panel of the kernel matrix of {n} points")
            return mine

        what = f"the factor of the kernel matrix of {n} points"
        return self._device.once(lambda: packed_cholesky(n, panel, self._device), needed, what)

    def _evaluated(self) -> Tensor | None:
        """Evaluate the symmetric matrix on the device; None where it has no room for it."""
        if not self._device.has_room(math.prod(self.shape) * self.dtype.itemsize):
            return None
        try:
            K = self._device.empty(self.shape, self._type)
            self._fill(K)
        except (torch.cuda.OutOfMemoryError, MemoryBudgetError):
            return None
        return K

    def _fill(self, K: Tensor) -> None:
        whole = None
        if self._type is torch.float32:
            whole = whole_rows(self._program, self.leaves, self._device)
        if whole is not None and fill_at_once(K, self._program, whole, self._fuses):
            return
        fused = self._fused if whole is None else None

        def some_rows(part: slice, across: slice) -> Tensor:
            assert fused is not None
            return fused.rows(part)[:, across]

        evaluate: Evaluate = self.block
        if whole is not None:
            evaluate = by_whole_numbers(self._program, whole, self._row_terms)
        elif fused is not None:
            evaluate = some_rows if fused.deep is None else fused.deep.block

        def write(entries: int) -> None:
            fill(K, evaluate, entries, self._fuses)
            if fused is not None:  # of products: not exactly what a row has with itself
                K.diagonal().copy_(self._device.put(self._diagonal, self.dtype))

        self._device.in_blocks(write, f"the kernel matrix of {self.shape[0]} points")

    @cached_property
    def _diagonal(self) -> Array:
        with np.errstate(all="ignore"):
            return diagonal(self._expression, self._X)

    def matmul(self, V: Array) -> Array:
        """Multiply by V, each block dropped after use; sums over blocks in float64."""
        V = np.asarray(V, dtype=np.float64)
        columns = V.reshape(self.shape[1], math.prod(V.shape[1:]))
        found = to_host(self.times(self._device.put(columns)))
        return found.reshape(self.shape[0], *V.shape[1:])

    def times(self, right: Tensor) -> Tensor:
        """Return K right for float64 columns, all on the device."""
        scales = torch.ones(right.shape[1], dtype=torch.float64, device=right.device)
        if self.dtype == np.float32:
            right, scales = into_float32_range(right)

        def multiply(entries: int) -> Tensor:
            return self.product(right, entries) * scales

        what = f"a product with {right.shape[1]} columns"
        return self._device.in_blocks(multiply, what, float(math.prod(self.shape)))

    def operator(self) -> Operator:
        """Multiply tensors, which stay on the device."""
        return Operator(self.times, DeviceArrays(self._device))

    def sweep(self, right: Tensor, change: Callable[[slice, Tensor], Tensor]) -> Tensor:
        """Return K' g(K right), each block of rows evaluated once; g is given rows and values."""
        n, m = self.shape

        def add_up(entries: int) -> Tensor:
            if self.cores is not None and self.cores.takes(right):
                return self.cores.sweep(right, change, entries)
            total = torch.zeros(0)
            for done, part in enumerate(parts(n, entries // max(1, m))):
                block, values = self._with_product(part, right)
                some = block.T @ change(part, values)
                total = total + some if done else some
            return total

        return self._device.in_blocks(add_up, f"a block of {m} columns of the kernel matrix")

    def _with_product(self, part: slice, right: Tensor) -> tuple[Tensor, Tensor]:
        """Return some rows in float64, and their product with columns: in one pass where it can."""
        if right.shape[1] == 1 and self._one_pass is not None:
            return self._one_pass.multiply(part, right, self.block)
        block = self.block(part, slice(0, self.shape[1])).double()
        return block, block @ right

    @cached_property
    def _one_pass(self) -> OnePass | None:
        plain = self._fuses and not (self._externals or self._row_terms) and min(self.shape) > 0
        if not plain or self._type is not torch.float64:
            return None
        return OnePass.of(self._program, self.leaves)

    def round_trip(self, U: Array, change: Callable[[slice, Array], Array]) -> Array:
        """Return K' g(K U), each block of rows evaluated once."""

        def on_host(part: slice, values: Tensor) -> Tensor:
            return self._device.put(change(part, to_host(values)), np.float64)

        return to_host(self.sweep(self._device.put(U, np.float64), on_host))

    def transposed(self) -> TorchPairs:
        """Return K' of the same operands; not for what Python evaluates."""
        assert not self._externals
        other = self._bare()
        other.shape, other._symmetric = (self.shape[1], self.shape[0]), False
        other.leaves = [Operands(leaf, y, x) for leaf, x, y in self.leaves]
        other._row_terms = [(w, u) for u, w in self._row_terms]
        other.__dict__["_fused"] = None if self._fused is None else self._fused.transposed()
        return other

    def part(self, index: Array, columns: Array | None = None) -> TorchPairs | None:
        """Copy some of the operands, on the device; None where they are not all there."""
        resident = all(x.is_resident and y.is_resident for _, x, y in self.leaves)
        if self._externals or not resident or not len(index):
            return None
        rows = self._device.put(index, np.int64)
        across = None if columns is None else self._device.put(columns, np.int64)
        other = self._bare()
        other.shape = (len(index), self.shape[1] if columns is None else len(columns))
        other._symmetric = False
        other.leaves = [
            Operands(leaf, x.taken(rows), y if across is None else y.taken(across))
            for leaf, x, y in self.leaves
        ]
        other._row_terms = [
            (u[rows], w if across is None else w[across]) for u, w in self._row_terms
        ]
        other.__dict__["_fused"] = None if self._fused is None else self._fused.part(rows, across)
        return other

    def stored_part(self, index: Array) -> StoredMatrix | None:
        """Evaluate some rows with themselves where they lie, and leave the matrix there."""
        part = self.part(index, index) if self._symmetric else None
        if part is None:
            return None
        part._symmetric = True
        part.__dict__["_diagonal"] = self._diagonal[index]
        there = part._evaluated()
        return None if there is None else DeviceMatrix(there, self._device)

    def _bare(self) -> TorchPairs:
        """Copy this without what depends on its operands and their type."""
        other = copy(self)
        for name in ("_fused", "cores", "_one_pass"):
            other.__dict__.pop(name, None)
        return other

    def rounded(self) -> TorchPairs:
        """Return the same in float32, of the same operands."""
        other = self._bare()
        other.dtype, other._type = np.dtype(np.float32), torch.float32
        other._may_fuse = self._fuses
        return other

    def _in_float64(self) -> TorchPairs:
        """Return the same in float64, of the same operands."""
        other = self._bare()
        other.dtype, other._type, other._may_fuse = np.dtype(np.float64), torch.float64, False
        return other

    def product(self, right: Tensor, entries: int) -> Tensor:
        """Return K right in float64, in blocks of so many entries."""
        n, m = self.shape
        if self._fused is not None and right.shape[1]:
            return self._fused.product(right)
        if self.cores is not None and self.cores.takes(right):
            return self.cores.times(right, entries)
        width = min(max(1, m), _WIDTH)
        if self._symmetric and self._type is torch.float64:
            return product_by_halves(self.block, right, width, entries // width)
        out = torch.zeros((n, right.shape[1]), dtype=torch.float64, device=right.device)
        with full_float32():
            for part in parts(n, entries // width):
                for across in parts(m, width):
                    out[part] += self.block(part, across) @ right[across]
        return out

    def nearest(self) -> Tensor:
        """Return the number of the first column that has the smallest entry of each row."""
        if self._fused is not None:
            return self._fused.nearest()
        (n, m), exact = self.shape, self._in_float64()  # what float32 cannot tell is not fused

        def search(entries: int) -> Tensor:
            found = [exact.block(part, slice(0, m)).min(dim=1) for part in parts(n, entries // m)]
            return torch.cat([x.indices for x in found])

        return self._device.in_blocks(search, f"a block of {m} columns")

    def block(self, index: Index, part: slice) -> Tensor:
        """Evaluate some rows with some columns, on the device."""
        deadline.check()
        whole = part.start == 0 and part.stop == self.shape[1]
        if whole and isinstance(index, slice) and self._fused is not None:
            return self._fused.rows(index)
        if self.cores is not None:
            return self.cores.entries(self.cores.rows(index), self.cores.columns(part))
        leaves = [
            compare(leaf, rows.block(index), columns.block(part))
            for leaf, rows, columns in self.leaves
        ]
        terms = [(u[index], w[part]) for u, w in self._row_terms]
        externals = [e.block(index, part) for e in self._externals]
        height = len(range(*index.indices(self.shape[0])) if isinstance(index, slice) else index)
        like = self._device.empty((1, 1), torch.float64).expand(height, part.stop - part.start)
        return run(self._program, PairBlock(leaves, terms, externals, like), self._type)


# --- several -------------------------------------------------------------------------------------
#
# Several cards share a product: each has some of the rows, and all of the columns.

_HEARD = 0.1  # seconds between two looks at the clock, and at the signals


class SharedPairs(TorchPairs):
    """An expression bound to points, whose products are cut between devices.

    Parameters
    ----------
    expression : Expression
        What is evaluated.
    X, Y : Points
        Rows and columns; Y is None when it is X.
    dtype : numpy dtype
        float32 or float64.
    devices : sequence of Device
        Where. The first evaluates blocks and stored matrices, too.
    fused, halves : bool
        As for `TorchPairs`.
    """

    def __init__(
        self,
        expression: Expression,
        X: Points,
        Y: Points | None,
        dtype: Any,
        devices: Sequence[Device],
        fused: bool = False,
        halves: bool = False,
    ) -> None:
        super().__init__(expression, X, Y, dtype, devices[0], fused, halves)
        self._devices, self._points = devices, (X, X if Y is None else Y)

    @cached_property
    def _shares(self) -> list[tuple[slice, TorchPairs]]:
        """The rows of each device, sent there when a product is first asked for."""
        n, count = self.shape[0], len(self._devices)
        X, Y = self._points
        ends = [n * k // count for k in range(count + 1)]
        return [
            (
                slice(first, last),
                TorchPairs(
                    self._expression,
                    take(X, slice(first, last)),
                    Y,
                    self.dtype,
                    device,
                    self._fuses,
                    self._halves,
                ),
            )
            for device, first, last in zip(self._devices, ends[:-1], ends[1:], strict=True)
        ]

    def part(self, index: Array, columns: Array | None = None) -> None:
        """Bind parts anew: all devices have a share of them."""
        return None

    def operator(self) -> Operator:
        """Multiply arrays of the processor, which all devices get a copy of."""
        return Operator(self.matmul)

    def matmul(self, V: Array) -> Array:
        """Multiply on all devices at once."""
        return np.concatenate(self._on_all(lambda part, pairs: pairs.matmul(V)))

    def round_trip(self, U: Array, change: Callable[[slice, Array], Array]) -> Array:
        """Evaluate the rows of each device there, and add up."""

        def on_one(part: slice, pairs: TorchPairs) -> Array:
            def moved(rows: slice, values: Array) -> Array:
                return change(slice(part.start + rows.start, part.start + rows.stop), values)

            return pairs.round_trip(U, moved)

        return np.asarray(sum(self._on_all(on_one)))

    def _on_all(self, work: Callable[[slice, TorchPairs], Array]) -> list[Array]:
        """Work on all devices at once; Ctrl-C and time limits are heard while they do."""
        shares = [(part, pairs) for part, pairs in self._shares if part.stop > part.start]
        pool = ThreadPoolExecutor(len(shares) or 1)
        try:
            waiting = [
                pool.submit(copy_context().run, partial(work, part, pairs))
                for part, pairs in shares
            ]
            while wait(waiting, timeout=_HEARD, return_when=FIRST_EXCEPTION).not_done:
                if any(found.done() and found.exception() for found in waiting):
                    break
                deadline.check()
            return [found.result() for found in waiting]
        finally:  # what is left of an interrupted product ends by itself, and is dropped
            pool.shutdown(wait=False, cancel_futures=True)
