"""exp(c0 x + c1) of a float64 block in one pass over it: plain torch takes two, and one to round.

Its product with a vector, and the smallest x of each row, are found in the same pass.

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
_COLUMNS = 1024  # that a program of one row looks at together
_WITH_PRODUCT = """
@triton.jit
def kernel(m, X, C, V, VALUES, SMALLEST, PART: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    factor = tl.load(C)
    summand = tl.load(C + 1)
    total = tl.zeros((PART,), tl.float64)
    least = tl.full((PART,), float("inf"), tl.float64)
    for start in range(0, m, PART):
        at = start + tl.arange(0, PART)
        inside = at < m
        x = tl.load(X + i * m + at, mask=inside, other=float("inf"))
        least = tl.minimum(least, x)
        found = tl.exp(factor * x + summand)
        tl.store(X + i * m + at, found, mask=inside)
        v = tl.load(V + at, mask=inside, other=0.0)
        total += tl.where(inside, found * v, 0.0)
    tl.store(VALUES + i, tl.sum(total, axis=0))
    tl.store(SMALLEST + i, tl.min(least, axis=0))
"""


def exponential_times(x: Tensor, factor: float, summand: float, v: Tensor) -> tuple[Tensor, Tensor]:
    """Write K = exp(factor x + summand) over x; return K v and the smallest x of each row.

    Rows with entries that are no number may be told by K v alone.
    """
    constants = _on_device([factor, summand], x)
    values, smallest = x.new_empty((2, len(x)))
    with torch.cuda.device_of(x):
        compiled(_WITH_PRODUCT)[(len(x),)](
            x.shape[1], x, constants, v.contiguous(), values, smallest, PART=_COLUMNS
        )
    return values, smallest


def exponential(x: Tensor, factor: float, summand: float, dtype: torch.dtype) -> Tensor:
    """Return exp(factor x + summand) of a contiguous float64 tensor, in some type."""
    out = torch.empty_like(x, dtype=dtype)
    # numbers that a kernel is called with are float32 to Triton
    constants = _on_device([factor, summand], x)
    grid = (triton.cdiv(x.numel(), _PART),)
    with torch.cuda.device_of(x):  # Triton launches on the current one
        compiled(_EXPONENTIAL)[grid](x.numel(), x, constants, out, PART=_PART)
    return out


def _on_device(constants: list[float], x: Tensor) -> Tensor:
    """Write constants where a tensor is: numbers that are sent wait for all that was begun."""
    return torch.cat([torch.full((1,), c, dtype=torch.float64, device=x.device) for c in constants])
