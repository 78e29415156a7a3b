"""How much a ridge fit changes with each feature: the mean squared slope of the function."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.expression import AbsDist
from mercer.gram import Source
from mercer.kernels.slopes import columns_of_distance
from mercer.problems.kernel_learning.relevance import Relevance, Scaled
from mercer.solvers.kernel_learning.ridge_slopes import inverted, slopes_by_distance


def effects(problem: Relevance, value: Scaled, spread: Array) -> Array:
    """Return the share of each feature in the mean squared slope, in units of its spread.

    A long scale alone does not say that a feature is idle: a straight line is learnt with a long
    one. The slope of f = sum_k a_k k(x_k, .) in a feature, times how much that varies, does.

    Parameters
    ----------
    problem : Relevance
        Rows, targets and the kernel as a function of its scales.
    value : Scaled
        Scales and penalty.
    spread : (d,) array
        Standard deviation of each column.

    Returns
    -------
    (d,) array
        Of sum 1; zeros where the function is constant.
    """
    expression, leaf = problem.family(value.scales)
    found = inverted(problem, Source(expression, problem.X).pairs().dense(), value.penalty)
    squares = np.zeros(len(value.scales))
    if found is None:
        return squares
    bent, raw = slopes_by_distance(problem, expression, leaf), columns_of_distance(leaf, problem.X)
    share = problem.row_weights / problem.row_weights.sum()
    for a in found.coef.T:
        pull = bent * a  # what each row does to f near each other row
        if isinstance(leaf, AbsDist):
            signs = (np.sign(x[:, None] - x) for x in raw.T)
            slopes = np.column_stack([np.sum(pull * s, axis=1) for s in signs]) / value.scales
        else:
            slopes = 2.0 * (raw * pull.sum(axis=1)[:, None] - pull @ raw) / value.scales**2
        squares += share @ (slopes * spread) ** 2
    total = float(squares.sum())
    return squares / total if total > 0 else squares
