"""A Cholesky factor stored as its lower triangle alone: panels of columns, below their diagonal.

A square of 100,000 rows takes 80 GB and its factor as much again; the triangle is factored where it
lies and takes 40 GB. Panels are made one after the other, so no square ever exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.host_matrix import HostFactor
from mercer.backends.stored import Factor
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.device_matrix import DeviceFactor
from mercer.resources import require_memory

Tensor: TypeAlias = torch.Tensor

WIDTH = 2048  # columns of a panel: products of such depth are as fast as any

_WIDE = 2  # panels side by side where no memory is saved: fewer products, each started by the host


def panel_parts(n: int, width: int | None = None) -> list[slice]:
    """Cut columns into panels, of `WIDTH` columns by default."""
    width = WIDTH if width is None else width
    return [slice(first, min(n, first + width)) for first in range(0, n, width)]


def packed_bytes(n: int) -> float:
    """Return what the panels of a triangle take, with the inverses of their diagonal blocks."""
    entries = [(n - part.start + WIDTH) * (part.stop - part.start) for part in panel_parts(n)]
    return float(8 * sum(entries))


class PackedFactor(Factor):
    """A lower triangular factor by panels.

    Parameters
    ----------
    panels : list of tensors
        The k-th holds the rows of its columns from their diagonal on, (n - k w, w) for panels of w
        columns, with zeros above the diagonal.
    device : Device
        Where they lie.
    """

    def __init__(self, panels: list[Tensor], device: Device) -> None:
        self.panels, self._device = panels, device
        self.size = len(panels[0])
        self.parts = panel_parts(self.size, panels[0].shape[1])
        # a product with an inverse is done at once; solving goes row after row
        self._inverses = [_inverse(panel) for panel in panels]

    def __reduce__(self) -> tuple[Any, ...]:
        return HostFactor, (self.lower(),)  # whoever reads it may have no such device

    def half(self, columns: Tensor, transposed: bool = False) -> Tensor:
        """Return L^-1 or L'^-1 times columns, all on the device."""
        out = columns.clone()
        each = list(zip(self.parts, self.panels, self._inverses, strict=True))
        for part, panel, inverse in reversed(each) if transposed else each:
            height = part.stop - part.start
            if transposed:
                mine = torch.addmm(out[part], panel[height:].T, out[part.stop :], alpha=-1.0)
                out[part] = inverse.T @ mine
            else:
                out[part] = inverse @ out[part]
                out[part.stop :].addmm_(panel[height:], out[part], alpha=-1.0)
        return out

    def half_solve(self, right: Array, transposed: bool = False) -> Array:
        """Solve with one triangle."""
        return to_host(self.half(self._device.put(right, np.float64), transposed))

    def solve(self, right: Array) -> Array:
        """Solve with both triangles."""
        columns = self._device.put(right.reshape(len(right), -1), np.float64)
        return to_host(self.half(self.half(columns), transposed=True)).reshape(right.shape)

    def solve_there(self, right: Any) -> Any:
        """Solve for a tensor."""
        return self.half(self.half(right), transposed=True)

    def half_there(self, right: Any) -> Any:
        """Solve with one triangle for a tensor."""
        return self.half(right)

    def here(self) -> Factor:
        """Write out the square on the host."""
        return HostFactor(self.lower())

    def diagonal(self) -> Array:
        """Read the diagonals of all panels."""
        return np.concatenate([to_host(panel.diagonal()) for panel in self.panels])

    def lower(self) -> Array:
        """Write out the square on the host."""
        require_memory(
            8 * self.size**2,
            f"the factor of {self.size} rows, brought from the device",
            "Use fewer landmarks, or a larger budget with mercer.config(memory=...).",
        )
        out = np.zeros((self.size, self.size))
        for part, panel in zip(self.parts, self.panels, strict=True):
            out[part.start :, part] = to_host(panel)
        return out

    def inverse(self) -> Array:
        """Solve for the columns of the identity, some at a time."""
        out = np.empty((self.size, self.size))
        for part, columns in self._identity():
            out[part] = to_host(self.half(self.half(columns), transposed=True)).T
        return out

    def inverse_diagonal(self) -> Array:
        """Add up the squares of L^-1, some of its columns at a time."""
        out = np.empty(self.size)
        for part, columns in self._identity():
            out[part] = to_host(self.half(columns).square_().sum(dim=0))
        return out

    def _identity(self) -> Iterator[tuple[slice, Tensor]]:
        for part in parts(self.size, WIDTH):
            columns = self.panels[0].new_zeros((self.size, part.stop - part.start))
            columns[part].fill_diagonal_(1.0)
            yield part, columns


def in_panels(factor: Factor) -> Factor:
    """Return a factor that solves for few columns by panels, of the same memory.

    Each panel is one product, and the inverse of its diagonal block another; solving row after row
    takes three times as long for 10,000 rows. Digits are lost where that block is badly
    conditioned: for preconditioners, and steps that a residual is looked at after.
    """
    if not isinstance(factor, DeviceFactor):
        return factor
    L = factor.tensor
    wide = panel_parts(len(L), _WIDE * WIDTH)
    return PackedFactor([L[part.start :, part] for part in wide], factor.device)


def packed_cholesky(
    n: int, panel: Callable[[slice], Tensor], device: Device
) -> PackedFactor | None:
    """Factor a positive definite matrix whose panels are made one after the other.

    Parameters
    ----------
    n : int
        Rows.
    panel : callable
        Returns the entries of some columns from their diagonal on, (n - start, width), to be
        overwritten; asked for each panel once, from the first to the last.
    device : Device
        Where they lie.

    Returns
    -------
    PackedFactor or None
        None where the matrix is not positive definite.
    """
    done: list[Tensor] = []
    for part in panel_parts(n):
        mine = panel(part)
        height = part.stop - part.start
        for other, before in zip(panel_parts(n), done, strict=False):
            deadline.check()
            rows = before[part.start - other.start :]
            mine.addmm_(rows, rows[:height].T, alpha=-1.0)
        L, info = torch.linalg.cholesky_ex(mine[:height])
        if int(info) or not bool(L.diagonal().isfinite().all()):  # waits: time limits hold
            return None
        mine[:height] = L
        mine[height:] = torch.linalg.solve_triangular(L.T, mine[height:], upper=True, left=False)
        done.append(mine)
    return PackedFactor(done, device)


def _inverse(panel: Tensor) -> Tensor:
    width = panel.shape[1]
    one = torch.eye(width, dtype=panel.dtype, device=panel.device)
    return torch.linalg.solve_triangular(panel[:width], one, upper=False)
