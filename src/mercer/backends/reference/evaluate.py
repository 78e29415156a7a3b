"""Evaluation of expressions and row terms in NumPy: the specification of the language."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy import special

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends.operands import apply_steps, operand
from mercer.expression import (
    AbsDist,
    Add,
    ChiSq,
    Constant,
    Dot,
    Exp,
    Expression,
    MaternProfile,
    MinSum,
    Mul,
    Opaque,
    Pow,
    Ratio,
    RowFunction,
    RowProduct,
    RowSum,
    RowTerm,
    SelfValue,
    SqDist,
    Sqrt,
    Statistic,
    SubsetProduct,
    SymmetricSum,
    Tanh,
)
from mercer.rows.points import row_count, take, to_dense, to_host

# --- evaluate ------------------------------------------------------------------------------------
#
# Every node of an expression in NumPy, one rule per node: read them against the formulas. They
# work on whole blocks in float64; `backend.py` decides how large blocks are.

_NOTHING_LEFT = 1e6  # m_nu(r) is zero long before, for any nu that a kernel may have


@singledispatch
def evaluate(expression: Expression, X: Points, Y: Points) -> Array:
    """Return the matrix e(x_i, y_j) in float64."""
    raise TypeError(f"unknown expression {expression!r}")


@evaluate.register
def _(e: Constant, X: Points, Y: Points) -> Array:
    return np.full((row_count(X), row_count(Y)), e.value)


@evaluate.register
def _(e: Add, X: Points, Y: Points) -> Array:
    return sum(evaluate(t, X, Y) for t in e.terms)  # type: ignore[return-value]


@evaluate.register
def _(e: Mul, X: Points, Y: Points) -> Array:
    product = evaluate(e.factors[0], X, Y)
    for factor in e.factors[1:]:
        product = product * evaluate(factor, X, Y)
    return product


@evaluate.register
def _(e: Pow, X: Points, Y: Points) -> Array:
    return evaluate(e.base, X, Y) ** e.exponent


@evaluate.register
def _(e: Exp, X: Points, Y: Points) -> Array:
    return np.exp(evaluate(e.of, X, Y))


@evaluate.register
def _(e: Sqrt, X: Points, Y: Points) -> Array:
    return np.sqrt(evaluate(e.of, X, Y))


@evaluate.register
def _(e: Tanh, X: Points, Y: Points) -> Array:
    return np.tanh(evaluate(e.of, X, Y))


@evaluate.register
def _(e: Ratio, X: Points, Y: Points) -> Array:
    above, below = evaluate(e.above, X, Y), evaluate(e.below, X, Y)
    both_zero = (above == 0) & (below == 0)
    return np.where(both_zero, 1.0, above / np.where(both_zero, 1.0, below))


@evaluate.register
def _(e: MaternProfile, X: Points, Y: Points) -> Array:
    return matern_profile(evaluate(e.of, X, Y), e.nu)


@evaluate.register
def _(e: RowProduct, X: Points, Y: Points) -> Array:
    return np.multiply.outer(row_values(e.row, X), row_values(e.row, Y))


@evaluate.register
def _(e: RowSum, X: Points, Y: Points) -> Array:
    return np.add.outer(row_values(e.row, X), row_values(e.row, Y))


@evaluate.register
def _(e: Opaque, X: Points, Y: Points) -> Array:
    deadline.check()
    values = e.function(to_host(apply_steps(e.steps, X)), to_host(apply_steps(e.steps, Y)))
    values = to_dense(values)
    if values.shape != (row_count(X), row_count(Y)):
        raise ValueError(
            f"the kernel function {e.function!r} must return the matrix of two blocks of rows: "
            f"expected shape {(row_count(X), row_count(Y))}, got {values.shape}"
        )
    return values


@evaluate.register
def _(e: Statistic, X: Points, Y: Points) -> Array:
    deadline.check()
    return compare(e, to_dense(operand(e, X)), to_dense(operand(e, Y)))


# --- pairwise statistics on dense float64 rows -----------------------------------------------


@singledispatch
def compare(statistic: Statistic, X: Array, Y: Array) -> Array:
    """Return the statistic of every pair of rows."""
    raise TypeError(f"unknown statistic {statistic!r}")


@compare.register
def _(s: Dot, X: Array, Y: Array) -> Array:
    return X @ Y.T


@compare.register
def _(s: SqDist, X: Array, Y: Array) -> Array:
    return _by_column(X, Y, lambda x, y: (x - y) ** 2)


@compare.register
def _(s: AbsDist, X: Array, Y: Array) -> Array:
    return _by_column(X, Y, lambda x, y: np.abs(x - y))


@compare.register
def _(s: MinSum, X: Array, Y: Array) -> Array:
    return _by_column(X, Y, np.minimum)


@compare.register
def _(s: ChiSq, X: Array, Y: Array) -> Array:
    def term(x: Array, y: Array) -> Array:
        total = x + y
        return (x - y) ** 2 / np.where(total > 0, total, 1.0)

    return _by_column(X, Y, term)


@compare.register
def _(s: SubsetProduct, X: Array, Y: Array) -> Array:
    product = np.ones((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        product *= 1.0 + np.multiply.outer(x, y)
    return product


@compare.register
def _(s: SymmetricSum, X: Array, Y: Array) -> Array:
    if s.degree > X.shape[1]:
        return np.zeros((len(X), len(Y)))  # there are no such sets
    sums = np.zeros((s.degree + 1, len(X), len(Y)))  # elementary symmetric sums so far
    sums[0] = 1.0
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        sums[1:] += np.multiply.outer(x, y) * sums[:-1]  # reads the old sums: no overlap in time
    return np.asarray(sums[-1])


def _by_column(X: Array, Y: Array, term: Any) -> Array:
    total = np.zeros((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        total += term(x[:, None], y[None, :])
    return total


def matern_profile(r: Array, nu: float) -> Array:
    """Return m_nu(r) = 2^(1-nu)/Gamma(nu) r^nu K_nu(r), continued by 1 at r = 0.

    Large orders come from the recurrence of the Bessel functions, written for m itself: there
    m_{v+1} = m_v + r^2 / (4 v (v - 1)) m_{v-1} has positive terms only and cannot overflow.
    """
    r = np.minimum(r, _NOTHING_LEFT)
    if nu < 2.0:
        return _matern_directly(r, nu)
    v = nu - int(nu) + 1.0  # in [1, 2)
    before, now = _matern_directly(r, v), _matern_directly(r, v + 1.0)
    for _ in range(int(nu) - 2):
        v += 1.0
        before, now = now, now + r * r / (4.0 * v * (v - 1.0)) * before
    return now


def _matern_directly(r: Array, nu: float) -> Array:
    """Evaluate the formula; below 1e-30 it is 1 to working precision, and K_nu overflows."""
    positive = np.where(r > 1e-30, r, 1.0)
    log_value = (
        (1.0 - nu) * np.log(2.0)
        - special.gammaln(nu)
        + nu * np.log(positive)
        + np.log(special.kve(nu, positive))
        - positive
    )
    return np.where(r > 1e-30, np.exp(log_value), 1.0)


# --- values of single rows -------------------------------------------------------------------


def row_values(row: RowTerm, X: Points) -> Array:
    """Return the row term u(x_i) for every row, in float64."""
    if isinstance(row, RowFunction):
        values = np.asarray(row.function(to_host(apply_steps(row.steps, X))), dtype=np.float64)
        if values.shape != (row_count(X),):
            raise ValueError(
                f"the row function {row.function!r} must return one number per row: "
                f"expected shape {(row_count(X),)}, got {values.shape}"
            )
        return values
    return self_power(row, diagonal(row.expression, X))


def self_power(row: SelfValue, values: Array) -> Array:
    """Raise e(x, x) to the power of the row term; a negative power of (almost) nothing is 0.

    Almost nothing is a number below the normal range: products of two such powers overflow.
    """
    if row.power >= 0:
        return np.asarray(values**row.power)
    positive = values >= np.finfo(np.float64).tiny
    return np.where(positive, np.where(positive, values, 1.0) ** row.power, 0.0)


def diagonal(expression: Expression, X: Points) -> Array:
    """Return e(x_i, x_i) for every row: from the function itself, or of small blocks."""
    if isinstance(expression, Opaque) and hasattr(expression.function, "self_values"):
        return np.asarray(expression.function.self_values(apply_steps(expression.steps, X)))
    n = row_count(X)
    out = np.empty(n)
    for start in range(0, n, 64):
        block = take(X, slice(start, start + 64))
        out[start : start + 64] = np.diagonal(evaluate(expression, block, block))
    return out
