"""The distribution closest to a prior that has given expectations, on finitely many points.

min KL(p | prior) subject to sum_i p_i f(x_i) = b. The solution has Gibbs' form
p_i = prior_i exp(l'f(x_i)) / Z, and the multipliers l are those of the most likely member of that
family: the dual is max l'b - ln Z(l). Targets on the boundary of the feasible set force points to
probability zero; p then has Gibbs' form on the remaining points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from mercer.array_types import Array

_REDUNDANT = 1e-13  # of the largest deviation: accuracy of sums of deviations


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
    """A solution of `Expectations`.

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
    """Find the distribution with given expectations that is closest to the prior.

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
    def _rounded(self) -> tuple[Array, Array]:
        """Return the rounding error of each feature, and which features are on target up to it."""
        used = self.features[self.prior > 0]
        rounding = 2.0 * np.finfo(np.float64).eps  # of each, since their sum may overflow
        noise = rounding * np.abs(used).max(axis=0, initial=0.0) + rounding * np.abs(self.targets)
        return noise, np.abs(used - self.targets).max(axis=0, initial=0.0) <= noise

    @cached_property
    def scale(self) -> Array:
        """The largest distance of a feature from its target, one where all are on target: (m,)."""
        used = self.features[self.prior > 0] - self.targets
        largest = np.abs(used).max(axis=0, initial=0.0)
        return np.where(self._rounded[1], 1.0, largest)

    @cached_property
    def gaps(self) -> Array:
        """(f(x_i) - b) / scale: (n, m); zero for features that are always on target."""
        return np.where(self._rounded[1], 0.0, (self.features - self.targets) / self.scale)

    @cached_property
    def noise(self) -> Array:
        """Return the rounding error of the deviations from features and targets: (m,).

        Features with a large common part, such as years, know their differences no better.
        """
        noise, on_target = self._rounded
        return np.where(on_target, 0.0, noise / self.scale)

    @cached_property
    def log_prior(self) -> Array:
        """Return ln prior, -inf if it is zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.prior / self.prior.sum()))


def span(problem: Expectations, used: Array) -> tuple[Array, Array]:
    """Return directions in which some points differ, and what rounding may hide of expectations.

    Asked of the points, not of a distribution: where one point holds nearly all of it there is next
    to no variance in any direction, and the way back must still be found. Features that repeat
    others, up to what rounding has done to them, are left out, the least accurate ones: a feature
    that is known to a few digits must not affect the expectations of those that are known to all.

    Parameters
    ----------
    problem : Expectations
        The problem.
    used : (n,) bool array
        Points that may have positive probability.

    Returns
    -------
    ways : (m, r) array
        Independent directions of deviations in which these points differ by more than rounding;
        rows of features that repeat others are zero.
    hidden : (m,) array
        Largest deviation of expectations, in units of the features, that rounding may cause.
    """
    G, noise = problem.gaps[used], problem.noise
    unit = np.where(noise > 0, np.maximum(noise, _REDUNDANT), np.inf)
    # in units of its own rounding, so that pivots come in the order of accuracy, and
    # no later feature needs a multiple of an earlier one that is less accurate than itself
    triangle = np.linalg.qr((G - G.mean(axis=0)) / unit, mode="r")
    triangle, order = scipy.linalg.qr(triangle, mode="r", pivoting=True, check_finite=False)
    left = np.abs(np.diag(triangle))
    least = (1.0 + np.arange(len(left))) * np.sqrt(len(G))
    rank = int(np.argmin(left > least)) if (left <= least).any() else len(left)
    ways = np.zeros((len(noise), rank))
    kept = order[:rank]
    ways[kept] = scipy.linalg.solve_triangular(
        triangle[:rank, :rank], np.eye(rank), check_finite=False
    ) / unit[kept, None]  # fmt: skip
    repeats = np.ones(len(noise), dtype=bool)
    repeats[kept] = False
    return ways, np.where(repeats & (noise > 0), 2.0 * (1.0 + rank) * unit, noise)


def tilted(log_prior: Array, gaps: Array, multipliers: Array) -> tuple[float, Array]:
    """Return ln sum_i prior_i exp(l'g_i), and the distribution in proportion to its terms."""
    scores = log_prior + gaps @ multipliers
    top = scores.max()
    terms = np.exp(scores - top)
    mass = terms.sum()
    return float(top + np.log(mass)), np.asarray(terms / mass)
