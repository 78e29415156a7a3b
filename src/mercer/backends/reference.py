"""The specification: every node of the language in NumPy, short and obviously right.

`evaluate` has one rule per node; read it against the formulas. Other backends are tested against
this one (`mercer.testing.check_backend`). Rows are handled in blocks, so that differences of all
pairs of rows never exist at once.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy import linalg, special

from mercer._points import row_count, take, to_dense
from mercer._types import Array, Index, Points
from mercer.backends.contract import Backend, Band, Pairs, Poll
from mercer.backends.inputs import apply_steps, operand
from mercer.backends.interruptible import interruptible
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

_BLOCK_ENTRIES = 1 << 22  # entries of one block of K held at a time by products

# --- expressions: one rule per node ----------------------------------------------------------


@singledispatch
def evaluate(expression: Expression, X: Points, Y: Points) -> Array:
    """Give the matrix e(x_i, y_j) in float64."""
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
    values = e.function(apply_steps(e.steps, X), apply_steps(e.steps, Y))
    values = to_dense(values)
    if values.shape != (row_count(X), row_count(Y)):
        raise ValueError(
            f"the kernel function {e.function!r} must return the matrix of two blocks of rows: "
            f"expected shape {(row_count(X), row_count(Y))}, got {values.shape}"
        )
    return values


@evaluate.register
def _(e: Statistic, X: Points, Y: Points) -> Array:
    return compare(e, to_dense(operand(e, X)), to_dense(operand(e, Y)))


# --- pairwise statistics on dense float64 rows -----------------------------------------------


@singledispatch
def compare(statistic: Statistic, X: Array, Y: Array) -> Array:
    """Give the statistic of every pair of rows."""
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
        product *= 1.0 + np.multiply.outer(x, y)
    return product


@compare.register
def _(s: SymmetricSum, X: Array, Y: Array) -> Array:
    sums = np.zeros((s.degree + 1, len(X), len(Y)))  # elementary symmetric sums so far
    sums[0] = 1.0
    for x, y in zip(X.T, Y.T, strict=True):
        sums[1:] += np.multiply.outer(x, y) * sums[:-1]  # reads the old sums: no overlap in time
    return np.asarray(sums[-1])


def _by_column(X: Array, Y: Array, term: Any) -> Array:
    total = np.zeros((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        total += term(x[:, None], y[None, :])
    return total


def matern_profile(r: Array, nu: float) -> Array:
    """Give m_nu(r) = 2^(1-nu)/Gamma(nu) r^nu K_nu(r), continued by 1 at r = 0.

    Large orders come from the recurrence of the Bessel functions, written for m itself: there
    m_{v+1} = m_v + r^2 / (4 v (v - 1)) m_{v-1} has positive terms only and cannot overflow.
    """
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
    """Give the row term u(x_i) for every row, in float64."""
    if isinstance(row, RowFunction):
        values = np.asarray(row.function(apply_steps(row.steps, X)), dtype=np.float64)
        if values.shape != (row_count(X),):
            raise ValueError(
                f"the row function {row.function!r} must return one number per row: "
                f"expected shape {(row_count(X),)}, got {values.shape}"
            )
        return values
    return _self_power(diagonal(row.expression, X), row)


def _self_power(values: Array, row: SelfValue) -> Array:
    if row.power >= 0:
        return values**row.power
    positive = values > 0
    return np.where(positive, np.where(positive, values, 1.0) ** row.power, 0.0)


def diagonal(expression: Expression, X: Points) -> Array:
    """Give e(x_i, x_i) for every row: the diagonal of small blocks."""
    n = row_count(X)
    out = np.empty(n)
    for start in range(0, n, 64):
        block = take(X, slice(start, start + 64))
        out[start : start + 64] = np.diagonal(evaluate(expression, block, block))
    return out


# --- the backend -----------------------------------------------------------------------------


class ReferencePairs(Pairs):
    """An expression bound to points, evaluated by NumPy."""

    def __init__(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> None:
        self._expression, self._X, self._Y = expression, X, X if Y is None else Y
        self._symmetric = Y is None
        self.shape = (row_count(X), row_count(self._Y))
        self.dtype = np.dtype(dtype)

    def rows(self, index: Index) -> Array:
        """Evaluate rows; overflow gives infinity, silently, as compiled code does."""
        with np.errstate(all="ignore"):
            block = evaluate(self._expression, take(self._X, index), self._Y)
            return block.astype(self.dtype, copy=False)

    def dense(self) -> Array:
        """Evaluate everything; one triangle is copied to the other, so symmetry is exact."""
        out = np.empty(self.shape, dtype=self.dtype)
        for part in self._blocks():
            out[part] = self.rows(part)
        if self._symmetric:
            upper = np.triu_indices(len(out), 1)
            out.T[upper] = out[upper]
        return out

    def matmul(self, V: Array) -> Array:
        """Multiply block by block."""
        V = np.asarray(V, dtype=np.float64)
        out = np.empty((self.shape[0], *V.shape[1:]))
        for part in self._blocks():
            with np.errstate(all="ignore"):
                out[part] = evaluate(self._expression, take(self._X, part), self._Y) @ V
        return out

    def _blocks(self) -> list[slice]:
        n, m = self.shape
        height = max(1, _BLOCK_ENTRIES // max(1, m))
        return [slice(i, min(n, i + height)) for i in range(0, n, height)]


class Reference(Backend):
    """NumPy and SciPy, on the host."""

    name = "reference"

    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points."""
        return ReferencePairs(expression, X, Y, dtype)

    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Evaluate e(x_i, x_i)."""
        with np.errstate(all="ignore"):
            return diagonal(expression, X).astype(dtype, copy=False)

    def cholesky(self, A: Array) -> int:
        """Factor by LAPACK: the upper triangle of A' is the lower triangle of A."""
        _, info = interruptible(linalg.lapack.dpotrf, A.T, lower=0, clean=0, overwrite_a=1)
        return int(info)

    def band_reduce(self, A: Array, width: int) -> Band:
        """Householder steps on panels of `width` columns."""
        return band_reduce(A, width)

    def band_inverse_diagonals(self, band: Band, shifts: Array) -> Array:
        """Solve with each shifted band."""
        out = np.full((len(shifts), len(band.Qt)), np.nan)
        for row, shift in zip(out, shifts, strict=True):
            try:
                factor = linalg.cholesky_banded(_shifted_lower(band, shift), lower=True)
            except linalg.LinAlgError:
                continue
            Y = linalg.solve_banded((band.width, 0), factor, band.Qt)
            row[:] = np.einsum("ij,ij->j", Y, Y)
        return out

    def smo(
        self,
        K: Array,
        linear: Array,
        lower: Array,
        upper: Array,
        start: Array,
        tol: float,
        max_iter: int,
        poll: Poll | None,
    ) -> tuple[Array, int, float]:
        """Run the loop of `smo` on rows of the stored matrix."""
        return smo(lambda i: K[i], np.diagonal(K), linear, lower, upper, start, tol, max_iter, poll)


def _shifted_lower(band: Band, shift: float) -> Array:
    lower = band.lower.T.copy()
    lower[0] += shift
    return lower


def band_reduce(A: Array, width: int) -> Band:
    """Reduce A to band form: QR of each panel below the band, applied from both sides."""
    n = len(A)
    Qt = np.eye(n)
    for j in range(0, n - width - 1, width):
        below, panel = slice(j + width, n), slice(j, j + width)
        Q, R = np.linalg.qr(A[below, panel], mode="complete")
        A[below, panel], A[panel, below] = R, R.T
        A[below, below] = Q.T @ A[below, below] @ Q
        Qt[below] = Q.T @ Qt[below]
    lower = np.zeros((n, width + 1))
    for k in range(min(width + 1, n)):
        lower[: n - k, k] = np.diagonal(A, -k)
    return Band(Qt, lower, width)


def smo(
    row: Any,
    diag: Array,
    linear: Array,
    lower: Array,
    upper: Array,
    start: Array,
    tol: float,
    max_iter: int,
    poll: Poll | None,
) -> tuple[Array, int, float]:
    """Sequential minimal optimisation; `row(i)` gives row i of K.

    With F = linear - K b, a pair (i, j) with b_i below its upper and b_j above its lower bound can
    improve the objective exactly when F_i > F_j. Take i with the largest F, then j by the largest
    second-order gain, and solve for the step along e_i - e_j inside the box.
    """
    b = np.array(start, dtype=np.float64)
    F = np.asarray(linear, dtype=np.float64).copy()
    for i in np.flatnonzero(b).tolist():
        F -= b[i] * row(i)
    violation = np.inf
    for iteration in range(max_iter + 1):
        rising, falling = np.where(b < upper, F, -np.inf), np.where(b > lower, F, np.inf)
        i = int(rising.argmax())
        violation = float(rising[i] - falling.min())
        stopped = iteration == max_iter or (poll is not None and iteration % 64 == 0 and poll())
        if not violation > tol or stopped:
            break
        Ki = row(i)
        curvature = np.maximum(diag[i] + diag - 2.0 * Ki, 1e-12)
        difference = rising[i] - falling
        gain = np.where(difference > 0, difference**2 / curvature, -np.inf)
        j = int(np.argmax(gain))
        step = min((F[i] - F[j]) / curvature[j], upper[i] - b[i], b[j] - lower[j])
        at_upper, at_lower = step == upper[i] - b[i], step == b[j] - lower[j]
        b[i] = upper[i] if at_upper else b[i] + step
        b[j] = lower[j] if at_lower else b[j] - step
        F -= step * (Ki - row(j))
    return b, iteration, violation
