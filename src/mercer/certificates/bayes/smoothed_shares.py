"""Are probabilities the smoothed shares of what was counted? Sums to one, and the slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.problems.bayes.smoothed_shares import LogShares, SmoothedShares

_TOL = 1e-9


@dataclass(frozen=True)
class SmoothedSharesQuantities:
    """Measures of distributions against counts.

    Attributes
    ----------
    normalisation : float
        Largest distance of a sum of probabilities from one.
    slope : float
        Largest derivative of the smoothed log-likelihood along the probabilities, per unit of
        weight: at the optimum every smoothed count is its probability times the smoothed total.
    smallest_log : float
        The smallest log-probability: how close one value comes to deciding alone.
    """

    normalisation: float
    slope: float
    smallest_log: float


@certify.register
def _(problem: SmoothedShares, value: LogShares, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    sums, slopes, least = [0.0], [0.0], [0.0]
    for counts, logs in zip(problem.counts, value.logs, strict=True):
        smoothed = counts + problem.alpha
        total = smoothed.sum(axis=1, keepdims=True)
        known = total[:, 0] > 0  # elsewhere there is nothing to be most likely for
        chances = np.exp(logs[known])
        sums.append(float(np.abs(chances.sum(axis=1) - 1.0).max(initial=0.0)))
        gap = smoothed[known] / total[known] - chances
        slopes.append(float(np.abs(gap).max(initial=0.0)))
        least.append(float(logs[known].min(initial=0.0)))
    quantities = SmoothedSharesQuantities(max(sums), max(slopes), min(least))
    ok = bool(np.max([*sums, *slopes]) <= tol)  # NaN is not
    statement = (
        f"probabilities add up to one within {quantities.normalisation:.1e}, and no change of "
        f"them gains more than {quantities.slope:.1e} of the likelihood of what was counted"
    )
    return Certificate(ok, quantities, tol, statement)
