"""exp(c0 x + c1) of a float64 block in one pass over it: plain torch takes two, and one to round.

Most kernels end so, and blocks of float64 are larger than what a card keeps near: passes over them
take the time.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton

from mercer.backends.torch.fusing.launch import compiled

Tensor: TypeAlias = torch.Tensor

_PART = 1024  # entries of a program
_EXPONENTIAL = """
@triton.jit
def kernel(n, X, C, OUT, PART: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * PART + tl.arange(0, PART)
    x = tl.load(X + at, mask=at < n, other=0.0)
    found = tl.exp(tl.load(C) * x + tl.load(C + 1))
    tl.store(OUT + at, found.to(OUT.dtype.element_ty), mask=at < n)
"""


def exponential(x: Tensor, factor: float, summand: float, dtype: torch.dtype) -> Tensor:
    """Return exp(factor x + summand) of a contiguous float64 tensor, in some type."""
    out = torch.empty_like(x, dtype=dtype)
    # numbers that a kernel is called with are float32 to Triton
    constants = torch.tensor([factor, summand], dtype=torch.float64, device=x.device)
    grid = (triton.cdiv(x.numel(), _PART),)
    with torch.cuda.device_of(x):  # Triton launches on the current one
        compiled(_EXPONENTIAL)[grid](x.numel(), x, constants, out, PART=_PART)
    return out
