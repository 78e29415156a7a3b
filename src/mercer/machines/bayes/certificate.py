"""Certificates of Bayes classifiers: tables, Gaussian columns, Gaussian classes, smoothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.machines.bayes.problem import (
    LOG_ZERO,
    ClassModel,
    ClassTables,
    ColumnGaussians,
    GaussianClasses,
    LogShares,
    MeansAndVariances,
    SmoothedShares,
    Spread,
)
from mercer.solvers.certificate import Certificate, certify

# --- class tables --------------------------------------------------------------------------------
#
# Are these the most likely probabilities? Sums to one, and the slope of the likelihood.

_CLASS_TABLES_TOL = 1e-9


@dataclass(frozen=True)
class ClassTablesQuantities:
    """Errors of a naive Bayes model relative to its counts.

    Attributes
    ----------
    normalisation : float
        Largest distance of a sum of probabilities from one.
    slope : float
        Largest derivative of the smoothed log-likelihood along probabilities, means (in standard
        deviations) and log-variances, per unit of weight; at a floor only slopes upwards count.
    convention : float
        Largest distance from the convention for missing counts: unseen values have the smoothing
        alone, unused columns of counts have no effect, Gaussian columns without entries in
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
    tol = _CLASS_TABLES_TOL if tol is None else tol
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
        f"probabilities add up to one within {quantities.normalisation:.1e}, and the "
        f"derivatives of the likelihood of the counts are at most {quantities.slope:.1e}"
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


# --- column gaussians ----------------------------------------------------------------------------
#
# Are means and variances those of the rows of each class? From the rows alone.

_COLUMN_GAUSSIANS_TOL = 1e-6


@dataclass(frozen=True)
class ColumnGaussiansQuantities:
    """Measures of means and variances against the rows.

    Attributes
    ----------
    mean_error : float
        Largest distance of a mean from that of the rows, in standard deviations.
    variance_error : float
        Largest relative distance of a variance from that of the rows, with the constant added.
    """

    mean_error: float
    variance_error: float


@certify.register
def _(problem: ColumnGaussians, value: MeansAndVariances, tol: float | None = None) -> Certificate:
    tol = _COLUMN_GAUSSIANS_TOL if tol is None else tol
    off, wide = [0.0], [0.0]
    for c in range(problem.classes):
        mine = (problem.codes == c) & (problem.weights > 0)
        if not mine.any():
            continue  # nothing is known of this class, and nothing is said of it
        rows, weights = problem.X[mine], problem.weights[mine] / problem.weights[mine].sum()
        with np.errstate(all="ignore"):  # what overflows is not certified
            mean = weights @ rows
            mean += weights @ (rows - mean)  # what rounding left
            variance = weights @ np.square(rows - mean) + problem.added
            steps = np.abs(value.mean[c] - mean) / np.sqrt(value.variance[c])
            ratios = np.abs(variance / value.variance[c] - 1.0)
        off.append(float(np.where(value.mean[c] == mean, 0.0, steps).max()))
        wide.append(float(np.where(value.variance[c] == variance, 0.0, ratios).max()))
    quantities = ColumnGaussiansQuantities(max(off), max(wide))
    ok = bool(np.max([*off, *wide]) <= tol)  # NaN is not
    statement = (
        f"means are those of the rows of each class within {quantities.mean_error:.1e} standard "
        f"deviations, variances within {quantities.variance_error:.1e} (relative)"
    )
    return Certificate(ok, quantities, tol, statement)


# --- gaussian classes ----------------------------------------------------------------------------
#
# Are these the most likely Gaussians? The slope of the likelihood in their own coordinates.

_GAUSSIAN_CLASSES_TOL = 1e-6
_AT_FLOOR = 1 + 1e-9


@dataclass(frozen=True)
class GaussianClassesQuantities:
    """Measures of means and covariances.

    Attributes
    ----------
    mean_slope : float
        Largest distance of a mean from that of the rows, in standard deviations of the class.
    slope : float
        Largest entry of |E^-1/2 S E^-1/2 - I|, S the sample covariance: the slope of the
        likelihood along E. In directions at the floor only what calls for more variance counts.
    beyond_rounding : float
        The gradient minus the effect of rounding of S, direction by direction.
    infeasibility : float
        Distance of axes from orthonormality, and the largest fraction by which a variance is below
        the floor.
    condition : float
        Largest ratio of eigenvalues of a covariance, in units of the columns.
    raised : int
        Number of eigenvalues at the floor.
    """

    mean_slope: float
    slope: float
    beyond_rounding: float
    infeasibility: float
    condition: float
    raised: int


@certify.register
def _(problem: GaussianClasses, value: Spread, tol: float | None = None) -> Certificate:
    tol = _GAUSSIAN_CLASSES_TOL if tol is None else tol
    held = (value.mean, value.scale, value.values, value.vectors)
    if not all(x is None or np.isfinite(x).all() for x in held):
        nothing = GaussianClassesQuantities(np.inf, np.inf, np.inf, np.inf, np.inf, 0)
        return Certificate(False, nothing, tol, "means or covariances are not finite")
    sample, _weight = problem.sample()
    steps = (value.mean - problem.filled().mean) / problem.scale()
    units = value.scale / problem.scale()
    judged = [_judged(one, *_axes(value, c, units), problem.floor) for c, one in enumerate(sample)]
    halves = [_half(*_axes(value, c, units)) for c in range(len(sample))]
    white = [_whitened(step, halves[min(c, len(halves) - 1)]) for c, step in enumerate(steps)]
    slope, beyond, infeasible = (max(each) for each in zip(*judged, strict=True))
    quantities = GaussianClassesQuantities(
        float(np.abs(white).max(initial=0.0)),
        slope,
        beyond,
        infeasible,
        float((value.values.max(axis=1) / value.values.min(axis=1)).max()),
        int(np.count_nonzero(value.values <= problem.floor * _AT_FLOOR)),
    )
    measured = [quantities.mean_slope, beyond, infeasible]
    ok = bool(np.isfinite([*measured, slope]).all()) and max(measured) <= tol
    shape = value.values.shape == (len(sample), value.mean.shape[1])
    statement = f"the derivatives of the likelihood are at most {quantities.slope:.1e}"
    if quantities.raised:
        statement += f"; {quantities.raised} variances were raised to the floor {problem.floor:.1e}"
    return Certificate(bool(ok and shape), quantities, tol, statement)


def _axes(value: Spread, c: int, units: Array) -> tuple[Array, Array | None]:
    """Return eigenvalues and axes of a covariance in the units of the problem."""
    if value.vectors is None:
        return value.values[c] * units**2, None
    if (units == 1.0).all():
        return value.values[c], value.vectors[c]
    left, root, _ = np.linalg.svd(units[:, None] * value.vectors[c] * np.sqrt(value.values[c]))
    return root**2, left


def _half(values: Array, vectors: Array | None) -> Array:
    """Return what makes rows white: a matrix, or its diagonal."""
    with np.errstate(divide="ignore"):
        width = 1.0 / np.sqrt(values)
    return width if vectors is None else vectors * width


def _whitened(step: Array, half: Array) -> Array:
    return step * half if half.ndim == 1 else step @ half


def _judged(
    sample: Array, values: Array, vectors: Array | None, floor: float
) -> tuple[float, float, float]:
    """Compare a covariance with the sample's, in coordinates in which the former is I."""
    half = _half(values, vectors)
    lacking = float(np.maximum(1.0 - values / floor, 0.0).max())
    if vectors is None:
        excess, largest, skew = np.diag(sample * half**2 - 1.0), sample.max(), 0.0
    else:
        excess, largest = half.T @ sample @ half - np.eye(len(values)), np.diagonal(sample).max()
        skew = float(np.abs(vectors.T @ vectors - np.eye(len(values))).max())
    size = np.abs(excess)
    diagonal = np.diagonal(excess)
    np.fill_diagonal(
        size, np.where(values <= floor * _AT_FLOOR, np.maximum(diagonal, 0), size.diagonal())
    )
    # S is known to rounding of its largest entries, which small variances magnify: an allowance,
    # beyond which gradients are verified; the whole gradient is stated next to it
    width = 1.0 / np.sqrt(values)
    rounding = 64 * np.finfo(float).eps * max(float(largest), floor) * np.outer(width, width)
    beyond = float(np.maximum(size - rounding, 0.0).max())
    return float(size.max()), beyond, max(lacking, skew)


# --- smoothed shares -----------------------------------------------------------------------------
#
# Verify that probabilities are smoothed fractions of counts: sums to one, and the gradient.

_SMOOTHED_SHARES_TOL = 1e-9


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
    tol = _SMOOTHED_SHARES_TOL if tol is None else tol
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
        f"probabilities add up to one within {quantities.normalisation:.1e}, and the "
        f"derivatives of the likelihood of the counts are at most {quantities.slope:.1e}"
    )
    return Certificate(ok, quantities, tol, statement)
