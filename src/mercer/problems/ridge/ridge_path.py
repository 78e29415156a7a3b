"""Ridge regression at many penalties, judged by exact leave-one-out errors.

With C = K + penalty S^-1 (S the row weights), G = C^-1 (and G - u u'/1'u, u = G 1, with a bias),
the fit is a = G y and its residuals are r_i = penalty a_i / s_i. Taking the weight t off row i
changes its residual to r_i / (1 - t h_i), h_i = (1 - penalty G_ii / s_i) / s_i. Leave-one-out takes
off one copy, t = min(1, s_i): weights mean repetition, and for s_i = 1 this is a_i / G_ii.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram

_TIE = 1e-6  # of the smallest error
NEGLIGIBLE = 1e-20  # squared errors, in units of the targets, that are rounding only


@dataclass(frozen=True, eq=False)
class PathValue:
    """An answer to a `RidgePath`.

    Attributes
    ----------
    scores : (penalties, t) array
        Weighted mean squared leave-one-out error for each penalty and target.
    best : (t,) int array
        For each target, the position of its best penalty.
    coef : (n, t) array
        Coefficients at the best penalties.
    intercept : (t,) array
        Biases at the best penalties.
    residuals : (n, t) array
        Leave-one-out residuals y_i - f_{-i}(x_i) at the best penalties.
    weights : (D, t) array or None
        As in `Coefficients`.
    """

    scores: Array
    best: Array
    coef: Array
    intercept: Array
    residuals: Array
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Kernel ridge regression along a path of penalties.

    Attributes
    ----------
    gram : Gram
        K.
    targets : (n, t) array
        The right-hand sides y.
    row_weights : (n,) array
        Positive weights s of the rows.
    penalties : (p,) array
        Positive penalties.
    bias : bool
        Whether there is an unpenalised bias.
    """

    gram: Gram
    targets: Array
    row_weights: Array
    penalties: Array
    bias: bool


@dataclass(frozen=True, eq=False)
class RidgePoint:
    """One penalty of a path, for all targets: coefficients, biases, leave-one-out residuals."""

    coef: Array
    intercept: Array
    residuals: Array


def ridge_point(
    problem: RidgePath, penalty: float, inverse_diag: Array, solved: Array
) -> RidgePoint:
    """Finish one penalty from diag(C^-1) and C^-1 [y, 1].

    Parameters
    ----------
    problem : RidgePath
        The problem.
    penalty : float
        The penalty in C.
    inverse_diag : (n,) array
        diag(C^-1).
    solved : (n, t + 1) array
        C^-1 y for each target, and C^-1 1 in the last column (unused without a bias).
    """
    a, u = solved[:, :-1], solved[:, -1]
    G_diag, intercept = inverse_diag, np.zeros(a.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # then this penalty has an infinite score
        if problem.bias:
            intercept = a.sum(axis=0) / u.sum()
            a = a - np.outer(u, intercept)
            G_diag = inverse_diag - u * (u / u.sum())
        stiffness = _stiffness(problem.row_weights, penalty, G_diag)
        return RidgePoint(a, intercept, a / stiffness[:, None])


def _stiffness(s: Array, penalty: float, G_diag: Array) -> Array:
    """Return what to divide a_i by for the residual r_i / (1 - t h_i), without cancellation.

    1 - t h_i is penalty G_ii / s_i for s_i <= 1, and 1 - 1/s_i + penalty G_ii / s_i^2 above.
    """
    copies_left = np.maximum(s - 1.0, 0.0) / penalty
    return np.maximum(copies_left + G_diag / np.maximum(1.0, s), np.finfo(float).tiny)


def assemble_path(problem: RidgePath, points: list[RidgePoint]) -> PathValue:
    """Pick for each target the penalty with the smallest leave-one-out error.

    Ties go to the larger penalty: of two equally good functions the smoother one. Errors that
    differ by less than a millionth are tied, so that rounding does not decide.
    """
    s = problem.row_weights / problem.row_weights.sum()
    # in units of the targets, whose squares may overflow or vanish where the errors compare well
    unit = np.abs(problem.targets).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.array([s @ np.square(point.residuals / unit) for point in points])
        errors[~np.isfinite(errors)] = np.inf
        scores = errors * unit * unit
    tied = errors <= (1.0 + _TIE) * errors.min(axis=0) + NEGLIGIBLE
    best = np.argmax(np.where(tied, problem.penalties[:, None], -np.inf), axis=0)
    chosen = list(enumerate(best.tolist()))
    return PathValue(
        scores,
        best,
        np.column_stack([points[p].coef[:, t] for t, p in chosen]),
        np.array([points[p].intercept[t] for t, p in chosen]),
        np.column_stack([points[p].residuals[:, t] for t, p in chosen]),
    )
