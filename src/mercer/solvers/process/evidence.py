"""The marginal likelihood of a Gaussian process, and its gradient: n^3 once, n^2 a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import Expression
from mercer.gram import Source
from mercer.kernels.parameter_slopes import (
    DistanceSlope,
    FormulaSlope,
    MappedSlope,
    ParameterSlope,
)
from mercer.kernels.slopes import columns_of_distance
from mercer.problems.process.evidence import Evidence, LogParameters, log_likelihood
from mercer.problems.process.kernel_parameters import KernelParameters
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.kernel_learning.bounded_descent import bounded_descent
from mercer.solvers.kernel_learning.ridge_slopes import by_scales, finite_slopes, inverted


@dataclass(frozen=True)
class EvidenceAscent(Solver):
    """L-BFGS-B on the logarithms of the parameters; the most likely end of all starts is kept.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be: of the log-likelihood
        of one row and target on the average, by the logarithm of a parameter.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = Evidence

    tol: float = 1e-5
    max_iter: int = 200

    def run(self, problem: Evidence, watch: Watch, start: Any = None) -> Solution:
        """Ascend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        unit = 1.0 / (float(problem.row_weights.sum()) * problem.targets.shape[1])

        def measure(logs: Array) -> tuple[float, Array]:
            value, gradient = evidence(problem, logs)
            return -unit * value, -unit * gradient

        found = bounded_descent(problem, measure, watch, self.tol, self.max_iter, starts)
        value = LogParameters(found.best)
        return report(self, value, found.status, found.steps, watch, found.detail)


def evidence(problem: Evidence, logs: Array) -> tuple[float, Array]:
    """Return the log-likelihood of all targets, and its gradient by the logarithms.

    Minus infinity, with a gradient of zero, where K + noise is not positive definite to working
    precision.

    Parameters
    ----------
    problem : Evidence
        What is asked.
    logs : (p,) array
        Logarithms of the parameters.
    """
    noise, inner = problem.noise_at(logs), logs[: problem.kernel.size]
    formula = problem.kernel.formula(inner)
    K = Source(formula, problem.X).pairs().dense()
    found = inverted(problem, K, noise)
    if found is None:
        return -np.inf, np.zeros(len(logs))
    t = problem.targets.shape[1]
    squares = float(np.sum(found.coef * problem.targets))
    s = problem.row_weights
    value = log_likelihood(squares, found.log_determinant, s, noise, problem.bias, t)
    if not np.isfinite(value):
        return -np.inf, np.zeros(len(logs))
    M = found.G  # dvalue = <M, dC>
    M *= -t
    M += found.coef @ found.coef.T
    M *= 0.5
    gradient = contracted(problem.kernel, inner, M, problem.X, {formula: K})
    if problem.learns_noise:
        copies = float(s.sum()) - len(s)
        gradient = np.append(gradient, noise * np.sum(M.diagonal() / s) - 0.5 * t * copies)
    return value, gradient


def contracted(
    kernel: KernelParameters, logs: Array, M: Array, X: Points, known: dict[Expression, Array]
) -> Array:
    """Return <M, dK> for the logarithm of each parameter, M symmetric.

    Parameters
    ----------
    kernel : KernelParameters
        The kernel, and which of its parameters are learnt.
    logs : (p,) array
        Where.
    M : (n, n) array
        What is multiplied by.
    X : Points
        Rows.
    known : dict of Expression to (n, n) array
        Matrices that were evaluated before.
    """
    parts = [contraction(slope, M, X, known) for slope in kernel.slopes(logs)]
    return np.concatenate(parts) if parts else np.zeros(0)


@singledispatch
def contraction(
    slope: ParameterSlope, M: Array, X: Points, known: dict[Expression, Array]
) -> Array:
    """Return <M, dK> for each entry of one parameter."""
    raise TypeError(f"no contraction for {type(slope).__name__}")


@contraction.register
def _(slope: FormulaSlope, M: Array, X: Points, known: dict[Expression, Array]) -> Array:
    bent = known.get(slope.outer)
    if bent is None:
        bent = choose_backend().pairs(slope.outer, X, None, np.float64).dense()
        bent = np.where(np.isfinite(bent), bent, 0.0)
    return np.array([np.vdot(M, bent)])


@contraction.register
def _(slope: DistanceSlope, M: Array, X: Points, known: dict[Expression, Array]) -> Array:
    bent = finite_slopes(slope.outer, X)
    bent *= M
    raw = columns_of_distance(slope.leaf, X)
    stretch: Any = slope.leaf.steps[-1]
    return by_scales(bent, raw, 1.0 / stretch.factors.array, slope.leaf)


@contraction.register
def _(slope: MappedSlope, M: Array, X: Points, known: dict[Expression, Array]) -> Array:
    backend = choose_backend()
    bent = slope.function(backend.pairs(slope.inner, X, None, np.float64).dense())
    bent = bent * backend.pairs(slope.outer, X, None, np.float64).dense()
    return np.array([np.vdot(M, np.where(np.isfinite(bent), bent, 0.0))])
