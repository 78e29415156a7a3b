"""Classes by the sign of a Gaussian process, its posterior taken for Gaussian at its mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.problems.kernel_learning.bounded import FLAT, BoundedSearch
from mercer.problems.process.kernel_parameters import KernelParameters
from mercer.problems.ridge.linear_system import Coefficients
from mercer.problems.risk.losses import LogLoss
from mercer.problems.risk.smooth_risk import SmoothRisk


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
