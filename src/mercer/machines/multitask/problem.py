"""Problems and answers of multi-task Gaussian processes with covariance B[t, u] k(x, z).

With targets Y of n rows and T tasks, the covariance of all readings is B (x) K + noise I (x) S^-1.
Where every task was read at every row, nothing of size n T is needed: with S^1/2 K S^1/2 =
U diag(l) U' and B = V diag(m) V' it is diagonal, l_i m_j + noise, in the basis V (x) U.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machines.gaussian_process.problem import KernelParameters
from mercer.solvers.bounded_descent import FLAT, BoundedSearch


@dataclass(frozen=True, eq=False)
class TaskEvidence(BoundedSearch):
    """Covariance of the tasks, parameters of the kernel, and noise of the largest likelihood.

    Attributes
    ----------
    X : Points
        Rows.
    kernel : KernelParameters
        The kernel of the rows, and which of its parameters are learnt.
    targets : (n, T) array
        Y; NaN where a task was not read.
    row_weights : (n,) array
        Positive: how often each row was read.
    tasks : (T, T) array
        B, where it is not learnt.
    learns_tasks : bool
        Whether it is: as W W' with W lower triangular.
    noise : float
        Variance of the noise, where it is not learnt.
    learns_noise : bool
        Whether it is.
    lower, upper : (p,) array
        Bounds: on the entries of W, then on the logarithms of the parameters of the kernel, then of
        the noise.
    starts : (k, p) array
        Where to start from.
    flat : float
        The slope of the log-likelihood of one row that counts as none.
    """

    X: Points
    kernel: KernelParameters
    targets: Array
    row_weights: Array
    tasks: Array
    learns_tasks: bool
    noise: float
    learns_noise: bool
    lower: Array
    upper: Array
    starts: Array
    flat: float = FLAT

    @property
    def entries(self) -> int:
        """Count the entries of W that are learnt."""
        count = self.targets.shape[1]
        return count * (count + 1) // 2 if self.learns_tasks else 0

    def factor_at(self, place: Array) -> Array:
        """Return W."""
        count = self.targets.shape[1]
        W = np.zeros((count, count))
        W[np.tril_indices(count)] = place[: self.entries]
        return W

    def tasks_at(self, place: Array) -> Array:
        """Return B."""
        if not self.learns_tasks:
            return self.tasks
        W = self.factor_at(place)
        return np.asarray(W @ W.T)

    def logs_at(self, place: Array) -> Array:
        """Return the logarithms of the parameters of the kernel."""
        return np.asarray(place[self.entries : self.entries + self.kernel.size])

    def kernel_at(self, place: Array) -> Kernel:
        """Return the kernel."""
        return self.kernel.at(self.logs_at(place))

    def noise_at(self, place: Array) -> float:
        """Return the variance of the noise."""
        return float(np.exp(place[-1])) if self.learns_noise else self.noise


@dataclass(frozen=True, eq=False)
class TaskPosterior:
    """An answer to `TaskRegression`.

    Attributes
    ----------
    coef : (n, T) array
        A with K A B + noise S^-1 A = Y: the mean is k(z, X) A B. Zero where a task was not read.
    basis : (n, n) array or None
        U, where every task was read at every row.
    values : (n,) array or None
        The eigenvalues l.
    factor : (r, r) array or None
        Lower Cholesky factor of the covariance of all r readings, task by task, where not.
    log_likelihood : float
        The logarithm of the marginal likelihood of all readings.
    logs : (p,) array or None
        What was learnt, if anything was: entries of W, and logarithms.
    weights : (D, T) array or None
        For K = F F' answered in the space of the features: F'A B, the means. The basis is then that
        of F'SF, (D, D), with its eigenvalues; or the factor that of Phi'S Phi + noise I,
        (T D, T D), with features R_t (x) phi(x) of a reading of task t at x, R the symmetric root
        of B.
    """

    coef: Array
    basis: Array | None
    values: Array | None
    factor: Array | None
    log_likelihood: float
    logs: Array | None = None
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class TaskRegression:
    """y_it = f_t(x_i) + e_it with cov(f_t(x), f_u(z)) = B_tu k(x, z): the posterior of all f_t.

    Attributes
    ----------
    gram : Gram
        K of the rows.
    targets : (n, T) array
        Y; NaN where a task was not read.
    tasks : (T, T) array
        B, positive semidefinite.
    noise : float
        Variance of the noise, positive.
    row_weights : (n,) array
        Positive: how often each row was read.
    search : TaskEvidence or None
        How parameters were learnt, if they were.
    """

    gram: Gram
    targets: Array
    tasks: Array
    noise: float
    row_weights: Array
    search: TaskEvidence | None = None

    @cached_property
    def readings(self) -> Readings:
        """Return which tasks were read where."""
        return readings_of(self.targets)

    @cached_property
    def seen(self) -> Array:
        """Return which tasks were read where: (n, T) bool."""
        return ~np.isnan(self.targets)


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings that there are, task by task.

    Attributes
    ----------
    task, row : (r,) int array
        Of each.
    whole : bool
        Whether every task was read at every row.
    """

    task: Array
    row: Array
    whole: bool


def readings_of(targets: Array) -> Readings:
    """Return which entries of the targets are there."""
    seen = ~np.isnan(targets)
    task, row = np.nonzero(seen.T)
    return Readings(task, row, bool(seen.all()))


def task_root(tasks: Array) -> Array:
    """Return the symmetric root of B; eigenvalues that rounding made negative are zero.

    Parameters
    ----------
    tasks : (T, T) array
        B.
    """
    m, V = np.linalg.eigh(tasks)
    return np.asarray((V * np.sqrt(np.maximum(m, 0.0))) @ V.T)


def task_log_likelihood(
    squares: float, log_determinant: float, readings: Readings, s: Array, noise: float
) -> float:
    """Return log p(Y) from y'C^-1 y and log |C| + sum log s over the readings."""
    total = float(s[readings.row].sum())
    copies = total - len(readings.row)
    spread = log_determinant + copies * float(np.log(noise)) + total * np.log(2.0 * np.pi)
    return float(-0.5 * (squares + spread))
