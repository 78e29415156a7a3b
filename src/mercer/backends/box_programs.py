"""Box QPs as backends solve them: on a stored K, on features, and paths of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array

_ROUNDING = 1e-12  # relative: a sum this far off needs no repair


@dataclass(frozen=True, eq=False)
class Box:
    """A box programme on some rows of a stored K, and where to start.

    Minimises b'(K + diag(shift))b/2 - p'b + epsilon'|b| over lower <= b <= upper with the sum of b
    over each group kept as it is at the start. The linear term p is not here: all that a descent
    needs of it is the gradient at the start.

    Attributes
    ----------
    gradient : (m,) float64
        F = p - (K + diag(shift)) start.
    start : (m,) float64
        A feasible point.
    lower, upper : (m,) float64
        The box; may be infinite. Contains 0 strictly inside only where it matters (epsilon > 0).
    epsilon : (m,) float64, optional
        Nonnegative cost of |b_i|.
    shift : (m,) float64, optional
        Added to the diagonal of K.
    group : (m,) int64, optional
        Number of the group of each variable, from 0; only variables of one group form pairs.
    rows : (m,) int64, optional
        Which row of K each variable is, repeats allowed; None for all rows in order. Long runs of
        consecutive numbers are read in place.
    """

    gradient: Array
    start: Array
    lower: Array
    upper: Array
    epsilon: Array | None = None
    shift: Array | None = None
    group: Array | None = None
    rows: Array | None = None


class Form(NamedTuple):
    """What box programmes are like, known before they are written.

    Attributes
    ----------
    largest : int
        Variables of the largest.
    sums : int
        Groups of variables of each.
    tube, shifted : bool
        Whether they have an epsilon, and something on the diagonal.
    """

    largest: int
    sums: int = 1
    tube: bool = False
    shifted: bool = False


@dataclass(frozen=True, eq=False)
class BoxAnswer:
    """Where a descent ended.

    Attributes
    ----------
    b : (m,) float64
        The variables; those at a bound, or at zero with epsilon > 0, are there exactly.
    gradient : (m,) float64
        F there, as the descent kept it.
    iterations : int
        Pair steps.
    violation : float
        Largest violation: over groups, max over i that can rise of F_i + up_i minus min over j
        that can fall of F_j + low_j, where up_i = epsilon_i if b_i < 0 else -epsilon_i, and
        low_j = -epsilon_j if b_j > 0 else epsilon_j. -inf when no pair can move; NaN or +inf when
        numbers overflowed or nothing is known.
    """

    b: Array
    gradient: Array
    iterations: int
    violation: float


@dataclass(frozen=True)
class PathStep:
    """One programme of a path.

    Attributes
    ----------
    bound, epsilon, shift, total : float
        Factors on the bounds, epsilons, shifts and sums of the path.
    start : int
        Number of the earlier step to begin at (warm start); -1 for the start of the path.
    """

    bound: float = 1.0
    epsilon: float = 1.0
    shift: float = 1.0
    total: float = 1.0
    start: int = -1


@dataclass(frozen=True, eq=False)
class BoxPath:
    """A regularization path: programmes on the same rows of a stored K, with warm starts.

    Attributes
    ----------
    box : Box
        With every factor 1. Its `gradient` is the linear term p. Its `start` need not be feasible:
        it is clipped, and sums are repaired. Groups are numbered from 0, and none is empty.
    totals : (groups,) float64
        What the variables of each group sum to.
    steps : sequence of PathStep
        The programmes.
    evaluation_rows : (t,) int64
        Rows j of K where sum_i b_i K_ij is wanted.
    """

    box: Box
    totals: Array
    steps: Sequence[PathStep]
    evaluation_rows: Array


@dataclass(frozen=True, eq=False)
class BoxPathAnswer:
    """Where all steps of a path ended.

    Attributes
    ----------
    b, gradient : (steps, m) float64
        Variables, and F = p - (K + diag(shift)) b as the descent kept it.
    offsets : (steps, groups) float64
        The multiplier of each sum: the mean of F over free variables, held between the two sides
        of the optimality conditions; their middle where no variable is free.
    values : (steps, t) float64
        sum_i b_i K_ij at the evaluation rows, without offset, to the accuracy of the type of K.
    iterations : (steps,) int64
        Pair steps.
    violation : (steps,) float64
        As in `BoxAnswer`; infinite where a step was not finished because the poll said so.
    confirmed : bool
        Whether violations and values hold in float64 for the K that a stored one is rounded from.
    """

    b: Array
    gradient: Array
    offsets: Array
    values: Array
    iterations: Array
    violation: Array
    confirmed: bool = False


@dataclass(frozen=True, eq=False)
class FeatureBox:
    """A box programme on rows of features.

    Minimises b'(FF' + diag(shift))b/2 - linear'b + epsilon'|b| over lower <= b <= upper, the b of
    each group summing to its total.

    Attributes
    ----------
    linear, lower, upper : (n,) float64
        The linear term and the box, which may be infinite.
    group : (n,) int8
        Number of the group of each variable; -1 for none.
    totals : (groups,) float64
        What the groups sum to.
    start : (n,) float64
        A point of the box.
    offsets : (groups,) float64
        Guess of the multipliers of the sums.
    shift, epsilon : (n,) float64, optional
        Added to the diagonal; nonnegative cost of |b_i|.
    """

    linear: Array
    lower: Array
    upper: Array
    group: Array
    totals: Array
    start: Array
    offsets: Array
    shift: Array | None = None
    epsilon: Array | None = None


@dataclass(frozen=True, eq=False)
class FeatureAnswer:
    """Where a descent on features ended.

    Attributes
    ----------
    b : (n,) float64
        The variables; those at a bound, or at zero with epsilon > 0, are there exactly. Sums
        hold up to what moves an offset by the tolerance.
    offsets : (groups,) float64
        The multipliers of the sums.
    epochs : int
        Passes over the variables.
    violation : float
        Largest rise plus largest fall that the last pass over all variables met; infinite before
        the first.
    """

    b: Array
    offsets: Array
    epochs: int
    violation: float


def with_sum(point: Array, lower: Array, upper: Array, total: float) -> Array:
    """Return a point of the box with the required sum, if it has one; each gives by its room."""
    missing = total - float(point.sum())
    if not abs(missing) > _ROUNDING * (float(np.abs(point).sum()) + abs(total)):
        return point
    room = (upper if missing > 0 else lower) - point
    room = np.where(np.isfinite(room), room, missing)
    if room.sum() == 0:
        return point
    return point + room * min(1.0, missing / float(room.sum()))


def multiplier(rising: Array, falling: Array) -> float:
    """Return the multiplier of a sum, from the two sides of the optimality conditions.

    The mean over free variables, where both are the same, held between the two ends; the middle of
    these where no variable is free, and zero where nothing can move.
    """
    top, bottom = float(rising.max(initial=-np.inf)), float(falling.min(initial=np.inf))
    free = rising == falling
    if free.any():
        return float(np.clip(rising[free].mean(), min(top, bottom), max(top, bottom)))
    finite = [side for side in (top, bottom) if np.isfinite(side)]
    return float(np.mean(finite)) if finite else 0.0
