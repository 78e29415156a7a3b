"""Cholesky factors on a device: packed lower triangles, and factors of G'G + penalty."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import singledispatch
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.contract import Factor
from mercer.backends.host import HostFactor
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.matrices import DeviceFactor, factored
from mercer.resources import require_memory

# --- packed --------------------------------------------------------------------------------------
#
# A Cholesky factor stored as its lower triangle alone: panels of columns, below their diagonal.
#
# A square of 100,000 rows takes 80 GB and its factor as much again; the triangle is factored
# where it lies and takes 40 GB. Panels are made one after the other, so no square ever exists.

Tensor: TypeAlias = torch.Tensor

WIDTH = 2048  # columns of a panel: products of such depth are as fast as any

_WIDE = 2  # panels side by side where no memory is saved: fewer products, each started by the host


def panel_parts(n: int, width: int | None = None) -> list[slice]:
    """Cut columns into panels, of `WIDTH` columns by default."""
    width = WIDTH if width is None else width
    return [slice(first, min(n, first + width)) for first in range(0, n, width)]


def packed_bytes(n: int) -> float:
    """Return what the panels of a triangle take, with the inverses of their diagonal blocks."""
    entries = [(n - part.start + WIDTH) * (part.stop - part.start) for part in panel_parts(n)]
    return float(8 * sum(entries))


class PackedFactor(Factor):
    """A lower triangular factor by panels.

    Parameters
    ----------
    panels : list of tensors
        The k-th holds the rows of its columns from their diagonal on, (n - k w, w) for panels of w
        columns, with zeros above the diagonal.
    device : Device
        Where they lie.
    """

    def __init__(self, panels: list[Tensor], device: Device) -> None:
        self.panels, self._device = panels, device
        self.size = len(panels[0])
        self.parts = panel_parts(self.size, panels[0].shape[1])
        # a product with an inverse is done at once; solving goes row after row
        self._inverses = [_inverse(panel) for panel in panels]

    def __reduce__(self) -> tuple[Any, ...]:
        return HostFactor, (self.lower(),)  # whoever reads it may have no such device

    def half(self, columns: Tensor, transposed: bool = False) -> Tensor:
        """Return L^-1 or L'^-1 times columns, all on the device."""
        out = columns.clone()
        each = list(zip(self.parts, self.panels, self._inverses, strict=True))
        for part, panel, inverse in reversed(each) if transposed else each:
            height = part.stop - part.start
            if transposed:
                mine = torch.addmm(out[part], panel[height:].T, out[part.stop :], alpha=-1.0)
                out[part] = inverse.T @ mine
            else:
                out[part] = inverse @ out[part]
                out[part.stop :].addmm_(panel[height:], out[part], alpha=-1.0)
        return out

    def half_solve(self, right: Array, transposed: bool = False) -> Array:
        """Solve with one triangle."""
        return to_host(self.half(self._device.put(right, np.float64), transposed))

    def solve(self, right: Array) -> Array:
        """Solve with both triangles."""
        columns = self._device.put(right.reshape(len(right), -1), np.float64)
        return to_host(self.half(self.half(columns), transposed=True)).reshape(right.shape)

    def solve_there(self, right: Any) -> Any:
        """Solve for a tensor."""
        return self.half(self.half(right), transposed=True)

    def half_there(self, right: Any) -> Any:
        """Solve with one triangle for a tensor."""
        return self.half(right)

    def here(self) -> Factor:
        """Write out the square on the host."""
        return HostFactor(self.lower())

    def diagonal(self) -> Array:
        """Read the diagonals of all panels."""
        return np.concatenate([to_host(panel.diagonal()) for panel in self.panels])

    def lower(self) -> Array:
        """Write out the square on the host."""
        require_memory(
            8 * self.size**2,
            f"the factor of {self.size} rows, brought from the device",
            "Use fewer landmarks, or a larger budget with mercer.config(memory=...).",
        )
        out = np.zeros((self.size, self.size))
        for part, panel in zip(self.parts, self.panels, strict=True):
            out[part.start :, part] = to_host(panel)
        return out

    def inverse(self) -> Array:
        """Solve for the columns of the identity, some at a time."""
        out = np.empty((self.size, self.size))
        for part, columns in self._identity():
            out[part] = to_host(self.half(self.half(columns), transposed=True)).T
        return out

    def inverse_diagonal(self) -> Array:
        """Add up the squares of L^-1, some of its columns at a time."""
        out = np.empty(self.size)
        for part, columns in self._identity():
            out[part] = to_host(self.half(columns).square_().sum(dim=0))
        return out

    def _identity(self) -> Iterator[tuple[slice, Tensor]]:
        for part in parts(self.size, WIDTH):
            columns = self.panels[0].new_zeros((self.size, part.stop - part.start))
            columns[part].fill_diagonal_(1.0)
            yield part, columns


def in_panels(factor: Factor) -> Factor:
    """Return a factor that solves for few columns by panels, of the same memory.

    Each panel is one product, and the inverse of its diagonal block another; solving row after row
    takes three times as long for 10,000 rows. Digits are lost where that block is badly
    conditioned: for preconditioners, and steps that a residual is looked at after.
    """
    if not isinstance(factor, DeviceFactor):
        return factor
    L = factor.tensor
    wide = panel_parts(len(L), _WIDE * WIDTH)
    return PackedFactor([L[part.start :, part] for part in wide], factor.device)


def packed_cholesky(
    n: int, panel: Callable[[slice], Tensor], device: Device
) -> PackedFactor | None:
    """Factor a positive definite matrix whose panels are made one after the other.

    Parameters
    ----------
    n : int
        Rows.
    panel : callable
        Returns the entries of some columns from their diagonal on, (n - start, width), to be
        overwritten; asked for each panel once, from the first to the last.
    device : Device
        Where they lie.

    Returns
    -------
    PackedFactor or None
        None where the matrix is not positive definite.
    """
    done: list[Tensor] = []
    for part in panel_parts(n):
        mine = panel(part)
        height = part.stop - part.start
        for other, before in zip(panel_parts(n), done, strict=False):
            deadline.check()
            rows = before[part.start - other.start :]
            mine.addmm_(rows, rows[:height].T, alpha=-1.0)
        L, info = torch.linalg.cholesky_ex(mine[:height])
        if int(info) or not bool(L.diagonal().isfinite().all()):  # waits: time limits hold
            return None
        mine[:height] = L
        mine[height:] = torch.linalg.solve_triangular(L.T, mine[height:], upper=True, left=False)
        done.append(mine)
    return PackedFactor(done, device)


def _inverse(panel: Tensor) -> Tensor:
    width = panel.shape[1]
    one = torch.eye(width, dtype=panel.dtype, device=panel.device)
    return torch.linalg.solve_triangular(panel[:width], one, upper=False)


# --- squares -------------------------------------------------------------------------------------
#
# Sums of squares G'G + penalty of features at landmarks, and their factors.
#
# The features of the landmarks themselves are the rows of L, of k(z, z) = L L'; those of other
# points are added block by block. Such a sum preconditions the equations of all points.

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
_STRIP = 2048  # rows of a square at a time: high enough for full speed
_LATE = 1e-3  # of the penalty: what may be lost where points are mixed after their products
_POWERS, _SURE = 4, 2.0  # steps of the power method, and what its result is multiplied by
_MIXED = 4  # squares: before and after they are mixed, and what solving takes


class SquareSums(ABC):
    """A sum of g g' over features g of points."""

    @abstractmethod
    def add(self, G: Tensor) -> None:
        """Add the points of G (features, points)."""

    def add_mixed(self, points: Iterator[Tensor], count: int, penalty: float) -> bool:
        """Add L^-1 B B' L'^-1 for blocks B (landmarks, points), mixed after they are multiplied.

        Half the work of mixing every block, where it keeps the digits that the penalty asks for.

        Parameters
        ----------
        points : iterator of tensors
            Blocks of values at landmarks, weighed, their mean taken off.
        count : int
            How many points they are.
        penalty : float
            What is added to the sum.

        Returns
        -------
        bool
            Whether they were added.
        """
        return False

    @abstractmethod
    def factor(self, penalty: float) -> Factor:
        """Factor the sum + penalty; what is not definite for rounding gets more on its diagonal.

        The sum may be overwritten: nothing is to be asked of it afterwards.
        """


@singledispatch
def squares(factor: Factor, mean: Tensor | None, weight: float, device: Device) -> SquareSums:
    """Return the sum over landmarks, each with such a weight.

    Parameters
    ----------
    factor : Factor
        L.
    mean : (m,) tensor or None
        Taken off the features; None for their own mean.
    weight : float
        Of each landmark.
    device : Device
        Where everything lies.
    """
    raise TypeError(f"no sums of squares of a {type(factor).__name__}")


# --- squares -------------------------------------------------------------------------------------


class _Dense(SquareSums):
    def __init__(self, matrix: Tensor, landmarks: DeviceFactor, device: Device) -> None:
        self._matrix, self._landmarks, self._device = matrix, landmarks, device

    def add(self, G: Tensor) -> None:
        _add_square(self._matrix, G)

    def add_mixed(self, points: Iterator[Tensor], count: int, penalty: float) -> bool:
        m = len(self._matrix)
        if not self._device.has_room(_MIXED * 8.0 * m * m):
            return False
        panels: Any = in_panels(self._landmarks)
        first = next(points)
        largest = float(first.square().sum(dim=1).amax()) * count / first.shape[1]
        # sums of products are off by their rounding, and this by what L^-1 makes of it
        if not _EPS * largest * _inverse_size(panels, m, self._device) < _LATE * penalty:
            return False
        raw = torch.zeros_like(self._matrix)
        for B in chain([first], points):
            _add_square(raw, B)
        raw = panels.half(raw.tril_().add_(raw.tril(-1).T))
        self._matrix += panels.half(raw.T)
        return True

    def factor(self, penalty: float) -> Factor:
        matrix = self._matrix
        floor = len(matrix) * _EPS * float(matrix.trace())
        added, shift = 0.0, penalty
        while math.isfinite(shift):
            matrix.diagonal().add_(shift - added)
            added = shift
            L, info = self._device.once(
                lambda: factored(matrix),
                8.0 * matrix.numel(),
                f"the factor of features at {len(matrix)} landmarks",
            )
            if info == 0:
                return DeviceFactor(L, self._device)
            shift = max(10 * shift, floor, _TINY)
        # of numbers that are none
        return DeviceFactor(matrix.fill_(torch.nan), self._device)


@squares.register
def _(factor: DeviceFactor, mean: Tensor | None, weight: float, device: Device) -> SquareSums:
    L = factor.tensor
    G = (L - (L.mean(dim=0) if mean is None else mean)) * weight**0.5
    total = _Dense(torch.zeros_like(G), factor, device)
    total.add(G.T)
    return total


def _add_square(matrix: Tensor, G: Tensor) -> None:
    """Add G G' on and below the diagonal, all that a factor reads."""
    for part in parts(len(G), _STRIP):
        matrix[part, : part.stop].addmm_(G[part], G[: part.stop].T)


def _inverse_size(factor: Factor, m: int, device: Device) -> float:
    """Estimate the norm of (L L')^-1 by the power method, and double it."""
    start = np.random.default_rng(0).standard_normal((m, 1))
    v, size = device.put(start), 0.0
    for _ in range(_POWERS):
        v = factor.solve_there(v / torch.linalg.vector_norm(v))
        size = float(torch.linalg.vector_norm(v))
        if not 0 < size < math.inf:
            return math.inf
    return _SURE * size


# --- triangles -----------------------------------------------------------------------------------


class _Packed(SquareSums):
    """A sum whose lower triangle alone is held."""

    def __init__(self, panels: list[Tensor], like: PackedFactor, device: Device) -> None:
        self._panels, self._parts, self._size = panels, like.parts, like.size
        self._device = device

    def add(self, G: Tensor) -> None:
        for part, panel in zip(self._parts, self._panels, strict=True):
            panel.addmm_(G[part.start :], G[part].T)

    def factor(self, penalty: float) -> Factor:
        # a triangle that was factored where it lies cannot be tried again: the floor is there first
        trace = sum(float(panel.diagonal().sum()) for panel in self._panels)
        shift = max(penalty, self._size * _EPS * trace, _TINY)
        for panel in self._panels:
            panel.diagonal().add_(shift)
        each = dict(zip((part.start for part in self._parts), self._panels, strict=True))
        found = packed_cholesky(self._size, lambda part: each[part.start], self._device)
        if found is None:  # of numbers that are none
            return PackedFactor([panel.fill_(torch.nan) for panel in self._panels], self._device)
        return found


@squares.register
def _(factor: PackedFactor, mean: Tensor | None, weight: float, device: Device) -> SquareSums:
    """Form L'L less the mean, panel by panel."""
    sums = torch.cat([panel.sum(dim=0) for panel in factor.panels])  # L'1
    centre = sums / factor.size if mean is None else mean
    panels = []
    for part, panel in zip(factor.parts, factor.panels, strict=True):
        mine = torch.empty_like(panel)
        for other, rows in zip(factor.parts, factor.panels, strict=True):
            if other.start < part.start:
                continue
            low = slice(other.start - part.start, other.stop - part.start)
            torch.mm(rows.T, panel[low.start :], out=mine[low])
        few = torch.stack([sums[part], centre[part], centre[part]], dim=1)
        all_rows = slice(part.start, None)
        left = torch.stack(
            [-centre[all_rows], -sums[all_rows], factor.size * centre[all_rows]], dim=1
        )
        mine.addmm_(left, few.T).mul_(weight)
        panels.append(mine)
        float(mine[0, 0])  # waits, so that Ctrl-C and time limits hold between panels
        deadline.check()
    return _Packed(panels, factor, device)
