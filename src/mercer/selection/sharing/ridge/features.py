"""All penalties of a fold where the kernel has few features: one small eigenproblem.

F'SF of the rows learnt from is that of all rows less that of the rows left out. Features are moved
by their mean over all rows beforehand: a bias takes up any shift, and no digits are lost to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.selection.sharing.ridge.system import FoldAnswer

_REFINED = 2
_BOUND = 1e-8  # of the spread of the targets: what a prediction may be off
_NOTHING = 1e-200


@dataclass(frozen=True, eq=False)
class Features:
    """Features of all rows.

    Attributes
    ----------
    F : (n, D) array
        Features, with the mean over all rows taken off where there is a bias.
    weights : (n,) array
        Weights s of all rows.
    square : (D, D) array
        F'SF.
    longest : float
        The length of the longest row of F.
    bias : bool
        Whether there is a bias.
    """

    F: Array
    weights: Array
    square: Array
    longest: float
    bias: bool

    @classmethod
    def of(cls, F: Array, weights: Array | None, bias: bool) -> Features:
        """Take features as they are."""
        s = np.ones(len(F)) if weights is None else weights
        F = F - s @ F / s.sum() if bias else F
        longest = float(np.sqrt(np.einsum("ij,ij->i", F, F).max(initial=0.0)))
        return cls(F, s, F.T @ (s[:, None] * F), longest, bias)

    def fits(self, rows: Array, y: Array, penalties: Array) -> FoldAnswer:
        """Fit to some rows: (F'SF + p) v = F'S (y - b), all centred where there is a bias."""
        s = np.zeros(len(self.F))
        s[rows] = self.weights[rows]
        total, N = s.sum(), self._square_of(s)
        right, mean, middle = self.F.T @ (s * y), np.zeros(len(N)), 0.0
        if self.bias:
            mean, middle = s @ self.F / total, float(s @ y / total)
            N = N - total * np.outer(mean, mean)
            right = self.F.T @ (s * (y - middle)) - mean * (s @ (y - middle))
        values, U = np.linalg.eigh(N)
        V = np.zeros((len(N), len(penalties)))
        left = np.repeat(right[:, None], len(penalties), axis=1)
        for _ in range(1 + _REFINED):
            V += U @ ((U.T @ left) / (np.maximum(values, 0.0)[:, None] + penalties))
            left = right[:, None] - N @ V - V * penalties
        # what is left moves a prediction by phi(z)'(N + p)^-1 left
        off = np.linalg.norm(left, axis=0) * self.longest / penalties
        met = off <= _BOUND * np.sqrt(s @ np.square(y - middle) / total) + _NOTHING
        return FoldAnswer(self.F @ V + (middle - mean @ V), met)

    def _square_of(self, s: Array) -> Array:
        """Return F'SF for weights that are zero outside of the fold."""
        out = np.flatnonzero((s == 0) & (self.weights > 0))
        if 2 * len(out) > len(s):
            return np.asarray(self.F.T @ (s[:, None] * self.F))
        F = self.F[out]
        return np.asarray(self.square - F.T @ (self.weights[out, None] * F))
