"""Cut the series of a kernel off, so that what is left out is small on given rows.

What a series leaves out is a kernel r of its own, so |r(x, y)| <= sqrt(r(x, x) r(y, y)), and only
r(x, x) need be small. One rule per node says what its parts may leave out:

====================  =========================================================================
node                  r(x, x) is at most tol if
====================  =========================================================================
`Add`                 each of m series leaves out tol / m
`Mul`                 each of m leaves out tol / (m M), M the largest product of the other factors
`Pow(e, p)`           e leaves out tol / (p M^(p-1)), M the largest e(x, x)
`Exp(e)`              e leaves out tol / (2 exp(M)), and the terms beyond p are
                      sum_(q > p) M^q / q! <= tol / 2
`Exp(-c SqDist)`      P(N > degree) <= tol for a Poisson number N of mean 2 c |x - centre|^2
====================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from math import exp, inf, prod

import numpy as np
from scipy.special import betainc, gammainc

from mercer import expression as ex
from mercer.array_types import Array, FrozenArray, Points
from mercer.backends import choose_backend
from mercer.backends.lowering.inputs import apply_steps
from mercer.expression import Expression
from mercer.kernels.expansion.series import (
    CenteredDot,
    ExpSeries,
    RationalSeries,
    directions,
    position,
)
from mercer.kernels.features import dimension, rows
from mercer.points import row_count, to_dense

_LARGEST_DEGREE = 1 << 16  # a degree beyond it has more features than any memory in two columns
_ROOM = 0.5  # of tol goes to each of two places where a series is cut


class NoSeriesError(ValueError):
    """A part of a kernel has no series of features that is known; the message names it."""


def truncated(e: Expression, X: Points, tol: float) -> Expression:
    """Return the formula with its series cut off, so that r(x, x) <= tol for the rows of X.

    Parameters
    ----------
    e : Expression
        The formula of a kernel, columns by number.
    X : Points
        Rows of numbers.
    tol : float
        Positive.

    Returns
    -------
    Expression
        One with finitely many features.
    """
    if dimension(e, X.shape[1]) is not None:
        return e
    return _cut(e, X, tol)


@singledispatch
def _cut(e: Expression, X: Points, tol: float) -> Expression:
    raise _unknown(type(e).__name__)


def _unknown(part: str) -> NoSeriesError:
    return NoSeriesError(
        f"features: no series of features is known for {part} in this kernel; take features from "
        "the rows instead: kernels.eigenfunctions(k, X, n_components).features"
    )


@_cut.register
def _(e: ex.Add, X: Points, tol: float) -> Expression:
    share = tol / max(1, sum(_is_series(term, X) for term in e.terms))
    return ex.Add(tuple(truncated(term, X, share) for term in e.terms))


@_cut.register
def _(e: ex.Mul, X: Points, tol: float) -> Expression:
    sizes = [largest(factor, X) for factor in e.factors]
    share = tol / max(1, sum(_is_series(factor, X) for factor in e.factors))
    others = [prod(sizes[:i] + sizes[i + 1 :]) for i in range(len(sizes))]
    parts = zip(e.factors, others, strict=True)
    return ex.Mul(tuple(truncated(factor, X, _over(share, M)) for factor, M in parts))


@_cut.register
def _(e: ex.Pow, X: Points, tol: float) -> Expression:
    shape = _rational(e)
    if shape is not None:
        return _rational_series(*shape, X, tol)
    if e.exponent < 1 or e.exponent != round(e.exponent):
        raise _unknown(f"the power {e.exponent:g}")
    if isinstance(e.base, ex.Exp):  # a Gaussian again, of another scale
        return truncated(ex.Exp(ex.multiply(e.exponent, e.base.of)), X, tol)
    share = _over(tol, e.exponent * largest(e.base, X) ** (e.exponent - 1))
    return ex.Pow(truncated(e.base, X, share), e.exponent)


@_cut.register
def _(e: ex.Exp, X: Points, tol: float) -> Expression:
    terms = e.of.terms if isinstance(e.of, ex.Add) else (e.of,)
    if any(_distance(term) or isinstance(term, ex.Constant) for term in terms) and len(terms) > 1:
        return truncated(ex.multiply(*(_exp(term) for term in terms)), X, tol)
    distance = _distance(e.of)
    if distance is not None:
        return _gaussian_series(*distance, X, tol)
    if isinstance(e.of, ex.Mul) and _is_negative(e.of.factors[0]):
        raise _unknown(f"exp(-c {type(e.of.factors[-1]).__name__})")
    M = largest(e.of, X)
    whole = float(np.exp(M))
    if dimension(e.of, X.shape[1]) is not None:
        return ExpSeries(e.of, _degree(partial(_exponential_tail, M), tol), damped=False)
    inner = truncated(e.of, X, _ROOM * tol / whole)
    degree = _degree(partial(_exponential_tail, M), _ROOM * tol)
    return ExpSeries(inner, degree, damped=False)


def _is_negative(e: Expression) -> bool:
    return isinstance(e, ex.Constant) and e.value < 0


def _exp(term: Expression) -> Expression:
    return ex.Constant(exp(term.value)) if isinstance(term, ex.Constant) else ex.Exp(term)


# --- kernels of a squared distance: rows are seen from the middle of their range -----------------


def _gaussian_series(leaf: ex.SqDist, rate: float, X: Points, tol: float) -> ExpSeries:
    """Return exp(-rate |x - y|^2) by the damped series of sqrt(2 rate) (x - centre)."""
    base, lengths = _centered(leaf, rate, X)
    mean = float(np.square(lengths).max(initial=0.0))
    return ExpSeries(base, _degree(partial(_poisson_tail, mean), tol), damped=True)


def _rational_series(
    leaf: ex.SqDist, rate: float, alpha: float, X: Points, tol: float
) -> RationalSeries:
    """Return (1 + rate |x - y|^2)^(-alpha); both sums have negative binomial terms."""
    base, lengths = _centered(leaf, rate, X)
    square = float(np.square(lengths).max(initial=0.0))
    middle = 0.5 * np.sqrt(1 + square)  # of the smallest and the largest p, as ratios go
    a = float(np.abs(position(np.array([0.0, np.sqrt(square)]), middle)[0]).max())
    half = _ROOM * tol
    degree = _degree(partial(_binomial_tail, alpha, square / (1 + square)), half)
    shapes = alpha + np.arange(degree + 1)
    orders = [_degree(partial(_binomial_tail, b, a * a), half) for b in shapes]
    return RationalSeries(base, alpha, float(middle), tuple(orders))


def _poisson_tail(mean: float, p: int) -> float:
    """Return P(N > p) of a Poisson number."""
    return float(gammainc(p + 1, mean))


def _exponential_tail(M: float, p: int) -> float:
    """Return the sum of M^q / q! over q > p."""
    return float(np.exp(M)) * _poisson_tail(M, p)


def _binomial_tail(shape: float, share: float, n: int) -> float:
    """Return P(N > n), where P(N = n) = (shape)_n / n! share^n (1 - share)^shape."""
    return float(betainc(n + 1, shape, share))


def _centered(leaf: ex.SqDist, rate: float, X: Points) -> tuple[CenteredDot, Array]:
    """Return the node of sqrt(2 rate) (x - centre), and the lengths of its rows."""
    Z = to_dense(apply_steps(leaf.steps, X))
    centre = Z.min(axis=0) / 2 + Z.max(axis=0) / 2
    base = CenteredDot(leaf.steps, FrozenArray(centre), float(np.sqrt(2 * rate)))
    return base, directions(rows(base, X))[0]


def _distance(e: Expression) -> tuple[ex.SqDist, float] | None:
    """Return (leaf, rate) of -rate SqDist, or None."""
    if isinstance(e, ex.Mul) and len(e.factors) == 2:
        constant, leaf = e.factors
        if isinstance(constant, ex.Constant) and isinstance(leaf, ex.SqDist) and constant.value < 0:
            return leaf, -constant.value
    return None


def _rational(e: ex.Pow) -> tuple[ex.SqDist, float, float] | None:
    """Return (leaf, rate, alpha) of (1 + rate SqDist)^(-alpha), or None."""
    if not (e.exponent < 0 and isinstance(e.base, ex.Add) and len(e.base.terms) == 2):
        return None
    term, one = e.base.terms
    if one != ex.Constant(1.0):
        return None
    distance = _distance(ex.multiply(-1.0, term))
    return None if distance is None else (*distance, -e.exponent)


# --- sizes ---------------------------------------------------------------------------------------


def _degree(rest: Callable[[int], float], tol: float) -> int:
    """Return the smallest degree whose rest, which falls with it, is at most tol."""
    high = 1
    while rest(high) > tol:
        high *= 2
        if high > _LARGEST_DEGREE:
            raise ValueError(
                f"features: more than {_LARGEST_DEGREE} terms of the series are needed, since rows "
                "lie very far apart in units of the kernel's scale; take a larger scale, or scale "
                "the rows"
            )
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rest(middle) > tol else (low, middle)
    return high


def _is_series(e: Expression, X: Points) -> bool:
    return dimension(e, X.shape[1]) is None


def largest(e: Expression, X: Points) -> float:
    """Return the largest |e(x, x)| of the rows."""
    if not row_count(X):
        return 0.0
    return float(np.abs(choose_backend().diagonal(e, X, np.float64)).max())


def _over(tol: float, M: float) -> float:
    return tol / M if M > 0 else inf
