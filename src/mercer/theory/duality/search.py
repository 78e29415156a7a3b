"""How smooth programs are solved: local searches, a grid, and cutting planes for the dual."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog, lsq_linear, minimize

from mercer import deadline
from mercer.array_types import Array
from mercer.theory.duality.program import DualValue, ProgramSolution, ProgramStatus

if TYPE_CHECKING:
    from mercer.theory.duality.smooth import SmoothProgram

_STARTS = 5  # points of a grid that searches start from
_FALLEN = 1e12  # times the size at the start: taken for minus infinity
_CUTS = 60
_CLOSED = 1e-9  # relative gap between cutting planes and the best bound


def minimum(program: SmoothProgram, lam: Array, nu: Array) -> DualValue:
    """Minimise the Lagrangian over the box, or over the whole space."""

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
    """Descend in the box, or quasi-Newton and again from where it ended."""
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
    far = start + 1e15 * (x - start)  # does it go on falling?
    with np.errstate(all="ignore"):
        fallen = value(far) < -_FALLEN * size
    return x, -np.inf if fallen else lowest


def constrained(program: SmoothProgram, start: Array) -> Array:
    """Minimise f under all constraints from a start (sequential quadratic programs)."""

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
    """Minimise the largest g_i, at least -1, under the equalities."""
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
    """Maximise the dual function, which is concave: it is below the plane of every point.

    A point x of the box gives the plane f(x) + lam g(x) + nu h(x). The planes of the grid are a
    linear program; where its answer is too good, the minimum of the Lagrangian there is a new one.
    """
    _, f, g, h = program.grid
    s, k = g.shape[1], h.shape[1]
    most = 1e6 * max(float(np.ptp(f)), 1.0)  # multipliers beyond are taken for infinite
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
