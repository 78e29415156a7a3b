"""Smooth programs: local search, grid, and cutting planes for the dual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, lsq_linear, minimize

from mercer import deadline
from mercer.array_types import Array
from mercer.theory.bounds import check_count
from mercer.theory.duality.program import (
    DualValue,
    Program,
    ProgramSolution,
    ProgramStatus,
    RoundingScales,
    SlaterPoint,
)

# --- smooth --------------------------------------------------------------------------------------
#
# Smooth programs of a few variables: any functions, on a box or on the whole space.
#
# Convex programs are solved from a start, and their multipliers follow from the balance of forces.
# Other programs are searched on a grid of their box, and their duals by cutting planes: the
# dual function sees nothing of a program but the convex hull of the points (g(x), h(x), f(x)).

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
    """Minimize f(x) subject to g_i(x) <= 0 and h_j(x) = 0, and x in a box if one is given.

    Parameters
    ----------
    objective : SmoothFunction or callable
        f, of (n,) arrays.
    inequalities, equalities : sequences of SmoothFunction or callable
        The g_i and the h_j.
    n : int
        Number of variables.
    convex : bool
        Whether f and all g_i are convex and all h_j affine, which is not verified. If not, `bounds`
        are needed, and the accuracy is that of a grid of `resolution` points per side.
    bounds : (low, high), each a number or (n,) array-like, optional
        The box that x lies in: part of the program, not a constraint with a multiplier.
    start : (n,) array-like, optional
        Start of searches; the middle of the box, or the origin.
    resolution : int, optional
        Points of the grid along each variable.

    Examples
    --------
    Two valleys with a constraint between them: no multiplier gives a tight bound.

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
                "a program that is not convex needs bounds=(low, high) for its grid search"
            )
        each = int(_MOST_POINTS ** (1 / self.n)) if resolution is None else resolution
        self.resolution = check_count(
            "resolution", min(each, 2001) if resolution is None else each, 2
        )
        if not self.convex and self.resolution**self.n > _MOST_POINTS:
            raise ValueError(
                f"{self.n} variables at resolution={self.resolution} are {self.resolution**self.n} "
                f"points; at most {_MOST_POINTS} are allowed"
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

    def scales(self, x: Array) -> RoundingScales:
        """Compare with the start, and with how far slopes carry over the length of x."""
        size = max(float(np.abs(x).max()), float(np.abs(self.start).max()), 1.0)
        slopes = [np.abs(self.gradient(at)).max() for at in (x, self.start)]
        values = [abs(self.objective(at)) for at in (x, self.start)]
        of_g = np.abs(self.inequality_gradients(x)).max(axis=1, initial=0.0) * size
        of_h = np.abs(self.equality_gradients(x)).max(axis=1, initial=0.0) * size
        return RoundingScales(float(max(values)), float(max(slopes)), of_g, of_h)

    def balance(self, x: Array, force: Array) -> Array:
        """Take off what pushes against a side of the box."""
        near = 1e-9 * np.where(np.isfinite(self.high - self.low), self.high - self.low, 1.0)
        held = ((x <= self.low + near) & (force < 0)) | ((x >= self.high - near) & (force > 0))
        return np.where(held, 0.0, force)

    def infimum(self, lam: Array, nu: Array) -> DualValue:
        """Minimize numerically: from the start if convex, else from the best points of the grid."""
        with np.errstate(all="ignore"):  # functions may overflow where a search wanders
            return minimum(self, lam, nu)

    def slater(self) -> SlaterPoint:
        """Minimize the largest g_i: below zero, Slater's condition holds.

        Returns
        -------
        SlaterPoint
            The point is a proof. If no point was found, Slater's condition may still hold.
        """
        with np.errstate(all="ignore"):
            x = deepest(self)
        off = np.abs(self.equalities(x)) / np.maximum(self.scales(x).equalities, 1e-300)
        if off.max(initial=0.0) > 1e-6:
            return SlaterPoint(None, -np.inf, False, "no point was found that satisfies h = 0")
        margin = float(-self.inequalities(x).max(initial=-np.inf))
        holds = bool(margin > 1e-7 * self.scales(x).inequalities.max(initial=0.0))
        if holds and self.convex:
            statement = "Slater's condition holds (a strictly feasible point): no duality gap"
        elif holds:
            statement = (
                "all inequalities are strict here, but a program that is not convex may have a gap"
            )
        else:
            statement = "no strictly feasible point was found: multipliers need not exist"
        return SlaterPoint(x, margin, holds, statement)

    def solve(self, tol: float = 1e-6) -> ProgramSolution:
        """Find a point and the best multipliers, and verify them.

        Parameters
        ----------
        tol : float
            Relative tolerance for zero in the verification.

        Returns
        -------
        ProgramSolution
            OPTIMAL where the gap is closed; GAP where the best bound found is below the best point.
        """
        return solve_smooth(self, tol)

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
    """Return a function with its own gradient, or with central differences."""
    if isinstance(given, SmoothFunction):
        return given
    if not callable(given):
        raise TypeError(f"{name}: {given!r} must be a function of x, or a SmoothFunction")
    return SmoothFunction(given)


# --- search --------------------------------------------------------------------------------------
#
# How smooth programs are solved: local searches, a grid, and cutting planes for the dual.

_STARTS = 5  # points of a grid that searches start from
_FALLEN = 1e12  # times the size at the start: taken for minus infinity
_CUTS = 60
_CLOSED = 1e-9  # relative gap between cutting planes and the best bound


def minimum(program: SmoothProgram, lam: Array, nu: Array) -> DualValue:
    """Minimize the Lagrangian over the box, or over the whole space."""

    def value(x: Array) -> float:
        found = program.f(x) + sum(a * g(x) for a, g in zip(lam, program.g, strict=True))
        return float(found + sum(a * h(x) for a, h in zip(nu, program.h, strict=True)))

    def slope(x: Array) -> Array:
        found = program.f.slope(x)
        for a, each in zip((*lam, *nu), (*program.g, *program.h), strict=True):
            found = found + a * each.slope(x)
        return found

    best, at = np.inf, None
    for start in starts(program, lam, nu):
        deadline.check()
        x, lowest = descend(program, value, slope, start)
        if lowest < best:
            best, at = lowest, x
    return DualValue(best, at if best > -np.inf else None, exact=False)


def starts(program: SmoothProgram, lam: Array, nu: Array) -> list[Array]:
    """Return the start of a convex program, else the lowest valleys of the Lagrangian."""
    if program.convex:
        return [program.start]
    points, f, g, h = program.grid
    total = f + g @ lam + h @ nu
    shape = (program.resolution,) * program.n
    lowest = np.ones(shape, dtype=bool)
    for axis in range(program.n):  # valleys of the grid
        cube = np.moveaxis(total.reshape(shape), axis, 0)
        there = np.moveaxis(lowest, axis, 0)
        there[1:] &= cube[1:] <= cube[:-1]
        there[:-1] &= cube[:-1] <= cube[1:]
    valleys = np.flatnonzero(lowest.ravel())
    order = valleys[np.argsort(total[valleys])][:_STARTS]
    return [points[i] for i in order]


def unit_of(value: Any, slope: Any, at: Array) -> float:
    """Return the size of a function at a point: of its slope, else of its value, else one.

    The ends of scipy's searches are absolute; in this unit they do not depend on the scale of f.
    """
    with np.errstate(all="ignore"):
        sizes = [float(np.abs(slope(at)).max()), abs(float(value(at)))]
    return next((size for size in sizes if 0.0 < size < np.inf), 1.0)


def descend(program: SmoothProgram, value: Any, slope: Any, start: Array) -> tuple[Array, float]:
    """Descend from a start, in units of the function there."""
    unit = unit_of(value, slope, start)
    x, lowest = descend_in_units(
        program, lambda x: value(x) / unit, lambda x: slope(x) / unit, start
    )
    return x, -np.inf if lowest == -np.inf else float(value(x))


def descend_in_units(
    program: SmoothProgram, value: Any, slope: Any, start: Array
) -> tuple[Array, float]:
    """Descend in the box, or by quasi-Newton steps with a restart from their end."""
    if program.bounded:
        sides = list(zip(program.low, program.high, strict=True))
        options: dict[str, Any] = {"bounds": sides, "options": {"ftol": 1e-15, "gtol": 1e-10}}
        found: Any = minimize(value, start, jac=slope, method="L-BFGS-B", **options)
        return np.asarray(found.x), float(found.fun)
    x, lowest = start, float(value(start))
    size = max(abs(lowest), 1.0)
    for _ in range(3):
        with np.errstate(all="ignore"):
            found = minimize(value, x, jac=slope, method="BFGS", options={"gtol": 1e-10})
        if not np.isfinite(found.fun):
            return x, -np.inf
        if not found.fun < lowest:
            break
        x, lowest = np.asarray(found.x), float(found.fun)
    far = start + 1e15 * (x - start)  # does it continue to decrease?
    with np.errstate(all="ignore"):
        fallen = value(far) < -_FALLEN * size
    return x, -np.inf if fallen else lowest


def constrained(program: SmoothProgram, start: Array) -> Array:
    """Minimize f under all constraints from a start (sequential quadratic programs)."""

    def scaled(function: Any, sign: float = 1.0) -> dict[str, Any]:
        size = sign / (float(np.abs(function.slope(start)).max()) or 1.0)
        return {"fun": lambda x: size * function(x), "jac": lambda x: size * function.slope(x)}

    constraints = [{"type": "ineq", **scaled(g, -1.0)} for g in program.g]
    constraints += [{"type": "eq", **scaled(h)} for h in program.h]
    sides = list(zip(program.low, program.high, strict=True)) if program.bounded else None
    options: dict[str, Any] = {"method": "SLSQP", "bounds": sides, "constraints": constraints}
    options |= {"options": {"ftol": 1e-15, "maxiter": 500}, **scaled(program.f)}
    x = start
    for _ in range(2):  # a second time with fresh curvature
        found: Any = minimize(x0=x, **options)
        if not np.isfinite(found.x).all():
            break
        x = np.clip(found.x, program.low, program.high)
    return np.asarray(x)


def deepest(program: SmoothProgram) -> Array:
    """Minimize the largest g_i, at least -1, under the equalities."""
    n = program.n

    def wall(g: Any) -> dict[str, Any]:
        return {
            "type": "ineq",
            "fun": lambda z: z[n] - g(z[:n]),
            "jac": lambda z: np.append(-g.slope(z[:n]), 1.0),
        }

    constraints = [wall(g) for g in program.g]
    constraints += [
        {
            "type": "eq",
            "fun": lambda z, h=h: h(z[:n]),
            "jac": lambda z, h=h: np.append(h.slope(z[:n]), 0),
        }
        for h in program.h
    ]
    start = program.start
    if not program.convex:
        points, _, g, h = program.grid
        start = points[(g.max(axis=1, initial=-np.inf) + np.abs(h).sum(axis=1)).argmin()]
    highest = max(float(program.inequalities(start).max(initial=-1.0)), -1.0)
    sides = [*zip(program.low, program.high, strict=True), (-1.0, None)]
    up = np.append(np.zeros(n), 1.0)
    options: dict[str, Any] = {"method": "SLSQP", "bounds": sides, "constraints": constraints}
    options |= {"jac": lambda z: up, "options": {"ftol": 1e-12, "maxiter": 300}}
    found: Any = minimize(up.dot, np.append(start, highest), **options)
    return np.asarray(np.clip(found.x[:n], program.low, program.high))


def solve_smooth(program: SmoothProgram, tol: float) -> ProgramSolution:
    """Find a point, then multipliers: from forces if convex, else from cutting planes."""
    with np.errstate(all="ignore"):  # functions may overflow where searches wander
        x = best_point(program)
    lam, nu = from_forces(program, x) if program.convex else cutting_planes(program)
    judged = program.judge(x, lam, nu, tol)
    if max(judged.kkt.inequalities, judged.kkt.equalities) > tol:
        return replace(judged, status=ProgramStatus.NOT_FOUND)
    return judged


def best_point(program: SmoothProgram) -> Array:
    """Return the lowest feasible point that searches from several starts end at."""
    tries = [program.start]
    if program.convex:
        deep = deepest(program)  # a start inside, if the first is lost
        tries.append(deep)
    else:
        points, f, g, h = program.grid
        width = np.max((program.high - program.low) / (program.resolution - 1))
        off = np.maximum(g.max(axis=1, initial=0.0), 0.0) + np.abs(h).sum(axis=1)
        near = off <= max(off.min(), width * (len(program.h) > 0))
        order = np.flatnonzero(near)[np.argsort(f[near])]
        apart = order[:: max(1, len(order) // 20)][:20]
        tries += [points[i] for i in (*order[:_STARTS], *apart)]
    best, key = program.start, (np.inf, np.inf)
    for start in tries:
        deadline.check()
        for x in (constrained(program, start), start):
            kkt = program.kkt(x)
            off = max(kkt.inequalities, kkt.equalities)
            rank = (off if off > 1e-8 else 0.0, program.objective(x))
            if rank < key:
                best, key = x, rank
    return best


def from_forces(program: SmoothProgram, x: Array) -> tuple[Array, Array]:
    """Return the multipliers that balance the forces best, of walls that are touched."""
    g, scales = program.inequalities(x), program.scales(x)
    touched = g >= -1e-6 * np.maximum(scales.inequalities, 1e-300)
    walls = program.inequality_gradients(x)[touched]
    rails = program.equality_gradients(x)
    lam, nu = np.zeros(len(g)), np.zeros(len(rails))
    free = (
        program.balance(x, -program.gradient(x)) != 0
        if program.bounded
        else np.ones(program.n, bool)
    )
    A = np.vstack([walls, rails]).T[free]
    if not A.size:
        return lam, nu
    low = np.append(np.zeros(len(walls)), np.full(len(rails), -np.inf))
    found = lsq_linear(A, -program.gradient(x)[free], (low, np.full(A.shape[1], np.inf)), tol=1e-14)
    lam[touched], nu[:] = found.x[: len(walls)], found.x[len(walls) :]
    return np.maximum(lam, 0.0), nu


def cutting_planes(program: SmoothProgram) -> tuple[Array, Array]:
    """Maximize the dual function, which is concave: it is below the plane of every point.

    A point x of the box gives the plane f(x) + lam g(x) + nu h(x). The planes of the grid are a
    linear program; if its solution is too good, the minimum of the Lagrangian there is a new plane.
    """
    _, f, g, h = program.grid
    s, k = g.shape[1], h.shape[1]
    most = 1e6 * max(float(np.ptp(f)), 1.0)  # larger multipliers count as infinite
    best, prices = -np.inf, (np.zeros(s), np.zeros(k))
    for _ in range(_CUTS):
        deadline.check()
        found: Any = linprog(
            np.concatenate([[-1.0], np.zeros(s + k)]),
            A_ub=np.column_stack([np.ones(len(f)), -g, -h]),
            b_ub=f,
            bounds=[(None, None)] + [(0, most)] * s + [(-most, most)] * k,
        )
        if found.status != 0:
            break
        above, lam, nu = found.x[0], np.maximum(found.x[1 : 1 + s], 0.0), found.x[1 + s :]
        lowest = minimum(program, lam, nu)
        if lowest.value > best:
            best, prices = lowest.value, (lam, nu)
        if lowest.x is None or above - best <= _CLOSED * max(abs(above), float(np.ptp(f))):
            break
        f = np.append(f, program.objective(lowest.x))
        g = np.vstack([g, program.inequalities(lowest.x)])
        h = np.vstack([h, program.equalities(lowest.x)])
    return prices
