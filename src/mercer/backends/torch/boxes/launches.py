"""Starting a kernel that NVRTC compiled, with arguments that are written down once.

Torch looks at every argument of every launch, which takes longer than most rounds on the card.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import torch

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
