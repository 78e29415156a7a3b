"""Reduced set problem: the same function with fewer vectors, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.gram import Source, definiteness, exact
from mercer.gram.accurate_products import gamma
from mercer.gram.definite import BY_CONSTRUCTION, Definiteness
from mercer.rows.points import is_sparse, row_count
from mercer.solvers.certificate import Certificate, certify

# --- reduction -----------------------------------------------------------------------------------
#
# The same functions with fewer vectors: what compressing an expansion asks.


@dataclass(frozen=True, eq=False)
class ReducedSet:
    """An answer to a `Reduction`: g_c = sum_j coef_jc k(v_j, .).

    Attributes
    ----------
    vectors : Points
        The vectors v_j, m of them.
    coef : (m, k) array
        Their coefficients.
    """

    vectors: Points
    coef: Array


@dataclass(frozen=True, eq=False)
class Reduction:
    """Find functions g with fewer vectors, close to f_c = sum_i coef_ic k(x_i, .).

    Attributes
    ----------
    source : Source
        The kernel, positive semidefinite, and the vectors x_i.
    coef : (n, k) array
        Their coefficients.
    """

    source: Source
    coef: Array


# --- reduction -----------------------------------------------------------------------------------
#
# How far is a function of fewer vectors from the one it stands for? Norms from both expansions.
#
# |f - g|^2 in the space of the kernel is sum_i a_i (f - g)(x_i) - sum_j b_j (f - g)(v_j): values of
# the difference first, so that what f and g share cancels before it is multiplied. By the
# reproducing property |f(x) - g(x)| = |<f - g, k(x, .)>| <= |f - g| sqrt(k(x, x)). All of this
# needs
# K to be positive semidefinite on the vectors before and after.

_TOL = 1e-3
_FORGIVEN = 8 * float(np.finfo(np.float64).eps)  # of the largest terms there can be
_MORE = 12  # roundings of what a bound is computed from, beside those of its sums


@dataclass(frozen=True)
class ReductionQuantities:
    """Measures of a compressed expansion.

    Attributes
    ----------
    vectors_before, vectors : int
        How many vectors there were, and are.
    error : float
        The largest |f - g| in the norm of the kernel's space, over the functions; with what
        rounding may hide. Values at x differ by no more than this times sqrt(k(x, x)).
    relative_error : float
        The largest |f - g| / |f|.
    rounding : float
        What of the relative error may be rounding.
    rows_compared : int
        Rows on which predictions before and after were compared; 0 if none were given.
    labels_changed : int
        On how many of them the label changed.
    largest_change : float
        The largest |f(x) - g(x)| among them; NaN if none were given.
    source_ok : bool
        Whether the fit that was compressed was certified.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by the
        construction of the kernel, rounding where K was factored, infinite where that is not shown.
    """

    vectors_before: int
    vectors: int
    error: float
    relative_error: float
    rounding: float = 0.0
    rows_compared: int = 0
    labels_changed: int = 0
    largest_change: float = float("nan")
    source_ok: bool = True
    indefiniteness: float = 0.0


@certify.register
def _(problem: Reduction, value: ReducedSet, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    squares, norms, forgiven = squared_errors(problem, value)
    convex = _definiteness(problem, value)
    coefs = np.concatenate([problem.coef, value.coef])
    rounding = forgiven * _bound_of_rounding(len(problem.coef), len(value.coef))
    if convex.shown:
        lost = convex.shift * np.square(coefs).sum(axis=0)
        forgiven, rounding = forgiven + lost, rounding + lost
    error = np.sqrt(np.maximum(squares, 0.0) + rounding)
    share = _over(error, norms, squares > rounding)
    hidden = _over(np.sqrt(rounding), norms, np.zeros(len(norms), dtype=bool))
    found = ReductionQuantities(
        vectors_before=row_count(problem.source.X),
        vectors=row_count(value.vectors),
        error=float(error.max(initial=0.0)),
        relative_error=float(share.max(initial=0.0)),
        rounding=float(hidden.max(initial=0.0)),
        indefiniteness=convex.shift,
    )
    statement = (
        f"{found.vectors} of {found.vectors_before} vectors: within {found.error:.2g} of the "
        f"functions they stand for in the norm of the kernel's space, {found.relative_error:.1e} "
        f"of their norm; values at x differ by at most {found.error:.2g} sqrt(k(x, x))"
    )
    if not convex.shown:
        statement = f"{convex.obstacle}, so that distances of functions mean nothing"
    ok = convex.shown and are_within(squares, norms, forgiven, tol)
    return Certificate(bool(ok), found, float(tol), statement)


def are_within(squares: Array, norms: Array, rounding: Array, tol: float) -> bool:
    """Return whether all squared errors are at most those that tol allows, but for rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        met = squares <= np.square(tol * norms) + rounding
    return bool((met | (tol == np.inf)).all())


def _definiteness(problem: Reduction, value: ReducedSet) -> Definiteness:
    """Return whether K of the vectors before and after is positive semidefinite."""
    if problem.source.valid or not len(problem.coef):
        return BY_CONSTRUCTION
    X, V = problem.source.X, value.vectors
    if is_sparse(X) or is_sparse(V):
        both: Any = sparse.csr_array(sparse.vstack([X, V], format="csr"))
    else:
        both = np.concatenate([X, V])
    return definiteness(exact(replace(problem.source, X=both)))


def rounding_of(own: Array, coef: Array) -> Array:
    """Return a few roundings of the largest terms of |f|^2, from sqrt(k(x, x)) and coefficients.

    An estimate: searches stop there, and errors that small are not held against an answer whose
    tolerance is less. What is stated of an error counts a bound (`_bound_of_rounding`).
    """
    return np.asarray(_FORGIVEN * np.square(own @ np.abs(coef)))


def _bound_of_rounding(before: int, after: int) -> float:
    """Return how many times `rounding_of` a squared error may be off by.

    Higham (3.5), for the values K c and for their sum times c, of as many terms as there are
    vectors before or after, and for what is made of the two.
    """
    sizes = 1.0 + gamma(4 * (before + after + _MORE))  # they are computed by sums as well
    return sizes * gamma(2 * max(before, after) + 8) / _FORGIVEN


def squared_errors(problem: Reduction, value: ReducedSet) -> tuple[Array, Array, Array]:
    """Return |f - g|^2 of every function, |f|, and what of the first is taken for rounding.

    A function that is zero but for rounding has the norm zero.

    Parameters
    ----------
    problem : Reduction
        f.
    value : ReducedSet
        g.
    """
    before = problem.source.in_float64()
    after = Source(before.expression, value.vectors, np.float64, before.valid)
    A, B = problem.coef, value.coef
    if not len(A):
        return (np.zeros(A.shape[1]),) * 3
    f = exact(before) @ A
    own = np.sqrt(np.abs(before.diag()))
    lengths, hidden = (A * f).sum(axis=0), rounding_of(own, A)
    norms = np.sqrt(np.where(lengths > hidden, lengths, 0.0))
    if not len(B):
        return np.asarray(lengths), norms, hidden
    at_points = f - after.cross(before.X) @ B
    at_vectors = before.cross(value.vectors) @ A - exact(after) @ B
    squares = (A * at_points).sum(axis=0) - (B * at_vectors).sum(axis=0)
    both = np.concatenate([own, np.sqrt(np.abs(after.diag()))])
    return np.asarray(squares), norms, rounding_of(both, np.concatenate([A, B]))


def _over(error: Array, norms: Array, seen: Array) -> Array:
    """Return shares of norms; of functions that are zero, infinite where an error is seen."""
    return np.divide(error, norms, out=np.where(seen, np.inf, 0.0), where=norms > 0)
