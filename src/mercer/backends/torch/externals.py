"""Parts of an expression that Python evaluates on the host: users' functions, Bessel functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

import torch

from mercer.array_types import Index, Points
from mercer.backends.reference.evaluate import evaluate, matern_profile
from mercer.backends.torch.device import Device, to_host
from mercer.expression import Expression, MaternProfile, Opaque
from mercer.points import take

Tensor: TypeAlias = torch.Tensor
Inner = Callable[[Expression], Callable[[Index, slice], Tensor]]


class External:
    """One such part, bound to points.

    Parameters
    ----------
    expression : Expression
        The part.
    X, Y : Points
        Rows and columns.
    device : Device
        Where blocks are wanted.
    inner : callable
        Binds an expression to the same points; what comes back evaluates float64 blocks.
    """

    def __init__(
        self, expression: Expression, X: Points, Y: Points, device: Device, inner: Inner
    ) -> None:
        self._expression, self._X, self._Y, self._device = expression, X, Y, device
        self._argument = inner(expression.of) if isinstance(expression, MaternProfile) else None
        if device.is_card and isinstance(expression, Opaque):
            warnings.warn(_where_it_runs(expression.function, device), RuntimeWarning, stacklevel=2)

    def block(self, index: Index, part: slice) -> Tensor:
        """Evaluate some rows with some columns, in float64."""
        if self._argument is not None and isinstance(self._expression, MaternProfile):
            r = to_host(self._argument(index, part))
            return self._device.put(matern_profile(r, self._expression.nu))
        values = evaluate(self._expression, take(self._X, index), take(self._Y, part))
        return self._device.put(values)


def _where_it_runs(function: Callable[..., object], device: Device) -> str:
    """Say that a function runs on the host, and what can be done about it: if it is the user's."""
    if type(function).__module__.partition(".")[0] == "mercer":
        return (
            f"{type(function).__name__} (strings, lists, numbers of tasks) runs on the CPU, block "
            f"by block; what it gives is sent to device={device.name!r}, where all else runs."
        )
    return (
        f"the kernel function {function!r} runs on the CPU, block by block: device={device.name!r} "
        "cannot look into it. Write it with Mercer's kernels to have all of it there."
    )
