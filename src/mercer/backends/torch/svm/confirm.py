"""Box QPs on float32 matrices, verified in float64 and continued if rounding matters.

A K stored in float32 moves a programme: the error of F grows with the coefficients. So after a
descent some rows of K are evaluated anew from the points. Programmes for which products with these
differ get all of F in float64, which shows their true violations, and those that are too large
descend again from there: the error of what they add is as small as the steps they add, and where it
is bounded by less than the tolerance leaves, F is not computed once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array, Index
from mercer.backends.box_programs import BoxPath
from mercer.backends.contract import Poll
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.svm.descents import descend, measure
from mercer.backends.torch.svm.programs import DeviceQPs

Tensor: TypeAlias = torch.Tensor

_SAMPLE = 64  # rows of K that are evaluated anew
_ALLOWED = 0.2  # of tol: errors in a sample that leave the largest, too, within the tolerance
_AGAIN = 0.7  # of tol: what later descents aim at
_DESCENTS = 12  # that follow the first at most
_LEFT = (1 - _AGAIN) / 2  # of tol: errors of F that leave such a descent within the tolerance
_UNSEEN = 2.0  # times the largest rounding of an entry in a sample: that of all entries
_STUCK = 0.5  # of the last violation: a descent that leaves more has found nothing


class ExactKernel(Protocol):
    """K in float64 from the points, on the device."""

    def block(self, index: Index, part: slice) -> Tensor:
        """Evaluate some rows with some columns."""

    def times(self, right: Tensor) -> Tensor:
        """Return K right."""


class StoredPaths(NamedTuple):
    """A stored matrix and paths on it.

    Attributes
    ----------
    K : (n, n) float32 tensor
        The matrix.
    paths : sequence of BoxPath
        The paths.
    exact : Exact or None
        The same in float64; None where it is not known.
    """

    K: Tensor
    paths: Sequence[BoxPath]
    exact: ExactKernel | None = None


@dataclass(frozen=True, eq=False)
class PathPosition:
    """Where the steps of a path are.

    Attributes
    ----------
    path : BoxPath
        The path.
    numbers, variables, columns : slice
        Its programmes and their variables among all, and its columns among those of its matrix.
    """

    path: BoxPath
    numbers: slice
    variables: slice
    columns: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Steps and variables of each."""
        return len(self.path.steps), len(self.path.box.gradient)


def places(blocks: Sequence[StoredPaths]) -> list[list[PathPosition]]:
    """Return where the paths of each matrix are, in the order in which they are written down."""
    found: list[list[PathPosition]] = []
    number = variable = 0
    for block in blocks:
        column, own = 0, []
        for path in block.paths:
            count, m = len(path.steps), len(path.box.gradient)
            own.append(
                PathPosition(
                    path,
                    slice(number, number + count),
                    slice(variable, variable + count * m),
                    slice(column, column + count),
                )
            )
            number, variable, column = number + count, variable + count * m, column + count
        found.append(own)
    return found


class PathProducts:
    """Products of one matrix with the coefficients of all programmes on it, where these stand.

    Parameters
    ----------
    block : Block
        The matrix.
    own : sequence of Place
        Where its paths are.
    programmes : Programmes
        All programmes.
    device : Device
        Where everything is.
    """

    def __init__(
        self, block: StoredPaths, own: Sequence[PathPosition], programmes: DeviceQPs, device: Device
    ) -> None:
        self.places, self._programmes, self._device = own, programmes, device
        self._K, self._exact = block.K, block.exact
        self._rows = [self._row_numbers(place) for place in own]
        self._b = self._coefficients()
        self._product = self._stored_product(self._b)
        self._rounding = np.inf  # of an entry of the stored matrix
        self._drift = np.full(self._b.shape[1], np.inf)  # at most, since float64 was seen

    @property
    def is_exact(self) -> bool:
        """Whether all that is told was confirmed in float64."""
        return self._exact is not None

    @cached_property
    def numbers(self) -> Array:
        """Return which of all programmes the columns are."""
        return np.concatenate([np.r_[place.numbers] for place in self.places])

    def _row_numbers(self, place: PathPosition) -> Tensor:
        m, first = place.shape[1], place.variables.start
        return self._programmes.rows[first : first + m].long()

    def _coefficients(self) -> Tensor:
        """Return the coefficients of all programmes as columns (n, programmes)."""
        columns = self.places[-1].columns.stop
        out = torch.zeros((len(self._K), columns), dtype=torch.float64, device=self._K.device)
        for place, rows in zip(self.places, self._rows, strict=True):
            b = self._programmes.b[place.variables].view(place.shape)
            out[:, place.columns].index_add_(0, rows, b.T)
        return out

    def _stored_product(self, right: Tensor) -> Tensor:
        def multiply(entries: int) -> Tensor:
            out = torch.empty_like(right)
            for part in parts(len(right), entries // max(1, len(right))):
                out[part] = self._K[part].double() @ right
            return out

        return self._device.in_blocks(multiply, f"a product with {right.shape[1]} programmes")

    def errors(self) -> Array:
        """Return how far off products with the stored matrix are in a sample of its rows."""
        if self._exact is None:
            return np.zeros(self._product.shape[1])
        n = len(self._K)
        rows = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))
        index = self._device.put(rows)
        true = self._exact.block(rows, slice(0, n)).double()
        off = (true @ self._b - self._product[index]).abs().amax(dim=0)
        rounding = (true - self._K[index]).abs().amax()
        found = to_host(torch.cat([off, rounding[None]]))
        self._rounding = float(found[-1])
        return found[:-1]

    def set_right(self, columns: Array, allowed: float) -> None:
        """Compute products, and F, of some of its programmes in float64 from the points.

        Those that were so before, and moved so little that what rounding made of it is allowed,
        have their F already.
        """
        if self._exact is None or not len(columns):
            return
        b = self._coefficients()
        added, self._b = b - self._b, b
        self._drift += _UNSEEN * self._rounding * to_host(added.abs().sum(dim=0))
        near = self._drift[columns] <= allowed
        index = self._device.put(columns[near])
        if len(index):
            self._product[:, index] += self._stored_product(added[:, index].contiguous())
        self._recompute(columns[~near])

    def _recompute(self, columns: Array) -> None:
        if self._exact is None or not len(columns):
            return
        index = self._device.put(columns)
        self._product[:, index] = self._exact.times(self._b[:, index].contiguous())
        self._drift[columns] = 0.0
        chosen = np.zeros(self._product.shape[1], dtype=bool)
        chosen[columns] = True
        for place, rows in zip(self.places, self._rows, strict=True):
            if chosen[place.columns].any():
                self._set_gradient(place, rows, self._device.put(chosen[place.columns]))

    def _set_gradient(self, place: PathPosition, rows: Tensor, chosen: Tensor) -> None:
        p, own = self._programmes, place.variables
        F = (
            self._device.put(place.path.box.gradient, np.float64)
            - self._product[rows, place.columns].T
        )
        if p.shift is not None:
            F -= (p.shift[own] * p.b[own]).view(place.shape)
        old = p.F[own].view(place.shape)
        old.copy_(torch.where(chosen[:, None], F, old))

    def values(self, place: PathPosition) -> Tensor:
        """Return the products at the evaluation rows of a path (rows, steps)."""
        return self._product[self._device.put(place.path.evaluation_rows)][:, place.columns]


def confirm(
    matrices: Sequence[Tensor],
    products: Sequence[PathProducts],
    programmes: DeviceQPs,
    found: tuple[Array, Array],
    tol: float,
    max_iter: int,
    poll: Poll | None,
) -> None:
    """Go on in float64 with programmes that rounding of the matrices could spoil.

    Parameters
    ----------
    matrices, programmes, tol, max_iter, poll
        As for `descend`.
    products : sequence of Products
        Those of each matrix, where the programmes stand.
    found : tuple of arrays
        Steps and violations of all programmes; better ones take their places.
    """
    steps, violations = found
    wrong = np.zeros(len(violations), dtype=bool)
    for one in products:
        if one.is_exact:
            off = one.errors() > _ALLOWED * tol
            wrong[one.numbers] = off | ~(violations[one.numbers] <= tol)
    wrong &= np.isfinite(violations) & (steps < max_iter)
    last = np.full(len(violations), np.inf)
    for _ in range(_DESCENTS):
        if not wrong.any():
            return
        for one in products:
            one.set_right(np.flatnonzero(wrong[one.numbers]), _LEFT * tol)
        violations[wrong] = measure(matrices, programmes, tol)[wrong]
        wrong &= (violations > tol) & (violations <= _STUCK * last) & (steps < max_iter)
        worst = float(violations[wrong].max(initial=-np.inf))
        if not wrong.any() or (poll is not None and poll(int(steps.sum()), worst)):
            return
        last = violations.copy()
        left = max_iter - int(steps[wrong].max())
        more, _ = descend(
            matrices, programmes, _AGAIN * tol, left, poll, only=np.flatnonzero(wrong)
        )
        steps += more
