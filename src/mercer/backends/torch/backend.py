"""The torch backend: work on arrays runs on the GPU, loops over single numbers on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mercer.array_types import Array, Points
from mercer.backends.box_programs import Box, BoxAnswer, BoxPath, BoxPathAnswer, Form
from mercer.backends.contract import (
    Backend,
    BackendFeatures,
    Band,
    Factor,
    GroupAnswer,
    Groups,
    LinearFunctions,
    Pairs,
    PassCounts,
    Poll,
    RowParts,
    StoredMatrix,
)
from mercer.backends.host import HostMatrix
from mercer.backends.lowering import lower
from mercer.backends.row_values import diagonal
from mercer.backends.torch.device import choose_devices
from mercer.backends.torch.factors import PackedFactor
from mercer.backends.torch.features import TorchFeatures, fourier_features
from mercer.backends.torch.landmarks import DeviceRows
from mercer.backends.torch.matrices import (
    DeviceFactor,
    DeviceMatrix,
    band_inverse_diagonals,
    band_reduce,
    cholesky,
    cholesky_factor,
    eigh,
    kept_on_device,
    solve_with_determinant,
    symmetric_product,
)
from mercer.backends.torch.neighbours import neighbours
from mercer.backends.torch.nvrtc import is_compiled
from mercer.backends.torch.pairs import SharedPairs, TorchPairs
from mercer.backends.torch.svm.descents import LEAST, can_descend, solve_boxes
from mercer.backends.torch.svm.rounds import begin_kernels
from mercer.backends.torch.triton.fused import is_available
from mercer.expression import Expression
from mercer.resources import get_config
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_objects, is_sparse

_SENT = 1 << 18  # numbers of rows that are sent for a fit: fewer are looked at here as soon
_HERE = 512  # rows of a matrix that is given here, and wanted here: a millisecond or two of work
_COPIES = 2  # of such rows on the card: as they are, and in the order of their merging


class Torch(Backend):
    """Kernel matrices, products, features, neighbours and factors on a device; the rest on a host.

    Parameters
    ----------
    device : str or None
        "cpu", "cuda" or "cuda:1"; several, as in "cuda:0,cuda:1", share products with matrices that
        are not stored. None takes a card if there is one.
    host : Backend
        Runs what is no work for a card: descents, band matrices, walks over rows.
    fused : bool, optional
        Whether float32 work runs as generated Triton kernels; by default on a card, where Triton
        is installed.
    """

    name = "torch"

    def __init__(self, device: str | None, host: Backend, fused: bool | None = None) -> None:
        self.devices, self._host = choose_devices(device), host
        self.device = self.devices[0]
        self._fused = self.device.is_card and is_available() if fused is None else fused

    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points, on the device."""
        halves = get_config().products == "float16"
        if len(self.devices) > 1:
            return SharedPairs(expression, X, Y, dtype, self.devices, self._fused, halves)
        return TorchPairs(expression, X, Y, dtype, self.device, self._fused, halves)

    def placed(self, X: Points, entries: int = 0) -> Points:
        """Send dense rows to the card, once for all that a fit does with them."""
        if isinstance(X, CardRows):
            return X if len(self.devices) == 1 and self._is_here(X) else X.on_host()
        plain = type(X) is np.ndarray and X.ndim == 2 and max(X.size, entries) >= _SENT
        if not plain or len(self.devices) > 1 or not self.device.is_card:
            return X
        if not self.device.has_room(_COPIES * X.nbytes):
            return X
        try:
            return CardRows(self.device.put(X), X)
        except torch.cuda.OutOfMemoryError:
            return X

    def _is_here(self, X: CardRows) -> bool:
        return str(X.tensor.device) == self.device.name

    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Run the flat program on vectors of the host: it is less work than sending the rows."""
        with np.errstate(all="ignore"):
            return diagonal(expression, X).astype(dtype, copy=False)

    def neighbours(
        self, expression: Expression, X: Points, Y: Points | None, count: int
    ) -> tuple[Array, Array]:
        """Search by kernels where these can, and by blocks of distances on the device."""
        with np.errstate(all="ignore"):
            return neighbours(expression, X, Y, count, self.device, self._fused)

    def empty(self, n: int, m: int) -> Array:
        """Take pages of the host."""
        return self._host.empty(n, m)

    def symmetric_product(self, K: Array, V: Array, parts: RowParts | None = None) -> Array:
        """Send K block by block."""
        return symmetric_product(K, V, parts, self.device)

    def cholesky(self, A: Array) -> int:
        """Factor on the device; what is sooner factored than sent and brought, on the host."""
        if self.device.is_card and len(A) <= _HERE:
            return self._host.cholesky(A)
        return cholesky(A, self.device)

    def stored(self, K: Array) -> StoredMatrix:
        """Send it to the device; keep it on the host where that has no room."""
        if not self.device.has_room(K.nbytes):
            return HostMatrix(K)
        try:
            there = self.device.put(K)
        except torch.cuda.OutOfMemoryError:  # others may have taken it since
            torch.cuda.empty_cache()
            return HostMatrix(K)
        K.setflags(write=False)
        return DeviceMatrix(there, self.device, K)

    def keeps(self, size: float) -> bool:
        """Ask the card."""
        return self.device.is_card and self.device.has_room(size)

    def expect_boxes(self, form: Form) -> bool:
        """Begin to compile what moves them, where a card will."""
        card = torch.device(self.device.name)
        descends = self.descends_on_several(form.largest, np.float32) and card.type == "cuda"
        if descends:
            begin_kernels(card, form)
        return descends

    def descends_on_several(self, variables: int, dtype: Any) -> bool:
        """Descend on a card, unless programmes are so small that the host is done first."""
        large = variables >= LEAST and np.dtype(dtype) == np.float32
        return self.device.is_card and large and is_compiled()

    def cholesky_factor(self, A: Array) -> Factor | None:
        """Factor on the device, where the factor stays."""
        return cholesky_factor(A, self.device)

    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Decompose on the device."""
        return eigh(A, self.device)

    def band_reduce(self, A: Array, width: int) -> Band:
        """Reduce to a diagonal on the device: eigenvectors are what a card finds soonest."""
        return band_reduce(A, width, self.device)

    def band_inverse_diagonals(self, band: Band, shifts: Array) -> Array:
        """Add up squares of eigenvectors on the device."""
        return band_inverse_diagonals(band, shifts, self.device)

    def box_qps(
        self, K: Array, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Descend on the card, all programmes at once, where K stays there; else on the host."""
        if K.dtype == np.float32 and self.device.is_card and can_descend(boxes):
            held = kept_on_device(K, self.device)
            if held is not None:
                return solve_boxes(held, boxes, tol, max_iter, poll, self.device)
        return self._host.box_qps(K, boxes, tol, max_iter, poll)

    def box_paths(
        self, K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Descend on the host."""
        return self._host.box_paths(K, paths, tol, max_iter, poll)

    def partition(self, K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Part on the host, where K is."""
        return self._host.partition(K, groups, poll)

    def perceptron(
        self,
        X: Any,
        codes: Array,
        order: Array | None,
        rules: LinearFunctions,
        step: float,
        interruptible: bool,
    ) -> PassCounts:
        """Walk on the host."""
        return self._host.perceptron(X, codes, order, rules, step, interruptible)

    def solve_with_determinant(self, C: Array, right: Array) -> tuple[Array, float, float]:
        """Decompose on the device."""
        return solve_with_determinant(C, right, self.device)

    def landmark_rows(
        self, expression: Expression, X: Points, landmarks: Points, factor: Factor
    ) -> DeviceRows | None:
        """Send points and landmarks to a card, where the factor is."""
        on_card = self.device.is_card and isinstance(factor, DeviceFactor | PackedFactor)
        if not on_card or is_objects(X) or is_sparse(X) or lower(expression).externals:
            return None
        assert isinstance(factor, DeviceFactor | PackedFactor)
        halves = get_config().products == "float16"
        return DeviceRows(expression, X, landmarks, factor, self.device, self._fused, halves)

    def fourier_features(
        self, X: CardRows, frequencies: Array, amplitude: float
    ) -> CardRows | None:
        """Multiply, and take cosines and sines of blocks."""
        if not self._is_here(X):
            return None
        return fourier_features(X, frequencies, amplitude, self.device)

    def features(self, F: Any, index: Array | None) -> BackendFeatures:
        """Bind dense rows on the device, sparse ones on the host."""
        if is_sparse(F):
            return self._host.features(F, index)
        if isinstance(F, CardRows) and not self._is_here(F):
            F = F.on_host()
        return TorchFeatures(F, index, self.device, self._host)
