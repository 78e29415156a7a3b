"""Feature maps of kernels with infinitely many features: series, truncated with an error bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, singledispatch
from math import comb, exp, inf, prod
from typing import Any

import numpy as np
from scipy.special import betainc, gammainc, gammaln

from mercer import expression as ex
from mercer.array_types import Array, FrozenArray, Points
from mercer.backends import choose_backend
from mercer.backends.operands import apply_steps
from mercer.expression import Expression, Statistic
from mercer.kernels.features import (
    FeatureMap,
    dimension,
    feature_map,
    rows,
    symmetric_powers,
    width,
)
from mercer.resources import require_memory
from mercer.rows.points import as_points, column_names, is_objects, is_sparse, row_count, to_dense

# --- truncated map -------------------------------------------------------------------------------
#
# The feature map of a kernel with infinitely many features, cut off with a bound on the error.

_SMALLEST = 1e-13  # a hundred roundings of float64: a map cannot be better than its own sums
_WORKING = 3  # arrays of the size of the features that are held while they are made


@dataclass(frozen=True)
class TruncatedFeatureMap(FeatureMap):
    """phi with |k(x, y) - <phi(x), phi(y)>| <= tol on the rows it was made for.

    The remainder of the series is a kernel r = k - <phi, phi>, hence
    |r(x, y)| <= sqrt(r(x, x) r(y, y)): the error of a pair is bounded by what each row shows alone,
    `phi.error(X)`, at rows that were not given as well. For the Gaussian kernel r(x, x) is the
    probability that a Poisson number of mean |x - center|^2 / scale^2 exceeds the degree: no more
    than `tol` in the whole ball that holds the given rows.

    Parameters
    ----------
    expression : Expression
        The formula of <phi(x), phi(y)>.
    n_features : int
        Length of the rows x.
    exact : Expression
        The formula of k.
    tol : float
        Bound on the error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(-1, 1, 5)[:, None]
    >>> phi = Gaussian(1.0).features(X, tol=1e-6)
    >>> phi.dimension
    10
    >>> F = phi(X)
    >>> bool(np.abs(F @ F.T - Gaussian(1.0)(X)).max() <= phi.error(X).max() <= 1e-6)
    True
    """

    exact: Expression
    tol: float

    def __call__(self, X: Any) -> Any:
        """Return the features (n, dimension) in X's type."""
        _refuse_many(row_count(as_points(X)), self.dimension, self.tol)
        return super().__call__(X)

    def error(self, X: Any) -> Array:
        """Return k(x, x) - |phi(x)|^2 of every row, which is never negative: (n,).

        Two rows are compared with an error of at most the geometric mean of theirs.
        """
        points = _float64(as_points(X))
        features = super().__call__(X if column_names(X) else points).astype(np.float64)
        formula = ex.bind_columns(self.exact, column_names(X))
        own = choose_backend().diagonal(formula, points, np.float64)
        return np.asarray(np.maximum(own - np.square(features).sum(axis=1), 0.0))


def truncated_feature_map(expression: Expression, X: Any, tol: Any) -> FeatureMap:
    """Return the finite map of a kernel, or one with an error of at most tol on rows like X.

    Parameters
    ----------
    expression : Expression
        The formula of the kernel.
    X : array-like or sparse matrix of shape (n, d)
        Rows; their distances determine the number of terms.
    tol : float
        Bound on the error of a pair of rows.

    Returns
    -------
    FeatureMap
        A `TruncatedFeatureMap`, unless the map is finite.
    """
    if np.ndim(X) == 0 and not is_sparse(X):
        raise TypeError(
            f"features: with tol, pass rows X in place of the number {X!r}: the "
            "distances of the rows determine the number of features"
        )
    points = as_points(X)
    if is_objects(points):
        raise TypeError("features: X holds strings or lists; a series needs rows of numbers")
    finite = feature_map(expression, points.shape[1])
    if finite is not None:
        return finite
    points = _float64(points)
    if not row_count(points):
        raise ValueError("features: X has no rows; pass at least one")
    if not np.isfinite(points.data if is_sparse(points) else points).all():
        raise ValueError("features: X holds values that are not finite; remove or fill these rows")
    bound = ex.bind_columns(expression, column_names(X))
    size = largest(bound, points)
    if not np.isfinite(size):
        raise ValueError("features: k(x, x) is beyond float64 for some row of X; scale the rows")
    least = _SMALLEST * size
    real = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    if not real or not 0.0 < float(tol) < np.inf or float(tol) < least:
        raise ValueError(
            f"features: tol={tol!r} must be a positive number, and at least {least:.1g}, the "
            "rounding of k(x, x) on these rows"
        )
    made = truncated(bound, points, float(tol))
    found = TruncatedFeatureMap(made, points.shape[1], bound, float(tol))
    _refuse_many(row_count(points), found.dimension, float(tol))
    return found


def _refuse_many(n: int, dimension: int, tol: float) -> None:
    """Raise for features that exceed the memory."""
    shown = f"{dimension:,}" if dimension < 10**15 else f"{dimension:.1e}"
    require_memory(
        _WORKING * 8 * n * dimension,
        f"features: an error of {tol:g} needs {shown} features for each of {n} rows, which",
        "Take a larger tol or scale, fewer columns (k.on), or fewer rows at a time; or take "
        "features from the rows: kernels.eigenfunctions(k, X, n_components).features",
    )


def _float64(points: Points) -> Points:
    return points.astype(np.float64, copy=False)


# --- series --------------------------------------------------------------------------------------
#
# Series of features, cut off: the nodes that stand where a formula has infinitely many features.
#
# Each is a kernel with finitely many features, and its remainder is a kernel as well: the
# rest of the same series. With F the features of the node inside (`CenteredDot`: the rows
# themselves), u = F/|F| and u^(p) all monomials of degree p in u with the roots of their
# multinomials:
#
# ===================  ==============================================================
# node                 features, p = 0, 1, ..., degree
# ===================  ==============================================================
# `ExpSeries`          |F|^p / sqrt(p!) u^(p), times exp(-|F|^2 / 2) if `damped`
# `RationalSeries`     c_pn(|F|) u^(p), n = 0, 1, ..., orders[p]
# ===================  ==============================================================
#
# The damped series is the Gaussian kernel's: exp(-|F - G|^2 / 2) is exp(-|F|^2 / 2) exp(-|G|^2 /
# 2) sum_p (F'G)^p / p!. Lengths and directions are kept apart, so that no power overflows before
# it meets the number that makes it small.


@dataclass(frozen=True)
class CenteredDot(Statistic):
    """Sum of (x_i - centre_i) (y_i - centre_i) factor^2."""

    centre: FrozenArray = field(default_factory=lambda: FrozenArray([0.0]))
    factor: float = 1.0


@dataclass(frozen=True)
class ExpSeries(Expression):
    """sum_p of^p / p! up to a degree; `damped` by exp(-of(x, x) / 2) and the same of y."""

    of: Expression
    degree: int
    damped: bool


@dataclass(frozen=True)
class RationalSeries(Expression):
    """(1 + |F - G|^2 / 2)^(-alpha), F and G the features of `of`, as a double series.

    With p = (1 + |F|^2) / 2 and q the same of y, the kernel is the sum over m of
    (alpha)_m / m! (F'G)^m (p + q)^(-alpha - m), and (p + q)^(-b) the sum over n of
    (b)_n / n! (ab)^n ((1 - a) (1 - b))^b / (2 middle)^b, where a = (p - middle) / (p + middle) and
    b the same of q. All of its coefficients are positive.

    Attributes
    ----------
    of : Expression
        A node with finitely many features F.
    alpha : float
        The exponent.
    middle : float
        Positive.
    orders : tuple of int
        The largest n for each m.
    """

    of: Expression
    alpha: float
    middle: float
    orders: tuple[int, ...]


@dimension.register
def _(e: CenteredDot, d: int) -> int | None:
    return width(e.steps, d)


@dimension.register
def _(e: ExpSeries, d: int) -> int | None:
    inner = dimension(e.of, d)
    return None if inner is None else comb(inner + e.degree, e.degree)


@dimension.register
def _(e: RationalSeries, d: int) -> int | None:
    inner = dimension(e.of, d)
    if inner is None:
        return None
    return sum((n + 1) * monomials(inner, m) for m, n in enumerate(e.orders))


def monomials(columns: int, degree: int) -> int:
    """Count the monomials of a degree."""
    return comb(columns + degree - 1, degree) if columns else int(degree == 0)


@rows.register
def _(e: CenteredDot, X: Points) -> Any:
    return (to_dense(apply_steps(e.steps, X)) - e.centre.array) * e.factor


@rows.register
def _(e: ExpSeries, X: Points) -> Any:
    lengths, unit = directions(to_dense(rows(e.of, X)))
    squares = np.square(lengths) if e.damped else np.zeros(len(lengths))
    out, end = np.empty((row_count(X), comb(unit.shape[1] + e.degree, e.degree))), 0
    for p, block in enumerate(symmetric_powers(unit, e.degree)):
        start, end = end, end + block.shape[1]
        size = np.exp(_power(lengths, p) - gammaln(p + 1) / 2 - squares / 2)
        np.multiply(block, size[:, None], out=out[:, start:end])
    return out


@rows.register
def _(e: RationalSeries, X: Points) -> Any:
    lengths, unit = directions(to_dense(rows(e.of, X)))
    a, less = position(lengths, e.middle)
    parts = []
    for m, block in enumerate(symmetric_powers(unit, len(e.orders) - 1)):
        b, n = e.alpha + m, np.arange(e.orders[m] + 1)
        size = (gammaln(b) - gammaln(e.alpha) - gammaln(m + 1) - b * np.log(2 * e.middle)) / 2
        size = np.exp(size + _power(lengths, m) + b * np.log(less))
        steps = np.exp((gammaln(b + n) - gammaln(b) - gammaln(n + 1)) / 2)
        powers = np.power(a[:, None], n) * (steps * size[:, None])
        parts.append((block[:, :, None] * powers[:, None, :]).reshape(len(block), -1))
    return np.concatenate(parts, axis=1)


def directions(F: Array) -> tuple[Array, Array]:
    """Return the lengths of rows and the rows of length one; rows of zeros stay zero."""
    largest = np.abs(F).max(axis=1, initial=0.0)
    scaled = F / np.where(largest > 0, largest, 1.0)[:, None]  # no square over- or underflows
    norms = np.sqrt(np.square(scaled).sum(axis=1))
    return largest * norms, scaled / np.where(norms > 0, norms, 1.0)[:, None]


def position(lengths: Array, middle: float) -> tuple[Array, Array]:
    """Return a = (p - middle) / (p + middle) for p = (1 + |F|^2) / 2, and 1 - a."""
    p = 0.5 + np.square(lengths) / 2
    return (p - middle) / (p + middle), 2 * middle / (p + middle)


def _power(lengths: Array, p: int) -> Array:
    """Return log |F|^p, 0 for p = 0."""
    with np.errstate(divide="ignore"):
        return p * np.log(lengths) if p else np.zeros(len(lengths))


# --- truncate ------------------------------------------------------------------------------------
#
# Truncate the series of a kernel, so that the remainder is small on given rows.
#
# The remainder of a series is a kernel r of its own, so |r(x, y)| <= sqrt(r(x, x) r(y, y)), and
# only r(x, x) must be small. One rule per node bounds the remainders of its parts:
#
# ====================  =========================================================================
# node                  r(x, x) is at most tol if
# ====================  =========================================================================
# `Add`                 each of m series leaves out tol / m
# `Mul`                 each of m leaves out tol / (m M), M the largest product of the other factors
# `Pow(e, p)`           e leaves out tol / (p M^(p-1)), M the largest e(x, x)
# `Exp(e)`              e leaves out tol / (2 exp(M)), and the terms beyond p are
#                       sum_(q > p) M^q / q! <= tol / 2
# `Exp(-c SqDist)`      P(N > degree) <= tol for a Poisson number N of mean 2 c |x - center|^2
# ====================  =========================================================================

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
    """Return exp(-rate |x - y|^2) by the damped series of sqrt(2 rate) (x - center)."""
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
    """Return the node of sqrt(2 rate) (x - center), and the lengths of its rows."""
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
