"""Rows at landmarks to 40 bits: a float32 number, and 16 bits behind its own.

The first plane is what steps in float32 read. Both are what residuals read, in a tenth of the time
that it takes to evaluate rows in float64: entries are off by 2^-40 of themselves, which is 2^-16 of
what float32 is off by.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import torch

from mercer.backends.torch.boxes.launches import prepared
from mercer.backends.torch.cuda_texts.compiling import kernel as kernel_of
from mercer.backends.torch.device import Device, parts
from mercer.backends.torch.exact.products import ExactPairs
from mercer.backends.torch.exact.trip_kernel import MOST, THREADS, TRIP, shared_bytes, trip_text
from mercer.resources import MemoryBudgetError

Tensor: TypeAlias = torch.Tensor

_PADDED = 16  # columns that rows are padded to, with zeros: a thread loads four of each plane
_BYTES = 6  # of an entry
_PROCESSORS = 4  # of a device that does not say
_TURNS = 4  # blocks of threads that a multiprocessor has one after the other


class Planes:
    """Rows as two tensors.

    Parameters
    ----------
    high : (n, wide) float32 tensor
        Rows, each followed by zeros.
    low : (n, wide) int16 tensor
        What is to be added to them, in units of 2^-16 of the last place of `high`.
    columns : int
        How many are no padding.
    """

    def __init__(self, high: Tensor, low: Tensor, columns: int) -> None:
        self.high, self.low, self.columns = high, low, columns

    @classmethod
    def of(cls, pairs: ExactPairs | None, device: Device) -> Planes | None:
        """Evaluate all rows; None where they take more than half of what is free."""
        if pairs is None:
            return None
        n, m = (side.shape[0] for side in pairs.operands[1:])
        wide = -(-m // _PADDED) * _PADDED
        if m > MOST or not device.has_room(_BYTES * float(n) * wide):
            return None

        def fill(entries: int) -> Planes:
            high = device.empty((n, wide), torch.float32)
            low = device.empty((n, wide), torch.int16)
            columns = pairs.columns()
            for part in parts(n, entries // pairs.depth.padded):
                pairs.write_planes(pairs.rows(part), columns, high[part], low[part])
            return cls(high, low, m)

        try:
            return device.in_blocks(fill, f"rows at {m} landmarks")
        except (torch.cuda.OutOfMemoryError, MemoryBudgetError):
            return None

    def entries(self, rows: slice) -> Tensor:
        """Return some rows in float64."""
        bits = self.high[rows].double().view(torch.int64) + (self.low[rows].long() << 13)
        return bits.view(torch.float64)[:, : self.columns]

    def round_trip(self, v: Tensor, s: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return K'S (y - K v) and S (y - K v), each row being read once.

        Parameters
        ----------
        v : (m,) float64 tensor
            What rows are multiplied by.
        s, y : (n,) float64 tensors
            The diagonal of S, and what K v is taken off.
        """
        padded, left = torch.nn.functional.pad(v, (0, len(self.high[0]) - self.columns)), s.clone()
        (found,) = self._start(padded, s, y, left, sides=1)
        return found, left

    def pull(self, s: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return K'S y and K's, each row being read once."""
        found, mass = self._start(s, s, y, s, sides=2)
        return found, mass

    def _start(self, v: Tensor, s: Tensor, y: Tensor, left: Tensor, sides: int) -> Tensor:
        n, wide = self.high.shape
        height = _height(n, self.high.device)
        out = y.new_empty((-(-n // height), sides, wide))
        kernel = compiled(wide, sides == 1, str(y.device))
        arguments = [n, height, wide, self.high, self.low, v, s, y, left, out]
        with torch.cuda.device_of(y):
            prepared(kernel, arguments, THREADS, shared_bytes(wide))((len(out), 1, 1))
        return out.sum(dim=0)[:, : self.columns]


def _height(n: int, device: torch.device) -> int:
    """Return the rows of a block of threads: all multiprocessors end together."""
    together = _PROCESSORS
    if device.type == "cuda":
        together = torch.cuda.get_device_properties(device).multi_processor_count
    return max(1, -(-n // (int(together) * _TURNS)))


@cache
def compiled(wide: int, there: bool, card: str) -> Any:
    """Compile the kernel for a card, once."""
    text = trip_text(wide, there)
    return kernel_of(text, TRIP, torch.device(card).index, shared_bytes(wide))
