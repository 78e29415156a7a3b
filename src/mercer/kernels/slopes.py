"""The derivative of a kernel's formula by one of its pairwise statistics: again a formula.

A kernel of a distance is k = e(D). By the chain rule its derivative by a scale inside D is
e'(D) dD, and e' is written here once for every operation, so that gradients of sums and products of
such kernels need no rule of their own. Row terms, k(x, x), see D = 0 whatever the scales are: their
derivative is zero.
"""

from __future__ import annotations

from functools import singledispatch

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.backends.lowering.inputs import apply_steps
from mercer.expression import Expression, Statistic, walk
from mercer.points import to_dense

_ZERO = ex.Constant(0.0)


class NoSlopeError(ValueError):
    """There is no rule for the derivative of an operation; the message names it."""


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
        terms.append(_times(slope(factor, leaf), *others))
    return ex.add(*terms)


@_rule.register
def _(e: ex.Pow, leaf: Statistic) -> Expression:
    outer = ex.Constant(1.0) if e.exponent == 1 else ex.Pow(e.base, e.exponent - 1.0)
    return _times(ex.Constant(e.exponent), outer, slope(e.base, leaf))


@_rule.register
def _(e: ex.Exp, leaf: Statistic) -> Expression:
    return _times(slope(e.of, leaf), e)


@_rule.register
def _(e: ex.Sqrt, leaf: Statistic) -> Expression:
    return _times(ex.Constant(0.5), slope(e.of, leaf), ex.Pow(e, -1.0))


@_rule.register
def _(e: ex.MaternProfile, leaf: Statistic) -> Expression:
    if not e.nu > 1:
        raise NoSlopeError(
            f"Matern of nu={e.nu:g} has no derivative here; take nu = 0.5, or one above 1"
        )
    lower = ex.MaternProfile(e.of, e.nu - 1.0)  # m_nu'(r) = -r m_(nu-1)(r) / (2 (nu - 1))
    return _times(ex.Constant(-0.5 / (e.nu - 1.0)), e.of, lower, slope(e.of, leaf))


def _times(*factors: Expression) -> Expression:
    if any(isinstance(f, ex.Constant) and f.value == 0 for f in factors):
        return _ZERO
    return ex.multiply(*factors)
