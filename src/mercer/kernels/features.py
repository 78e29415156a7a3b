"""Finite feature maps of kernels, and the products of columns that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from math import comb, prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.operands import apply_steps
from mercer.backends.reference.evaluate import self_power
from mercer.expression import Expression
from mercer.rows.points import as_points, column_names, is_objects, is_sparse, row_count, to_host

# --- features ------------------------------------------------------------------------------------
#
# Finite feature maps, derived from a kernel's expression by one rule per node.
#
# ====================  ==========================================  ==========================
# node                  phi(x)                                      dimension
# ====================  ==========================================  ==========================
# `Dot`                 the row after its steps                     its length
# `Constant(c)`         sqrt(c), for c >= 0                         1
# `RowProduct(u)`       u(x)                                        1
# `Add`                 the features of the terms, side by side     sum
# `Mul`                 all products of one feature per factor      product
# `Pow(e, p)`           sqrt(multinomial) times all monomials of    C(m + p - 1, p), m that of e
#                       degree p in the features of e
# `SubsetProduct`       the products of all subsets of columns      2^d
# `SymmetricSum(p)`     the products of all sets of p columns       C(d, p)
# anything else         no finite map
# ====================  ==========================================  ==========================
#
# So (x'y + c)^p on d columns has C(d + p, p) features. What belongs here: which features there
# are. How the
# monomials are computed for many rows at once stands below.


@dataclass(frozen=True)
class FeatureMap:
    """phi with k(x, y) = <phi(x), phi(y)>, as a value.

    Parameters
    ----------
    expression : Expression
        The formula of k.
    n_features : int
        Length of the rows x.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> phi = Polynomial(degree=2, offset=1.0).features(2)
    >>> phi.dimension
    6
    >>> phi([[1.0, 2.0]]).round(3).tolist()
    [[1.0, 2.828, 1.414, 4.0, 2.828, 1.0]]
    """

    expression: Expression
    n_features: int

    @property
    def dimension(self) -> int:
        """The length of phi(x), found without computing any."""
        size = dimension(self.expression, self.n_features)
        assert size is not None  # `feature_map` makes no others
        return size

    def __call__(self, X: Any) -> Any:
        """Return the features (n, dimension) in X's type; those of a linear kernel may stay CSR."""
        points = as_points(X)
        if not is_objects(points) and points.shape[1] != self.n_features:
            raise ValueError(
                f"X has {points.shape[1]} features; this map was made for {self.n_features}"
            )
        expression = ex.bind_columns(self.expression, column_names(X))
        return rows(expression, points).astype(_dtype(points), copy=False)


def feature_map(expression: Expression, n_features: int) -> FeatureMap | None:
    """Return the finite feature map of an expression, or None."""
    finite = dimension(expression, n_features) is not None
    return FeatureMap(expression, n_features) if finite else None


def exact_feature_map(expression: Expression, rows: Any) -> FeatureMap | None:
    """Return the finite feature map for rows X, or for rows of a length; None if there is none.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> [exact_feature_map(Linear().expression(), rows).dimension for rows in (2, [[0.0, 1.0]])]
    [2, 2]
    """
    if np.ndim(rows) or is_sparse(rows):
        return feature_map_of(expression, as_points(rows))
    whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool | np.bool_)
    if not whole or rows < 0:
        raise TypeError(f"features: n_features={rows!r} must be the length of rows, or rows X")
    return feature_map(expression, int(rows))


def feature_map_of(expression: Expression, X: Points) -> FeatureMap | None:
    """Return the finite feature map for these rows, or None."""
    return sequence_map(expression) if is_objects(X) else feature_map(expression, X.shape[1])


def sequence_map(expression: Expression) -> FeatureMap | None:
    """Return the finite feature map of an expression on strings and the like, or None.

    There is one where rows become numbers in the first step, by a map that knows how many.
    """
    first = expression.steps[0] if isinstance(expression, ex.Dot) and expression.steps else None
    known = isinstance(first, ex.Mapped) and hasattr(first.function, "dimension")
    return FeatureMap(expression, 0) if known else None


# --- dimensions: one rule per node -----------------------------------------------------------


@singledispatch
def dimension(e: Expression, d: int) -> int | None:
    """Count the features for rows of length d; None without a finite map."""
    return None


@dimension.register
def _(e: ex.Dot, d: int) -> int | None:
    return width(e.steps, d)


@dimension.register
def _(e: ex.Constant, d: int) -> int | None:
    return 1 if e.value >= 0 else None


@dimension.register
def _(e: ex.RowProduct, d: int) -> int | None:
    return 1


@dimension.register
def _(e: ex.Add, d: int) -> int | None:
    sizes = [dimension(term, d) for term in e.terms]
    return None if None in sizes else sum(s for s in sizes if s is not None)


@dimension.register
def _(e: ex.Mul, d: int) -> int | None:
    sizes = [dimension(factor, d) for factor in e.factors]
    return None if None in sizes else prod(s for s in sizes if s is not None)


@dimension.register
def _(e: ex.Pow, d: int) -> int | None:
    size, p = dimension(e.base, d), e.exponent
    return None if size is None or p < 1 or p != int(p) else comb(size + int(p) - 1, int(p))


@dimension.register
def _(e: ex.SubsetProduct, d: int) -> int | None:
    return int(2 ** width(e.steps, d))


@dimension.register
def _(e: ex.SymmetricSum, d: int) -> int | None:
    return comb(width(e.steps, d), e.degree)


def width(steps: ex.Steps, d: int) -> int:
    """Count the columns that are left of d by steps."""
    for step in steps:
        d = _width_after(step, d)
    return d


@singledispatch
def _width_after(step: ex.Step, d: int) -> int:
    return d


@_width_after.register
def _(step: ex.Columns, d: int) -> int:
    return len(step.names)


@_width_after.register
def _(step: ex.LinearMap, d: int) -> int:
    return int(step.matrix.array.shape[1])


@_width_after.register
def _(step: ex.Mapped, d: int) -> int:
    size = getattr(step.function, "dimension", None)
    if isinstance(size, int):
        return size
    return int(as_points(step.function(np.zeros((1, d)))).shape[1])  # only the map itself knows


# --- features: one rule per node -------------------------------------------------------------


@singledispatch
def rows(e: Expression, X: Points) -> Any:
    """Return the features of every row; CSR where a linear part keeps them sparse."""
    raise TypeError(f"{e!r} has no finite feature map")


@rows.register
def _(e: ex.Dot, X: Points) -> Any:
    return apply_steps(e.steps, X)


@rows.register
def _(e: ex.Constant, X: Points) -> Any:
    return np.full((row_count(X), 1), np.sqrt(e.value), dtype=_dtype(X))


@rows.register
def _(e: ex.RowProduct, X: Points) -> Any:
    return _row_values(e.row, X).astype(_dtype(X))[:, None]


@rows.register
def _(e: ex.Add, X: Points) -> Any:
    parts = [rows(term, X) for term in e.terms]
    if all(isinstance(F, csr_array) or F.shape[1] == 1 for F in parts):
        return _beside(parts)
    return np.concatenate([_dense(F) for F in parts], axis=1)


@rows.register
def _(e: ex.Mul, X: Points) -> Any:
    product = rows(e.factors[0], X)
    for factor in e.factors[1:]:
        product = _row_tensor(product, rows(factor, X))
    return product


@rows.register
def _(e: ex.Pow, X: Points) -> Any:
    return symmetric_power(_dense(rows(e.base, X)), int(e.exponent))


@rows.register
def _(e: ex.SubsetProduct, X: Points) -> Any:
    return subset_products(_dense(apply_steps(e.steps, X)))


@rows.register
def _(e: ex.SymmetricSum, X: Points) -> Any:
    return set_products(_dense(apply_steps(e.steps, X)), e.degree)


def _row_values(row: ex.RowTerm, X: Points) -> Array:
    if isinstance(row, ex.RowFunction):
        return np.asarray(row.function(to_host(apply_steps(row.steps, X))))
    return self_power(row, choose_backend().diagonal(row.expression, X, np.float64))


def _row_tensor(A: Any, B: Any) -> Any:
    """Row by row, all products of an entry of A and one of B (Khatri-Rao of the transposes)."""
    if A.shape[1] == 1 and isinstance(B, csr_array):
        A, B = B, A
    if isinstance(A, csr_array) and B.shape[1] == 1:
        return csr_array(A.multiply(_dense(B)))
    product = _dense(A)[:, :, None] * _dense(B)[:, None, :]
    return product.reshape(len(product), product.shape[1] * product.shape[2])


def _beside(parts: list[Any]) -> Any:
    if any(isinstance(F, csr_array) for F in parts):
        return hstack([csr_array(F) for F in parts], format="csr")
    return np.concatenate(parts, axis=1)


def _dense(F: Any) -> Array:
    return np.asarray(F.toarray() if isinstance(F, csr_array) else F)


def _dtype(X: Points) -> Any:
    return np.float64 if is_objects(X) else X.dtype


# --- monomials -----------------------------------------------------------------------------------
#
# Products of columns, for many rows at once.
#
# Monomials of degree q are held in lexicographic order of their columns i1 <= i2 <= ... Those
# that begin at column i or later are then the last ones, so degree q + 1 is column i times a tail
# of degree q, one block of columns after the other: no index arrays, no loop over rows.

_BLOCK_ENTRIES = 1 << 16


def symmetric_power(F: Array, degree: int) -> Array:
    """Return phi_p with <phi_p(x), phi_p(y)> = <F(x), F(y)>^p: C(m + p - 1, p) columns.

    Each monomial of degree p stands sqrt(p! / (a_1! a_2! ...)) times, a_i being its exponents.

    Examples
    --------
    >>> symmetric_power(np.array([[1.0, 2.0]]), 2).round(3).tolist()
    [[1.0, 2.828, 4.0]]
    """
    if degree == 1 or not F.shape[1]:  # powers of no feature are none
        return F
    m = F.shape[1]
    roots = _root_multinomials(m, degree).astype(F.dtype)
    tails = [[_tail(m, i, q) for i in range(m)] for q in range(1, degree)]
    return _in_blocks(F, len(roots), lambda block: _grown(block, tails) * roots)


def symmetric_powers(F: Array, degree: int) -> Iterator[Array]:
    """Return `symmetric_power` of the degrees 0, 1, ..., `degree`, one after another.

    The roots of the multinomials are multiplied in as the degree grows, so that rows of length one
    give features of length one at any degree: nothing overflows on the way.

    Examples
    --------
    >>> [block.round(3).tolist() for block in symmetric_powers(np.array([[0.6, 0.8]]), 2)]
    [[[1.0]], [[0.6, 0.8]], [[0.36, 0.679, 0.64]]]
    """
    m = F.shape[1]
    level, runs = np.ones((len(F), 1)), np.zeros(1)
    yield level
    for q in range(1, degree + 1):
        out, leading, end = np.empty((len(F), _tail(m, 0, q))), np.ones(_tail(m, 0, q)), 0
        for i in range(m):
            length = _tail(m, i, q - 1)
            start, end = end, end + length
            same = length - (_tail(m, i + 1, q - 1) if i + 1 < m else 0)  # led by i already
            leading[start : start + same] += runs[len(runs) - length :][:same] if q > 1 else 0.0
            np.multiply(level[:, level.shape[1] - length :], F[:, i : i + 1], out=out[:, start:end])
            out[:, start:end] *= np.sqrt(q / leading[start:end])
        level, runs = out, leading
        yield level


def set_products(F: Array, degree: int) -> Array:
    """Return the products of all sets of `degree` different columns: C(m, degree) columns.

    Examples
    --------
    >>> set_products(np.array([[1.0, 2.0, 3.0]]), 2).tolist()
    [[2.0, 3.0, 6.0]]
    """
    if degree == 1:
        return F
    m = F.shape[1]
    if degree > m:
        return F[:, :0]  # such sets do not exist
    tails = [[comb(m - i - 1, q) for i in range(m)] for q in range(1, degree)]
    return _in_blocks(F, comb(m, degree), lambda block: _grown(block, tails))


def subset_products(F: Array) -> Array:
    """Return the products of all subsets of columns, the empty one first: 2^m columns.

    Examples
    --------
    >>> subset_products(np.array([[2.0, 3.0]])).tolist()
    [[1.0, 2.0, 3.0, 6.0]]
    """
    return _in_blocks(F, 2 ** F.shape[1], _doubled)


def _doubled(F: Array) -> Array:
    out = np.empty((len(F), 2 ** F.shape[1]), dtype=F.dtype)
    out[:, 0] = 1.0
    for i in range(F.shape[1]):
        done = 2**i
        np.multiply(out[:, :done], F[:, i : i + 1], out=out[:, done : 2 * done])
    return out


def _grown(F: Array, tails: list[list[int]]) -> Array:
    """Raise the degree from 1, one list of tail lengths (one per column) at a time."""
    level = F
    for lengths in tails:
        out = np.empty((len(F), sum(lengths)), dtype=F.dtype)
        end = 0
        for i, length in enumerate(lengths):
            start, end = end, end + length
            tail = level[:, level.shape[1] - length :]
            with np.errstate(over="ignore"):  # found by `refuse_overflow`
                np.multiply(tail, F[:, i : i + 1], out=out[:, start:end])
        level = out
    return level


def _in_blocks(F: Array, width: int, make: Callable[[Array], Array]) -> Array:
    """Work on few rows at a time, since each block of columns visits them all: cache."""
    out = np.empty((len(F), width), dtype=F.dtype)
    height = max(1, _BLOCK_ENTRIES // max(1, width))
    for i in range(0, len(F), height):
        out[i : i + height] = make(F[i : i + height])
    return out


def _tail(m: int, i: int, degree: int) -> int:
    """Count the monomials of this degree in the columns i, i + 1, ..., m - 1."""
    return comb(m - i + degree - 1, degree)


@lru_cache(maxsize=16)
def _root_multinomials(m: int, degree: int) -> Array:
    """Return sqrt(p! / prod a_i!) of every monomial, by the recursion that makes the monomials.

    Putting a column before a tail multiplies the multinomial by q / r, r being how often the column
    then leads. All values are integers, exact in float64 below 2^53.
    """
    multinomials, runs = np.ones(m), np.ones(m)
    for q in range(2, degree + 1):
        blocks, leading = [], []
        for i in range(m):
            length = _tail(m, i, q - 1)
            run = np.ones(length)
            same = length - _tail(m, i + 1, q - 1) if i + 1 < m else length  # led by i already
            run[:same] = runs[len(runs) - length :][:same] + 1.0
            leading.append(run)
            blocks.append(multinomials[len(multinomials) - length :] * q / run)
        multinomials, runs = np.concatenate(blocks), np.concatenate(leading)
    roots = np.sqrt(multinomials)
    roots.setflags(write=False)
    return roots
