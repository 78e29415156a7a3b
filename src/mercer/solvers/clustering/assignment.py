"""Points to clusters of equal sizes at the least cost: a transport problem with few columns.

Every cluster has a price, and every point goes where cost plus price is least. Clusters that are
then too full hand points on, along the cheapest chain of clusters to one with room (successive
shortest paths in a graph of the clusters alone, whose edges are the cheapest moves of one point):
no chain of moves is cheaper at the end, which the prices prove.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer import deadline
from mercer.array_types import Array

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
