"""Interior point solver for factored K: samples of rows, smoothed Newton steps, and search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.machines.svm.descent import VIOLATION, Criterion
from mercer.machines.svm.primal.barrier import BarrierAnswer, GapGoal, RowBlock, barrier, dot
from mercer.machines.svm.primal.crossover import (
    Vertex,
    admissible,
    assembled,
    crossover,
    exact_gradient,
    fall_back,
    fallen_short,
    linear_refusal,
    meets,
    rounding_of,
)
from mercer.machines.svm.primal.screening import FeatureProgramme, Piece
from mercer.machines.svm.problem import BoxQP, Dual
from mercer.rows.device_arrays import CardArray
from mercer.rows.points import to_host
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.linear_algebra import factor_spd

# --- stratified sample ---------------------------------------------------------------------------
#
# Samples of the rows of a programme, of growing size, each containing those before it.


@dataclass(frozen=True, eq=False)
class StratifiedSample:
    """Rows in random order, each kind by itself: samples of growing size contain one another."""

    kinds: tuple[Array, ...]

    @classmethod
    def of(cls, P: FeatureProgramme) -> StratifiedSample:
        """Order the rows of each sign and group at random."""
        with np.errstate(invalid="ignore"):
            side = np.nan_to_num(np.maximum(P.upper, 0.0) + np.minimum(P.lower, 0.0))
        key = to_host(np.sign(side)).astype(np.int8) + 3 * to_host(P.rows.group)
        rng = np.random.default_rng(0)
        return cls(tuple(rng.permutation(np.flatnonzero(key == kind)) for kind in np.unique(key)))

    def draw(self, size: int) -> tuple[Array, Array]:
        """Return rows, as many of each kind if there are enough, and how many each stands for."""
        count = max(1, size // len(self.kinds))
        which = np.concatenate([kind[:count] for kind in self.kinds])
        ratio = np.concatenate(
            [np.full(min(count, len(k)), len(k) / min(count, len(k))) for k in self.kinds]
        )
        order = np.argsort(which)
        return which[order], ratio[order]


def effective_rows(P: FeatureProgramme) -> float:
    """Return Kish's effective number of rows, (sum of weights)^2 / (sum of their squares).

    A sample of more rows than that says little of the whole: the few that weigh most are not in it.
    """
    box = P.upper - P.lower
    free = box > 0
    bent = np.isinf(box) & free
    weight = np.where(bent, 1.0 / np.where(bent, P.shift, 1.0), box)[free]
    weight = weight / weight.max(initial=np.finfo(float).tiny)
    squares = float(np.square(weight).sum())
    return float(weight.sum()) ** 2 / squares if squares else 0.0


# --- smoothing -----------------------------------------------------------------------------------
#
# Newton's method on a loss whose corners are rounded: how a programme of many rows is approached.
#
# A corner of a loss rounded over a width d is a dual variable with a shift, s = d / (u - l): b(t)
# goes from one bound to the other while t passes the corner. The objective is then smooth, its
# second derivatives come from the rows within d of a corner alone, and a step along a line costs
# no look at the features, since residuals are linear in it. Ever narrower rounding leaves ever
# fewer rows: the cost of the whole is a few weighted A'A, not one for each step of an interior
# point method.

_STEPS = 12  # of Newton's at one width; mostly two or three
_LOOKS = 30  # at points of a line
_FLAT = 0.1  # of the slope at the start of a line: what is left of it where a search ends
_ENOUGH = 0.05  # of what rounding does to the objective: what a step must promise

Tick = Callable[[float], bool]


@dataclass(frozen=True, eq=False)
class SmoothPoint:
    """Where Newton's method stands.

    Attributes
    ----------
    v : (m,) array
        Weights and offsets.
    t : (n,) array
        The residuals p - A v of the programme as it is, without rounding.
    ok : bool
        Whether the method went to its end.
    """

    v: Array
    t: Array
    ok: bool = True


def can_round(P: FeatureProgramme) -> bool:
    """Return whether every row has bounds or a shift: else a corner cannot be rounded."""
    return not bool((np.isinf(P.upper - P.lower) & (P.shift == 0)).any())


def rounded(P: FeatureProgramme, width: float) -> FeatureProgramme:
    """Round corners over a width, each about where it is; those of squared slack stay."""
    box = P.upper - P.lower
    sharp = (P.shift == 0) & (box > 0)
    shift = np.where(sharp, width / np.where(sharp, box, 1.0), P.shift)
    split = sharp & (P.epsilon > 0) & (P.lower < 0) & (P.upper > 0)
    # a ramp from zero to a bound that is halved by the corner; of a tube, one on either side
    middle = np.where(sharp, 0.5 * (P.upper + P.lower) / np.where(sharp, box, 1.0) * width, 0.0)
    epsilon = np.where(split, np.maximum(P.epsilon - 0.25 * width, 0.0), P.epsilon)
    return replace(P, linear=P.linear + np.where(split, 0.0, middle), shift=shift, epsilon=epsilon)


def descend_rounded(P: FeatureProgramme, at: SmoothPoint, width: float, tick: Tick) -> SmoothPoint:
    """Descend to the lowest point of the programme rounded over a width, or near enough to it.

    Parameters
    ----------
    P : FeatureProgramme
        The programme.
    at : SmoothPoint
        Where to start.
    width : float
        Of the rounding, in the units of residuals.
    tick : callable
        Told what the next step promises, relative to the objective; true ends the descent.
    """
    Q = rounded(P, width)
    offset = Q.linear - P.linear
    newton = _SmoothedNewton(Q, at.v, at.t + offset, width)
    for _ in range(_STEPS):
        step, promised = newton.direction()
        size = abs(newton.value)
        if step is None or not np.isfinite(promised):
            return replace(at, ok=False)
        stop = tick(promised / size if size else 0.0)
        if promised <= _ENOUGH * newton.blurred(width):
            break
        if not newton.move(step) or stop:
            break
    return SmoothPoint(newton.v, newton.t - offset)


class _SmoothedNewton:
    def __init__(self, Q: FeatureProgramme, v: Array, t: Array, width: float) -> None:
        self.Q, self.v, self.t, self.width = Q, v, t, width
        self.bend, self.pull = Q.bend(), Q.pull()
        self._look(Q.duals_at(t))

    def _look(self, piece: Piece) -> None:
        self.piece = piece
        self.value = self.Q.value(self.v, self.t, piece.b)

    def blurred(self, width: float) -> float:
        """Return about what rounding adds to the objective: rows within it, a part of C d each."""
        sharp = self.piece.curved & np.isfinite(self.Q.upper - self.Q.lower)
        box = (self.Q.upper - self.Q.lower)[sharp]
        floor = 1e-9 * abs(self.value)
        return max(0.1 * width * float(box.sum()), floor)

    def direction(self) -> tuple[Array | None, float]:
        """Return the step to the lowest point of the present pieces, and what it promises.

        None where there is nothing to hold on to.
        """
        Q, curved = self.Q, np.flatnonzero(self.piece.curved)
        gradient = self.bend @ self.v - self.pull - Q.rows.rmatvec(self.piece.b)
        H = Q.rows.weighted_gram(curved, 1.0 / Q.shift[curved])
        H += self.bend
        flat = ~(H.diagonal() > 0)
        if flat.any():  # no row of a group is near its corner: the offset goes where some are
            step = np.where(flat, -np.sign(gradient) * self.width, 0.0)
            promised = -float(gradient @ step)
            return (step if promised > 0 else None), promised
        step = factor_spd(H)(-gradient)
        return step, -0.5 * float(gradient @ step)

    def move(self, step: Array) -> bool:
        """Go along the step to where the slope has vanished; false if nothing was gained."""
        Q, dt = self.Q, -self.Q.rows.matvec(step)
        along = float((self.bend @ self.v - self.pull) @ step)
        bend = float(step @ self.bend @ step)

        def slope(s: float, piece: Piece) -> float:
            return along + s * bend + dot(piece.b, dt)

        first = slope(0.0, self.piece)
        low, high, s = 0.0, np.inf, 1.0
        low_slope, high_slope = first, np.inf
        piece = self.piece
        for _ in range(_LOOKS):
            piece = Q.duals_at(self.t + s * dt)
            at = slope(s, piece)
            if abs(at) <= _FLAT * abs(first):
                break
            if at < 0:
                low, low_slope = s, at
            else:
                high, high_slope = s, at
            if np.isinf(high):
                s *= 2.0
                continue
            share = low_slope / (low_slope - high_slope)
            s = low + (high - low) * min(max(share, 0.1), 0.9)
        before = self.value
        self.v, self.t = self.v + s * step, self.t + s * dt
        self._look(piece)
        return bool(self.value < before)


# --- feature search ------------------------------------------------------------------------------
#
# The answer of a programme in the space of features, found from few of its rows at a time.
#
# Samples of growing size say where the answer lies. From there on only rows near a corner of
# their loss can change what they do; all others add up to a pull (`screening`). Those few are a
# programme like the first, rounded over less, of which again only few rows are near a corner: the
# last of them, a few for each unknown, go to the interior point method. On the way back every
# level is checked on its own rows, and the rows that went beyond a corner join the next round.

_GROWTH = 4  # of one sample to the next
_GROWTH_THERE = 16  # on a card, where a step takes its launches' time whatever the sample
_SMALLEST_SAMPLE = 2000
_ROWS_PER_UNKNOWN = 20  # of the first sample
_ROWS_PER_UNKNOWN_THERE = 55  # on a card
_SHARE = 0.5  # of the standard error of residuals: rounding that is narrow enough for a sample
_WIDE = 4.0  # times the size of residuals: the first rounding, which every row feels
_NARROWER = 0.25  # the rounding, from one descent to the next
_NARROWEST = 1e-7  # times the size of residuals: rows that are near then stay near
_BAND = 2.0  # times the rounding: within that a row counts as near its corner
_MOVED = 3.0  # times the last move of its residual: so does a row within that
_WARM = 0.7  # of the band times the size of b: where the central path is joined
_WIDEN = 1.0  # the band, when it was too narrow: rows that went beyond it join by themselves
_LESS = 0.5  # the band, when it was wide enough but for some rows
_ROUNDS = 12  # of screening, before all rows are taken
_FINE = 1e-15  # of the objective: gap at which bounds are decided
_AGAIN = (1e3, 1e6)  # times the size of residuals: where a run that failed is begun again
_FEW_OF = 4  # one of so many rows near a corner: a programme of their own
_FEWEST = 2000  # rows that go to the interior point method at once, whatever the unknowns
_FEW_PER_UNKNOWN = 20  # rounded over less, so few rows are far from the lowest point for long


@dataclass
class FeatureSearch:
    """A search for the answer of a programme; what it did, and why it ended.

    Attributes
    ----------
    programme : FeatureProgramme
        What is asked.
    watch : Watch
        Told of every step.
    residual_tol : float
        A residual that decides whether a row is at its corner.
    limit : int or None
        Largest number of steps.
    steps : int
        Newton steps so far.
    unbounded : bool
        Whether the programme has no answer.
    """

    programme: FeatureProgramme
    watch: Watch
    residual_tol: float
    limit: int | None = None
    steps: int = 0
    unbounded: bool = False
    coef_size: float = 1.0
    residual_size: float = 0.0

    def run(self) -> Vertex:
        """Return the answer, or the best known when asked to stop."""
        P = self.programme
        self.coef_size = _coef_size(P)
        self.residual_size = float(np.abs(P.linear).mean())
        start = SmoothPoint(np.zeros(P.rows.width), P.linear)
        sizes = self._sizes(effective_rows(P)) if can_round(P) else []
        if not sizes:
            return self._all(P, start.v, P.residuals(start.v), np.inf)
        at, width = self._sampled(start, sizes)
        if self.stopped:
            return Vertex(P.duals_at(at.t).b, at.v)
        return self._solved(P, at, width)

    def _sampled(self, at: SmoothPoint, sizes: list[int]) -> tuple[SmoothPoint, float]:
        """Descend on ever larger samples, each rounded first over what the last was wrong by."""
        P, error, v, ok = self.programme, np.inf, at.v, True
        lottery = StratifiedSample.of(P)
        for size in sizes:
            part = P.sample(*lottery.draw(size))
            at = SmoothPoint(v, part.residuals(v))
            unit = self._size(part, at.t)
            start, error = min(error, _WIDE * unit), self._error(size) * unit
            at, width, _ = self._narrowed(part, at, start, _SHARE * error, 0)
            v, ok = at.v, at.ok
            if self.stopped or not ok:
                break
        return SmoothPoint(v, P.residuals(v), ok), width

    def _narrowed(
        self, P: FeatureProgramme, at: SmoothPoint, width: float, end: float, most: int
    ) -> tuple[SmoothPoint, float, Array]:
        """Round corners over ever less, until that is `end`, or so little that few rows feel it.

        Returns the point, the rounding, and how far residuals moved for the last time.
        """
        moved = np.zeros_like(at.t)
        descended = False
        while True:
            found = descend_rounded(P, at, width, self._tick)
            if descended and not found.ok:
                return at, width / _NARROWER, moved
            if descended:
                moved = np.abs(found.t - at.t)
            descended = True
            near = np.count_nonzero(P.duals_at(found.t).distance_to_corner <= _BAND * width)
            if not found.ok or self.stopped or width <= end or near <= most:
                return found, width, moved
            at, width = found, _NARROWER * width

    def _sizes(self, effective: float) -> list[int]:
        """Return how many rows samples have; none where few rows weigh as much as all others."""
        n, width = len(self.programme.linear), self.programme.rows.width
        there = isinstance(self.programme.linear, CardArray)
        growth = _GROWTH_THERE if there else _GROWTH
        each = _ROWS_PER_UNKNOWN_THERE if there else _ROWS_PER_UNKNOWN
        sizes, size = [], max(_SMALLEST_SAMPLE, each * width)
        while 4 * size <= n and size <= effective:
            sizes.append(size)
            size *= growth
        return sizes

    def _error(self, size: int) -> float:
        """Return the standard error of residuals found from so many rows, of their own size."""
        return float(np.sqrt(self.programme.rows.width / size))

    def _tick(self, measure: float) -> bool:
        self.steps += 1
        return self.watch.tick(self.steps, measure) or self.stopped is not None

    @property
    def stopped(self) -> Status | None:
        """Why the search has to end, if it has."""
        limited = self.limit is not None and self.steps >= self.limit
        return self.watch.stopped or (Status.ITERATION_LIMIT if limited else None)

    def _barrier(self, part: RowBlock, v: Array, band: float) -> BarrierAnswer:
        """Follow the central path to its end, from where residuals of size `band` bend."""
        coef_size = _mean_width(part.upper - part.lower) or self.coef_size
        goal = GapGoal(_FINE, _absolute_gap(part, self.residual_tol))
        answer = barrier(part, v, band * coef_size, coef_size, goal, self._tick)
        self.unbounded = answer.unbounded
        return answer

    def _solved(self, P: FeatureProgramme, at: SmoothPoint, width: float) -> Vertex:
        """Round corners over less, and go on with the rows that feel it; few are solved at once."""
        few = max(_FEWEST, _FEW_PER_UNKNOWN * P.rows.width)
        if len(at.t) <= 2 * few:
            return self._all(P, at.v, at.t, _WARM * _BAND * width / _NARROWER)
        end = _NARROWEST * self._size(P, at.t)
        most = max(len(at.t) // _FEW_OF, few)
        at, width, moved = self._narrowed(P, at, width, end, most)
        if not at.ok:  # digits that features lack misled the descent: begin anew, on all rows
            v = np.zeros(P.rows.width)
            return self._all(P, v, P.residuals(v), np.inf)
        if self.stopped:
            return Vertex(P.duals_at(at.t).b, at.v)
        if not moved.any():
            moved = self._foreseen(P, at, width)
        return self._exact(P, at, _BAND * width, _NARROWER * width, moved)

    def _foreseen(self, P: FeatureProgramme, at: SmoothPoint, width: float) -> Array:
        """Return how far residuals move where corners are rounded over less, from rows near one."""
        piece, none = P.duals_at(at.t), np.zeros_like(at.t)
        near = np.flatnonzero(piece.distance_to_corner <= _BAND * width)
        if not len(near) or self._too_many(near, piece, _BAND * width):
            return none
        Q = P.inner(near, piece)
        start = SmoothPoint(at.v, Q.rows.placed(at.t[near]))
        found = descend_rounded(Q, start, _NARROWER * width, self._tick)
        return np.abs(P.residuals(found.v) - at.t) if found.ok else none

    def _exact(
        self, P: FeatureProgramme, at: SmoothPoint, band: float, width: float, moved: Array
    ) -> Vertex:
        """Screen and solve until every row is where it was thought to be.

        Rows that moved farther than others, when corners were last rounded over less, are taken for
        near from farther away.
        """
        v, t = at.v, at.t
        piece, wrong = P.duals_at(t), np.zeros(0, dtype=np.int64)
        for done in range(_ROUNDS + 1):
            value = P.value(v, t, piece.b)
            reach = np.maximum(band, _MOVED * moved)
            is_near = piece.distance_to_corner <= reach
            is_near[wrong] = True
            near = np.flatnonzero(is_near)
            if done == _ROUNDS or not len(near) or self._too_many(near, piece, band):
                return self._all(P, v, t, band)
            Q = P.inner(near, piece)
            vertex = self._solved(Q, SmoothPoint(v, Q.rows.placed(t[near])), width)
            if self.stopped or self.unbounded:
                return assembled(P, near, piece, v, vertex.b)
            t_new = P.residuals(vertex.v)
            wrong, depth = _crossed(piece, near, t, t_new)
            if depth <= 1e-9 * (1.0 + self.residual_size):
                return assembled(P, near, piece, vertex.v, vertex.b)
            moved = np.abs(t_new - t)
            v, t, piece, halved = _descended(P, (v, t), (vertex.v, t_new), value)
            band *= _WIDEN if halved else _LESS
            width = _NARROWER * band / _BAND
        raise AssertionError("the last round takes all rows")

    def _too_many(self, near: Array, piece: Piece, band: float) -> bool:
        """Return whether screening pays no more, or is not possible."""
        return 2 * len(near) > len(piece.b) or bool(
            np.isinf(piece.b[piece.distance_to_corner > band]).any()
        )

    def _all(self, P: FeatureProgramme, v: Array, t: Array, band: float) -> Vertex:
        """Give all rows to the interior point method."""
        P, t = P.here(), to_host(t)
        band = min(band, self._size(P, t))
        piece = P.duals_at(t)
        every, part = P.everything(piece)
        answer = self._barrier(part, v, band)
        for larger in _AGAIN:
            if answer.near or self.stopped or self.unbounded:
                break
            # from farther inside: slower, but nothing is in the way
            fresh = np.zeros_like(v)
            answer = self._barrier(part, fresh, larger * self._size(P, P.linear))
        if self.stopped or self.unbounded:
            return assembled(P, every, piece, answer.v, answer.b)
        return crossover(P, part, every, piece, answer, self.residual_tol)

    def _size(self, P: FeatureProgramme, t: Array) -> float:
        """Return the size of residuals: what is asked, what is there, or what b makes."""
        asked = float(np.abs(P.linear).mean()) or float(np.abs(t).mean())
        return asked or P.even_residuals() or P.rows.length() ** 2 * self.coef_size or 1.0


Place = tuple[Array, Array]  # weights and offsets, and the residuals there


def _descended(
    P: FeatureProgramme, at: Place, aim: Place, value: float
) -> tuple[Array, Array, Piece, bool]:
    """Go to the aim, or as far towards it as the objective falls; say whether that was less."""
    (v, t), (v_new, t_new), step = at, aim, 1.0
    while step > 1e-6:
        between, residual = v + step * (v_new - v), t + step * (t_new - t)
        piece = P.duals_at(residual)
        if not P.value(between, residual, piece.b) >= value or not np.isfinite(value):
            return between, residual, piece, step < 1.0
        step *= 0.5
    return v, t, P.duals_at(t), True


def _crossed(piece: Piece, near: Array, t: Array, t_new: Array) -> tuple[Array, float]:
    """Return the rows that were thought to be decided but went beyond a corner, and how far."""
    depth = np.abs(t_new - t) - piece.distance_to_corner
    depth[near] = -np.inf
    wrong = np.flatnonzero(depth > 0)
    return wrong, float(depth[wrong].max(initial=0.0))


def _coef_size(P: FeatureProgramme) -> float:
    """Guess the size of a coefficient where no bound tells it: residuals over curvature."""
    width = _mean_width(P.upper - P.lower)
    if width:
        return width
    size, tiny = float(np.abs(P.linear).mean() or 1.0), np.finfo(float).tiny
    alone = size / max(P.rows.length() ** 2, tiny)
    bent = P.shift[P.shift > 0]
    return min(1e8 * alone, size * float((1.0 / bent).mean())) if len(bent) else 10.0 * alone


def _absolute_gap(part: RowBlock, residual_tol: float) -> float:
    """Return the gap at which even the narrowest boxes are far from the middle.

    Where there is no width, a variable is small that makes no such residual on a row like itself.
    """
    width = part.upper - part.lower
    width = np.where(np.isinf(width), residual_tol / part.rows.length() ** 2, width)
    return residual_tol * float(width[width > 0].min(initial=np.inf)) * len(width)


def _mean_width(width: Array) -> float:
    """Return the mean width of boxes, each counting by its own: the wide ones decide residuals."""
    width = width[np.isfinite(width) & (width > 0)]
    top = float(width.max(initial=0.0))
    return top * float(np.square(width / top).sum() / (width / top).sum()) if top else 0.0


# --- interior point ------------------------------------------------------------------------------
#
# Box programmes whose Gram is factored, K = F F' + diag(shift), in the space of the features.
#
# Samples of growing size say where the answer lies; then only rows near a corner of their loss
# are given to the interior point method, all others being known (`screening`). Whether they were
# known rightly is checked on every row, and the rows that were not join the next round, so the
# answer is that of all rows. Cost: a few passes over F.

_CLEARLY = 0.1  # of the last tolerance of residuals: so much finer is worth another search
_RESIDUAL_TOL = 1e-3  # of the violation allowed: what a residual is compared with to decide a bound
_SHARPER = 0.9  # of the tolerance, for descents that are judged by another sum


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Predictor-corrector steps on the rows that are not decided; exact for all rows.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end; the method itself goes on to the last digits.
    max_iter : int or None
        Largest number of predictor-corrector steps; None lets the method end by itself.
    criterion : Violation or Gap
        What `tol` speaks of: the largest violation of a pair, or the relative duality gap.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = BoxQP

    def _obstacle(self, problem: BoxQP) -> str | None:
        """Take box programmes with a factored Gram that have a feasible point."""
        return linear_refusal("InteriorPoint", problem)

    def run(self, problem: BoxQP, watch: Watch, start: Any = None) -> Solution:
        """Sample, screen, solve, check all rows."""
        given, programme = problem, FeatureProgramme.of(problem)
        problem = problem.placed()
        b = problem.feasible_near(np.zeros_like(problem.linear))
        F = problem.linear
        if problem.scale is None and self.criterion is VIOLATION:
            F = exact_gradient(problem, programme, b)
        residual_tol = _RESIDUAL_TOL * self.criterion.first(problem, F, self.tol)
        search = FeatureSearch(programme, watch, residual_tol, self.max_iter)
        if watch.tick(0, np.inf):
            b, status, F = self._found(problem, b, search)
        else:
            b, status, F = self._searched(problem, search)
        hopeless = self.criterion is VIOLATION and rounding_of(
            programme, b
        ) > self.tol * problem.unit(b, F)
        if status in (Status.INACCURATE, Status.NOT_FINITE) and not hopeless:
            problem, search.programme = given, programme.here()
            b, F = to_host(b), to_host(F)
            b, status, F = self._after_fallback(problem, b, status, F, search)
        status = fallen_short(status, problem, b, F)
        answer = Dual(to_host(b), problem.intercepts(b, F))
        return report(self, answer, status, search.steps, watch)

    def _searched(self, problem: BoxQP, search: FeatureSearch) -> tuple[Array, Status, Array]:
        """Search; where the answer itself says what is allowed, once more with that in mind."""
        start = problem.feasible_near(np.zeros_like(problem.linear))
        while True:
            b = start  # stays so if time runs out
            # judged below, on all rows; between products of ours BLAS has little to do
            with np.errstate(all="ignore"), search.watch.keeping(), one_blas_thread():
                b = search.run().b
            b, status, F = self._found(problem, b, search)
            if status is not Status.INACCURATE or self.criterion.is_known_before(problem):
                return b, status, F
            residual_tol = _RESIDUAL_TOL * self.criterion.allowed(problem, b, F, self.tol)
            finer = 0 < residual_tol < _CLEARLY * search.residual_tol
            if self.criterion is not VIOLATION or not finer:
                return b, status, F
            search.residual_tol = residual_tol

    def _found(
        self, problem: BoxQP, b: Array, search: FeatureSearch
    ) -> tuple[Array, Status, Array]:
        b = admissible(problem, search.programme, b)
        return b, *self._judge(problem, b, search)

    def _judge(self, problem: BoxQP, b: Array, search: FeatureSearch) -> tuple[Status, Array]:
        F = exact_gradient(problem, search.programme, b)
        if search.unbounded:
            return Status.INFEASIBLE, F
        met = meets(self.criterion, problem, search.programme, b, F, self.tol)
        return met if met.ok or met is Status.NOT_FINITE else search.stopped or met, F

    def _after_fallback(
        self, problem: BoxQP, b: Array, status: Status, F: Array, search: FeatureSearch
    ) -> tuple[Array, Status, Array]:
        """Let descents go on; keep what is better."""
        P, criterion = search.programme, self.criterion
        left = None if self.max_iter is None else self.max_iter - search.steps
        found, watch = b, search.watch
        with watch.keeping():  # of the answer that there is
            found, steps = fall_back(problem, P, b, criterion, _SHARPER * self.tol, watch, left)
            search.steps += steps
        found = admissible(problem, P, found)
        ending, gradient = self._judge(problem, found, search)
        before = criterion.measure(problem, b, F) if np.isfinite(F).all() else np.inf
        if ending.ok or criterion.measure(problem, found, gradient) < before:
            return found, ending, gradient
        return b, search.stopped or status, F
