"""Quadratic programs: dual in closed form, and solution by least distance."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, null_space, solve_triangular
from scipy.optimize import linprog, nnls

from mercer.array_types import Array
from mercer.theory.duality.program import (
    DualValue,
    Program,
    ProgramSolution,
    ProgramStatus,
    RoundingScales,
    SlaterPoint,
)

# --- quadratic -----------------------------------------------------------------------------------
#
# Quadratic programs with linear constraints: a dual function in closed form.

_ROUNDING = 1e-10  # relative: eigenvalues and violations below are zero


class QuadraticProgram(Program):
    """Minimize x'Px/2 + q'x + constant subject to A_ub x <= b_ub and A_eq x = b_eq.

    With P positive definite the dual function is -c'P^-1 c/2 - b_ub'lam - b_eq'nu + constant with
    c = q + A_ub'lam + A_eq'nu; with P singular it is minus infinity unless c is in the range of P.

    Parameters
    ----------
    P : (n, n) array-like
        A symmetric matrix. The program is convex if it is positive semidefinite.
    q : (n,) array-like
        The linear part.
    A_ub, b_ub : (s, n), (s,) array-like, optional
        Inequalities.
    A_eq, b_eq : (k, n), (k,) array-like, optional
        Equalities.
    constant : float
        Added to the objective.

    Examples
    --------
    The point of the half-plane x0 + x1 >= 2 that is nearest to the origin. The multiplier of the
    constraint is the derivative of half the squared distance with respect to the 2.

    >>> program = QuadraticProgram(P=[[1, 0], [0, 1]], q=[0, 0], A_ub=[[-1, -1]], b_ub=[-2])
    >>> solution = program.solve()
    >>> solution.x.round(6).tolist(), solution.lam.round(6).tolist(), round(solution.gap, 9)
    ([1.0, 1.0], [1.0], 0.0)
    >>> program.dual([0.5]).value  # any multiplier gives a bound
    0.75
    >>> print(solution.kkt.statement)
    the conditions hold and the program is convex: this is an optimum
    """

    def __init__(
        self,
        P: npt.ArrayLike,
        q: npt.ArrayLike,
        A_ub: npt.ArrayLike | None = None,
        b_ub: npt.ArrayLike | None = None,
        A_eq: npt.ArrayLike | None = None,
        b_eq: npt.ArrayLike | None = None,
        constant: float = 0.0,
    ) -> None:
        self.q = finite("q", q).ravel()
        self.n = len(self.q)
        self.P = finite("P", P)
        if self.P.shape != (self.n, self.n) or not self.n:
            raise ValueError(f"P must be {self.n} x {self.n} like q, and not empty")
        if not np.allclose(self.P, self.P.T, rtol=1e-12, atol=0):
            raise ValueError("P must be symmetric: pass (P + P') / 2, which has the same x'Px")
        self.A_ub, self.b_ub = self.rows("ub", A_ub, b_ub)
        self.A_eq, self.b_eq = self.rows("eq", A_eq, b_eq)
        self.n_inequalities, self.n_equalities = len(self.b_ub), len(self.b_eq)
        self.constant = float(finite("constant", constant))

    @cached_property
    def units(self) -> Array:
        """Units of the variables in which the curvature along each is one, if there is any.

        A direction is flat if it is flat in these: diag(1, 1e-12) curves in both directions.
        """
        curve = np.diag(self.P)
        units = np.where(curve > 0, 1 / np.sqrt(np.where(curve > 0, curve, 1.0)), 1.0)
        least = np.linalg.eigvalsh(units[:, None] * self.P * units)[0]
        # an entry that is nothing but rounding of zero would not be seen as such
        return units if least >= -_ROUNDING * self.n else np.ones(self.n)

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """The eigenvalues and eigenvectors of P in these units."""
        values, vectors = np.linalg.eigh(self.units[:, None] * self.P * self.units)
        return values, vectors

    @cached_property
    def in_units(self) -> QuadraticProgram:
        """The same program in these units."""
        u = self.units
        P = u[:, None] * self.P * u
        matrices = (P + P.T) / 2, self.q * u, self.A_ub * u, self.b_ub, self.A_eq * u, self.b_eq
        return QuadraticProgram(*matrices, self.constant)

    @cached_property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether P is positive semidefinite to rounding."""
        values = self.spectrum[0]
        return bool(values[0] >= -_ROUNDING * np.abs(values).max())

    def objective(self, x: npt.ArrayLike) -> float:
        """Return x'Px/2 + q'x + constant."""
        at = self.point(x)
        return float(at @ self.P @ at / 2 + self.q @ at + self.constant)

    def gradient(self, x: npt.ArrayLike) -> Array:
        """Return Px + q."""
        return np.asarray(self.P @ self.point(x) + self.q)

    def inequalities(self, x: npt.ArrayLike) -> Array:
        """Return A_ub x - b_ub."""
        return np.asarray(self.A_ub @ self.point(x) - self.b_ub)

    def inequality_gradients(self, x: npt.ArrayLike) -> Array:
        """Return A_ub."""
        return self.A_ub

    def equalities(self, x: npt.ArrayLike) -> Array:
        """Return A_eq x - b_eq."""
        return np.asarray(self.A_eq @ self.point(x) - self.b_eq)

    def equality_gradients(self, x: npt.ArrayLike) -> Array:
        """Return A_eq."""
        return self.A_eq

    def scales(self, x: Array) -> RoundingScales:
        """Sum absolute terms."""
        size = np.abs(x)
        pull = np.abs(self.P) @ size
        length = max(float(size.max()), self.length)
        return RoundingScales(
            float(pull @ size / 2 + np.abs(self.q) @ size + abs(self.constant)),
            float((pull + np.abs(self.q)).max()),
            np.abs(self.A_ub).sum(axis=1) * length,
            np.abs(self.A_eq).sum(axis=1) * length,
        )

    @cached_property
    def length(self) -> float:
        """How long x is, by the numbers of the program: where constraints are, and the valley."""
        right = np.concatenate([self.b_ub / lengths(self.A_ub), self.b_eq / lengths(self.A_eq)])
        size = float(np.abs(self.P).max())
        valley = float(np.abs(self.q).max()) / size if size > 0 else 0.0
        return max(float(np.abs(right).max(initial=0.0)), valley)

    def infimum(self, lam: Array, nu: Array) -> DualValue:
        """Write the minimum over x in closed form."""
        values, vectors = self.spectrum
        c = self.q + self.A_ub.T @ lam + self.A_eq.T @ nu
        terms = (
            np.abs(self.q) + np.abs(self.A_ub.T) @ np.abs(lam) + np.abs(self.A_eq.T) @ np.abs(nu)
        )
        along = vectors.T @ (self.units * c)
        flat = values <= _ROUNDING * max(float(np.abs(values).max()), 0.0)
        falls = np.abs(along[flat]).max(initial=0.0) > 1e-9 * (self.units * terms).max()
        if not self.convex or falls:
            return DualValue(-np.inf, None, exact=True)
        steps = np.where(flat, 0.0, along / np.where(flat, 1.0, values))
        fixed = lam @ self.b_ub + nu @ self.b_eq
        value = self.constant - fixed - along @ steps / 2
        return DualValue(float(value), -self.units * (vectors @ steps), exact=True)

    def slater(self) -> SlaterPoint:
        """Maximize the smallest slack by a linear program.

        Linear constraints do without: a feasible point is enough for strong duality.

        Returns
        -------
        SlaterPoint
        """
        x, slack, _, _ = self.deepest()
        if slack < 0:
            return SlaterPoint(None, slack, False, "no point satisfies all constraints")
        margin = float(-self.inequalities(x).max(initial=-np.inf))
        if slack > 0:
            statement = "Slater's condition holds: all inequalities are strict at this point"
        else:
            statement = (
                "no point has all inequalities strict; they are linear, so a feasible point is "
                "enough for strong duality"
            )
        return SlaterPoint(x, margin, slack > 0, statement)

    def deepest(self) -> tuple[Array, float, Array, Array]:
        """Return the point of largest slack and zeros, or the least relaxation and multipliers.

        Rows have length one, so that slack is a distance. First the constraints are relaxed until
        they can be met: if that takes more than rounding, slack is negative and the multipliers
        add them up to 0 <= slack. Else the inequalities are tightened, by no more than their
        numbers.
        """
        of_ub, of_eq = lengths(self.A_ub), lengths(self.A_eq)
        A, b = self.A_ub / of_ub[:, None], self.b_ub / of_ub
        E, e = self.A_eq / of_eq[:, None], self.b_eq / of_eq
        unit = self.length or 1.0
        b, e = b / unit, e / unit
        free = [(None, None)] * self.n
        cost = np.append(np.zeros(self.n), 1.0)
        rows = np.vstack([A, E, -E])
        relaxed = np.column_stack([rows, -np.ones(len(rows))])
        found = linear_program(cost, relaxed, np.concatenate([b, e, -e]), None, None, free)
        if found.x[-1] > _ROUNDING:
            prices = np.maximum(-np.asarray(found.ineqlin.marginals), 0.0)
            lam, up, down = np.split(prices, [len(A), len(A) + len(E)])
            return found.x[:-1] * unit, -float(found.x[-1]) * unit, lam / of_ub, (up - down) / of_eq
        none = np.zeros(len(A)), np.zeros(len(E))
        tight = np.column_stack([A, np.ones(len(A))])
        kept = np.column_stack([E, np.zeros(len(E))])
        try:
            inside = linear_program(-cost, tight, b, kept, e, free, most=1.0)
        except ArithmeticError:  # feasible by no more than rounding
            return found.x[:-1] * unit, 0.0, *none
        return inside.x[:-1] * unit, float(inside.x[-1]) * unit, *none

    def falls(self) -> bool:
        """Return whether the objective is unbounded below along a feasible direction."""
        largest = max(float(np.abs(self.q).max()), 1e-300)
        size = max(float(np.abs(self.P).max()), 1e-300)
        found: Any = linprog(
            self.q / largest,
            A_ub=self.A_ub / lengths(self.A_ub)[:, None],
            b_ub=np.zeros(self.n_inequalities),
            A_eq=np.vstack([self.A_eq, self.P / size]),
            b_eq=np.zeros(self.n_equalities + self.n),
            bounds=(-1, 1),
        )
        return bool(found.status == 0 and found.fun < -1e-7)

    def solve(self, tol: float = 1e-6) -> ProgramSolution:
        """Solve by an active-set method, and verify the solution from the program alone.

        Parameters
        ----------
        tol : float
            Relative tolerance for zero in the verification.

        Returns
        -------
        ProgramSolution
            Of status OPTIMAL, INFEASIBLE or UNBOUNDED; INACCURATE or GAP where numbers are too far
            apart for double precision.
        """
        if not self.convex:
            raise ValueError(
                "P is not positive semidefinite, so the dual function is minus infinity and a "
                "local minimum has no certificate; for a few variables use a SmoothProgram with "
                "bounds, which is solved by a grid search"
            )
        scaled = self.in_units
        z, slack, lam, nu = scaled.deepest()
        if slack < 0:
            judged = self.judge(self.units * z, lam, nu, tol)
            return replace(judged, primal=np.inf, dual=np.inf, status=ProgramStatus.INFEASIBLE)
        if scaled.falls():
            judged = self.judge(self.units * z, (), (), tol)
            return replace(judged, primal=-np.inf, dual=-np.inf, status=ProgramStatus.UNBOUNDED)
        z, lam, nu = solve_quadratic(scaled)
        return self.judge(self.units * z, lam, nu, tol)

    def rows(
        self, kind: str, A: npt.ArrayLike | None, b: npt.ArrayLike | None
    ) -> tuple[Array, Array]:
        """Require as many rows as right-hand sides."""
        if (A is None) != (b is None):
            raise ValueError(f"A_{kind} and b_{kind} come together")
        if A is None or b is None:
            return np.zeros((0, self.n)), np.zeros(0)
        left, right = np.atleast_2d(finite(f"A_{kind}", A)), finite(f"b_{kind}", b).ravel()
        if left.shape != (len(right), self.n):
            raise ValueError(
                f"A_{kind} must have {len(right)} rows like b_{kind} and {self.n} columns like q, "
                f"got {left.shape}"
            )
        return left, right


def linear_program(
    cost: Array,
    A_ub: Array,
    b_ub: Array,
    A_eq: Array | None,
    b_eq: Array | None,
    free: list[tuple[None, None]],
    most: float | None = None,
) -> Any:
    """Solve a linear program whose last variable is not negative."""
    bounds = [*free, (0.0, most)]
    for method in ("highs", "highs-ds", "highs-ipm"):  # rarely one of them is at a loss
        found: Any = linprog(cost, A_ub, b_ub, A_eq, b_eq, bounds=bounds, method=method)
        if found.status == 0:
            return found
    raise ArithmeticError(f"the feasibility problem could not be solved: {found.message}")


def lengths(rows: Array) -> Array:
    """Return the length of each row, one for rows of zeros."""
    found = np.linalg.norm(rows, axis=1)
    return np.where(found > 0, found, 1.0)


def finite(name: str, values: npt.ArrayLike) -> Array:
    """Require finite numbers."""
    found = np.asarray(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must hold finite numbers")
    return found


# --- least distance ------------------------------------------------------------------------------
#
# Quadratic programs by least distances (Lawson and Hanson 1974, chapter 23): finitely many steps.
#
# With P = LL' the program asks for the point nearest to the origin in a polyhedron, whose
# multipliers solve a nonnegative least-squares problem. Directions in which P is flat get a small
# curvature around the last solution (proximal steps), which vanishes as the solutions converge.

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
    """Minimize y'Py/2 + c'y subject to Ay <= b."""
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
    """Minimize y'My/2 + c'y subject to Ay <= b, M positive definite."""
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
    """Solve the conditions with the active constraints as equations; keep the better point."""
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
