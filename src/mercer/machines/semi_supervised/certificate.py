"""Certificates of graph labels, of deformed kernels, and of fits with a deformed kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from mercer.array_types import Array
from mercer.gram import definiteness, exact
from mercer.machines.semi_supervised.problem import (
    Deformation,
    DeformedKernel,
    GraphLabels,
    GraphValues,
)
from mercer.solvers.certificate import Certificate, certify

# --- graph labels --------------------------------------------------------------------------------
#
# Residuals of the equations, and a bound on the error of the values.
#
# D - W on the rows without a label is an M-matrix: its inverse has no negative entry. So where
# `steps` satisfies (D - W) steps >= D / 2, an error of at most e D in the equations is one of at
# most 2 e steps in the values. Values of harmonic functions lie between the smallest and the
# largest label: the maximum principle. For spreading, I - alpha S has no eigenvalue below 1 -
# alpha.

_GRAPH_LABELS_TOL = 1e-6


@dataclass(frozen=True)
class GraphLabelsQuantities:
    """Measures of values on a graph, in units of the largest target.

    Attributes
    ----------
    residual : float
        Largest error of an equation, over the degree of its row.
    error : float
        A bound of how far any value is from the exact one.
    outside : float
        How far a value is below the smallest or above the largest label.
    moved : float
        How far a label, or a value that is known without equations, is from what it has to be.
    steps : float
        The largest expected number of steps of a walk to a label, or to a restart.
    unreached : int
        Rows that hang together with no label: nothing on the graph tells their value.
    """

    residual: float
    error: float
    outside: float
    moved: float
    steps: float
    unreached: int


@certify.register
def _(problem: GraphLabels, value: GraphValues, tol: float | None = None) -> Certificate:
    tol = _GRAPH_LABELS_TOL if tol is None else tol
    anew = replace(problem, gram=exact(problem.gram))
    found = _measure(anew, value)
    ok = found.error <= tol and found.outside <= tol and found.moved <= tol
    return Certificate(bool(ok), found, tol, _statement(found, problem.clamped, tol))


def _statement(found: GraphLabelsQuantities, clamped: bool, tol: float) -> str:
    if found.moved > tol:
        return f"labels, or values that follow from them alone, are off by {found.moved:.1e}"
    what = "every value is the mean of its neighbours'" if clamped else "the equations hold"
    text = f"{what} within {found.residual:.1e}, so that values are right within {found.error:.1e}"
    text += f"; no value is more than {found.outside:.0e} outside the labels"
    if found.unreached:
        text += f"; {found.unreached} row(s) hang together with no label, and have their mean"
    return text


def _measure(problem: GraphLabels, value: GraphValues) -> GraphLabelsQuantities:
    F, y = value.values, problem.targets
    n = len(problem.labelled)
    if F.shape != y.shape or value.steps.shape != (n,) or not np.isfinite(F).all():
        return GraphLabelsQuantities(inf, inf, inf, inf, inf, n)
    size = float(np.abs(y).max(initial=0.0)) or 1.0
    free, inner = problem.free, problem.inside(F)
    left = np.abs(problem.product(inner) - problem.right) / problem.units[:, None]
    steps = value.steps[free]
    moved = float(np.abs(problem.complete(inner) - F).max(initial=0.0)) / size
    return GraphLabelsQuantities(
        float(left.max(initial=0.0)) / size,
        _bound(problem, left, steps) / size,
        _outside(problem, F) / size,
        moved,
        float(steps.max(initial=0.0)),
        int((~problem.reached).sum()),
    )


def _bound(problem: GraphLabels, left: Array, steps: Array) -> float:
    """Return how far values may be from the exact ones; infinite where steps prove nothing."""
    if not problem.clamped:
        return float(np.linalg.norm(left, axis=0).max(initial=0.0)) / (1.0 - problem.alpha)
    if not len(steps):
        return 0.0
    degrees = problem.degrees[problem.free]
    if not (problem.product(steps[:, None])[:, 0] >= degrees / 2).all() or not (steps >= 0).all():
        return inf
    return float(2.0 * left.max(initial=0.0) * steps.max())


def _outside(problem: GraphLabels, F: Array) -> float:
    """Return how far values are from the hull of the labels; of spreading, below zero."""
    if problem.clamped:
        known = problem.targets[problem.labelled]
        low, high = known.min(axis=0), known.max(axis=0)
    elif (problem.targets >= 0).all():
        low, high = np.zeros(F.shape[1]), np.full(F.shape[1], np.inf)
    else:
        return 0.0
    return float(np.maximum(low - F, F - high).max(initial=0.0))


# --- deformed kernel -----------------------------------------------------------------------------
#
# The residual of (I + M K) T = J, from samples and graph.
#
# With R = (I + M K) T - J the matrix K T is off by K~ R, and K~ is not larger than K: the entry
# (i, j) is off by at most sqrt(k(x_i, x_i)) sqrt(R_j' K R_j).

_DEFORMATION_TOL = 1e-8


@dataclass(frozen=True)
class DeformationQuantities:
    """Measures of a deformed kernel.

    Attributes
    ----------
    residual : float
        Largest entry of (I + M K) T - J.
    error : float
        A bound of how far an entry of the matrix is from the deformed kernel's, over the largest
        k(x, x).
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by the
        construction of the kernel, rounding where K was factored, infinite where that is not shown.
    """

    residual: float
    error: float
    indefiniteness: float


@certify.register
def _(problem: DeformedKernel, value: Deformation, tol: float | None = None) -> Certificate:
    tol = _DEFORMATION_TOL if tol is None else tol
    n, count = problem.gram.shape[0], len(problem.labelled)
    if value.transfer.shape != (n, count) or value.matrix.shape != (count, count):
        nothing = DeformationQuantities(inf, inf, inf)
        return Certificate(False, nothing, tol, "no matrix of the shape asked for")
    gram, convex = exact(problem.gram), definiteness(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.asarray(gram @ value.transfer)
        left = value.transfer + problem.bend(moved) - problem.units
        size = float(gram.diag().max(initial=0.0)) or 1.0
        squares = np.einsum("ij,ij->j", left, np.asarray(gram @ left))
        error = np.sqrt(size) * np.sqrt(np.maximum(squares, 0.0)).max(initial=0.0)
        error += np.abs(moved[problem.labelled] - value.matrix).max(initial=0.0)
        residual = float(np.abs(left).max(initial=0.0))
    error = float(error / size) if np.isfinite(error) and np.isfinite(residual) else inf
    found = DeformationQuantities(residual, error, convex.shift)
    text = f"the kernel that the graph deforms is right within {error:.1e} of k(x, x)"
    if not convex.shown:
        text += f"; but {convex.obstacle}"
    return Certificate(bool(error <= tol and not convex.seen), found, tol, text)


# --- fit with a deformed kernel ------------------------------------------------------------------


@dataclass(frozen=True)
class ManifoldQuantities:
    """Measures of a fit with a deformed kernel.

    Attributes
    ----------
    fit_error : float
        Of the machine on the labelled rows: the relative residual of the ridge equations, or the
        relative duality gap of the support vector machine.
    kernel_residual : float
        Largest entry of what is left of the equations of the deformed kernel.
    kernel_error : float
        A bound of how far an entry of its matrix is off, over the largest k(x, x).
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite; infinite where that is
        not shown.
    """

    fit_error: float
    kernel_residual: float
    kernel_error: float
    indefiniteness: float


def of_both(kernel: Certificate, fit: Certificate) -> Certificate:
    """Return one certificate of a deformed kernel and of the fit in it.

    Parameters
    ----------
    kernel : Certificate
        Of the deformed kernel.
    fit : Certificate
        Of ridge regression, or of a support vector machine, with its matrix as data.
    """
    measured = kernel.quantities
    residual = getattr(fit.quantities, "relative_residual", None)
    quantities = ManifoldQuantities(
        float(fit.quantities.relative_gap if residual is None else residual),
        measured.residual,
        measured.error,
        measured.indefiniteness,
    )
    text = f"{fit.statement}; {kernel.statement}"
    return Certificate(bool(fit.ok and kernel.ok), quantities, fit.tol, text)
