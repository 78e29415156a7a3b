"""Mixture likelihood and its E step, and seeds for EM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.rows.points import is_sparse, row_count, take, to_dense

# --- mixture -------------------------------------------------------------------------------------
#
# Rows that come from one of k sources, and nobody said which: what all mixtures share.
#
# P(x) = sum_j share_j P(x | part j). A pass over the rows takes expectations of the hidden
# sources (`e_step`), the best parts follow in closed form (`m_step`): the likelihood cannot fall.
# What a mixture is made of (Gaussians, coins, words) is in the files beside this one.


@dataclass(frozen=True, eq=False)
class EStep:
    """What a pass over the rows found.

    Attributes
    ----------
    log_likelihood : float
        Sum over rows, each as often as it counts.
    objective : float
        The same, plus the logarithm of the prior where there is smoothing: what must not fall.
    sums : object
        Expected sums, of the type that belongs to the mixture.
    """

    log_likelihood: float
    objective: float
    sums: Any


class Mixture(ABC):
    """A question: the parts under which rows are most likely.

    Attributes
    ----------
    weights : (n,) array
        How often each row counts.
    count : int
        The number of parts.
    """

    weights: Array
    count: int

    @abstractmethod
    def e_step(self, parts: Any, *, exact: bool = False) -> EStep:
        """Take expectations under the parts; `exact` forbids formulas that lose digits."""

    @abstractmethod
    def m_step(self, parts: Any, sums: Any) -> Any:
        """Return the best parts for expected sums."""

    @abstractmethod
    def start(self, rng: np.random.RandomState) -> Any:
        """Return parts to begin with."""

    @abstractmethod
    def extrapolate(self, zero: Any, one: Any, two: Any) -> Any | None:
        """Extrapolate two steps, or give None where that leads nowhere."""

    @abstractmethod
    def faults(self, parts: Any) -> float:
        """Return how far the parts are from being distributions; infinite if they are none."""

    def collapsed(self, parts: Any) -> Array:
        """Return which parts have shrunk to nothing, or to a point that the floor holds: (k,)."""
        return np.zeros(self.count, dtype=bool)

    def held_movement(self, after: Any) -> float:
        """Return how far the step to these parts moved what is held elsewhere, over its largest."""
        return 0.0

    def rounding(self, parts: Any) -> float:
        """Return how much of the mean log-likelihood of the rows rounding may take away."""
        return 0.0

    def resolves(self, parts: Any, tol: float, objective: float) -> bool:
        """Return whether a gain of `tol` per row is seen through rounding.

        Rounding of the sum over rows, 1e-9 of it at most, is never asked to be less.
        """
        mean = abs(objective) / self.total
        return self.rounding(parts) <= max(tol, FALL * max(1.0, mean))

    @property
    def total(self) -> float:
        """Return the number of rows, each as often as it counts."""
        return float(self.weights.sum())


def softened(scores: Array) -> Array:
    """Turn joint log-densities (k, m) into responsibilities in place; return their log-sums (m,).

    The largest of each column is taken off first, so that nothing overflows and one is always 1.
    """
    top = scores.max(axis=0)
    scores -= top
    np.exp(scores, out=scores)
    mass = scores.sum(axis=0)
    scores /= mass
    return np.asarray(top + np.log(mass))


FALL = 1e-9
"""Of the objective: what rounding of its sum may take from it."""

EMPTY = 1e-12
"""Share of all rows below which a part has nothing to learn from."""


_NEVER = -1e300  # stands for log 0: finite, and no density outweighs it


def log_shares(shares: Array) -> Array:
    """Return logarithms of shares; a part of share zero adds to no density, however far a row."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(np.maximum(shares, 0.0)), _NEVER))


def packed_shares(shares: Array) -> Array:
    """Return shares as `extrapolated` takes them: logarithms, of a size that can be squared."""
    return np.log(np.maximum(shares, 1e-300))


def extrapolated(zero: Array, one: Array, two: Array, roots: Array | float = 1.0) -> Array | None:
    """Leap along two steps of an iteration; None if no further than they go themselves.

    With r the first step and v the change between both, zero + 2 a r + a^2 v with a = |r| / |v| is
    the fixed point if the steps shrink by a constant factor (squared extrapolation).

    Parameters
    ----------
    zero, one, two : array
        Where the iteration was.
    roots : array or float
        Roots of how often each number counts in the lengths: those of rows, as often as their row.
    """
    r, v = one - zero, (two - one) - (one - zero)
    length = float(np.linalg.norm(v * roots))
    stretch = float(np.linalg.norm(r * roots)) / length if length > 0 else 1.0
    if not 1.0 < stretch < 1e8:
        return None
    return np.asarray(zero + 2.0 * stretch * r + stretch**2 * v)


def simplex(values: Array, least: Array) -> Array:
    """Keep extrapolated probabilities at `least` or more, and let rows sum to one."""
    kept = np.maximum(values, least)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def simplex_fault(values: Array) -> float:
    """Return how far rows are from being distributions."""
    if not np.isfinite(values).all() or (values < 0).any():
        return np.inf
    return float(np.abs(values.sum(axis=-1) - 1.0).max())


# --- seeding -------------------------------------------------------------------------------------
#
# Where to begin: rows far from one another (k-means++), and a few rounds of k-means after it.

_ROUNDS = 12
_ENTRIES = 1 << 18


def grouped(X: Points, weights: Array, k: int, rng: np.random.RandomState) -> Array:
    """Return each row one of k groups, found by k-means from centres far from one another.

    Parameters
    ----------
    X : Points
        Rows, dense or CSR.
    weights : (n,) array
        How often each row counts.
    k : int
        The number of groups; some may stay empty where there are fewer distinct rows.
    rng : RandomState
        Source of random numbers.
    """
    norms = _squared_norms(X)
    centres = to_dense(take(X, seeds(X, weights, k, rng, norms)))
    labels = _nearest(X, centres)
    for _ in range(_ROUNDS):
        mass, sums = _totals(X, weights, labels, k)
        full = mass > 0
        centres[full] = sums[full] / mass[full, None]
        moved = _nearest(X, centres)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels


def seeds(
    X: Points, weights: Array, k: int, rng: np.random.RandomState, norms: Array | None = None
) -> Array:
    """Draw k rows, each with a chance in proportion to its squared distance from those before.

    Of a few drawn, the one that leaves the smallest distances is taken.
    """
    norms = _squared_norms(X) if norms is None else norms
    trials = 2 + int(np.log(k))
    chosen = [int(_draw(weights, 1, rng)[0])]
    nearest = _distances(X, norms, np.array(chosen))[0]
    while len(chosen) < k:
        deadline.check()
        chances = weights * nearest
        drawn = _draw(chances if chances.any() else weights, trials, rng)
        closer = np.minimum(_distances(X, norms, drawn), nearest)
        best = int(np.argmin(closer @ weights))
        chosen.append(int(drawn[best]))
        nearest = closer[best]
    return np.array(chosen)


def _draw(chances: Array, count: int, rng: np.random.RandomState) -> Array:
    ladder = np.cumsum(chances)
    found = np.searchsorted(ladder, rng.uniform(size=count) * ladder[-1], side="right")
    # at the very top rounding may point behind the last row, or at one without a chance
    return np.asarray(np.minimum(found, int(np.flatnonzero(chances)[-1])))


def _squared_norms(X: Points) -> Array:
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def _distances(X: Points, norms: Array, rows: Array) -> Array:
    """Return squared distances of all rows from some of them: (len(rows), n)."""
    centres = to_dense(take(X, rows))
    found = norms - 2.0 * np.asarray(X @ centres.T).T + norms[rows, None]
    np.maximum(found, 0.0, out=found)
    found[np.arange(len(rows)), rows] = 0.0
    return np.asarray(found)


def _nearest(X: Points, centres: Array) -> Array:
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    labels = np.empty(row_count(X), dtype=np.intp)
    step = max(256, _ENTRIES // len(centres))
    for first in range(0, len(labels), step):
        deadline.check()
        rows = slice(first, first + step)
        labels[rows] = np.argmin(half - np.asarray(take(X, rows) @ centres.T), axis=1)
    return labels


def _totals(X: Points, weights: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Return the weight of each group and the weighted sum of its rows."""
    n = len(labels)
    groups = csr_array((weights, labels, np.arange(n + 1)), shape=(n, k))
    sums = groups.T @ X
    return np.bincount(labels, weights, minlength=k), to_dense(sums)
