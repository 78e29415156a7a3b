"""From a point inside the box to a vertex-like answer: bounds assigned, free variables solved.

An interior point method ends a little inside every bound. Here each row is told to be at a bound,
at its kink, on a curved piece, or free; the free ones are then solved for exactly, all others
being what they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.solvers.barrier import BarrierAnswer, Part, factor_spd
from mercer.solvers.screening import Piece, Programme

_ROUNDS = 20
_PULLS = 6
_CANCELLED = 1e-8  # of the force of a row on itself
_STIFF = 1e7  # how much harder free rows pull than the rest


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


def crossover(P: Programme, part: Part, near: Array, piece: Piece, answer: BarrierAnswer) -> Vertex:
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
    """
    local = Programme(
        part.rows, part.linear, part.lower, part.upper, part.shift, part.kink, P.totals
    )
    v, inside = answer.v, np.clip(answer.b, part.lower, part.upper)
    t = local.forces(v)
    at = local.settle(t)
    force = _force(part, t, inside)
    width = _widths(part, inside)
    with np.errstate(invalid="ignore"):
        doubtful = np.abs(inside - at.b) / width > at.apart / force
    free = doubtful & (part.shift == 0) & (part.lower < part.upper)
    b = np.where(free, inside, at.b)
    b = np.where(np.isfinite(b), b, inside)
    best, least = (v, b), _error(local, part, v, b, free)
    bottom, top = _room(part, inside)
    for _ in range(_ROUNDS):
        v, b = _solve_free(local, part, v, b, free, force, width)
        excess = np.where(free, np.maximum(bottom - b, b - top) / width, -np.inf)
        b = np.where(free, np.clip(b, bottom, top), b)
        at = local.settle(local.forces(v))
        b = np.where(at.curved & ~free, at.b, b)
        error = _error(local, part, v, b, free)
        if error < least:
            best, least = (v, b), error
        wrong = np.where(~free & ~at.curved & (at.b != b), at.apart, 0.0)
        if least <= 1e-12 * force or not (excess.max(initial=0.0) > 0 or wrong.any()):
            break
        # one at a time: a row too many makes others leave that should stay
        if excess.max(initial=0.0) > 0:
            free[int(np.argmax(excess))] = False
        else:
            free[int(np.argmax(wrong))] = True
    return assembled(P, near, piece, *best)


def _force(part: Part, t: Array, b: Array) -> float:
    """Give the size of forces; where they all vanish, what rounding leaves of those that cancel."""
    rounding = _CANCELLED * part.rows.length() ** 2 * float(np.abs(b).max(initial=0.0))
    sizes = np.abs(part.linear).max(initial=0.0), np.abs(t).max(initial=0.0), rounding
    return float(max(sizes)) or 1.0


def _error(local: Programme, part: Part, v: Array, b: Array, free: Array) -> float:
    """Give the largest force that is wrong for where its row is, or that v and b disagree by."""
    at = local.settle(local.forces(v))
    off = np.where(free, at.apart, np.where((at.b != b) & ~at.curved, at.apart, 0.0))
    off[part.lower == part.upper] = 0.0
    unbalanced = part.matrix @ v - part.pulled - part.rows.pull(b)
    weights = unbalanced[: len(v) - part.rows.offsets]
    return max(float(off.max(initial=0.0)), part.rows.length() * float(np.linalg.norm(weights)))


def assembled(P: Programme, near: Array, piece: Piece, v: Array, b: Array) -> Vertex:
    """Put the rows `near` and all others together, their sums repaired."""
    every = piece.b.copy()
    if len(near) < len(every):
        moved = P.settle(P.forces(v)).b if piece.curved.any() else every
        every = np.where(piece.curved, moved, every)
    every[near] = b
    return Vertex(with_sums(P, every), v)


def with_sums(P: Programme, b: Array) -> Array:
    """Take what rounding left of the sums from free variables, bounds being kept."""
    inside = np.flatnonzero((b > P.lower) & (b < P.upper))
    room = np.minimum(b[inside] - P.lower[inside], P.upper[inside] - b[inside])
    room = np.where(np.isfinite(room), room, np.abs(b[inside]))
    room = np.where(P.kink[inside] > 0, np.minimum(room, np.abs(b[inside])), room)
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


def _room(part: Part, b: Array) -> tuple[Array, Array]:
    """Give the box of each row, cut at the kink on the side that b is on."""
    split = (part.kink > 0) & (part.lower < 0) & (part.upper > 0)
    bottom = np.where(split & (b > 0), 0.0, part.lower)
    return bottom, np.where(split & (b <= 0), 0.0, part.upper)


def _widths(part: Part, b: Array) -> Array:
    width = part.upper - part.lower
    usual = max(float(np.abs(b).max(initial=0.0)), np.finfo(float).tiny)
    return np.maximum(np.where(np.isfinite(width), width, usual), np.finfo(float).tiny)


def _solve_free(
    local: Programme, part: Part, v: Array, b: Array, free: Array, force: float, width: Array
) -> tuple[Array, Array]:
    """Solve M v = g + A'b with t at its corner on free rows, by stiff springs that are reset."""
    which = np.flatnonzero(free)
    t = local.forces(v)
    at = local.settle(t)
    curved = at.curved & ~free
    matrix, aim = part.matrix, np.where(curved, 0.0, b)
    if curved.any():
        inverse = np.where(curved, 1.0 / np.where(curved, part.shift, 1.0), 0.0)
        matrix = matrix + part.rows.gram(inverse)
        # b = (t - beyond)/shift where t - beyond = shift b
        aim = np.where(curved, at.b + (part.linear - t) * inverse, aim)
    fixed = part.pulled + part.rows.pull(np.where(free, 0.0, aim))
    rows = part.rows.take(which)
    x, corner = b[which], _corners(part, which, t)
    spring = (
        _STIFF
        * np.maximum(np.minimum(part.upper[which] - x, x - part.lower[which]), 1e-3 * width[which])
        / force
    )
    spring = np.where(np.isfinite(spring), spring, _STIFF * width[which] / force)
    solve = factor_spd(matrix + rows.gram(spring))
    for _ in range(_PULLS):
        off = rows.times(v) - (part.linear[which] - corner)
        unbalanced = matrix @ v - fixed - rows.pull(x)
        dv = solve(-unbalanced - rows.pull(spring * off))
        x = x - spring * (off + rows.times(dv))
        v = v + dv
        if np.abs(off).max(initial=0.0) <= 1e-13 * force:
            break
    out = b.copy()
    out[which] = x
    return v, out


def _corners(part: Part, which: Array, t: Array) -> Array:
    """Give the force at which each free row rests: its kink, with the sign of the side it is on."""
    kink = part.kink[which]
    split = (part.lower[which] < 0) & (part.upper[which] > 0)
    one_sided = np.where(part.upper[which] > 0, kink, -kink)
    return np.where(split, np.where(t[which] > 0, kink, -kink), one_sided)
