"""The derivative of a kernel by the logarithm of each of its parameters: again a formula.

Positive numbers of a kernel (scales, factors of products, constants, offsets, the alpha of a
rational quadratic) can be learnt by gradients. A rule for each class of kernel names them as
`get_params` does, and writes the slope: kernels made of kernels pass on those of their parts by the
chain rule, so that sums, products and powers of any depth need nothing of their own. Whole numbers
(degrees, exponents), the nu of `Matern` and parameters that are zero are not learnt; kernels
without a rule have none.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, Self

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, FrozenArray
from mercer.expression import Expression, Statistic, walk
from mercer.kernels import algebra, inputs
from mercer.kernels.base import Kernel
from mercer.kernels.families.dot import Constant, Polynomial
from mercer.kernels.families.histogram import ChiSquared
from mercer.kernels.families.radial import Gaussian, Laplacian, Matern, RationalQuadratic
from mercer.kernels.slopes import slope

Rewrite = Callable[[Expression], Expression]


@dataclass(frozen=True)
class ParameterSlope(ABC):
    """dk / d log(parameter): one formula, or one for each entry of the parameter.

    Attributes
    ----------
    outer : Expression
        What the chain rule multiplies by, or all of the slope.
    """

    outer: Expression

    def rewritten(self, rewrite: Rewrite) -> Self:
        """Return the slope with all of its formulas rewritten."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        changed = {name: rewrite(e) for name, e in found.items() if isinstance(e, Expression)}
        return replace(self, **changed)

    def times(self, *factors: Expression | float) -> Self:
        """Return the slope of a product with factors that do not hold the parameter."""
        return replace(self, outer=ex.multiply(*factors, self.outer))


@dataclass(frozen=True)
class FormulaSlope(ParameterSlope):
    """A formula. Where it is not finite a square root of zero was differentiated: it is zero."""


@dataclass(frozen=True)
class DistanceSlope(ParameterSlope):
    """outer dD / d log(scale_j), for a distance D with one scale for each column.

    Attributes
    ----------
    leaf : Statistic
        D; its last step stretches the columns.
    """

    leaf: Statistic


@dataclass(frozen=True)
class MappedSlope(ParameterSlope):
    """outer function(inner): for functions that formulas do not have.

    Attributes
    ----------
    inner : Expression
        A formula.
    function : callable
        What is made of its values.
    """

    inner: Expression
    function: Callable[[Array], Array]


@dataclass(frozen=True)
class Parameter:
    """A positive parameter of a kernel that can be learnt.

    Attributes
    ----------
    name : str
        As in `Kernel.get_params`.
    values : tuple of float
        Its value, or values.
    slope : ParameterSlope
        How the kernel changes with its logarithm.
    is_weight : bool
        Whether it multiplies a kernel: then its unit is that of the targets, squared.
    is_array : bool
        Whether the kernel holds it as an array.
    """

    name: str
    values: tuple[float, ...]
    slope: ParameterSlope
    is_weight: bool = False
    is_array: bool = False

    def setting(self, values: Array) -> Any:
        """Return what `with_params` takes for these values."""
        return FrozenArray(values) if self.is_array else float(values[0])


@singledispatch
def parameters(kernel: Kernel) -> list[Parameter]:
    """Return the parameters of a kernel that can be learnt, in the order of `get_params`.

    Parameters
    ----------
    kernel : Kernel

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> [each.name for each in parameters(2.0 * Gaussian(1.0) + Linear())]
    ['k1__factor', 'k1__k1__scale']
    """
    return []


# --- kernels of a distance ------------------------------------------------------------------------


@parameters.register(Gaussian)
@parameters.register(Laplacian)
@parameters.register(Matern)
@parameters.register(ChiSquared)
def _(kernel: Any) -> list[Parameter]:
    return [_scale(kernel)]


@parameters.register
def _(kernel: RationalQuadratic) -> list[Parameter]:
    k = kernel.expression()
    assert isinstance(k, ex.Pow)
    alpha = MappedSlope(kernel.alpha * k, k.base, _by_alpha)
    return [Parameter("alpha", (kernel.alpha,), alpha), _scale(kernel)]


def _by_alpha(base: Array) -> Array:
    """Return the slope of -log(1 + u / alpha) alpha by alpha, from 1 + u / alpha."""
    return np.asarray((base - 1.0) / base - np.log(base))


def _scale(kernel: Any) -> Parameter:
    k = kernel.expression()
    distances = ex.SqDist | ex.AbsDist | ex.ChiSq
    leaf = next(node for node in walk(k) if isinstance(node, distances))
    bent = slope(k, leaf)
    if isinstance(kernel.scale, FrozenArray):
        values = tuple(kernel.scale.array.tolist())
        return Parameter("scale", values, DistanceSlope(bent, leaf), is_array=True)
    # k is a function of D / scale, or of D / scale^2 where D is a square
    order = -2.0 if isinstance(leaf, ex.SqDist) else -1.0
    return Parameter("scale", (kernel.scale,), FormulaSlope(ex.multiply(order, leaf, bent)))


# --- kernels of an inner product ------------------------------------------------------------------


@parameters.register
def _(kernel: Polynomial) -> list[Parameter]:
    if not kernel.offset > 0:
        return []
    below = (ex.Dot() + kernel.offset) ** (kernel.degree - 1.0)
    found = FormulaSlope(ex.multiply(kernel.degree * kernel.offset, below))
    return [Parameter("offset", (kernel.offset,), found)]


@parameters.register
def _(kernel: Constant) -> list[Parameter]:
    return _positive("value", kernel.value, kernel.expression())


# --- kernels made of kernels ----------------------------------------------------------------------


@parameters.register
def _(kernel: algebra.Sum) -> list[Parameter]:
    return [each for i in range(len(kernel.parts)) for each in _of_part(kernel.parts, i, 1.0)]


@parameters.register
def _(kernel: algebra.Product) -> list[Parameter]:
    found = _positive("factor", kernel.factor, kernel.expression())
    for i in range(len(kernel.parts)):
        others = [part.expression() for j, part in enumerate(kernel.parts) if j != i]
        found += _of_part(kernel.parts, i, kernel.factor, *others)
    return found


@parameters.register
def _(kernel: algebra.Power) -> list[Parameter]:
    p, k = kernel.exponent, kernel.kernel.expression()
    return [_times(each, "kernel", float(p), k ** (p - 1.0)) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: algebra.Exponential) -> list[Parameter]:
    outer = kernel.expression()
    return [_times(each, "kernel", outer) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: algebra.PolynomialOf) -> list[Parameter]:
    k = kernel.kernel.expression()
    terms = [i * c * (k ** (i - 1.0)) for i, c in enumerate(kernel.coefficients) if i > 1 and c]
    first = float(kernel.coefficients[1]) if len(kernel.coefficients) > 1 else 0.0
    outer = ex.add(first, *terms)
    return [_times(each, "kernel", outer) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: inputs.On) -> list[Parameter]:
    return _after(kernel.kernel, ex.Columns(kernel.columns))


@parameters.register
def _(kernel: inputs.After) -> list[Parameter]:
    return _after(kernel.kernel, ex.Mapped(kernel.phi))


@parameters.register
def _(kernel: inputs.ScaledBy) -> list[Parameter]:
    outer = ex.RowProduct(ex.RowFunction(kernel.f))
    return [_times(each, "kernel", outer) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: inputs.Normalized) -> list[Parameter]:
    k = kernel.kernel.expression()
    lengths = ex.RowProduct(ex.SelfValue(k, -0.5))
    found = []
    for each in parameters(kernel.kernel):
        moved = _times(each, "kernel", lengths)
        if isinstance(each.slope, FormulaSlope):  # other slopes are zero at k(x, x)
            own = ex.RowSum(ex.SelfValue(ex.Ratio(each.slope.outer, k)))
            less = ex.multiply(-0.5, k, lengths, own)
            moved = replace(moved, slope=FormulaSlope(ex.add(moved.slope.outer, less)))
        found.append(moved)
    return [] if inputs.is_homogeneous(k) else found  # whose factors normalising takes back


def _positive(name: str, value: float, k: Expression) -> list[Parameter]:
    """Return a weight of the kernel, which is its own slope; none where it is zero."""
    return [Parameter(name, (value,), FormulaSlope(k), is_weight=True)] if value > 0 else []


def _of_part(kernels: Sequence[Kernel], i: int, *outer: Expression | float) -> list[Parameter]:
    return [_times(each, f"k{i + 1}", *outer) for each in parameters(kernels[i])]


def _times(each: Parameter, part: str, *outer: Expression | float) -> Parameter:
    return replace(each, name=f"{part}__{each.name}", slope=each.slope.times(*outer))


def _after(kernel: Kernel, step: ex.Step) -> list[Parameter]:
    return [
        replace(
            each,
            name=f"kernel__{each.name}",
            slope=each.slope.rewritten(lambda e: ex.after(e, step)),
        )
        for each in parameters(kernel)
    ]
