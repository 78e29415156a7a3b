"""Relative entropy: how far one distribution is from another."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


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
