"""Confidence intervals of shares, areas and means, from the rows that a model is judged by."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from mercer.array_types import Array

LEVEL = 0.95
_DRAWS = 1000  # of the bootstrap: ends of 95 % intervals are then known to a tenth of their width
_FEWEST = 200  # draws where there are many rows, whose intervals are narrow
_WORK = 2e7  # rows times draws: about half a second
_BLOCK = 50  # draws whose counts are held at once


def wilson(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's interval of a share.

    Parameters
    ----------
    successes : float
        How often it happened.
    n : int
        Of how many.
    level : float
        Of confidence.

    Returns
    -------
    tuple of float
        Low and high end; (0, 1) for no rows.

    Examples
    --------
    >>> low, high = wilson(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    if n == 0:
        return 0.0, 1.0
    z = float(norm.ppf(0.5 + level / 2))
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def area_interval(
    codes: Array, scores: Array, level: float = LEVEL
) -> tuple[float, float, float, str]:
    """Return the area under the ROC curve, and DeLong's interval on the logit scale.

    With more than two classes it is the mean of the areas of each against the rest. The variance is
    the sum of squares of what each row contributes, which for two classes is DeLong's.

    Parameters
    ----------
    codes : (n,) int array
        Classes as numbers from 0.
    scores : (n,) or (n, classes) array
        Of class 1, or of each class.
    level : float
        Of confidence.

    Returns
    -------
    tuple
        Area, low and high end, method. NaN where there is one class only.

    Examples
    --------
    >>> import numpy as np
    >>> area_interval(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))[0]
    0.75
    """
    present = np.unique(codes)
    if len(present) < 2:
        return math.nan, math.nan, math.nan, "DeLong"
    parts = [1] if scores.ndim == 1 else [int(k) for k in present]
    found = [_area(codes == k, scores if scores.ndim == 1 else scores[:, k]) for k in parts]
    area = float(np.mean([one for one, _ in found]))
    error = float(np.linalg.norm(np.mean([part for _, part in found], axis=0)))
    if not 0.0 < area < 1.0 or error == 0.0:
        # complete separation has no variance, but few rows prove little
        few = int(np.bincount(codes)[present].min())
        low, high = wilson(round(area * few), few, level)
        return area, min(low, area), max(high, area), "Wilson, of the smallest class"
    half = float(norm.ppf(0.5 + level / 2)) * error / (area * (1 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return area, float(low), float(high), "DeLong"


def _area(positive: Array, score: Array) -> tuple[float, Array]:
    """Return the area, and each row's part of its error."""
    m, n = int(positive.sum()), int((~positive).sum())
    rank = rankdata(score)
    share = np.empty(len(score))  # of the other class that a row is on the right side of
    share[positive] = (rank[positive] - rankdata(score[positive])) / n
    share[~positive] = 1.0 - (rank[~positive] - rankdata(score[~positive])) / m
    area = float(share[positive].mean())
    # sums of squares over (m - 1) m: unbiased variances of the two means
    size = np.where(positive, math.sqrt(m * max(m - 1, 1)), math.sqrt(n * max(n - 1, 1)))
    return area, (share - area) / size


def bootstrap(
    rows: Array, figure: Callable[[Array], Array], seed: int, level: float = LEVEL
) -> tuple[float, float]:
    """Return the percentile interval of a figure that is a function of sums over rows.

    Parameters
    ----------
    rows : (n, s) array
        What each row adds to each of the sums.
    figure : callable
        From sums (draws, s) to figures (draws,).
    seed : int
        Of the draws.
    level : float
        Of confidence.

    Returns
    -------
    tuple of float
        Low and high end.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(100.0)[:, None]
    >>> low, high = bootstrap(values, lambda sums: sums[:, 0] / 100, seed=0)
    >>> 40 < low < 49.5 < high < 60
    True
    """
    n = len(rows)
    draws = int(np.clip(_WORK / max(n, 1), _FEWEST, _DRAWS))
    rng = np.random.default_rng(seed)
    found = []
    for first in range(0, draws, _BLOCK):
        chosen = rng.integers(n, size=(min(_BLOCK, draws - first), n))
        counts = np.apply_along_axis(np.bincount, 1, chosen, minlength=n)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(figure(counts @ rows))
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)
