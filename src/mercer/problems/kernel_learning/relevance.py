"""Which features matter? One scale for each, by the leave-one-out error or the likelihood of ridge.

With K of the scales, C = K + penalty S^-1 (S the row weights) and G = C^-1 (G - u u'/1'u, u = G 1,
with a bias), the coefficients are a = G y and dG = -G dC G. Both measures have slopes of the form
<M, dC> for one matrix M, whatever the parameter is:

leave-one-out
    E = sum_i s_i (a_i / k_i)^2 / sum s, k_i = G_ii for rows that count once:
    M = G diag(c) G - (a (G v)' + (G v) a')/2 with v_i = 2 s_i a_i / k_i^2 / sum s and
    c_i = v_i a_i / k_i;
likelihood
    of y under a Gaussian process with covariance sigma^2 C, sigma^2 at its best (and a constant
    mean integrated out, with a bias): M = (G - a a' / sigma^2) / 2 for each target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.array_types import Array, Points
from mercer.expression import Expression, Statistic
from mercer.problems.kernel_learning.bounded import BoundedSearch


@dataclass(frozen=True, eq=False)
class Inverted:
    """C inverted at some scales and penalty.

    Attributes
    ----------
    G : (n, n) array
        The inverse of C, bordered by the bias.
    coef : (n, t) array
        a = G y.
    penalty : float
        In C.
    log_determinant : float
        log |C| + sum log s + log 1'C^-1 1 (the last with a bias).
    """

    G: Array
    coef: Array
    penalty: float
    log_determinant: float


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of a fit, and what is needed for its slopes.

    Attributes
    ----------
    value : float
        What is minimised: free of the units of the targets.
    M : (n, n) array
        The slope in C: dvalue = <M, dC>.
    direct : float
        The slope in the penalty that does not come through C.
    """

    value: float
    M: Array
    direct: float


@dataclass(frozen=True)
class RidgeMeasure(ABC):
    """How a ridge fit is judged while its scales are learnt."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, problem: Relevance, found: Inverted) -> Measured:
        """Measure."""

    @abstractmethod
    def reported(self, problem: Relevance, value: float) -> float:
        """Turn what is minimised into what people know it by."""


class LeaveOneOut(RidgeMeasure):
    """The logarithm of the mean squared leave-one-out error."""

    name = "loo"

    def __call__(self, problem: Relevance, found: Inverted) -> Measured:
        """Measure the errors of fits without one copy of each row."""
        s, a, p = problem.row_weights[:, None], found.coef, found.penalty
        more = np.maximum(s - 1.0, 0.0)
        stiff = more / p + found.G.diagonal()[:, None] / np.maximum(1.0, s)
        error = float(np.sum(s * (a / stiff) ** 2) / s.sum())
        v = 2.0 * s * a / stiff**2 / s.sum()
        c = np.sum(v * a / stiff, axis=1)
        pulled = found.G @ v
        M = (found.G * (c / np.maximum(1.0, s[:, 0]))) @ found.G
        for t in range(a.shape[1]):
            cross = np.outer(a[:, t], pulled[:, t])
            M -= 0.5 * (cross + cross.T)
        return Measured(float(np.log(error)), M / error, float(c @ more[:, 0]) / p**2 / error)

    def reported(self, problem: Relevance, value: float) -> float:
        """Return the mean squared error."""
        return float(np.exp(value))


class Likelihood(RidgeMeasure):
    """Minus the logarithm of the marginal likelihood, of one row and target on the average."""

    name = "likelihood"

    def __call__(self, problem: Relevance, found: Inverted) -> Measured:
        """Measure how likely the targets are."""
        total, targets = float(problem.row_weights.sum()), found.coef.shape[1]
        free = total - problem.bias
        squares = np.sum(found.coef * problem.targets, axis=0)
        copies = total - len(problem.row_weights)
        log_likelihood = (
            targets * (found.log_determinant + copies * np.log(found.penalty))
            + float(np.sum(free * np.log(squares / free)))
            + targets * free * (1.0 + np.log(2.0 * np.pi))
        )
        unit = 0.5 / (total * targets)
        M = targets * found.G - (found.coef * (free / squares)) @ found.coef.T
        direct = unit * targets * copies / found.penalty
        return Measured(unit * log_likelihood, unit * M, direct)

    def reported(self, problem: Relevance, value: float) -> float:
        """Return the logarithm of the likelihood of all rows."""
        return float(-value * problem.row_weights.sum() * problem.targets.shape[1])


@dataclass(frozen=True, eq=False)
class Scaled:
    """An answer to `Relevance`.

    Attributes
    ----------
    scales : (d,) array
        One for each feature.
    penalty : float
        Of the ridge.
    """

    scales: Array
    penalty: float

    @property
    def logs(self) -> Array:
        """Return the logarithms, those of the scales first."""
        return np.asarray(np.log(np.append(self.scales, self.penalty)))


@dataclass(frozen=True, eq=False)
class Relevance(BoundedSearch):
    """Scales of features, and the penalty, for which ridge regression is judged best.

    Attributes
    ----------
    X : Points
        Rows.
    family : callable
        Returns a kernel's formula, and the distance in it that is stretched, for given scales.
    targets : (n, t) array
        y.
    row_weights : (n,) array
        Positive: how often each row counts.
    measure : RidgeMeasure
        How fits are judged.
    bias : bool
        Whether there is an unpenalised bias.
    lower, upper : (d + 1,) array
        Bounds on the logarithms of the scales and, last, of the penalty.
    starts : (k, d + 1) array
        Logarithms to start from.
    """

    X: Points
    family: Callable[[Array], tuple[Expression, Statistic]]
    targets: Array
    row_weights: Array
    measure: RidgeMeasure
    bias: bool
    lower: Array
    upper: Array
    starts: Array

    def at(self, logs: Array) -> Scaled:
        """Read scales and penalty from their logarithms."""
        values = np.exp(np.clip(logs, self.lower, self.upper))
        return Scaled(values[:-1], float(values[-1]))
