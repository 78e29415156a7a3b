"""Arrays with one long side that stay on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.long_arrays import LongArrays
from mercer.backends.torch.device import Device, full_float32, to_host


@dataclass(frozen=True)
class DeviceArrays(LongArrays):
    """float64 tensors.

    Attributes
    ----------
    device : Device
        Where they lie.
    """

    device: Device

    def empty(self, rows: int, n: int) -> Any:
        """Take memory of the device."""
        return self.device.empty((rows, n), torch.float64)

    def has_room(self, size: float) -> bool:
        """Ask the device."""
        return self.device.has_room(size)

    def put(self, A: Any) -> Any:
        """Copy a tensor there, or send an array."""
        if torch.is_tensor(A):
            return A.to(torch.float64, copy=True)
        return self.device.put(np.array(A, dtype=np.float64))

    def lent(self, A: Array) -> Any:
        """Send an array."""
        return self.device.put(A, np.float64)

    def numbers(self, index: Array) -> Any:
        """Send numbers."""
        return self.device.put(index, np.int64)

    def get(self, A: Any) -> Array:
        """Bring a tensor."""
        return to_host(A)

    def turned(self, A: Any) -> Any:
        """Write the transpose out."""
        return A.T.contiguous()

    def squared_lengths(self, W: Any) -> Array:
        """Add up there."""
        return to_host(W.square().sum(dim=0))

    def rounded(self, A: Any) -> Any:
        """Round there."""
        return A.to(torch.float32)

    def take_off(self, W: Any, V: Any, out: Any) -> None:
        """Multiply there, float32 with all its bits."""
        with full_float32():
            out -= W @ (W.T @ V.to(W.dtype))
