"""Sums of squares G'G + penalty of features at landmarks, and their factors.

The features of the landmarks themselves are the rows of L, of k(z, z) = L L'; those of other points
are added block by block. Such a sum preconditions the equations of all points.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import singledispatch
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.backends.stored import Factor
from mercer.backends.torch.device import Device, parts
from mercer.backends.torch.device_matrix import DeviceFactor, factored
from mercer.backends.torch.factors.packed import PackedFactor, in_panels, packed_cholesky

Tensor: TypeAlias = torch.Tensor
_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
_STRIP = 2048  # rows of a square at a time: high enough for full speed
_LATE = 1e-3  # of the penalty: what may be lost where points are mixed after their products
_POWERS, _SURE = 4, 2.0  # steps of the power method, and what its result is multiplied by
_MIXED = 4  # squares: before and after they are mixed, and what solving takes


class Squares(ABC):
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
def squares(factor: Factor, mean: Tensor | None, weight: float, device: Device) -> Squares:
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


class _Dense(Squares):
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
def _(factor: DeviceFactor, mean: Tensor | None, weight: float, device: Device) -> Squares:
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


class _Packed(Squares):
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
def _(factor: PackedFactor, mean: Tensor | None, weight: float, device: Device) -> Squares:
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
