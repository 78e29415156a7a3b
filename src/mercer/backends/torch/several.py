"""Several cards share a product: each has some of the rows, and all of the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends.long_arrays import Operator
from mercer.backends.torch.device import Device
from mercer.backends.torch.pairs import TorchPairs
from mercer.expression import Expression
from mercer.points import take

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
