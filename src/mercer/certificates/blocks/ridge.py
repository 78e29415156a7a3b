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
from mercer.certificates.ridge.linear_system import LinearSystemQuantities, norms, size_of, worst
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


def normal_residual(problem: BlockRidge, value: Coefficients, level: Array) -> NormalResidual:
    """Add up the residual of all rows in a pass, about a level of the targets that is known."""
    blocks, features = problem.rows.blocks, problem.rows.features
    sums = blocks.total(residual_sums, features, value.weights, value.intercept, level)
    lost, *others = sums
    return NormalResidual(lost - problem.penalties * value.weights, *others)


def target_level(problem: BlockRidge) -> Array:
    """Return the mean of the targets where there is a bias, which takes it up; else zero."""
    if not problem.bias:
        return np.zeros(len(problem.penalties))
    total, sums = problem.rows.blocks.total(target_sums)
    return np.asarray(sums / total)


def target_sums(block: Block) -> tuple[float, Array]:
    """Return the sum of weights, and of weighted targets."""
    s = block.counts
    return float(s.sum()), s @ _columns(block)


def residual_sums(
    block: Block, features: Any, weights: Array, intercept: Array, level: Array
) -> tuple[Array, ...]:
    """Return the sums of a block, each feature of all rows anew."""
    block = counted(block)
    s, y = block.counts[:, None], _columns(block)
    shape = weights.shape
    lost, right, largest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    pull, pulls = np.zeros(shape[1]), np.zeros(shape[1])
    for rows, F in feature_pieces(block, features):
        left = s[rows] * (y[rows] - F @ weights - intercept)
        lost += F.T @ left
        right += F.T @ (s[rows] * (y[rows] - level))
        largest += np.abs(F).T @ np.abs(s[rows] * y[rows])
        pull += left.sum(axis=0)
        pulls += np.abs(left).sum(axis=0)
    return lost, right, largest, pull, pulls, np.abs(s * y).sum(axis=0)


def _columns(block: Block) -> Array:
    return np.asarray(block.y, dtype=np.float64).reshape(len(block), -1)


@certify.register
def _(problem: BlockRidge, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = normal_residual(problem, value, target_level(problem))
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
