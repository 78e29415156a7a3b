"""Rows of features on a device: products there, descents on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.box_programs import FeatureAnswer, FeatureBox
from mercer.backends.contract import Backend, BackendFeatures, GroupAnswer, Groups, Poll
from mercer.backends.reference.kmeans import labelled, partition
from mercer.backends.torch.device import Device, parts, to_host
from mercer.resources import MemoryBudgetError
from mercer.rows.device_arrays import LONG, CardArray
from mercer.rows.device_rows import CardRows
from mercer.rows.points import to_host as in_memory

Tensor: TypeAlias = torch.Tensor
_BLOCK = "a block of features"
_ANGLES = 4  # matrices of a block of rows: angles, their cosines and sines, and rows in float64


class TorchFeatures(BackendFeatures):
    """Dense rows F[index], on the device where it has room for them, else sent block by block.

    Parameters
    ----------
    F : (N, d) float64 array or CardRows
        The features of all points; those that lie on the device are worked with there.
    index : (n,) int array, optional
        Which of them, repeats allowed.
    device : Device
        Where products are made.
    host : Backend
        Runs the loops that walk over single variables.
    """

    def __init__(
        self, F: Array | CardRows, index: Array | None, device: Device, host: Backend
    ) -> None:
        self.shape = (len(F) if index is None else len(index), F.shape[1])
        self._F, self._index, self._device, self._host = F, index, device, host
        self._stays = isinstance(F, CardRows) and self.shape[0] >= LONG
        self._there: Tensor | None = None
        self._numbers: Tensor | None = None  # of rows among those that are there
        if isinstance(F, CardRows):
            self._there = F.tensor
            self._numbers = None if index is None else self._sent(index, np.int64)
        elif device.has_room(8.0 * self.shape[0] * self.shape[1]):
            self._there = device.put(F if index is None else F[index], np.float64)

    def matvec(self, w: Array) -> Array:
        """Multiply on the device."""
        return self._gathered(self._device.put(w, np.float64))

    def rmatvec(self, x: Array) -> Array:
        """Multiply on the device."""
        return to_host(self._pulled(self._sent(x)))

    def placed(self, x: Any) -> Any:
        """Put it beside features that lie there, unless so few numbers are the host's."""
        return CardArray.beside(self._there, x) if self._stays else in_memory(x)

    def values(self, w: Array) -> Any:
        """Multiply on the device; many values stay there."""
        found = self._multiplied(self._device.put(w, np.float64))
        return CardArray(found) if self._stays else to_host(found)

    def _sent(self, x: Any, dtype: Any = np.float64) -> Tensor:
        """Return a vector there."""
        return x.tensor if isinstance(x, CardArray) else self._device.put(x, dtype)

    def gram(self, weights: Array, centre: Array, group: Array, groups: int) -> Array:
        """Add up blocks."""
        w, c = self._sent(weights), self._device.put(centre, np.float64)
        every = torch.arange(groups, device=self._device.name)
        member = (self._sent(group, group.dtype)[:, None] == every).to(torch.float64)

        def add_up(entries: int) -> Array:
            out = w.new_zeros((self.shape[1] + groups,) * 2)
            for part in parts(self.shape[0], entries // max(1, self.shape[1])):
                A = torch.cat([self.rows(part) - c, member[part]], dim=1)
                out += A.T @ (w[part, None] * A)
            return to_host(out)

        return self._device.in_blocks(add_up, _BLOCK, float(np.prod(self.shape)))

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the steps of the reference on F F', of which only what is asked for is multiplied."""
        rows = self._F if self._index is None else self._F[self._index]
        return partition(_FeatureProducts(self), labelled(groups, rows), poll)

    def descend(
        self, box: FeatureBox, tol: float, max_epochs: int, poll: Poll | None
    ) -> FeatureAnswer:
        """Walk on the host."""
        F = in_memory(self._F)
        return self._host.features(F, self._index).descend(box, tol, max_epochs, poll)

    def rows(self, index: Any) -> Tensor:
        """Return some rows, on the device."""
        if self._there is not None:
            return self._there[index if self._numbers is None else self._numbers[index]]
        return self._device.put(self._F[index if self._index is None else self._index[index]])

    def multiply(self, V: Array) -> Array:
        """Return F F' V."""
        return self._gathered(self._pulled(self._device.put(V, np.float64)))

    def _gathered(self, right: Tensor) -> Array:
        """Return F right."""
        return to_host(self._multiplied(right))

    def _multiplied(self, right: Tensor) -> Tensor:
        """Return F right, on the device."""

        def multiply(entries: int) -> Tensor:
            out = self._device.empty((self.shape[0], *right.shape[1:]), torch.float64)
            for part, block in self._blocks(entries):
                out[part] = block @ right
            return out

        return self._device.in_blocks(multiply, _BLOCK, self._written)

    def _pulled(self, right: Tensor) -> Tensor:
        """Return F'right, on the device."""

        def multiply(entries: int) -> Tensor:
            out = right.new_zeros((self.shape[1], *right.shape[1:]))
            for part, block in self._blocks(entries):
                out += block.T @ right[part]
            return out

        return self._device.in_blocks(multiply, _BLOCK, self._written)

    @property
    def _written(self) -> float:
        """Count the entries that are written before they are multiplied: none where F lies."""
        lies = self._there is not None and self._numbers is None
        return 0.0 if lies else float(np.prod(self.shape))

    def _blocks(self, entries: int) -> Iterator[tuple[slice, Tensor]]:
        height = entries // max(1, self.shape[1]) if self._written else self.shape[0]
        for part in parts(self.shape[0], height):
            yield part, self.rows(part)


def fourier_features(
    X: CardRows, frequencies: Array, amplitude: float, device: Device
) -> CardRows | None:
    """Return amplitude times cosines and sines of X w; None where they have no room.

    Parameters
    ----------
    X : CardRows
        Rows on the device.
    frequencies : (d, m) array
        The columns w.
    amplitude : float
        What they are multiplied by.
    device : Device
        Where.
    """
    n, m = len(X), frequencies.shape[1]
    if not device.has_room(8.0 * n * 2 * m):
        return None
    turned = device.put(frequencies, np.float64)

    def fill(entries: int) -> Tensor:
        F = device.empty((n, 2 * m), torch.float64)
        for part in parts(n, entries // (_ANGLES * max(1, m))):
            angles = X.tensor[part].to(torch.float64) @ turned
            F[part, :m], F[part, m:] = angles.cos(), angles.sin()
            F[part] *= amplitude
        return F

    try:
        return CardRows(device.in_blocks(fill, f"features of {m} frequencies"))
    except (torch.cuda.OutOfMemoryError, MemoryBudgetError):
        return None


class _FeatureProducts:
    """F F' for those who ask for single rows or for products."""

    def __init__(self, features: TorchFeatures) -> None:
        self._features = features

    def __getitem__(self, index: Array) -> Array:
        return np.atleast_2d(self._features._gathered(self._features.rows(index).T).T)

    def __matmul__(self, V: Array) -> Array:
        return self._features.multiply(V)
