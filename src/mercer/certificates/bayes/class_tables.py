"""Are these the most likely probabilities? Sums to one, and the slope of the likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.problems.bayes.class_tables import LOG_ZERO, ClassModel, ClassTables

_TOL = 1e-9


@dataclass(frozen=True)
class ClassTablesQuantities:
    """Measures of a naive Bayes model against what was counted.

    Attributes
    ----------
    normalisation : float
        Largest distance of a sum of probabilities from one.
    slope : float
        Largest derivative of the smoothed log-likelihood along probabilities, means (in standard
        deviations) and log-variances, per unit of weight; at a floor only slopes upwards count.
    convention : float
        Largest distance from what is set where nothing was counted: values never seen have the
        smoothing alone, unused columns of counts say nothing, Gaussian columns without entries in
        a class have the mean and variance of all, and no variance is below its floor.
    smallest_log : float
        The smallest log-probability: how close one value comes to deciding alone.
    """

    normalisation: float
    slope: float
    convention: float
    smallest_log: float


@certify.register
def _(problem: ClassTables, value: ClassModel, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    sums, slopes, least = [0.0], [0.0], [float(value.prior.min())]
    for counts, logs in _distributions(problem, value):
        sums.append(float(np.abs(np.exp(logs).sum(axis=1) - 1.0).max(initial=0.0)))
        slopes.append(_slope(counts, logs, problem.alpha))
        least.append(float(logs.min(initial=0.0)))
    slopes += [float(np.abs(np.exp(value.prior) - problem.prior).max()), _bells(problem, value)]
    rest = [_never_seen(problem, value), _unused(problem, value), _by_rule(problem, value)]
    quantities = ClassTablesQuantities(max(sums), max(slopes), max(rest), min(least))
    finite = bool(np.isfinite([*sums, *slopes, *rest, *least]).all())
    ok = finite and max([*sums, *slopes, *rest]) <= tol
    statement = (
        f"probabilities add up to one within {quantities.normalisation:.1e}, and no change of "
        f"them gains more than {quantities.slope:.1e} of the likelihood of what was counted"
    )
    return Certificate(ok, quantities, tol, statement)


def _distributions(problem: ClassTables, value: ClassModel) -> Iterator[tuple[Array, Array]]:
    """Return counts (k, V) and log-probabilities of discrete attributes, 0/1 ones as stacks."""
    for start, size in zip(problem.starts, problem.sizes(), strict=True):
        mine = slice(start, start + size)
        if size:
            yield problem.tables[:, mine], value.tables[:, mine]
    used = problem.counts.any(axis=0)
    if used.any():
        yield problem.counts[:, used], value.words[:, used]
    if problem.hits.shape[1]:
        both = (problem.hits, problem.seen - problem.hits), (value.ones, value.zeros)
        counts, logs = (np.stack([pair[0].ravel(), pair[1].ravel()], axis=1) for pair in both)
        yield counts, logs


def _slope(counts: Array, logs: Array, alpha: float) -> float:
    """At the optimum every smoothed count is its probability times the smoothed total."""
    smoothed = counts + alpha
    total = smoothed.sum(axis=1, keepdims=True)
    known = total[:, 0] > 0  # elsewhere every distribution is as likely as any other
    gap = smoothed[known] / total[known] - np.exp(logs[known])
    impossible = (smoothed[known] == 0) & (logs[known] <= LOG_ZERO + 1e-6)
    return float(np.abs(np.where(impossible, 0.0, gap)).max(initial=0.0))


def _bells(problem: ClassTables, value: ClassModel) -> float:
    """Return the largest slope along means and log-variances of the Gaussian columns."""
    moments = problem.moments
    known = moments.weight > 0
    if not known.any():
        return 0.0
    n, variance = moments.weight[known], value.variance[known]
    off = (moments.mean[known] - value.mean[known]) / np.sqrt(variance)
    by_width = (moments.scatter[known] / (n * variance) + off**2 - 1.0) / 2
    floors = np.broadcast_to(problem.floors, known.shape)[known]
    at_floor = variance <= floors * (1 + 1e-9)
    by_width = np.where(at_floor, np.maximum(by_width, 0.0), np.abs(by_width))
    return max(float(np.abs(off).max()), float(by_width.max()))


def _never_seen(problem: ClassTables, value: ClassModel) -> float:
    """Compare the probabilities of values never seen with the smoothing alone."""
    found = [0.0]
    for start, size in zip(problem.starts, problem.sizes(), strict=True):
        total = problem.tables[:, start : start + size].sum(axis=1) + problem.alpha * size
        even = np.full(len(total), 1.0 / max(size, 1))
        share = np.divide(problem.alpha, total, out=even, where=total > 0)
        share = np.maximum(share, np.exp(LOG_ZERO))
        found.append(float(np.abs(value.tables[:, start + size] - np.log(share)).max()))
    return max(found)


def _unused(problem: ClassTables, value: ClassModel) -> float:
    """Return the largest logarithm of a column of counts that no class ever had."""
    return float(np.abs(value.words[:, ~problem.counts.any(axis=0)]).max(initial=0.0))


def _by_rule(problem: ClassTables, value: ClassModel) -> float:
    """Compare Gaussians without entries with those of all classes, and variances with floors."""
    if not problem.moments.weight.size:
        return 0.0
    every, empty = problem.moments.total(), problem.moments.weight == 0
    variance = np.maximum(every.variance(), problem.floors)
    off = np.abs(value.mean - every.mean) / np.sqrt(variance)
    wide = np.abs(np.log(value.variance / variance))
    below = np.maximum(problem.floors / value.variance - 1.0, 0.0).max()
    return max(float(below), float(np.maximum(off, wide)[empty].max(initial=0.0)))
