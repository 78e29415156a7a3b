"""Initial partitions of k-means: k-means++, random points, given labels, and samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.backends.reference.kmeans import filled
from mercer.gram import FactoredGram
from mercer.machines.clustering.problem import Partition

# --- seeding -------------------------------------------------------------------------------------
#
# Where K-means starts: rules that give labels to all points, none of the clusters empty.
#
# Distances between points come from rows of K: |phi_i - phi_j|^2 = K_ii + K_jj - 2 K_ij. Points
# are drawn by weight along a cumulative sum, so a point of weight two is drawn as two of weight
# one are.


class Seeding(ABC):
    """A rule for a start."""

    @abstractmethod
    def labels(self, problem: Partition, rng: np.random.Generator) -> Array:
        """Return a label to every point."""

    @property
    def repeatable(self) -> bool:
        """Whether every start would be the same."""
        return False

    @property
    def on_samples(self) -> bool:
        """Whether a start on some of the rows means the same as one on all of them."""
        return False


@dataclass(frozen=True)
class PlusPlus(Seeding):
    """K-means++: each seed is drawn by its squared distance to the seeds so far.

    Parameters
    ----------
    candidates : int or None
        How many are drawn for each seed, of which the best is kept; None takes 2 + floor(ln k).
    """

    candidates: int | None = None

    def labels(self, problem: Partition, rng: np.random.Generator) -> Array:
        """Draw seeds; points go to the nearest."""
        tries = self.candidates or 2 + int(np.log(problem.count))
        seeds = _Seeds(problem)
        seeds.add(drawn_by(problem.weights, rng.random(1)))
        for _ in range(1, problem.count):
            pull = problem.weights * seeds.squared
            drawn = drawn_by(pull, rng.random(tries))
            if not pull[drawn].any():  # all points lie on seeds: any that is not one will do
                drawn = np.flatnonzero(~seeds.taken)[:1]
            seeds.add(np.unique(drawn))
        return seeds.labels

    @property
    def on_samples(self) -> bool:
        """Seeds are rows, drawn by chance."""
        return True


@dataclass(frozen=True)
class RandomPoints(Seeding):
    """Seeds drawn by weight alone; points go to the nearest."""

    def labels(self, problem: Partition, rng: np.random.Generator) -> Array:
        """Draw seeds without replacement."""
        seeds, left = _Seeds(problem), problem.weights.copy()
        for u in rng.random(problem.count):
            seed = drawn_by(left, np.array([u]))
            seeds.add(seed)
            left[seed] = 0.0
        return seeds.labels

    @property
    def on_samples(self) -> bool:
        """Seeds are rows, drawn by chance."""
        return True


@dataclass(frozen=True, eq=False)
class Given(Seeding):
    """Labels that are known.

    Parameters
    ----------
    start : (n,) int array
        A label for every point; clusters without a point get the ones farthest from their means.
    """

    start: Array

    def labels(self, problem: Partition, rng: np.random.Generator) -> Array:
        """Fill empty clusters."""
        return without_empty(problem, self.start)

    @property
    def repeatable(self) -> bool:
        """The start is what it is."""
        return True


def without_empty(problem: Partition, labels: Array) -> Array:
    """Return each empty cluster the point that is farthest from its mean, by weight."""
    labels = np.array(labels, dtype=np.int32)
    distances = partial(_to_own_mean, problem, labels)
    return filled(labels, problem.count, distances, problem.weights)


def _to_own_mean(problem: Partition, labels: Array) -> Array:
    columns, every = problem.indicator(labels), np.arange(len(labels))
    W = problem.cluster_weights(labels)
    W = np.where(W > 0, W, 1.0)
    sums = np.asarray(problem.gram @ columns)
    level = (columns * sums).sum(axis=0) / W**2
    return np.asarray(problem.gram.diag() - 2.0 * sums[every, labels] / W[labels] + level[labels])


def drawn_by(pull: Array, uniform: Array) -> Array:
    """Draw points with probabilities along `pull`."""
    heights = np.cumsum(pull)
    drawn = np.searchsorted(heights, uniform * heights[-1], side="right")
    return np.asarray(np.minimum(drawn, len(pull) - 1))


class _Seeds:
    """Seeds so far: the nearest of each point, and the squared distance to it."""

    def __init__(self, problem: Partition) -> None:
        self._gram, self._weights = problem.gram, problem.weights
        self._diagonal = problem.gram.diag()
        self._count = 0
        n = len(self._diagonal)
        self.labels = np.zeros(n, dtype=np.int32)
        self.squared = np.full(n, np.inf)
        self.taken = np.zeros(n, dtype=bool)

    def add(self, candidates: Array) -> None:
        """Take the candidate that leaves the points nearest to the seeds."""
        deadline.check()
        rows = np.asarray(self._gram.rows(candidates))
        squared = (-2.0 * rows).astype(np.float64, copy=False)
        squared += self._diagonal
        squared += self._diagonal[candidates][:, None]
        np.clip(squared, 0.0, self.squared, out=squared)
        best = int(np.argmin(squared @ self._weights))
        seed = int(candidates[best])
        self.labels[squared[best] < self.squared] = self._count
        self.squared = squared[best]
        self.squared[seed], self.labels[seed] = 0.0, self._count
        self.taken[seed] = True
        self._count += 1


# --- sampled starts ------------------------------------------------------------------------------
#
# Starts of K-means on many rows of features: all of them tried on a sample, the best goes on.
#
# Means found on a sample of s rows are off by about 1 / sqrt(s) of their spread: which start is
# the best shows there, and what is left for all rows is a few steps of one start instead of all
# the steps of all of them.

_ROWS = 10_000  # of a sample, at least: means of twenty clusters are known to 4 % of their spread
_ROWS_PER_CLUSTER = 200
_TIMES = 10  # as many rows as the sample, at least: else all of them are as soon looked at


def draw_sample(problem: Partition, rng: np.random.Generator) -> Partition:
    """Draw rows by weight, a row drawn twice weighing two."""
    gram, size = problem.gram, sample_size(problem)
    assert isinstance(gram, FactoredGram)
    which, counts = np.unique(drawn_by(problem.weights, rng.random(size)), return_counts=True)
    part = FactoredGram.of(gram.features, gram.factor[which])
    return Partition(part, min(problem.count, len(which)), counts.astype(np.float64))


def sample_size(problem: Partition) -> int:
    """Count the rows of a sample."""
    return max(_ROWS, _ROWS_PER_CLUSTER * problem.count)


def is_sampled(problem: Partition) -> bool:
    """Return whether there are so many rows that starts are tried on a sample."""
    many = len(problem.weights) >= _TIMES * sample_size(problem)
    return many and isinstance(problem.gram, FactoredGram)


def best_on_sample(sample: Partition, groups: Groups, poll: Poll) -> Array | None:
    """Return the means (k, d) of the best end of the starts on a sample; None if it fails.

    Parameters
    ----------
    sample : Partition
        Some of the rows.
    groups : Groups
        The starts on the sample.
    poll : callable
        Asked now and then whether to stop.
    """
    part = sample.gram
    assert isinstance(part, FactoredGram)
    answers = choose_backend().features(part.factor, None).partition(groups, poll)
    ran = [answer for answer in answers if len(answer.trace)]
    if not ran:
        return None
    labels = min(ran, key=_end).labels
    return np.asarray(sample.feature_sums(labels) / sample.cluster_weights(labels)[:, None])


def _end(answer: GroupAnswer) -> float:
    return float(answer.trace[-1, 0])
