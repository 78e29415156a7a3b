"""Matrices of the host that are sent to a device: products, factors, eigenvectors."""

from __future__ import annotations

from typing import TypeAlias
from weakref import ref

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.contract import Band, RowParts
from mercer.backends.lapack import interruptible
from mercer.backends.stored import Factor
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.device_matrix import DeviceFactor, factored, multiply, require_room

Tensor: TypeAlias = torch.Tensor

_KEPT: dict[tuple[int, str], tuple[ref[Array], Tensor]] = {}


def symmetric_product(K: Array, V: Array, rows: RowParts | None, device: Device) -> Array:
    """Return K V for a symmetric K on the host; see `Backend.symmetric_product`."""
    if rows is not None:
        sizes = np.diff(rows.ends, prepend=0)
        read = np.where(np.repeat(rows.reads, sizes, axis=0), V, 0.0)
        product = symmetric_product(K, read, None, device)
        return np.where(np.repeat(rows.writes, sizes, axis=0), product, 0.0)
    held = kept_on_device(K, device)
    if held is not None:
        return multiply(held, V, device)

    def in_blocks(entries: int) -> Array:
        out = np.empty((len(K), V.shape[1]))
        for part in parts(len(K), entries // max(1, len(K))):
            out[part] = multiply(device.put(K[part]), V, device)
        return out

    return device.in_blocks(in_blocks, f"a block of a matrix of {len(K)} rows")


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
    require_room(device, len(A))
    L, info = factored(device.put(A), overwrite=device.is_card)
    if info == 0:
        for part in parts(len(A), max(1, (1 << 24) // max(1, len(A)))):
            rows = to_host(L[part, : part.stop])
            A[part, : part.start] = rows[:, : part.start]
            lower = np.tri(len(rows), dtype=bool)
            np.copyto(A[part, part], rows[:, part.start :], where=lower)
    return info


def cholesky_factor(A: Array, device: Device) -> Factor | None:
    """Factor A = L L', L kept on the device; see `Backend.cholesky_factor`."""
    require_room(device, len(A))
    L, info = factored(device.put(A), overwrite=device.is_card)
    return None if info else DeviceFactor(L, device)


def solve_with_determinant(C: Array, right: Array, device: Device) -> tuple[Array, float, float]:
    """Solve by an LU decomposition; see `Backend.solve_with_determinant`."""
    require_room(device, len(C), 3, "the LU decomposition")

    def decompose(matrix: Array) -> tuple[Array, float, float]:
        LU, pivots, info = torch.linalg.lu_factor_ex(device.put(matrix, np.float64))
        found = LU.diagonal()
        exchanged = pivots != torch.arange(1, len(matrix) + 1, device=LU.device)
        negative = int((found < 0).sum()) + int(exchanged.sum())
        logarithm = float(found.abs().log().sum())
        if int(info) or not np.isfinite(logarithm):
            return np.full(right.shape, np.nan), 0.0, -np.inf
        solved = torch.linalg.lu_solve(LU, pivots, device.put(right, np.float64))
        return to_host(solved), -1.0 if negative % 2 else 1.0, logarithm

    solved, sign, logarithm = interruptible(decompose, C)
    return solved, sign, logarithm


def eigh(A: Array, device: Device) -> tuple[Array, Array]:
    """Decompose a symmetric matrix; see `Backend.eigh`."""
    require_room(device, len(A), 5, "the eigendecomposition")

    def decompose(matrix: Array) -> tuple[Array, Array]:
        values, vectors = torch.linalg.eigh(device.put(matrix, np.float64))
        return to_host(values), to_host(vectors)

    try:
        values, vectors = interruptible(decompose, A)
    except torch.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(str(error)) from error
    return values, vectors


# --- bands: on a card the narrowest band, of half-width 0, is found by `eigh` --------------------


def band_reduce(A: Array, width: int, device: Device) -> Band:
    """Return A = Q B Q' with B diagonal; see `Backend.band_reduce`."""
    values, vectors = eigh(A, device)
    lower = np.zeros((len(A), width + 1))
    lower[:, 0] = values
    Qt = np.ascontiguousarray(vectors.T)
    Qt.setflags(write=False)  # so that it may stay on the card
    return Band(Qt, lower, width)


def band_inverse_diagonals(band: Band, shifts: Array, device: Device) -> Array:
    """Return diag((A + shift)^-1) of such a band; see `Backend.band_inverse_diagonals`."""
    values = band.lower[:, :1] + shifts
    weights = device.put(np.where(values > 0, 1.0 / np.where(values > 0, values, 1.0), np.nan))
    held = kept_on_device(band.Qt, device)

    def add_up(entries: int) -> Array:
        out = device.empty((len(band.Qt), len(shifts)), torch.float64).zero_()
        for part in parts(len(band.Qt), entries // max(1, len(band.Qt))):
            rows = device.put(band.Qt[part]) if held is None else held[part]
            out += rows.square().T @ weights[part]
        return to_host(out.T)

    return device.in_blocks(add_up, f"a block of a matrix of {len(band.Qt)} rows")
