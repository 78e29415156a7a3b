"""The posterior of a Gaussian process, by one Cholesky factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.host_matrix import HostFactor
from mercer.backends.lapack import interruptible
from mercer.gram import ShiftedGram
from mercer.gram.build import matrix_gram
from mercer.gram.sizes import factor_bytes
from mercer.problems import Coefficients
from mercer.problems.process.evidence import log_likelihood
from mercer.problems.process.regression import ProcessPosterior, ProcessRegression
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.cholesky import eliminate_bias, shifted_factor
from mercer.solvers.ridge.design import Design
from mercer.solvers.ridge.least_norm import least_norm
from mercer.solvers.ridge.primal import Primal

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


class _Found(NamedTuple):
    """Mean, factor, and what the likelihood is made of."""

    mean: Coefficients
    factor: Array
    squares: float
    log_determinant: float
    status: Status


@dataclass(frozen=True)
class ExactPosterior(Solver):
    """Factor K + noise S^-1, or, for K = F F', F'SF + noise I; nothing is added to the diagonal.

    The mean is that of kernel ridge regression with the noise as its penalty, by the same steps. A
    matrix that is singular to working precision gets the mean of least norm, and the factor of the
    nearest matrix that is not; the status says so.
    """

    answers = ProcessRegression

    def run(self, problem: ProcessRegression, watch: Watch, start: Any = None) -> Solution:
        """Factor and solve."""
        found = _dual(problem) if problem.gram.factor is None else _primal(problem)
        watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
        likelihood = log_likelihood(
            found.squares,
            found.log_determinant,
            problem.row_weights,
            problem.noise,
            problem.bias,
            problem.targets.shape[1],
        )
        mean = found.mean
        value = ProcessPosterior(mean.coef, mean.intercept, mean.weights, found.factor, likelihood)
        return report(self, value, found.status, 1, watch)


def _dual(problem: ProcessRegression) -> _Found:
    system, n = problem.system(), problem.gram.shape[0]
    require_memory(
        factor_bytes(n),
        f"the Cholesky factor of {n} points",
        "Use a kernel with a small explicit feature map (Linear, low-degree Polynomial), or fewer "
        "rows.",
        held=problem.gram.nbytes,
    )
    shifted = ShiftedGram(problem.gram, system.shift(0))
    factor = shifted_factor(shifted)
    singular = factor is None
    factor = HostFactor(_nearest_factor(shifted)) if factor is None else factor
    right = np.column_stack([problem.targets, np.ones(n)])
    solved = factor.solve(right)
    L = factor.lower()
    coef, intercept = eliminate_bias(solved, problem.bias)
    squares, status = float(np.sum(problem.targets * coef)), Status.SOLVED
    if singular:
        coef, intercept, status = least_norm(system, np.arange(problem.targets.shape[1]))
        status = Status.SINGULAR if status is Status.SOLVED else status
    log_determinant = 2.0 * float(np.sum(np.log(L.diagonal())))
    log_determinant += float(np.sum(np.log(problem.row_weights)))
    if problem.bias:
        log_determinant += float(np.log(max(solved[:, -1].sum(), _TINY)))
    return _Found(Coefficients(coef, intercept), L, squares, log_determinant, status)


def _nearest_factor(gram: ShiftedGram) -> Array:
    """Return the factor of the nearest matrix without eigenvalues at the level of rounding."""
    values, vectors = choose_backend().eigh(gram.dense())
    floor = len(values) * _EPS * float(np.abs(values).max(initial=_TINY))
    half = vectors * np.sqrt(np.maximum(values, floor))
    R = interruptible(np.linalg.qr, half.T, mode="r")
    return np.ascontiguousarray((R * np.where(R.diagonal() < 0, -1.0, 1.0)[:, None]).T)


def _primal(problem: ProcessRegression) -> _Found:
    ended = Primal().run(problem.system(), Watch())
    design = Design.of(problem.gram, problem.row_weights, problem.bias)
    normal = matrix_gram(design.normal_matrix())
    shifted = ShiftedGram(normal, problem.noise)
    factor, status = shifted_factor(shifted), ended.status
    if factor is None:
        status = Status.SINGULAR
    L = _nearest_factor(shifted) if factor is None else factor.lower()
    mean: Coefficients = ended.value
    s, noise, (n, width) = problem.row_weights, problem.noise, problem.gram.factor.shape
    weights: Any = mean.weights
    residual = design.center(problem.targets) - design.push(weights)
    # y'Gy as a sum of squares
    squares = float(np.sum(s[:, None] * residual**2) / noise + np.sum(weights**2))
    log_determinant = 2.0 * float(np.sum(np.log(L.diagonal())))
    log_determinant += (n - width) * float(np.log(noise))
    if problem.bias:
        log_determinant += float(np.log(s.sum()) - np.log(noise))
    return _Found(mean, L, squares, log_determinant, status)
