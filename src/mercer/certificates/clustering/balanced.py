"""Are sizes equal, and is no assignment to these means cheaper? By the dual of the assignment.

Any prices u of the clusters bound the cost of every assignment of equal sizes from below:
sum_i min_c (d_ic + u_c) less what the clusters pay, floor(n / k) sum_c u_c and the r largest u_c
once more. The prices are found here, from the labels and the distances alone; what the bound leaves
open is what another assignment could gain at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.certificates.clustering.partition import checked_labels
from mercer.gram import exact
from mercer.gram.definite import NEGATIVE
from mercer.problems import BalancedPartition, Clusters

_TOL = 1e-6
_EPS = float(np.finfo(np.float64).eps)
_SCATTER, _TRACE = 1e-6, 1e-12  # of these, at least, gains are shares; smaller ones are rounding


@dataclass(frozen=True)
class BalancedQuantities:
    """Measures of a partition into clusters of equal sizes.

    Attributes
    ----------
    objective : float
        Sum of squared distances to the means, by the trace formula.
    explained : float
        Share of the scatter about the mean of all points that lies between the clusters.
    smallest, largest : int
        Sizes of the smallest and of the largest cluster.
    reassignment_gain : float
        The most that any other assignment of equal sizes to the same means could gain, by the dual
        of the assignment problem, over the objective.
    smallest_distance : float
        The smallest squared distance between a point and a mean, over the largest k(x, x); below
        zero, beyond rounding, K is not positive semidefinite and there are no distances.
    """

    objective: float
    explained: float
    smallest: int
    largest: int
    reassignment_gain: float
    smallest_distance: float = 0.0


@certify.register
def _(problem: BalancedPartition, value: Clusters, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    labels = checked_labels(problem, value.labels)
    found = _measure(problem, labels)
    least, more = problem.sizes
    equal = found.smallest == least and found.largest == least + (more > 0)
    distances = found.smallest_distance >= -NEGATIVE
    ok = equal and distances and found.reassignment_gain <= tol
    return Certificate(bool(ok), found, tol, _statement(found, equal, distances, tol))


def _statement(found: BalancedQuantities, equal: bool, distances: bool, tol: float) -> str:
    if not equal:
        return f"sizes are not equal: from {found.smallest} to {found.largest} points"
    if not distances:
        return (
            "the kernel matrix is not positive semidefinite: the squared distance between a point "
            f"and a mean is {found.smallest_distance:.2g} of the longest, so no cost is the least"
        )
    if found.reassignment_gain > tol:
        return (
            "another assignment of equal sizes to the same means may lower the objective by "
            f"{found.reassignment_gain:.1e} of it"
        )
    return (
        f"clusters have {found.smallest} to {found.largest} points, and no other assignment of "
        f"equal sizes to these means lowers the objective by more than "
        f"{max(found.reassignment_gain, 0.0):.1e} of it, by duality; other means may"
    )


def _measure(problem: BalancedPartition, labels: Array) -> BalancedQuantities:
    n, k, diagonal = len(labels), problem.count, problem.gram.diag()
    sizes = np.bincount(labels, minlength=k)
    columns = problem.indicator(labels)
    sums = np.asarray(exact(problem.gram) @ columns)
    within, safe = (columns * sums).sum(axis=0), np.maximum(sizes, 1)
    trace = float(diagonal.sum())
    objective = problem.above_rounding(trace - float((within / safe).sum()))
    scatter = max(trace - float(sums.sum()) / n, 0.0)
    size = max(abs(objective), _SCATTER * scatter, _TRACE * abs(trace), np.finfo(float).tiny)
    D = diagonal[:, None] - 2.0 * sums / safe + within / safe**2
    longest = max(float(np.abs(diagonal).max(initial=0.0)), np.finfo(float).tiny)
    least = float(D.min(initial=0.0)) / longest
    D = np.maximum(D, 0.0)
    # an allowance: 2 gamma_n of the trace, Higham (3.5); gains are stated beyond it
    rounding = (16 + n) * _EPS * float(np.abs(diagonal).sum())
    cost = float(D[np.arange(n), labels].sum())
    gain = cost - _bound(D, _prices(D, labels, sizes), *problem.sizes) - rounding
    explained = 1.0 - objective / scatter if scatter > 0 else 1.0
    return BalancedQuantities(
        objective,
        explained,
        int(sizes.min()),
        int(sizes.max()),
        max(gain, 0.0) / size if (sizes > 0).all() else float("inf"),
        least,
    )


def _bound(D: Array, u: Array, least: int, more: int) -> float:
    """Return a lower bound of the cost of every assignment of equal sizes, for any prices."""
    paid = least * float(u.sum()) + float(np.sort(u)[len(u) - more :].sum())
    return float((D + u).min(axis=1).sum()) - paid


def _prices(D: Array, labels: Array, sizes: Array) -> Array:
    """Return prices at which points are where they are: minus lengths of the cheapest chains.

    A chain of moves of single points leads from cluster to cluster. It may begin anywhere, and
    pass from a cluster of the smaller size to one of the larger for nothing.
    """
    k = len(sizes)
    step = np.zeros((k, k))
    for c in range(k):
        own = D[labels == c]
        step[c] = (own - own[:, [c]]).min(axis=0, initial=np.inf)
    larger = sizes > sizes.min()
    step[np.ix_(~larger, larger)] = np.minimum(step[np.ix_(~larger, larger)], 0.0)
    chain = np.zeros(k)
    for _ in range(k):
        chain = np.minimum(chain, (chain[:, None] + step).min(axis=0))
    return -chain
