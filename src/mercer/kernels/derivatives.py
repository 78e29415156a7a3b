"""Derivatives of kernel formulas: by a distance in them, and by the logarithms of parameters."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, Self

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, FrozenArray, Points
from mercer.backends.operands import apply_steps
from mercer.expression import Expression, Statistic, walk
from mercer.kernels import algebra
from mercer.kernels.algebra import Kernel
from mercer.kernels.families import (
    ChiSquared,
    Constant,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from mercer.rows.points import to_dense

# --- slopes --------------------------------------------------------------------------------------
#
# The derivative of a kernel's formula by one of its pairwise statistics: again a formula.
#
# A kernel of a distance is k = e(D). By the chain rule its derivative by a scale inside D is
# e'(D) dD, and e' is written here once for every operation, so that gradients of sums and
# products of such kernels need no rule of their own. Row terms, k(x, x), see D = 0 whatever the
# scales are: their derivative is zero.

_ZERO = ex.Constant(0.0)


class NoSlopeError(ValueError):
    """An operation without a derivative rule; the message names it."""


def slope(expression: Expression, leaf: Statistic) -> Expression:
    """Write the derivative of an expression by a leaf, everything else held fixed.

    Parameters
    ----------
    expression : Expression
        A kernel's formula.
    leaf : Statistic
        A distance in it.

    Returns
    -------
    Expression
        Not finite where a square root of zero is differentiated: there D is zero, and so is what
        the chain rule multiplies by.

    Examples
    --------
    >>> from mercer.expression import Exp, SqDist
    >>> slope(Exp(-0.5 * SqDist()), SqDist()) == -0.5 * Exp(-0.5 * SqDist())
    True
    """
    if expression == leaf:
        return ex.Constant(1.0)
    if leaf not in walk(expression):
        return _ZERO
    return _rule(expression, leaf)


def columns_of_distance(leaf: Statistic, X: Points) -> Array:
    """Return the columns that a distance looks at, before its last step stretches them."""
    return to_dense(apply_steps(leaf.steps[:-1], X))


@singledispatch
def _rule(e: Expression, leaf: Statistic) -> Expression:
    raise NoSlopeError(f"the operation {type(e).__name__} has no derivative here")


@_rule.register
def _(e: ex.Add, leaf: Statistic) -> Expression:
    return ex.add(*(slope(term, leaf) for term in e.terms))


@_rule.register
def _(e: ex.Mul, leaf: Statistic) -> Expression:
    terms = []
    for k, factor in enumerate(e.factors):
        others = e.factors[:k] + e.factors[k + 1 :]
        terms.append(_slopes_times(slope(factor, leaf), *others))
    return ex.add(*terms)


@_rule.register
def _(e: ex.Pow, leaf: Statistic) -> Expression:
    outer = ex.Constant(1.0) if e.exponent == 1 else ex.Pow(e.base, e.exponent - 1.0)
    return _slopes_times(ex.Constant(e.exponent), outer, slope(e.base, leaf))


@_rule.register
def _(e: ex.Exp, leaf: Statistic) -> Expression:
    return _slopes_times(slope(e.of, leaf), e)


@_rule.register
def _(e: ex.Sqrt, leaf: Statistic) -> Expression:
    return _slopes_times(ex.Constant(0.5), slope(e.of, leaf), ex.Pow(e, -1.0))


@_rule.register
def _(e: ex.MaternProfile, leaf: Statistic) -> Expression:
    if not e.nu > 1:
        raise NoSlopeError(
            f"Matern of nu={e.nu:g} has no derivative here; take nu = 0.5, or one above 1"
        )
    lower = ex.MaternProfile(e.of, e.nu - 1.0)  # m_nu'(r) = -r m_(nu-1)(r) / (2 (nu - 1))
    return _slopes_times(ex.Constant(-0.5 / (e.nu - 1.0)), e.of, lower, slope(e.of, leaf))


def _slopes_times(*factors: Expression) -> Expression:
    if any(isinstance(f, ex.Constant) and f.value == 0 for f in factors):
        return _ZERO
    return ex.multiply(*factors)


# --- parameter slopes ----------------------------------------------------------------------------
#
# The derivative of a kernel by the logarithm of each of its parameters: again a formula.
#
# Positive numbers of a kernel (scales, factors of products, constants, offsets, the alpha of a
# rational quadratic) can be learned by gradients. A rule for each class of kernel names them as
# `get_params` does, and writes the slope: kernels made of kernels pass on those of their parts by
# the chain rule, so that sums, products and powers of any depth need nothing of their own. Whole
# numbers (degrees, exponents), the nu of `Matern` and parameters that are zero are not learned;
# kernels without a rule have none.

Rewrite = Callable[[Expression], Expression]


@dataclass(frozen=True)
class ParameterSlope(ABC):
    """dk / d log(parameter): one formula, or one for each entry of the parameter.

    Attributes
    ----------
    outer : Expression
        Factor of the chain rule, or the whole derivative.
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
    """A formula. It is zero if not finite, since a square root of zero was differentiated."""


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
        Applied to its values.
    """

    inner: Expression
    function: Callable[[Array], Array]


@dataclass(frozen=True)
class Parameter:
    """A positive parameter of a kernel that can be learned.

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
    """Return the parameters of a kernel that can be learned, in the order of `get_params`.

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
    return [
        _parameter_slopes_times(each, "kernel", float(p), k ** (p - 1.0))
        for each in parameters(kernel.kernel)
    ]


@parameters.register
def _(kernel: algebra.Exponential) -> list[Parameter]:
    outer = kernel.expression()
    return [_parameter_slopes_times(each, "kernel", outer) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: algebra.PolynomialOf) -> list[Parameter]:
    k = kernel.kernel.expression()
    terms = [i * c * (k ** (i - 1.0)) for i, c in enumerate(kernel.coefficients) if i > 1 and c]
    first = float(kernel.coefficients[1]) if len(kernel.coefficients) > 1 else 0.0
    outer = ex.add(first, *terms)
    return [_parameter_slopes_times(each, "kernel", outer) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: algebra.On) -> list[Parameter]:
    return _after(kernel.kernel, ex.Columns(kernel.columns))


@parameters.register
def _(kernel: algebra.After) -> list[Parameter]:
    return _after(kernel.kernel, ex.Mapped(kernel.phi))


@parameters.register
def _(kernel: algebra.ScaledBy) -> list[Parameter]:
    outer = ex.RowProduct(ex.RowFunction(kernel.f))
    return [_parameter_slopes_times(each, "kernel", outer) for each in parameters(kernel.kernel)]


@parameters.register
def _(kernel: algebra.Normalized) -> list[Parameter]:
    k = kernel.kernel.expression()
    lengths = ex.RowProduct(ex.SelfValue(k, -0.5))
    found = []
    for each in parameters(kernel.kernel):
        moved = _parameter_slopes_times(each, "kernel", lengths)
        if isinstance(each.slope, FormulaSlope):  # other slopes are zero at k(x, x)
            own = ex.RowSum(ex.SelfValue(ex.Ratio(each.slope.outer, k)))
            less = ex.multiply(-0.5, k, lengths, own)
            moved = replace(moved, slope=FormulaSlope(ex.add(moved.slope.outer, less)))
        found.append(moved)
    return [] if algebra.is_homogeneous(k) else found  # whose factors normalizing takes back


def _positive(name: str, value: float, k: Expression) -> list[Parameter]:
    """Return a weight of the kernel, which is its own gradient; none if it is zero."""
    return [Parameter(name, (value,), FormulaSlope(k), is_weight=True)] if value > 0 else []


def _of_part(kernels: Sequence[Kernel], i: int, *outer: Expression | float) -> list[Parameter]:
    return [_parameter_slopes_times(each, f"k{i + 1}", *outer) for each in parameters(kernels[i])]


def _parameter_slopes_times(each: Parameter, part: str, *outer: Expression | float) -> Parameter:
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
