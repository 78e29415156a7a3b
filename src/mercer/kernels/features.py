"""Finite feature maps, derived from a kernel's expression by one rule per node.

====================  ==========================================  ==========================
node                  phi(x)                                      dimension
====================  ==========================================  ==========================
`Dot`                 the row after its steps                     its length
`Constant(c)`         sqrt(c), for c >= 0                         1
`RowProduct(u)`       u(x)                                        1
`Add`                 the features of the terms, side by side     sum
`Mul`                 all products of one feature per factor      product
`Pow(e, p)`           sqrt(multinomial) times all monomials of    C(m + p - 1, p), m that of e
                      degree p in the features of e
`SubsetProduct`       the products of all subsets of columns      2^d
`SymmetricSum(p)`     the products of all sets of p columns       C(d, p)
anything else         no finite map
====================  ==========================================  ==========================

So (x'y + c)^p on d columns has C(d + p, p) features. What belongs here: which features there are.
How the monomials are computed for many rows at once is in `monomials`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import comb, prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.lowering.inputs import apply_steps
from mercer.backends.reference.evaluate import self_power
from mercer.expression import Expression
from mercer.kernels.columns import column_names
from mercer.kernels.monomials import set_products, subset_products, symmetric_power
from mercer.points import as_points, is_objects, row_count, to_host


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
    """Count the features for rows of length d; None if there is no finite map."""
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
