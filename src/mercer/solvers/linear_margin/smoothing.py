"""Newton's method on a loss whose corners are rounded: how a programme of many rows is approached.

A corner of a loss rounded over a width d is a dual variable with a shift, s = d / (u - l): b(t)
goes from one bound to the other while t passes the corner. The objective is then smooth, its second
derivatives come from the rows within d of a corner alone, and a step along a line costs no look at
the features, since residuals are linear in it. Ever narrower rounding leaves ever fewer rows: the
cost of the whole is a few weighted A'A, not one for each step of an interior point method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer.array_types import Array
from mercer.solvers.linear_margin.barrier import dot
from mercer.solvers.linear_margin.screening import FeatureProgramme, Piece
from mercer.solvers.spd import factor_spd

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
    newton = _Newton(Q, at.v, at.t + offset, width)
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


class _Newton:
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
