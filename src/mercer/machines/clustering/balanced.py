"""Balanced k-means: optimal assignment to clusters of equal sizes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.deadline import check
from mercer.machines.clustering.problem import BalancedPartition, Clusters, about_the_middle
from mercer.machines.clustering.seeding import Given, PlusPlus, Seeding
from mercer.resources import require_memory
from mercer.solvers.base import Progress, Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- assignment ----------------------------------------------------------------------------------
#
# Points to clusters of equal sizes at the least cost: a transport problem with few columns.
#
# Every cluster has a price, and every point goes where cost plus price is least. Clusters that
# are then too full hand points on, along the cheapest chain of clusters to one with room
# (successive shortest paths in a graph of the clusters alone, whose edges are the cheapest moves
# of one point): no chain of moves is cheaper at the end, which the prices prove.

_ROUNDING = 1e-14  # of the largest cost, or four roundings for each cluster of a chain


def assigned(cost: Array, prices: Array) -> tuple[Array, Array]:
    """Return the cheapest labels with n / k points in each cluster, rounded up or down.

    Parameters
    ----------
    cost : (n, k) array
        What each point costs in each cluster.
    prices : (k,) array
        Prices of the clusters to begin with: zeros, or those of a similar problem.

    Returns
    -------
    labels : (n,) int array
        The cluster of each point.
    prices : (k,) array
        Prices at which every point is where cost plus price is least.

    Examples
    --------
    >>> import numpy as np
    >>> cost = np.array([[0.0, 5.0], [1.0, 4.0], [2.0, 3.0], [0.0, 9.0]])
    >>> assigned(cost, np.zeros(2))[0].tolist()
    [0, 1, 1, 0]
    """
    chains = _Chains(cost, prices)
    while chains.excess.any():
        deadline.check()
        chains.hand_on()
    return chains.labels, chains.prices()


class _Chains:
    """Clusters as nodes, the last of them a pool that lends one place to r of the clusters."""

    def __init__(self, cost: Array, prices: Array) -> None:
        n, k = cost.shape
        self.cost, self.k = cost, k
        self.labels = np.argmin(cost + prices, axis=1)
        least, more = divmod(n, k)
        sizes = np.bincount(self.labels, minlength=k)
        self.lent = np.zeros(k, dtype=bool)  # which clusters have one place more
        self.lent[np.lexsort((-sizes, -prices))[:more]] = True
        self.excess = sizes - least - self.lent
        share = max(_ROUNDING, 4.0 * (k + 1) * float(np.finfo(np.float64).eps))
        self.rounding = share * float(np.abs(cost).max(initial=0.0))
        self.circles = 0
        self.moves = np.full((k + 1, k + 1), np.inf)  # cheapest move of a point between clusters
        self.movers = np.zeros((k, k), dtype=np.int64)
        for c in range(k):
            self._look(c)
        self._lend()

    def hand_on(self) -> None:
        """Move one point from clusters that are too full, along a cheapest chain.

        Rounding of the first labels may leave a circle of moves that lowers the cost: it is walked
        first, since no chain would end.
        """
        reached, before = self._paths(self.excess > 0)
        short = np.flatnonzero(self.excess < 0)
        end = int(short[np.argmin(reached[short])])
        chain = [end]
        while before[chain[-1]] >= 0:
            back = int(before[chain[-1]])
            chain.append(back)
            if back in chain[:-1]:
                self.circles += 1
                if self.circles <= len(self.labels):
                    self._move(chain[chain.index(back) :][::-1])
                    return
                full = np.flatnonzero(self.excess > 0)  # they come of rounding: one move will do
                chain = [end, int(full[np.argmin(self.moves[full, end])])]
                break
        self.excess[chain[-1]] -= 1
        self.excess[end] += 1
        self._move(chain[::-1])

    def _move(self, chain: list[int]) -> None:
        """Hand a point on from each cluster of a chain to the next."""
        chosen = [(int(self.movers[a, b]), b) for a, b in pairwise(chain) if self.k not in (a, b)]
        for a, b in pairwise(chain):
            if b == self.k:
                self.lent[a] = True  # keeps the point that it was handed
            elif a == self.k:
                self.lent[b] = False  # hands one on without being handed any
        for point, cluster in chosen:
            self.labels[point] = cluster
        for c in set(chain) - {self.k}:
            self._look(c)
        self._lend()

    def prices(self) -> Array:
        """Return prices from the lengths of cheapest chains into each cluster."""
        reached, _ = self._paths(np.ones(self.k, dtype=bool))
        return np.asarray(-reached[: self.k])

    def _paths(self, sources: Array) -> tuple[Array, Array]:
        """Return lengths of cheapest chains from some clusters, and the cluster before (or -1)."""
        reached = np.full(self.k + 1, np.inf)
        reached[: self.k][sources] = 0.0
        before = np.full(self.k + 1, -1)
        every = np.arange(self.k + 1)
        for _ in range(self.k + 1):
            ways = reached[:, None] + self.moves
            best = np.argmin(ways, axis=0)
            length = ways[best, every]
            shorter = length < reached - self.rounding  # which must not close a chain to a circle
            if not shorter.any():
                break
            reached[shorter], before[shorter] = length[shorter], best[shorter]
        return reached, before

    def _look(self, c: int) -> None:
        """Find the cheapest moves out of a cluster."""
        members = np.flatnonzero(self.labels == c)
        self.moves[c, : self.k] = np.inf
        if len(members):
            extra = self.cost[members] - self.cost[members, c][:, None]
            first = np.argmin(extra, axis=0)
            self.movers[c] = members[first]
            self.moves[c, : self.k] = extra[first, np.arange(self.k)]
        self.moves[c, c] = np.inf

    def _lend(self) -> None:
        """Let a place go from a cluster that has one more to the pool, and on to others."""
        self.moves[: self.k, self.k] = np.where(self.lent, np.inf, 0.0)
        self.moves[self.k, : self.k] = np.where(self.lent, 0.0, np.inf)


# --- balanced ------------------------------------------------------------------------------------
#
# K-means with clusters of equal sizes: exact assignments, means, and exchanges of two points.
#
# Lloyd's step gives every point to the nearest mean; here all points are given to the means at
# once, at the least total of squared distances that leaves the sizes equal. The objective falls
# until nothing changes. Then two points of different clusters change places while that lowers the
# objective with both means following, and so on until neither helps.

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
        problem = replace(problem, gram=about_the_middle(problem.gram, problem.weights))
        n, k = problem.gram.shape[0], problem.count
        what = f"distances of {n} points from {k} means"
        require_memory(8 * n * k * _ARRAYS, what, "Ask for fewer clusters, or use fewer rows.")
        seeding = self.seeding if start is None else Given(start.labels)
        rng = np.random.default_rng(self.random_state)
        ends: list[_BalancedDescent] = []
        for _ in range(1 if seeding.repeatable else self.starts):
            with watch.keeping(lambda: any(end.trace for end in ends)):
                ends.append(_BalancedDescent(problem, seeding.labels(problem, rng)))
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


class _BalancedDescent:
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


# --- choice -------------------------------------------------------------------------------------

choose.register(BalancedPartition)(lambda problem: BalancedLloyd())
