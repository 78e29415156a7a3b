"""From a point inside the box to a vertex-like answer: bounds assigned, free variables solved.

An interior point method ends a little inside every bound. Here each row is told to be at a bound,
at zero, on a curved piece, or free; the free ones are then solved for exactly, all others
being what they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.solvers.linear_margin.barrier import BarrierAnswer, RowBlock
from mercer.solvers.linear_margin.saddle import Saddle
from mercer.solvers.linear_margin.screening import FeatureProgramme, Piece

_ROUNDS = 20
_NARROW = 128  # unknowns up to which a round costs next to nothing
_MORE_ROUNDS = 200
_REPEATS = 12  # of a solution with what is left over
_AT_CORNER = 1e-8  # of the largest residual
_SHORTEST = 1e-6  # step along a direction that leads to other pieces
_CANCELLED = 1e-8  # of what a row does to its own residual


@dataclass(frozen=True, eq=False)
class Vertex:
    """An answer with bounds assigned exactly.

    Attributes
    ----------
    b : (n,) array
        All variables.
    v : (m,) array
        Weights and offsets.
    """

    b: Array
    v: Array


def crossover(
    P: FeatureProgramme,
    part: RowBlock,
    near: Array,
    piece: Piece,
    answer: BarrierAnswer,
    residual_tol: float,
) -> Vertex:
    """Assign the bounds of the rows `near`, keep the pieces of all others.

    Parameters
    ----------
    P : Programme
        All rows.
    part : Part
        What was solved.
    near : (m,) int array
        Its rows.
    piece : Piece
        Where all others stand.
    answer : BarrierAnswer
        Where the solver ended.
    told : float
        A residual that the solver can tell from none.
    """
    local = FeatureProgramme(
        part.rows, part.linear, part.lower, part.upper, part.shift, part.epsilon, P.totals
    )
    v, inside = answer.v, np.clip(answer.b, part.lower, part.upper)
    active_set = _ActiveSet(local, part, v, inside, residual_tol)
    for _ in range(_ROUNDS if len(v) > _NARROW else _MORE_ROUNDS):
        active_set.solve()
        if active_set.least <= active_set.enough or not active_set.exchange():
            break
    return assembled(P, near, piece, *active_set.best)


class _ActiveSet:
    """Which rows are free, changed one at a time until all are where their residuals put them."""

    def __init__(
        self, local: FeatureProgramme, part: RowBlock, v: Array, inside: Array, residual_tol: float
    ) -> None:
        self.local, self.part, self.v = local, part, v
        t = local.residuals(v)
        self.at = local.duals_at(t)
        self.residual_size = _residual_size(part, t, inside)
        rounding = 4 * np.finfo(float).eps * part.rows.length() ** 2 * float(np.abs(inside).sum())
        self.enough = max(1e-12 * self.residual_size, rounding)
        self.width = _widths(part, inside, self.residual_size)
        self.bottom, self.top = _room(part, inside)
        resolution = min(self.residual_size, np.sqrt(residual_tol * self.residual_size))
        with np.errstate(invalid="ignore"):
            distance = self.at.distance_to_corner / resolution
            undecided = np.abs(inside - self.at.b) / self.width > distance
        self.free = undecided & (part.shift == 0) & (part.lower < part.upper)
        b = np.where(self.free, inside, self.at.b)
        self.b = np.where(np.isfinite(b), b, inside)
        self.best, self.least = (v, self.b), _error(local, part, v, self.b, self.free)
        error = _error(local, part, v, inside, part.lower < part.upper)
        if error < self.least:
            self.best, self.least = (v, inside), error

    def solve(self) -> None:
        """Solve for the free rows, the others being where they are."""
        before = self.v
        solved, curved = _solve_free(self.local, self.part, before, self.b, self.free)
        self.v, b = solved.v, solved.b
        self.excess = np.where(
            self.free, np.maximum(self.bottom - b, b - self.top) / self.width, -np.inf
        )
        b = np.where(self.free, np.clip(b, self.bottom, self.top), b)
        self.at = self.local.duals_at(self.local.residuals(self.v))
        bent = (self.part.shift > 0) & ~self.free
        left = bent & ~(curved & self.at.curved)
        self.turned = bool((bent & (curved != self.at.curved)).any())
        if self.turned and not self.free.any():
            self.v = self._shortened(before, self.v)
            self.at = self.local.duals_at(self.local.residuals(self.v))
            left, self.turned = bent, bool((self.v != before).any())
        self.b = np.where(left, self.at.b, b)
        error = _error(self.local, self.part, self.v, self.b, self.free)
        if error < self.least:
            self.best, self.least = (self.v, self.b), error

    def _shortened(self, v: Array, aim: Array) -> Array:
        """Go from v towards the aim for as long as the primal objective falls."""
        value, step = self._value(v), 1.0
        while step > _SHORTEST:
            if self._value(v + step * (aim - v)) < value:
                return v + step * (aim - v)
            step *= 0.25
        return v

    def _value(self, v: Array) -> float:
        part, t = self.part, self.local.residuals(v)
        b = self.local.duals_at(t).b
        loss = t * b - part.epsilon * np.abs(b) - 0.5 * part.shift * b * b
        return float(0.5 * v @ part.matrix @ v - part.pulled @ v + loss.sum())

    def exchange(self) -> bool:
        """Let one row be free, or bound; one at a time: one too many makes others leave too."""
        at, free, b = self.at, self.free, self.b
        if self.turned:
            return True  # rows went to another piece: the next step knows
        if self.excess.max(initial=0.0) > 0:
            free[int(np.argmax(self.excess))] = False
            return True
        wrong = np.where(~free & ~at.curved & (at.b != b), at.distance_to_corner, 0.0)
        # rows that depend on other free ones do not reach their corner
        off_corner = np.where(free & np.isfinite(at.b), at.distance_to_corner, 0.0)
        if off_corner.max(initial=0.0) > max(1e-9 * self.residual_size, wrong.max(initial=0.0)):
            k = int(np.argmax(off_corner))
            self.b = b.copy()
            free[k], self.b[k] = False, at.b[k]
            return True
        if wrong.any():
            free[int(np.argmax(wrong))] = True
            return True
        return False


def _residual_size(part: RowBlock, t: Array, b: Array) -> float:
    """Return the size of residuals; where all vanish, what rounding leaves of those that cancel."""
    rounding = _CANCELLED * part.rows.length() ** 2 * float(np.abs(b).sum())
    sizes = np.abs(part.linear).max(initial=0.0), np.abs(t).max(initial=0.0), rounding
    return float(max(sizes)) or 1.0


def _error(local: FeatureProgramme, part: RowBlock, v: Array, b: Array, free: Array) -> float:
    """Return the largest residual wrong for where its row is, or that v and b disagree by."""
    at = local.duals_at(local.residuals(v))
    off = np.where(
        free, at.distance_to_corner, np.where((at.b != b) & ~at.curved, at.distance_to_corner, 0.0)
    )
    off[part.lower == part.upper] = 0.0
    unbalanced = part.matrix @ v - part.pulled - part.rows.rmatvec(b)
    weights = unbalanced[: len(v) - part.rows.offsets]
    return max(float(off.max(initial=0.0)), part.rows.length() * float(np.linalg.norm(weights)))


def assembled(P: FeatureProgramme, near: Array, piece: Piece, v: Array, b: Array) -> Vertex:
    """Put the rows `near` and all others together; where these are all there are, repair sums."""
    every = piece.b.copy()
    if len(near) < len(every):
        moved = P.duals_at(P.residuals(v)).b if piece.curved.any() else every
        every = np.where(piece.curved, moved, every)
    every[near] = b
    return Vertex(with_sums(P, every) if P.outside is None else every, v)


def with_sums(P: FeatureProgramme, b: Array) -> Array:
    """Take what rounding left of the sums from free variables, bounds being kept."""
    inside = np.flatnonzero((b > P.lower) & (b < P.upper))
    room = np.minimum(b[inside] - P.lower[inside], P.upper[inside] - b[inside])
    room = np.where(np.isfinite(room), room, np.abs(b[inside]))
    room = np.where(P.epsilon[inside] > 0, np.minimum(room, np.abs(b[inside])), room)
    for g, total in enumerate(P.totals):
        of_group = P.rows.group[inside] == g
        m, share = inside[of_group], room[of_group]
        every = len(P.totals) == 1 and P.rows.group.min(initial=0) == 0
        for _ in range(3):
            missing = float(total - (b.sum() if every else b[P.rows.group == g].sum()))
            if not missing or not share.sum() > abs(missing):
                break
            b[m] += missing * (share / share.sum())
    return b


def _room(part: RowBlock, b: Array) -> tuple[Array, Array]:
    """Return the box of each row, cut at zero on the side that b is on."""
    split = (part.epsilon > 0) & (part.lower < 0) & (part.upper > 0)
    bottom = np.where(split & (b > 0), 0.0, part.lower)
    return bottom, np.where(split & (b <= 0), 0.0, part.upper)


def _widths(part: RowBlock, b: Array, residual_size: float) -> Array:
    width = part.upper - part.lower
    cancelled = _CANCELLED * residual_size / part.rows.length() ** 2
    coef_size = max(float(np.abs(b).max(initial=0.0)), cancelled)
    return np.maximum(np.where(np.isfinite(width), width, coef_size), np.finfo(float).tiny)


def _solve_free(
    local: FeatureProgramme, part: RowBlock, v: Array, b: Array, free: Array
) -> tuple[Vertex, Array]:
    """Solve M v = g + A'b with t at its corner on free rows; repeated against rounding."""
    which, t = np.flatnonzero(free), local.residuals(v)
    at = local.duals_at(t)
    curved = at.curved & ~free
    inverse = np.where(curved, 1.0 / np.where(curved, part.shift, 1.0), 0.0)
    # rows at the corner resist as soon as it is passed: without them steps overshoot
    stiff = curved | (
        ~free & (part.shift > 0) & (at.distance_to_corner <= _AT_CORNER * np.abs(t).max(initial=0))
    )
    resist = np.where(stiff, 1.0 / np.where(stiff, part.shift, 1.0), 0.0)
    matrix = part.matrix + part.rows.gram(resist) if stiff.any() else part.matrix
    if part.rows.offsets:
        fixed = part.rows.sums((free | stiff).astype(np.float64)) == 0  # nothing moves them
        fixed &= part.matrix.diagonal()[-part.rows.offsets :] == 0
        matrix = matrix + np.diag(np.append(np.zeros(len(v) - len(fixed)), fixed))
    rows, corner = part.rows.take(which).dense(), _corners(part, which, t)
    saddle = Saddle(matrix, rows)
    b = np.where(curved, at.b, b)
    least = np.inf
    for _ in range(_REPEATS):
        off = corner - t[which]
        unbalanced = part.matrix @ v - part.pulled - part.rows.rmatvec(b)
        left = float(np.linalg.norm(unbalanced) + np.linalg.norm(off))
        if not left < 0.5 * least:
            break
        least = left
        dv, dx = saddle.solve(-unbalanced, -off)
        v, t = v + dv, local.residuals(v + dv)
        b = b - inverse * part.rows.matvec(dv)  # not from t, whose rounding the inverse multiplies
        b[which] += dx
    return Vertex(b, v), curved


def _corners(part: RowBlock, which: Array, t: Array) -> Array:
    """Return the residual at which each free row rests: epsilon, signed by the side it is on."""
    epsilon = part.epsilon[which]
    split = (part.lower[which] < 0) & (part.upper[which] > 0)
    one_sided = np.where(part.upper[which] > 0, epsilon, -epsilon)
    return np.where(split, np.where(t[which] > 0, epsilon, -epsilon), one_sided)
