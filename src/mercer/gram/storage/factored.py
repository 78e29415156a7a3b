"""K = F F': the primal space. F are features of the points, explicit or approximate.

A solver that finds a `FactoredGram` with fewer columns than rows works with F'F instead of K. That
is the whole of the primal/dual choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.points import is_sparse, to_dense

FeatureFunction = Callable[[Points], Any]


class FactoredGram(Gram):
    """A Gram given by features.

    Parameters
    ----------
    features : callable
        Maps points to their features (n, D): a `mercer.kernels.FeatureMap` or anything alike.
    X : Points
        The training points.
    """

    valid = True
    features: FeatureFunction

    def __init__(self, features: FeatureFunction, X: Points) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # found by `refuse_overflow`
            self._hold(features, _float64(features(_float64(X))))

    @classmethod
    def of(cls, features: FeatureFunction, factor: Any) -> FactoredGram:
        """Return the Gram of features that are known already, or changed: K = factor factor'."""
        gram = object.__new__(cls)
        gram._hold(features, factor)
        return gram

    def _hold(self, features: FeatureFunction, factor: Any) -> None:
        self.features, self.factor = features, factor
        self.shape = (factor.shape[0], factor.shape[0])
        self.dtype = np.dtype(np.float64)

    @property
    def rank(self) -> int:
        """Count the features."""
        return int(self.factor.shape[1])

    def diag(self) -> Array:
        """Return the squared lengths of the features."""
        if is_sparse(self.factor):
            return np.asarray(self.factor.multiply(self.factor).sum(axis=1)).ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.einsum("ij,ij->i", self.factor, self.factor))

    def rows(self, index: Index) -> Array:
        """Multiply out rows."""
        return to_dense(self.factor[index] @ self.factor.T)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.factor @ (self.factor.T @ V))

    def dense(self) -> Array:
        """Multiply out everything."""
        return self.rows(slice(0, self.shape[0]))

    def round_trip(self, W: Array, change: Callable[[slice, Array], Array]) -> Array:
        """Return F'g(F W): g is given the numbers of rows and their values (r, k)."""
        every = slice(0, self.shape[0])
        return np.asarray(self.factor.T @ change(every, np.asarray(self.factor @ W)))

    def push(self, W: Array) -> Array:
        """Return F W."""
        return np.asarray(self.factor @ W)

    def pull(self, V: Array) -> Array:
        """Return F'V."""
        return self.round_trip(np.zeros((self.rank, 0)), lambda rows, _: V[rows])

    def absolute_pull(self, V: Array) -> Array:
        """Return |F|'V for V that is not negative: sums before anything cancels."""
        return np.asarray(abs(self.factor.T) @ V)

    @property
    def written(self) -> Any:
        """Return F if it is written out, else None."""
        return self.factor

    def sampled(self, index: Array) -> Array:
        """Return the features of some rows."""
        return np.asarray(to_dense(self.factor[index]))

    def made_for(self) -> Array | None:
        """Return the features of the rows that they were made for; None where none are known."""
        return None

    def longest(self) -> Array:
        """Return bounds of |phi(x)|^2, exact here."""
        return self.diag()

    def cross(self, Z: Points) -> Cross:
        """Return features of new points times features of the training points."""
        return FactoredCross(_float64(self.features(_float64(Z))), self.factor)

    def expand(self, coef: Array) -> Expansion:
        """Collapse to one weight per feature."""
        return self.expand_weights(np.asarray(self.factor.T @ columns_of(coef)))

    def expand_weights(self, weights: Array) -> FeatureExpansion:
        """Return f(z) = phi(z)'w for weights that are known already."""
        return FeatureExpansion(self.features, weights, np.zeros(weights.shape[1]))


class FactoredCross(Cross):
    """A rectangle given by features on both sides."""

    def __init__(self, left: Any, right: Any) -> None:
        self._left, self._right = left, right
        self.shape = (left.shape[0], right.shape[0])

    def rows(self, index: Index) -> Array:
        """Multiply out rows."""
        return to_dense(self._left[index] @ self._right.T)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._left @ (self._right.T @ V))


@dataclass(frozen=True, eq=False)
class FeatureExpansion(Expansion):
    """An expansion collapsed to weights: f(z) = phi(z)'w + b.

    Attributes
    ----------
    features : callable
        The feature map phi.
    weights : (D, k) array
        The weights w.
    offset : (k,) array
        The constant b.
    """

    features: FeatureFunction
    weights: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate at new points."""
        with np.errstate(over="ignore", invalid="ignore"):  # as compiled code does
            return np.asarray(self.features(_float64(Z)) @ self.weights + self.offset)

    def plus(self, offset: Array) -> FeatureExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


def _float64(F: Any) -> Any:
    return F if F.dtype == object else F.astype(np.float64, copy=False)
