"""Grams centered in feature space, for new points by the mean of the training points.

With weights w summing to one, phi(x) - sum_j w_j phi(x_j) has the kernel
k(x, y) - m(x) - m(y) + g, where m(x) = sum_j w_j k(x, x_j) and g = sum_j w_j m(x_j). New points are
centred by the same, *training*, mean; nothing else would compare them with the fitted points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends.contract import Operator
from mercer.gram.base import Cross, Expansion, Gram, columns_of, written_out
from mercer.gram.factored import FactoredGram, FeatureFunction, StreamedGram, squared_lengths
from mercer.rows.points import is_sparse, to_dense

_EPS = float(np.finfo(np.float64).eps)


class CenteredGram(Gram):
    """A Gram with the mean of its points moved to the origin.

    Parameters
    ----------
    base : Gram
        The Gram to centre.
    weights : (n,) array, optional
        Weight of each point in the mean; equal when not given.
    """

    def __init__(self, base: Gram, weights: Array | None = None) -> None:
        n = base.shape[0]
        w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        self.base = base
        self.weights = w / w.sum()
        self.shape, self.dtype, self.valid = base.shape, base.dtype, base.valid

    @cached_property
    def means(self) -> Array:
        """m(x_i) for every training point; products alone never need them, so made when asked."""
        return np.asarray(self.base @ self.weights, dtype=np.float64)

    @cached_property
    def grand_mean(self) -> float:
        """The mean of the means, g."""
        return float(self.weights @ self.means)

    @property
    def nbytes(self) -> int:
        """Bytes that the base holds."""
        return self.base.nbytes

    @property
    def raw(self) -> Gram:
        """Return the base, taken out of its own wrappers."""
        return self.base.raw

    def diag(self) -> Array:
        """Centre the diagonal."""
        return self.base.diag() - 2.0 * self.means + self.grand_mean

    def rows(self, index: Index) -> Array:
        """Centre rows."""
        shift = self.means[index][:, None] + self.means[None, :] - self.grand_mean
        return np.asarray((self.base.rows(index) - shift).astype(self.dtype, copy=False))

    def __matmul__(self, V: Array) -> Array:
        # H K H' V with H = I - 1 w': centring both sides costs O(n k), not another pass over K
        V = np.asarray(V, dtype=np.float64)
        weights = self.weights if V.ndim == 1 else self.weights[:, None]
        product = self.base @ (V - weights * V.sum(axis=0))
        return np.asarray(product - self.weights @ product)

    def operator(self) -> Operator:
        """Centre products where they are made."""
        inner = self.base.operator()
        w = inner.arrays.put(self.weights[:, None])

        def apply(V: Any) -> Any:
            product = inner.apply(V - w * V.sum(0))
            return product - w.T @ product

        return Operator(apply, inner.arrays)

    def dense(self) -> Array:
        """Centre everything."""
        return written_out(self).astype(self.dtype, copy=False)

    def cross(self, Z: Points) -> Cross:
        """Centre new points by the training mean."""
        return CenteredCross(self.base.cross(Z), self)

    def expand(self, coef: Array) -> Expansion:
        """Centring moves into the coefficients and the constant; the points stay what they are."""
        coef = columns_of(coef)
        total = coef.sum(axis=0)
        offset = self.grand_mean * total - self.means @ coef
        return self.base.expand(coef - np.outer(self.weights, total)).plus(offset)

    def exact(self) -> Gram:
        """Do the same to the exact base."""
        return CenteredGram(self.base.exact(), self.weights)


class CenteredCross(Cross):
    """New points against training points, both centred by the training mean."""

    def __init__(self, base: Cross, gram: CenteredGram) -> None:
        self._base, self._gram = base, gram
        self._means = np.asarray(base @ gram.weights[:, None]).ravel()
        self.shape = base.shape

    def rows(self, index: Index) -> Array:
        """Centre rows."""
        gram = self._gram
        shift = self._means[index][:, None] + gram.means[None, :] - gram.grand_mean
        return np.asarray(self._base.rows(index) - shift)

    def __matmul__(self, V: Array) -> Array:
        V = columns_of(V)
        gram, total = self._gram, V.sum(axis=0)
        shift = np.outer(self._means, total) + gram.means @ V - gram.grand_mean * total
        return np.asarray(self._base @ V - shift)


@dataclass(frozen=True, eq=False)
class CenteredFeatures:
    """Features less their training mean.

    Attributes
    ----------
    features : callable
        The feature map.
    mean : (D,) array
        The mean over the training points.
    """

    features: FeatureFunction
    mean: Array

    def __call__(self, Z: Points) -> Array:
        """Map points, and take the mean off."""
        return np.asarray(to_dense(self.features(Z)) - self.mean)


@singledispatch
def centered(gram: Gram, weights: Array | None = None) -> Gram:
    """Move the mean of the points to the origin; dense features stay features.

    Parameters
    ----------
    gram : Gram
        K.
    weights : (n,) array, optional
        Weight of each point in the mean; equal when not given.

    Returns
    -------
    Gram
        A `FactoredGram` where that is one with dense features, else a `CenteredGram`.
    """
    return CenteredGram(gram, weights)


@centered.register
def _(gram: FactoredGram, weights: Array | None = None) -> Gram:
    if is_sparse(gram.written):  # the mean would fill in every zero
        return CenteredGram(gram, weights)
    n = gram.shape[0]
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    written = gram.written
    F = gram.write_out() if isinstance(gram, StreamedGram) and written is None else written
    mean = (w / w.sum()) @ F  # not np.average, which writes all weighted features out
    # features that were written out for this alone need no copy
    F = np.subtract(F, mean, out=F if written is None else None)
    features = CenteredFeatures(gram.features, mean)
    # a mean far from zero is off by a rounding of itself: the mean of what it leaves is not
    rest = (w / w.sum()) @ F
    if rest @ rest > _EPS * float(w @ squared_lengths(F)) / w.sum():  # second moments feel it
        F -= rest
        features = CenteredFeatures(features, rest)
    return FactoredGram.of(features, F)


def about(gram: StreamedGram, origin: Array) -> FactoredGram:
    """Write features out less an origin: differences do not care, and digits are saved near it."""
    return FactoredGram.of(CenteredFeatures(gram.features, origin), gram.write_out(origin))
