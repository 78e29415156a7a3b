"""The features of K = F F' as a regression sees them: weighted, centred when there is a bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.points import is_sparse, to_dense
from mercer.problems import Coefficients
from mercer.solvers.dual_form import dual_form

_EPS = float(np.finfo(float).eps)
ENTRY_ROUNDING = 8 * _EPS  # of an entry: a change of features so small is none
_BLOCK_WORK = 1e9  # operations between two chances to hear Ctrl-C


def resolved(sigma: Array, Vt: Array, lengths: Array, shape: tuple[int, ...]) -> Array:
    """Return which singular values of features, centred or not, are more than rounding.

    Let E have singular vectors v. Two roundings decide. That of the decomposition moves sigma by
    max(shape) eps sigma_max at most. That of the entries, known to eps |F_ij| each, before and
    after a mean is taken off, moves E v by eps sum_j |v_j| |F_j|, |F_j| the length of a column
    before it was centred: for a column far from zero, or columns of which one depends on the
    others, that is more. With a margin of 8, a change of a few units in the last place decides
    nothing, and columns
    that are small, but near zero, still count.

    Parameters
    ----------
    sigma : (r,) array
        Singular values of E.
    Vt : (r, D) array
        Their right singular vectors, one in a row.
    lengths : (D,) array
        The length of each column before it was centred.
    shape : tuple of int
        The shape of the matrix that was decomposed.
    """
    floor = max(shape) * _EPS * float(sigma.max(initial=0.0))
    return np.asarray(sigma > np.maximum(floor, ENTRY_ROUNDING * (np.abs(Vt) @ lengths)))


@dataclass(frozen=True, eq=False)
class Design:
    """G = F - 1 mean' with row weights s; the mean is zero without a bias.

    Attributes
    ----------
    F : (n, D) array or CSR array
        The features.
    G : (n, D) array or CSR array
        Dense features centred; sparse ones as they are, to stay sparse.
    s : (n,) array
        Row weights.
    mean : (D,) array
        The weighted mean of F.
    left : (D,) array
        What products must still take off G: the mean of sparse features, zero of dense ones.
    bias : bool
        Whether there is a bias.
    """

    F: Any
    G: Any
    s: Array
    mean: Array
    left: Array
    bias: bool

    @classmethod
    def of(cls, gram: Any, s: Array, bias: bool) -> Design:
        """Take the features of a factored Gram."""
        F = gram.factor
        none = np.zeros(F.shape[1])
        if not bias:
            return cls(F, F, s, none, none, bias)
        mean = np.asarray(F.T @ s) / s.sum()
        if is_sparse(F):
            return cls(F, F, s, mean, mean, bias)
        # taking means off products instead would lose all digits that the mean takes up
        return cls(F, F - mean, s, mean, none, bias)

    def center(self, y: Array) -> Array:
        """Take the weighted mean off targets, when there is a bias."""
        return np.asarray(y - self.s @ y / self.s.sum()) if self.bias else y

    def dense(self) -> Array:
        """Return G as an ordinary array."""
        return np.asarray(to_dense(self.G) - self.left)

    def lengths(self) -> Array:
        """Return the length of each column of S^1/2 F, which is not centred."""
        squares = np.square(self.F) if not is_sparse(self.F) else self.F.multiply(self.F)
        return np.asarray(np.sqrt(squares.T @ self.s))

    def normal_matrix(self) -> Array:
        """Return G'SG."""
        if is_sparse(self.G):
            product = to_dense(self.G.T @ self.G.multiply(self.s[:, None]).tocsr())
            return np.asarray(product - self.s.sum() * np.outer(self.left, self.left))
        n, d = self.G.shape
        product, height = np.zeros((d, d)), max(256, int(_BLOCK_WORK / max(1, d**2)))
        weighted = bool((self.s != 1).any())
        for first in range(0, n, height):
            block = self.G[first : first + height]
            if weighted:
                block = np.sqrt(self.s[first : first + height, None]) * block
            product += block.T @ block  # of one array with itself: half the work
        return product

    def rmatvec(self, residual: Array) -> Array:
        """Return G'S r for a residual that was centred."""
        return np.asarray(self.G.T @ (self.s[:, None] * residual))

    def push(self, weights: Array) -> Array:
        """Return G w."""
        return np.asarray(self.G @ weights - self.left @ weights)

    def coefficients(
        self, weights: Array, targets: Array, penalties: Array, floor: float
    ) -> Coefficients:
        """Return the answer in both spaces: a = S (y - F w - b) / penalty.

        A penalty up to `floor` is none: there, of all a with F'a = w, take the shortest.
        """
        residual = self.center(targets) - self.push(weights)
        intercept = np.zeros(targets.shape[1])
        if self.bias:
            intercept = self.s @ targets / self.s.sum() - self.mean @ weights
        penalised = penalties > floor
        coef = self.s[:, None] * residual / np.where(penalised, penalties, 1.0)
        middle = None if is_sparse(self.G) or not self.bias else self.mean
        coef[:, penalised] = dual_form(
            self.G, middle, self.s, self.bias, coef[:, penalised], weights[:, penalised]
        )
        if not penalised.all():
            right = weights[:, ~penalised]
            answer = interruptible(np.linalg.lstsq, to_dense(self.F).T, right, rcond=None)
            coef[:, ~penalised] = answer[0]
        return Coefficients(coef, intercept, weights)
