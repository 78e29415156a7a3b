"""The answer of a programme in the space of features, found from few of its rows at a time.

Samples of growing size say where the answer lies. From there on only rows near a corner of their
loss can change what they do; all others add up to a pull (`screening`). Those few are a programme
like the first, rounded over less, of which again only few rows are near a corner: the last of them,
a few for each unknown, go to the interior point method. On the way back every level is checked
on its own rows, and the rows that went beyond a corner join the next round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.card_rows import CardArray
from mercer.points import to_host
from mercer.solvers.base import Status, Watch
from mercer.solvers.linear_margin.barrier import BarrierAnswer, Goal, RowBlock, barrier
from mercer.solvers.linear_margin.crossover import Vertex, assembled, crossover
from mercer.solvers.linear_margin.screening import FeatureProgramme, Piece
from mercer.solvers.linear_margin.smoothing import SmoothPoint, can_round, descend_rounded
from mercer.solvers.linear_margin.stratified_sample import StratifiedSample, effective_rows

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
        goal = Goal(_FINE, _absolute_gap(part, self.residual_tol))
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
