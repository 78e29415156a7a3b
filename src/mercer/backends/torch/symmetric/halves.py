"""Products with a symmetric matrix whose upper half alone is evaluated, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from mercer.backends.torch.device import parts

Tensor: TypeAlias = torch.Tensor
Evaluate: TypeAlias = Callable[[slice, slice], Tensor]


def product_by_halves(evaluate: Evaluate, right: Tensor, width: int, height: int) -> Tensor:
    """Return K right in float64: entries above the diagonal count for both sides of it.

    Parameters
    ----------
    evaluate : callable
        Returns the block of some rows and columns, in float64.
    right : (n, k) float64 tensor
        What K is multiplied by.
    width, height : int
        Of a block, at most.
    """
    n, out = len(right), torch.zeros_like(right)
    for part in parts(n, height):
        for some in parts(n - part.start, width):
            across = slice(part.start + some.start, part.start + some.stop)
            block = evaluate(part, across)
            out[part] += block @ right[across]
            beyond = slice(max(across.start, part.stop), across.stop)
            if beyond.start < beyond.stop:
                out[beyond] += block[:, beyond.start - across.start :].T @ right[part]
    return out
