"""Keys that order nearest neighbors: the squared distance of feature space in its best form.

|phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y) loses digits twice: if points are close the
terms cancel, and if they are far a Gaussian kernel underflows, so that all far points tie. A kernel
that falls with one distance of the rows has the order of that distance, which loses nothing; the
linear kernel has the order of the squared distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends.reference.evaluate import matern_profile
from mercer.expression import (
    AbsDist,
    Add,
    ChiSq,
    Constant,
    Dot,
    Exp,
    Expression,
    MaternProfile,
    Mul,
    Pow,
    RowSum,
    SelfValue,
    SqDist,
    Sqrt,
    Statistic,
    multiply,
    walk,
)


@dataclass(frozen=True)
class Closeness:
    """An order of pairs.

    Attributes
    ----------
    key : Expression
        Small for close pairs.
    squared : callable
        Squared distances in feature space from keys; never falls where the key rises.
    direct : bool
        Whether the key is a distance of the rows, which loses no digits.
    """

    key: Expression
    squared: Callable[[Array], Array]
    direct: bool


def closeness(expression: Expression) -> Closeness:
    """Choose the form of the distance of feature space.

    Examples
    --------
    >>> from mercer.expression import Dot, Exp, SqDist
    >>> closeness(Exp(-0.5 * SqDist())).key
    SqDist(steps=())
    >>> closeness(3.0 * Dot() + 1.0).key
    SqDist(steps=())
    >>> type(closeness(Dot() ** 2).key).__name__
    'Add'
    """
    leaves = {part for part in walk(expression) if isinstance(part, Statistic)}
    if len(leaves) == 1:
        (leaf,) = leaves
        if isinstance(leaf, Dot) and (slope := _slope(expression)) > 0:
            return Closeness(SqDist(leaf.steps), lambda key: _times(slope, key), direct=True)
        if isinstance(leaf, SqDist | AbsDist | ChiSq) and _trend(expression).sign < 0:
            return Closeness(leaf, lambda key: _fall(expression, key), direct=True)
    own = RowSum(SelfValue(expression))
    return Closeness(
        own - multiply(2.0, expression), lambda key: np.maximum(key, 0.0), direct=False
    )


def _slope(expression: Expression) -> float:
    """Return a if the expression is a Dot + b, else 0."""
    if isinstance(expression, Dot):
        return 1.0
    if isinstance(expression, Add):
        parts = [part for part in expression.terms if not isinstance(part, Constant)]
        return sum(map(_slope, parts)) if all(map(_slope, parts)) else 0.0
    if isinstance(expression, Mul) and len(expression.factors) == 2:
        first, second = expression.factors
        return first.value * _slope(second) if isinstance(first, Constant) else 0.0
    return 0.0


def _times(slope: float, key: Array) -> Array:
    return key if slope == 1.0 else slope * key  # many keys: a copy takes its time


def _fall(expression: Expression, key: Array) -> Array:
    """Return 2 (g(0) - g(key)) for k(x, y) = g(distance), with the digits of small distances."""
    with np.errstate(all="ignore"):
        return np.maximum(2.0 * _drop(expression, key), 0.0)


# --- functions of one distance ---------------------------------------------------------------


class _Trend(NamedTuple):
    """How a function of s >= 0 runs: sign 1 rises, -1 falls, 0 is constant, NaN is unknown."""

    sign: float
    positive: bool


_UNKNOWN = _Trend(float("nan"), False)


@singledispatch
def _trend(e: Expression) -> _Trend:
    return _UNKNOWN


@_trend.register
def _(e: Statistic) -> _Trend:
    return _Trend(1.0, True)


@_trend.register
def _(e: Constant) -> _Trend:
    return _Trend(0.0, e.value >= 0)


@_trend.register
def _(e: Add) -> _Trend:
    trends = [_trend(term) for term in e.terms]
    return _together(trends, all(trend.positive for trend in trends))


@_trend.register
def _(e: Mul) -> _Trend:
    factor, rest = 1.0, []
    for part in e.factors:
        if isinstance(part, Constant):
            factor *= part.value
        else:
            rest.append(_trend(part))
    if len(rest) > 1 and not all(trend.positive for trend in rest):
        return _UNKNOWN
    together = _together(rest, all(trend.positive for trend in rest) and factor >= 0)
    return together._replace(sign=float(np.sign(factor)) * together.sign)


@_trend.register
def _(e: Exp) -> _Trend:
    return _Trend(_trend(e.of).sign, True)


@_trend.register
def _(e: Sqrt) -> _Trend:
    return _trend(e.of)


@_trend.register
def _(e: Pow) -> _Trend:
    base = _trend(e.base)
    return _Trend(float(np.sign(e.exponent)) * base.sign, True) if base.positive else _UNKNOWN


@_trend.register
def _(e: MaternProfile) -> _Trend:
    return _Trend(-_trend(e.of).sign, True)


def _together(trends: list[_Trend], positive: bool) -> _Trend:
    """Return the trend of a sum, or of a product of positive functions."""
    signs = {trend.sign for trend in trends if trend.sign != 0}
    if len(signs) > 1 or not all(abs(sign) == 1 for sign in signs):
        return _UNKNOWN
    return _Trend(signs.pop() if signs else 0.0, positive)


@singledispatch
def _profile(e: Expression, s: Array) -> Array:
    raise TypeError(f"no function of one distance: {e!r}")


@_profile.register
def _(e: Statistic, s: Array) -> Array:
    return s


@_profile.register
def _(e: Constant, s: Array) -> Array:
    return np.full_like(s, e.value)


@_profile.register
def _(e: Add, s: Array) -> Array:
    return np.asarray(np.sum([_profile(term, s) for term in e.terms], axis=0))


@_profile.register
def _(e: Mul, s: Array) -> Array:
    return np.asarray(np.prod([_profile(factor, s) for factor in e.factors], axis=0))


@_profile.register
def _(e: Exp, s: Array) -> Array:
    return np.exp(_profile(e.of, s))


@_profile.register
def _(e: Sqrt, s: Array) -> Array:
    return np.sqrt(_profile(e.of, s))


@_profile.register
def _(e: Pow, s: Array) -> Array:
    return np.asarray(_profile(e.base, s) ** e.exponent)


@_profile.register
def _(e: MaternProfile, s: Array) -> Array:
    return matern_profile(_profile(e.of, s), e.nu)


# --- how far a function of one distance falls ------------------------------------------------


@singledispatch
def _drop(e: Expression, s: Array) -> Array:
    """Return g(0) - g(s), by differences of the parts: for small s the values themselves cancel."""
    return np.asarray(_profile(e, np.zeros(1)) - _profile(e, s))


@_drop.register
def _(e: Statistic, s: Array) -> Array:
    return -s


@_drop.register
def _(e: Add, s: Array) -> Array:
    return np.asarray(np.sum([_drop(term, s) for term in e.terms], axis=0))


@_drop.register
def _(e: Mul, s: Array) -> Array:
    start, drop = np.ones(1), np.zeros_like(s)
    for factor in e.factors:  # ab - a'b' = (a - a') b + a' (b - b')
        here = _profile(factor, np.zeros(1))
        drop = drop * here + (start - drop) * _drop(factor, s)
        start = start * here
    return drop


@_drop.register
def _(e: Exp, s: Array) -> Array:
    return np.asarray(-np.exp(_profile(e.of, np.zeros(1))) * np.expm1(-_drop(e.of, s)))


@_drop.register
def _(e: Sqrt, s: Array) -> Array:
    start, end = (_profile(e, at) for at in (np.zeros(1), s))
    total = start + end
    return np.asarray(_drop(e.of, s) / np.where(total > 0, total, 1.0))


@_drop.register
def _(e: Pow, s: Array) -> Array:
    base = _profile(e.base, np.zeros(1))
    if not base > 0:
        return np.asarray(base**e.exponent - _profile(e, s))
    fall = e.exponent * np.log1p(-_drop(e.base, s) / base)
    return np.asarray(-(base**e.exponent) * np.expm1(fall))
