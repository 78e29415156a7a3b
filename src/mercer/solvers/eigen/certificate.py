"""Certificate of eigenpairs: residuals, orthonormality, and a search for a missed eigenvalue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.gram import Gram, exact
from mercer.gram.accurate_products import in_float32
from mercer.gram.policy import FLOAT32_RANGE
from mercer.resources import rows_at_once
from mercer.solvers.certificate import Certificate, certify, larger, norms
from mercer.solvers.eigen.block_lanczos import Basis
from mercer.solvers.eigen.dense import evaluated, in_units
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- eigenproblem --------------------------------------------------------------------------------
#
# Are these the largest eigenpairs? Residuals, orthonormality, and a search for a missed one.

_TOL = 1e-6
_ORTHONORMAL = 1e-8
_ARRAYS = 4  # of a block of vectors: itself, its products, and what is left of them
_FLOOR = 1e-3  # of the largest eigenvalue: what residuals of smaller ones are measured against
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class EigenQuantities:
    """Measures of a set of eigenpairs.

    Attributes
    ----------
    residual : float
        Largest |K v - m v| / max(|m|, m_1 / 1000) over the pairs, m_1 being the largest eigenvalue
        in magnitude: an eigenvalue of K lies within that share of m. Where several eigenvalues are
        equal it is the space of their vectors that is certified, not the single vectors.
    orthonormality : float
        Largest entry of |V'V - I|, and of |V'U| for vectors U that were known beforehand.
    trace_explained : float
        Sum of the eigenvalues over the trace of K; NaN for a trace below zero.
    largest_outside : float
        Largest Rayleigh quotient found orthogonal to all vectors, over the smallest eigenvalue
        given: above one, a pair was missed.
    outside_bound : float
        With a probability of 1 - 1e-6 over the random probes, no eigenvalue outside is larger than
        this, over the smallest eigenvalue given; infinite where K may have negative eigenvalues
        and was only probed.
    """

    residual: float
    orthonormality: float
    trace_explained: float
    largest_outside: float
    outside_bound: float = 0.0


@certify.register
def _(problem: Eigenproblem, value: Modes, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    quantities = _measure(problem, value, tol)
    missed = quantities.largest_outside > 1.0 + tol
    ok = (
        len(value.values) == problem.n_pairs
        and quantities.residual <= tol
        and quantities.orthonormality <= _ORTHONORMAL
        and not missed
    )
    statement = (
        "a larger eigenpair outside the given ones was found"
        if missed
        else f"{len(value.values)} eigenpairs with residual {quantities.residual:.1e} "
        f"{_share(problem, quantities.trace_explained)}; probes found no larger one"
    )
    if not quantities.orthonormality <= _ORTHONORMAL:
        statement += f"; but vectors are not orthonormal, by {quantities.orthonormality:.1e}"
    return Certificate(bool(ok), quantities, tol, statement)


def is_orthonormal(value: Modes) -> bool:
    """Return whether vectors are orthogonal and of length one, as far as certificates ask."""
    V = np.asarray(value.vectors)
    return _overlap(V, V[:, :0]) <= _ORTHONORMAL


def _share(problem: Eigenproblem, share: float) -> str:
    """Return how much of K they are: a trace is all variance where no eigenvalue is negative."""
    if np.isnan(share):
        return "belong to a matrix whose trace is negative"
    verb = "explain" if problem.gram.valid else "add up to"
    return f"{verb} {100 * share:.1f} % of the trace"


def _measure(problem: Eigenproblem, value: Modes, tol: float) -> EigenQuantities:
    problem, unit = in_units(problem)
    gram, V = exact(problem.gram), np.asarray(value.vectors)
    m = np.asarray(value.values) / unit / unit
    known = np.zeros((len(V), 0)) if problem.known is None else problem.known
    if not (np.isfinite(V).all() and np.isfinite(m).all()):
        return EigenQuantities(np.nan, np.nan, np.nan, np.nan, np.nan)
    top = max(float(np.abs(m).max(initial=0.0)), np.finfo(float).tiny)
    residuals = _residuals(gram, V, m)
    diagonal = gram.diag()
    trace = float(diagonal.sum())
    # the zero matrix of rows that do not vary is not zero to the last bit: residuals are stated
    # beyond an allowance of a few roundings of its largest entry, which is no bound of theirs
    rounding = _ROUNDING * float(np.abs(diagonal).max(initial=0.0))
    residuals = np.maximum(residuals - rounding, 0.0)
    overlaps = _overlap(V, known)
    outside = _outside(problem, V, m, known, top)
    return EigenQuantities(
        float((residuals / np.maximum(np.abs(m), _FLOOR * top)).max(initial=0.0)),
        overlaps,
        float(m.sum()) / trace if trace > 0 else 1.0 if trace >= -rounding * len(V) else np.nan,
        outside.found,
        outside.bound,
    )


def _residuals(gram: Gram, V: Array, m: Array) -> Array:
    """Return |K v - m v| of every pair; many pairs in blocks, so that no second V is held."""
    found = np.empty(len(m))
    step = rows_at_once(len(V), max(1, len(m)), arrays=_ARRAYS)
    for first in range(0, len(m), step):
        some = slice(first, first + step)
        block = np.ascontiguousarray(V[:, some])
        found[some] = norms(np.asarray(gram @ block) - block * m[some])
    return found


def _overlap(V: Array, known: Array) -> float:
    """Return the largest entry of |V'V - I| and of |V'U|."""
    worst = float(np.abs(V.T @ known).max(initial=0.0))
    step = rows_at_once(len(V), max(1, V.shape[1]), arrays=_ARRAYS)
    for first in range(0, V.shape[1], step):
        products = V[:, first : first + step].T @ V
        products.flat[first :: V.shape[1] + 1] -= 1.0
        worst = larger(worst, float(np.abs(products).max(initial=0.0)))
    return worst


def _outside(problem: Eigenproblem, V: Array, m: Array, known: Array, top: float) -> Complement:
    # below rounding of the largest nothing is missed
    least = max(float(m.min(initial=np.inf)), 1e-12 * top)
    vectors = np.hstack([known, V]) if known.size else V
    found = probe_complement(problem.gram, vectors, least, top)
    return Complement(found.found / least, found.bound / least)


# --- complement ----------------------------------------------------------------------------------
#
# The largest eigenvalue among vectors orthogonal to given ones: found, and bounded.
#
# Small matrices are decomposed. Others are probed: the Rayleigh quotients of a block Krylov space
# that starts from random vectors. That a random start hides an eigenvalue is so unlikely that the
# largest quotient found also bounds the eigenvalue: for one vector and q products it is above (1
# - e) times the largest eigenvalue of a positive semidefinite matrix but for a probability of
# 1.648 sqrt(n) exp(-sqrt(e) (2 q - 1)) (Kuczynski and Wozniakowski, 1992), and b independent
# vectors must all fail at once.

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
