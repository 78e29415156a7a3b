"""Kernels of a distance. `scale` is a length: one for all features, or one per feature.

With one scale, the distance is that of the plain rows and the scale stands outside of it, so that
all scales share one distance matrix. With one scale per feature, the rows are stretched first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, TypeAlias

import numpy as np

from mercer import expression as ex
from mercer.arguments import also_named
from mercer.array_types import Array, FrozenArray
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven

Scale: TypeAlias = float | Sequence[float] | Array

# Where 1/scale overflows, this stands in: exp(-cap d) is 0 for any d > 0, and 1 at d = 0, which
# infinity times zero would spoil.
_CAP = 1e290
# The same for 1/scale^2, next to the end of the range: squares of distances of that scale are then
# denormal, and sums of these are not right in any case.
_SQUARED_CAP = 1e307
_SMOOTHEST = 1e4


def _from_gamma(owner: str, name: str, gamma: Scale) -> Scale:
    """Return the scale of exp(-gamma |x - y|^2), which is exp(-|x - y|^2 / (2 scale^2))."""
    rate = checks.positive_each(owner, name, gamma)
    return 1.0 / np.sqrt(2.0 * (rate.array if isinstance(rate, FrozenArray) else rate))


_SIGMA = (
    "it means different things elsewhere: scale={value} if it is the standard deviation of the "
    "bell, gamma={value} if it is the factor before the squared distance (kernlab)"
)


@also_named("scale", gamma=_from_gamma, length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class Gaussian(Kernel):
    """k(x, y) = exp(-|x - y|^2 / (2 scale^2)), or exp(-sum_i (x_i - y_i)^2 / (2 scale_i^2)).

    Parameters
    ----------
    scale : float or sequence of float
        Positive; one per feature if a sequence. `length_scale` is the same; `gamma`, as other
        libraries have it, stands for scale = 1 / sqrt(2 gamma).

    Examples
    --------
    >>> Gaussian(scale=2.0)([[0.0, 0.0]], [[2.0, 0.0]]).round(4).tolist()
    [[0.6065]]
    """

    scale: Scale = 1.0

    other_names: ClassVar[Mapping[str, str]] = {"sigma": _SIGMA}

    def __post_init__(self) -> None:
        self._store(scale=checks.positive_each("Gaussian", "scale", self.scale))

    def expression(self) -> Expression:
        """Write the exponential of the squared distance."""
        return ex.Exp(-0.5 * _squared(self.scale))


@also_named("scale", gamma=checks.reciprocal_each, length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class Laplacian(Kernel):
    """k(x, y) = exp(-sum_i |x_i - y_i| / scale).

    Parameters
    ----------
    scale : float or sequence of float
        Positive; one per feature if a sequence. `gamma` stands for scale = 1 / gamma.

    Examples
    --------
    >>> Laplacian(scale=2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    """

    scale: Scale = 1.0

    def __post_init__(self) -> None:
        self._store(scale=checks.positive_each("Laplacian", "scale", self.scale))

    def expression(self) -> Expression:
        """Write the exponential of the sum of absolute differences."""
        if isinstance(self.scale, FrozenArray):
            return ex.Exp(-1.0 * ex.AbsDist((_stretch(self.scale),)))
        return ex.Exp(-_reciprocal(self.scale) * ex.AbsDist())


@also_named("scale", length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class Matern(Kernel):
    """k(x, y) = 2^(1-nu) / Gamma(nu) r^nu K_nu(r) with r = sqrt(2 nu) |x - y| / scale.

    Functions of the kernel's space are about `nu` times differentiable: nu = 1/2 is the exponential
    kernel, nu = inf the Gaussian one.

    Parameters
    ----------
    nu : float
        Smoothness, positive, up to 10000 or infinite; 0.5, 1.5, 2.5 and infinity have closed forms
        and are much faster.
    scale : float or sequence of float
        Positive; one per feature if a sequence.

    Examples
    --------
    >>> Matern(nu=0.5, scale=2.0)([[0.0]], [[2.0]]).round(4).tolist()
    [[0.3679]]
    """

    nu: float = 1.5
    scale: Scale = 1.0

    def __post_init__(self) -> None:
        self._store(
            nu=checks.positive_or_infinite("Matern", "nu", self.nu),
            scale=checks.positive_each("Matern", "scale", self.scale),
        )
        if _SMOOTHEST < self.nu < inf:  # each unit of nu is a step of a recurrence
            raise ValueError(
                f"Matern: nu={self.nu!r} must be at most {_SMOOTHEST:g}, or infinity: the Gaussian "
                "kernel, from which it differs by a few parts in nu"
            )

    def expression(self) -> Expression:
        """Write the closed form where there is one."""
        if self.nu == inf:
            return ex.Exp(-0.5 * _squared(self.scale))
        r = sqrt(2.0 * self.nu) * _distance(self.scale)
        if self.nu == 0.5:
            return ex.Exp(-1.0 * r)
        if self.nu == 1.5:
            return (1.0 + r) * ex.Exp(-1.0 * r)
        if self.nu == 2.5:
            return (1.0 + r + 5.0 / 3.0 * _squared(self.scale)) * ex.Exp(-1.0 * r)
        return ex.MaternProfile(r, self.nu)


@also_named("scale", length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class RationalQuadratic(Kernel):
    """k(x, y) = (1 + |x - y|^2 / (2 alpha scale^2))^(-alpha): a mixture of Gaussians of all scales.

    Parameters
    ----------
    alpha : float
        Positive; the larger, the closer to the Gaussian kernel.
    scale : float or sequence of float
        Positive; one per feature if a sequence.

    Examples
    --------
    >>> RationalQuadratic(alpha=1.0, scale=1.0)([[0.0]], [[2.0]]).round(4).tolist()
    [[0.3333]]
    """

    alpha: float = 1.0
    scale: Scale = 1.0

    def __post_init__(self) -> None:
        self._store(
            alpha=checks.positive("RationalQuadratic", "alpha", self.alpha),
            scale=checks.positive_each("RationalQuadratic", "scale", self.scale),
        )

    def expression(self) -> Expression:
        """Write the power of the shifted squared distance."""
        return (1.0 + _squared(self.scale, min(0.5 / self.alpha, _CAP))) ** -self.alpha


def _squared(scale: Scale, weight: float = 1.0) -> Expression:
    if isinstance(scale, FrozenArray):
        return weight * ex.SqDist((_stretch(scale),))
    assert isinstance(scale, float)
    return min(weight * (1.0 / scale / scale), _SQUARED_CAP) * ex.SqDist()


def _distance(scale: Scale) -> Expression:
    if isinstance(scale, FrozenArray):
        return ex.Sqrt(ex.SqDist((_stretch(scale),)))
    return _reciprocal(scale) * ex.Sqrt(ex.SqDist())


def _reciprocal(scale: Scale) -> float:
    assert isinstance(scale, float)
    return min(1.0 / scale, _CAP)


def _stretch(scale: FrozenArray) -> ex.Stretch:
    return ex.Stretch(FrozenArray(1.0 / scale.array))
