"""Are these the largest eigenpairs? Residuals, orthonormality, and a search for a missed one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.certificates.base import Certificate, certify
from mercer.gram import Gram, exact
from mercer.problems import Eigenproblem, Modes

_TOL = 1e-6
_PROBES = 8
_STEPS = 10
_NOTHING = 1e-10


@dataclass(frozen=True)
class EigenQuantities:
    """Measures of a set of eigenpairs.

    Attributes
    ----------
    residual : float
        Largest |K v - m v| over the largest eigenvalue.
    orthonormality : float
        Largest entry of |V'V - I|.
    trace_explained : float
        Sum of the eigenvalues over the trace of K.
    largest_outside : float
        Largest Rayleigh quotient found by random probes orthogonal to all vectors, over the
        smallest eigenvalue given: above one, a pair was missed.
    """

    residual: float
    orthonormality: float
    trace_explained: float
    largest_outside: float


@certify.register
def _(problem: Eigenproblem, value: Modes, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    gram, V, m = exact(problem.gram), value.vectors, value.values
    top = max(float(np.abs(m).max(initial=0.0)), np.finfo(float).tiny)
    trace = float(gram.diag().sum())
    quantities = EigenQuantities(
        float(np.linalg.norm(gram @ V - V * m, axis=0).max(initial=0.0)) / top,
        float(np.abs(V.T @ V - np.eye(V.shape[1])).max(initial=0.0)),
        float(m.sum()) / trace if trace > 0 else 1.0,
        _largest_outside(gram, V, m, top),
    )
    ok = (
        len(m) == min(problem.count, problem.gram.shape[0])
        and quantities.residual <= tol
        and quantities.orthonormality <= 1e-8
        and quantities.largest_outside <= 1.0 + tol
    )
    statement = (
        f"{len(m)} eigenpairs with residual {quantities.residual:.1e} explain "
        f"{100 * quantities.trace_explained:.1f} % of the trace; probes found no larger one"
        if quantities.largest_outside <= 1.0 + tol
        else "a larger eigenpair outside the given ones was found"
    )
    return Certificate(bool(ok), quantities, tol, statement)


def _largest_outside(gram: Gram, V: Array, m: Array, top: float) -> float:
    """Look for the largest Rayleigh quotient in a block Krylov space orthogonal to V."""
    n, k = V.shape
    if k >= n:
        return 0.0
    P = top * np.random.default_rng(0).standard_normal((n, min(_PROBES, n - k)))
    basis, products = V, np.zeros((n, 0))
    for _ in range(min(_STEPS, (n - k) // P.shape[1])):
        P = _outside(P, basis, _NOTHING * top)
        if not P.shape[1]:
            break  # the space is exhausted: what is left is rounding
        KP = np.asarray(gram @ P)
        basis, products = np.hstack([basis, P]), np.hstack([products, KP])
        P = KP
    outside = basis[:, k:]
    if not outside.shape[1]:
        return 0.0
    quotient = float(np.linalg.eigvalsh(_symmetric(outside.T @ products)).max())
    smallest = max(float(m.min(initial=np.inf)), 1e-12 * top)
    return quotient / smallest


def _outside(P: Array, basis: Array, floor: float) -> Array:
    """Give an orthonormal basis of what lies outside, where that is more than rounding."""
    for _ in range(2):  # once is not enough where little is left
        P = P - basis @ (basis.T @ P)
        U, sigma, _ = np.linalg.svd(P, full_matrices=False)
        P = U[:, sigma > floor]
        floor = 0.5  # the second time round, of unit vectors
    return np.asarray(P)


def _symmetric(A: Array) -> Array:
    return np.asarray((A + A.T) / 2)
