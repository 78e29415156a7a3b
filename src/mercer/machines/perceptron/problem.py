"""Functions that separate classes, the solutions of a perceptron."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.gram.accurate_products import gamma

_MORE = 12  # roundings of a score in addition to those of its sums: lengths, constants, differences


@dataclass(frozen=True, eq=False)
class Separator:
    """A solution of a `Separation`.

    Attributes
    ----------
    coef : (n, k) array
        f = sum_i coef_i k(x_i, .) + intercept: the last function.
    intercept : (k,) array
        Its constants.
    weights : (D, k) array or None
        For K = F F': the weights F'coef.
    mean_coef, mean_intercept, mean_weights : array
        The same of the average over all steps.
    mistakes : int
        Mistakes made on the way.
    forgotten : int
        Mistakes that a budget made it forget.
    log : (mistakes, 4) int array
        Each mistake: row, right class, rival, step; empty unless requested.
    """

    coef: Array
    intercept: Array
    weights: Array | None
    mean_coef: Array
    mean_intercept: Array
    mean_weights: Array | None
    mistakes: int
    forgotten: int
    log: Array


@dataclass(frozen=True, eq=False)
class Separation:
    """Find functions that give the class of each row the largest score.

    One function f for two classes, which is to have the sign of the class; one for each class
    otherwise. The bias is the weight of a constant feature 1, so k(x, x) + 1 counts as length.

    Attributes
    ----------
    gram : Gram
        K.
    codes : (n,) int array
        The number of the class of each row.
    count : int
        Number of classes.
    bias : bool
        Whether there is a bias.
    """

    gram: Gram
    codes: Array
    count: int
    bias: bool

    @property
    def columns(self) -> int:
        """Number of functions."""
        return 1 if self.count == 2 else self.count

    def rounding(self, lengths: Array, norm: float, bias: Array, terms: int) -> Array:
        """Bound what advantages may be off by: rounding of scores that cancel to nothing.

        Higham (3.5): gamma_n of the sizes of the n terms of a score, for each of two scores.

        Parameters
        ----------
        lengths : (n,) array
            |phi(x)| of the rows.
        norm : float
            The norm of the longest function, or the sum of |coefficient| |phi(x)| it is made of.
        bias : (k,) array
            The constants.
        terms : int
            Maximum number of products in the sum of a score.
        """
        differences = 1.0 if self.columns == 1 else 2.0
        constant = float(np.abs(bias).max(initial=0.0))
        return np.asarray(differences * gamma(terms + _MORE) * (lengths * norm + constant))

    def advantages(self, f: Array) -> Array:
        """Return how much the right class is ahead, for scores (n, columns): (n,)."""
        if self.columns == 1:
            return np.where(self.codes == 1, f[:, 0], -f[:, 0])
        rows, others = np.arange(len(f)), f.copy()
        others[rows, self.codes] = -np.inf
        return np.asarray(f[rows, self.codes] - others.max(axis=1))
