"""Does every fold's fit solve its own equations? From K, or the features, and the answers alone.

Residuals count by the weights of the rows: they are those of (R K R + p) x = R (y - b), R = S^1/2.
For leave-one-out, which has no coefficients to judge, C = K + p S^-1 is inverted anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import norms
from mercer.certificates.ridge.linear_system import size_of, worst
from mercer.gram import Definiteness, Gram, definiteness, exact
from mercer.problems import FoldedPathValue, FoldedRidgePath

_TOL = 1e-6


@dataclass(frozen=True)
class FoldedPathQuantities:
    """Measures of an answer to a `FoldedRidgePath`: the worst over all fits that are given.

    Attributes
    ----------
    relative_residual : float
        Norm of what is left of the equations of a fold over the norm of their right-hand side; in
        the space of the features, of F'S (y - F w - b) - penalty w over F'S y. Infinite where a row
        that was left out has a coefficient. Zero for leave-one-out.
    bias_condition : float
        |sum of a| over the sum of |a|; zero for an optimal bias, and without one.
    mismatch : float
        How far `values` are from those that the coefficients make, or, for leave-one-out, from
        those of an inverse, over the largest target.
    unmet : int
        Fits without an answer.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite, as of a `LinearSystem`.
    """

    relative_residual: float
    bias_condition: float
    mismatch: float
    unmet: int
    indefiniteness: float = 0.0


class _Judged(NamedTuple):
    """Measures of some fits, one number each."""

    residual: Array
    bias: Array
    mismatch: Array


@certify.register
def _(problem: FoldedRidgePath, value: FoldedPathValue, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    convex, gram = definiteness(problem.gram), exact(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        if problem.folds is None:
            judged = [_left_out(problem, value, gram)]
        elif value.weights is not None:
            judged = [_primal(problem, value, k) for k in range(len(problem.folds))]
        else:
            judged = [_dual(problem, value, gram, k) for k in range(len(problem.folds))]
    columns = [np.concatenate(column) for column in zip(*judged, strict=True)]
    residual, bias, mismatch = map(worst, columns) if columns else (0.0, 0.0, 0.0)
    unmet = int(np.count_nonzero(~value.met))
    quantities = FoldedPathQuantities(residual, bias, mismatch, unmet, convex.shift)
    ok = max(residual, bias, mismatch) <= tol and not unmet and not convex.seen
    return Certificate(bool(ok), quantities, tol, _statement(quantities, value.met.size, convex))


def _statement(q: FoldedPathQuantities, fits: int, convex: Definiteness) -> str:
    statement = (
        f"{fits - q.unmet} of {fits} fits solve the ridge equations of their folds exactly once "
        f"right-hand sides are changed by {q.relative_residual:.1e} of their norms; values at the "
        f"rows are within {q.mismatch:.1e} of the largest target"
    )
    return statement if convex.shown else f"{statement}; {convex.obstacle}"


def _dual(problem: FoldedRidgePath, value: FoldedPathValue, gram: Gram, k: int) -> _Judged:
    assert problem.folds is not None and value.coef is not None and value.intercept is not None
    met, rows = value.met[k], problem.learnt_from(problem.folds[k])
    s, y = problem.row_weights[rows, None], problem.targets[rows, None]
    a, b, root = value.coef[k][:, met], value.intercept[k, met], np.sqrt(s)
    fit = gram @ a + b
    left = root * (y - fit[rows] - problem.penalties[met] * a[rows] / s)
    right = norms(root * _centred(problem, y, s))
    residual = norms(left) / size_of(right, norms(root * y))
    residual[np.delete(a, rows, axis=0).any(axis=0)] = np.inf
    pulls, most = a[rows], s * y / problem.penalties[met]
    return _Judged(residual, _bias(problem, pulls, most), _apart(problem, value, k, fit))


def _primal(problem: FoldedRidgePath, value: FoldedPathValue, k: int) -> _Judged:
    assert problem.folds is not None and value.weights is not None and value.intercept is not None
    F: Any = problem.gram.factor
    met, rows = value.met[k], problem.learnt_from(problem.folds[k])
    s, y = problem.row_weights[rows, None], problem.targets[rows, None]
    w = value.weights[k][:, met]
    fit = np.asarray(F @ w + value.intercept[k, met])
    pulls, part = s * (y - fit[rows]), F[rows]
    right, largest = norms(part.T @ (s * _centred(problem, y, s))), norms(abs(part.T) @ abs(s * y))
    residual = norms(part.T @ pulls - problem.penalties[met] * w) / size_of(right, largest)
    return _Judged(residual, _bias(problem, pulls, s * y), _apart(problem, value, k, fit))


def _left_out(problem: FoldedRidgePath, value: FoldedPathValue, gram: Gram) -> _Judged:
    """Predict each row by the fit to all others, from an inverse for each penalty."""
    rows, met = np.flatnonzero(problem.row_weights > 0), value.met[0]
    s, y, K = problem.row_weights[rows], problem.targets[rows], gram.dense()
    fits = []
    for penalty in problem.penalties[met].tolist():
        G, b = np.linalg.inv(K[np.ix_(rows, rows)] + np.diag(penalty / s)), 0.0
        if problem.bias:
            u = G.sum(axis=1)
            b = float(u @ y / u.sum())
            G -= np.outer(u, u) / u.sum()
        fit = K[:, rows] @ (G @ y) + b
        fit[rows] = y - G @ y / G.diagonal()
        fits.append(fit)
    found = np.column_stack(fits) if fits else np.empty((len(K), 0))
    none = np.zeros(len(fits))
    return _Judged(none, none, _apart(problem, value, 0, found))


def _centred(problem: FoldedRidgePath, y: Array, s: Array) -> Array:
    """Take off the mean of the targets, which a bias takes up."""
    return np.asarray(y - (s * y).sum() / s.sum()) if problem.bias and len(y) else y


def _bias(problem: FoldedRidgePath, pulls: Array, most: Array) -> Array:
    if not problem.bias:
        return np.zeros(pulls.shape[1])
    sizes = size_of(np.abs(pulls).sum(axis=0), np.abs(most).sum(axis=0))
    return np.asarray(np.abs(pulls.sum(axis=0)) / sizes)


def _apart(problem: FoldedRidgePath, value: FoldedPathValue, k: int, fit: Array) -> Array:
    """Return how far the values of a fold are from others, over the largest target."""
    largest = max(float(np.abs(problem.targets).max(initial=0.0)), float(np.finfo(float).tiny))
    off = np.abs(value.values[k][:, value.met[k]] - fit)
    return np.asarray(off.max(axis=0, initial=0.0) / largest)
