"""Certificates of ridge regression: residuals for one penalty, a path, and folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.expression import Mapped
from mercer.gram import Definiteness, Gram, definiteness, exact
from mercer.gram.accurate_products import (
    accurate_product,
    gamma,
    product_rounding,
    transposed_product,
)
from mercer.gram.base import RKHSFunction
from mercer.gram.centering import CenteredFeatures
from mercer.gram.factored import RowMap
from mercer.machines.ridge.problem import (
    NEGLIGIBLE,
    Coefficients,
    FoldedPathValue,
    FoldedRidgePath,
    LinearSystem,
    PathValue,
    RidgePath,
)
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.certificate import Certificate, certify, norms

# --- linear system -------------------------------------------------------------------------------
#
# Is it the solution of the linear system? The residual says which targets it solves exactly.
#
# Sums that may round by more than a hundredth of the tolerance, by Higham (3.5), are formed anew
# by split sums, where K is held as data (`mercer.gram.accurate_products`). What is less than that
# is not counted, nor what rounding does to entries that a kernel computes.
#
# The equations are those of the smallest penalised error if K is positive semidefinite; of a
# matrix that is not, their solution is a stationary point, and is not certified.

_TOL = 1e-6
_ROUGH = 1e-8  # of the right-hand side: rounding of sums that could hide a hundredth of tol
_DECOMPOSED = 1e9  # products up to which singular values are soon found
_TINY = float(np.finfo(np.float64).tiny)
_MORE = 12  # roundings of what a bound is computed from, beside those of its sums
_ROUNDING = 1e-8  # of the largest numbers: a hundredth of tol is a million roundings


@dataclass(frozen=True)
class LinearSystemQuantities:
    """Measures of an answer to a linear system; over several targets, the worst.

    Attributes
    ----------
    residual : float
        Norm of what is left of the equations: of y - (K + penalty S^-1) a - b, or, in the space of
        the features, of F'S (y - F w - b) - penalty w.
    relative_residual : float
        The same over the norm of the right-hand side, y or F'S y (without the mean of y when there
        is a bias, which takes that up).
    bias_condition : float
        |sum of a| over the sum of |a|; zero for an optimal bias, and without one.
    mismatch : float
        Where there are weights w beside a: how far F'a is from w, over the size of w, or
        (F'SF + penalty) F'a from (F'SF + penalty) w, over the right-hand side, whichever is more,
        beyond rounding.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by the
        construction of the kernel, rounding where K was factored, infinite where that is not shown.
    prediction_error : float
        In the space of the features: a bound of how far the values at the samples are from those of
        the exact solution, and of what rounding of values at landmarks adds, over the norm of the
        targets. Coefficients of samples need none: it is their relative residual.
    dual_residual : float
        Norm of y - (K + penalty S^-1) a - b for the coefficients a themselves, over that of y
        (without its mean when there is a bias): `relative_residual` where there are no weights
        beside them. With hardly a penalty a holds no digits of both: a gives the function of w, and
        may leave much of y. Zero where there are no coefficients, or is no penalty.
    """

    residual: float
    relative_residual: float
    bias_condition: float
    mismatch: float = 0.0
    indefiniteness: float = 0.0
    prediction_error: float = 0.0
    dual_residual: float = 0.0


@certify.register
def _(problem: LinearSystem, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    convex = definiteness(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        quantities = _measure(problem, value, convex)
    ok = (
        quantities.relative_residual <= tol
        and quantities.bias_condition <= tol
        and quantities.mismatch <= tol
        and quantities.prediction_error <= tol
        and not convex.seen
    )
    return Certificate(bool(ok), quantities, tol, _linear_system_statement(quantities, tol, convex))


def _linear_system_statement(q: LinearSystemQuantities, tol: float, convex: Definiteness) -> str:
    statement = (
        "the answer solves the ridge equations exactly once their right-hand side is changed by "
        f"{q.relative_residual:.1e} of its norm"
    )
    if q.mismatch > tol:
        statement += f"; but coefficients and weights are two answers, {q.mismatch:.1e} apart"
    elif q.dual_residual > max(tol, q.relative_residual):
        statement += (
            " (with their solution in weights of the features; the coefficients a of the rows give "
            f"the same function, but leave {q.dual_residual:.1e} of (K + penalty S^-1) a + b = y)"
        )
    if q.prediction_error > tol:
        statement += (
            f"; but its values at the samples are known to {q.prediction_error:.1e} of the norm of "
            "the targets only: use a larger penalty"
        )
    if convex.shown:
        return statement
    end = "this is a stationary point" if convex.seen else "other points may have a smaller error"
    return f"{statement}; {convex.obstacle}, so {end}"


def _measure(
    problem: LinearSystem, value: Coefficients, convex: Definiteness
) -> LinearSystemQuantities:
    primal = RKHSFunction(problem.gram, value.coef, value.weights).is_primal
    dual = _linear_system_dual(problem, value) if len(value.coef) else None
    judged = _linear_system_primal(problem, value) if primal or dual is None else dual
    residual, relative = norms(judged.residual), judged.relative
    left = np.zeros(1)
    if dual is not None:
        left = np.where(problem.penalties > 0, dual.relative if primal else relative, 0.0)
    bias = np.zeros(1)
    if problem.bias:
        pulls, most = np.abs(judged.pull).sum(axis=0), np.abs(judged.most_pull).sum(axis=0)
        bias = np.abs(judged.pull.sum(axis=0)) / size_of(pulls, most)
    both = primal and len(value.coef) > 0
    apart = _mismatch(problem, value) if both else np.zeros(1)
    off = _prediction_error(problem, value, judged) if primal else np.zeros(1)
    return LinearSystemQuantities(
        residual=worst(residual),
        relative_residual=worst(relative),
        bias_condition=worst(bias),
        mismatch=worst(apart),
        indefiniteness=convex.shift,
        prediction_error=worst(off),
        dual_residual=worst(left),
    )


class _LinearSystemJudged(NamedTuple):
    """What is left of the equations, and what it is measured by.

    A bias takes up the mean of the targets, so the right-hand side counts without it; `largest`
    and `most_pull` are the sizes before anything cancelled, which set the level of rounding.
    """

    residual: Array
    right: Array
    largest: Array
    pull: Array
    most_pull: Array

    @property
    def relative(self) -> Array:
        """What is left of the equations, over their right-hand side."""
        return np.asarray(norms(self.residual) / size_of(norms(self.right), norms(self.largest)))


def _linear_system_dual(problem: LinearSystem, value: Coefficients) -> _LinearSystemJudged:
    gram = exact(problem.gram)
    y, penalised = problem.targets, problem.penalties > 0
    inverse = np.where(penalised, 1.0 / np.where(penalised, problem.penalties, 1.0), 0.0)
    right = _linear_system_centred(problem, y)
    return _LinearSystemJudged(
        problem.residual(value, _product(gram, value.coef, norms(right))),
        right,
        y,
        value.coef,
        problem.row_weights[:, None] * y * inverse,
    )


def _linear_system_primal(problem: LinearSystem, value: Coefficients) -> _LinearSystemJudged:
    gram: Any = exact(problem.gram)
    weights: Any = value.weights
    s, y = problem.row_weights[:, None], problem.targets
    pull, targets = np.empty_like(y), s * _linear_system_centred(problem, y)

    def beside(rows: slice, values: Array) -> Array:
        pull[rows] = s[rows] * (y[rows] - values - value.intercept)
        return np.hstack([pull[rows], targets[rows]])

    lost, right = np.hsplit(gram.round_trip(weights, beside), 2)
    lengths = np.sqrt(gram.longest())
    terms = s * (np.outer(lengths, norms(weights)) + np.abs(y) + np.abs(value.intercept))
    # values are sums of d products, and what they are pulled by of n, Higham (3.5)
    rounding = gamma(gram.shape[0] + gram.rank + _MORE) * np.linalg.norm(lengths) * norms(terms)
    F: Any = gram.written
    for t in np.flatnonzero(rounding > _ROUGH * norms(right)) if F is not None else ():
        held = np.append(-weights[:, t], [1.0, -value.intercept[t]])
        columns = _beside(F, y[:, t])
        pull[:, t] = s[:, 0] * transposed_product(columns.T, held)[0]
        lost[:, t] = transposed_product(F, pull[:, t])[0]
    residual = lost - problem.penalties * value.weights
    return _LinearSystemJudged(residual, right, gram.absolute_pull(np.abs(s * y)), pull, s * y)


def _prediction_error(problem: LinearSystem, value: Coefficients, judged: Any) -> Array:
    """Bound how far values at the samples are from the exact ones, over the norm of the targets.

    With A = F'SF + penalty I a residual rho moves weights by A^-1 rho, and values at the samples,
    in the norm of S, by at most the norm of A^-1/2 rho, as F'SF is no larger than A. By the
    singular values sigma of S^1/2 F that is at most |rho| max sigma / (sigma^2 + penalty), and
    1 / (2 sqrt(penalty)) bounds the factor.
    """
    gram: Any = problem.gram
    root = np.sqrt(problem.row_weights)[:, None]
    targets = root * problem.targets
    size = size_of(norms(root * _linear_system_centred(problem, problem.targets)), norms(targets))
    rho, level = judged.residual, np.zeros(len(size))
    if problem.bias:  # which takes up the mean of the features, and what is left of its equation
        total, pull = float(problem.row_weights.sum()), judged.pull.sum(axis=0)
        mean = np.asarray(gram.pull(problem.row_weights[:, None])) / total
        rho, level = rho - mean * pull, np.abs(pull) / np.sqrt(total)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(norms(rho) > 0, norms(rho) / (2.0 * np.sqrt(problem.penalties)), 0.0)
    F: Any = gram.written
    n, d = gram.shape[0], gram.rank
    if (moved > _TOL * size).any() and F is not None and float(n) * d * d <= _DECOMPOSED:
        moved = np.minimum(moved, _moved(problem, root * to_dense(F), rho))
    rounding = np.sqrt(n) * _landmark_rounding(problem, value)
    return np.asarray((moved + level + rounding) / size)


def _moved(problem: LinearSystem, F: Array, rho: Array) -> Array:
    """Return |S^1/2 F A^-1 rho| by the singular values of S^1/2 F, centred where there is a bias.

    Those that are zero to rounding move nothing where there is no penalty: the answer of least
    norm has no part there. Else they count as what they may be.
    """
    if problem.bias:
        root = np.sqrt(problem.row_weights)
        F = F - np.outer(root, root @ F / float(problem.row_weights.sum()))
    _, sigma, Vt = np.linalg.svd(F, full_matrices=False)
    hidden = float(np.finfo(np.float64).eps) * max(F.shape) * float(sigma.max(initial=0.0))
    parts, found = np.abs(Vt @ rho), np.empty(rho.shape[1])
    for t, penalty in enumerate(problem.penalties):
        known = np.where(sigma > hidden, sigma / np.maximum(sigma**2 + penalty, _TINY), 0.0)
        if penalty > 0:
            at = min(hidden, np.sqrt(penalty))
            known = np.maximum(known, np.where(sigma > hidden, 0.0, at / (at * at + penalty)))
        found[t] = np.linalg.norm(known * parts[:, t])
    return 2.0 * found  # the singular values round, too


def _landmark_rounding(problem: LinearSystem, value: Coefficients) -> Array:
    """Bound what rounding of the kernel's values at landmarks makes of a value, (t,).

    A value is b'c with c = R w. Entries of b round by a few units of the kernel's size, and sums of
    products by gamma of their number, Higham (3.5).
    """
    gram: Any = problem.gram
    features, weights = gram.features, cast(Array, value.weights)
    while isinstance(features, CenteredFeatures):
        features = features.features
    steps: tuple[Any, ...] = getattr(getattr(features, "expression", None), "steps", ())
    phi = steps[0].function if len(steps) == 1 and isinstance(steps[0], Mapped) else features
    if not isinstance(phi, RowMap):
        return np.zeros(len(problem.penalties))
    largest = float(gram.longest().max(initial=0.0))
    sizes = np.abs(phi.mix(weights)).sum(axis=0)
    return np.asarray(gamma(phi.width + _MORE) * largest * sizes)


def _beside(F: Any, y: Array) -> Any:
    """Return features, targets and ones side by side."""
    others = np.column_stack([y, np.ones(len(y))])
    if is_sparse(F):
        return sparse.hstack([F, sparse.csr_array(others)], format="csr")
    return np.hstack([F, others])


def _product(gram: Gram, V: Array, sizes: Array) -> Array:
    """Return K V, by sums without rounding where that could hide a residual of these sizes."""
    product = np.array(gram @ V)
    for t in range(V.shape[1]):
        rounding = np.linalg.norm(product_rounding(gram, V[:, t]))
        found = accurate_product(gram, V[:, t]) if rounding > _ROUGH * sizes[t] else None
        if found is not None:
            product[:, t] = found[0]
    return product


def _mismatch(problem: LinearSystem, value: Coefficients) -> Array:
    """Compare both forms of an answer: one number for each target.

    As functions, by their weights; and by what the equations make of the difference, since a small
    change of the weights may be a large one of the function. F'a is known to gamma_n |F|'|a|,
    Higham (3.5), which is not held against an answer.
    """
    F: Any = problem.gram.factor
    sizes: Any = abs(F)
    s, w = problem.row_weights[:, None], cast(Array, value.weights)
    difference = np.asarray(F.T @ value.coef) - w
    count = int(np.count_nonzero(np.any(value.coef != 0, axis=1)))
    rounding = gamma(count + _MORE) * (sizes.T @ np.abs(value.coef))
    shift, most = F @ difference, sizes @ rounding
    level = s[:, 0] @ shift / s.sum() if problem.bias else np.zeros(shift.shape[1])
    # a constant has no place in the equations of the weights: it is one of the bias's
    moved = F.T @ (s * (shift - level)) + problem.penalties * difference
    least = sizes.T @ (s * most) + problem.penalties * rounding
    targets = _linear_system_centred(problem, problem.targets)
    apart = [
        _beyond(difference, rounding, w),
        _beyond(moved, least, F.T @ (s * targets)),
        _beyond(level[None, :], s.T @ most / s.sum(), norms(np.sqrt(s / s.sum()) * targets)[None]),
    ]
    return np.asarray(np.maximum.reduce(apart))


def _beyond(difference: Array, rounding: Array, size: Array) -> Array:
    """Return the norm of differences beyond rounding, relative to a size."""
    over = np.maximum(np.abs(difference) - rounding, 0.0)
    return np.asarray(norms(over) / np.maximum(norms(size), np.finfo(float).tiny))


def _linear_system_centred(problem: LinearSystem, y: Array) -> Array:
    s = problem.row_weights
    return np.asarray(y - s @ y / s.sum()) if problem.bias else y


def size_of(measured: Array, largest: Array) -> Array:
    """Return what to divide by: never so little that rounding alone would count as an error."""
    return np.maximum(np.maximum(measured, _ROUNDING * largest), np.finfo(float).tiny)


def worst(x: Array) -> float:
    """Return the largest number; infinity where one is none."""
    return float(x.max(initial=0.0)) if np.isfinite(x).all() else float("inf")


# --- ridge path ----------------------------------------------------------------------------------
#
# Is the path's answer right? At the chosen penalties it must solve their linear system.
#
# Leave-one-out errors would take the inverse of the matrix to judge. What is asked of them is
# that they agree with one another: residuals with the score that they make, and that with the
# choice.

_SAME = 1e-6  # of a score: what summing in another order may change, and more
_TIE = 1e-5  # scores this close count as equal when a penalty is chosen


@certify.register
def _(problem: RidgePath, value: PathValue, tol: float | None = None) -> Certificate:
    chosen = problem.penalties[value.best]
    system = LinearSystem(problem.gram, problem.targets, chosen, problem.row_weights, problem.bias)
    judged = certify(system, Coefficients(value.coef, value.intercept, value.weights), tol)
    best = value.scores[value.best, np.arange(len(value.best))]
    with np.errstate(over="ignore", invalid="ignore"):  # squares of targets of 1e200 are infinite
        rounding = 2 * NEGLIGIBLE * np.square(np.abs(problem.targets).max(axis=0, initial=0.0))
        consistent = (best <= value.scores.min(axis=0) * (1 + _TIE) + rounding).all()
        found = _scores(problem, value)
        agree = (np.abs(best - found) <= _SAME * best + np.finfo(float).tiny) | (best == found)
    statement = (
        f"{judged.statement}; of the leave-one-out errors that chose the penalty only their "
        "agreement with one another is judged"
    )
    ok = judged.ok and consistent and agree.all()
    return replace(judged, ok=bool(ok), statement=statement)


def _scores(problem: RidgePath, value: PathValue) -> Array:
    """Return the weighted mean squares of the residuals, in units of which none overflows."""
    unit = np.maximum(np.abs(value.residuals).max(axis=0), np.finfo(float).tiny)
    share = problem.row_weights / problem.row_weights.sum()
    return np.asarray(share @ np.square(value.residuals / unit) * unit * unit)


# --- folded path ---------------------------------------------------------------------------------
#
# Does every fold's fit solve its own equations? From K, or the features, and the answers alone.
#
# Residuals count by the weights of the rows: they are those of (R K R + p) x = R (y - b), R =
# S^1/2. For leave-one-out, which has no coefficients to judge, C = K + p S^-1 is inverted anew.


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


class _FoldedPathJudged(NamedTuple):
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
            judged = [_folded_path_primal(problem, value, k) for k in range(len(problem.folds))]
        else:
            judged = [_folded_path_dual(problem, value, gram, k) for k in range(len(problem.folds))]
    columns = [np.concatenate(column) for column in zip(*judged, strict=True)]
    residual, bias, mismatch = map(worst, columns) if columns else (0.0, 0.0, 0.0)
    unmet = int(np.count_nonzero(~value.met))
    quantities = FoldedPathQuantities(residual, bias, mismatch, unmet, convex.shift)
    ok = max(residual, bias, mismatch) <= tol and not unmet and not convex.seen
    return Certificate(
        bool(ok), quantities, tol, _folded_path_statement(quantities, value.met.size, convex)
    )


def _folded_path_statement(q: FoldedPathQuantities, fits: int, convex: Definiteness) -> str:
    statement = (
        f"{fits - q.unmet} of {fits} fits solve the ridge equations of their folds exactly once "
        f"right-hand sides are changed by {q.relative_residual:.1e} of their norms; values at the "
        f"rows are within {q.mismatch:.1e} of the largest target"
    )
    return statement if convex.shown else f"{statement}; {convex.obstacle}"


def _folded_path_dual(
    problem: FoldedRidgePath, value: FoldedPathValue, gram: Gram, k: int
) -> _FoldedPathJudged:
    assert problem.folds is not None and value.coef is not None and value.intercept is not None
    met, rows = value.met[k], problem.learnt_from(problem.folds[k])
    s, y = problem.row_weights[rows, None], problem.targets[rows, None]
    a, b, root = value.coef[k][:, met], value.intercept[k, met], np.sqrt(s)
    fit = gram @ a + b
    left = root * (y - fit[rows] - problem.penalties[met] * a[rows] / s)
    right = norms(root * _folded_path_centred(problem, y, s))
    residual = norms(left) / size_of(right, norms(root * y))
    residual[np.delete(a, rows, axis=0).any(axis=0)] = np.inf
    pulls, most = a[rows], s * y / problem.penalties[met]
    return _FoldedPathJudged(residual, _bias(problem, pulls, most), _apart(problem, value, k, fit))


def _folded_path_primal(
    problem: FoldedRidgePath, value: FoldedPathValue, k: int
) -> _FoldedPathJudged:
    assert problem.folds is not None and value.weights is not None and value.intercept is not None
    F: Any = problem.gram.factor
    met, rows = value.met[k], problem.learnt_from(problem.folds[k])
    s, y = problem.row_weights[rows, None], problem.targets[rows, None]
    w = value.weights[k][:, met]
    fit = np.asarray(F @ w + value.intercept[k, met])
    pulls, part = s * (y - fit[rows]), F[rows]
    right, largest = (
        norms(part.T @ (s * _folded_path_centred(problem, y, s))),
        norms(abs(part.T) @ abs(s * y)),
    )
    residual = norms(part.T @ pulls - problem.penalties[met] * w) / size_of(right, largest)
    return _FoldedPathJudged(residual, _bias(problem, pulls, s * y), _apart(problem, value, k, fit))


def _left_out(problem: FoldedRidgePath, value: FoldedPathValue, gram: Gram) -> _FoldedPathJudged:
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
    return _FoldedPathJudged(none, none, _apart(problem, value, 0, found))


def _folded_path_centred(problem: FoldedRidgePath, y: Array, s: Array) -> Array:
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
