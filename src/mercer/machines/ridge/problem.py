"""Kernel ridge regression as a linear system, a path of penalties, and a path over folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.rows.points import to_dense

# --- linear system -------------------------------------------------------------------------------
#
# (K + penalty S^-1) a + b 1 = y, with 1'a = 0 when there is a bias b: ridge regression.

_LARGEST_SHIFT = 1e300


@dataclass(frozen=True, eq=False)
class Coefficients:
    """An answer to a `LinearSystem`.

    Attributes
    ----------
    coef : (n, t) array
        One column a per target; no rows where only the weights are known, as from libraries that
        have no other form. A form that is there is judged.
    intercept : (t,) array
        The biases b; zero where the system has none.
    weights : (D, t) array or None
        For K = F F' answered in the space of the features: w = F'a. With small penalties w is
        known to full precision where a, a residual divided by the penalty, is not.
    """

    coef: Array
    intercept: Array
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Kernel ridge regression as equations.

    Minimising sum_i s_i (y_i - f(x_i))^2 + penalty |f|^2 over f = sum_j a_j k(x_j, .) + b gives
    (K + penalty S^-1) a + b 1 = y and, for the unpenalised bias, 1'a = 0.

    Attributes
    ----------
    gram : Gram
        K.
    targets : (n, t) array
        The right-hand sides y.
    penalties : (t,) array
        The penalty of each target.
    row_weights : (n,) array
        Positive weights s of the rows.
    bias : bool
        Whether there is a bias b.
    """

    gram: Gram
    targets: Array
    penalties: Array
    row_weights: Array
    bias: bool

    def shift(self, target: int) -> Array:
        """Return the diagonal that is added to K for a target."""
        with np.errstate(over="ignore"):  # a row of no weight to speak of gets no coefficient
            return np.asarray(np.minimum(self.penalties[target] / self.row_weights, _LARGEST_SHIFT))

    def groups(self) -> Iterator[Array]:
        """Return the sets of targets that share one penalty, hence one matrix."""
        for penalty in np.unique(self.penalties):
            yield np.flatnonzero(self.penalties == penalty)

    def residual(self, value: Coefficients, product: Array) -> Array:
        """Return y - (K + penalty S^-1) a - b 1, given `product` = K a."""
        shifts = np.column_stack([self.shift(t) for t in range(len(self.penalties))])
        shifted = shifts * value.coef
        return np.asarray(self.targets - product - shifted - value.intercept)


# --- ridge path ----------------------------------------------------------------------------------
#
# Ridge regression at many penalties, judged by exact leave-one-out errors.
#
# With C = K + penalty S^-1 (S the row weights), G = C^-1 (and G - u u'/1'u, u = G 1, with a
# bias), the fit is a = G y and its residuals are r_i = penalty a_i / s_i. Taking the weight t off
# row i changes its residual to r_i / (1 - t h_i), h_i = (1 - penalty G_ii / s_i) / s_i. Leave-
# one-out takes off one copy, t = min(1, s_i): weights mean repetition, and for s_i = 1 this is
# a_i / G_ii.

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


# --- folded path ---------------------------------------------------------------------------------
#
# Ridge regression at many penalties on many folds: what cross-validation asks.
#
# Fold k learns from the rows T of positive weight s in `folds[k]`. At penalty p it asks for f =
# sum_{i in T} a_i k(x_i, .) + b with (K_TT + p S^-1) a + b 1 = y_T and, where there is a bias,
# 1'a = 0: a `LinearSystem` for every fold and penalty. K is one matrix for all of them, so they
# are answered together.


@dataclass(frozen=True, eq=False)
class FoldedPathValue:
    """An answer to a `FoldedRidgePath`: k folds, n rows, p penalties.

    Attributes
    ----------
    values : (k, n, p) array
        f at all rows, those learnt from and those left out. For leave-one-out k is 1, and row i
        holds what the fit without row i says there (of a row without weight, what the fit to all
        others says).
    met : (k, p) bool array
        Whether the equations of the fold are met at the penalty, to nearly all digits. Where they
        are not, all numbers are NaN: a `LinearSystem` on the rows of the fold may still be solved.
    intercept : (k, p) array or None
        The biases b; None for leave-one-out, which has a fit for each row.
    coef : (k, n, p) array or None
        Coefficients a, zero outside of the fold; None where there are weights, and for
        leave-one-out.
    weights : (k, D, p) array or None
        For K = F F' answered in the space of the features: w = F'a.
    """

    values: Array
    met: Array
    intercept: Array | None = None
    coef: Array | None = None
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """What all folds have in common where K = F F': moments of the features of all rows.

    Attributes
    ----------
    F : (n, D) array
        Features, with the mean over all rows taken off where there is a bias: a bias takes up any
        shift, and no digits are lost to it.
    mean : (D,) array
        That mean; zero without a bias.
    square : (D, D) array
        F'SF.
    longest : float
        The length of the longest row of F.
    """

    F: Array
    mean: Array
    square: Array
    longest: float

    @classmethod
    def of(cls, gram: Gram, row_weights: Array, bias: bool) -> FeatureMoments:
        """Multiply the features of all rows."""
        F, s = to_dense(gram.factor), row_weights
        mean = s @ F / s.sum() if bias else np.zeros(F.shape[1])
        F = F - mean if bias else F
        longest = float(np.sqrt(np.einsum("ij,ij->i", F, F).max(initial=0.0)))
        return cls(F, mean, F.T @ (s[:, None] * F), longest)


@dataclass(frozen=True, eq=False)
class FoldedRidgePath:
    """Kernel ridge regression along a path of penalties, on every fold.

    Attributes
    ----------
    gram : Gram
        K on all rows. Products for several folds are fastest where rows that are in the same folds
        lie side by side (`mercer.machines.ridge.folds.fold_order`).
    targets : (n,) array
        The right-hand side y.
    row_weights : (n,) array
        Weights s of the rows; none is learnt from where they are zero.
    penalties : (p,) array
        Positive penalties.
    bias : bool
        Whether there is an unpenalised bias.
    folds : tuple of int arrays, or None
        The rows that each fold learns from; None for leave-one-out, where each row is predicted by
        the fit to all others.
    moments : FeatureMoments, optional
        Those of `gram`, where they are known already: problems that differ in their folds alone
        share them.

    Examples
    --------
    Every other row is left out in turn:

    >>> import numpy as np
    >>> from mercer.certificates import certify
    >>> from mercer.gram import Need, make_gram
    >>> from mercer.kernels import Gaussian
    >>> from mercer.solvers import solve
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y, even = np.sin(X[:, 0]), np.arange(40) % 2 == 0
    >>> folds = (np.flatnonzero(even), np.flatnonzero(~even))
    >>> gram = make_gram(Gaussian(1.0), X, Need.MATRIX)
    >>> penalties = np.array([1e-3, 0.1, 10.0])
    >>> problem = FoldedRidgePath(gram, y, np.ones(40), penalties, True, folds)
    >>> found = solve(problem)
    >>> found.status.name, certify(problem, found.value).ok
    ('SOLVED', True)
    >>> left_out = found.value.values[0, ~even] - y[~even, None]  # errors of the first fold
    >>> [f"{error:.3f}" for error in np.abs(left_out).max(axis=0)]
    ['0.019', '0.091', '0.670']
    """

    gram: Gram
    targets: Array
    row_weights: Array
    penalties: Array
    bias: bool
    folds: tuple[Array, ...] | None
    moments: FeatureMoments | None = None

    def learnt_from(self, fold: Array) -> Array:
        """Return the rows of a fold that have weight."""
        return np.asarray(fold[self.row_weights[fold] > 0])
