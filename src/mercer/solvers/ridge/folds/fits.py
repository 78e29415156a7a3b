"""Fits of a fold at several penalties: found, refined against their equations, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems import FoldedPathValue, FoldedRidgePath
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.folds.system import FoldSystem

_REFINEMENTS = 2  # what is not met then never is: rounding of K stands in the way

Correct = Callable[[Array, Array], Array]
"""Takes positions of penalties and what is left of their equations; returns what to add to x."""


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Fits of one fold for several penalties.

    Attributes
    ----------
    values : (n, p) array
        Predictions at all rows.
    met : (p,) bool array
        Whether the equations are met.
    coef : (n, p) array
        Coefficients, zero outside of the fold.
    intercept : (p,) array
        Biases.
    """

    values: Array
    met: Array
    coef: Array
    intercept: Array

    @staticmethod
    def nothing(system: FoldSystem, penalties: Array) -> FoldFits:
        """Return fits that meet no equation."""
        table = np.full((len(system.K), len(penalties)), np.nan)
        met = np.zeros(len(penalties), dtype=bool)
        return FoldFits(table, met, table.copy(), table[0].copy())

    def put(self, chosen: Array, others: FoldFits) -> None:
        """Take the fits of some penalties from others."""
        self.values[:, chosen], self.met[chosen] = others.values, others.met
        self.coef[:, chosen], self.intercept[chosen] = others.coef, others.intercept


def refined(
    system: FoldSystem,
    penalties: Array,
    correct: Correct,
    watch: Watch,
    tried: Array | None = None,
) -> FoldFits:
    """Solve, then solve again for what the equations leave, until that is small enough.

    Parameters
    ----------
    system : FoldSystem
        The equations; what they leave is always computed from K itself.
    penalties : (p,) array
        All of them.
    correct : callable
        Solves, about as well as it can.
    watch : Watch
        Asked before every refinement.
    tried : (p,) bool array, optional
        Penalties to solve for; all by default.
    """
    count, enough = len(penalties), system.enough(penalties)
    X, values = np.zeros((len(system.rows), count)), np.zeros((len(system.K), count))
    residuals = np.repeat(system.right[:, None], count, axis=1)
    sizes = np.full(count, np.inf) if tried is None else np.where(tried, np.inf, np.nan)
    for refinement in range(1 + _REFINEMENTS):
        worse = np.flatnonzero(sizes > enough)  # no number is no better the next time
        if not len(worse) or (refinement and watch.tick(refinement, len(worse))):
            break
        X[:, worse] += correct(worse, residuals[:, worse])
        values[:, worse] = system.values(X[:, worse])
        residuals[:, worse] = system.residuals(X[:, worse], values[:, worse], penalties[worse])
        sizes[worse] = system.sizes(residuals[:, worse])
    intercept = system.intercept(values)
    return FoldFits(values + intercept, sizes <= enough, system.spread(X), intercept)


def reported(
    solver: Solver, problem: FoldedRidgePath, fits: Sequence[FoldFits], steps: int, watch: Watch
) -> Solution:
    """Put the fits of all folds together; folds that were not reached have none."""
    n, p, k = len(problem.targets), len(problem.penalties), len(problem.folds or ())
    values, coef = np.empty((k, n, p)), np.empty((k, n, p))
    met, intercept = np.zeros((k, p), dtype=bool), np.empty((k, p))
    for fold, found in enumerate(fits):
        values[fold], coef[fold] = found.values, found.coef
        met[fold], intercept[fold] = found.met, found.intercept
    return ended(solver, FoldedPathValue(values, met, intercept, coef), steps, watch)


def ended(solver: Solver, value: FoldedPathValue, steps: int, watch: Watch) -> Solution:
    """Return how it ended: whether all equations are met; what does not meet them is NaN."""
    unmet = int(np.count_nonzero(~value.met))
    if not unmet:
        return report(solver, value, Status.SOLVED, steps, watch)
    for part in (value.values, value.coef, value.weights):
        if part is not None:
            part.transpose(0, 2, 1)[~value.met] = np.nan
    if value.intercept is not None:
        value.intercept[~value.met] = np.nan
    detail = f"{unmet} of {value.met.size} fits do not meet their equations"
    return report(solver, value, watch.stopped or Status.INACCURATE, steps, watch, detail)
