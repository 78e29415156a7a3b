"""Stored matrices and their Cholesky factors on a device: only what is small travels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array, Index
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.backends.host_matrix import HostFactor, HostMatrix
from mercer.backends.lapack import interruptible
from mercer.backends.long_arrays import Operator
from mercer.backends.reference.partition import partition
from mercer.backends.stored import Factor, PathsOn, StoredMatrix
from mercer.backends.torch.boxes.confirmation import Block, Exact
from mercer.backends.torch.boxes.descents import can_descend, solve_boxes
from mercer.backends.torch.boxes.grids import begin_at_zero, solve_grids
from mercer.backends.torch.boxes.paths import FILLING, solve_paths, values_at
from mercer.backends.torch.device import (
    Device,
    full_float32,
    into_float32_range,
    parts,
    to_host,
)
from mercer.backends.torch.device_arrays import DeviceArrays
from mercer.backends.torch.factors.blocked import factor_in_place, is_blocked, solved
from mercer.resources import MemoryBudgetError, format_bytes

Tensor: TypeAlias = torch.Tensor

# Columns whose products float32 adds up before float64 takes over: the rounding of a sum grows with
# their number, and a block of 1024 columns is still a long product.
_FLOAT32_COLUMNS = 1 << 10
_PART = 0.5  # of the points: K between so few is brought to the host instead of all of it
_COLUMNS = 2048  # of an inverse at a time: between two looks at the clock


class DeviceMatrix(StoredMatrix):
    """A symmetric matrix on a device.

    Parameters
    ----------
    K : (n, n) tensor
        float32 or float64.
    device : Device
        Where it lies.
    array : (n, n) array, optional
        The same on the host, where it is known.
    exact : Exact, optional
        What a float32 K is rounded from, where it can be evaluated anew.
    """

    def __init__(
        self, K: Tensor, device: Device, array: Array | None = None, exact: Exact | None = None
    ) -> None:
        self.tensor, self._device, self._exact = K, device, exact
        self.shape = (len(K), len(K))
        self.dtype = np.dtype(str(K.dtype).removeprefix("torch."))
        self.descends_elsewhere = device.is_card and self.dtype == np.float32
        if array is not None:
            self.__dict__["_array"] = array

    def __reduce__(self) -> tuple[Any, ...]:
        return HostMatrix, (self.dense(),)  # whoever reads it may have no such device

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return int(self.tensor.nbytes)

    @cached_property
    def _array(self) -> Array:
        array = to_host(self.tensor)
        array.setflags(write=False)
        return array

    def dense(self) -> Array:
        """Bring it to the host, once."""
        return self._array

    def diagonal(self) -> Array:
        """Read the diagonal."""
        return to_host(self.tensor.diagonal().double())

    def rows(self, index: Index) -> Array:
        """Bring some rows."""
        if "_array" in self.__dict__:
            return self._array[index]
        return to_host(self.tensor[self._numbers(index)])

    def product(self, V: Array) -> Array:
        """Multiply there; entries of float32 in float32, added up in float64."""
        return multiply(self.tensor, V, self._device)

    def operator(self) -> Operator:
        """Multiply tensors, which stay there."""
        return Operator(partial(product, self.tensor), DeviceArrays(self._device))

    def combination(self, points: Array, coef: Array) -> Array:
        """Multiply rows by coefficients there, in float64."""
        index, right = self._numbers(points), self._device.put(coef, np.float64)

        def add_up(entries: int) -> Array:
            total = self.tensor.new_zeros(len(self.tensor), dtype=torch.float64)
            for part in parts(len(index), entries // max(1, len(self.tensor))):
                total += right[part] @ self.tensor[index[part]].double()
            return to_host(total)

        return self._device.in_blocks(add_up, f"rows of a matrix of {len(self.tensor)} points")

    def cholesky(
        self,
        shift: Array,
        scale: Array | None = None,
        less: tuple[Array, Array | None] | None = None,
    ) -> Factor | None:
        """Factor there: K is never sent, and the factor stays."""
        require_room(self._device, len(self.tensor), 1 if is_blocked(len(self.tensor)) else 2)
        A = self.tensor.to(torch.float64, copy=True)
        if scale is not None and not (scale == 1.0).all():
            s = self._device.put(scale, np.float64)
            A.mul_(s[:, None]).mul_(s)
        A.diagonal().add_(self._device.put(shift, np.float64))
        if less is not None:
            U = self._device.put(less[0], np.float64)
            E = U if less[1] is None else self._device.put(less[1], np.float64)
            A.addmm_(U, E.T, alpha=-1.0)
            if less[1] is not None:
                A.addmm_(E, U.T, alpha=-1.0)
        L, info = factored(A, overwrite=True)
        return None if info else DeviceFactor(L, self._device)

    def box_qps(
        self, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Descend on the card, all programmes at once, where it can; else on the host."""
        if self._descends(boxes):
            return solve_boxes(self.tensor, boxes, tol, max_iter, poll, self._device)
        rows, some = [box.rows for box in boxes if box.rows is not None], np.zeros(0, np.int64)
        if "_array" not in self.__dict__ and len(rows) == len(boxes) > 0:
            some = np.unique(np.concatenate(rows))
        if not 0 < len(some) <= _PART * len(self.tensor):
            return HostMatrix(self.dense()).box_qps(boxes, tol, max_iter, poll)
        # what small programmes need of K is little of it
        index = self._device.put(some)
        part = HostMatrix(to_host(self.tensor[index][:, index]))
        places = [np.searchsorted(some, index) for index in rows]
        small = [replace(box, rows=place) for box, place in zip(boxes, places, strict=True)]
        return part.box_qps(small, tol, max_iter, poll)

    def box_paths(
        self, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Descend on the card, all paths and their steps at once, where it can."""
        if self._descends([path.box for path in paths]):
            if len(paths) < FILLING and begin_at_zero(paths):
                return self.box_paths_on_several([(self, paths)], tol, max_iter, poll)[0]

            def side_by_side(boxes: Sequence[Box], asked: Poll | None) -> list[BoxAnswer]:
                return solve_boxes(self.tensor, boxes, tol, max_iter, asked, self._device)

            at_rows = partial(values_at, self.tensor, device=self._device)
            return solve_paths(self, paths, side_by_side, poll, at_rows)
        return HostMatrix(self.dense()).box_paths(paths, tol, max_iter, poll)

    def box_paths_on_several(
        self, work: Sequence[PathsOn], tol: float, max_iter: int, poll: Poll | None
    ) -> list[list[BoxPathAnswer]]:
        """Descend on all matrices that are on this card at once."""
        blocks = [
            Block(K.tensor, paths, K._exact)
            for K, paths in work
            if isinstance(K, DeviceMatrix)
            and K._device == self._device
            and K._descends([path.box for path in paths])
        ]
        if len(blocks) < len(work) or not begin_at_zero([p for _, some in work for p in some]):
            return super().box_paths_on_several(work, tol, max_iter, poll)
        return solve_grids(blocks, tol, max_iter, poll, self._device)

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Take the steps of the reference on a card, whose products are made there."""
        if not self._device.is_card:
            return HostMatrix(self.dense()).partition(groups, poll)
        return partition(_Products(self), groups, poll)

    def _descends(self, boxes: Sequence[Box]) -> bool:
        single = self._device.is_card and self.tensor.dtype is torch.float32
        return single and can_descend(boxes)

    def _numbers(self, index: Index) -> Any:
        return index if isinstance(index, slice) else self._device.put(np.asarray(index))


class _Products:
    """K for those who ask for single rows or for products."""

    def __init__(self, matrix: DeviceMatrix) -> None:
        self._matrix = matrix

    def __getitem__(self, index: Any) -> Array:
        return self._matrix.rows(index)

    def __matmul__(self, V: Array) -> Array:
        return self._matrix.product(V)


def multiply(K: Tensor, V: Array, device: Device) -> Array:
    """Return K V in float64."""
    return to_host(product(K, device.put(V, np.float64)))


def product(K: Tensor, right: Tensor, columns: int = _FLOAT32_COLUMNS) -> Tensor:
    """Return K right in float64; so many columns of a float32 K are added up in float32."""
    scales = torch.ones(right.shape[1], dtype=torch.float64, device=right.device)
    if K.dtype is torch.float32:
        right, scales = into_float32_range(right)
    width = columns if K.dtype is torch.float32 else max(1, K.shape[1])
    out = torch.zeros((len(K), right.shape[1]), dtype=torch.float64, device=right.device)
    with full_float32():
        for across in parts(K.shape[1], width):
            out += K[:, across] @ right[across]
    return out * scales


class DeviceFactor(Factor):
    """A Cholesky factor on a device.

    Parameters
    ----------
    L : (n, n) float64 tensor
        Lower triangular.
    device : Device
        Where it lies.
    """

    def __init__(self, L: Tensor, device: Device) -> None:
        self.tensor, self.device = L, device

    def __reduce__(self) -> tuple[Any, ...]:
        return HostFactor, (self.lower(),)  # whoever reads it may have no such device

    def half_solve(self, right: Array, transposed: bool = False) -> Array:
        """Solve with one triangle."""
        return to_host(self.half(self.device.put(right, np.float64), transposed=transposed))

    def half(self, columns: Tensor, transposed: bool = False) -> Tensor:
        """Return L^-1 or L'^-1 times columns, all on the device."""
        L = self.tensor.T if transposed else self.tensor
        return torch.linalg.solve_triangular(L, columns, upper=transposed)

    def solve(self, right: Array) -> Array:
        """Solve with both triangles."""
        columns = self.device.put(right.reshape(len(right), -1), np.float64)
        return to_host(solved(self.tensor, columns)).reshape(right.shape)

    def solve_there(self, right: Any) -> Any:
        """Solve for a tensor."""
        return solved(self.tensor, right)

    def half_there(self, right: Any) -> Any:
        """Solve with one triangle for a tensor."""
        return self.half(right)

    def here(self) -> Factor:
        """Bring it."""
        return HostFactor(self.lower())

    def diagonal(self) -> Array:
        """Read the diagonal."""
        return to_host(self.tensor.diagonal())

    def lower(self) -> Array:
        """Bring it to the host."""
        return to_host(self.tensor)

    def inverse(self) -> Array:
        """Solve for the columns of the identity, some at a time."""
        out = np.empty(tuple(self.tensor.shape))

        def fill(entries: int) -> None:
            for part, columns in self._identity(entries):
                out[part] = to_host(torch.cholesky_solve(columns, self.tensor)).T

        self.device.in_blocks(fill, f"columns of the inverse of {len(out)} rows")
        return out

    def inverse_diagonal(self) -> Array:
        """Add up the squares of L^-1, some of its columns at a time."""
        out = np.empty(len(self.tensor))

        def fill(entries: int) -> None:
            for part, columns in self._identity(entries):
                # columns of L^-1 begin at their own rows
                L = self.tensor[part.start :, part.start :]
                half = torch.linalg.solve_triangular(L, columns[part.start :], upper=False)
                out[part] = to_host(half.square().sum(dim=0))

        self.device.in_blocks(fill, f"columns of the inverse of {len(out)} rows")
        return out

    def _identity(self, entries: int) -> Any:
        n = len(self.tensor)
        for part in parts(n, max(1, min(_COLUMNS, entries // max(1, n)))):
            columns = self.tensor.new_zeros((n, part.stop - part.start))
            columns[part].fill_diagonal_(1.0)
            yield part, columns


def factored(A: Tensor, overwrite: bool = False) -> tuple[Tensor, int]:
    """Return the factor of a float64 tensor, and 0 or the order of the first minor without one.

    A large one is written over A where that is allowed.
    """
    if is_blocked(len(A)):
        L = A if overwrite else A.clone()
        return L, factor_in_place(L)

    def factor(_: Array) -> tuple[Tensor, int]:
        L, info = torch.linalg.cholesky_ex(A)
        return L, int(info)

    L, info = interruptible(factor, np.broadcast_to(0.0, tuple(A.shape)))
    finite = L.diagonal().isfinite()
    if info == 0 and not bool(finite.all()):
        info = 1 + int(finite.to(torch.int8).argmin())
    return L, info


def require_room(
    device: Device, n: int, matrices: int = 2, what: str = "the Cholesky factor"
) -> None:
    """Refuse what the card has no room for, before anything is taken.

    Parameters
    ----------
    device : Device
        Where.
    n : int
        Rows of the matrix.
    matrices : int
        How many of this size are held at once; for a factor, it and what it is made of.
    what : str
        What takes the memory.
    """
    needed = matrices * 8.0 * n * n
    if device.is_card and needed > device.free():
        raise MemoryBudgetError(
            f"{what} of {n} rows needs {format_bytes(needed)} on the device {device.name!r}, "
            f"where {format_bytes(device.free())} are free. Use a solver that stores no matrix "
            "(ConjugateGradient(), Lanczos()), or backend='native'."
        )
