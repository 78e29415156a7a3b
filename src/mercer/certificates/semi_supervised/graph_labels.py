"""Are these the values that labels have on the graph? The equations, and how far off values are.

D - W on the rows without a label is an M-matrix: its inverse has no negative entry. So where
`steps` satisfies (D - W) steps >= D / 2, an error of at most e D in the equations is one of at most
2 e steps in the values. Values of harmonic functions lie between the smallest and the largest
label: the maximum principle. For spreading, I - alpha S has no eigenvalue below 1 - alpha.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.gram import exact
from mercer.problems import GraphLabels, GraphValues

_TOL = 1e-6


@dataclass(frozen=True)
class GraphLabelsQuantities:
    """Measures of values on a graph, in units of the largest target.

    Attributes
    ----------
    residual : float
        Largest error of an equation, over the degree of its row.
    error : float
        A bound of how far any value is from the exact one.
    outside : float
        How far a value is below the smallest or above the largest label.
    moved : float
        How far a label, or a value that is known without equations, is from what it has to be.
    steps : float
        The largest expected number of steps of a walk to a label, or to a restart.
    unreached : int
        Rows that hang together with no label: nothing on the graph tells their value.
    """

    residual: float
    error: float
    outside: float
    moved: float
    steps: float
    unreached: int


@certify.register
def _(problem: GraphLabels, value: GraphValues, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    anew = replace(problem, gram=exact(problem.gram))
    found = _measure(anew, value)
    ok = found.error <= tol and found.outside <= tol and found.moved <= tol
    return Certificate(bool(ok), found, tol, _statement(found, problem.clamped, tol))


def _statement(found: GraphLabelsQuantities, clamped: bool, tol: float) -> str:
    if found.moved > tol:
        return f"labels, or values that follow from them alone, are off by {found.moved:.1e}"
    what = "every value is the mean of its neighbours'" if clamped else "the equations hold"
    text = f"{what} within {found.residual:.1e}, so that values are right within {found.error:.1e}"
    text += f"; no value is more than {found.outside:.0e} outside the labels"
    if found.unreached:
        text += f"; {found.unreached} row(s) hang together with no label, and have their mean"
    return text


def _measure(problem: GraphLabels, value: GraphValues) -> GraphLabelsQuantities:
    F, y = value.values, problem.targets
    n = len(problem.labelled)
    if F.shape != y.shape or value.steps.shape != (n,) or not np.isfinite(F).all():
        return GraphLabelsQuantities(inf, inf, inf, inf, inf, n)
    size = float(np.abs(y).max(initial=0.0)) or 1.0
    free, inner = problem.free, problem.inside(F)
    left = np.abs(problem.product(inner) - problem.right) / problem.units[:, None]
    steps = value.steps[free]
    moved = float(np.abs(problem.complete(inner) - F).max(initial=0.0)) / size
    return GraphLabelsQuantities(
        float(left.max(initial=0.0)) / size,
        _bound(problem, left, steps) / size,
        _outside(problem, F) / size,
        moved,
        float(steps.max(initial=0.0)),
        int((~problem.reached).sum()),
    )


def _bound(problem: GraphLabels, left: Array, steps: Array) -> float:
    """Return how far values may be from the exact ones; infinite where steps prove nothing."""
    if not problem.clamped:
        return float(np.linalg.norm(left, axis=0).max(initial=0.0)) / (1.0 - problem.alpha)
    if not len(steps):
        return 0.0
    degrees = problem.degrees[problem.free]
    if not (problem.product(steps[:, None])[:, 0] >= degrees / 2).all() or not (steps >= 0).all():
        return inf
    return float(2.0 * left.max(initial=0.0) * steps.max())


def _outside(problem: GraphLabels, F: Array) -> float:
    """Return how far values are from the hull of the labels; of spreading, below zero."""
    if problem.clamped:
        known = problem.targets[problem.labelled]
        low, high = known.min(axis=0), known.max(axis=0)
    elif (problem.targets >= 0).all():
        low, high = np.zeros(F.shape[1]), np.full(F.shape[1], np.inf)
    else:
        return 0.0
    return float(np.maximum(low - F, F - high).max(initial=0.0))
