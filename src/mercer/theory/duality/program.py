"""Class `Program`: Lagrangian, dual function, and KKT conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.theory.bounds import check_positive

# --- program -------------------------------------------------------------------------------------
#
# A program: minimize f(x) subject to g(x) <= 0 and h(x) = 0, its Lagrangian and its dual.
#
# The Lagrangian L(x, lam, nu) = f + sum lam_i g_i + sum nu_j h_j has a multiplier for each
# constraint. Its infimum over x, the dual function, is concave in the multipliers and below f at
# every feasible point (weak duality). If its supremum d* equals the minimum p* (strong duality),
# multipliers and point prove each other optimal; p* - d* is the duality gap.

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class RoundingScales:
    """The size of the numbers that sums at a point are made of: what rounding is relative to.

    Attributes
    ----------
    objective, force : float
        Of f, and of its gradient.
    inequalities, equalities : (s,), (k,) array
        Of each constraint.
    """

    objective: float
    force: float
    inequalities: Array
    equalities: Array


@dataclass(frozen=True)
class DualValue:
    """The dual function at some multipliers.

    Attributes
    ----------
    value : float
        The infimum of the Lagrangian over x: no feasible point has a smaller objective. It may be
        minus infinity.
    x : (n,) array or None
        The minimizer; None if the infimum is not attained.
    exact : bool
        Whether it is a closed form. A numerical search may have missed a smaller value.
    """

    value: float
    x: Array | None
    exact: bool


@dataclass(frozen=True)
class SlaterPoint:
    """A point at which all inequalities hold strictly: with it a convex program has no gap.

    Attributes
    ----------
    x : (n,) array or None
        The point; None if no feasible one was found.
    margin : float
        The smallest -g_i(x).
    holds : bool
        Whether Slater's condition is shown.
    statement : str
        The conclusion in words.
    """

    x: Array | None
    margin: float
    holds: bool
    statement: str


class ProgramStatus(Enum):
    """How a program ended. The value is the sentence shown to people."""

    OPTIMAL = "optimal: the objective equals the lower bound that the multipliers prove"
    GAP = (
        "a duality gap: the best point found and the best bound differ. Either the program is not "
        "convex, or no multipliers reach the optimum (look at slater())"
    )
    INACCURATE = "no accurate solution; the conditions show the errors"
    INFEASIBLE = (
        "no point satisfies all constraints: the multipliers add them up to a contradiction"
    )
    NOT_FOUND = "no feasible point was found; that there is none is not proven"
    UNBOUNDED = "the objective falls without bound along a direction that stays feasible"


@dataclass(frozen=True)
class ProgramSolution:
    """A point and multipliers, verified from the program alone.

    Attributes
    ----------
    x : (n,) array
        The point.
    lam : (s,) array
        Multipliers of the inequalities.
    nu : (k,) array
        Multipliers of the equalities.
    primal : float
        f(x); infinite where x is not feasible.
    dual : float
        The dual function at the multipliers; minus infinity where one of `lam` is negative.
    kkt : KKTConditions
        The optimality conditions.
    status : ProgramStatus
        How it ended.
    """

    x: Array
    lam: Array
    nu: Array
    primal: float
    dual: float
    kkt: KKTConditions
    status: ProgramStatus

    @property
    def gap(self) -> float:
        """The difference between the objective and its lower bound, p - d."""
        return self.primal - self.dual if self.primal < np.inf else np.inf

    def __str__(self) -> str:
        lines = [
            self.status.value,
            f"  objective   {self.primal:.8g} at {np.array2string(self.x, precision=6)}",
            f"  dual value  {self.dual:.8g} at lam = {np.array2string(self.lam, precision=6)}, "
            f"nu = {np.array2string(self.nu, precision=6)}",
            f"  gap         {self.gap:.3g}",
        ]
        return "\n".join([*lines, str(self.kkt)])


class Program(ABC):
    """Minimize f(x) subject to g_i(x) <= 0 and h_j(x) = 0, few variables.

    Attributes
    ----------
    n : int
        Number of variables.
    n_inequalities, n_equalities : int
        Numbers of constraints of each kind, s and k.
    convex : bool
        Whether f and all g_i are convex and all h_j affine.
    """

    n: int
    n_inequalities: int
    n_equalities: int
    convex: bool

    @abstractmethod
    def objective(self, x: npt.ArrayLike) -> float:
        """Return f(x)."""

    @abstractmethod
    def gradient(self, x: npt.ArrayLike) -> Array:
        """Return the gradient of f: (n,)."""

    @abstractmethod
    def inequalities(self, x: npt.ArrayLike) -> Array:
        """Return g(x), which must not be positive: (s,)."""

    @abstractmethod
    def inequality_gradients(self, x: npt.ArrayLike) -> Array:
        """Return the gradients of g: (s, n)."""

    @abstractmethod
    def equalities(self, x: npt.ArrayLike) -> Array:
        """Return h(x), which must be zero: (k,)."""

    @abstractmethod
    def equality_gradients(self, x: npt.ArrayLike) -> Array:
        """Return the gradients of h: (k, n)."""

    @abstractmethod
    def scales(self, x: Array) -> RoundingScales:
        """Return the size of the numbers that f, its gradient, g and h are made of at x."""

    @abstractmethod
    def infimum(self, lam: Array, nu: Array) -> DualValue:
        """Minimize the Lagrangian over x."""

    @abstractmethod
    def slater(self) -> SlaterPoint:
        """Look for a point at which all inequalities hold strictly."""

    @abstractmethod
    def solve(self, tol: float = 1e-6) -> ProgramSolution:
        """Find a point and multipliers, and verify them."""

    def balance(self, x: Array, force: Array) -> Array:
        """Return the unbalanced part of a force at x; box constraints balance their part."""
        return force

    def lagrangian(
        self, x: npt.ArrayLike, lam: npt.ArrayLike = (), nu: npt.ArrayLike = ()
    ) -> float:
        """Return f(x) + sum lam_i g_i(x) + sum nu_j h_j(x).

        Parameters
        ----------
        x : (n,) array-like
            A point.
        lam, nu : (s,), (k,) array-like
            Multipliers of inequalities and equalities; none is all zeros.

        Returns
        -------
        float
        """
        at, prices, duties = self.point(x), *self.multipliers(lam, nu)
        value = self.objective(at) + prices @ self.inequalities(at)
        return float(value + duties @ self.equalities(at))

    def dual(self, lam: npt.ArrayLike = (), nu: npt.ArrayLike = ()) -> DualValue:
        """Return the dual function, the infimum of the Lagrangian over x.

        Weak duality: for lam >= 0 it is no more than f at any feasible point.

        Parameters
        ----------
        lam, nu : (s,), (k,) array-like
            Multipliers of inequalities, none negative, and of equalities; none is all zeros.

        Returns
        -------
        DualValue
        """
        prices, duties = self.multipliers(lam, nu)
        if (prices < 0).any():
            raise ValueError(
                f"lam[{int(prices.argmin())}]={prices.min():g} is negative: multipliers of "
                "inequalities must be nonnegative for the dual function to be a bound"
            )
        return self.infimum(prices, duties)

    def forces(self, x: npt.ArrayLike, lam: npt.ArrayLike = (), nu: npt.ArrayLike = ()) -> Array:
        """Return the forces on a ball at x: of the slope first, then of each wall.

        The force -grad f is balanced by a force -lam_i grad g_i of each inequality and -nu_j grad
        h_j of each equality. At an optimum their sum is zero.

        Parameters
        ----------
        x : (n,) array-like
            A point.
        lam, nu : (s,), (k,) array-like
            Multipliers.

        Returns
        -------
        (1 + s + k, n) array
            A force in each row.
        """
        at, prices, duties = self.point(x), *self.multipliers(lam, nu)
        walls = prices[:, None] * self.inequality_gradients(at)
        rails = duties[:, None] * self.equality_gradients(at)
        return -np.vstack([self.gradient(at)[None], walls, rails])

    def kkt(
        self,
        x: npt.ArrayLike,
        lam: npt.ArrayLike = (),
        nu: npt.ArrayLike = (),
        tol: float = 1e-6,
    ) -> KKTConditions:
        """Measure the Karush-Kuhn-Tucker conditions.

        Parameters
        ----------
        x : (n,) array-like
            A point.
        lam, nu : (s,), (k,) array-like
            Multipliers.
        tol : float
            Relative tolerance for zero.

        Returns
        -------
        KKTConditions
            Prints as a table.
        """
        at, prices, duties = self.point(x), *self.multipliers(lam, nu)
        forces, scales = self.forces(at, prices, duties), self.scales(at)
        strongest = max(float(np.abs(forces).max(initial=0.0)), scales.force, _TINY)
        g, h = self.inequalities(at), self.equalities(at)
        of_g, of_h = (np.maximum(s, _TINY) for s in (scales.inequalities, scales.equalities))
        left = self.balance(at, forces.sum(axis=0))
        negative = np.minimum(prices, 0.0)[:, None] * self.inequality_gradients(at)
        return KKTConditions(
            stationarity=float(np.abs(left).max(initial=0.0)) / strongest,
            inequalities=float((np.maximum(g, 0.0) / of_g).max(initial=0.0)),
            equalities=float((np.abs(h) / of_h).max(initial=0.0)),
            signs=float(np.abs(negative).max(initial=0.0)) / strongest,
            slackness=float(np.abs(prices * g).max(initial=0.0))
            / value_size(scales, prices, duties),
            tol=check_positive("tol", tol),
            convex=self.convex,
            multipliers=tol * self._turn(at, prices, duties, 4 * tol) / max(scales.force, _TINY),
        )

    def _turn(self, at: Array, lam: Array, nu: Array, far: float) -> float:
        """Return how much the force of all constraints changes as x moves by `far`.

        If no multipliers balance the gradient at the optimum, large ones do so nearby. One gradient
        that vanishes there: g = x^p, p > 1, with the multiplier -f' / g', is zero relative to g'
        for |x| <= p tol, where its force changes by more than its size as x moves by 4 tol.
        """
        if not (lam.any() or nu.any()):
            return 0.0
        here = self.forces(at, lam, nu)[1:].sum(axis=0)
        steps = far * max(float(np.abs(at).max()), 1.0) * np.eye(self.n)
        with np.errstate(all="ignore"):  # x may leave the domain of a function
            there = [self.forces(at + s, lam, nu)[1:].sum(axis=0) for s in (*steps, *-steps)]
            return float(np.abs(np.nan_to_num(there - here)).max())

    def judge(
        self,
        x: npt.ArrayLike,
        lam: npt.ArrayLike = (),
        nu: npt.ArrayLike = (),
        tol: float = 1e-6,
    ) -> ProgramSolution:
        """Verify a point and multipliers: objective, bound, duality gap and optimality conditions.

        Parameters
        ----------
        x : (n,) array-like
            A point.
        lam, nu : (s,), (k,) array-like
            Multipliers.
        tol : float
            Relative tolerance for zero.

        Returns
        -------
        ProgramSolution
            Optimal if x is feasible and the gap is closed, which is a proof for any program whose
            dual function is exact, convex or not.
        """
        at, prices, duties = self.point(x), *self.multipliers(lam, nu)
        kkt = self.kkt(at, prices, duties, tol)
        feasible = max(kkt.inequalities, kkt.equalities) <= tol
        primal = self.objective(at) if feasible else np.inf
        dual = self.believed(prices, duties, tol) if kkt.signs <= tol else -np.inf
        size = value_size(self.scales(at), prices, duties)
        if feasible and primal - dual <= tol * size:
            status = ProgramStatus.OPTIMAL
        elif feasible and dual > -np.inf:
            status = ProgramStatus.GAP
        else:
            status = ProgramStatus.INACCURATE
        return ProgramSolution(at, prices, duties, primal, dual, kkt, status)

    def believed(self, lam: Array, nu: Array, tol: float) -> float:
        """Return the dual function; minus infinity where a search ended on a slope.

        Near a minimum a value has twice the digits of its slope.
        """
        found = self.infimum(lam, nu)
        if found.exact or found.x is None:
            return found.value
        forces = self.forces(found.x, lam, nu)
        scales, reach = self.scales(found.x), max(float(np.abs(found.x).max()), 1.0)
        strongest = max(float(np.abs(forces).max()), scales.force)
        strongest = max(strongest, value_size(scales, lam, nu) / reach)
        left = np.abs(self.balance(found.x, forces.sum(axis=0))).max()
        return found.value if left <= np.sqrt(tol) * strongest else -np.inf

    def point(self, x: npt.ArrayLike) -> Array:
        """Require n finite numbers."""
        at = np.asarray(x, dtype=np.float64).ravel()
        if at.shape != (self.n,) or not np.isfinite(at).all():
            raise ValueError(f"x must be {self.n} finite numbers, got {np.shape(x)}")
        return at

    def multipliers(self, lam: npt.ArrayLike, nu: npt.ArrayLike) -> tuple[Array, Array]:
        """Require a finite number for each constraint; none stands for zeros."""
        counts = self.n_inequalities, self.n_equalities
        found = []
        for name, given, count in zip(("lam", "nu"), (lam, nu), counts, strict=True):
            prices = np.asarray(given, dtype=np.float64).ravel()
            prices = np.zeros(count) if not prices.size else prices
            if prices.shape != (count,) or not np.isfinite(prices).all():
                raise ValueError(f"{name} must be {count} finite numbers, one for each constraint")
            found.append(prices)
        return found[0], found[1]


def value_size(scales: RoundingScales, lam: Array, nu: Array) -> float:
    """Return the size of the largest part of a Lagrangian."""
    walls, rails = np.abs(lam) @ scales.inequalities, np.abs(nu) @ scales.equalities
    return max(scales.objective, float(walls), float(rails), _TINY)


# --- conditions ----------------------------------------------------------------------------------
#
# The Karush-Kuhn-Tucker conditions, measured one by one and named.

_NAMES = {
    "stationarity": "the forces balance: grad f + sum lam grad g + sum nu grad h = 0",
    "inequalities": "primal feasibility: g <= 0",
    "equalities": "primal feasibility: h = 0",
    "signs": "dual feasibility: lam >= 0",
    "slackness": "complementary slackness: lam g = 0",
    "multipliers": "multipliers exist: the force of the constraints is steady near x",
}


@dataclass(frozen=True)
class KKTConditions:
    """Residuals of the optimality conditions at a point and its multipliers.

    Each is relative: forces to the largest of them, constraints to the numbers that make them up,
    slackness to the objective. So neither units nor multiples of a constraint matter.

    Attributes
    ----------
    stationarity : float
        Of grad f + sum lam_i grad g_i + sum nu_j grad h_j.
    inequalities : float
        The largest g_i above zero.
    equalities : float
        The largest abs(h_j).
    signs : float
        The largest lam_i below zero, as a force.
    slackness : float
        The largest abs(lam_i g_i).
    tol : float
        Tolerance for zero.
    convex : bool
        Whether the program is convex: then the conditions prove the optimum.
    multipliers : float
        Change of the force of all constraints as x moves by 4 tol, relative to the slope, times
        tol: above tol where multipliers are so large because none exist at the optimum.
    """

    stationarity: float
    inequalities: float
    equalities: float
    signs: float
    slackness: float
    tol: float
    convex: bool
    multipliers: float = 0.0

    @property
    def violated(self) -> tuple[str, ...]:
        """The names of the conditions that do not hold."""
        return tuple(name for name in _NAMES if not getattr(self, name) <= self.tol)

    @property
    def ok(self) -> bool:
        """Whether all hold."""
        return not self.violated

    @property
    def statement(self) -> str:
        """The conclusion in words."""
        if not self.ok:
            return f"the conditions do not hold: {', '.join(self.violated)}"
        if self.convex:
            return "the conditions hold and the program is convex: this is an optimum"
        return (
            "the conditions hold, which is necessary for an optimum; the program is not convex, so "
            "it is not sufficient"
        )

    def __str__(self) -> str:
        width = max(map(len, _NAMES))
        lines = [
            f"  {name:<{width}}  {getattr(self, name):8.1e}  {words}"
            for name, words in _NAMES.items()
        ]
        return "\n".join([f"{self.statement} (tol {self.tol:.0e})", *lines])
