"""Box programmes whose Gram is factored, K = F F' + diag(shift), in the space of the features.

Samples of growing size say where the answer lies; then only rows near a corner of their loss are
given to the interior point method, all others being known (`screening`). Whether they were known
rightly is checked on every row, and the rows that were not join the next round, so the answer is
that of all rows. Cost: a few passes over F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems import BoxQP, Dual
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.linear_margin.barrier import BarrierAnswer, Goal, RowBlock, barrier
from mercer.solvers.linear_margin.crossover import Vertex, assembled, crossover
from mercer.solvers.linear_margin.fallback import fall_back
from mercer.solvers.linear_margin.linear_answer import (
    admissible,
    exact_gradient,
    fallen_short,
    linear_refusal,
    meets,
    rounding_of,
)
from mercer.solvers.linear_margin.screening import FeatureProgramme, Piece
from mercer.solvers.linear_margin.smoothing import SmoothPoint, can_round, descend_rounded
from mercer.solvers.margin.descent import VIOLATION, Criterion

_GROWTH = 4  # of one sample to the next
_SMALLEST_SAMPLE = 2000
_ROWS_PER_UNKNOWN = 20  # of the first sample
_SHARE = 0.5  # of the standard error of residuals: rounding that is narrow enough for a sample
_WIDE = 4.0  # times the size of residuals: the first rounding, which every row feels
_NARROWER = 0.25  # the rounding, from one descent to the next
_BAND = 2.0  # times the rounding: within that a row counts as near its corner
_WARM = 0.7  # of the band times the size of b: where the central path is joined
_WIDEN = 1.0  # the band, when it was too narrow: rows that went beyond it join by themselves
_LESS = 0.5  # the band, when it was wide enough but for some rows
_ROUNDS = 12  # of screening, before all rows are taken
_FINE = 1e-15  # of the objective: gap at which bounds are decided
_CLEARLY = 0.1  # of the last tolerance of residuals: so much finer is worth another search
_RESIDUAL_TOL = 1e-3  # of the violation allowed: what a residual is compared with to decide a bound
_AGAIN = (1e3, 1e6)  # times the size of residuals: where a run that failed is begun again
_SHARPER = 0.9  # of the tolerance, for descents that are judged by another sum
_FEW_OF = 20  # one of so many rows near a corner is few enough to be exact


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
        programme = FeatureProgramme.of(problem)
        b = problem.feasible_near(np.zeros(len(problem.linear)))
        F = problem.linear
        if problem.scale is None and self.criterion is VIOLATION:
            F = exact_gradient(problem, programme, b)
        residual_tol = _RESIDUAL_TOL * self.criterion.first(problem, F, self.tol)
        search = _InteriorPointRun(programme, watch, residual_tol, self.max_iter)
        if watch.tick(0, np.inf):
            b, status, F = self._found(problem, b, search)
        else:
            b, status, F = self._searched(problem, search)
        hopeless = self.criterion is VIOLATION and rounding_of(
            programme, b
        ) > self.tol * problem.unit(b, F)
        if status in (Status.INACCURATE, Status.NOT_FINITE) and not hopeless:
            b, status, F = self._after_fallback(problem, b, status, F, search)
        status = fallen_short(status, problem, b, F)
        return report(self, Dual(b, problem.offsets(b, F)), status, search.steps, watch)

    def _searched(self, problem: BoxQP, search: _InteriorPointRun) -> tuple[Array, Status, Array]:
        """Search; where the answer itself says what is allowed, once more with that in mind."""
        start = problem.feasible_near(np.zeros(len(problem.linear)))
        while True:
            b = start  # stays so if time runs out
            with np.errstate(all="ignore"), search.watch.keeping():  # judged below, on all rows
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
        self, problem: BoxQP, b: Array, search: _InteriorPointRun
    ) -> tuple[Array, Status, Array]:
        b = admissible(problem, search.programme, b)
        return b, *self._judge(problem, b, search)

    def _judge(self, problem: BoxQP, b: Array, search: _InteriorPointRun) -> tuple[Status, Array]:
        F = exact_gradient(problem, search.programme, b)
        if search.unbounded:
            return Status.INFEASIBLE, F
        met = meets(self.criterion, problem, search.programme, b, F, self.tol)
        return met if met.ok or met is Status.NOT_FINITE else search.stopped or met, F

    def _after_fallback(
        self, problem: BoxQP, b: Array, status: Status, F: Array, search: _InteriorPointRun
    ) -> tuple[Array, Status, Array]:
        """Let descents go on; keep what is better."""
        P, criterion = search.programme, self.criterion
        left = None if self.max_iter is None else self.max_iter - search.steps
        found, steps = fall_back(problem, P, b, criterion, _SHARPER * self.tol, search.watch, left)
        search.steps += steps
        found = admissible(problem, P, found)
        ending, gradient = self._judge(problem, found, search)
        before = criterion.measure(problem, b, F) if np.isfinite(F).all() else np.inf
        if ending.ok or criterion.measure(problem, found, gradient) < before:
            return found, ending, gradient
        return b, search.stopped or status, F


@dataclass
class _InteriorPointRun:
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
        v = np.zeros(P.rows.width)
        sizes = self._sizes() if can_round(P) else []
        if not sizes:
            return self._all(v, P.residuals(v), np.inf)
        width, lottery = np.inf, _StratifiedSample.of(P)
        for size in sizes:
            part = P.sample(*lottery.draw(size))
            at = SmoothPoint(v, part.residuals(v))
            unit = self._size(part, at.t)
            at, width = self._narrowed(
                part, at, min(width, _WIDE * unit), _SHARE * self._error(size) * unit
            )
            v = at.v
            if self.stopped or not at.ok:
                break
        at = SmoothPoint(v, P.residuals(v))
        if not self.stopped:
            at, width = self._narrowed(P, at, width, 0.0)
        if not at.ok:  # digits that features lack misled the descent: begin anew, on all rows
            v = np.zeros(P.rows.width)
            return self._all(v, P.residuals(v), np.inf)
        if self.stopped:
            return Vertex(P.duals_at(at.t).b, at.v)
        return self._exact(at.v, at.t, _BAND * width)

    def _narrowed(
        self, P: FeatureProgramme, at: SmoothPoint, width: float, end: float
    ) -> tuple[SmoothPoint, float]:
        """Round corners over ever less, until that is `end`, or so little that few rows feel it.

        Of few rows none may be left that feels it: then the last rounding has to do.
        """
        most = 0 if end else max(len(at.t) // _FEW_OF, _ROWS_PER_UNKNOWN * P.rows.width)
        descended = False
        while True:
            found = descend_rounded(P, at, width, self._tick)
            if descended and not found.ok:
                return at, width / _NARROWER
            descended = True
            near = np.count_nonzero(P.duals_at(found.t).distance_to_corner <= _BAND * width)
            if not found.ok or self.stopped or width <= end or near <= most:
                return found, width
            at, width = found, _NARROWER * width

    def _sizes(self) -> list[int]:
        n, width = len(self.programme.linear), self.programme.rows.width
        sizes, size = [], max(_SMALLEST_SAMPLE, _ROWS_PER_UNKNOWN * width)
        while 4 * size <= n:
            sizes.append(size)
            size *= _GROWTH
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
        goal = Goal(_FINE, _absolute_gap(part, self.residual_tol))
        answer = barrier(part, v, band * coef_size, coef_size, goal, self._tick)
        self.unbounded = answer.unbounded
        return answer

    def _exact(self, v: Array, t: Array, band: float) -> Vertex:
        """Screen and solve until every row is where it was thought to be."""
        P = self.programme
        piece, wrong = P.duals_at(t), np.zeros(0, dtype=np.int64)
        for done in range(_ROUNDS + 1):
            value = P.value(v, t, piece.b)
            near = np.union1d(np.flatnonzero(piece.distance_to_corner <= band), wrong)
            if done == _ROUNDS or self._too_many(near, piece, band):
                return self._all(v, t, band)
            part = P.near(near, piece)
            answer = self._barrier(part, v, _WARM * band)
            if self.stopped or self.unbounded:
                return assembled(P, near, piece, v, answer.b)
            vertex = crossover(P, part, near, piece, answer, self.residual_tol)
            t_new = P.residuals(vertex.v)
            wrong, depth = _crossed(piece, near, t, t_new)
            if depth <= 1e-9 * (1.0 + self.residual_size):
                return vertex
            v, t, piece, halved = self._descend(v, t, vertex.v, t_new, value)
            band *= _WIDEN if halved else _LESS
        raise AssertionError("the last round takes all rows")

    def _too_many(self, near: Array, piece: Piece, band: float) -> bool:
        """Return whether screening pays no more, or is not possible."""
        return 2 * len(near) > len(piece.b) or bool(
            np.isinf(piece.b[piece.distance_to_corner > band]).any()
        )

    def _all(self, v: Array, t: Array, band: float) -> Vertex:
        P = self.programme
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

    def _descend(
        self, v: Array, t: Array, v_new: Array, t_new: Array, value: float
    ) -> tuple[Array, Array, Piece, bool]:
        """Go to the new point, or as far towards it as the objective falls."""
        P, step = self.programme, 1.0
        while step > 1e-6:
            at, residual = v + step * (v_new - v), t + step * (t_new - t)
            piece = P.duals_at(residual)
            if not P.value(at, residual, piece.b) >= value or not np.isfinite(value):
                return at, residual, piece, step < 1.0
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


@dataclass(frozen=True, eq=False)
class _StratifiedSample:
    """Rows in random order, each kind by itself: samples of growing size contain one another."""

    kinds: tuple[Array, ...]

    @classmethod
    def of(cls, P: FeatureProgramme) -> _StratifiedSample:
        with np.errstate(invalid="ignore"):
            side = np.nan_to_num(np.maximum(P.upper, 0.0) + np.minimum(P.lower, 0.0))
        key = np.sign(side).astype(np.int8) + 3 * P.rows.group
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
