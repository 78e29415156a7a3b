"""Matrices on a device: products, blocked Cholesky factors, solutions and eigenpairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias
from weakref import ref

import numpy as np
import torch

from mercer.array_types import Array, Index
from mercer.backends.box_programs import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.contract import (
    Band,
    Factor,
    GroupAnswer,
    Groups,
    Operator,
    PathsOn,
    Poll,
    RowParts,
    StoredMatrix,
)
from mercer.backends.host import HostFactor, HostMatrix
from mercer.backends.reference.kmeans import partition
from mercer.backends.torch.device import (
    Device,
    DeviceArrays,
    full_float32,
    into_float32_range,
    parts,
    to_host,
)
from mercer.backends.torch.svm.confirm import ExactKernel, StoredPaths
from mercer.backends.torch.svm.descents import can_descend, solve_boxes
from mercer.backends.torch.svm.grids import (
    FILLING,
    begin_at_zero,
    solve_grids,
    solve_paths,
    values_at,
)
from mercer.resources import MemoryBudgetError, format_bytes

# --- blocked -------------------------------------------------------------------------------------
#
# Cholesky factors of large matrices in place, and solutions with them, panel by panel.
#
# Most of the work is products of matrices, which a card is fastest at; the library's factor and
# its solutions for few columns take longer. Time limits and Ctrl-C hold between panels.

Tensor: TypeAlias = torch.Tensor

_LARGE = 40_000  # rows: of 30,000 the library is as fast, of 60,000 it takes 1.65 s, this 1.56
_PANEL = 2048  # columns that a factor is made of at a time
_TRIANGLE = 256  # columns that are divided by an inverse at a time
_SOLVED = 1024  # rows of a solution at a time: of 40,000 in 16 ms, by the library in 41
_FEW = 16  # columns of a solution: with more, the library multiplies as much


def is_blocked(n: int) -> bool:
    """Return whether a matrix of so many rows is factored by panels."""
    return n > _LARGE


def factor_in_place(A: Tensor) -> int:
    """Write the lower factor over a symmetric float64 matrix; zeros above its diagonal.

    Returns
    -------
    int
        0, or the order of the first minor that is not positive definite; what A holds then is of
        no use.
    """
    n = len(A)
    for part in parts(n, _PANEL):
        done, mine, below = slice(0, part.start), A[part, part], slice(part.stop, n)
        if part.start:
            A[part.start :, part].addmm_(A[part.start :, done], A[part, done].T, alpha=-1.0)
        L, info = torch.linalg.cholesky_ex(mine)
        wrong = int(info)  # waits: time limits hold
        finite = L.diagonal().isfinite()
        if not wrong and not bool(finite.all()):
            wrong = 1 + int(finite.to(torch.int8).argmin())
        if wrong:
            return int(part.start) + wrong
        mine.copy_(L)
        _divide(A[below, part], mine)
        A[part, below] = 0.0
    return 0


def _divide(B: Tensor, L: Tensor) -> None:
    """Write B L'^-1 over B.

    Triangles are small, and their inverses are multiplied by: the library solves with them ten
    times slower than it multiplies. What an inverse gets wrong is found by a product, and divided
    once more, so that digits are those of solving.
    """
    one = torch.eye(_TRIANGLE, dtype=L.dtype, device=L.device)
    for part in parts(len(L), _TRIANGLE):
        mine, triangle = B[:, part], L[part, part]
        if part.start:
            mine.addmm_(B[:, : part.start], L[part, : part.start].T, alpha=-1.0)
        width = len(triangle)
        inverse = torch.linalg.solve_triangular(triangle, one[:width, :width], upper=False)
        divided = mine @ inverse.T
        left = torch.addmm(mine, divided, triangle.T, alpha=-1.0)
        mine.copy_(torch.addmm(divided, left, inverse.T))


def solved(L: Tensor, right: Tensor) -> Tensor:
    """Return (L L')^-1 times columns."""
    n = len(L)
    if right.shape[1] > _FEW or n <= _SOLVED:
        return torch.cholesky_solve(right, L)
    x, panels = right.clone(), list(parts(n, _SOLVED))
    for part in panels:
        x[part] = torch.linalg.solve_triangular(L[part, part], x[part], upper=False)
        x[part.stop :] -= L[part.stop :, part] @ x[part]
    for part in reversed(panels):
        x[part] -= L[part.stop :, part].T @ x[part.stop :]
        x[part] = torch.linalg.solve_triangular(L[part, part].T, x[part], upper=True)
    return x


# --- device matrix -------------------------------------------------------------------------------
#
# Stored matrices and their Cholesky factors on a device: only what is small travels.

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
        self,
        K: Tensor,
        device: Device,
        array: Array | None = None,
        exact: ExactKernel | None = None,
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
        less: tuple[Array, Array] | None = None,
    ) -> Factor | None:
        """Factor there: K is never sent, and the factor stays."""
        require_room(self._device, len(self.tensor), 1 if is_blocked(len(self.tensor)) else 2)
        A = self.tensor.to(torch.float64, copy=True)
        if scale is not None and not (scale == 1.0).all():
            s = self._device.put(scale, np.float64)
            A.mul_(s[:, None]).mul_(s)
        A.diagonal().add_(self._device.put(shift, np.float64))
        if less is not None:
            U, E = (self._device.put(part, np.float64) for part in less)
            A.addmm_(U, E.T, alpha=-1.0)
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
            StoredPaths(K.tensor, paths, K._exact)
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

    L, wrong = torch.linalg.cholesky_ex(A)
    info = int(wrong)
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


# --- matrices ------------------------------------------------------------------------------------
#
# Matrices of the host that are sent to a device: products, factors, eigenvectors.

_KEPT: dict[tuple[int, str], tuple[ref[Array], Tensor]] = {}


def symmetric_product(K: Array, V: Array, rows: RowParts | None, device: Device) -> Array:
    """Return K V for a symmetric K on the host; see `Backend.symmetric_product`."""
    if rows is not None:
        sizes = np.diff(rows.ends, prepend=0)
        read = np.where(np.repeat(rows.reads, sizes, axis=0), V, 0.0)
        product = symmetric_product(K, read, None, device)
        return np.where(np.repeat(rows.writes, sizes, axis=0), product, 0.0)
    held = kept_on_device(K, device)
    if held is not None:
        return multiply(held, V, device)

    def in_blocks(entries: int) -> Array:
        out = np.empty((len(K), V.shape[1]))
        for part in parts(len(K), entries // max(1, len(K))):
            out[part] = multiply(device.put(K[part]), V, device)
        return out

    return device.in_blocks(in_blocks, f"a block of a matrix of {len(K)} rows")


def kept_on_device(K: Array, device: Device) -> Tensor | None:
    """Return the copy of a matrix on the card, made once for one that nobody may write to.

    It is let go together with the matrix on the host. None on the CPU, for a matrix that may still
    change, and where the card has no room.
    """
    if not device.is_card or K.flags.writeable or K.base is not None:
        return None
    known = _KEPT.get((id(K), device.name))
    if known is not None and known[0]() is K:
        return known[1]
    if not device.has_room(K.nbytes):
        return None
    key = id(K), device.name
    try:
        copy = device.put(K)
    except torch.cuda.OutOfMemoryError:
        return None
    _KEPT[key] = ref(K, lambda _: _KEPT.pop(key, None)), copy
    return copy


def cholesky(A: Array, device: Device) -> int:
    """Factor A = L L' in place; see `Backend.cholesky`."""
    require_room(device, len(A))
    L, info = factored(device.put(A), overwrite=device.is_card)
    if info == 0:
        for part in parts(len(A), max(1, (1 << 24) // max(1, len(A)))):
            rows = to_host(L[part, : part.stop])
            A[part, : part.start] = rows[:, : part.start]
            lower = np.tri(len(rows), dtype=bool)
            np.copyto(A[part, part], rows[:, part.start :], where=lower)
    return info


def cholesky_factor(A: Array, device: Device) -> Factor | None:
    """Factor A = L L', L kept on the device; see `Backend.cholesky_factor`."""
    require_room(device, len(A))
    L, info = factored(device.put(A), overwrite=device.is_card)
    return None if info else DeviceFactor(L, device)


def solve_with_determinant(C: Array, right: Array, device: Device) -> tuple[Array, float, float]:
    """Solve by an LU decomposition; see `Backend.solve_with_determinant`."""
    require_room(device, len(C), 3, "the LU decomposition")

    LU, pivots, info = torch.linalg.lu_factor_ex(device.put(C, np.float64))
    found = LU.diagonal()
    exchanged = pivots != torch.arange(1, len(C) + 1, device=LU.device)
    negative = int((found < 0).sum()) + int(exchanged.sum())
    logarithm = float(found.abs().log().sum())
    if int(info) or not np.isfinite(logarithm):
        return np.full(right.shape, np.nan), 0.0, -np.inf
    solved = torch.linalg.lu_solve(LU, pivots, device.put(right, np.float64))
    return to_host(solved), -1.0 if negative % 2 else 1.0, logarithm


def eigh(A: Array, device: Device) -> tuple[Array, Array]:
    """Decompose a symmetric matrix; see `Backend.eigh`."""
    require_room(device, len(A), 5, "the eigendecomposition")

    try:
        values, vectors = torch.linalg.eigh(device.put(A, np.float64))
    except torch.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(str(error)) from error
    return to_host(values), to_host(vectors)


# --- bands: on a card the narrowest band, of half-width 0, is found by `eigh` --------------------


def band_reduce(A: Array, width: int, device: Device) -> Band:
    """Return A = Q B Q' with B diagonal; see `Backend.band_reduce`."""
    values, vectors = eigh(A, device)
    lower = np.zeros((len(A), width + 1))
    lower[:, 0] = values
    Qt = np.ascontiguousarray(vectors.T)
    Qt.setflags(write=False)  # so that it may stay on the card
    return Band(Qt, lower, width)


def band_inverse_diagonals(band: Band, shifts: Array, device: Device) -> Array:
    """Return diag((A + shift)^-1) of such a band; see `Backend.band_inverse_diagonals`."""
    values = band.lower[:, :1] + shifts
    weights = device.put(np.where(values > 0, 1.0 / np.where(values > 0, values, 1.0), np.nan))
    held = kept_on_device(band.Qt, device)

    def add_up(entries: int) -> Array:
        out = device.empty((len(band.Qt), len(shifts)), torch.float64).zero_()
        for part in parts(len(band.Qt), entries // max(1, len(band.Qt))):
            rows = device.put(band.Qt[part]) if held is None else held[part]
            out += rows.square().T @ weights[part]
        return to_host(out.T)

    return device.in_blocks(add_up, f"a block of a matrix of {len(band.Qt)} rows")
