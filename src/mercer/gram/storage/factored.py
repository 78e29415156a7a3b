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
from mercer.card_rows import CardRows
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.points import is_sparse, row_count, take, to_dense, to_host
from mercer.row_chunks import chunked, in_pieces

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
    _diag: Array | None = None

    def __init__(self, features: FeatureFunction, X: Points) -> None:
        self._hold(features, features_of(features, X))  # judged by `refuse_overflow`

    @classmethod
    def of(cls, features: FeatureFunction, factor: Any) -> FactoredGram:
        """Return the Gram of features that are known already, or changed: K = factor factor'."""
        gram = object.__new__(cls)
        gram._hold(features, factor)
        return gram

    def _hold(self, features: FeatureFunction, factor: Any) -> None:
        self.features, self.placed = features, factor
        self.shape = (factor.shape[0], factor.shape[0])
        self.dtype = np.dtype(np.float64)

    @property
    def factor(self) -> Any:
        """F in the memory of the processor, brought there once where it lies on a card."""
        return to_host(self.placed)

    @property
    def rank(self) -> int:
        """Count the features."""
        return int(self.placed.shape[1])

    def diag(self) -> Array:
        """Return the squared lengths of the features, added up once."""
        if self._diag is None:
            self._diag = squared_lengths(self.placed)
            self._diag.setflags(write=False)  # handed out again and again
        return self._diag

    def rows(self, index: Index) -> Array:
        """Multiply out rows."""
        return to_dense(self.placed[index] @ self.placed.T)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.placed @ (self.placed.T @ V))

    def dense(self) -> Array:
        """Multiply out everything."""
        return self.rows(slice(0, self.shape[0]))

    def round_trip(self, W: Array, change: Callable[[slice, Array], Array]) -> Array:
        """Return F'g(F W): g is given the numbers of rows and their values (r, k)."""
        every = slice(0, self.shape[0])
        return np.asarray(self.placed.T @ change(every, np.asarray(self.placed @ W)))

    def push(self, W: Array) -> Array:
        """Return F W."""
        return np.asarray(self.placed @ W)

    def pull(self, V: Array) -> Array:
        """Return F'V."""
        return self.round_trip(np.zeros((self.rank, 0)), lambda rows, _: V[rows])

    def absolute_pull(self, V: Array) -> Array:
        """Return |F|'V for V that is not negative: sums before anything cancels."""
        return np.asarray(abs(self.placed.T) @ V)

    @property
    def written(self) -> Any:
        """Return F if it is written out, else None."""
        return self.factor

    def sampled(self, index: Array) -> Array:
        """Return the features of some rows."""
        return np.asarray(to_dense(self.placed[index]))

    def made_for(self) -> Array | None:
        """Return the features of the rows that they were made for; None where none are known."""
        return None

    def longest(self) -> Array:
        """Return bounds of |phi(x)|^2, exact here."""
        return self.diag()

    def cross(self, Z: Points) -> Cross:
        """Return features of new points times features of the training points."""
        return FactoredCross(self.features, Z, self.placed)

    def expand(self, coef: Array) -> Expansion:
        """Collapse to one weight per feature."""
        return self.expand_weights(np.asarray(self.placed.T @ columns_of(coef)))

    def expand_weights(self, weights: Array) -> FeatureExpansion:
        """Return f(z) = phi(z)'w for weights that are known already."""
        return FeatureExpansion(self.features, weights, np.zeros(weights.shape[1]))


class FactoredCross(Cross):
    """A rectangle given by features on both sides, those of new points when they are needed."""

    def __init__(self, features: FeatureFunction, Z: Points, right: Any) -> None:
        self._features, self._Z, self._right = features, Z, right
        self.shape = (row_count(Z), right.shape[0])

    def rows(self, index: Index) -> Array:
        """Multiply out rows."""
        return to_dense(features_of(self._features, take(self._Z, index)) @ self._right.T)

    def __matmul__(self, V: Array) -> Array:
        W = self._right.T @ V
        return over_features(lambda F: np.asarray(F @ W), self._features, self._Z, len(W))


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
        """Evaluate at new points, features of a few at a time."""
        return over_features(self._values, self.features, Z, len(self.weights))

    def _values(self, F: Any) -> Array:
        return np.asarray(F @ self.weights + self.offset)

    def plus(self, offset: Array) -> FeatureExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


def over_features(
    work: Callable[[Any], Array],
    features: FeatureFunction,
    Z: Points,
    width: int | None = None,
    arrays: int = 3,
) -> Array:
    """Return what `work` makes of features of new points, a few of them at a time.

    Parameters
    ----------
    work : callable
        Maps features (r, width), dense or sparse, to an array of r rows.
    features : callable
        The feature map.
    Z : Points
        The points.
    width : int, optional
        How many features there are; those of the first point are counted when not given.
    arrays : int
        Arrays of features that are held at once.
    """
    if width is None or is_sparse(Z):
        first = features_of(features, take(Z, slice(0, 1)))
        width = first.shape[1]
        if is_sparse(first):  # numbers and their columns, as dense as the points are
            width = min(width, 2 * width * Z.nnz // max(1, Z.shape[0] * Z.shape[1]))

    def piece(rows: Points) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # as compiled code does
            return work(features_of(features, rows))

    return in_pieces(piece, Z, width, arrays)


def squared_lengths(F: Any) -> Array:
    """Return the squared lengths of rows of features, dense or sparse."""
    if is_sparse(F):
        return np.asarray(F.multiply(F).sum(axis=1)).ravel()
    if isinstance(F, CardRows):
        return F.squared_lengths()
    out = np.empty(len(F), dtype=F.dtype)

    def chunk(rows: slice) -> None:
        np.einsum("ij,ij->i", F[rows], F[rows], out=out[rows])

    with np.errstate(over="ignore", invalid="ignore"):
        chunked(chunk, len(F))
    return out


def features_of(features: FeatureFunction, Z: Points) -> Any:
    """Return the features of points in float64; they may be sparse."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused by those who use them
        return _float64(features(_float64(Z)))


def _float64(F: Any) -> Any:
    return F if F.dtype == object else F.astype(np.float64, copy=False)
