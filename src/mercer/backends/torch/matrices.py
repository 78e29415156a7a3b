"""Stored matrices that are sent to a device: products and Cholesky factors."""

from __future__ import annotations

from typing import TypeAlias
from weakref import ref

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.contract import RowParts
from mercer.backends.lapack import interruptible
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.pairs import into_float32_range
from mercer.resources import MemoryBudgetError, format_bytes

Tensor: TypeAlias = torch.Tensor

_FLOAT32_COLUMNS = 1 << 14  # whose products float32 adds up before float64 takes over
_KEPT: dict[tuple[int, str], tuple[ref[Array], Tensor]] = {}


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

    held = kept_on_device(K, device)

    def multiply(entries: int) -> Array:
        out = device.empty((len(K), right.shape[1]), torch.float64)
        for part in parts(len(K), entries // max(1, len(K))):
            block = device.put(K[part]) if held is None else held[part]
            for across in parts(len(K), _FLOAT32_COLUMNS if K.dtype == np.float32 else len(K)):
                product = block[:, across] @ right[across]
                out[part] = product if across.start == 0 else out[part] + product
        return to_host(out * scales)

    return device.in_blocks(multiply, f"a block of a matrix of {len(K)} rows")


def kept_on_device(K: Array, device: Device) -> Tensor | None:
    """Return the copy of a matrix on the card, made once for one that nobody may write to.

    It is let go together with the matrix on the host. None on the CPU, for a matrix that may still
    change, and where the card has no room.
    """
    if not device.is_card or K.flags.writeable or K.base is not None:
        return None
    known = _KEPT.get((id(K), device.name))
    if known is not None and known[0]() is K:
        return known[1]
    if not device.has_room(K.nbytes):
        return None
    key = id(K), device.name
    try:
        copy = device.put(K)
    except torch.cuda.OutOfMemoryError:
        return None
    _KEPT[key] = ref(K, lambda _: _KEPT.pop(key, None)), copy
    return copy


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
