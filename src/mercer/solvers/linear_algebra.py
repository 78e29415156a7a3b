"""Factors of nearly singular matrices, weighted F'F, and dual coefficients of weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import eigh
from mercer.deadline import is_over, row_slices
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_sparse, to_dense

# --- spd -----------------------------------------------------------------------------------------
#
# Positive definite systems that are nearly singular: scaled, and made definite where they must.


def factor_spd(H: Array) -> Callable[[Array], Array]:
    """Factor a positive definite system, scaled to a unit diagonal, with one refinement."""
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), np.finfo(float).tiny))
    S = np.empty(H.shape)
    for some in row_slices(len(S), len(S)):
        S[some] = H[some] * scale * scale[some, None]
    jitter, info = 0.0, 1
    while info and jitter <= 1.0:
        L = np.empty_like(S)
        for some in row_slices(len(S), len(S)):
            L[some] = S[some]
        L.flat[:: len(L) + 1] += jitter
        info = choose_backend().cholesky(L)
        jitter = 1e-15 if not jitter else 10.0 * jitter
    factor = (L.T, False)

    def solve(right: Array) -> Array:
        r = scale * right
        y = linalg.cho_solve(factor, r, check_finite=False)
        y = y + linalg.cho_solve(factor, r - S @ y, check_finite=False)
        return np.asarray(scale * y)

    return solve


# --- weighted gram -------------------------------------------------------------------------------
#
# F' diag(h) F for features of many rows, without writing the weighted features out.


def weighted_gram(F: Any, h: Array) -> Array:
    """Return F' diag(h) F.

    Parameters
    ----------
    F : (n, D) array or CSR array
        Features.
    h : (n,) array
        Weights of the rows; of either sign.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    array([[ 5.5,  8. ],
           [ 8. , 12. ]])
    """
    if is_sparse(F):
        return to_dense(F.T @ F.multiply(h[:, None]).tocsr())
    # where no card multiplies, roots of weights are taken below; not a number is passed on here
    if not isinstance(F, CardRows) and not (h >= 0).all():
        return np.asarray(F.T @ (h[:, None] * F))
    alone = np.full_like(h, -1, dtype=np.int8)
    return choose_backend().features(F, None).gram(h, np.zeros(F.shape[1]), alone, 0)


# --- dual form -----------------------------------------------------------------------------------
#
# Coefficients of rows for weights of features: a with F'a = w, near what the residuals say.
#
# At a minimum a = -s loss'(f) / penalty, and F'a = w. In float64 that is the rounding of a slope,
# or of a residual, over the penalty: of features far from zero, of targets far from zero, or with
# hardly a penalty, F'a is then another function.

WIDEST = 1200  # features: up to here their products with each other are decomposed
_AGREES = 1e-9  # of the weights: both forms of an answer agree to this
_FAR = 1e-7  # of the weights: beyond, the coefficients may be others than those of the slopes
_ROUNDS = 3  # each leaves of the difference what rounding of a decomposition is
_QUICK = 1e7  # operations that are done even when the time limit is over
_STEPS = 200  # of conjugate gradients, where there are too many features to decompose


def dual_form(F: Any, middle: Array | None, s: Array, bias: bool, coef: Array, w: Array) -> Array:
    """Return coefficients a with F'a = w and, for a bias, 1'a = 0.

    Parameters
    ----------
    F : (n, D) array or sparse array
        The features, from `middle`.
    middle : (D,) array or None
        What was taken off the features.
    s : (n,) array
        Weights of the rows: a row bears a change of its coefficient as it counts.
    bias : bool
        Whether there is a bias.
    coef : (n, k) array
        What slopes of the loss give, or residuals.
    w : (D, k) array
        Weights of the features.

    Returns
    -------
    (n, k) array
        `coef` where it agrees with w, `coef` changed by as little as makes it agree, or, where no
        digits are left for that, the shortest coefficients that do.
    """
    design = _Design(F, middle, bias)
    late = F.shape[0] * float(F.shape[1]) ** 2 > _QUICK and is_over()
    if (design.apart(coef, w) <= _AGREES).all() or late:
        return coef
    if F.shape[1] > WIDEST:
        return design.nearer(coef, w, s)
    changed = design.agreeing(coef, w, s)
    apart = design.apart(changed, w)
    if (apart > _FAR).any():
        shortest = design.agreeing(np.zeros_like(coef), w, np.ones_like(s))
        better = (apart > _FAR) & (design.apart(shortest, w) < 0.1 * apart)
        changed = np.where(better, shortest, changed)
    return changed


class _Design:
    """The features, and a column of ones if there is a bias; `product` is Z'a."""

    def __init__(self, F: Any, middle: Array | None, bias: bool) -> None:
        self._F, self._middle, self._bias = F, middle, bias

    def apart(self, coef: Array, w: Array) -> Array:
        """Return how far F'a is from w, relatively, for each function."""
        product = np.asarray(self._F.T @ coef)
        if self._middle is not None:
            product = product + np.outer(self._middle, coef.sum(axis=0))
        sizes = np.maximum(np.linalg.norm(w, axis=0), np.finfo(float).tiny)
        return np.asarray(np.linalg.norm(product - w, axis=0) / sizes)

    def agreeing(self, coef: Array, w: Array, s: Array) -> Array:
        """Return a + S Z c with Z'(a + S Z c) = w, or as near to it as rounding lets it come."""
        best, nearest = coef, self.apart(coef, w)
        vectors, inverse, sizes = self._decomposed(s)
        for _ in range(_ROUNDS):
            c = (vectors * inverse) @ (vectors.T @ (self._left(best, w) / sizes)) / sizes
            ahead = best + s[:, None] * self._image(c)
            apart = self.apart(ahead, w)
            nearer = apart < nearest
            if not nearer.any():
                break
            best, nearest = np.where(nearer, ahead, best), np.where(nearer, apart, nearest)
        return best

    def nearer(self, coef: Array, w: Array, s: Array) -> Array:
        """Return the same by conjugate gradients: as near as their steps lead."""
        squares = self._F.multiply(self._F) if is_sparse(self._F) else np.square(self._F)
        sizes = np.maximum(np.sqrt(np.asarray(squares.T @ s)), np.finfo(float).tiny)[:, None]
        if self._bias:
            sizes = np.vstack([sizes, np.sqrt(s.sum())])
        start, left = coef, self._left(coef, w) / sizes
        way, size = left, np.square(left).sum(axis=0)
        goal = _AGREES**2 * np.square(w).sum(axis=0) / np.square(sizes).max()
        for _ in range(_STEPS):
            if (size <= goal).all() or is_over():
                break
            change = s[:, None] * self._image(way / sizes)
            ahead = self._transposed(change) / sizes
            t = size / np.maximum((way * ahead).sum(axis=0), np.finfo(float).tiny)
            coef, left = coef + t * change, left - t * ahead
            before, size = size, np.square(left).sum(axis=0)
            way = left + size / np.maximum(before, np.finfo(float).tiny) * way
        return np.where(self.apart(coef, w) < self.apart(start, w), coef, start)

    def _transposed(self, coef: Array) -> Array:
        product = np.asarray(self._F.T @ coef)
        return np.vstack([product, coef.sum(axis=0)]) if self._bias else product

    def _left(self, coef: Array, w: Array) -> Array:
        target = np.vstack([w, np.zeros(w.shape[1])]) if self._bias else w
        return np.asarray(target - self._transposed(coef))

    def _image(self, c: Array) -> Array:
        own = c[:-1] if self._bias else c
        image = self._F.image(own) if isinstance(self._F, CardRows) else np.asarray(self._F @ own)
        return image + c[-1] if self._bias else image

    def _decomposed(self, s: Array) -> tuple[Array, Array, Array]:
        """Return axes and inverse sizes of Z'SZ with columns of length one, and their lengths."""
        F = self._F
        A = weighted_gram(F, s)
        if self._bias:
            sums = np.asarray(F.T @ s)
            A = np.block([[A, sums[:, None]], [sums[None, :], np.full((1, 1), s.sum())]])
        if not np.isfinite(A).all():  # squares overflow: nothing is changed, and the answer judged
            return np.eye(len(A)), np.zeros(len(A)), np.ones((len(A), 1))
        sizes = np.sqrt(A.diagonal())
        sizes[sizes == 0] = 1.0
        values, vectors = eigh(A / sizes[:, None] / sizes)
        kept = values > len(A) * np.finfo(float).eps * values.max(initial=0.0)
        return vectors, np.where(kept, 1 / np.where(kept, values, 1.0), 0.0), sizes[:, None]
