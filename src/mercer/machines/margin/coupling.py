"""One probability per class from probabilities of pairs of classes.

With r_ab the probability of a against b, the p that minimises
sum over a, b of (r_ba p_a - r_ab p_b)^2 with sum p = 1 is found from one linear system per row.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array

_EDGE = 1e-7  # pairs that are quite sure would leave the others undetermined
_ENTRIES = 1 << 21  # of all systems solved at once


def couple_pairs(later: Array, first: Array, second: Array, count: int) -> Array:
    """Couple pairs.

    Parameters
    ----------
    later : (n, pairs) array
        Probability of the second class of each pair against the first.
    first, second : (pairs,) int array
        The classes of each pair.
    count : int
        How many classes there are.

    Returns
    -------
    (n, count) array
        Probabilities; rows sum to 1.

    Examples
    --------
    >>> p = np.array([0.2, 0.3, 0.5])
    >>> a, b = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> couple_pairs((p[b] / (p[a] + p[b]))[None, :], a, b, 3).round(6).tolist()
    [[0.2, 0.3, 0.5]]
    """
    chunk = max(1, _ENTRIES // (count + 1) ** 2)
    blocks = range(0, len(later), chunk)
    return np.concatenate(
        [np.empty((0, count))]
        + [_coupled(later[i : i + chunk], first, second, count) for i in blocks]
    )


def _coupled(later: Array, first: Array, second: Array, count: int) -> Array:
    n = len(later)
    r = np.zeros((n, count, count))
    r[:, second, first] = np.clip(later, _EDGE, 1.0 - _EDGE)
    r[:, first, second] = 1.0 - r[:, second, first]
    system = np.ones((n, count + 1, count + 1))
    system[:, :count, :count] = -r * r.transpose(0, 2, 1)
    inner = np.arange(count)
    system[:, inner, inner] = (r * r).sum(axis=1)
    system[:, count, count] = 0.0
    right = np.zeros((n, count + 1, 1))
    right[:, count] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :count, 0], 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
