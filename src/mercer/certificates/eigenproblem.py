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
_POWER_STEPS = 3


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
        quantities.residual <= tol
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
    """Run a few power steps on random vectors orthogonal to V."""
    n, k = V.shape
    if k >= n:
        return 0.0
    P = np.random.default_rng(0).standard_normal((n, min(_PROBES, n - k)))
    for _ in range(_POWER_STEPS):
        P = np.linalg.qr(P - V @ (V.T @ P))[0]
        KP = gram @ P
        P, quotient = KP, float(np.linalg.eigvalsh(_symmetric(P.T @ KP)).max())
    smallest = max(float(m.min(initial=np.inf)), 1e-12 * top)
    return quotient / smallest


def _symmetric(A: Array) -> Array:
    return np.asarray((A + A.T) / 2)
