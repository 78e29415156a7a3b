"""Relative entropy, and projections onto the simplex."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array

# --- entropy -------------------------------------------------------------------------------------
#
# Relative entropy: how far one distribution is from another.


def relative_entropy(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return sum p log(p / q) - p + q in nats: never negative, zero only where p = q.

    Parameters
    ----------
    p, q : array-like
        Nonnegative numbers; for distributions the last two terms cancel.

    Returns
    -------
    float
        Infinite where p > 0 and q = 0.

    Examples
    --------
    >>> round(relative_entropy([0.5, 0.5], [0.25, 0.75]), 4)
    0.1438
    """
    p, q = (np.asarray(a, dtype=np.float64).ravel() for a in (p, q))
    if p.shape != q.shape or not (np.isfinite(p).all() and np.isfinite(q).all()):
        raise ValueError("relative_entropy: p and q must be finite and of one length")
    if (p < 0).any() or (q < 0).any():
        raise ValueError("relative_entropy: p and q must not have negative entries")
    if ((p > 0) & (q == 0)).any():
        return math.inf
    used = p > 0
    # the logarithm of a quotient is sharper where both are close; of a large one there is none
    with np.errstate(over="ignore", under="ignore"):
        quotient = p[used] / q[used]
    finite = (quotient > 0) & (quotient < math.inf)
    logs = np.log(np.where(finite, quotient, 1.0))
    logs = np.where(finite, logs, np.log(p[used]) - np.log(q[used]))
    return float(np.sum(p[used] * logs) - p.sum() + q.sum())


# --- simplex -------------------------------------------------------------------------------------
#
# From counts to probabilities: the nearest point of the simplex, by two notions of near.
#
# By relative entropy it is a scaling of the counts, the empirical distribution, which is also
# what maximum likelihood says, and it cannot leave the simplex. By least squares it is not a
# scaling, and nothing but a condition keeps it from negative probabilities.


def relative_entropy_projection(f: npt.ArrayLike) -> Array:
    """Return the p with sum 1 that is nearest to f by relative entropy: f / sum f.

    It minimizes D(f || p), and D(p || f) too, with D of `relative_entropy`. That p >= 0 need not be
    asked for.

    Parameters
    ----------
    f : (n,) array-like
        Counts, or other numbers that are not negative, with a positive sum.

    Returns
    -------
    (n,) array
        The projection.

    Examples
    --------
    >>> relative_entropy_projection([3, 1, 0]).tolist()
    [0.75, 0.25, 0.0]
    """
    counts = as_vector("relative_entropy_projection", f)
    largest = counts.max()
    if (counts < 0).any() or not largest > 0:
        raise ValueError("relative_entropy_projection: f must not be negative, nor zero throughout")
    scaled = counts / largest  # the sum of the largest floats is none
    return np.asarray(scaled / scaled.sum())


def least_squares_projection(f: npt.ArrayLike, *, nonnegative: bool = True) -> Array:
    """Return the p with sum 1 that is nearest to f by the sum of squares.

    Without p >= 0 it is f + (1 - sum f)/n: the same number is added to all entries, and small ones
    may become negative. With it, entries that would be negative are zero, max(f - t, 0) for the one
    t that makes the sum 1.

    Parameters
    ----------
    f : (n,) array-like
        Any finite numbers.
    nonnegative : bool
        Whether p >= 0 is asked for.

    Returns
    -------
    (n,) array
        The projection.

    Examples
    --------
    >>> least_squares_projection([2.0, 1.0, 0.0], nonnegative=False).round(3).tolist()
    [1.333, 0.333, -0.667]
    >>> least_squares_projection([2.0, 1.0, 0.0]).tolist()
    [1.0, 0.0, 0.0]
    """
    values = as_vector("least_squares_projection", f)
    with np.errstate(over="ignore"):  # probabilities far below the largest are zero
        values = values - values.max()  # adding a number to all entries changes nothing
    if not nonnegative:
        if np.isinf(values).any():
            raise ValueError("least_squares_projection: entries of f are too far apart for floats")
        return np.asarray(values - values.mean() + 1.0 / len(values))
    falling = np.sort(values)[::-1]
    shifts = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(falling > shifts)[-1]
    p = np.maximum(values - shifts[kept], 0.0)
    return np.asarray(p / p.sum())  # rounding of the sum alone


def as_vector(name: str, f: npt.ArrayLike) -> Array:
    """Require finite numbers, and some."""
    values = np.asarray(f, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"{name}: f must be one row of finite numbers")
    return values
