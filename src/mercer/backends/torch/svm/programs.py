"""Box QPs in device memory, and launches of their compiled kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.box_programs import Box, BoxAnswer
from mercer.backends.torch.device import to_host
from mercer.rows.staging import send

# --- programmes ----------------------------------------------------------------------------------
#
# Box programmes side by side in the memory of a device.

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, eq=False)
class DeviceQPs:
    """All programmes, their variables one after another.

    Attributes
    ----------
    sizes : list of int
        Variables of each.
    begin : (programmes + 1,) int32 tensor
        Number of the first variable of each.
    rows : int32 tensor
        The row of K of each variable.
    lower, upper, b, F : float64 tensors
        Bounds, coefficients and gradient of each variable.
    epsilon, shift : float64 tensors or None
        As in `Box`; None where all are zero.
    sums : int32 tensor or None
        Which of two sums each variable is in; None where a programme has one.
    matrix : sequence of int or None
        Number of the matrix that each programme reads; None where there is one.
    """

    sizes: Sequence[int]
    begin: Tensor
    rows: Tensor
    lower: Tensor
    upper: Tensor
    b: Tensor
    F: Tensor
    epsilon: Tensor | None = None
    shift: Tensor | None = None
    sums: Tensor | None = None
    matrix: Sequence[int] | None = None

    def sides(self, own: slice) -> tuple[Tensor, Tensor]:
        """Return both sides of the optimality conditions of some variables.

        They are infinite for what cannot move that way.
        """
        b, F = self.b[own], self.F[own]
        epsilon = torch.zeros_like(b) if self.epsilon is None else self.epsilon[own]
        rising = F + torch.where(b < 0, epsilon, -epsilon)
        falling = F + torch.where(b > 0, -epsilon, epsilon)
        rising = torch.where(b < self.upper[own], rising, -torch.inf)
        return rising, torch.where(b > self.lower[own], falling, torch.inf)

    def answers(self, steps: Array, violations: Array) -> list[BoxAnswer]:
        """Bring everything to the host; what is not finite has no violation."""
        ends = np.cumsum(self.sizes)[:-1]
        b, F = (np.split(to_host(x), ends) for x in (self.b, self.F))
        known = [v if np.isfinite(f).all() else np.nan for v, f in zip(violations, F, strict=True)]
        return [
            BoxAnswer(b[p], F[p], int(steps[p]), float(known[p])) for p in range(len(self.sizes))
        ]


def multipliers(rising: Tensor, falling: Tensor) -> Tensor:
    """Return what `boxes.multiplier` does, for rows."""
    top, bottom = rising.amax(dim=1), falling.amin(dim=1)
    free = rising == falling
    count = free.sum(dim=1)
    mean = torch.where(free, rising, 0.0).sum(dim=1) / count.clamp(min=1)
    within = mean.clamp(torch.minimum(top, bottom), torch.maximum(top, bottom))
    ends = torch.stack([top, bottom])
    finite = ends.isfinite()
    middle = torch.where(finite, ends, 0.0).sum(dim=0) / finite.sum(dim=0).clamp(min=1)
    return torch.where(count > 0, within, middle)


def on_device(K: Tensor, boxes: Sequence[Box]) -> DeviceQPs:
    """Send programmes to where K is.

    Parameters
    ----------
    K : (n, n) tensor
        The matrix.
    boxes : sequence of Box
        The programmes.
    """
    sizes = [len(box.gradient) for box in boxes]

    def put(arrays: Sequence[Array], dtype: Any = np.float64) -> Tensor:
        joined = np.concatenate(arrays, dtype=dtype, casting="unsafe")
        return send(torch.from_numpy(joined), str(K.device))

    def optional(arrays: Sequence[Array | None], dtype: Any = np.float64) -> Tensor | None:
        if all(array is None for array in arrays):
            return None
        pairs = zip(arrays, sizes, strict=True)
        return put([np.zeros(m) if array is None else array for array, m in pairs], dtype)

    def starts() -> Tensor:
        if not any(box.start.any() for box in boxes):  # most begin at zero
            return torch.zeros(sum(sizes), dtype=torch.float64, device=K.device)
        return put([box.start for box in boxes])

    every = np.arange(len(K))
    return DeviceQPs(
        sizes,
        put([np.zeros(1), np.cumsum(sizes)], np.int32),
        put([every if box.rows is None else box.rows for box in boxes], np.int32),
        put([box.lower for box in boxes]),
        put([box.upper for box in boxes]),
        starts(),
        put([box.gradient for box in boxes]),
        optional([box.epsilon for box in boxes]),
        optional([box.shift for box in boxes]),
        optional([box.group for box in boxes], np.int32),
    )


# --- launches ------------------------------------------------------------------------------------
#
# Starting a kernel that NVRTC compiled, with arguments that are written down once.
#
# Torch looks at every argument of every launch, which takes longer than most rounds on the card.

Size: TypeAlias = tuple[int, int, int]
Start: TypeAlias = Callable[[Size], None]

_KINDS = {int: ctypes.c_int, float: ctypes.c_double}


def prepared(kernel: Any, arguments: Sequence[Any], threads: int, shared: int = 0) -> Start:
    """Return what starts a kernel on the stream that is current now; it is told the grid.

    Parameters
    ----------
    kernel : object
        As `torch.cuda._compile_kernel` returns it.
    arguments : sequence of Tensor, int and float
        Whoever holds what is returned holds the tensors.
    threads : int
        Of a block.
    shared : int
        Bytes of shared memory of a block that are not in the text.
    """
    driver, handle, block = _driver(), getattr(kernel, "func", None), (threads, 1, 1)
    if driver is None or handle is None:
        return lambda grid: kernel(grid=grid, block=block, args=list(arguments), shared_mem=shared)
    values: list[Any] = [
        ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else _KINDS[type(one)](one)
        for one in arguments
    ]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    # asked once: torch takes 20 microseconds to say which it is, a third of a round on the card
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def start(grid: Size) -> None:
        code = driver.cuLaunchKernel(handle, *grid, *block, shared, stream, pointers, None)
        if code:
            raise RuntimeError(f"a kernel could not be launched: CUDA error {code}")

    start.held = values, arguments  # type: ignore[attr-defined]  # as long as the function is
    return start


@cache
def _driver() -> Any:
    """Return the library of the driver; None where it has another name."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
