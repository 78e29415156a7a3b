"""Whether the compiled core walks over nonzeros or packs rows densely."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.array_types import Points
from mercer.points import is_sparse

_SPARSE_BELOW = 0.2  # density from which walking nonzeros costs more than packed rows
_DENSE_COPY = 1 << 30  # bytes; wider CSR rows stay sparse at any density


def stays_sparse(X: Points, Y: Points | None, dtype: Any) -> bool:
    """Decide between walking nonzeros and packed dense rows, from what each would cost."""
    both = [X] if Y is None else [X, Y]
    if not any(is_sparse(points) for points in both):
        return False
    entries = sum(math.prod(points.shape) for points in both)
    filled = sum(points.nnz if is_sparse(points) else points.size for points in both)
    too_large = entries * np.dtype(dtype).itemsize > _DENSE_COPY
    return bool(too_large or filled < _SPARSE_BELOW * entries)
