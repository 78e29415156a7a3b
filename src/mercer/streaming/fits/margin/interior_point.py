"""Support vector machines over blocks: an interior point method whose state lives with the blocks.

The programme: min |w|^2 / 2 + C'xi, z = y f - 1 + xi, z and xi not negative. Its conditions, with
multipliers a of z and C - a of xi:

    w = sum_i a_i y_i phi_i,   sum_i a_i y_i = 0,   a z = 0,   (C - a) xi = 0.

Every row keeps a, xi, z and its score; an iteration adds up one matrix of the size of the features,
sum_i D_i phi_i phi_i', and a few vectors. Steps are Mehrotra's: a predictor, then a corrector. The
central path is that of products in proportion to C_i, times the share of the class that balances
it, so that rows of any weight are as near to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.blocks import Block, Kept, Least
from mercer.problems.blocks import BlockMargin, feature_pieces
from mercer.problems.blocks.questions import PartRows
from mercer.solvers import Status, Watch
from mercer.streaming.fits.margin.hinge_rows import balanced_costs, class_sums, middle_of_boxes

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
