"""Minimum cuts through maximum flows (SciPy's), exact for integer capacities.

SciPy's capacities are 32-bit integers. Weights are multiplied so that the largest degree becomes
2^30 and rounded *down*: the flow found is then a flow of the true weights too, hence a lower bound
on every cut, while the cut is weighed in float64. Their distance, at most one unit an edge of the
cut, is what rounding leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from mercer.array_types import Array
from mercer.gram import SparseGram
from mercer.machines.clustering.problem import Bipartition, MinimumCut, affinity_gram
from mercer.rows.points import to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

_LARGEST = 2.0**30


@dataclass(frozen=True)
class MaximumFlow(Solver):
    """Exact minimum cut between two points, or of a whole graph by n - 1 flows from point 0."""

    answers = MinimumCut

    def run(self, problem: MinimumCut, watch: Watch, start: Any = None) -> Solution:
        """Push flows until every pair that must be separated is known."""
        weights = edge_weights(problem)
        capacity, unit = _capacities(weights)
        source = 0 if problem.source is None else int(problem.source)
        sinks = range(1, capacity.shape[0]) if problem.sink is None else [int(problem.sink)]
        best, status, done, least = None, Status.SOLVED, 0, np.inf
        for done, sink in enumerate(sinks, start=1):
            pushed = maximum_flow(capacity, source, sink)
            least = min(least, pushed.flow_value / unit)
            side = _reached(capacity - pushed.flow, source)
            cut = float(weights[side][:, ~side].sum())
            if best is None or cut < best.value:
                best = Bipartition(side.astype(np.int64), cut, 0.0)
            if watch.tick(done, cut) and done < len(sinks):
                status = watch.stopped or Status.STOPPED
                break
        assert best is not None
        flow = float(least) if status is Status.SOLVED else 0.0
        value = Bipartition(best.labels, best.value, flow)
        return report(self, value, status, done, watch)


def minimum_cut(affinity: Any, source: int | None = None, sink: int | None = None) -> Solution:
    """Divide a graph in two where that cuts the least weight, exactly.

    Parameters
    ----------
    affinity : Gram, (n, n) array or sparse matrix
        Weights of the edges: symmetric, not negative.
    source, sink : int, optional
        Points that must be separated; without them, the cheapest division of all.

    Returns
    -------
    Solution
        Its `value` is a `Bipartition`: `labels`, `value` (the weight cut) and `flow` (which proves
        that no cut is cheaper).

    Examples
    --------
    >>> found = minimum_cut([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).value
    >>> found.labels.tolist(), found.value
    ([1, 1, 0], 1.0)
    """
    problem = MinimumCut(affinity_gram(affinity), source, sink)
    return MaximumFlow().run(problem, Watch())


def edge_weights(problem: MinimumCut) -> Any:
    """Return the weights between different points as CSR; refuse negative ones."""
    gram = problem.affinity
    if isinstance(gram, SparseGram):
        weights = sparse.csr_array(gram.csr)
    else:
        weights = sparse.csr_array(to_dense(gram.dense()))
    if weights.nnz and weights.data.min() < 0:
        raise ValueError(
            "minimum cut: the affinity has negative weights; cuts need weights of at least 0, "
            "such as those of a Gaussian kernel"
        )
    weights = sparse.csr_array(weights - sparse.diags_array(weights.diagonal()))
    weights.eliminate_zeros()
    return weights


def _capacities(weights: Any) -> tuple[Any, float]:
    largest = float(weights.sum(axis=1).max()) if weights.nnz else 0.0
    unit = _LARGEST / largest if largest > 0 else 1.0
    whole = np.floor(weights.data * unit).astype(np.int32)
    return sparse.csr_array((whole, weights.indices, weights.indptr), shape=weights.shape), unit


def _reached(left: Any, source: int) -> Array:
    """Return which points can still be reached where capacity is left."""
    left = sparse.csr_array(left)
    left.eliminate_zeros()
    side = np.zeros(left.shape[0], dtype=bool)
    side[breadth_first_order(left, source, return_predecessors=False)] = True
    return side


# --- choice -------------------------------------------------------------------------------------

choose.register(MinimumCut)(lambda problem: MaximumFlow())
