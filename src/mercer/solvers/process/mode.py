"""The mode of a latent function, by Newton's method on the coefficients of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import Factor, StoredMatrix

HALVINGS = 40
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode of one question, and the curvature there.

    Attributes
    ----------
    coef : (n,) array
        The mode is f = K coef.
    f : (n,) array
        Its values at the rows.
    root : (n,) array
        Root of the curvature of the likelihood.
    factor : Factor or None
        Of I + W^1/2 K W^1/2, or of I + F'W F where there are weights; None where K is so far from
        positive semidefinite that there is none.
    log_likelihood : float
        The logarithm of the approximate evidence.
    left : float
        Gradient minus coef, zero at the mode, over the gradient: sums of sizes, each times the
        length of its row, which bound what the certificate measures.
    steps : int
        Steps taken.
    weights : (D,) array or None
        Of features: F'coef.
    indefinite : bool
        Whether it is that of the nearest positive semidefinite matrix.
    """

    coef: Array
    f: Array
    root: Array
    factor: Factor | None
    log_likelihood: float
    left: float
    steps: int
    weights: Array | None = None
    indefinite: bool = False


def newton(
    K: StoredMatrix, signs: Array, s: Array, tol: float, max_iter: int, start: Array | None = None
) -> Mode:
    """Return the mode of sum s log(1 / (1 + exp(-sign f))) - f'K^-1 f / 2.

    Parameters
    ----------
    K : StoredMatrix
        Covariance.
    signs : (n,) array
        1 or -1.
    s : (n,) array
        Weights.
    tol : float
        What may be left of the gradient, over what pulls on the function.
    max_iter : int
        Largest number of steps.
    start : (n,) array, optional
        Coefficients to start from.
    """
    a = np.zeros(len(s)) if start is None else start
    f = _times(K, a)
    value, steps = _objective(a, f, signs, s), 0
    lengths = np.sqrt(np.maximum(K.diagonal(), 0.0))
    while True:
        deadline.check()
        gradient, root = likelihood(f, signs, s)
        factor = K.cholesky(np.ones(len(s)), root)
        pull = float(lengths @ np.abs(gradient))
        left = float(lengths @ np.abs(gradient - a)) / pull if pull > 0 else 0.0
        if left <= 1e-2 * tol or steps >= max_iter:  # Newton's last step squares what is left
            break
        moved = None
        if factor is not None:
            moved = _step(a, f, K, factor, gradient, root, signs, s, value)
        if moved is None:
            break
        a, f, value = moved
        steps += 1
    determinant = np.nan if factor is None else float(np.sum(np.log(factor.diagonal())))
    return Mode(a, f, root, factor, value - determinant, left, max(steps, 1))


def _step(
    a: Array,
    f: Array,
    K: StoredMatrix,
    factor: Factor,
    gradient: Array,
    root: Array,
    signs: Array,
    s: Array,
    value: float,
) -> tuple[Array, Array, float] | None:
    """Go the whole Newton step, or half of it, ...; None where nothing is gained but rounding."""
    b = root**2 * f + gradient
    goal = b - root * factor.solve(root * _times(K, b))
    image = _times(K, goal)
    share = 1.0
    for _ in range(HALVINGS):
        new_a, new_f = a + share * (goal - a), f + share * (image - f)
        found = _objective(new_a, new_f, signs, s)
        if found >= value - 4 * _EPS * abs(value):
            return None if np.array_equal(new_a, a) else (new_a, new_f, found)
        share /= 2
    return None


def _times(K: StoredMatrix, v: Array) -> Array:
    return K.product(v[:, None])[:, 0]


def nearest(K: StoredMatrix) -> StoredMatrix:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = choose_backend().eigh(K.dense())
    return choose_backend().stored((vectors * np.maximum(values, 0.0)) @ vectors.T)


def log_likelihood(f: Array, signs: Array, s: Array) -> float:
    """Return the logarithm of the probability of the signs."""
    return float(s @ log_expit(signs * f))


def _objective(a: Array, f: Array, signs: Array, s: Array) -> float:
    return log_likelihood(f, signs, s) - 0.5 * float(a @ f)


def likelihood(f: Array, signs: Array, s: Array) -> tuple[Array, Array]:
    """Return gradient and root of the curvature of the log-likelihood."""
    p = expit(f)
    return np.asarray(s * signs * expit(-signs * f)), np.asarray(np.sqrt(s * p * expit(-f)))
