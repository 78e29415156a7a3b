"""Starts of K-means on many rows of features: all of them tried on a sample, the best goes on.

Means found on a sample of s rows are off by about 1 / sqrt(s) of their spread: which start is the
best shows there, and what is left for all rows is a few steps of one start instead of all the steps
of all of them.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.blas import one_blas_thread
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.gram import FactoredGram
from mercer.points import to_dense
from mercer.problems import Partition
from mercer.row_chunks import chunked, slices
from mercer.solvers.clustering.seeding import drawn_by, without_empty

_ROWS = 10_000  # of a sample, at least: means of twenty clusters are known to 4 % of their spread
_ROWS_PER_CLUSTER = 200
_TIMES = 10  # as many rows as the sample, at least: else all of them are as soon looked at
_ENTRIES = 1 << 18  # of features that are multiplied at a time: they stay in the cache


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


def best_on_sample(
    problem: Partition, sample: Partition, groups: Groups, poll: Poll
) -> Array | None:
    """Return labels of all rows from the best end of the starts on a sample; None if it fails.

    Parameters
    ----------
    problem : Partition
        All rows.
    sample : Partition
        Some of them.
    groups : Groups
        The starts on the sample.
    poll : callable
        Asked now and then whether to stop.
    """
    gram, part = problem.gram, sample.gram
    assert isinstance(gram, FactoredGram) and isinstance(part, FactoredGram)
    answers = choose_backend().features(part.factor, None).partition(groups, poll)
    ran = [answer for answer in answers if len(answer.trace)]
    if not ran:
        return None
    labels = min(ran, key=_end).labels
    means = sample.feature_sums(labels).T / sample.cluster_weights(labels)
    return without_empty(problem, _nearest(gram, means))


def _end(answer: GroupAnswer) -> float:
    return float(answer.trace[-1, 0])


def _nearest(gram: FactoredGram, means: Array) -> Array:
    """Return the nearest mean of every row, chunk by chunk."""
    level = 0.5 * np.square(means).sum(axis=0)
    n, width = gram.factor.shape
    labels = np.empty(n, dtype=np.int32)
    step = max(1, _ENTRIES // max(width, 1))

    def chunk(rows: slice) -> None:
        for part in slices(rows.start, rows.stop, step):
            labels[part] = np.argmax(to_dense(gram.factor[part] @ means) - level, axis=1)

    with one_blas_thread():
        chunked(chunk, n)
    return labels
