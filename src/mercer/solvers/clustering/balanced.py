"""K-means with clusters of equal sizes: exact assignments, means, and exchanges of two points.

Lloyd's step gives every point to the nearest mean; here all points are given to the means at once,
at the least total of squared distances that leaves the sizes equal. The objective falls until
nothing changes. Then two points of different clusters change places while that lowers the objective
with both means following, and so on until neither helps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.deadline import check
from mercer.problems import BalancedPartition, Clusters
from mercer.problems.clustering.partition import about_the_mean
from mercer.resources import require_memory
from mercer.solvers.base import Progress, Solution, Solver, Status, Watch, report
from mercer.solvers.clustering.assignment import assigned
from mercer.solvers.clustering.seeding import Given, PlusPlus, Seeding

_EQUAL = 1e-10  # objectives this close, relatively, count as equal
_ARRAYS = 6  # of one number for each point and cluster


@dataclass(frozen=True)
class BalancedLloyd(Solver):
    """Assignments to clusters of equal sizes and means in turn, then exchanges.

    Parameters
    ----------
    seeding : Seeding
        Where to start; sizes are made equal by the first assignment.
    starts : int
        How many starts; the answer is the best end.
    max_iter : int
        Largest number of steps of a start: assignments of all points, and sweeps of exchanges.
    refine : bool
        Whether points are exchanged at the end.
    random_state : int
        Seed of the starts.
    """

    answers = BalancedPartition

    seeding: Seeding = field(default_factory=PlusPlus)
    starts: int = 10
    max_iter: int = 300
    refine: bool = True
    random_state: int = 0

    def run(self, problem: BalancedPartition, watch: Watch, start: Any = None) -> Solution:
        """Run the starts one after another, and keep the best end."""
        problem = replace(problem, gram=about_the_mean(problem.gram, problem.weights))
        n, k = problem.gram.shape[0], problem.count
        what = f"distances of {n} points from {k} means"
        require_memory(8 * n * k * _ARRAYS, what, "Ask for fewer clusters, or use fewer rows.")
        seeding = self.seeding if start is None else Given(start.labels)
        rng = np.random.default_rng(self.random_state)
        ends: list[_Descent] = []
        for _ in range(1 if seeding.repeatable else self.starts):
            with watch.keeping(lambda: any(end.trace for end in ends)):
                ends.append(_Descent(problem, seeding.labels(problem, rng)))
                ends[-1].run(self.max_iter, self.refine, watch)
            if watch.stopped is not None or watch.late:
                break
        ran = [end for end in ends if end.trace]
        lowest = min(end.trace[-1] for end in ran)
        best = next(end for end in ran if end.trace[-1] <= lowest + _EQUAL * abs(lowest))
        status = Status.SOLVED if best.rests else Status.ITERATION_LIMIT
        watch.trace[:] = [Progress(i, float("nan"), f) for i, f in enumerate(best.trace)]
        value = Clusters(best.labels.astype(np.int64), _side_by_side([end.trace for end in ran]))
        return report(self, value, watch.stopped or status, len(best.trace) - 1, watch)


class _Descent:
    """One start: labels, sums of K over clusters, objectives so far."""

    def __init__(self, problem: BalancedPartition, labels: Array) -> None:
        self.problem, self.labels = problem, np.asarray(labels, dtype=np.int64)
        self.prices = np.zeros(problem.count)
        self.trace: list[float] = []
        self.rests = False
        self.sums = self._summed()

    def run(self, max_iter: int, refine: bool, watch: Watch) -> None:
        """Assign until nothing changes, exchange, and so on until neither helps."""
        for _ in range(max_iter):
            changed = self._assign()
            if not changed and refine:
                changed = self._exchange()
            if watch.tick(len(self.trace) - 1, self.trace[-1]):
                return
            if not changed:
                self.rests = True
                return

    def _assign(self) -> bool:
        """Give all points to the means; say whether the objective fell."""
        D = self.problem.distances(self.labels, self.sums)
        labels, self.prices = assigned(D, self.prices)
        before = (self.labels, self.sums)
        self.labels = labels
        self.sums = self._summed()
        return self._lower(*before)

    def _lower(self, labels: Array, sums: Array) -> bool:
        """Note the objective; without gain, go back to labels of equal sizes."""
        objective = self._objective()
        if self.trace and objective >= self.trace[-1] - _EQUAL * abs(self.trace[-1]):
            self.labels, self.sums = labels, sums
            return False
        self.trace.append(objective)
        return True

    def _exchange(self) -> bool:
        """Go once through all pairs of clusters; say whether the objective fell."""
        k, before, fell = self.problem.count, (self.labels.copy(), self.sums.copy()), False
        for a in range(k):
            for b in range(a + 1, k):
                # no more than there are points: gains that are rounding would go round for ever,
                # and whoever gained in earnest is asked again in the next pass
                for _ in range(len(self.labels)):
                    check()
                    if not self._best_of(a, b):
                        break
                    fell = True
        return self._lower(*before) if fell else False

    def _best_of(self, a: int, b: int) -> bool:
        """Exchange the two points of a pair of clusters that gain most, if they gain anything."""
        gram, diagonal = self.problem.gram, self.problem.gram.diag()
        first, second = (np.flatnonzero(self.labels == c) for c in (a, b))
        cross = np.asarray(gram.rows(first), dtype=np.float64)[:, second]
        lengths = diagonal[first][:, None] + diagonal[second] - 2.0 * cross
        S = self.sums
        # how much 1'K 1 of each cluster grows when i and j change places
        grown_a = 2.0 * (S[second, a] - S[first, a][:, None]) + lengths
        grown_b = 2.0 * (S[first, b][:, None] - S[second, b]) + lengths
        gain = grown_a / len(first) + grown_b / len(second)
        i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        best = float(gain[i, j])
        size = max(abs(self.trace[-1]), _EQUAL * float(np.abs(diagonal).sum()))
        if best <= _EQUAL * size:
            return False
        self._move(int(first[i]), a, b)
        self._move(int(second[j]), b, a)
        return True

    def _move(self, point: int, source: int, target: int) -> None:
        row = np.asarray(self.problem.gram.rows(np.array([point])), dtype=np.float64)[0]
        self.labels[point] = target
        self.sums[:, source] -= row
        self.sums[:, target] += row

    def _summed(self) -> Array:
        return np.asarray(self.problem.gram @ self.problem.indicator(self.labels))

    def _objective(self) -> float:
        W = self.problem.cluster_weights(self.labels)
        every = np.arange(len(self.labels))
        within = np.bincount(self.labels, self.sums[every, self.labels], len(W))
        return float(self.problem.gram.diag().sum() - (within / W).sum())


def _side_by_side(traces: list[list[float]]) -> Array:
    longest = max(map(len, traces))
    return np.array([trace + trace[-1:] * (longest - len(trace)) for trace in traces])
