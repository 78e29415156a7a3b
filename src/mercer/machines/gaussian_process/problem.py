"""Gaussian process problems: regression, classification, marginal likelihood, hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.array_types import Array, Points
from mercer.expression import Expression, bind_columns
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.kernels.derivatives import Parameter, ParameterSlope, parameters
from mercer.machines.logistic.problem import LogLoss, SmoothRisk
from mercer.machines.ridge.problem import Coefficients, LinearSystem
from mercer.solvers.bounded_descent import FLAT, BoundedSearch

# --- regression ----------------------------------------------------------------------------------
#
# The posterior of a Gaussian process given noisy targets.


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


# --- classification ------------------------------------------------------------------------------
#
# Classes by the sign of a process, whose posterior is approximated by a Gaussian at its mode.


@dataclass(frozen=True, eq=False)
class LaplaceEvidence(BoundedSearch):
    """Parameters of a kernel for which Laplace's approximation of the evidence is largest.

    Attributes
    ----------
    X : Points
        Rows.
    kernel : KernelParameters
        The kernel, and which of its parameters are learnt.
    signs : (n, c) array
        1 or -1; evidences of all columns are multiplied.
    row_weights : (n,) array
        Positive: how often each row counts.
    lower, upper : (p,) array
        Bounds on the logarithms.
    starts : (k, p) array
        Logarithms to start from.
    flat : float
        The slope of the log-likelihood of one row that counts as none.
    """

    X: Points
    kernel: KernelParameters
    signs: Array
    row_weights: Array
    lower: Array
    upper: Array
    starts: Array
    flat: float = FLAT

    def kernel_at(self, logs: Array) -> Kernel:
        """Return the kernel with these parameters."""
        return self.kernel.at(logs)


@dataclass(frozen=True, eq=False)
class LaplacePosterior:
    """An answer to `ProcessClassification`.

    Attributes
    ----------
    coef : (n, c) array
        The mode is K coef, column by column.
    roots : (n, c) array
        Roots of the curvatures W of the likelihood at the mode.
    factors : (c, n, n) or (c, D, D) array
        Lower Cholesky factors of I + W^1/2 K W^1/2; of I + F'W F where there are weights.
    log_likelihood : float
        The logarithm of the approximate evidence, over all columns.
    logs : (p,) array or None
        Logarithms of the parameters that were learnt, if any were.
    weights : (D, c) array or None
        For K = F F' answered in the space of the features: F'coef.
    """

    coef: Array
    roots: Array
    factors: Array
    log_likelihood: float
    logs: Array | None = None
    weights: Array | None = None

    def mode(self, column: int) -> Coefficients:
        """Return the mode of a column, as logistic regression has it."""
        weights = None if self.weights is None else self.weights[:, [column]]
        return Coefficients(self.coef[:, [column]], np.zeros(1), weights)


@dataclass(frozen=True, eq=False)
class ProcessClassification:
    """P(sign) = 1 / (1 + exp(-sign f(x))) with f ~ GP(0, k): the mode of f and the curvature there.

    The mode minimises sum_i s_i log(1 + exp(-sign_i f(x_i))) + |f|^2 / 2, which is convex: that of
    logistic regression with penalty 1 and no bias.

    Attributes
    ----------
    gram : Gram
        K.
    signs : (n, c) array
        1 or -1; each column is a question of its own.
    row_weights : (n,) array
        Positive: how often each row was observed.
    search : LaplaceEvidence or None
        How the parameters were learnt, if they were.
    """

    gram: Gram
    signs: Array
    row_weights: Array
    search: LaplaceEvidence | None = None

    def risk(self, column: int) -> SmoothRisk:
        """Return the convex problem of the mode of a column."""
        codes = (self.signs[:, column] > 0).astype(np.intp)
        return SmoothRisk(self.gram, codes, 2, self.row_weights, 1.0, LogLoss(), False)


# --- marginal likelihood -------------------------------------------------------------------------
#
# Parameters of a Gaussian process for which the targets are most likely.
#
# With C = K + noise S^-1 (S the row weights), n rows of total weight N and t targets,
#
#     -2 log p(Y) = tr Y'C^-1 Y + t (log |C| + sum log s + (N - n) log noise + N log 2 pi),
#
# which is the likelihood of the repeated rows. A bias of flat prior adds t log 1'C^-1 1, takes
# one log 2 pi off, and puts G = C^-1 - u u'/1'u, u = C^-1 1, in the place of C^-1.
#
# With m landmarks z the kernel of their features, Q = K(X, z) K(z, z)^-1 K(z, X), stands for K,
# and t tr S(K - Q) / (2 noise) is taken off: the variational bound of Titsias (2009), which is
# never above log p(Y) with K itself. Without that term the search would prefer parameters of
# which the landmarks explain nothing.


@dataclass(frozen=True, eq=False)
class LogParameters:
    """An answer to `Evidence`, or to `LaplaceEvidence`.

    Attributes
    ----------
    logs : (p,) array
        Logarithms of the parameters that are learnt: those of the kernel, then the noise.
    """

    logs: Array


@dataclass(frozen=True, eq=False)
class Evidence(BoundedSearch):
    """Parameters of the kernel, and the noise, of the largest marginal likelihood.

    Attributes
    ----------
    X : Points
        Rows.
    kernel : KernelParameters
        The kernel, and which of its parameters are learnt.
    targets : (n, t) array
        Y.
    row_weights : (n,) array
        Positive: how often each row counts.
    bias : bool
        Whether there is a constant of flat prior.
    noise : float
        Variance of the noise; where to start if it is learnt.
    learns_noise : bool
        Whether it is.
    lower, upper : (p,) array
        Bounds on the logarithms.
    starts : (k, p) array
        Logarithms to start from.
    flat : float
        The slope of the log-likelihood of one row that counts as none.
    landmarks : Points or None
        Rows whose features stand for the kernel; the likelihood is then bounded from below.
    """

    X: Points
    kernel: KernelParameters
    targets: Array
    row_weights: Array
    bias: bool
    noise: float
    learns_noise: bool
    lower: Array
    upper: Array
    starts: Array
    flat: float = FLAT
    landmarks: Points | None = None

    def kernel_at(self, logs: Array) -> Kernel:
        """Return the kernel with these parameters."""
        return self.kernel.at(logs[: self.kernel.size])

    def noise_at(self, logs: Array) -> float:
        """Return the variance of the noise."""
        return float(np.exp(logs[-1])) if self.learns_noise else self.noise


def observations(row_weights: Array) -> float:
    """Return how many observations the rows are, one at least: what an average is taken over.

    Errors of a log-likelihood are numbers of their own; of rows that count for next to nothing they
    would be multiples of nothing.
    """
    return max(float(row_weights.sum()), 1.0)


def log_likelihood(
    squares: float, log_determinant: float, row_weights: Array, noise: float, bias: bool, t: int
) -> float:
    """Return log p(Y) from tr Y'GY and log |C| + sum log s (+ log 1'C^-1 1 with a bias)."""
    total = float(row_weights.sum())
    copies = total - len(row_weights)
    spread = log_determinant + copies * float(np.log(noise)) + (total - bias) * np.log(2.0 * np.pi)
    return float(-0.5 * (squares + t * spread))


# --- kernel parameters ---------------------------------------------------------------------------
#
# The learned parameters of a kernel as one vector of logarithms.


@dataclass(frozen=True, eq=False)
class KernelParameters:
    """A kernel as a function of some of its parameters.

    Attributes
    ----------
    kernel : Kernel
        With the parameters to start from.
    names : tuple of str
        Those that are learnt.
    columns : list of str or None
        Names of the columns of the rows, for kernels that speak of them.
    """

    kernel: Kernel
    names: tuple[str, ...]
    columns: list[str] | None = None

    @cached_property
    def learnt(self) -> list[Parameter]:
        """Return the parameters that are learnt, at the start."""
        return [each for each in parameters(self.kernel) if each.name in self.names]

    @property
    def logs(self) -> Array:
        """Return their logarithms at the start."""
        values = [v for each in self.learnt for v in each.values]
        return np.asarray(np.log(np.array(values, dtype=np.float64)))

    @property
    def size(self) -> int:
        """Count the numbers that are learnt."""
        return sum(len(each.values) for each in self.learnt)

    def at(self, logs: Array) -> Kernel:
        """Return the kernel with these parameters."""
        values, first, settings = np.exp(logs), 0, {}
        for each in self.learnt:
            last = first + len(each.values)
            settings[each.name] = each.setting(values[first:last])
            first = last
        return self.kernel.with_params(**settings)

    def formula(self, logs: Array) -> Expression:
        """Return the formula of the kernel with these parameters."""
        return bind_columns(self.at(logs).expression(), self.columns)

    def slopes(self, logs: Array) -> list[ParameterSlope]:
        """Return how the kernel changes with the logarithm of each, there."""
        found = [each for each in parameters(self.at(logs)) if each.name in self.names]
        return [each.slope.rewritten(lambda e: bind_columns(e, self.columns)) for each in found]
