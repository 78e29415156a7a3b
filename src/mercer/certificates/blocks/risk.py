"""Is the risk smallest? A duality gap and the gradient, over all rows, block by block.

The measures are those of a `SmoothRisk`. The bound needs slopes that add up to zero where there is
a bias; a few passes move the biases there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import larger
from mercer.certificates.risk.smooth_risk import SmoothRiskQuantities
from mercer.problems import Coefficients
from mercer.problems.blocks import BlockRisk, counted, feature_pieces

_TOL = 1e-6
_BALANCED = 1e-11  # of the slopes of a function: a hundredth of what is asked
_ENOUGH = 1e-9
_PASSES = 20
_TINY = float(np.finfo(np.float64).tiny)


@certify.register
def _(problem: BlockRisk, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = _measure(problem, value)
    ok = found.stationarity <= tol and found.relative_gap <= tol and found.imbalance <= _ENOUGH
    statement = (
        f"the objective is within {found.relative_gap:.1e} of the optimum, relatively; the "
        f"gradient is {found.stationarity:.1e} of what pulls on the function, over all rows of the "
        "blocks"
    )
    return Certificate(bool(ok), found, tol, statement)


def _measure(problem: BlockRisk, value: Coefficients) -> SmoothRiskQuantities:
    penalty, w = problem.penalty / problem.total, value.weights
    assert w is not None
    shift = np.zeros(problem.columns)
    first: Any = None
    for _ in range(_PASSES):
        sums = _pass(problem, w, value.intercept, shift)
        first = sums if first is None else first
        _, lost, pull, pulls, _, conjugates, bend = sums
        if not problem.bias or (np.abs(pull) <= _BALANCED * pulls).all():
            break
        step = _balancing_step(bend, pull)
        if step is None:
            break
        shift = shift + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
    risk, gradient, pull_at, pulls_at, reach, _, _ = first
    objective = risk + 0.5 * penalty * float(np.square(w).sum())
    left = penalty * w + gradient
    still = float(np.linalg.norm(left)) / reach if reach > 0 else 0.0
    imbalance = 0.0
    if problem.bias:
        still = larger(still, float((np.abs(pull_at) / np.maximum(pulls_at, 1e-300)).max()))
        imbalance = float((np.abs(pull) / np.maximum(pulls, 1e-300)).max())
    bound = -conjugates - float(np.square(lost).sum()) / (2 * penalty)
    gap = (objective - bound) / max(abs(objective), _TINY)
    gap = max(gap, 0.0) if np.isfinite(gap) else float("inf")
    still = still if np.isfinite(still) else float("inf")
    return SmoothRiskQuantities(problem.total * objective, gap, still, imbalance)


def _pass(problem: BlockRisk, w: Array, b: Array, shift: Array) -> Any:
    shared = (problem.labels, problem.loss, problem.total, w, b + shift)
    return problem.rows.blocks.total(slope_sums, problem.rows.features, *shared)


def slope_sums(
    block: Block, features: Any, labels: Any, loss: Any, total: float, w: Array, b: Array
) -> tuple[Any, ...]:
    """Return sums of a block: loss, slopes (as functions, added up, by size), conjugates, bend."""
    block = counted(block)
    codes = labels.codes(block.y)
    s = labels.weights(block.counts, codes) / total
    k = w.shape[1]
    risk = reach = conjugates = 0.0
    lost, pull, pulls, bend = np.zeros(w.shape), np.zeros(k), np.zeros(k), np.zeros((k, k))
    for rows, F in feature_pieces(block, features):
        f = F @ w + b
        slopes = loss.slopes(f, codes[rows])
        u = s[rows, None] * slopes
        risk += float(s[rows] @ loss.values(f, codes[rows]))
        lost += F.T @ u
        pull += u.sum(axis=0)
        pulls += np.abs(u).sum(axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", F, F))
        reach += float(lengths @ np.abs(u).sum(axis=1))
        conjugates += float(s[rows] @ loss.conjugates(slopes, codes[rows]))
        weight = float(s[rows].sum())
        if weight > 0:
            bend += weight * loss.curvature(f, codes[rows]).mean(s[rows])
    return risk, lost, pull, pulls, reach, conjugates, bend


def _balancing_step(bend: Array, g: Array) -> Array | None:
    """Return Newton's step for the biases; None where curvature is not a number."""
    if not (np.isfinite(bend).all() and np.isfinite(g).all()):
        return None
    sizes = np.sqrt(np.maximum(bend.diagonal(), _TINY))
    scaled = np.linalg.lstsq(bend / np.outer(sizes, sizes), g / sizes, rcond=1e-13)[0]
    return np.asarray(-scaled / sizes)
