"""Stored matrices that are sent to a device: products and Cholesky factors."""

from __future__ import annotations

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.contract import RowParts
from mercer.backends.lapack import interruptible
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.pairs import into_float32_range
from mercer.resources import MemoryBudgetError, format_bytes

Tensor = torch.Tensor


def symmetric_product(K: Array, V: Array, rows: RowParts | None, device: Device) -> Array:
    """Return K V for a symmetric K on the host; see `Backend.symmetric_product`."""
    if rows is not None:
        sizes = np.diff(rows.ends, prepend=0)
        read = np.where(np.repeat(rows.reads, sizes, axis=0), V, 0.0)
        product = symmetric_product(K, read, None, device)
        return np.where(np.repeat(rows.writes, sizes, axis=0), product, 0.0)
    right = device.put(V, np.float64)
    scales = torch.ones(right.shape[1], dtype=torch.float64, device=right.device)
    if K.dtype == np.float32:
        right, scales = into_float32_range(right)

    def multiply(entries: int) -> Array:
        out = device.empty((len(K), right.shape[1]), torch.float64)
        for part in parts(len(K), entries // max(1, len(K))):
            out[part] = device.put(K[part]) @ right
        return to_host(out * scales)

    return device.in_blocks(multiply, f"a block of a matrix of {len(K)} rows")


def cholesky(A: Array, device: Device) -> int:
    """Factor A = L L' in place; see `Backend.cholesky`."""
    if device.is_card and not device.has_room(2.0 * A.nbytes):  # of a half: L beside A
        raise MemoryBudgetError(
            f"the Cholesky factor of {len(A)} rows needs {format_bytes(2.0 * A.nbytes)} on the "
            f"device {device.name!r}, where {format_bytes(device.free())} are free. Use "
            "solver=ConjugateGradient(), which stores no matrix, or backend='native'."
        )

    def factor(matrix: Array) -> tuple[Tensor, int]:
        L, info = torch.linalg.cholesky_ex(device.put(matrix))
        return L, int(info)

    L, info = interruptible(factor, A)
    if info == 0 and bool(L.diagonal().isfinite().all()):
        for part in parts(len(A), max(1, (1 << 24) // max(1, len(A)))):
            rows = to_host(L[part, : part.stop])
            A[part, : part.start] = rows[:, : part.start]
            lower = np.tri(len(rows), dtype=bool)
            np.copyto(A[part, part], rows[:, part.start :], where=lower)
        return 0
    return int(info) or 1 + int(np.argmin(np.isfinite(to_host(L.diagonal()))))
