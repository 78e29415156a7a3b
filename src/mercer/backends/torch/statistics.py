"""Pairwise statistics of float64 rows on tensors: whole blocks, nothing fused.

Squared distances come from products of rows about a common centre. Where that leaves few digits
(two rows are much closer than they are long) they are sums of squared differences, so equal rows
have distance zero, and close ones keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TypeAlias

import torch

from mercer import deadline
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    MinSum,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
)

Tensor: TypeAlias = torch.Tensor

# Of |x|^2 + |y|^2: below this share a squared distance made of products may have lost 6 bits.
_NEAR = 1.0 / 64.0
_MANY = 0.25  # of the entries of a block: from here on all are differences
_GATHERED = 1 << 22  # numbers of rows copied at a time to be subtracted


@singledispatch
def compare(statistic: Statistic, X: Tensor, Y: Tensor) -> Tensor:
    """Return the statistic of every row of X with every row of Y."""
    raise TypeError(f"unknown statistic {statistic!r}")


@compare.register
def _(s: Dot, X: Tensor, Y: Tensor) -> Tensor:
    return X @ Y.T


def squared_distances(X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return squared distances made of products, and the squared lengths of both sides."""
    x, y = X.square().sum(dim=1), Y.square().sum(dim=1)
    one, other = torch.ones_like(x)[:, None], torch.ones_like(y)[:, None]
    # lengths are two more features, so that D is written once
    D = torch.cat([X, x[:, None], one], 1) @ torch.cat([-2.0 * Y, other, y[:, None]], 1).T
    return D, x, y


def may_be_near(smallest: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return which rows may have lost digits in a distance, by the smallest of each; NaN does."""
    return ~(smallest >= _NEAR * (x + y.amax()))


@compare.register
def _(s: SqDist, X: Tensor, Y: Tensor) -> Tensor:
    D, x, y = squared_distances(X, Y)
    if not D.numel():
        return D
    # rows and columns with something near are mostly few, and found by a pass over D each; infinite
    # and undefined distances count as near, too
    rows = may_be_near(D.amin(dim=1), x, y).nonzero()[:, 0]
    if not len(rows):
        return D
    among = D if 2 * len(rows) > len(X) else D[rows]
    columns = (~(among.amin(dim=0) >= _NEAR * (x.amax() + y))).nonzero()[:, 0]
    if 2 * len(rows) * len(columns) > D.numel():
        put_differences(D, X, Y, ~(D >= _NEAR * (x[:, None] + y)))
    else:
        some = D[rows[:, None], columns]
        near = ~(some >= _NEAR * (x[rows, None] + y[columns]))
        put_differences(some, X[rows], Y[columns], near)
        D[rows[:, None], columns] = some
    return D


def put_differences(D: Tensor, X: Tensor, Y: Tensor, where: Tensor) -> None:
    """Write squared distances as sums of squared differences into D, where a mask says so."""
    rows, columns = where.nonzero(as_tuple=True)
    if len(rows) > _MANY * D.numel():
        height = max(1, _GATHERED // max(1, Y.numel()))
        for start in range(0, len(X), height):
            deadline.check()
            part = slice(start, start + height)
            apart = (X[part, None, :] - Y).square_().sum(dim=2)
            D[part] = torch.where(where[part], apart, D[part])
        return
    height = max(1, _GATHERED // max(1, X.shape[1]))
    for i, j in zip(rows.split(height), columns.split(height), strict=True):
        deadline.check()
        D[i, j] = (X[i] - Y[j]).square_().sum(dim=1)


@compare.register
def _(s: AbsDist, X: Tensor, Y: Tensor) -> Tensor:
    return torch.cdist(X, Y, p=1.0) if X.shape[1] else X.new_zeros((len(X), len(Y)))


@compare.register
def _(s: MinSum, X: Tensor, Y: Tensor) -> Tensor:
    return _by_column(X, Y, torch.minimum)


@compare.register
def _(s: ChiSq, X: Tensor, Y: Tensor) -> Tensor:
    def term(x: Tensor, y: Tensor) -> Tensor:
        total = x + y
        return (x - y).square() / torch.where(total > 0, total, 1.0)

    return _by_column(X, Y, term)


@compare.register
def _(s: SubsetProduct, X: Tensor, Y: Tensor) -> Tensor:
    product = X.new_ones((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        product *= 1.0 + torch.outer(x, y)
    return product


@compare.register
def _(s: SymmetricSum, X: Tensor, Y: Tensor) -> Tensor:
    if s.degree > X.shape[1]:
        return X.new_zeros((len(X), len(Y)))  # there are no such sets
    sums = [X.new_ones((len(X), len(Y)))]
    sums += [X.new_zeros((len(X), len(Y))) for _ in range(s.degree)]
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        product = torch.outer(x, y)
        for k in range(s.degree, 0, -1):  # from above: each reads the sum of before this column
            sums[k] += product * sums[k - 1]
    return sums[-1]


def _by_column(X: Tensor, Y: Tensor, term: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    total = X.new_zeros((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        total += term(x[:, None], y[None, :])
    return total
