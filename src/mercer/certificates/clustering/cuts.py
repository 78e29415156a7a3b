"""Is this the cheapest cut? A flow as large as the cut says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import larger
from mercer.problems import Bipartition, MinimumCut
from mercer.solvers import Watch
from mercer.solvers.clustering.maximum_flow import MaximumFlow, edge_weights

_TOL = 1e-6


@dataclass(frozen=True)
class MinimumCutQuantities:
    """Measures of a cut.

    Attributes
    ----------
    cut : float
        Weight of the edges that are cut, added up anew.
    flow : float
        The largest flow, pushed anew: no cut can weigh less.
    relative_gap : float
        Their distance over the largest degree; and that of the answer's own figures, if larger.
    """

    cut: float
    flow: float
    relative_gap: float


@certify.register
def _(problem: MinimumCut, value: Bipartition, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    weights = edge_weights(problem)
    side = np.asarray(value.labels) == 1
    cut = float(weights[side][:, ~side].sum())
    flow = float(MaximumFlow().run(problem, Watch()).value.flow)
    degree = float(weights.sum(axis=1).max()) if weights.nnz else 0.0
    off = larger(cut - flow, larger(abs(value.value - cut), abs(value.flow - flow)))
    gap = off / max(degree, np.finfo(float).tiny)
    apart = problem.source is None or (side[problem.source] and not side[problem.sink])
    divided = bool(side.any() and not side.all() and apart)
    quantities = MinimumCutQuantities(cut, flow, gap)
    statement = (
        f"a cut of {cut:.6g}, and a flow of {flow:.6g} which no cut can undercut"
        if divided
        else "the points that must be separated are not"
    )
    return Certificate(bool(divided and gap <= tol), quantities, tol, statement)
