"""The mode of a latent function f = F w with w ~ N(0, I), by Newton's method on the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.host_matrix import HostFactor
from mercer.backends.lapack import interruptible
from mercer.backends.stored import Factor
from mercer.points import to_dense
from mercer.problems.process.classification import ProcessClassification
from mercer.problems.risk.smooth_risk import SmoothRisk
from mercer.solvers.base import Watch
from mercer.solvers.dual_form import dual_form
from mercer.solvers.process.mode import HALVINGS, Mode, likelihood, log_likelihood
from mercer.solvers.risk.newton import NewtonRisk
from mercer.solvers.weighted_gram import weighted_gram

_EPS = float(np.finfo(np.float64).eps)
# n D^2 of a matrix of second derivatives, of which Newton's steps take eight or so: beyond, the
# solvers of logistic regression, which avoid it, find the mode, and one is made there.
_MANY = 1e9


def feature_mode(problem: ProcessClassification, column: int, tol: float, max_iter: int) -> Mode:
    """Return the mode of sum s log(1 / (1 + exp(-sign F w))) - |w|^2 / 2.

    Parameters
    ----------
    problem : ProcessClassification
        With K = F F'.
    column : int
        Which question.
    tol : float
        What may be left of the gradient, over what pulls on the function.
    max_iter : int
        Largest number of steps.
    """
    F: Any = problem.gram.factor
    signs, s, D = problem.signs[:, column], problem.row_weights, F.shape[1]
    w, steps = np.zeros(D), 0
    if len(s) * float(D) ** 2 > _MANY:
        w, steps = _begun(problem.risk(column), 1e-2 * tol, max_iter)
    f = np.asarray(F @ w)
    value = _objective(w, f, signs, s)
    lengths = np.sqrt(problem.gram.diag())
    while True:
        deadline.check()
        gradient, root = likelihood(f, signs, s)
        factor = _factor(F, root)
        uphill = np.asarray(F.T @ gradient) - w
        pull = float(lengths @ np.abs(gradient))
        left = float(np.linalg.norm(uphill)) / pull if pull > 0 else 0.0
        if left <= 1e-2 * tol or steps >= max_iter or factor is None:
            break
        moved = _step(w, f, F, factor.solve(uphill[:, None])[:, 0], signs, s, value)
        if moved is None:
            break
        w, f, value = moved
        steps += 1
    coef = dual_form(F, None, s, False, gradient[:, None], w[:, None])[:, 0]
    determinant = np.nan if factor is None else float(np.sum(np.log(factor.diagonal())))
    return Mode(coef, f, root, factor, value - determinant, left, max(steps, 1), w)


def _begun(risk: SmoothRisk, tol: float, max_iter: int) -> tuple[Array, int]:
    """Return weights near the mode, as logistic regression finds them, and its steps."""
    found = NewtonRisk(tol=tol, max_iter=max_iter).run(risk, Watch())
    return np.array(found.value.weights[:, 0]), min(found.iterations, max_iter - 1)


def _factor(F: Any, root: Array) -> Factor | None:
    """Return the factor of I + F'W F; by a QR decomposition where squares lose too much.

    None where features are no numbers.
    """
    normal = weighted_gram(F, root**2)
    found = choose_backend().stored(normal).cholesky(np.ones(len(normal)))
    if found is not None or not np.isfinite(normal).all():
        return found
    R = interruptible(
        np.linalg.qr, np.vstack([root[:, None] * to_dense(F), np.eye(len(normal))]), mode="r"
    )
    signs = np.where(R.diagonal() < 0, -1.0, 1.0)
    return HostFactor(np.ascontiguousarray((R * signs[:, None]).T))


def _step(
    w: Array, f: Array, F: Any, way: Array, signs: Array, s: Array, value: float
) -> tuple[Array, Array, float] | None:
    """Go the whole Newton step, or half of it, ...; None where nothing is gained but rounding."""
    ahead, share = np.asarray(F @ way), 1.0
    for _ in range(HALVINGS):
        new_w, new_f = w + share * way, f + share * ahead
        found = _objective(new_w, new_f, signs, s)
        if found >= value - 4 * _EPS * abs(value):
            return None if np.array_equal(new_w, w) else (new_w, new_f, found)
        share /= 2
    return None


def _objective(w: Array, f: Array, signs: Array, s: Array) -> float:
    return log_likelihood(f, signs, s) - 0.5 * float(w @ w)
