"""Does it solve the ridge equations? The residual over all rows, block by block.

The same measures as for a `LinearSystem` answered in the space of the features; there are no
coefficients of rows to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import norms
from mercer.certificates.ridge.linear_system import LinearSystemQuantities, size_of, worst
from mercer.gram.base import columns_of
from mercer.problems import Coefficients
from mercer.problems.blocks import BlockRidge, counted, feature_pieces

_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class NormalResidual:
    """F'S (y - F w - b) - penalty w, and what it is measured by.

    Attributes
    ----------
    residual, right, largest : (D, t) arrays
        What is left, F'S y (y less its mean where there is a bias), and the size of its terms.
    pull, pulls : (t,) arrays
        The sum of S (y - F w - b), and of its sizes.
    most : (t,) array
        The sum of S |y|.
    """

    residual: Array
    right: Array
    largest: Array
    pull: Array
    pulls: Array
    most: Array


def normal_residual(
    problem: BlockRidge, value: Coefficients, mean: Array, level: Array
) -> NormalResidual:
    """Add up the residual of all rows in a pass, about means of features and targets.

    With a bias any point will do, since the sum of S (y - F w - b) is judged apart; near the mean
    nothing cancels.
    """
    blocks, features = problem.rows.blocks, problem.rows.features
    assert value.weights is not None
    constant = value.intercept + mean @ value.weights - level
    sums = blocks.total(residual_sums, features, value.weights, constant, mean, level)
    lost, *others = sums
    return NormalResidual(lost - problem.penalties * value.weights, *others)


def middle_of(problem: BlockRidge) -> tuple[Array, Array]:
    """Return the means of features and targets where there is a bias; else zeros."""
    if not problem.bias:
        return np.zeros(problem.rows.dimension), np.zeros(len(problem.penalties))
    total, features, targets = problem.rows.blocks.total(first_sums, problem.rows.features)
    return features / total, targets / total


def first_sums(block: Block, features: Any) -> tuple[float, Array, Array]:
    """Return the sums of weights, features and targets."""
    block = counted(block)
    s, sums = block.counts, np.zeros(features.dimension)
    for rows, F in feature_pieces(block, features):
        sums += s[rows] @ F
    return float(s.sum()), sums, s @ _columns(block)


def residual_sums(
    block: Block, features: Any, weights: Array, constant: Array, mean: Array, level: Array
) -> tuple[Array, ...]:
    """Return the sums of a block, each feature of all rows anew, about their mean."""
    block = counted(block)
    s, y = block.counts[:, None], _columns(block)
    shape = weights.shape
    lost, right, largest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    pull, pulls = np.zeros(shape[1]), np.zeros(shape[1])
    for rows, F in feature_pieces(block, features):
        size = np.abs(F).T
        np.subtract(F, mean, out=F)
        left = s[rows] * ((y[rows] - level) - F @ weights - constant)
        lost += F.T @ left
        right += F.T @ (s[rows] * (y[rows] - level))
        largest += size @ np.abs(s[rows] * y[rows])
        pull += left.sum(axis=0)
        pulls += np.abs(left).sum(axis=0)
    return lost, right, largest, pull, pulls, np.abs(s * y).sum(axis=0)


def _columns(block: Block) -> Array:
    return columns_of(np.asarray(block.y, dtype=np.float64))


@certify.register
def _(problem: BlockRidge, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = normal_residual(problem, value, *middle_of(problem))
        residual = norms(found.residual)
        relative = residual / size_of(norms(found.right), norms(found.largest))
        bias = np.zeros(1)
        if problem.bias:
            bias = np.abs(found.pull) / size_of(found.pulls, found.most)
    measured = LinearSystemQuantities(worst(residual), worst(relative), worst(bias))
    ok = measured.relative_residual <= tol and measured.bias_condition <= tol
    statement = (
        "the answer solves the ridge equations exactly once their right-hand side is changed by "
        f"{measured.relative_residual:.1e} of its norm, over all rows of the blocks"
    )
    return Certificate(bool(ok), measured, tol, statement)
