"""Starts of K-means on many rows of features: all of them tried on a sample, the best goes on.

Means found on a sample of s rows are off by about 1 / sqrt(s) of their spread: which start is the
best shows there, and what is left for all rows is a few steps of one start instead of all the steps
of all of them.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.gram import FactoredGram
from mercer.problems import Partition
from mercer.solvers.clustering.seeding import drawn_by

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
