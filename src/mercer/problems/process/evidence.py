"""Parameters of a Gaussian process for which the targets are most likely.

With C = K + noise S^-1 (S the row weights), n rows of total weight N and t targets,

    -2 log p(Y) = tr Y'C^-1 Y + t (log |C| + sum log s + (N - n) log noise + N log 2 pi),

which is the likelihood of the repeated rows. A bias of flat prior adds t log 1'C^-1 1, takes one
log 2 pi off, and puts G = C^-1 - u u'/1'u, u = C^-1 1, in the place of C^-1.

With m landmarks z the kernel of their features, Q = K(X, z) K(z, z)^-1 K(z, X), stands for K, and
t tr S(K - Q) / (2 noise) is taken off: the variational bound of Titsias (2009), which is never
above log p(Y) with K itself. Without that term the search would prefer parameters of which the
landmarks explain nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.kernels import Kernel
from mercer.problems.kernel_learning.bounded import FLAT, BoundedSearch
from mercer.problems.process.kernel_parameters import KernelParameters


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
