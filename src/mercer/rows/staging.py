"""Copies of large arrays between host memory and a GPU, through pinned memory.

Plain memory is copied by one core before it travels: 4 to 9 GB/s to a card, 2 to 3 GB/s into
memory that was not used yet. Here all cores copy one stage while others travel. Sending 376 MB to
an H200 took 13 ms, and 42 to 63 ms without.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import torch

_STAGED = 1 << 22  # bytes from which arrays go in stages
_STAGE = 1 << 24  # bytes of a stage: pinned in a few milliseconds, copied in one
_STAGES = 4  # of them at a time: one is written while others travel
_STAGING = Lock()  # one array after the other


def send(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """Return a contiguous tensor of the processor on a card."""
    if tensor.nbytes < _STAGED or not device.startswith("cuda"):
        return tensor.to(device)
    there = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
    source, target = _bytes(tensor), _bytes(there)
    with _STAGING, torch.cuda.device(device):
        free: list[Any] = [None] * _STAGES
        for number, part in enumerate(_parts(len(source))):
            slot = number % _STAGES
            stage = _stages()[slot][: len(source[part])]
            if free[slot] is not None:
                free[slot].synchronize()
            stage.copy_(source[part])
            target[part].copy_(stage, non_blocking=True)
            free[slot] = _noted()
        torch.cuda.current_stream().synchronize()  # stages are the next array's
    return there


def bring(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a card in the memory of the processor."""
    if tensor.nbytes < _STAGED or not tensor.is_cuda:
        return tensor.cpu()
    # memory of NumPy's, which asks for large pages: they are given hundreds of times as fast
    here = torch.from_numpy(np.empty(tensor.nbytes, dtype=np.uint8)).view(tensor.dtype)
    here = here.view(tensor.shape)
    source, target = _bytes(tensor.contiguous()), _bytes(here)
    with _STAGING, torch.cuda.device(tensor.device):
        coming: list[tuple[slice, torch.Tensor, Any]] = []
        for number, part in enumerate(_parts(len(source))):
            if len(coming) == _STAGES:
                _arrive(target, *coming.pop(0))
            stage = _stages()[number % _STAGES][: len(source[part])]
            stage.copy_(source[part], non_blocking=True)
            coming.append((part, stage, _noted()))
        for one in coming:
            _arrive(target, *one)
    return here


def _arrive(target: torch.Tensor, part: slice, stage: torch.Tensor, event: Any) -> None:
    event.synchronize()
    target[part].copy_(stage)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _parts(count: int) -> list[slice]:
    return [slice(start, min(count, start + _STAGE)) for start in range(0, count, _STAGE)]


def _noted() -> Any:
    event = torch.cuda.Event()
    event.record()
    return event


@cache
def _stages() -> list[torch.Tensor]:
    """Take pinned memory, once: that takes longer than sending what it holds."""
    return [torch.empty(_STAGE, dtype=torch.uint8, pin_memory=True) for _ in range(_STAGES)]
