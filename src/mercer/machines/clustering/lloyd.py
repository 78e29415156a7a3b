"""K-means: steps of Lloyd from several starts, finished by moves of single points (Hartigan).

Lloyd's step gives every point to the nearest mean; the objective falls until nothing changes. A
point may then still gain by moving alone, since both means follow it: such moves begin when a step
changes few labels, and end in a lower minimum than Lloyd's. Restarts share one Gram.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.backends.lapack import one_blas_thread
from mercer.backends.reference.kmeans import partition
from mercer.gram import DenseGram, FactoredGram, Gram, PrecomputedGram
from mercer.machines.clustering.distances import CarefulDescent, loses_digits
from mercer.machines.clustering.problem import Clusters, Partition, about_the_middle
from mercer.machines.clustering.seeding import (
    Given,
    PlusPlus,
    Seeding,
    best_on_sample,
    draw_sample,
    is_sampled,
)
from mercer.resources import require_memory, thread_limit
from mercer.solvers.base import Progress, Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

_EQUAL = 1e-10  # objectives this close, relatively, count as equal
_TOGETHER = 256  # clusters, of several starts, whose sums a compiled call holds at a time


@dataclass(frozen=True)
class Lloyd(Solver):
    """Lloyd's steps, then moves of single points.

    Parameters
    ----------
    seeding : Seeding
        Where to start.
    starts : int
        How many starts; the answer is the best end.
    max_iter : int
        Largest number of steps of a start: assignments of all points, and sweeps of single moves.
    refine : bool
        Whether single points are moved at the end.
    random_state : int
        Seed of the starts.
    """

    answers = Partition

    seeding: Seeding = field(default_factory=PlusPlus)
    starts: int = 10
    max_iter: int = 300
    refine: bool = True
    random_state: int = 0

    def run(self, problem: Partition, watch: Watch, start: Any = None) -> Solution:
        """Run all starts, and keep the best end."""
        problem = replace(problem, gram=about_the_middle(problem.gram, problem.weights))
        n, k = problem.gram.shape[0], problem.count
        together = min(self.starts, max(_TOGETHER // k, thread_limit()))
        require_memory(
            8 * n * k * together,
            f"sums of {k} clusters over {n} points, for several starts",
            "Ask for fewer clusters, or set n_init=1.",
        )
        starts = self._on_sample(problem, watch) if start is None else None
        if starts is None:
            starts = self._starting_labels(problem, watch, start)
        answers = _answers(problem.gram, self._groups(problem, starts), watch.tick)
        if problem.gram.factor is not None and not watch.stopped:
            answers = self._with_all_digits(problem, answers, watch)
        ends = np.array([a.trace[-1, 0] if len(a.trace) else np.inf for a in answers])
        # the first of those that rounding alone tells apart
        best = answers[int(np.argmax(ends <= ends.min() + _EQUAL * abs(ends.min())))]
        if not watch.stopped:
            watch.tick(len(best.trace) - 1, ends.min())  # a callback hears of the shortest fit, too
        status = Status.SOLVED if best.converged else Status.ITERATION_LIMIT
        watch.trace[:] = [Progress(i, t, f) for i, (f, t) in enumerate(best.trace.tolist())]
        value = Clusters(best.labels.astype(np.int64), _side_by_side(answers))
        return report(self, value, watch.stopped or status, max(0, len(best.trace) - 1), watch)

    def _groups(self, problem: Partition, starts: Array) -> Groups:
        diagonal, k = problem.gram.diag(), problem.count
        return Groups(starts, k, problem.weights, diagonal, self.max_iter, self.refine)

    def _with_all_digits(
        self, problem: Partition, answers: list[GroupAnswer], watch: Watch
    ) -> list[GroupAnswer]:
        """Go on from the best end by distances that keep their digits, where products lose them."""
        F, w = problem.gram.factor, problem.weights
        ends = [answer.trace[-1, 0] for answer in answers]
        labels = answers[int(np.argmin(ends))].labels
        if not loses_digits(F, problem.feature_means(labels), labels, w):
            return answers
        objectives = [problem.objective(answer.labels) for answer in answers]
        labels = answers[int(np.argmin(objectives))].labels
        careful = CarefulDescent(F, w, labels, problem.feature_sums, self.refine)
        rests = careful.run(self.max_iter, watch.tick)
        times = np.full(len(careful.trace), watch.seconds)
        trace = np.column_stack([careful.trace, times])
        return [GroupAnswer(careful.labels.astype(np.int32), trace, rests)]

    def _on_sample(self, problem: Partition, watch: Watch) -> Array | None:
        """Return the means of the best end of all starts on a sample; None where rows are few."""
        if not (self.seeding.on_samples and is_sampled(problem)):
            return None
        sample = draw_sample(problem, np.random.default_rng(self.random_state))
        if sample.count < problem.count:
            return None
        with one_blas_thread():  # thin products, many of them
            groups = self._groups(sample, self._starting_labels(sample, watch, None))
        means = best_on_sample(sample, groups, watch.tick)
        return None if means is None else means[None, :]

    def _starting_labels(self, problem: Partition, watch: Watch, start: Any) -> Array:
        """Return as many starts as there is time for, at least one."""
        seeding = self.seeding if start is None else Given(start.labels)
        rng = np.random.default_rng(self.random_state)
        labels = [seeding.labels(problem, rng)]
        for _ in range(1, 1 if seeding.repeatable else self.starts):
            if watch.late:
                break
            with watch.keeping():
                labels.append(seeding.labels(problem, rng))
        return np.stack(labels)


def _answers(gram: Gram, groups: Groups, poll: Poll) -> list[GroupAnswer]:
    """Work in the space of features, on a stored K, or by products alone."""
    if isinstance(gram, FactoredGram) and groups.starts.ndim == 2 and gram.rank >= gram.shape[0]:
        return choose_backend().stored(gram.dense()).partition(groups, poll)
    if isinstance(gram, FactoredGram):
        return choose_backend().features(gram.placed, None).partition(groups, poll)
    if isinstance(gram, DenseGram | PrecomputedGram):
        return gram.stored.partition(groups, poll)
    return partition(_RequestedGram(gram), groups, poll)


class _RequestedGram:
    """A Gram for those who ask for single rows or for products."""

    def __init__(self, gram: Gram) -> None:
        self._gram = gram

    def __getitem__(self, index: Array) -> Array:
        return self._gram.rows(index)

    def __matmul__(self, V: Array) -> Array:
        return self._gram @ V


def _side_by_side(answers: list[GroupAnswer]) -> Array | None:
    """Return the objectives of all starts that ran, the last of each repeated to the longest."""
    ran = [answer.trace[:, 0] for answer in answers if len(answer.trace)]
    if not ran:
        return None
    longest = max(map(len, ran))
    return np.stack([np.append(f, np.full(longest - len(f), f[-1])) for f in ran])


# --- choice -------------------------------------------------------------------------------------

choose.register(Partition)(lambda problem: Lloyd())
