"""Points at landmarks on a GPU: fused float32 products, and float64 sums over blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array, Points
from mercer.backends.contract import BoundRows, Factor, LandmarkRows
from mercer.backends.torch.device import Device, into_float32_range, parts, to_host
from mercer.backends.torch.exact.products import Planes
from mercer.backends.torch.factors import PackedFactor, SquareSums, in_panels, squares
from mercer.backends.torch.matrices import DeviceFactor, product
from mercer.backends.torch.pairs import TorchPairs
from mercer.expression import Expression
from mercer.resources import MemoryBudgetError
from mercer.rows.device_rows import CardRows

Tensor: TypeAlias = torch.Tensor
_SPAN = 1 << 14  # products that float32 adds up before float64 takes over, as in fused kernels
_PULLED = 1 << 11  # the same for what a descent begins with, which its first residual cannot pass
_PADDED, _ROW = 16, 1 << 14  # what rows are padded to, and the longest that a kernel holds
_LOOKED_AT, _FAR = 1024, (2.0**-30, 2.0**30)  # rows, and what their largest entry may be
_TRIPS = 6  # targets: for more of them, to evaluate rows once takes no longer than to read them
_MATRICES = 3  # of a block of rows: as it is, as features, and weighed


class DeviceRows(BoundRows):
    """Points and landmarks on the card, before weights and targets are known.

    Parameters
    ----------
    expression : Expression
        The kernel.
    X, landmarks : Points
        Rows, and those that they are compared with.
    factor : DeviceFactor or PackedFactor
        Of the kernel between landmarks.
    device : Device
        Where.
    fused : bool
        Whether float32 products run as generated kernels.
    halves : bool
        Whether these are products of 16-bit numbers alone.
    """

    def __init__(
        self,
        expression: Expression,
        X: Points,
        landmarks: Points,
        factor: DeviceFactor | PackedFactor,
        device: Device,
        fused: bool,
        halves: bool = False,
    ) -> None:
        self.device, self.factor, self.half, self._fused = device, factor, factor.half, fused
        self.exact = TorchPairs(expression, X, landmarks, np.float64, device, fused, halves)

    @cached_property
    def quick(self) -> TorchPairs | StoredRows:
        """Rows in float32: stored where the card has room, or evaluated in each pass."""
        pairs = self.exact.rounded()
        if self.planes is not None:
            K = self.planes.high[:, : self.planes.columns]
            return StoredRows(K, self._fused and _can_be_read_once(K))
        return StoredRows.of(pairs, self.device, self._fused) or pairs

    @cached_property
    def planes(self) -> Planes | None:
        """Rows to 40 bits, where the card has room and can make them soon."""
        return Planes.of(self.exact.cores, self.device)

    @cached_property
    def back(self) -> TorchPairs | StoredRows:
        """The transpose of these."""
        return self.quick.transposed()

    @cached_property
    def quick_half(self) -> Callable[..., Tensor]:
        """What steps multiply by the inverse of the factor with: as exact as they need be."""
        found: Any = in_panels(self.factor)
        half: Callable[..., Tensor] = found.half
        return half

    def squared_lengths(self) -> Array:
        """Add up squares of blocks."""
        n, m = self.exact.shape

        def add_up(entries: int) -> Tensor:
            found = torch.empty(n, dtype=torch.float64, device=self.device.name)
            for part in parts(n, entries // (_MATRICES * max(1, m))):
                B = self.exact.block(part, slice(0, m))
                found[part] = self.half(B.T).square_().sum(dim=0)
            return found

        return to_host(self.device.in_blocks(add_up, f"a block of features of {m} landmarks"))

    def features(self) -> CardRows | None:
        """Evaluate and turn blocks; None where all of them take more than half of what is free."""
        n, m = self.exact.shape
        if not self.device.has_room(8.0 * n * m):
            return None

        def fill(entries: int) -> Tensor:
            F = self.device.empty((n, m), torch.float64)
            for part in parts(n, entries // (_MATRICES * max(1, m))):
                F[part] = self.half(self.exact.block(part, slice(0, m)).T).T
            return F

        try:
            return CardRows(self.device.in_blocks(fill, f"features of {m} landmarks"))
        except (torch.cuda.OutOfMemoryError, MemoryBudgetError):
            return None

    def __call__(self, weights: Array, targets: Array, bias: bool) -> DeviceLandmarkRows:
        """Send weights and targets."""
        put = self.device.put
        return DeviceLandmarkRows(
            self, put(weights, np.float64)[:, None], put(targets, np.float64), bias
        )


class StoredRows:
    """Rows at landmarks in float32, which a pass reads: sooner done than to evaluate them.

    Parameters
    ----------
    K : (n, m) or (m, n) float32 tensor
        The rows, or their transpose.
    once : bool
        Whether a kernel may go there and back in one reading of them.
    """

    def __init__(self, K: Tensor, once: bool = False) -> None:
        self._K, self._once = K, once

    @classmethod
    def of(cls, pairs: TorchPairs, device: Device, fused: bool) -> StoredRows | None:
        """Evaluate all rows; None where they take more than half of what is free."""
        n, m = pairs.shape
        wide = -(-m // _PADDED) * _PADDED
        if not device.has_room(4.0 * n * wide):
            return None

        def fill(entries: int) -> Tensor:
            K = device.empty((n, wide), torch.float32)
            K[:, m:] = 0.0
            for part in parts(n, entries // max(1, m)):
                K[part, :m] = pairs.block(part, slice(0, m))
            return K[:, :m]

        try:
            K = device.in_blocks(fill, f"rows at {m} landmarks")
        except (torch.cuda.OutOfMemoryError, MemoryBudgetError):
            return None
        return cls(K, fused and _can_be_read_once(K))

    def transposed(self) -> StoredRows:
        """Return the same numbers, seen from the other side."""
        return StoredRows(self._K.T)

    def times(self, right: Tensor, span: int = _SPAN) -> Tensor:
        """Multiply float64 columns; long sums of float32 products are carried in float64."""
        return product(self._K, right, span)

    def round_trip(self, right: Tensor, s: Tensor, level: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return K'S (K right - level) and the sum of S (K right - level), K being read once.

        Parameters
        ----------
        right : (m, 1) float64 tensor
            What K is multiplied by; None is returned for more columns.
        s : (n,) float32 tensor
            The diagonal of S.
        level : (1,) float64 tensor
            Subtracted.
        """
        if not self._once or right.shape[1] != 1:
            return None
        from mercer.backends.torch.triton.special import round_trip  # noqa: PLC0415  imports Triton

        columns, scales = into_float32_range(right)
        v, scale = columns[:, 0].contiguous(), float(scales)
        found = round_trip(self._K, v, s, float(level) / scale)
        if found is None or not bool(found[0].isfinite().all()):
            self._once = False
            return None
        return found[0][:, None] * scale, found[1][None] * scale


def _can_be_read_once(K: Tensor) -> bool:
    return 0 < K.shape[1] <= _ROW and _squares_are_numbers(K)


def _squares_are_numbers(K: Tensor) -> bool:
    """Return whether products of entries, and sums of these, are far from the ends of float32."""
    largest = float(K[:: max(1, len(K) // _LOOKED_AT)].abs().amax())
    return _FAR[0] < largest < _FAR[1]


class DeviceLandmarkRows(LandmarkRows):
    """See `LandmarkRows`.

    Parameters
    ----------
    rows : DeviceRows
        Points at landmarks.
    weights, targets : tensors
        (n, 1) and (n, t), on the card.
    bias : bool
        Whether means are taken off where a factor is made.
    """

    def __init__(self, rows: DeviceRows, weights: Tensor, targets: Tensor, bias: bool) -> None:
        self._rows, self._s, self._y, self._bias = rows, weights, targets, bias

    def pull(self) -> tuple[Array, Array]:
        """Multiply once, targets and weights side by side."""
        planes, s = self._rows.planes, self._s[:, 0]
        if planes is not None and 0 < self._y.shape[1] <= _TRIPS:
            both = [planes.pull(s, y.contiguous()) for y in self._y.T]
            self.__dict__["_mass"] = both[0][1]
            columns = [pulled for pulled, _ in both]
            found = to_host(self._rows.half(torch.stack([*columns, self._mass], dim=1)))
            return found[:, :-1], found[:, -1]
        right = torch.cat([self._s * self._y, self._s], dim=1)
        back = self._rows.back
        pulled = back.times(right, _PULLED) if isinstance(back, StoredRows) else back.times(right)
        found = to_host(self._rows.half(pulled))
        return found[:, :-1], found[:, -1]

    def product(self, W: Array, level: Array) -> tuple[Array, Array]:
        """Multiply there and back by fused kernels, by one where rows are stored."""
        quick, half, device = self._rows.quick, self._rows.quick_half, self._rows.device
        right = half(device.put(W, np.float64), transposed=True)
        levels = device.put(level, np.float64)
        if isinstance(quick, StoredRows):
            s, scale = self._rounded_weights
            once = quick.round_trip(right, s, levels)
            if once is not None:
                return to_host(half(once[0] * scale)), to_host(once[1] * scale)
        values = quick.times(right)
        weighed = self._s * (values - levels)
        pulled = half(self._rows.back.times(weighed))
        return to_host(pulled), to_host(weighed.sum(dim=0))

    @cached_property
    def _rounded_weights(self) -> tuple[Tensor, Tensor]:
        rounded, scale = into_float32_range(self._s)
        return rounded[:, 0].contiguous(), scale

    @cached_property
    def _mass(self) -> Tensor:
        """K's, of rows to 40 bits."""
        assert self._rows.planes is not None
        return self._rows.planes.pull(self._s[:, 0], self._s[:, 0])[1]

    def residual(self, W: Array, level: Array) -> tuple[Array, Array, Array]:
        """Read rows to 40 bits where they are stored, or evaluate them in float64."""
        targets = self._y + self._rows.device.put(level, np.float64)
        planes = self._rows.planes
        if planes is not None and 0 < targets.shape[1] <= _TRIPS:
            trips = [
                planes.round_trip(v.contiguous(), self._s[:, 0], y.contiguous())
                for v, y in zip(self._turned(W).T, targets.T, strict=True)
            ]
            pulled = torch.stack([*(back for back, _ in trips), self._mass], dim=1)
            found = to_host(self._rows.half(pulled))
            sums = torch.stack([left.sum() for _, left in trips])
            return found[:, :-1], to_host(sums), found[:, -1]
        sums = torch.zeros(targets.shape[1], dtype=torch.float64, device=targets.device)
        left = torch.empty_like(targets)

        def change(part: slice, values: Tensor) -> Tensor:
            left[part] = self._s[part] * (targets[part] - values)
            return torch.cat([left[part], self._s[part]], dim=1)

        found = self._rows.half(self._rows.exact.sweep(self._turned(W), change))
        sums += left.sum(dim=0)
        found = to_host(found)
        return found[:, :-1], to_host(sums), found[:, -1]

    def factor(self, index: Array, share: Array, lone: float, penalty: float) -> Factor:
        """Add up blocks of features, and factor, all on the card."""
        rows, device = self._rows, self._rows.device
        s, m = device.put(share, np.float64), rows.exact.shape[1]
        centre = self._centre(index, s)  # of values at landmarks; None for that of the landmarks
        mean = None if centre is None else rows.half(centre)

        def blocks(entries: int) -> Iterator[tuple[Tensor, Tensor]]:
            for part in parts(len(index), entries // (_MATRICES * max(1, m))):
                yield rows.exact.block(index[part], slice(0, m)).T, s[part].sqrt()

        def add_up(entries: int) -> SquareSums:
            total = squares(rows.factor, None if mean is None else mean[:, 0], lone, device)
            if len(index) > m:  # with fewer, mixing a square takes longer than mixing them
                weighed = ((B - centre) * root for B, root in blocks(entries))
                if total.add_mixed(weighed, len(index), penalty):
                    return total
            for B, root in blocks(entries):
                G = rows.half(B)
                G -= 0.0 if mean is None else mean
                total.add(G * root)
            return total

        found = device.in_blocks(add_up, f"a block of features of {m} landmarks")
        return in_panels(found.factor(penalty))

    def _centre(self, index: Array, s: Tensor) -> Tensor | None:
        """Return the mean of rows by weights of some points; None where there are none."""
        rows = self._rows
        if not self._bias:
            return torch.zeros((rows.exact.shape[1], 1), dtype=torch.float64, device=s.device)
        if not len(index):
            return None
        cores = rows.exact.cores
        if cores is not None:
            return cores.product(cores.columns(), cores.rows(index), s[:, None]) / s.sum()
        every = torch.zeros(rows.exact.shape[0], dtype=torch.float64, device=s.device)
        every.index_add_(0, rows.device.put(index), s)
        return rows.back.times(every[:, None]) / s.sum()

    def _turned(self, W: Array) -> Tensor:
        return self._rows.half(self._rows.device.put(W, np.float64), transposed=True)
