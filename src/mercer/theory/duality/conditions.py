"""The Karush-Kuhn-Tucker conditions, measured one by one and named."""

from __future__ import annotations

from dataclasses import dataclass

_NAMES = {
    "stationarity": "the forces balance: grad f + sum lam grad g + sum nu grad h = 0",
    "inequalities": "primal feasibility: g <= 0",
    "equalities": "primal feasibility: h = 0",
    "signs": "dual feasibility: lam >= 0",
    "slackness": "complementary slackness: lam g = 0",
}


@dataclass(frozen=True)
class KKTConditions:
    """How far a point and its multipliers are from the optimality conditions.

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
        What is taken for zero.
    convex : bool
        Whether the program is convex: then the conditions prove the optimum.
    """

    stationarity: float
    inequalities: float
    equalities: float
    signs: float
    slackness: float
    tol: float
    convex: bool

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
        """What follows, in words."""
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
