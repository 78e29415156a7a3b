"""Smooth programs of a few variables: any functions, on a box or on the whole space.

What is convex is solved from a start, and its multipliers are read off the balance of forces. What
is not convex is searched through on a grid of its box, and its dual by cutting planes: the dual
function sees nothing of a program but the convex hull of the points (g(x), h(x), f(x)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.theory.bound import check_count
from mercer.theory.duality import search
from mercer.theory.duality.program import (
    DualValue,
    Program,
    ProgramSolution,
    Scales,
    SlaterPoint,
)

_STEP = 6e-6  # cube root of rounding: the step at which central differences are sharpest
_MOST_POINTS = 200_000  # of a grid


@dataclass(frozen=True)
class SmoothFunction:
    """A function of (n,) arrays, with its gradient.

    Parameters
    ----------
    value : callable
        x to a number.
    gradient : callable, optional
        x to (n,) numbers; central differences unless given, right to about ten digits.

    Examples
    --------
    >>> square = SmoothFunction(lambda x: x @ x)
    >>> square.slope([1.0, 2.0]).round(6).tolist()
    [2.0, 4.0]
    """

    value: Callable[[Array], Any]
    gradient: Callable[[Array], Any] | None = None

    def __call__(self, x: npt.ArrayLike) -> float:
        """Return the value at x."""
        found = np.asarray(self.value(np.asarray(x, dtype=np.float64)))
        if found.size != 1:
            raise ValueError(
                f"a function of a program must return one number, got an array {found.shape}"
            )
        return float(found.item())

    def slope(self, x: npt.ArrayLike) -> Array:
        """Return the gradient at x."""
        at = np.asarray(x, dtype=np.float64)
        if self.gradient is not None:
            return np.asarray(self.gradient(at), dtype=np.float64).reshape(at.shape)
        steps = _STEP * np.maximum(np.abs(at), 1.0)
        sides = np.diag(steps)
        return np.array([self(at + s) - self(at - s) for s in sides]) / (2 * steps)


class SmoothProgram(Program):
    """Minimise f(x) subject to g_i(x) <= 0 and h_j(x) = 0, and x in a box if one is given.

    Parameters
    ----------
    objective : SmoothFunction or callable
        f, of (n,) arrays.
    inequalities, equalities : sequences of SmoothFunction or callable
        The g_i and the h_j.
    n : int
        How many variables.
    convex : bool
        Whether f and all g_i are convex and all h_j affine, which nobody checks. If not, `bounds`
        are needed, and what is found is as good as a grid of `resolution` points to each side.
    bounds : (low, high), each a number or (n,) array-like, optional
        The box that x lies in: part of the program, not a constraint with a multiplier.
    start : (n,) array-like, optional
        Where searches begin; the middle of the box, or the origin.
    resolution : int, optional
        Points of the grid along each variable.

    Examples
    --------
    Two valleys, and the way to the lower one is barred: no multiplier says how good the other is.

    >>> program = SmoothProgram(
    ...     lambda x: (x[0] ** 2 - 1) ** 2 - x[0], [lambda x: x[0]], n=1, convex=False,
    ...     bounds=(-2, 2),
    ... )
    >>> solution = program.solve()
    >>> round(solution.primal, 4), round(abs(solution.dual), 4), solution.lam.round(3).tolist()
    (0.9267, 0.0, [1.0])
    >>> solution.status.name
    'GAP'
    """

    def __init__(
        self,
        objective: Any,
        inequalities: Sequence[Any] = (),
        equalities: Sequence[Any] = (),
        *,
        n: int,
        convex: bool,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        start: npt.ArrayLike | None = None,
        resolution: int | None = None,
    ) -> None:
        self.n, self.convex = check_count("n", n), bool(convex)
        self.f = as_function("objective", objective)
        self.g = tuple(as_function("inequalities", each) for each in inequalities)
        self.h = tuple(as_function("equalities", each) for each in equalities)
        self.n_inequalities, self.n_equalities = len(self.g), len(self.h)
        self.bounded = bounds is not None
        self.low, self.high = self.box(bounds)
        middle = (self.low + self.high) / 2 if self.bounded else np.zeros(self.n)
        self.start = self.point(middle if start is None else start)
        if not np.isfinite(self.f(self.start)):
            raise ValueError(
                f"objective is {self.f(self.start)} at start={self.start.tolist()}; pass a start= "
                "at which it is a number"
            )
        if not self.convex and not self.bounded:
            raise ValueError(
                "a program that is not convex needs bounds=(low, high): it is searched through"
            )
        each = int(_MOST_POINTS ** (1 / self.n)) if resolution is None else resolution
        self.resolution = check_count(
            "resolution", min(each, 2001) if resolution is None else each, 2
        )
        if not self.convex and self.resolution**self.n > _MOST_POINTS:
            raise ValueError(
                f"{self.n} variables at resolution={self.resolution} are {self.resolution**self.n} "
                f"points; at most {_MOST_POINTS} are looked at"
            )

    def objective(self, x: npt.ArrayLike) -> float:
        """Return f(x)."""
        return self.f(self.point(x))

    def gradient(self, x: npt.ArrayLike) -> Array:
        """Return the gradient of f."""
        return self.f.slope(self.point(x))

    def inequalities(self, x: npt.ArrayLike) -> Array:
        """Return g(x)."""
        at = self.point(x)
        return np.array([g(at) for g in self.g])

    def inequality_gradients(self, x: npt.ArrayLike) -> Array:
        """Return the gradients of g."""
        at = self.point(x)
        return np.array([g.slope(at) for g in self.g]).reshape(len(self.g), self.n)

    def equalities(self, x: npt.ArrayLike) -> Array:
        """Return h(x)."""
        at = self.point(x)
        return np.array([h(at) for h in self.h])

    def equality_gradients(self, x: npt.ArrayLike) -> Array:
        """Return the gradients of h."""
        at = self.point(x)
        return np.array([h.slope(at) for h in self.h]).reshape(len(self.h), self.n)

    def scales(self, x: Array) -> Scales:
        """Compare with the start, and with how far slopes carry over the length of x."""
        size = max(float(np.abs(x).max()), float(np.abs(self.start).max()), 1.0)
        slopes = [np.abs(self.gradient(at)).max() for at in (x, self.start)]
        values = [abs(self.objective(at)) for at in (x, self.start)]
        of_g = np.abs(self.inequality_gradients(x)).max(axis=1, initial=0.0) * size
        of_h = np.abs(self.equality_gradients(x)).max(axis=1, initial=0.0) * size
        return Scales(float(max(values)), float(max(slopes)), of_g, of_h)

    def balance(self, x: Array, force: Array) -> Array:
        """Take off what pushes against a side of the box."""
        near = 1e-9 * np.where(np.isfinite(self.high - self.low), self.high - self.low, 1.0)
        held = ((x <= self.low + near) & (force < 0)) | ((x >= self.high - near) & (force > 0))
        return np.where(held, 0.0, force)

    def infimum(self, lam: Array, nu: Array) -> DualValue:
        """Minimise numerically: from the start if convex, else from the best points of the grid."""
        with np.errstate(all="ignore"):  # functions may overflow where a search wanders
            return search.minimum(self, lam, nu)

    def slater(self) -> SlaterPoint:
        """Minimise the largest g_i: below zero, Slater's condition holds.

        Returns
        -------
        SlaterPoint
            The point is a proof. That none was found proves nothing.
        """
        with np.errstate(all="ignore"):
            x = search.deepest(self)
        off = np.abs(self.equalities(x)) / np.maximum(self.scales(x).equalities, 1e-300)
        if off.max(initial=0.0) > 1e-6:
            return SlaterPoint(None, -np.inf, False, "no point was found that satisfies h = 0")
        margin = float(-self.inequalities(x).max(initial=-np.inf))
        holds = bool(margin > 1e-7 * self.scales(x).inequalities.max(initial=0.0))
        if holds and self.convex:
            statement = "Slater's condition holds: a strictly feasible point, so there is no gap"
        elif holds:
            statement = (
                "all inequalities are strict here, but a program that is not convex may have a gap"
            )
        else:
            statement = "no strictly feasible point was found: multipliers need not exist"
        return SlaterPoint(x, margin, holds, statement)

    def solve(self, tol: float = 1e-6) -> ProgramSolution:
        """Find a point and the best multipliers, and judge them.

        Parameters
        ----------
        tol : float
            What is taken for zero by the judgement, relative.

        Returns
        -------
        ProgramSolution
            OPTIMAL where the gap is closed; GAP where the best bound found is below the best point.
        """
        return search.solve_smooth(self, tol)

    @cached_property
    def grid(self) -> tuple[Array, Array, Array, Array]:
        """Points of the box and f, g, h at them: (m, n), (m,), (m, s), (m, k)."""
        axes = [
            np.linspace(a, b, self.resolution) for a, b in zip(self.low, self.high, strict=True)
        ]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.n)
        f = np.array([self.f(x) for x in points])
        g = np.array([[g(x) for g in self.g] for x in points]).reshape(len(points), len(self.g))
        h = np.array([[h(x) for h in self.h] for x in points]).reshape(len(points), len(self.h))
        for name, values in (("objective", f[:, None]), ("inequalities", g), ("equalities", h)):
            lost = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if len(lost):
                raise ValueError(
                    f"{name} must be finite in the whole box, but not so at x = "
                    f"{points[lost[0]].tolist()}; choose other bounds"
                )
        return points, f, g, h

    def box(self, bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None) -> tuple[Array, Array]:
        """Require low < high, finite unless the program is convex."""
        low, high = (-np.inf, np.inf) if bounds is None else bounds
        sides = [np.broadcast_to(np.asarray(s, dtype=np.float64), (self.n,)) for s in (low, high)]
        if not (sides[0] < sides[1]).all() or (bounds is not None and not np.isfinite(sides).all()):
            raise ValueError("bounds must be finite numbers, low < high")
        return sides[0].copy(), sides[1].copy()


def as_function(name: str, given: Any) -> SmoothFunction:
    """Take a function as it is, or give it central differences."""
    if isinstance(given, SmoothFunction):
        return given
    if not callable(given):
        raise TypeError(f"{name}: {given!r} must be a function of x, or a SmoothFunction")
    return SmoothFunction(given)
