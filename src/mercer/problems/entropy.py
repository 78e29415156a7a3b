"""The distribution closest to a prior that has given expectations, on finitely many points.

min KL(p | prior) subject to sum_i p_i f(x_i) = b. The answer has Gibbs' form
p_i = prior_i exp(l'f(x_i)) / Z, and the multipliers l are those of the most likely member of that
family: the dual is max l'b - ln Z(l). Targets on the border of what is possible push points out:
there p is of Gibbs' form on the points that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._types import Array


class InfeasibleError(ValueError):
    """No distribution has the expectations asked for.

    Attributes
    ----------
    direction : (m,) array
        y with y'f(x) < y'b at every point: what separates the targets from all points.
    margin : float
        The least of y'b - y'f(x).
    """

    def __init__(self, message: str, direction: Array, margin: float) -> None:
        super().__init__(message)
        self.direction = direction
        self.margin = margin

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.direction, self.margin)


@dataclass(frozen=True, eq=False)
class GibbsAnswer:
    """An answer to `Expectations`.

    Attributes
    ----------
    multipliers : (m,) array
        l, one for each expectation.
    probabilities : (n,) array
        p.
    direction : (m,) array
        Where points are pushed out: y with y'f(x) = y'b at points that stay and y'f(x) < y'b at
        the others; zero if all stay.
    """

    multipliers: Array
    probabilities: Array
    direction: Array


@dataclass(frozen=True, eq=False)
class Expectations:
    """The question which distribution with given expectations is closest to the prior.

    Attributes
    ----------
    features : (n, m) array
        f(x_i) in rows.
    targets : (m,) array
        The expectations b.
    prior : (n,) array
        A distribution; points of prior zero stay out.
    """

    features: Array
    targets: Array
    prior: Array

    def __post_init__(self) -> None:
        n, m = self.features.shape
        if self.targets.shape != (m,) or self.prior.shape != (n,):
            raise ValueError(
                f"Expectations: {n} points and {m} features need {m} targets and a prior of {n} "
                f"numbers, not {self.targets.shape} and {self.prior.shape}"
            )

    @cached_property
    def scale(self) -> Array:
        """The largest distance of a feature from its target, one where all are on target: (m,)."""
        used = self.features[self.prior > 0] - self.targets
        largest = np.abs(used).max(axis=0, initial=0.0)
        return np.where(largest > 0, largest, 1.0)

    @cached_property
    def gaps(self) -> Array:
        """(f(x_i) - b) / scale: (n, m)."""
        return np.asarray((self.features - self.targets) / self.scale)

    @cached_property
    def log_prior(self) -> Array:
        """Give ln prior, -inf where it is zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.prior / self.prior.sum()))


def tilted(log_prior: Array, gaps: Array, multipliers: Array) -> tuple[float, Array]:
    """Give ln sum_i prior_i exp(l'g_i), and the distribution in proportion to its terms."""
    scores = log_prior + gaps @ multipliers
    top = scores.max()
    terms = np.exp(scores - top)
    mass = terms.sum()
    return float(top + np.log(mass)), np.asarray(terms / mass)
