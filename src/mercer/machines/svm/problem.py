"""Support vector machines as box QPs: one QP, several on one Gram, and a path of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arguments import renamed, renamed_field
from mercer.array_types import Array
from mercer.backends.box_programs import multiplier, with_sum
from mercer.gram import Gram, ShiftedGram
from mercer.gram.accurate_products import (
    EPS,
    accurate_product,
    exact_rows,
    exact_sums,
    gamma,
    inner,
    product_rounding,
    reference_sums,
)
from mercer.gram.base import Unwrapped
from mercer.gram.transformed import PartGram, restricted
from mercer.rows.device_arrays import LONG, CardArray, looked_up
from mercer.rows.device_rows import CardRows
from mercer.rows.points import to_host

# --- box qp --------------------------------------------------------------------------------------
#
# min b'Kb/2 - p'b + epsilon'|b| over a box with fixed sums: the dual of support vector machines.
#
# Variables are signed: for a classifier b_i = y_i alpha_i, so the matrix is K itself and the
# decision function is f = sum_i b_i k(x_i, .) + intercept. `mercer.problems.svm` writes each
# machine in this form.

_LEAST_SHARE = 1e-15  # of its largest terms: an objective below that is counted as that
# of what b could make of F at a feature vector of median length:
_NOTHING = 1e-5  # a score at the border that is none
_ROUNDED_SCORE = 1e3  # roundings of K: the same where K is given in few digits
_NO_BALL = 1e-10  # half a squared radius that is none
_SUMMED = 16.0  # roundings of K b: what two sums of its terms differ by, as a rule
_CENTER = 8.0  # roundings of the squared norm of the center: what scores add and subtract of it
_LEAST_COMPARED = 16  # entries of K b, even where they take many operations


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
    def _typical_square(self) -> float:
        """Return the median squared length of feature vectors."""
        return median(np.abs(self.unwrapped.base.diag()))

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

    def intercepts(self, b: Array, F: Array) -> float | Array:
        """Return the multipliers that an answer keeps: those of `offsets`, but of a border.

        The border of a half-space or a ball goes through the outermost sample that is not at its
        upper bound, where the conditions allow it just as well. Then only samples at their bound
        are outside, and those weigh a fraction nu at most: within the tolerance, too, and where the
        border has no size and rounding would decide. A ball around all samples has the mean of
        those on its border as its radius, and all are inside to the tolerance.
        """
        around_all = self.linear.any() and bool((self.upper >= 1.0).all())
        if not self.bordering or around_all:
            return self.offsets(b, F)
        lengths = np.sqrt(np.abs(self.unwrapped.base.diag()))
        # guesses, by which nothing is claimed: of K b, and of the squared norm of the center
        total = inner(lengths, np.abs(b))
        rounding = _SUMMED * EPS * lengths * total
        if self.linear.any():
            rounding = rounding + _CENTER * EPS * total**2
        outermost = float((self.rising(b, F) + rounding).max(initial=-np.inf))
        return outermost if np.isfinite(outermost) else self.offsets(b, F)

    def spread(self, multipliers: float | Array) -> Any:
        """Return each variable the multiplier of its group."""
        each = np.atleast_1d(np.asarray(multipliers, dtype=np.float64))
        if self.group is None:
            return np.full_like(self.linear, each[0], dtype=np.float64)
        return looked_up(np.append(each, 0.0), self.group)  # the last is for group -1

    def violation(
        self, b: Array, F: Array, slack: float | Array = 0.0, error: float | Array = 0.0
    ) -> float:
        """Return the largest violation over pairs that could still move; -inf if none can.

        With `error`, the largest there may be for an F that is off by as much.
        """
        rising, falling = self.rising(b, F, slack) + error, self.falling(b, F, slack) - error
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
        """Return the size of F that tolerances are relative to; zero where there is none.

        Without a linear term it is F at the margin, rho = -sum_g r_g total_g / sum_g |total_g|;
        with one, half the squared radius of a ball, at most 1. There may be no half-space, or a
        ball of no size: so both are at least a share of what b could make of F at a feature vector
        of median length, which a few long ones do not set.
        """
        if not self.bordering or not self.totals.any() or not self.linear.any():
            return self.least_unit(self.offsets(b, F) if self.scale is None else 0.0)
        squared = inner(b, self.linear - F) + 2.0 * float(self.offsets(b, F))  # as `ball_radius`
        return min(1.0, max(0.5 * squared, self.least_unit(-np.inf)))

    def least_unit(self, multipliers: float | Array) -> float:
        """Return what the multipliers of an answer tell of `unit` without K b.

        It is no smaller: half the squared radius of a ball is the multiplier, and half the squared
        norm of the center.
        """
        if self.scale is not None:
            return self.scale
        size = float(np.abs(self.totals).sum())
        if size == 0.0:  # a share of the rows below the smallest number: only b = 0, and no margin
            return 0.0
        middle = self._typical_square * size
        if self.linear.any():
            return min(1.0, max(float(np.atleast_1d(multipliers)[0]), _NO_BALL * middle))
        rho = -float(np.atleast_1d(multipliers) @ self.totals) / size
        if self.parting:
            return max(rho, 0.0)
        base = self.unwrapped.base  # a matrix may be given in float32
        given = base.source is None and base.features is None
        digits = np.finfo(base.dtype).eps if given else EPS
        return max(rho, max(_NOTHING, _ROUNDED_SCORE * float(digits)) * middle)

    @property
    def bordering(self) -> bool:
        """Return whether a border around samples is sought: a half-space or a ball."""
        return self.scale is None and self.group is None

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

    def product_error(self, b: Array, Kb: Array, operations: float) -> tuple[Array, int] | None:
        """Return how far entries of K b are from those by other formulas, and how many were seen.

        All are where that takes no more operations, else a random sample: then the largest
        difference, relative to the length of the feature vector, counts for all. None where K is
        not evaluated by formulas.
        """
        held = self.unwrapped
        points = np.arange(len(b)) if held.index is None else held.index
        on_base, rows = self._on_base(b), np.arange(len(b))
        used = np.flatnonzero(on_base)
        wide = getattr(getattr(held.base.source, "X", None), "shape", (0, 1))[-1]
        count = int(operations / max(1, len(used) * wide))
        if count < len(b):
            rows = np.random.default_rng(0).permutation(rows)[: max(_LEAST_COMPARED, count)]
        found = reference_sums(held.base, points[rows], used, on_base[used])
        if found is None:
            return None
        if self.shift is not None:
            found = found + self.shift[rows] * b[rows]
        error = np.abs(found - Kb[rows])
        if len(rows) < len(b):
            lengths = np.sqrt(np.abs(held.base.diag()))[points]
            sizes = np.maximum(lengths[rows], np.finfo(float).tiny)
            error = lengths * float((error / sizes).max(initial=0.0))
        return error, len(rows)

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


# --- many ----------------------------------------------------------------------------------------
#
# Independent box programmes that share a Gram: pairs of classes, one against the rest, folds.
#
# They are asked together so that a solver may look at the shared matrix once for all of them.


@dataclass(frozen=True, eq=False)
class Many:
    """Box programmes to be answered together.

    Attributes
    ----------
    problems : tuple of BoxQP
        Each with its own box; their Grams are parts of one (`PartGram`), or that itself.
    """

    problems: tuple[BoxQP, ...]


@dataclass(frozen=True, eq=False)
class Duals:
    """An answer to `Many`.

    Attributes
    ----------
    parts : tuple of Dual
        The answer to each programme.
    """

    parts: tuple[Dual, ...]


# --- path ----------------------------------------------------------------------------------------
#
# The regularization path of support vector machines: box programmes that differ by factors.
#
# Another C, tube or nu multiplies bounds, epsilon, diagonal or sums of a `BoxQP` by one factor
# each and leaves all else as it is. So programmes of many settings are one problem: each can
# start where a neighbour ended, and all read one Gram.

_ROUNDED = 1e-12  # of a sum: what its factor may be off by


@renamed_field("epsilon", "kink")
@dataclass(frozen=True)
class PathSetting:
    """By which factors the programmes of a path are multiplied.

    Attributes
    ----------
    bound : float
        On the bounds of the box: C of slack that counts as it is.
    epsilon : float
        On epsilon: the half-width of the tube of regression.
    shift : float
        On what is added to the diagonal of K: 1 / C of squared slack.
    total : float
        On the sums of the groups: nu.
    """

    bound: float = 1.0
    epsilon: float = 1.0
    shift: float = 1.0
    total: float = 1.0


@dataclass(frozen=True, eq=False)
class MarginPath:
    """Box programmes over one Gram, at several settings.

    Attributes
    ----------
    problems : tuple of BoxQP
        The programmes with all factors 1: one machine, or all pairs of classes. Their Grams are
        parts of one, or that itself.
    settings : tuple of PathSetting
        The factors of each setting, in any order.
    rows : (t,) int array, optional
        Rows of the shared Gram at which sum_i b_i k(x_i, .) is wanted, such as those a fold leaves
        out; none by default.

    Examples
    --------
    The whole path of C for one support vector machine:

    >>> import numpy as np
    >>> from mercer import certify, solve
    >>> from mercer.gram import Need, make_gram
    >>> from mercer.kernels import Gaussian
    >>> from mercer.problems import MarginPath, PathSetting
    >>> from mercer.machines.svm import problem as svm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> signs = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    >>> gram = make_gram(Gaussian(1.0), X, Need.BOX)
    >>> programme = svm.svc(gram, signs, C=np.ones(80))
    >>> costs = np.logspace(-1, 3, 9)
    >>> path = MarginPath((programme,), tuple(PathSetting(bound=C) for C in costs))
    >>> answer = solve(path).value
    >>> answer.coef[0].shape, bool(answer.solved.all())
    ((9, 80), True)
    >>> certify(path, answer).ok
    True
    """

    problems: tuple[BoxQP, ...]
    settings: tuple[PathSetting, ...]
    rows: Array | None = None

    @property
    def base(self) -> Gram:
        """Return the Gram that all programmes share."""
        return self.problems[0].unwrapped.base

    @property
    def evaluation_rows(self) -> Array:
        """Return the rows at which values are wanted."""
        return np.zeros(0, dtype=np.int64) if self.rows is None else np.asarray(self.rows)

    wanted = renamed("evaluation_rows", "wanted")

    @cached_property
    def summed(self) -> tuple[BoxQP, ...]:
        """Return the programmes whose sums are not zero, so that their factor matters."""
        return tuple(problem for problem in self.problems if problem.totals.any())

    def programme(self, number: int, setting: PathSetting) -> BoxQP:
        """Write one programme at a setting."""
        problem = self.problems[number]
        held, gram = problem.unwrapped, problem.gram
        if held.shift is not None and setting.shift != 1.0:
            part = held.base if held.index is None else restricted(held.base, held.index)
            gram = ShiftedGram(part, setting.shift * held.shift)
        return replace(
            problem,
            gram=gram,
            lower=setting.bound * problem.lower,
            upper=setting.bound * problem.upper,
            total=setting.total * problem.totals,
            epsilon=setting.epsilon * problem.epsilon,
        )

    def at(self, setting: PathSetting) -> Many:
        """Write all programmes at a setting."""
        return Many(tuple(self.programme(k, setting) for k in range(len(self.problems))))

    def values(self, number: int, coef: Array) -> Array:
        """Return sum_i b_i k(x_i, .) of a programme at the wanted rows, in float64 from the points.

        Coefficients have a row for each setting (settings, n), values likewise (settings, t).
        """
        if not len(self.evaluation_rows):
            return np.zeros((len(coef), 0))
        index = self.problems[number].unwrapped.index
        points = np.arange(coef.shape[1]) if index is None else index
        used = np.flatnonzero(coef.any(axis=0))
        return exact_sums(self.base, self.evaluation_rows, points[used], coef[:, used].T).T

    def infeasible(self, setting: PathSetting) -> bool:
        """Return whether a programme has no point with the sums of a setting, but for rounding."""
        return any(_out_of_reach(problem, setting) for problem in self.summed)


@dataclass(frozen=True, eq=False)
class PathDuals:
    """An answer to a `MarginPath`.

    Attributes
    ----------
    coef : tuple of (settings, n) arrays
        The variables b of each programme.
    intercept : tuple of (settings, groups) arrays
        The multipliers of each programme.
    values : (settings, programmes, t) array
        sum_i b_i k(x_i, .) at the rows that were asked for, without the intercept.
    solved : (settings,) bool array
        Whether all programmes of a setting are as accurate as asked.
    """

    coef: tuple[Array, ...]
    intercept: tuple[Array, ...]
    values: Array
    solved: Array

    def at(self, setting: int) -> Duals:
        """Return the answer at a setting, as one to `MarginPath.at`."""
        parts = zip(self.coef, self.intercept, strict=True)
        return Duals(tuple(Dual(b[setting], _offset(r[setting])) for b, r in parts))

    def offsets(self, setting: int) -> Array:
        """Return the multipliers of all programmes at a setting (programmes, groups)."""
        return np.array([one[setting] for one in self.intercept])


def _offset(multipliers: Array) -> float | Array:
    return float(multipliers[0]) if len(multipliers) == 1 else multipliers


def _out_of_reach(problem: BoxQP, setting: PathSetting) -> bool:
    for members, total in zip(problem.members(), problem.totals, strict=True):
        low, high = problem.lower[members].sum(), problem.upper[members].sum()
        asked, near = setting.total * total, _ROUNDED * abs(setting.total * total)
        if not setting.bound * low - near <= asked <= setting.bound * high + near:
            return True
    return False


# --- svm -----------------------------------------------------------------------------------------
#
# Each support vector machine, written as a `BoxQP`.
#
# `C` is an (n,) array: the weight of the slack of each row, sample weights included. It may be
# infinite (no slack: the hard margin). A finite weight above `DEAREST` is taken as that.
#
# The intercept of an answer is the multiplier of each equality. With one group it is the constant
# of the decision function; the nu forms have two, and a function here that turns them into what a
# machine needs.

_NO_MARGIN = 1e-12  # of the level of f: a margin that is rounding


def svc(gram: Gram, signs: Array, C: Array) -> BoxQP:
    """Write the classifier of largest margin with slack.

    min |w|^2/2 + sum_i C_i max(0, 1 - y_i f(x_i)), in signed variables b_i = y_i alpha_i.

    Parameters
    ----------
    gram : Gram
        K.
    signs : (n,) array
        The class of each row, -1 or 1.
    C : (n,) array
        Weight of each slack; infinite for none.

    Returns
    -------
    BoxQP
        0 <= y_i b_i <= C_i, sum b = 0, linear term y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> signs = np.array([1.0, -1.0])
    >>> solve(svc(PrecomputedGram(np.eye(2)), signs, np.full(2, np.inf))).value.coef
    array([ 1., -1.])
    """
    return _two_sided(gram, signs, bounded(gram, C))


def svc_l2(gram: Gram, signs: Array, C: Array) -> BoxQP:
    """Write the classifier with squared slack: C_i becomes 1/(2 C_i) on the diagonal of K.

    min |w|^2/2 + sum_i C_i max(0, 1 - y_i f(x_i))^2.

    Parameters
    ----------
    gram : Gram
        K.
    signs : (n,) array
        The class of each row, -1 or 1.
    C : (n,) array
        Weight of each squared slack; infinite for none.

    Returns
    -------
    BoxQP
        y_i b_i >= 0, sum b = 0, linear term y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> signs = np.array([1.0, -1.0])
    >>> solve(svc_l2(PrecomputedGram(np.eye(2)), signs, np.full(2, 0.5))).value.coef
    array([ 0.5, -0.5])
    """
    return _two_sided(slackened(gram, C), signs, np.full(len(signs), np.inf))


def nu_svc(gram: Gram, signs: Array, weights: Array, nu: float) -> BoxQP:
    """Write the classifier whose margin errors are at most a share nu of the rows.

    Minimises b'Kb/2 with 0 <= y_i b_i <= w_i and the variables of each class summing to nu W/2,
    where W is the total weight. `nu_svc_margin` makes the answer a decision function.

    Parameters
    ----------
    gram : Gram
        K.
    signs : (n,) array
        The class of each row, -1 or 1.
    weights : (n,) array
        How often each row counts.
    nu : float
        Upper bound on the share of margin errors, lower bound on that of support vectors; in
        (0, 2 min(W+, W-)/W].

    Returns
    -------
    BoxQP
        Two groups: the positive class, the negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> signs = np.array([1.0, -1.0])
    >>> problem = nu_svc(PrecomputedGram(np.eye(2)), signs, np.ones(2), nu=0.5)
    >>> machine, rho = nu_svc_margin(solve(problem).value)
    >>> machine.coef, rho
    (array([ 1., -1.]), 0.5)
    """
    positive = signs > 0
    of_class = np.array([weights[positive].sum(), weights[~positive].sum()])
    total = of_class.sum()
    most = 2.0 * float(of_class.min() / total)
    if not 0 < nu <= most * (1 + 1e-12):
        raise ValueError(
            f"nu={nu} is infeasible: with classes of weight {of_class[0]:g} and {of_class[1]:g} "
            f"nu must be above 0 and at most {most:.6g}, twice the share of the smaller class"
        )
    half = min(0.5 * nu * total, float(of_class.min()))
    upper, lower = np.where(positive, weights, 0.0), np.where(positive, 0.0, -weights)
    group = np.where(positive, 0, 1)
    nothing, totals = np.zeros(len(signs)), np.array([half, -half])
    return BoxQP(gram, nothing, lower, upper, totals, 0.0, group, scale=None)


def nu_svc_margin(dual: Dual) -> tuple[Dual, float]:
    """Scale the answer to `nu_svc` so that the margin is at f = +-1.

    Parameters
    ----------
    dual : Dual
        With one multiplier for each class.

    Returns
    -------
    machine : Dual
        Coefficients and constant of the decision function: those of `svc` with C_i = w_i / rho.
    rho : float
        f at the margin before scaling.
    """
    positive, negative = np.asarray(dual.intercept, dtype=np.float64)
    rho = float(negative - positive) / 2
    if not nu_svc_parts(dual):
        raise ValueError(
            "no margin at this nu: the convex hulls of the classes, reduced by it, still meet. "
            "Raise nu"
        )
    return Dual(dual.coef / rho, float(positive + negative) / (2 * rho)), rho


def nu_svc_parts(dual: Dual) -> bool:
    """Return whether the answer to `nu_svc` has a margin, if only one above rounding."""
    positive, negative = np.asarray(dual.intercept, dtype=np.float64)
    return bool((negative - positive) / 2 > _NO_MARGIN * max(abs(positive), abs(negative)))


def svr(gram: Gram, targets: Array, C: Array, eps: float) -> BoxQP:
    """Write regression with a tube: errors up to eps are free, beyond it they cost C_i each.

    min |w|^2/2 + sum_i C_i max(0, |t_i - f(x_i)| - eps).

    Parameters
    ----------
    gram : Gram
        K.
    targets : (n,) array
        What f should be.
    C : (n,) array
        Weight of each slack; infinite for none.
    eps : float
        Half the width of the tube.

    Returns
    -------
    BoxQP
        -C_i <= b_i <= C_i, sum b = 0, linear term t, epsilon eps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = svr(PrecomputedGram(np.eye(2)), np.array([3.0, 1.0]), np.full(2, 9.0), eps=0.5)
    >>> answer = solve(problem).value
    >>> answer.coef, answer.intercept
    (array([ 0.5, -0.5]), 2.0)
    """
    C, targets = bounded(gram, C), np.asarray(targets, dtype=np.float64)
    return BoxQP(gram, targets, -C, C, 0.0, eps, scale=spread_of(targets))


def svr_l2(gram: Gram, targets: Array, C: Array, eps: float) -> BoxQP:
    """Write regression with a tube and squared slack: 1/(2 C_i) on the diagonal of K.

    min |w|^2/2 + sum_i C_i max(0, |t_i - f(x_i)| - eps)^2.

    Parameters
    ----------
    gram : Gram
        K.
    targets : (n,) array
        What f should be.
    C : (n,) array
        Weight of each squared slack; infinite for none.
    eps : float
        Half the width of the tube; with 0 this is kernel ridge.

    Returns
    -------
    BoxQP
        No bounds, sum b = 0, linear term t, epsilon eps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = svr_l2(PrecomputedGram(np.eye(2)), np.array([3.0, 1.0]), np.full(2, 0.5), 0.5)
    >>> solve(problem).value.coef
    array([ 0.25, -0.25])
    """
    free, targets = np.full(len(targets), np.inf), np.asarray(targets, dtype=np.float64)
    held = slackened(gram, C)
    return BoxQP(held, targets, -free, free, 0.0, eps, scale=spread_of(targets))


def nu_svr(gram: Gram, targets: Array, C: Array, nu: float) -> BoxQP:
    """Write regression whose tube leaves out at most a share nu of the rows.

    Each row appears twice, above and below the tube: 0 <= b_i <= C_i in the first group and
    -C_i <= b_(n+i) <= 0 in the second, which sum to nu sum(C)/2 and its negative.
    `nu_svr_tube` turns the answer into a decision function.

    Parameters
    ----------
    gram : Gram
        K of n points; the problem holds each twice.
    targets : (n,) array
        What f should be.
    C : (n,) array
        Weight of each slack, finite.
    nu : float
        Upper bound on the share of errors outside the tube, lower bound on that of support
        vectors; in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = nu_svr(PrecomputedGram(np.eye(2)), np.array([3.0, 1.0]), np.ones(2), nu=0.5)
    >>> machine, eps = nu_svr_tube(solve(problem).value)
    >>> machine.coef, eps
    (array([ 0.5, -0.5]), 0.5)
    """
    if not 0 < nu <= 1:
        raise ValueError(f"nu={nu} is infeasible: it must be above 0 and at most 1")
    if not np.isfinite(C).all():
        raise ValueError("C must be finite in the nu form: its sum is what nu is a share of")
    n, C = len(targets), np.asarray(C, dtype=np.float64)
    half, nothing = 0.5 * nu * float(C.sum()), np.zeros(n)
    twice = PartGram(gram, np.tile(np.arange(n), 2))
    linear = np.tile(np.asarray(targets, dtype=np.float64), 2)
    lower, upper = np.concatenate([nothing, -C]), np.concatenate([C, nothing])
    totals, group = np.array([half, -half]), np.repeat([0, 1], n)
    return BoxQP(twice, linear, lower, upper, totals, 0.0, group, scale=spread_of(linear))


def nu_svr_tube(dual: Dual) -> tuple[Dual, float]:
    """Fold the answer to `nu_svr` to one coefficient for each row.

    Parameters
    ----------
    dual : Dual
        2n variables, two multipliers.

    Returns
    -------
    machine : Dual
        n coefficients and the constant of the decision function.
    eps : float
        Half the width of the tube that nu stands for.
    """
    above, below = np.asarray(dual.intercept, dtype=np.float64)
    n = len(dual.coef) // 2
    eps = max(0.0, float(above - below) / 2)
    return Dual(dual.coef[:n] + dual.coef[n:], float(above + below) / 2), eps


def one_class(gram: Gram, weights: Array, nu: float) -> BoxQP:
    """Write the half-space that holds all but a share nu of the rows, farthest from the origin.

    Minimises b'Kb/2 with 0 <= b_i <= w_i and sum b = nu W. The decision is f(x) + intercept:
    negative for novel rows; rho = -intercept.

    Parameters
    ----------
    gram : Gram
        K.
    weights : (n,) array
        How often each row counts.
    nu : float
        Upper bound on the share of rows outside, lower bound on that of support vectors; in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> answer = solve(one_class(PrecomputedGram(np.eye(2)), np.ones(2), nu=0.5)).value
    >>> answer.coef, round(answer.intercept, 9)
    (array([0.5, 0.5]), -0.5)
    """
    if not 0 < nu <= 1:
        raise ValueError(f"nu={nu} is infeasible: it must be above 0 and at most 1")
    weights = np.asarray(weights, dtype=np.float64)
    nothing = np.zeros(len(weights))
    total = min(nu, 1.0) * float(weights.sum())
    return BoxQP(gram, nothing, nothing, weights, total, scale=None)


def ball(gram: Gram, C: Array) -> BoxQP:
    """Write the smallest ball in feature space around the rows; rows left out cost C_i.

    min R^2 + sum_i C_i max(0, |phi(x_i) - c|^2 - R^2), half of whose dual is
    min b'Kb/2 - (diag K)'b/2 with 0 <= b_i <= C_i and sum b = 1. The centre is
    c = sum_i b_i phi(x_i); `ball_radius` gives the rest.

    Parameters
    ----------
    gram : Gram
        K.
    C : (n,) array
        Weight of each row outside; infinite for none. They must sum to at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> problem = ball(PrecomputedGram(np.diag([1.0, 1.0])), np.full(2, np.inf))
    >>> radius, centre = ball_radius(problem, solve(problem).value)
    >>> round(radius, 6), round(centre, 6)
    (0.707107, 0.707107)
    """
    upper = np.minimum(C, 1.0)
    room = float(upper.sum())
    if room < 1 - 1e-12:
        raise ValueError(
            f"C is infeasible: the weights of the rows must sum to at least 1, not "
            f"{float(np.sum(C)):.6g}; below it a ball of no radius is the cheapest"
        )
    nothing = np.zeros(len(upper))
    return BoxQP(gram, 0.5 * gram.diag(), nothing, upper, min(room, 1.0), scale=None)


def ball_radius(problem: BoxQP, dual: Dual) -> tuple[float, float]:
    """Return the radius of the ball and the norm of its centre.

    A point z is inside when k(z, z) - 2 f(z) + centre^2 <= radius^2, where
    f(z) = sum_i b_i k(x_i, z). Where centre^2, by `ball_centre`, is negative, its norm is NaN.

    Parameters
    ----------
    problem : BoxQP
        As `ball` wrote it.
    dual : Dual
        Its answer.

    Returns
    -------
    radius : float
        R.
    centre : float
        |c|.
    """
    return ball_lengths(ball_centre(problem, dual), dual)


def ball_lengths(squared: float, dual: Dual) -> tuple[float, float]:
    """Return the radius of a ball and the norm of its centre from the square of the latter."""
    radius = float(np.sqrt(max(0.0, squared + 2 * float(dual.intercept))))
    return radius, float(np.sqrt(squared)) if squared >= 0 else np.nan


def ball_centre(problem: BoxQP, dual: Dual) -> float:
    """Return b'Kb, the squared norm of the centre, and zero where that is but rounding.

    It is negative where K is positive semidefinite on differences only, as cos(x - y) - 1/2 is:
    radii and distances, in which it cancels, need it as it is.
    """
    used = np.flatnonzero(dual.coef)
    squared = float(dual.coef[used] @ exact_rows(problem.gram, used, dual.coef))
    return squared if abs(squared) > problem.rounding(dual.coef) else 0.0


def _two_sided(gram: Gram, signs: Array, C: Array) -> BoxQP:
    upper, lower = np.where(signs > 0, C, 0.0), np.where(signs < 0, -C, 0.0)
    return BoxQP(gram, np.asarray(signs, dtype=np.float64), lower, upper)


# --- what slack may cost at most, and what targets are measured in -------------------------------
#
# A coefficient of the size of `HARDEST`, where max k(x, x) is not small, belongs to a margin so
# thin, below 10^-6 of the longest feature vector, that rounding of the kernel hides it. With an
# infinite weight solvers stop there, and say that the data cannot be separated.
#
# A finite weight above `DEAREST` is taken as it. A coefficient next to a weight of C is a multiple
# of u C, u = 2^-53, so f is a multiple of u C k(x, x): at C = 10^12 that is 10^-4 k(x, x), and
# rounding decides whether a violation is below the tolerance of 10^-3; at 10^10 two more digits are
# left. The answer is another one only where a margin is thinner than 10^-5 of the longest feature
# vector; where slack is paid, its sum is within |w|^2 / (2 C) of the least.

HARDEST = 1e12
DEAREST = 1e10


def bounded(gram: Gram, C: Array) -> Array:
    """Return the weights, the finite ones at most `dearest`."""
    C = np.asarray(C, dtype=np.float64)
    if not C.max(initial=0.0) >= DEAREST:
        return C
    return np.where(np.isinf(C), np.inf, np.minimum(C, dearest(gram)))


def dearest(gram: Gram) -> float:
    """Return the largest finite weight: `DEAREST`, in units of the kernel if these are small."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(DEAREST * np.maximum(1.0, 1.0 / np.abs(gram.diag().max(initial=0.0))))


def slackened(gram: Gram, C: Array) -> Gram:
    """Return the Gram with what squared slack of these weights adds to its diagonal."""
    with np.errstate(over="ignore", divide="ignore"):
        shift = 0.5 / bounded(gram, C)
    return ShiftedGram(gram, np.minimum(shift, np.finfo(float).max))


def spread_of(targets: Array) -> float:
    """Return what a tolerance in units of y is relative to where y spreads by less than a unit."""
    spread = float(np.ptp(targets)) if len(targets) else 0.0
    return min(1.0, spread) or 1.0


def median(values: Array) -> float:
    """Return the median; of an even number, the upper of two: np.median takes ten times as long."""
    half = len(values) // 2
    return float(np.partition(values, half)[half])
