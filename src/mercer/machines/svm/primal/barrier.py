"""Primal-dual interior point iteration in feature space: saddle systems and implied bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import BackendFeatures
from mercer.gram.factored import squared_lengths
from mercer.machines.svm.problem import HARDEST, BoxQP
from mercer.rows.device_arrays import looked_up
from mercer.rows.points import is_sparse, to_dense, to_host
from mercer.solvers.linear_algebra import factor_spd

# --- saddle --------------------------------------------------------------------------------------
#
# A symmetric system with constraints, H dv - A'dx = r and A dv = s, by the null space of A.
#
# Elimination squares A: where rows are nearly dependent, or coefficients are large beside
# residuals, that costs all digits. Here A is factored by itself, and rows that depend on others
# drop out.

_CLEARLY = 1e-6  # of it: what leaves no doubt
_DEPENDENT = 1e-11  # of the length of a row: what is left of one that others make up


class Saddle:
    """The factored system.

    Parameters
    ----------
    H : (m, m) array
        Positive semidefinite; definite where A is zero.
    A : (f, m) array
        Constraints, possibly dependent.
    """

    def __init__(self, H: Array, A: Array) -> None:
        diagonal = np.maximum(H.diagonal(), 0.0)
        self._scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, diagonal.max(initial=0) or 1))
        self._H = H * self._scale * self._scale[:, None]
        A = A * self._scale
        length = np.linalg.norm(A, axis=1)
        self._length = np.where(length > 0, length, 1.0)
        Q, R, order = _factored((A / self._length[:, None]).T)
        rank = int(np.count_nonzero(np.abs(R.diagonal()) > _DEPENDENT)) if len(A) else 0
        self._basis, self._R, self._order = Q[:, :rank], R[:rank, :rank], order[:rank]
        self._null = Q[:, rank:]
        self._within = factor_spd(self._null.T @ self._H @ self._null)

    def solve(self, right: Array, aims: Array) -> tuple[Array, Array]:
        """Return dv and dx; dx is zero for rows that depend on others."""
        order, right = self._order, self._scale * right
        aim = (aims / self._length)[order]
        along = linalg.solve_triangular(self._R, aim, trans="T", check_finite=False)
        dv = self._basis @ along
        dv = dv + self._null @ self._within(self._null.T @ (right - self._H @ dv))
        dx = np.zeros(len(aims))
        pulled = self._basis.T @ (self._H @ dv - right)
        dx[order] = linalg.solve_triangular(self._R, pulled, check_finite=False)
        return self._scale * dv, dx / self._length


def _factored(columns: Array) -> tuple[Array, Array, Array]:
    """Return Q, R and the order of the columns; pivots, many times slower, only where needed."""
    m, f = columns.shape
    if f <= m:
        Q, R = linalg.qr(columns, check_finite=False)
        if np.abs(R.diagonal()).min(initial=1.0) > _CLEARLY:
            return Q, R, np.arange(f)
    Q, R, order = linalg.qr(columns, pivoting=True, check_finite=False)
    return Q, R, order


# --- linear rows ---------------------------------------------------------------------------------
#
# Rows of features beside the offsets of their groups: what an iteration in the primal space sees.
#
# Products only: beside the features nothing as large as them is held.

_FEW = 2000  # rows that stand for all where only a size is asked
_COPY = 1 << 22  # entries; so many may be copied whatever the size of the features


@dataclass(frozen=True, eq=False)
class LinearRows:
    """A_i = [F_i - centre, e_g]: features and, for the offset of its group, a one.

    Attributes
    ----------
    factor : (N, d) array, CSR array or CardRows
        The features of all points, where they lie.
    index : (n,) int array or None
        Which of them these rows are, repeats allowed; None for all in order.
    group : (n,) int array
        The offset that each row has; -1 for none.
    offsets : int
        How many offsets there are.
    centre : (d,) array
        Taken off dense features, against the loss of digits that large means cause; zero for
        sparse ones, and where a row has no offset that could make up for it. Search directions gain
        by it; answers are coefficients of rows as they are, and judged so, by K b: of rows with an
        entry c, that is known to c^2 sum |b| roundings, whatever the solver did.
    stays : bool
        Whether values of many rows stay on a card that the features lie on.
    """

    factor: Any
    index: Array | None
    group: Array
    offsets: int
    centre: Array
    stays: bool = True

    @property
    def count(self) -> int:
        """Count the rows."""
        return len(self.group)

    @property
    def width(self) -> int:
        """Count the unknowns: features and offsets."""
        return int(self.factor.shape[1]) + self.offsets

    def length(self) -> float:
        """Return the root mean square length of a row, from some of them."""
        found = np.sqrt(np.square(self._lengths).mean()) if len(self._lengths) else 0.0
        return np.float64(found or 1.0)  # whose square may be infinite; a plain float's raises

    def longest(self) -> float:
        """Return the length of the longest of some rows."""
        return np.float64(self._lengths.max(initial=0.0) or 1.0)

    @cached_property
    def _lengths(self) -> Array:
        few = np.arange(0, self.count, max(1, self.count // _FEW))
        some = self.factor[few if self.index is None else self.index[few]]
        return np.sqrt(squared_lengths(some))

    def placed(self, x: Any) -> Any:
        """Return a vector of the length of the rows where the work with it is done."""
        return self.features.placed(x) if self.stays else to_host(x)

    def settled(self) -> LinearRows:
        """Return the same rows with their numbers and groups where products are made."""
        put = self.placed
        index = None if self.index is None else put(self.index)
        return replace(self, index=index, group=put(self.group))

    def take(self, which: Array) -> LinearRows:
        """Return some of the rows, side by side in memory if that is cheap enough."""
        index = which if self.index is None else self.index[which]
        group = self.group[which]
        small = len(which) * self.factor.shape[1] <= _COPY
        if is_sparse(self.factor) or small or 8 * len(which) <= self.factor.shape[0]:
            return replace(self, factor=self.factor[index], index=None, group=group)
        return replace(self, index=index, group=group)

    def weighted_gram(self, which: Array, weights: Array) -> Array:
        """Return A' diag(weights) A over some of the rows, weights being theirs; none is copied."""
        if is_sparse(self.factor):
            return self.take(which).gram(weights)
        index = which if self.index is None else self.index[which]
        return replace(self, index=index, group=self.group[which]).gram(weights)

    @cached_property
    def features(self) -> BackendFeatures:
        """Bind the features alone, as they are: neither centre nor offsets."""
        return choose_backend().features(self.factor, self.index)

    def dense(self) -> Array:
        """Write A out: few rows only."""
        some = to_dense(self.factor if self.index is None else self.factor[self.index])
        beside = (self.group[:, None] == np.arange(self.offsets)).astype(np.float64)
        return np.hstack([some - self.centre, beside])

    def matvec(self, v: Array) -> Any:
        """Return A v."""
        d = self.factor.shape[1]
        out = self.values(v[:d])
        if self.offsets:
            # the last entry is for rows without an offset
            each = np.append(v[d:] - self.centre @ v[:d], 0.0)
            out += each[0] if self._all_have_the_first else looked_up(each, self.group)
        return out

    def values(self, w: Array) -> Any:
        """Return F w."""
        return self.features.values(w) if self.stays else self.features.matvec(w)

    def rmatvec(self, x: Array) -> Array:
        """Return A'x."""
        sums = self.sums(x)
        return np.concatenate([self.features.rmatvec(x) - self.centre * sums.sum(), sums])

    def sums(self, x: Array) -> Array:
        """Return the sum of x over each group."""
        if self._all_have_the_first:
            return np.array([x.sum()])
        return np.bincount(self.group + 1, weights=x, minlength=self.offsets + 1)[1:]

    @cached_property
    def _all_have_the_first(self) -> bool:
        return self.offsets == 1 and bool(self.group.min(initial=0) == 0)

    def gram(self, weights: Array) -> Array:
        """Return A' diag(weights) A."""
        return self.features.gram(weights, self.centre, self.group, self.offsets)


# --- implied bounds ------------------------------------------------------------------------------
#
# The box of a programme as the sums of its groups leave it: a presolve that changes no answer.

_ROUNDING = 1e-13  # of a sum


def implied_bounds(problem: BoxQP) -> tuple[Array, Array]:
    """Return the box, shut or narrowed where the sum of a group says more than its bounds do.

    Shut where the sum leaves all of a group at one side. Narrowed where one variable has more room
    than all others together could balance: a row of weight 10^12 among rows of weight 1 would drown
    them in every sum of the solver.
    """
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for m, total in zip(problem.members(), problem.totals, strict=True):
        low, high = float(lower[m].sum()), float(upper[m].sum())
        rounding = _ROUNDING * abs(total)
        if total <= low + rounding:
            upper[m] = lower[m]
        elif total >= high - rounding:
            lower[m] = upper[m]
        else:
            widest = int(np.argmax(upper[m] - lower[m]))
            row = np.arange(len(lower))[m][widest]
            lower[row], upper[row] = _implied_bounds_balanced(
                lower[m], upper[m], widest, float(total)
            )
    return lower, upper


def _implied_bounds_balanced(
    lower: Array, upper: Array, widest: int, total: float
) -> tuple[float, float]:
    """Return the bounds of one variable, once more as far out as all others can balance.

    So far out, they are never reached: what rests on a bound is as it was. Zero stays inside.
    """
    own = float(lower[widest]), float(upper[widest])
    low, high = float(np.delete(lower, widest).sum()), float(np.delete(upper, widest).sum())
    room = high - low
    if not (0.0 < 3.0 * room < own[1] - own[0] < np.inf):
        return own
    return (
        max(own[0], min(0.0, total - high - room)),
        min(own[1], max(0.0, total - low + room)),
    )


# --- barrier -------------------------------------------------------------------------------------
#
# A primal-dual interior point method in the space of the features.
#
# The programme, for unknowns v = (weights, offsets) and rows A_i,
#
#     min v'Mv/2 - g'v + sum_i max over l <= b <= u of (p_i - A_i v) b - epsilon_i |b| - s_i b^2/2,
#
# has the box programme as its dual: M v = g + A'b. A Newton step on the optimality conditions
# eliminates every b_i, so that its cost is one weighted A'A and a system of the size of v. A
# variable with epsilon > 0 and zero inside its box is a difference of two that are not negative.

_MOST_STEPS = 100
_STEP_SHARE = 0.995  # of the way to the boundary
_CLEAN = 1e-9  # residual of the equations
_INFEASIBILITY = 10.0  # times what sums that are off could make of the gain along a ray
_LEAST = 1e-6  # of |w| and |w|^2 if every row were answered by itself: less is nothing
_SELF = 1e-4  # of what rows do to themselves: an objective that comes out smaller has cancelled
_NEAR = 1e-7  # gap and residual of a run that did not fail
_SPRING = 1e-8  # of what a row does to its own residual
_STALLED = 12  # steps that bring nothing, in a row


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows of a programme, and what all the others add up to.

    Attributes
    ----------
    rows : LinearRows
        A.
    linear, lower, upper, shift, epsilon : (n,) array
        p, the box, s and epsilon of each row.
    matrix : (m, m) array
        M.
    pulled : (m,) array
        g.
    """

    rows: LinearRows
    linear: Array
    lower: Array
    upper: Array
    shift: Array
    epsilon: Array
    matrix: Array
    pulled: Array


class Halves:
    """The variables of the barrier: one for each row, and one more where |b| splits it.

    Distances to the two bounds are kept as variables of their own: near a bound they would
    cancel.
    """

    def __init__(self, part: RowBlock, F: Array, mu: float, coef_size: float, own: float) -> None:
        n = len(part.linear)
        self.split = np.flatnonzero((part.epsilon > 0) & (part.lower < 0) & (part.upper > 0))
        self.sign = np.concatenate([np.ones(n), -np.ones(len(self.split))])
        low = part.lower.copy()
        low[self.split] = 0.0
        self.low = np.concatenate([low, np.zeros(len(self.split))])
        self.high = np.concatenate([part.upper, -part.lower[self.split]])
        cost = np.where(part.upper > 0, part.epsilon, -part.epsilon)
        self.cost = np.concatenate([cost, part.epsilon[self.split]])
        self.has_low, self.has_high = np.isfinite(self.low), np.isfinite(self.high)
        self.bounds = max(1, int(self.has_low.sum() + self.has_high.sum()))
        bent = np.where(part.shift > 0, part.shift + own, 0.0)
        self._start(self.sign * self.spread(F) - self.cost, self.spread(bent), mu, coef_size)

    def _start(self, f: Array, shift: Array, mu: float, coef_size: float) -> None:
        """Put every variable where the barrier alone holds the residual f in balance."""
        both = self.has_low & self.has_high
        width = np.where(both, self.high - self.low, 0.0)
        least = mu / coef_size  # of a multiplier, where no bound is on the other side
        from_low = _barrier_balanced(f, shift, mu, least)
        from_high = _barrier_balanced(-f, shift, mu, least)
        half = 0.5 * width
        off = f * half**2 / (mu + np.hypot(mu, f * half))
        edge = 0.5 * mu / (np.abs(f) + mu / np.maximum(width, np.finfo(float).tiny))
        self.above = np.where(both, np.maximum(half + off, edge), from_low)
        self.below = np.where(both, np.maximum(half - off, edge), from_high)
        self.above[~self.has_low] = 1.0
        self.below[~self.has_high] = 1.0
        self.x = np.where(
            self.has_low,
            np.where(self.has_low, self.low, 0.0) + self.above,
            np.where(self.has_high, np.where(self.has_high, self.high, 0.0) - self.below, 0.0),
        )
        self.z_low = np.where(self.has_low, mu / self.above, 0.0)
        self.z_high = np.where(self.has_high, mu / self.below, 0.0)

    def fold(self, x: Array) -> Array:
        """Add the two halves of split rows."""
        n = len(self.sign) - len(self.split)
        out = x[:n].copy()
        out[self.split] += x[n:]
        return out

    def spread(self, F: Array) -> Array:
        """Return each half the value of its row."""
        return np.concatenate([F, F[self.split]])

    def b(self) -> Array:
        """Return the variables of the rows."""
        return self.fold(self.sign * self.x)

    def gap(self) -> float:
        """Sum the products of distances and multipliers: the duality gap once both sides fit."""
        # multipliers of absent bounds are zero
        return dot(self.above, self.z_low) + dot(self.below, self.z_high)

    def move(self, step: float, d: Direction) -> None:
        """Go along a direction."""
        self.x = self.x + step * d.x
        self.above = self.above + step * np.where(self.has_low, d.x, 0.0)
        self.below = self.below - step * np.where(self.has_high, d.x, 0.0)
        self.z_low = self.z_low + step * d.z_low
        self.z_high = self.z_high + step * d.z_high


@dataclass(frozen=True, eq=False)
class Direction:
    """A Newton direction."""

    v: Array
    x: Array
    z_low: Array
    z_high: Array
    F: Array

    def reach(self, h: Halves) -> float:
        """Return how far it stays inside, at most 1."""
        tiny = np.finfo(float).tiny
        worst = max(
            float((-np.where(h.has_low, self.x, 0.0) / h.above).max(initial=0.0)),
            float((np.where(h.has_high, self.x, 0.0) / h.below).max(initial=0.0)),
            float((-self.z_low / np.maximum(h.z_low, tiny))[h.has_low].max(initial=0.0)),
            float((-self.z_high / np.maximum(h.z_high, tiny))[h.has_high].max(initial=0.0)),
        )
        return 1.0 if worst <= 1.0 else 1.0 / worst


@dataclass(frozen=True, eq=False)
class BarrierAnswer:
    """Where the iteration ended.

    Attributes
    ----------
    v : (m,) array
        Weights and offsets.
    b : (n,) array
        The variables, strictly inside the box.
    gap : float
        Sum of products of distances to bounds and their multipliers.
    residual : float
        Largest |M v - g - A'b| relative to the size of its terms.
    steps : int
        Newton steps.
    near : bool
        Whether gap and residual are small, if not as small as asked.
    unbounded : bool
        Whether a direction was found along which the box programme falls for ever: without slack
        the rows contradict one another.
    """

    v: Array
    b: Array
    gap: float
    residual: float
    steps: int
    near: bool
    unbounded: bool


@dataclass(frozen=True)
class GapGoal:
    """The gap that is small enough: both of these.

    Attributes
    ----------
    relative : float
        To the size of the objective.
    absolute : float
        As it is.
    """

    relative: float
    absolute: float = np.inf


Tick = Callable[[float], bool]


def barrier(
    part: RowBlock, v: Array, mu: float, coef_size: float, goal: GapGoal, tick: Tick
) -> BarrierAnswer:
    """Follow the central path until the gap is at most `goal`, or nothing moves any more.

    Parameters
    ----------
    part : Part
        The programme.
    v : (m,) array
        Where to start.
    mu : float
        Product of distances and multipliers at the start.
    usual : float
        Size of a usual b, for variables that have only one bound.
    goal : Goal
        Gap to reach.
    tick : callable
        Told the relative gap after each step; true ends the iteration.
    """
    newton = _NewtonSystem(part, v, mu, coef_size)
    clean = max(_CLEAN, 0.01 * goal.relative)
    best, idle = (np.inf, np.inf), 0
    answer = newton.answer(0)
    for steps in range(1, _MOST_STEPS + 1):
        newton.step()
        if not np.isfinite(newton.gap + newton.residual):
            break
        answer = newton.answer(steps)
        enough = min(goal.relative * newton.size, goal.absolute)
        still = newton.gap > enough and newton.gap < 0.9 * best[0]
        better = still or (newton.residual > clean and newton.residual < 0.97 * best[1])
        idle = 0 if better else idle + 1
        best = min(best[0], newton.gap), min(best[1], newton.residual)
        done = newton.gap <= enough and newton.residual <= clean
        patience = 3 if newton.gap <= _CLEAN * newton.size else _STALLED
        stuck = idle >= patience and not newton.hard.any()
        if tick(newton.gap / newton.size) or done or stuck or answer.unbounded:
            break
    return answer


class _NewtonSystem:
    def __init__(self, part: RowBlock, v: Array, mu: float, coef_size: float) -> None:
        self.part, self.v = part, v.copy()
        self.Av = part.rows.matvec(v)
        self.length = part.rows.length()
        own = 0.0 if v.any() else self.length**2  # residuals that nothing answers yet will fall
        self.halves = Halves(part, part.linear - self.Av, mu, coef_size, own)
        self.longest = part.rows.longest()
        self.room = float(np.maximum(-part.lower, part.upper).sum())
        # what nothing bends is held by a spring, reset at each step: the solution is not changed
        loose = self.halves.spread(part.shift) > 0
        spring = _SPRING * max(self.length**2, np.finfo(float).tiny)
        self.least_stiff = np.where(
            loose | self.halves.has_low | self.halves.has_high, 1e-300, spring
        )
        self.hard = np.isinf(part.upper - part.lower) & (part.shift == 0)
        self._look()

    def _look(self) -> None:
        part, h = self.part, self.halves
        self.b = h.b()
        self.F = part.linear - self.Av - part.shift * self.b
        Mv, pulled = part.matrix @ self.v, part.rows.rmatvec(self.b)
        self.pulled = pulled
        self.unbalanced = Mv - part.pulled - pulled
        size = np.abs(Mv) + np.abs(part.pulled) + np.abs(pulled)
        largest = float(np.abs(part.linear).max(initial=0.0) + np.abs(self.Av).max(initial=0.0))
        # sum |b| that would answer every residual, or all that there is: where the rest vanishes
        answering = _LEAST * min(largest / self.length**2, self.room)
        size += answering * self.length
        if part.rows.offsets:
            size[-part.rows.offsets :] += part.rows.sums(np.abs(self.b)) + answering
        top = float(size.max(initial=0.0))
        residual = float(np.abs(self.unbalanced).max(initial=0.0) / top) if top else 0.0
        self.slack = h.z_high - h.z_low - (h.sign * h.spread(self.F) - h.cost)
        wrong = float(np.abs(self.slack).max(initial=0.0) / largest) if largest else 0.0
        self.residual = max(residual, wrong)
        self.gap, tiny = h.gap(), np.finfo(float).tiny
        alone = _SELF * self.length**2 * dot(self.b, self.b)
        objective = float(abs(0.5 * self.v @ Mv) + abs(dot(part.linear, self.b)))
        self.size = max(objective, alone, largest * answering, tiny)

    def answer(self, steps: int) -> BarrierAnswer:
        """Return where the iteration stands."""
        near = self.gap <= _NEAR * self.size and self.residual <= _NEAR
        return BarrierAnswer(self.v, self.b, self.gap, self.residual, steps, near, self._ray())

    def _ray(self) -> bool:
        """Return whether b without what has a bound points where all is gained for ever.

        Hulls closer than 10^-6 of the longest feature vector count as one: see `hard`.
        """
        if not self.hard.any():
            return False
        part, b = self.part, self.b
        grows = self.hard & np.isinf(np.where(b > 0, part.upper, part.lower))
        pulled = self.pulled if grows.all() else part.rows.rmatvec(np.where(grows, b, 0.0))
        b = np.where(grows, b, 0.0)
        gain = dot(part.linear, b) - dot(part.epsilon, np.abs(b))
        asked = float(np.abs(part.linear).max(initial=0.0))
        weights, sums = np.split(pulled, [len(pulled) - part.rows.offsets])
        pull = float(np.linalg.norm(weights)) * np.sqrt(HARDEST)
        level = asked + float(np.abs(self.Av).max(initial=0.0))
        infeasibility = level * float(np.abs(sums).max(initial=0.0))
        clear = gain >= _INFEASIBILITY * infeasibility
        return gain > 0 and gain * self.longest >= asked * pull and clear

    def step(self) -> None:
        """Predict, choose the centring, correct, move."""
        h, part = self.halves, self.part
        stiff = h.z_low / h.above + h.z_high / h.below
        self.theta = 1.0 / np.maximum(stiff, self.least_stiff)
        bar = np.minimum(h.fold(self.theta), 1e300)
        self.damp = 1.0 / (1.0 + part.shift * bar)
        self.bar = bar * self.damp
        solve = factor_spd(part.matrix + part.rows.gram(self.bar))
        mu = self.gap / h.bounds
        none = np.zeros_like(h.x)
        ahead = self._direction(solve, none, none)
        reach = ahead.reach(h)
        left = _gap_after(h, ahead, reach) / h.bounds
        sigma = min(1.0, (left / mu) ** 3) if mu > 0 else 0.0
        centre = sigma * mu
        d = self._direction(
            solve,
            np.where(h.has_low, centre - ahead.x * ahead.z_low, 0.0),
            np.where(h.has_high, centre + ahead.x * ahead.z_high, 0.0),
        )
        reach = d.reach(h)
        length = min(1.0, reach * _STEP_SHARE) if reach < 1.0 else 1.0
        h.move(length, d)
        self.v = self.v + length * d.v
        self.Av = self.Av + length * self.Adv
        self._look()

    def _direction(self, solve: Callable[[Array], Array], low: Array, high: Array) -> Direction:
        h, part = self.halves, self.part
        c_low = low / h.above - h.z_low  # multipliers of absent bounds are and stay zero
        c_high = high / h.below - h.z_high
        c_low[~h.has_low] = 0.0
        c_high[~h.has_high] = 0.0
        push = -self.slack - c_high + c_low
        e = h.fold(h.sign * self.theta * push) * self.damp
        dv = solve(part.rows.rmatvec(e) - self.unbalanced)
        self.Adv = part.rows.matvec(dv)
        db = e - self.bar * self.Adv
        dF = -self.Adv - part.shift * db
        dx = self._halves_of(db, dF, push)
        z_low = c_low - h.z_low / h.above * dx
        z_high = c_high + h.z_high / h.below * dx
        return Direction(dv, dx, z_low, z_high, dF)

    def _halves_of(self, db: Array, dF: Array, push: Array) -> Array:
        """Share a move of b among its halves; the stiffer one is known without cancellation."""
        h = self.halves
        if not len(h.split):
            return db
        n = len(db)
        dx = np.concatenate([db, np.zeros(len(h.split))])
        soft = self.theta * (h.sign * h.spread(dF) + push)
        x, y, of_row = soft[:n][h.split], soft[n:], db[h.split]
        x_stiffer = self.theta[:n][h.split] < self.theta[n:]
        dx[h.split] = np.where(x_stiffer, x, of_row + y)
        dx[n:] = np.where(x_stiffer, x - of_row, y)
        return dx


def dot(x: Array, y: Array) -> float:
    """Multiply without BLAS, whose threads cost more than a vector is worth."""
    return float(np.einsum("i,i->", x, y))


def _barrier_balanced(f: Array, shift: Array, mu: float, least: float) -> Array:
    """Solve f - shift x + mu/x = 0 for x > 0; x is at most mu/least where shift is zero."""
    root = np.sqrt(f**2 + 4.0 * shift * mu)
    bare = mu / np.maximum(-f, least)
    pushed = np.where(f > 0, f + root, 4.0 * shift * mu / np.maximum(root - f, least))
    return np.where(shift > 0, pushed / np.maximum(2.0 * shift, np.finfo(float).tiny), bare)


def _gap_after(h: Halves, d: Direction, step: float) -> float:
    low = (h.above + step * d.x) * (h.z_low + step * d.z_low)
    high = (h.below - step * d.x) * (h.z_high + step * d.z_high)
    return float(low[h.has_low].sum() + high[h.has_high].sum())
