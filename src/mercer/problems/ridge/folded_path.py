"""Ridge regression at many penalties on many folds: what cross-validation asks.

Fold k learns from the rows T of positive weight s in `folds[k]`. At penalty p it asks for
f = sum_{i in T} a_i k(x_i, .) + b with (K_TT + p S^-1) a + b 1 = y_T and, where there is a bias,
1'a = 0: a `LinearSystem` for every fold and penalty. K is one matrix for all of them, so they are
answered together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.points import to_dense


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
        lie side by side (`mercer.solvers.ridge.folds.products.fold_order`).
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
