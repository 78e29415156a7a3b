"""How far from the largest margin? The duality gap over all rows, block by block.

Multipliers within their box, those of the heavier class scaled so that they balance, bound the
objective from below; weights and bias bound it from above. As |w|^2 / 2 is strongly convex, a gap
also bounds how far w is from the optimal one: |w - w*|^2 / 2 is at most the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block, Largest
from mercer.certificates.base import Certificate, certify
from mercer.problems.blocks import BlockDuals, BlockMargin, feature_pieces

_TOL = 1e-3
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class BlockMarginQuantities:
    """Measures of a support vector machine over blocks; of several parts, the worst.

    Attributes
    ----------
    primal, dual : float
        Upper and lower bound on the optimal value, added up over the parts.
    gap, relative_gap : float
        Largest difference of the two, and relative to the objective of its part.
    distance : float
        Bound on how far f is from the optimal one at any row, before the bias, in units of the
        margin: sqrt(2 gap) times the length of the longest feature vector.
    infeasibility : float
        Largest distance of a multiplier from its box, over its width.
    squared_norm, margin : float
        Largest |w|^2, and 1 / |w| of that part.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    distance: float
    infeasibility: float
    squared_norm: float
    margin: float


@certify.register
def _(problem: BlockMargin, value: BlockDuals, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = _worst([_measure(problem, value, part) for part in range(len(value.intercept))])
    ok = found.relative_gap <= tol and found.infeasibility <= 1e-9
    statement = (
        f"the objective is within {found.relative_gap:.1e} of the optimum, relatively, over all "
        f"rows of the blocks, so that no value of w'phi is off by more than {found.distance:.1e}"
    )
    return Certificate(bool(ok), found, tol, statement)


def _measure(problem: BlockMargin, value: BlockDuals, part: int) -> BlockMarginQuantities:
    w, b = value.weights[:, part], float(value.intercept[part])
    shared = (problem.rows.features, problem.part(part), w, b)
    _, sums = problem.rows.blocks.step(value.multipliers[part], margin_sums, *shared)
    slack, up, down, v_up, v_down, outside, longest = sums
    # scaled down, multipliers of the heavier class stay in their box
    most = max(up, down, _TINY)
    v = min(1.0, down / max(up, _TINY)) * v_up + min(1.0, up / max(down, _TINY)) * v_down
    dual = 2.0 * min(up, down) - 0.5 * float(v @ v) if most > 0 else 0.0
    squared = float(w @ w)
    primal = 0.5 * squared + slack
    gap = primal - dual
    gap = max(gap, 0.0) if np.isfinite(gap) else float("inf")
    relative = gap / max(abs(primal), abs(dual), _TINY) if gap > 0 else 0.0
    with np.errstate(divide="ignore"):
        margin = float(1.0 / np.sqrt(squared)) if squared > 0 else float("inf")
    distance = float(np.sqrt(2.0 * gap)) * longest.value
    return BlockMarginQuantities(
        primal, dual, gap, relative, distance, outside.value, squared, margin
    )


def _worst(found: list[BlockMarginQuantities]) -> BlockMarginQuantities:
    def most(name: str) -> float:
        return max(float(getattr(one, name)) for one in found)

    return BlockMarginQuantities(
        sum(one.primal for one in found),
        sum(one.dual for one in found),
        most("gap"),
        most("relative_gap"),
        most("distance"),
        most("infeasibility"),
        most("squared_norm"),
        min(one.margin for one in found),
    )


def margin_sums(
    block: Block, kept: Array, features: Any, part: Any, w: Array, b: float
) -> tuple[Array, tuple[Any, ...]]:
    """Return sums of a block: slack, multipliers of both classes and their functions, lengths."""
    block, y, cost = part.of(block)
    a = np.clip(kept, 0.0, cost)
    outside = float((np.abs(kept - a) / np.maximum(cost, _TINY)).max(initial=0.0))
    slack, longest = 0.0, 0.0
    up, down = np.zeros(len(w)), np.zeros(len(w))
    positive = y > 0
    for rows, F in feature_pieces(block, features):
        slack += float(cost[rows] @ np.maximum(1.0 - y[rows] * (F @ w + b), 0.0))
        up += (a[rows] * positive[rows]) @ F
        down -= (a[rows] * ~positive[rows]) @ F
        longest = max(longest, float(np.einsum("ij,ij->i", F, F).max(initial=0.0)))
    sums = (
        slack, float(a[positive].sum()), float(a[~positive].sum()), up, down,
        Largest(outside), Largest(float(np.sqrt(longest))),
    )  # fmt: skip
    return kept, sums
