"""The posterior of a Gaussian process given noisy targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.problems.process.evidence import Evidence
from mercer.problems.ridge.linear_system import Coefficients, LinearSystem


@dataclass(frozen=True, eq=False)
class ProcessPosterior:
    """An answer to `ProcessRegression`.

    Attributes
    ----------
    coef : (n, t) array
        C^-1 (y - b): the posterior mean is sum_i coef_i k(x_i, .) + b.
    intercept : (t,) array
        The biases b; zero where there is none.
    weights : (D, t) array or None
        For K = F F' answered in the space of the features: F'coef.
    factor : (m, m) array
        Lower Cholesky factor: of C = K + noise S^-1, or, where there are weights, of
        F'SF + noise I, the columns of F centred if there is a bias.
    log_likelihood : float
        The logarithm of the marginal likelihood of all targets.
    logs : (p,) array or None
        Logarithms of the parameters that were learnt, if any were.
    """

    coef: Array
    intercept: Array
    weights: Array | None
    factor: Array
    log_likelihood: float
    logs: Array | None = None

    @property
    def coefficients(self) -> Coefficients:
        """Return the mean, as ridge regression has it."""
        return Coefficients(self.coef, self.intercept, self.weights)


@dataclass(frozen=True, eq=False)
class ProcessRegression:
    """y = f(x) + b + e with f ~ GP(0, k), e ~ N(0, noise): the posterior of f + b.

    Attributes
    ----------
    gram : Gram
        K.
    targets : (n, t) array
        y; targets share kernel and noise, and are independent.
    noise : float
        Variance of the noise, positive.
    row_weights : (n,) array
        Positive: how often each row was observed.
    bias : bool
        Whether there is a constant b of flat prior.
    search : Evidence or None
        How the parameters were learnt, if they were.
    """

    gram: Gram
    targets: Array
    noise: float
    row_weights: Array
    bias: bool
    search: Evidence | None = None

    def system(self) -> LinearSystem:
        """Return the equations of the mean: those of ridge regression."""
        penalties = np.full(self.targets.shape[1], self.noise)
        return LinearSystem(self.gram, self.targets, penalties, self.row_weights, self.bias)
