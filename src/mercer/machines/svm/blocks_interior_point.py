"""Interior point method for the hinge loss over blocks, and its smoothed start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.machines.blocks.problem import BlockMargin, PartRows, feature_pieces
from mercer.rows.blocks import Block, Kept, Least
from mercer.solvers.base import Status, Watch

# --- hinge rows ----------------------------------------------------------------------------------
#
# What the rows of a block say of a hinge loss: its rounded form, and the rows near its corner.
#
# The loss of a row is C max(0, r), r = 1 - y (w'(phi - centre) + b). Rounded over a width d, its
# slope a(r) rises from 0 to C while r passes from -d/2 to d/2.


@dataclass(frozen=True, eq=False)
class SeparatingPlane:
    """A function w'(phi - centre) + b of features phi."""

    features: Any
    centre: Array
    w: Array
    b: float

    def moved(self, step: Array, length: float) -> SeparatingPlane:
        """Return the plane after a step of (w, b)."""
        w, b = self.w + length * step[:-1], self.b + length * float(step[-1])
        return SeparatingPlane(self.features, self.centre, w, b)

    @property
    def offset(self) -> float:
        """The bias where nothing is taken off the features."""
        return self.b - float(self.w @ self.centre)

    @property
    def unknowns(self) -> Array:
        """Weights and bias in one vector."""
        return np.append(self.w, self.b)


@dataclass(frozen=True, eq=False)
class NearRows:
    """Rows of a block near the corner, and what all its other rows add up to.

    Attributes
    ----------
    first : int
        Number of the first row of the block.
    places : (k,) int array
        Where near rows are among those of the block that are in the part.
    F : (k, D) array
        Their features, less the centre.
    y, cost : (k,) arrays
        Their signs and C_i.
    pull : (D + 1,) array
        Sum of C_i y_i (phi_i - centre, 1) over others with r > 0.
    level : float
        Sum of their C_i.
    slack : float
        Sum of C_i max(0, r_i) over all rows.
    """

    first: int
    places: Array
    F: Array
    y: Array
    cost: Array
    pull: Array
    level: float
    slack: float


def class_sums(block: Block, part: PartRows) -> tuple[float, float, int, int]:
    """Return what the slack of both classes costs, and how many rows they have."""
    _, y, cost = part.of(block)
    up = y > 0
    return float(cost[up].sum()), float(cost[~up].sum()), int(up.sum()), int((~up).sum())


def feature_sums(block: Block, part: PartRows, features: Any) -> tuple[int, Array]:
    """Count the rows, and return the sum of their features."""
    block, _, _ = part.of(block)
    sums = np.zeros(features.dimension)
    for _, F in feature_pieces(block, features):
        sums += F.sum(axis=0)
    return len(block), sums


def sampled(
    block: Block, part: PartRows, shares: Array, features: Any
) -> tuple[Array, Array, Array]:
    """Draw a share of each class: features, signs, and C_i of all rows that one stands for."""
    block, y, cost = part.of(block)
    share = np.where(y > 0, shares[0], shares[1])
    drawn = np.random.default_rng([0, block.first]).random(len(y)) < share
    chosen = np.flatnonzero(drawn)
    F = np.empty((len(chosen), features.dimension))
    for rows, piece in feature_pieces(block.only(chosen), features):
        F[rows] = piece
    return F, y[chosen], cost[chosen] / share[chosen]


def balanced_costs(y: Array, cost: Array, shares: Array) -> Array:
    """Return C_i times the share of its class, by which both classes together cost the same."""
    return np.asarray(cost * np.where(y > 0, shares[0], shares[1]))


def middle_of_boxes(block: Block, part: PartRows, shares: Array) -> Array:
    """Begin with multipliers in the middle of the box, balanced between the classes."""
    _, y, cost = part.of(block)
    return 0.5 * balanced_costs(y, cost, shares)


def rounded_sums(
    block: Block, kept: Array, part: PartRows, at: SeparatingPlane, width: float, band: float
) -> tuple[Array, tuple[Any, ...]]:
    """Keep the slopes of the rounded losses; return their sum and its derivatives in (w, b).

    Returns
    -------
    tuple
        Slopes, and: the sum of losses, minus its gradient, second derivatives, a bound on their
        diagonal for steps of any length, the sum of C_i over rows that rounding concerns, rows
        within the band.
    """
    block, y, cost = part.of(block)
    D = len(at.w)
    value = bent_cost = 0.0
    near, pull, H = 0, np.zeros(D + 1), np.zeros((D + 1, D + 1))
    bound = np.zeros(D + 1)
    slopes = np.empty(len(block))
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        sign, C = y[rows], cost[rows]
        r = 1.0 - sign * (F @ at.w + at.b)
        risen = np.clip(r / width + 0.5, 0.0, 1.0)
        bent = np.flatnonzero((risen > 0) & (risen < 1))
        loss = np.where(risen < 1, 0.5 * width * risen**2, r)
        a = slopes[rows] = C * risen
        value += float(C @ loss)
        near += int(np.count_nonzero(np.abs(r) <= band))
        pull[:D] += (a * sign) @ F
        pull[D] += float(a @ sign)
        # a parabola of this bend that touches the loss at r is nowhere below it
        bend = 0.5 * C / np.maximum(np.abs(r), 0.5 * width)
        bound[:D] += np.einsum("i,ij,ij->j", bend, F, F)
        bound[D] += float(bend.sum())
        bent_cost += float(C[bent].sum())
        G = np.sqrt(C[bent] / width)[:, None] * np.column_stack([F[bent], np.ones(len(bent))])
        H += G.T @ G
    return slopes, (value, pull, H, bound, bent_cost, near)


def rows_near(
    block: Block, part: PartRows, at: SeparatingPlane, others: Array, band: float, most: int
) -> NearRows | None:
    """Return the rows near their corner; None where they are more than `most`.

    Parameters
    ----------
    block : Block
        Rows.
    part : PartRows
        Which of them there are, and their signs.
    at : Plane
        Where r is measured.
    others : (D + 1, p) array
        (w, b) of other planes: rows that are on the other side of a corner there are near, too.
    band : float
        Of r: rows within it are near.
    most : int
        Rows that there is room for.
    """
    block, y, cost = part.of(block)
    D = len(at.w)
    pull, level, slack = np.zeros(D + 1), 0.0, 0.0
    places: list[Array] = []
    found = [np.empty((0, D))]
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        sign, C = y[rows], cost[rows]
        r = 1.0 - sign * (F @ at.w + at.b)
        close = np.abs(r) <= band
        if others.shape[1]:
            there = 1.0 - sign[:, None] * (F @ others[:-1] + others[-1])
            close |= ((there > 0) != (r > 0)[:, None]).any(axis=1)
        slack += float(C @ np.maximum(r, 0.0))
        a = np.where(~close & (r > 0), C, 0.0)
        pull[:D] += (a * sign) @ F
        pull[D] += float(a @ sign)
        level += float(a.sum())
        here = np.flatnonzero(close)
        places.append(here + rows.start)
        found.append(F[here])
        if sum(map(len, places)) > most:
            return None
    where = np.concatenate([np.empty(0, dtype=np.int64), *places])
    return NearRows(
        block.first, where, np.concatenate(found), y[where], cost[where], pull, level, slack
    )


@dataclass(frozen=True, eq=False)
class NearBlocks:
    """Rows near their corner of several blocks, in their order, as long as there is room; they add.

    So that sums of them never hold more than the room, and a block beside it.

    Attributes
    ----------
    parts : tuple of NearRows or None
        One for each block; None where they are too many.
    room : int
        Rows that there is room for, of all blocks together.
    """

    parts: tuple[NearRows, ...] | None
    room: int

    def __add__(self, other: NearBlocks) -> NearBlocks:
        if self.parts is None or other.parts is None:
            return NearBlocks(None, self.room)
        parts = (*self.parts, *other.parts)
        too_many = sum(len(one.y) for one in parts) > self.room
        return NearBlocks(None if too_many else parts, self.room)


def near_blocks(
    block: Block,
    part: PartRows,
    at: SeparatingPlane,
    others: Array,
    band: float,
    most: int,
    room: int,
) -> NearBlocks:
    """Return the rows of a block near their corner, to be added up; see `rows_near`."""
    found = rows_near(block, part, at, others, band, most)
    return NearBlocks(None if found is None else (found,), room)


def slack_of(block: Block, part: PartRows, at: SeparatingPlane) -> float:
    """Return the sum of C_i max(0, r_i)."""
    block, y, cost = part.of(block)
    slack = 0.0
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        slack += float(cost[rows] @ np.maximum(1.0 - y[rows] * (F @ at.w + at.b), 0.0))
    return slack


def decided(
    block: Block,
    kept: Array,
    part: PartRows,
    at: SeparatingPlane,
    near: dict[int, tuple[Array, Array]],
) -> tuple[Array, int]:
    """Keep multipliers: those that were found for the rows near a corner, else a bound."""
    block, y, cost = part.of(block)
    a = np.empty(len(block))
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        r = 1.0 - y[rows] * (F @ at.w + at.b)
        a[rows] = np.where(r > 0, cost[rows], 0.0)
    if block.first in near:
        places, found = near[block.first]
        a[places] = np.clip(found, 0.0, cost[places])
    return a, 0


def total_slack(near: list[NearRows]) -> float:
    """Return the sum of C_i max(0, r_i) over all rows."""
    return float(sum(one.slack for one in near))


def multipliers_of(near: list[NearRows], b: Array) -> dict[int, tuple[Array, Array]]:
    """Return places and multipliers of near rows, by the first row of their block."""
    parts = np.split(b, np.cumsum([len(one.y) for one in near])[:-1])
    return {
        one.first: (one.places, part * one.y)
        for one, part in zip(near, parts, strict=True)
        if len(part)
    }


# --- interior point ------------------------------------------------------------------------------
#
# Support vector machines over blocks: an interior point method whose state lives with the blocks.
#
# The programme: min |w|^2 / 2 + C'xi, z = y f - 1 + xi, z and xi not negative. Its conditions,
# with multipliers a of z and C - a of xi:
#
#     w = sum_i a_i y_i phi_i,   sum_i a_i y_i = 0,   a z = 0,   (C - a) xi = 0.
#
# Every row keeps a, xi, z and its score; an iteration adds up one matrix of the size of the
# features, sum_i D_i phi_i phi_i', and a few vectors. Steps are Mehrotra's: a predictor, then a
# corrector. The central path is that of products in proportion to C_i, times the share of the
# class that balances it, so that rows of any weight are as near to it.

_TO_BOUND = 0.995  # of the way to the nearest bound
_STALLED = 1e-8  # steps this short gain nothing
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RowState:
    """Where the rows of a block stand.

    Attributes
    ----------
    a, xi, z, u : (n,) arrays
        Multiplier, slack, distance from the margin, and y f.
    da, dxi, dz, du : (n,) arrays
        The step that is about to be made.
    """

    a: Array
    xi: Array
    z: Array
    u: Array
    da: Array
    dxi: Array
    dz: Array
    du: Array


@dataclass(frozen=True, eq=False)
class Ended:
    """How a part ended: weights, bias, multipliers with the blocks, gap, steps and status."""

    w: Array
    b: float
    multipliers: Kept
    gap: float
    steps: int
    status: Status


def solve_by_interior_point(
    problem: BlockMargin, number: int, tol: float, most: int, watch: Watch
) -> Ended:
    """Solve one two-class question to a relative duality gap."""
    rows, part = problem.rows, problem.part(number)
    blocks, phi = rows.blocks, rows.features
    up, down, _, _ = blocks.total(class_sums, part)
    shares = np.array([min(1.0, down / up), min(1.0, up / down)])
    _, w = blocks.step(blocks.start(middle_of_boxes, part, shares), pulled, phi, part)
    state, _ = blocks.step(blocks.start(middle_of_boxes, part, shares), placed, phi, part, w)
    b, length, steps, status, gap = 0.0, 0.0, 0, Status.ITERATION_LIMIT, np.inf
    best: tuple[Array, float, Kept, float] | None = None
    with watch.keeping(lambda: best is not None):
        while True:
            state, sums = blocks.step(state, moved_sums, phi, part, length, w, b, shares)
            system = Conditions.of(sums, w, b)
            gap = system.relative_gap
            if best is None or gap < best[3]:
                best = (w, b, state, gap)
            if watch.tick(steps, gap) or gap <= tol or steps >= most:
                status = watch.stopped or (Status.SOLVED if gap <= tol else status)
                break
            dw, db = system.solve(system.right(0.0, None))
            state, sums = blocks.step(state, predicted, phi, part, dw, db, shares)
            sigma = system.centring(sums)
            dw, db = system.solve(system.right(sigma, sums))
            target = sigma * system.mean
            state, found = blocks.step(state, corrected, phi, part, dw, db, target, shares)
            length = min(1.0, _TO_BOUND * found.value)
            steps += 1
            if not length > _STALLED:
                status = Status.INACCURATE
                break
            w, b = w + length * dw, b + length * db
    assert best is not None
    w, b, state, gap = best
    status = watch.stopped or status
    multipliers, _ = blocks.step(state, only_multipliers)
    return Ended(w, b, multipliers, gap, steps, status)


# --- functions of blocks --------------------------------------------------------------------------


def pulled(block: Block, a: Array, features: Any, part: PartRows) -> tuple[Array, Array]:
    """Return the function that multipliers make, sum_i a_i y_i phi_i."""
    block, y, _ = part.of(block)
    w = np.zeros(features.dimension)
    for rows, F in feature_pieces(block, features):
        w += (a * y)[rows] @ F
    return a, w


def placed(block: Block, a: Array, features: Any, part: PartRows, w: Array) -> tuple[RowState, int]:
    """Begin with slack that makes every condition but complementarity hold."""
    block, y, _ = part.of(block)
    u = np.empty(len(block))
    for rows, F in feature_pieces(block, features):
        u[rows] = y[rows] * (F @ w)
    room = np.maximum(1.0, 0.1 * np.abs(1.0 - u))
    xi, z = np.maximum(1.0 - u, 0.0) + room, np.maximum(u - 1.0, 0.0) + room
    none = np.zeros(len(block))
    return RowState(a, xi, z, u, none, none, none, none), 0


def moved_sums(
    block: Block,
    at: RowState,
    features: Any,
    part: PartRows,
    length: float,
    w: Array,
    b: float,
    shares: Array,
) -> tuple[RowState, tuple[Any, ...]]:
    """Make the step, which led to w and b, and return the sums of the next conditions."""
    block, y, cost = part.of(block)
    if length > 0:
        a, xi = at.a + length * at.da, at.xi + length * at.dxi
        # scores anew: added up over steps from weights of a large C, their rounding stays
        u = _scores(block, y, features, w, b)
        at = replace(at, a=a, xi=xi, z=at.z + length * at.dz, u=u)
    D, q = _diagonal(at, cost), _affine(at, cost)
    size = balanced_costs(y, cost, shares)
    m = features.dimension
    A, line, right, v = np.zeros((m, m)), np.zeros(m), np.zeros(m), np.zeros(m)
    for rows, F in feature_pieces(block, features):
        line += D[rows] @ F
        right += (y * D * q)[rows] @ F
        v += (y * at.a)[rows] @ F
        np.multiply(F, np.sqrt(D[rows])[:, None], out=F)
        A += F.T @ F  # of one array with itself: half the work
    products = float(at.a @ at.z + (cost - at.a) @ at.xi)
    slack = float(cost @ np.maximum(1.0 - at.u, 0.0))
    sums = (
        A, line, right, v, float(D.sum()), float((y * D) @ q), float(y @ at.a),
        float(at.a.sum()), slack, products, 2.0 * float(size.sum()),
    )  # fmt: skip
    return at, sums


def predicted(
    block: Block, at: RowState, features: Any, part: PartRows, dw: Array, db: float, shares: Array
) -> tuple[RowState, tuple[Any, ...]]:
    """Take the predictor's step as far as it goes, and return what it says of the corrector.

    Complementarity after a step t is a polynomial in t, so that its coefficients are added up.
    """
    block, y, cost = part.of(block)
    du = _scores(block, y, features, dw, db)
    D, room = _diagonal(at, cost), cost - at.a
    size = balanced_costs(y, cost, shares)
    c1, c2 = -at.a * at.z, -room * at.xi
    da, dxi, dz = _directions(at, D, room, _residual(at), du, c1, c2)
    # what the corrector's right-hand side has beside the affine one: for the mean and for products
    centre = size / at.a - size / room
    second = -da * dz / at.a - da * dxi / room
    m = features.dimension
    to_centre, to_second = np.zeros(m), np.zeros(m)
    for rows, F in feature_pieces(block, features):
        to_centre += (y * D * centre)[rows] @ F
        to_second += (y * D * second)[rows] @ F
    at = replace(at, da=da, dxi=dxi, dz=dz)
    sums = (
        to_centre, to_second, float((y * D) @ centre), float((y * D) @ second),
        float(at.a @ at.z + room @ at.xi),
        float(da @ at.z + at.a @ dz - da @ at.xi + room @ dxi),
        float(da @ dz - da @ dxi),
        Least(_longest(at, room, da, dxi, dz)),
    )  # fmt: skip
    return at, sums


def corrected(
    block: Block,
    at: RowState,
    features: Any,
    part: PartRows,
    dw: Array,
    db: float,
    target: float,
    shares: Array,
) -> tuple[RowState, Least]:
    """Hold the corrector's step, and return how far it can go."""
    block, y, cost = part.of(block)
    du = _scores(block, y, features, dw, db)
    D, room = _diagonal(at, cost), cost - at.a
    size = balanced_costs(y, cost, shares)
    c1 = target * size - at.a * at.z - at.da * at.dz
    c2 = target * size - room * at.xi + at.da * at.dxi
    da, dxi, dz = _directions(at, D, room, _residual(at), du, c1, c2)
    held = replace(at, da=da, dxi=dxi, dz=dz, du=du)
    return held, Least(_longest(at, room, da, dxi, dz))


def only_multipliers(block: Block, at: RowState) -> tuple[Array, int]:
    """Keep the multipliers alone."""
    return at.a, 0


def _scores(block: Block, y: Array, features: Any, dw: Array, db: float) -> Array:
    du = np.empty(len(block))
    for rows, F in feature_pieces(block, features):
        du[rows] = y[rows] * (F @ dw + db)
    return du


def _residual(at: RowState) -> Array:
    """Return what rounding has left of z = u - 1 + xi."""
    return np.asarray(at.u - 1.0 + at.xi - at.z)


def _diagonal(at: RowState, cost: Array) -> Array:
    return np.asarray(1.0 / (at.xi / (cost - at.a) + at.z / at.a))


def _affine(at: RowState, cost: Array) -> Array:
    """Return the right-hand side of the predictor: c1 = -a z, c2 = -(C - a) xi."""
    return np.asarray(-_residual(at) - at.z + at.xi)


def _directions(
    at: RowState, D: Array, room: Array, left: Array, du: Array, c1: Array, c2: Array
) -> tuple[Array, Array, Array]:
    q = -left - c2 / room + c1 / at.a
    da = D * (q - du)
    return da, (c2 + at.xi * da) / room, (c1 - at.z * da) / at.a


def _longest(at: RowState, room: Array, da: Array, dxi: Array, dz: Array) -> float:
    """Return how long a step may be until a number that must be positive is zero."""
    longest = np.inf
    for value, change in ((at.a, da), (room, -da), (at.xi, dxi), (at.z, dz)):
        falling = change < 0
        if falling.any():
            longest = min(longest, float((-value[falling] / change[falling]).min()))
    return longest


# --- the small system -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Conditions:
    """The equations of a step, after everything of single rows was eliminated.

    (I + sum D phi phi') dw + (sum D phi) db = r_w,  (sum D phi)'dw + (sum D) db = r_b.
    """

    factor: Any
    line: Array
    solved: Array
    pivot: float
    right_w: Array
    right_b: float
    mean: float
    relative_gap: float

    @classmethod
    def of(cls, sums: tuple[Any, ...], w: Array, b: float) -> Conditions:
        """Factor the matrix, and measure where the programme stands."""
        A, line, right, v, total, right_b, balance, a_sum, slack, products, total_cost = sums
        A.flat[:: len(A) + 1] += 1.0
        factor = _cholesky(A)
        solved = linalg.cho_solve(factor, line, check_finite=False)
        pivot = max(total - float(line @ solved), _EPS * total)
        primal = 0.5 * float(w @ w) + slack
        dual = a_sum - 0.5 * float(v @ v)
        gap = (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)
        # multipliers that do not balance bound nothing yet
        gap = max(gap, abs(balance) / max(a_sum, np.finfo(float).tiny))
        gap = gap if np.isfinite(gap) else np.inf
        return cls(
            factor, line, solved, pivot, right - (w - v), right_b + balance,
            products / max(total_cost, np.finfo(float).tiny), gap,
        )  # fmt: skip

    def right(self, sigma: float, sums: tuple[Any, ...] | None) -> tuple[Array, float]:
        """Return the right-hand side, with what the predictor says of the corrector."""
        if sums is None:
            return self.right_w, self.right_b
        target = sigma * self.mean
        return (
            self.right_w + target * sums[0] + sums[1],
            self.right_b + target * sums[2] + sums[3],
        )

    def solve(self, right: tuple[Array, float]) -> tuple[Array, float]:
        """Return the step of weights and bias."""
        found = linalg.cho_solve(self.factor, right[0], check_finite=False)
        db = (right[1] - float(self.line @ found)) / self.pivot
        return found - db * self.solved, db

    def centring(self, sums: tuple[Any, ...]) -> float:
        """Return how far back to the centre: little where the predictor went far (Mehrotra)."""
        t = min(1.0, sums[7].value)
        after = sums[4] + t * sums[5] + t * t * sums[6]
        return float(min(1.0, max(after / max(sums[4], np.finfo(float).tiny), 0.0) ** 3))


def _cholesky(A: Array) -> Any:
    sizes = np.abs(A.diagonal())
    for ridge in (0.0, 1e1, 1e3, 1e5):
        try:
            B = A.copy()
            B.flat[:: len(B) + 1] += ridge * _EPS * sizes
            return linalg.cho_factor(B, lower=True, check_finite=False, overwrite_a=True)
        except linalg.LinAlgError:
            continue
    return linalg.cho_factor(np.diag(sizes), lower=True)
