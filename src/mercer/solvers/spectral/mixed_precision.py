"""Eigenpairs in float64 from a Gram in float32: one exact product, then small corrections.

Given approximate vectors V and W = K V, exact, the answer is V + T c with a few correction vectors
T and tiny c: errors of K T in float32 are multiplied by c and vanish. What must be exact is the
coupling of V and T, and that is T'W. So every round costs a product in float32, and another exact
product is needed only when the corrections are no longer tiny beside the tolerance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.gram import Gram, exact
from mercer.problems import Eigenproblem
from mercer.solvers.base import Status, Watch
from mercer.solvers.spectral.krylov import Ritz, allowed
from mercer.solvers.spectral.krylov_basis import Basis

_ROUNDS = 5  # corrections from one exact product
_RESTARTS = 3  # exact products
_CLOSE = 0.02  # of a value: other values nearer than this count as so far away
_CAREFUL = 10.0  # times the noise: what a float32 product may hide


def refine_pairs(
    problem: Eigenproblem, found: Ritz, tol: float, noise: float, watch: Watch
) -> Ritz:
    """Correct the pairs of a Gram in float32 until float64 residuals are as asked.

    Parameters
    ----------
    problem : Eigenproblem
        The question; its Gram is in float32.
    found : Ritz
        The pairs of that Gram, and the space they come from.
    tol : float
        As of `krylov.largest_pairs`.
    noise : float
        Length of the rounding in K v for a unit vector v.
    watch : Watch
        Asked after every pass whether to stop.

    Returns
    -------
    Ritz
        Better pairs, with true residuals; `Status.INACCURATE` where they stand still too early.
    """
    gram = exact(problem.gram)
    best, V = found, found.vectors
    for _ in range(_RESTARTS):
        refined = replace(best, status=Status.TIME_LIMIT)
        with watch.keeping():
            refined = _Corrections(problem, gram, best, V).run(tol, noise, watch)
        if refined.status is Status.TIME_LIMIT:
            return refined
        better = refined.residuals.max() < 0.5 * best.residuals.max() or best is found
        best = refined if better else best
        V = best.vectors
        if best.status is not Status.INACCURATE or not better:
            break
    return best


class _Corrections:
    """One exact product, and correction vectors that pile up."""

    def __init__(self, problem: Eigenproblem, precise: Gram, found: Ritz, V: Array) -> None:
        assert found.basis is not None
        self._rough, self._known = problem.gram, problem.known
        self._basis: Basis = found.basis
        self._iterations, self._found = found.iterations, found
        self._k = V.shape[1]
        with one_blas_thread():
            V = np.linalg.qr(V)[0]
        self._S = V  # V, then corrections
        self._KS = np.asarray(precise @ V, dtype=np.float64)  # exact for V only
        self._iterations += 1
        with one_blas_thread():
            self._others = self._basis.all_ritz()

    def run(self, tol: float, noise: float, watch: Watch) -> Ritz:
        best = self._found
        for step in range(_ROUNDS + 1):
            with one_blas_thread():
                values, y, X, R = self._rayleigh_ritz()
            # what float32 products hide from R: their error, times the size of the corrections
            hidden = _CAREFUL * noise * np.linalg.norm(y[self._k :], axis=0)
            residuals = np.linalg.norm(R, axis=0) + hidden
            stalled = step > 0 and residuals.max() > 0.5 * best.residuals.max()
            if not stalled:
                best = replace(
                    self._found, values=values, vectors=X, residuals=residuals, basis=self._basis,
                    iterations=self._iterations, status=Status.INACCURATE,
                )  # fmt: skip
            limit = allowed(values, tol, self._basis.norm)
            if (residuals <= limit).all():
                return replace(best, status=Status.SOLVED)
            if stalled or step == _ROUNDS:
                break
            if watch.tick(self._iterations, float((residuals / limit).max() * tol)):
                return replace(best, status=watch.stopped or Status.STOPPED)
            self._correct(values, X, R)
        return best

    def _rayleigh_ritz(self) -> tuple[Array, Array, Array, Array]:
        k, S, KS = self._k, self._S, self._KS
        g = S.T @ KS
        g[:k, k:] = g[k:, :k].T  # the coupling from exact products only
        values, y = np.linalg.eigh((g + g.T) / 2)
        values, y = values[::-1][:k], y[:, ::-1][:, :k]
        X = S @ y
        return values, y, X, KS @ y - X * values

    def _correct(self, values: Array, X: Array, R: Array) -> None:
        """Add (m - K)^-1 R, as the Krylov space sees K; outside of it K is next to nothing."""
        with one_blas_thread():
            z, Y = self._others
            inside = Y.T @ self._basis.project(R)
            gaps = values[None, :] - z[:, None]
            close = _CLOSE * np.abs(values)[None, :] + np.finfo(float).tiny
            gaps = np.where(np.abs(gaps) < close, np.where(gaps < 0, -close, close), gaps)
            size = np.where(values == 0, 1.0, values)
            t = R / size + self._basis.lift(Y @ (inside / gaps - inside / size))
            t = self._outside(t)
        if not t.shape[1]:
            return
        product = np.asarray(self._rough @ t, dtype=np.float64)
        self._iterations += 1
        self._S, self._KS = np.hstack([self._S, t]), np.hstack([self._KS, product])

    def _outside(self, t: Array) -> Array:
        """Orthonormalise against all that is there; drop what is nothing but rounding."""
        for floor in (1e-10, 0.5):
            t = t / np.maximum(np.linalg.norm(t, axis=0), np.finfo(float).tiny)
            t = t - self._S @ (self._S.T @ t)
            if self._known is not None:
                t = t - self._known @ (self._known.T @ t)
            U, sigma, _ = np.linalg.svd(t, full_matrices=False)
            t = U[:, sigma > floor * sigma.max(initial=0.0)]
        return np.ascontiguousarray(t)
