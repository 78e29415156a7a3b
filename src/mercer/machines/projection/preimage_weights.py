"""How strongly a training point pulls a pre-image towards itself: minus the slope of the kernel.

For k = h(|x - y|^2) the function sum_i g_i k(x_i, z) is stationary where sum_i g_i p(x_i, z)
(x_i - z) = 0 with p = -2 h'. That p is a kernel of the same family again.
"""

from __future__ import annotations

from functools import singledispatch
from math import inf, sqrt

from mercer.array_types import FrozenArray
from mercer.kernels import Constant, Gaussian, Kernel, Matern, RationalQuadratic
from mercer.kernels.algebra import Product, Sum


def preimage_weight(kernel: Kernel) -> Kernel | None:
    """Return p for kernels of a distance that are smooth at zero; None for all others."""
    if isinstance(kernel, Gaussian):
        return kernel  # up to a factor; with one scale per feature, the pull is the same for each
    if isinstance(kernel, Product) and len(kernel.parts) == 1:
        return preimage_weight(kernel.parts[0])
    try:
        return _weight_kernel(kernel)
    except (OverflowError, ZeroDivisionError):  # a scale whose square is no number
        return None


@singledispatch
def _weight_kernel(kernel: Kernel) -> Kernel | None:
    return None


@_weight_kernel.register
def _(kernel: Gaussian) -> Kernel | None:
    if isinstance(kernel.scale, FrozenArray):
        return None  # beside others: each feature would have a pull of its own
    return float(kernel.scale) ** -2 * kernel  # type: ignore[arg-type]


@_weight_kernel.register
def _(kernel: RationalQuadratic) -> Kernel | None:
    if isinstance(kernel.scale, FrozenArray):
        return None
    scale, alpha = float(kernel.scale), float(kernel.alpha)  # type: ignore[arg-type]
    return scale**-2 * RationalQuadratic(alpha + 1.0, scale * sqrt(alpha / (alpha + 1.0)))


@_weight_kernel.register
def _(kernel: Matern) -> Kernel | None:
    if isinstance(kernel.scale, FrozenArray) or kernel.nu <= 1:
        return None  # at nu <= 1 the pull at zero distance is infinite
    scale, nu = float(kernel.scale), float(kernel.nu)  # type: ignore[arg-type]
    if nu == inf:
        return scale**-2 * Gaussian(scale)
    factor = nu / ((nu - 1.0) * scale**2)
    return factor * Matern(nu - 1.0, scale * sqrt((nu - 1.0) / nu))


@_weight_kernel.register
def _(kernel: Product) -> Kernel | None:
    inner = _weight_kernel(kernel.parts[0]) if len(kernel.parts) == 1 else None
    return None if inner is None or kernel.factor == 0 else kernel.factor * inner


@_weight_kernel.register
def _(kernel: Sum) -> Kernel | None:
    moving = [part for part in kernel.parts if not isinstance(part, Constant)]
    pulls = [_weight_kernel(part) for part in moving]
    if not pulls or any(pull is None for pull in pulls):
        return None
    return Sum(tuple(pull for pull in pulls if pull is not None))
