"""Which rows stand for all: four ways to draw landmarks.

Of many rows the draws are made among a sample: what all rows would add to the choice is small, and
the cost of the choice stays that of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import LazyGram, Source, pivoted_cholesky
from mercer.points import take
from mercer.resources import require_memory, rows_at_once

# Rows for each landmark, among which it is drawn, and rows of which none are left out.
_SAMPLED, _ALL = 5, 10_000
_COPIES = 2  # of the sample's values at the landmarks: a factor, and what is made of it
_SHARE = 0.5  # of the budget, for both
_TOGETHER = 32  # landmarks that are drawn before distances are computed anew


class Drawn(NamedTuple):
    """Landmarks, and what is known of the others.

    Attributes
    ----------
    rows : (m,) int array
        Their numbers.
    left : float or None
        Share of the trace of K that they leave out; None where not all rows were looked at.
    """

    rows: Array
    left: float | None = None


Rule = Callable[[Source, int, Array | None, np.random.Generator], Drawn]


def uniform(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Drawn:
    """Draw m different rows, all alike or by their weights."""
    return Drawn(np.sort(rng.choice(source.n, m, replace=False, p=_shares(weights))))


def pivoted(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Drawn:
    """Draw in proportion to what is left on the diagonal: randomly pivoted Cholesky."""
    among = _sample(source, m, weights, rng)
    seed = int(rng.integers(2**31))
    looked_at = source.only(among)
    part = pivoted_cholesky(LazyGram(looked_at), m, seed)
    total = float(looked_at.diag().sum()) if len(among) == source.n else 0.0
    return Drawn(among[part.pivots], part.trace_left / total if total > 0 else None)


def leverage(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Drawn:
    """Draw by ridge leverage scores, estimated from a factor of half as many columns.

    The penalty is what that factor leaves out for each landmark, so that scores sum to about m.
    """
    among = _sample(source, m, weights, rng)
    part = source.only(among)
    rough = pivoted_cholesky(LazyGram(part), max(1, m // 2), int(rng.integers(2**31)))
    F, left = rough.factor, np.maximum(part.diag(), 0.0)
    left = np.maximum(left - np.einsum("ij,ij->i", F, F), 0.0)
    penalty = max(float(left.sum()) / m, 1e-12 * float(part.diag().sum()))
    if not penalty > 0:  # the kernel is zero
        return uniform(source, m, weights, rng)
    A = F.T @ F
    A.flat[:: len(A) + 1] += penalty
    solved = linalg.solve_triangular(np.linalg.cholesky(A), F.T, lower=True)
    scores = np.einsum("ij,ij->j", solved, solved) + left / penalty
    m = min(m, int(np.count_nonzero(scores)))  # rows that explain nothing are no landmarks
    return Drawn(among[np.sort(rng.choice(len(among), m, False, scores / scores.sum()))])


def kmeans_plus_plus(
    source: Source, m: int, weights: Array | None, rng: np.random.Generator
) -> Drawn:
    """Draw by the squared distance in feature space to the nearest landmark so far."""
    among = _sample(source, m, weights, rng)
    part = source.only(among)
    own, drawn = part.diag(), [int(rng.integers(len(among)))]
    nearest = np.full(len(among), np.inf)
    done = 0
    while len(drawn) < m:
        new = np.asarray(drawn[done:])
        done = len(drawn)
        K = choose_backend().pairs(part.expression, part.X, take(part.X, new), np.float64).dense()
        nearest = np.minimum(nearest, (own[:, None] - 2 * K + own[new]).min(axis=1))
        nearest = np.maximum(nearest, 0.0)
        nearest[new] = 0.0
        if not nearest.sum() > 0:  # every row is a copy of a landmark
            break
        count = min(_TOGETHER, m - len(drawn), int(np.count_nonzero(nearest)))
        picked = rng.choice(len(among), count, replace=False, p=nearest / nearest.sum())
        drawn.extend(picked.tolist())
    return Drawn(among[np.sort(drawn)])


RULES: dict[str, Rule] = {
    "pivoted": pivoted,
    "uniform": uniform,
    "leverage": leverage,
    "kmeans++": kmeans_plus_plus,
}


def _sample(source: Source, m: int, weights: Array | None, rng: np.random.Generator) -> Array:
    fewest = min(source.n, _SAMPLED * m)
    require_memory(
        8 * _COPIES * fewest * m,
        f"choosing {m} landmarks among {fewest} rows",
        "Use fewer components, sampling='uniform', which looks at no rows, or a larger budget "
        "with mercer.config(memory=...).",
    )
    most = max(fewest, rows_at_once(m, max(_ALL, fewest), arrays=_COPIES, share=_SHARE))
    if source.n <= most:
        return np.arange(source.n)
    return np.sort(rng.choice(source.n, most, replace=False, p=_shares(weights)))


def _shares(weights: Array | None) -> Array | None:
    return None if weights is None else np.asarray(weights / weights.sum())
