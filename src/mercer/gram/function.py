"""A function of the kernel's space, by coefficients of points or by weights of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Expansion, Gram
from mercer.gram.storage.factored import FeatureExpansion


@dataclass(frozen=True, eq=False)
class RKHSFunction:
    """f = sum_i c_i k(x_i, .), or f = w'phi: in the primal where the Gram and the answer have it.

    An answer may hold dual coefficients, weights of features, or both. The weights count where K
    is held by features; elsewhere they say nothing, and are dropped.

    Attributes
    ----------
    gram : Gram
        K.
    coef : (n, k) array or None
        Dual coefficients c; None if there are weights alone.
    weights : (D, k) array or None
        Primal weights w; None where K has no features or the answer no weights.
    """

    gram: Gram
    coef: Array | None
    weights: Array | None = None

    def __post_init__(self) -> None:
        if self.gram.factor is None:
            object.__setattr__(self, "weights", None)

    @property
    def is_primal(self) -> bool:
        """Whether f is given by weights of features."""
        return self.weights is not None

    def at_points(self) -> Array:
        """Evaluate at the training points: F w or K c, (n, k)."""
        if self.weights is not None:
            return np.asarray(self.gram.factor @ self.weights)
        assert self.coef is not None
        return np.asarray(self.gram @ self.coef)

    def squared_norm(self, values: Array) -> float:
        """Return the sum of |f|^2 over the columns: w'w, or c'Kc from `at_points`."""
        if self.weights is not None:
            return float(np.square(self.weights).sum())
        return float((self.coef * values).sum())

    def expand(self) -> Expansion:
        """Return f at new points, without a constant."""
        if self.weights is not None:
            zero = np.zeros(self.weights.shape[1])
            return FeatureExpansion(self.gram.features, self.weights, zero)
        assert self.coef is not None
        return self.gram.expand(self.coef)
