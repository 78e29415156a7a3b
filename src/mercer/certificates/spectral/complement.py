"""The largest eigenvalue among vectors orthogonal to given ones: found, and bounded.

Small matrices are decomposed. Others are probed: the Rayleigh quotients of a block Krylov space
that starts from random vectors. That a random start hides an eigenvalue is so unlikely that the
largest quotient found also bounds the eigenvalue: for one vector and q products it is above
(1 - e) times the largest eigenvalue of a positive semidefinite matrix but for a probability of
1.648 sqrt(n) exp(-sqrt(e) (2 q - 1)) (Kuczynski and Wozniakowski, 1992), and b independent vectors
must all fail at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.gram import Gram, exact
from mercer.gram.exact_parts import in_float32
from mercer.gram.policy import FLOAT32_RANGE
from mercer.solvers.spectral.eigen_units import evaluated
from mercer.solvers.spectral.krylov_basis import Basis

_WHOLE = 400  # rows: up to here decomposing costs less than probing
_PROBES = 16
_LEAST_STEPS = 4
_MOST_STEPS = 12
_NOTHING = 1e-13  # of the largest eigenvalue: what is left of a product when nothing is
_DOUBT = 1e-6  # the probability of missing more than the bound says
_SINGLE = 1e-4  # of the largest eigenvalue: below, float32 is not asked


@dataclass(frozen=True)
class Complement:
    """What lies outside: the largest Rayleigh quotient, and a bound that holds almost surely."""

    found: float
    bound: float


def probe_complement(gram: Gram, V: Array, least: float, top: float) -> Complement:
    """Look for an eigenvalue above `least` among vectors orthogonal to V.

    Parameters
    ----------
    gram : Gram
        K.
    V : (n, k) array
        Orthonormal vectors.
    least : float
        The smallest eigenvalue that was given: what is looked for is above.
    top : float
        The largest one, by which rounding is measured.

    Returns
    -------
    Complement
        Evaluated in float64 where it matters: where float32 finds nothing above, nothing is.
    """
    n, k = V.shape
    if k >= n:
        return Complement(0.0, 0.0)
    if n <= _WHOLE:
        return _whole(exact(gram), V)
    # V in memory of its own that is factored in place: it may be as large as a budget allows
    Q = linalg.qr(np.array(V, order="F"), mode="economic", overwrite_a=True, check_finite=False)[0]
    if least > _SINGLE * top and _in_range(gram):
        rough = _probe(in_float32(gram), Q, least, top)
        if rough.found <= least:
            return rough
    return _probe(exact(gram), Q, least, top)


def _in_range(gram: Gram) -> bool:
    size = float(np.abs(evaluated(gram)[0].diag()).max(initial=0.0))
    return FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1]


def _whole(gram: Gram, V: Array) -> Complement:
    A = np.asarray(gram.dense(), dtype=np.float64)
    Q = np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]
    with np.errstate(over="ignore", invalid="ignore"):
        rest = _symmetric(Q.T @ A @ Q)
    if not np.isfinite(rest).all():  # entries at the ends of their range: nothing is bounded
        return Complement(np.inf, np.inf)
    largest = float(np.linalg.eigvalsh(rest)[-1])
    return Complement(largest, largest)


def _probe(gram: Gram, Q: Array, least: float, top: float) -> Complement:
    """Grow the space until its best quotient is settled, and clearly below what was given."""
    n, k = Q.shape
    width = min(_PROBES, n - k)
    most = min(_MOST_STEPS, max(1, (n - k) // width))
    basis = Basis(gram.operator(), n, (most + 1) * width, Q)
    basis.begin(np.random.default_rng(0).standard_normal((n, width)))
    found, steps = 0.0, 0
    for steps in range(1, most + 1):
        basis.extend()
        (found,), _, (residual,) = basis.ritz(1)
        nothing = basis.norm <= _NOTHING * top
        if nothing or (basis.closed and steps > 1 and found <= least):
            return Complement(float(found), float(found))  # the space is exhausted
        if found > least or (steps >= _LEAST_STEPS and found + 2 * residual <= least):
            break
    return Complement(float(found), _bound(found, n, width, steps) if gram.valid else np.inf)


def _bound(found: float, n: int, width: int, steps: int) -> float:
    root = np.log(1.648 * np.sqrt(n) / _DOUBT ** (1 / width)) / (2 * steps - 1)
    return float(found / (1 - root**2)) if root < 1 else np.inf


def _symmetric(A: Array) -> Array:
    return np.asarray((A + A.T) / 2)
