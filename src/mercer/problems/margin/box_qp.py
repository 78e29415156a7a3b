"""min b'Kb/2 - p'b + epsilon'|b| over a box with fixed sums: the dual of support vector machines.

Variables are signed: for a classifier b_i = y_i alpha_i, so the matrix is K itself and the
decision function is f = sum_i b_i k(x_i, .) + intercept. `mercer.problems.svm` writes each machine
in this form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arguments import renamed, renamed_field
from mercer.array_types import Array
from mercer.backends.boxes import multiplier, with_sum
from mercer.card_rows import LONG, CardArray, CardRows, looked_up
from mercer.gram import Gram
from mercer.gram.accurate_products import (
    EPS,
    accurate_product,
    gamma,
    inner,
    product_rounding,
)
from mercer.gram.base import Unwrapped
from mercer.gram.transformed.part import PartGram
from mercer.points import to_host

_LEAST_SHARE = 1e-15  # of its largest terms: an objective below that is counted as that
_NOTHING = 1e-5  # a score or squared radius that is nothing beside the features it is made of


@dataclass(frozen=True, eq=False)
class Dual:
    """An answer to a `BoxQP`.

    Attributes
    ----------
    coef : (n,) array
        The signed variables b.
    intercept : float or (groups,) array
        The multiplier of each equality; with one group, the bias of the decision function.
    """

    coef: Array
    intercept: float | Array


@renamed_field("epsilon", "kink")
@dataclass(frozen=True, eq=False)
class BoxQP:
    """A quadratic programme with a box and one equality for each group of variables.

    Attributes
    ----------
    gram : Gram
        K.
    linear : (n,) array
        p.
    lower, upper : (n,) array
        The box; bounds may be infinite.
    total : float or (groups,) array
        What the variables of each group sum to.
    epsilon : float or (n,) array
        Nonnegative cost of |b_i|: the width of the tube in regression.
    group : (n,) int array, optional
        The group of each variable, numbered from 0; None for one group. A variable of group -1
        is in no sum: nothing is added to its F, as if its multiplier were 0.
    scale : float or None
        The size of F that tolerances are relative to: 1 where F is in units of a decision function
        with its margin at 1. None where the answer itself has to tell: `unit`.
    """

    gram: Gram
    linear: Array
    lower: Array
    upper: Array
    total: float | Array = 0.0
    epsilon: float | Array = 0.0
    group: Array | None = None
    scale: float | None = 1.0

    @cached_property
    def unwrapped(self) -> Unwrapped:
        """Return the Gram without its wrappers."""
        return self.gram.unwrapped()

    @cached_property
    def totals(self) -> Array:
        """Return the required sum of each group."""
        return np.atleast_1d(np.asarray(self.total, dtype=np.float64))

    @cached_property
    def epsilons(self) -> Any:
        """Return epsilon of each variable."""
        given: Any = self.epsilon
        if isinstance(given, CardArray):
            return given
        return np.broadcast_to(np.asarray(self.epsilon, dtype=np.float64), self.linear.shape)

    @cached_property
    def shift(self) -> Array | None:
        """Return what the Gram adds to its diagonal for each variable; None where nothing."""
        shift = self.unwrapped.shift
        return None if shift is None else self.beside(shift)

    kinks = renamed("epsilons", "kinks")

    def placed(self) -> BoxQP:
        """Return the same programme with its vectors where its features lie, if they are long."""
        F = self.unwrapped.base.at_hand
        if not isinstance(F, CardRows) or len(self.linear) < LONG:
            return self
        vectors: dict[str, Any] = {
            "linear": self.linear,
            "lower": self.lower,
            "upper": self.upper,
            "epsilon": self.epsilons,
        }
        if self.group is not None:
            vectors["group"] = self.group
        for name, x in vectors.items():
            vectors[name] = CardArray.beside(F.tensor, x)
        return replace(self, **vectors)

    def beside(self, x: Any) -> Any:
        """Return a vector of one number for each variable where those of the programme lie."""
        first: Any = self.linear
        there = isinstance(first, CardArray)
        return CardArray.beside(first.tensor, x) if there else to_host(x)

    def members(self) -> list[Any]:
        """Return the variables of each group, as an index; all of them need no list."""
        if self.group is None:
            return [slice(None)]
        return [np.flatnonzero(self.group == g) for g in range(len(self.totals))]

    def infeasible(self) -> bool:
        """Return whether no point of the box has the required sums."""
        parts = zip(self.members(), self.totals, strict=True)
        return any(not self.lower[m].sum() <= total <= self.upper[m].sum() for m, total in parts)

    def feasible_near(self, point: Array) -> Array:
        """Return a point inside the box with the required sums, near the given one."""
        start = np.minimum(np.maximum(point, self.lower), self.upper)
        for m, total in zip(self.members(), self.totals, strict=True):
            start[m] = with_sum(start[m], self.lower[m], self.upper[m], float(total))
        return start

    def among(self, index: Array, b: Array) -> BoxQP:
        """Return the programme in some distinct variables, the others held as they are in b.

        Its linear term is that of the whole: only answers with the gradient given use it.
        """
        others = b.copy()
        others[index] = 0.0
        held = [float(others[m].sum()) for m in self.members()]
        return BoxQP(
            PartGram(self.gram, index),
            self.linear[index],
            self.lower[index],
            self.upper[index],
            self.totals - held,
            self.epsilons[index],
            None if self.group is None else self.group[index],
        )

    def rising(self, b: Array, F: Array, slack: float | Array = 0.0) -> Array:
        """Return F_i - epsilon_i d|b_i| for a b_i that grows; -inf where it is at its upper bound.

        At the optimum it is at most the multiplier of the group. `slack` is how near a variable
        must be to a bound, or to zero, to count as being there.
        """
        if np.any(self.epsilon):
            F = F + np.where(b < -slack, self.epsilons, -self.epsilons)
        upper = self.upper - slack if np.any(slack) else self.upper
        return np.where(b < upper, F, -np.inf)

    def falling(self, b: Array, F: Array, slack: float | Array = 0.0) -> Array:
        """Return F_i - epsilon_i d|b_i| for a b_i that shrinks; inf where it is at its lower bound.

        At the optimum it is at least the multiplier of the group.
        """
        if np.any(self.epsilon):
            F = F + np.where(b > slack, -self.epsilons, self.epsilons)
        lower = self.lower + slack if np.any(slack) else self.lower
        return np.where(b > lower, F, np.inf)

    def offsets(self, b: Array, F: Array) -> float | Array:
        """Return the multiplier of each equality that suits b best, from F = p - K b.

        The mean over free variables, held between the two sides of the optimality conditions;
        their middle where no variable is free. One number where there is one group.
        """
        rising, falling = self.rising(b, F), self.falling(b, F)
        found = np.array([multiplier(rising[m], falling[m]) for m in self.members()])
        return float(found[0]) if self.group is None else found

    def spread(self, multipliers: float | Array) -> Any:
        """Return each variable the multiplier of its group."""
        each = np.atleast_1d(np.asarray(multipliers, dtype=np.float64))
        if self.group is None:
            return np.full_like(self.linear, each[0], dtype=np.float64)
        return looked_up(np.append(each, 0.0), self.group)  # the last is for group -1

    def violation(self, b: Array, F: Array, slack: float | Array = 0.0) -> float:
        """Return the largest violation over pairs that could still move; -inf if none can."""
        rising, falling = self.rising(b, F, slack), self.falling(b, F, slack)
        pairs = (
            float(rising[m].max(initial=-np.inf) - falling[m].min(initial=np.inf))
            for m in self.members()
        )
        worst = max(pairs, default=-np.inf)
        if self.group is None:
            return worst
        alone = self.group < 0
        rise, fall = rising[alone].max(initial=-np.inf), -falling[alone].min(initial=np.inf)
        return max(worst, float(rise), float(fall))

    def unit(self, b: Array, F: Array) -> float:
        """Return the size of F that tolerances are relative to; zero while two classes meet.

        Without a linear term it is F at the margin, rho = -sum_g r_g total_g / sum_g |total_g|;
        with one, the objective: half the squared radius of a ball, at most 1. Of one class or a
        ball less than `_NOTHING` of what b could make of F counts as that: they may have no size.
        """
        if self.scale is not None or not self.totals.any() or not self.linear.any():
            return self.least_unit(self.offsets(b, F) if self.scale is None else 0.0)
        objective = 0.5 * inner(b, self.linear + F) / float(np.abs(self.totals).sum())
        return min(1.0, max(objective, self.least_unit(0.0)))

    def least_unit(self, multipliers: float | Array) -> float:
        """Return what the multipliers of an answer tell of `unit` without K b: it is no smaller."""
        if self.scale is not None:
            return self.scale
        size = float(np.abs(self.totals).sum())
        if size == 0.0:  # a share of the rows below the smallest number: only b = 0, and no margin
            return 0.0
        largest = float(np.abs(self.unwrapped.base.diag()).max(initial=0.0)) * size
        if self.linear.any():
            return min(1.0, _NOTHING * largest)
        rho = -float(np.atleast_1d(multipliers) @ self.totals) / size
        return max(rho, 0.0 if self.parting else _NOTHING * largest)

    @property
    def parting(self) -> bool:
        """Return whether a margin between classes is sought, whose size only the answer tells."""
        return self.scale is None and self.group is not None

    def marginless(self, b: Array, F: Array) -> bool:
        """Return whether b'Kb, which a margin between classes makes positive, counts as zero."""
        return self.parting and not -inner(b, F) > self.least_objective(b)

    def margin_is_hidden(self, b: Array, F: Array) -> bool:
        """Return whether rounding alone could make b'Kb as large: then no margin is certified."""
        return self.parting and not -inner(b, F) > self.rounding(b)

    def product_rounding(self, b: Array) -> Array:
        """Bound what each entry of a plain float64 K b is off by: Higham (3.5).

        With the shift, and the sum of both, each right to half of the last digit.
        """
        held = self.unwrapped
        of_base = product_rounding(held.base, self._on_base(b), more=2)  # points add up, b too
        own = of_base if held.index is None else of_base[held.index]
        return own if self.shift is None else own + gamma(4) * np.abs(self.shift * b)

    def largest_term_rounding(self, b: Array) -> float:
        """Return the rounding of the largest term there can be in K b, from this programme alone.

        An estimate, by which it is chosen when an answer is judged; nothing is claimed by it.
        """
        held = self.unwrapped
        own = np.abs(held.base.diag() if held.index is None else held.base.diag()[held.index])
        largest, used = own.max(initial=0.0), np.flatnonzero(b)
        own = own[used]
        with np.errstate(over="ignore", invalid="ignore"):
            total = inner(np.abs(b[used]), np.sqrt(own))
            shifted = 0.0 if self.shift is None else np.abs(self.shift * b).max(initial=0.0)
            return float(EPS * (np.sqrt(largest) * total + shifted))

    def accurate_product(self, b: Array) -> tuple[Array, Array] | None:
        """Return K b and a bound of its rounding, by split sums, where K is held as data."""
        held = self.unwrapped
        found = accurate_product(held.base, self._on_base(b))
        if found is None:
            return None
        product, rounding = found if held.index is None else [part[held.index] for part in found]
        if self.shift is None:
            return product, rounding
        shifted = self.shift * b
        whole = product + shifted
        return whole, rounding + gamma(2) * (np.abs(shifted) + np.abs(whole))

    def _on_base(self, b: Array) -> Array:
        """Return coefficients of the points: those above and below a tube are added up."""
        held = self.unwrapped
        return b if held.index is None else np.bincount(held.index, b, held.base.shape[0])

    def rounding(self, b: Array) -> float:
        """Bound what a plain float64 b'Kb is off by, K b being rounded as well.

        By |b|'r with r the bound of K b, and by as much again: the outer sum has no more terms
        than the inner ones, Higham (3.5).
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = inner(np.abs(b), self.product_rounding(b))
        return 2.0 * (1.0 + gamma(len(b))) * found

    def least_objective(self, b: Array) -> float:
        """Return what an objective below it counts as: a share of the largest terms of b'Kb.

        A convention, by which gaps of next to nothing are not compared with nothing; no bound.
        Each point counts once: those above and below a tube cancel exactly.
        """
        lengths = np.sqrt(np.abs(self.unwrapped.base.diag()))
        with np.errstate(over="ignore"):
            return float(_LEAST_SHARE * np.square(inner(np.abs(self._on_base(b)), lengths)))

    def gap(self, b: Array, slope: Array, rounding: Array | None = None) -> float:
        """Bound the distance to the optimum: what each variable could gain on its own.

        `slope` is F minus the multipliers. With d the shift of the Gram, the sum over i of

            max over the box of slope_i (t - b_i) - d_i (t - b_i)^2/2 - epsilon_i (|t| - |b_i|).

        Where the slope points to an infinite bound and no shift bends it back, there is no finite
        bound: that is honest. Where slopes are known to `rounding`, the largest sum that leaves;
        each term is convex in its slope, so that one of the two ends has it.
        """
        if rounding is None:
            return float(self._gains(b, slope).sum())
        ends = self._gains(b, slope - rounding), self._gains(b, slope + rounding)
        return float(np.maximum(*ends).sum())

    def _gains(self, b: Array, slope: Array) -> Array:
        """Return what each variable could gain on its own."""
        shift = self.shift
        d = np.zeros_like(b) if shift is None else shift
        epsilon, best = self.epsilons, np.zeros_like(b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for sign in (-1.0, 1.0):  # the piece where t <= 0, and the one where t >= 0
                low = np.maximum(self.lower, 0.0 if sign > 0 else -np.inf)
                high = np.minimum(self.upper, 0.0 if sign < 0 else np.inf)
                tilt = slope - sign * epsilon
                reach = np.where(d > 0, b + tilt / d, np.where(tilt > 0, high, low))
                target = np.clip(np.where(tilt == 0, b, reach), low, np.maximum(low, high))
                step = target - b
                gain = step * (tilt - np.where(d > 0, 0.5 * d * step, 0.0))
                gain -= epsilon * (sign * b - np.abs(b))
                gain = np.where(np.isfinite(gain), gain, np.inf)  # overflow is no bound
                best = np.maximum(best, np.where(low <= high, gain, 0.0))
        return best
