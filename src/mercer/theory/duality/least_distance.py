"""Quadratic programs by least distances (Lawson and Hanson 1974, chapter 23): finitely many steps.

With P = LL' the program asks for the point nearest to the origin in a polyhedron, whose multipliers
solve a nonnegative least-squares problem. Directions in which P is flat get a small curvature
around the last answer (proximal steps), which matters less and less as the answers settle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, null_space, solve_triangular
from scipy.optimize import nnls

from mercer.array_types import Array

if TYPE_CHECKING:
    from mercer.theory.duality.quadratic import QuadraticProgram

_FLAT = 1e-7  # of the largest eigenvalue: below, proximal steps
_LEAST_CURVE = 1e-5  # of the largest: smaller ones cost digits
_STEPS = 100
_SETTLED = 1e-13  # relative


def solve_quadratic(program: QuadraticProgram) -> tuple[Array, Array, Array]:
    """Return a point and multipliers of a convex program that is feasible and bounded."""
    E = program.A_eq
    base = np.linalg.lstsq(E, program.b_eq, rcond=None)[0] if len(E) else np.zeros(program.n)
    free = null_space(E) if len(E) else np.eye(program.n)
    P = free.T @ program.P @ free
    c = free.T @ program.gradient(base)
    lengths = np.linalg.norm(program.A_ub @ free, axis=1)
    tight = np.maximum(lengths, 1e-300)
    A = (program.A_ub @ free) / tight[:, None]
    b = np.maximum(-program.inequalities(base), -np.inf) / tight
    used = lengths > 1e-12 * np.maximum(np.linalg.norm(program.A_ub, axis=1), 1e-300)
    y, lam = np.zeros(free.shape[1]), np.zeros(len(A))
    if free.shape[1]:
        y, lam[used] = proximal(P, c, A[used], b[used])
    x, lam = base + free @ y, lam / tight
    force = program.gradient(x) + program.A_ub.T @ lam
    nu = np.linalg.lstsq(E.T, -force, rcond=None)[0] if len(E) else np.zeros(0)
    return x, lam, nu


def proximal(P: Array, c: Array, A: Array, b: Array) -> tuple[Array, Array]:
    """Minimise y'Py/2 + c'y subject to Ay <= b."""
    values = np.linalg.eigvalsh(P)
    size = float(np.abs(values).max(initial=0.0))
    if values[0] > _FLAT * size:
        return polished(P, c, A, b, *least_distance(P, c, A, b))
    curve = size or float(np.abs(c).max()) or 1.0
    least = _LEAST_CURVE * curve
    y, lam = np.zeros(len(P)), np.zeros(len(A))
    for _ in range(_STEPS):
        last, curve = y, max(curve / 4, least)  # longer steps each time
        y, lam = least_distance(P + curve * np.eye(len(P)), c - curve * last, A, b)
        if np.abs(y - last).max(initial=0.0) <= _SETTLED * np.abs(y).max(initial=0.0):
            break
    return polished(P, c, A, b, y, lam)


def least_distance(M: Array, c: Array, A: Array, b: Array) -> tuple[Array, Array]:
    """Minimise y'My/2 + c'y subject to Ay <= b, M positive definite."""
    factor = cho_factor(M, lower=True)
    free = -cho_solve(factor, c)
    short = A @ free - b  # by how much the free minimum breaks each constraint
    if not (short > 0).any():
        return free, np.zeros(len(A))
    G = -solve_triangular(
        factor[0], A.T, lower=True
    )  # columns: constraints where M is the identity
    unit = float(short.max()) / max(float(np.linalg.norm(G, axis=0).max()), 1e-300)
    # the nearest point z with G'z >= short: least squares with one more row
    system = np.vstack([G, short / unit])
    u, _ = nnls(system, np.append(np.zeros(len(G)), 1.0), maxiter=30 * system.shape[1] + 100)
    rest = 1.0 - float(short @ u) / unit
    lam = u * unit / rest if rest > 0 else u
    return -cho_solve(factor, c + A.T @ lam), lam


def polished(P: Array, c: Array, A: Array, b: Array, y: Array, lam: Array) -> tuple[Array, Array]:
    """Solve the conditions with the priced constraints as equations; keep what is nearer."""
    best = y, lam
    for _ in range(3):
        y, lam = best
        active = np.flatnonzero(lam > 1e-10 * lam.max(initial=0.0))
        B, none = A[active], np.zeros((len(active), len(active)))
        left = np.concatenate([P @ y + c + A.T @ lam, B @ y - b[active]])
        step = np.linalg.lstsq(np.block([[P, B.T], [B, none]]), -left, rcond=1e-13)[0]
        sharper = lam.copy()
        sharper[active] += step[len(y) :]
        found = y + step[: len(y)], np.maximum(sharper, 0.0)
        if not residual(P, c, A, b, *found) < residual(P, c, A, b, *best):
            break
        best = found
    return best


def residual(P: Array, c: Array, A: Array, b: Array, y: Array, lam: Array) -> float:
    """Return how far the optimality conditions are from holding, relative to their terms."""
    slack, size = b - A @ y, np.abs(y)
    force = np.abs(P) @ size + np.abs(c) + np.abs(A.T) @ lam
    side = np.abs(A) @ size + np.abs(b)
    price = max(float(lam @ side), float(size @ force), 1e-300)
    return max(
        float(np.abs(P @ y + c + A.T @ lam).max() / max(force.max(), 1e-300)),
        float((np.maximum(-slack, 0.0) / np.maximum(side, 1e-300)).max(initial=0.0)),
        float(np.abs(lam * slack).sum() / price),
    )
