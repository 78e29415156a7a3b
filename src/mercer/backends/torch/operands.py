"""The rows that a leaf compares, on the device; or on the host, and sent there block by block."""

from __future__ import annotations

import math
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array, Index, Points
from mercer.backends.lowering.inputs import operand
from mercer.backends.torch.device import Device
from mercer.backends.torch.symmetric.whole_numbers import WholeNumbers, whole_numbers
from mercer.card_rows import CardRows
from mercer.expression import SqDist, Statistic
from mercer.places import current_place
from mercer.points import is_sparse, to_dense

Tensor: TypeAlias = torch.Tensor


class Rows:
    """Rows about a centre, as float64 blocks on the device.

    Dense rows stay on the device where it has room for them. Sparse rows, and those that are too
    many, stay on the host: the blocks that are looked at are written out and sent.

    Parameters
    ----------
    rows : (n, d) array or CSR array
        The rows.
    centre : (d,) array or None
        Subtracted in float64, from dense rows.
    device : Device
        Where blocks are wanted.

    Attributes
    ----------
    centre : (d,) float64 tensor or None
        What is subtracted, on the device.
    """

    def __init__(self, rows: Points, centre: Array | None, device: Device) -> None:
        self.shape: tuple[int, int] = rows.shape
        self._device = device
        self.centre = None if centre is None else device.put(centre, np.float64)
        self._rows: Any = rows
        if isinstance(rows, CardRows):
            self._rows = rows.tensor
        elif not is_sparse(rows) and device.has_room(rows.nbytes):
            self._rows = device.put(rows)

    @property
    def is_resident(self) -> bool:
        """Whether all rows are on the device."""
        return bool(torch.is_tensor(self._rows))

    @cached_property
    def largest(self) -> float:
        """The largest magnitude of an entry, about the centre."""
        return float(self.block(slice(None)).abs().amax()) if math.prod(self.shape) else 0.0

    @cached_property
    def whole(self) -> WholeNumbers | None:
        """The rows as whole numbers, where they are on the device and are such numbers."""
        try:
            return whole_numbers(self._rows) if self.is_resident else None
        except torch.cuda.OutOfMemoryError:  # looking at all of them takes some copies
            torch.cuda.empty_cache()
            return None

    def taken(self, index: Tensor) -> Rows:
        """Return some rows about the same centre, copied on the device."""
        other = copy(self)
        other.__dict__.pop("whole", None)
        other._rows, other.shape = self._rows[index], (len(index), self.shape[1])
        return other

    def block(self, index: Index, *, about: bool = True) -> Tensor:
        """Return some rows, by a slice or by numbers; about the centre, or as they are."""
        rows = self._rows[index]
        if not torch.is_tensor(rows):
            rows = self._device.put(to_dense(rows))
        rows = rows.to(torch.float64)
        return rows - self.centre if about and self.centre is not None else rows


class Operands(NamedTuple):
    """What one leaf compares."""

    leaf: Statistic
    rows: Rows
    columns: Rows


def bind(leaf: Statistic, X: Points, Y: Points | None, device: Device) -> Operands:
    """Send both sides of a leaf to the device; distances are taken about the mean of the columns.

    Parameters
    ----------
    leaf : Statistic
        What is compared.
    X, Y : Points
        Rows and columns; Y is None when it is X.
    device : Device
        Where to.
    """
    rows = operand(leaf, X)
    columns = rows if Y is None else operand(leaf, Y)
    if rows.shape[1] != columns.shape[1]:
        raise ValueError(f"X has {rows.shape[1]} features, Y has {columns.shape[1]}")
    centred = isinstance(leaf, SqDist) and not (is_sparse(rows) or is_sparse(columns))
    if Y is None:
        bound = Rows(rows, _centre(columns) if centred else None, device)
        return Operands(leaf, bound, bound)
    centre, there = _columns(columns, centred, device)
    return Operands(leaf, Rows(rows, centre, device), there)


def _centre(columns: Array) -> Array | None:
    if not columns.shape[0]:
        return None
    with np.errstate(all="ignore"):
        centre = columns.mean(axis=0, dtype=np.float64)
    return np.where(np.isfinite(centre), centre, 0.0)


def _columns(columns: Points, centred: bool, device: Device) -> tuple[Array | None, Rows]:
    """Return the centre, and columns about it; those of a machine that was moved here stay."""
    place = current_place()
    stays = place is not None and isinstance(columns, np.ndarray)
    if place is not None and stays:
        found: tuple[Array | None, Rows] | None = place.known(columns, (centred, device))
        if found is not None:
            return found
    centre = _centre(columns) if centred else None
    there = Rows(columns, centre, device)
    if place is not None and stays and there.is_resident:
        place.keep(columns, (centred, device), (centre, there))
    return centre, there


def plain_index(index: Index, n: int) -> Index:
    """Return a slice of step 1, or row numbers counted from the front."""
    if isinstance(index, slice):
        begin, end, step = index.indices(n)
        if step == 1:
            return slice(begin, max(begin, end))
        return np.arange(begin, end, step)
    numbers = np.asarray(index)
    numbers = np.flatnonzero(numbers) if numbers.dtype == bool else numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + n, numbers)


def within(index: Index, part: slice) -> Index:
    """Return some of the rows that a plain index names."""
    if isinstance(index, slice):
        return slice(index.start + part.start, index.start + part.stop)
    return index[part]
