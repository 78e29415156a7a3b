"""Four ways to make K nearly doubly stochastic before its leading eigenvectors are taken.

Each says which matrix that is, which of its eigenvectors are known without work (one for each
connected component), how points are placed by the eigenvectors, and where new points go: the
eigenvector equation solved for a row that was not there (Nystrom's extension).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, scaled
from mercer.gram.transformed.shifted import shifted, with_diagonal
from mercer.solvers.spectral.inverse_lanczos import nearly_a_tree

_NOTHING = 1e-12
_ROUNDING = 10.0


@dataclass(frozen=True, eq=False)
class Normalization(ABC):
    """A normalisation made for one affinity.

    Attributes
    ----------
    weight : (n,) array
        Degrees of the points, or what stands for them.
    """

    weight: Array
    cuts: ClassVar[bool] = True  # whether similarities are weights of edges, none negative
    balanced: ClassVar[bool] = False  # whether the weights are scales to be solved for

    @property
    @abstractmethod
    def top(self) -> float:
        """The eigenvalue of `first`, the largest there is."""

    @abstractmethod
    def matrix(self, gram: Gram) -> Gram:
        """Return the matrix whose leading eigenvectors are wanted, for the affinity."""

    def carried(self, values: Array, dtype: Any, tol: float) -> Array:
        """Return which eigenvalues are more than the rounding of a matrix of this type: (k,).

        Rounding of entries moves an eigenvalue by at most eps |K|_F <= eps sqrt(n) times the
        largest; the vectors of those below are arbitrary, and dividing by these gives noise.
        """
        floor = _ROUNDING * float(np.finfo(dtype).eps) * np.sqrt(len(self.weight))
        return np.asarray(np.abs(values) > floor * np.abs(values).max(initial=0.0))

    @abstractmethod
    def first(self) -> Array | None:
        """Return what is a leading eigenvector on each component alone, (n,); None if unknown."""

    @abstractmethod
    def place(self, vectors: Array) -> Array:
        """Return the points' places by eigenvectors: (n, k)."""

    @abstractmethod
    def shown(self, values: Array) -> Array:
        """Return eigenvalues of the normalised matrix as the texts define it."""

    @abstractmethod
    def expanded(self, vectors: Array) -> Array:
        """Return coefficients whose sums over affinities new points are placed by: (n, k + 1)."""

    @abstractmethod
    def extend(self, sums: Array, values: Array) -> Array:
        """Place new points by these sums, the last of which is their degree: (m, k)."""


class Plain(Normalization):
    """K itself, rows of the eigenvectors brought to length one: kernel K-means relaxed."""

    cuts = False

    @property
    def top(self) -> float:
        """Not known beforehand."""
        return np.inf

    def matrix(self, gram: Gram) -> Gram:
        """Take K as it is."""
        return gram

    def first(self) -> Array | None:
        """No eigenvector of K is known."""
        return None

    def place(self, vectors: Array) -> Array:
        """Bring rows to length one."""
        return _unit_rows(vectors)

    def shown(self, values: Array) -> Array:
        """Return eigenvalues of K."""
        return values

    def expanded(self, vectors: Array) -> Array:
        """Take the vectors."""
        return np.column_stack([vectors, np.zeros(len(vectors))])

    def extend(self, sums: Array, values: Array) -> Array:
        """Return v(z) = sum_j k(z, x_j) v_j / m, at length one."""
        return _unit_rows(_over(sums[:, :-1], values[None, :]))


class RatioCut(Normalization):
    """K - D + I: eigenvectors of the Laplacian D - K, smallest first.

    Solved as (K - D) / mean(d) + c I with c = 2 max(d) / mean(d), which has the same eigenvectors
    and no negative eigenvalue, so that residuals relative to eigenvalues mean something.
    """

    @property
    def _mean(self) -> float:
        return float(self.weight.mean())

    @property
    def _shift(self) -> float:
        return float(2.0 * self.weight.max() / self._mean)

    @property
    def top(self) -> float:
        """The shift."""
        return self._shift

    def matrix(self, gram: Gram) -> Gram:
        """Return the Laplacian, turned over and lifted."""
        base = scaled(gram, np.full(gram.shape[0], self._mean**-0.5))
        shift = self._shift - self.weight / self._mean
        # as a shift the diagonal is seen by solvers that divide by it; trees are factored instead
        return with_diagonal(base, shift) if nearly_a_tree(base) else shifted(base, shift)

    def carried(self, values: Array, dtype: Any, tol: float) -> Array:
        """Return which are not the degree of all points alike, where K v = (D - l) v is nothing."""
        away = np.abs(self.weight[:, None] - self._laplacian(values)).max(axis=0)
        return np.asarray(away > 2.0 * tol * self.weight.max())  # residuals are relative to 2 max d

    def first(self) -> Array | None:
        """Return the constant."""
        return np.ones(len(self.weight))

    def place(self, vectors: Array) -> Array:
        """Take the vectors."""
        return vectors

    def shown(self, values: Array) -> Array:
        """Return eigenvalues of K - D + I."""
        return np.asarray(1.0 - self._laplacian(values))

    def expanded(self, vectors: Array) -> Array:
        """Take the vectors, and ones for the degree."""
        return np.column_stack([vectors, np.ones(len(vectors))])

    def extend(self, sums: Array, values: Array) -> Array:
        """Return v(z) = sum_j k(z, x_j) v_j / (d(z) - l), l the eigenvalue of D - K."""
        left = sums[:, -1:] - self._laplacian(values)[None, :]
        floor = _NOTHING * self._mean
        left = np.where(np.abs(left) < floor, floor, left)
        return np.asarray(sums[:, :-1] / left)

    def _laplacian(self, values: Array) -> Array:
        return np.maximum((self._shift - values) * self._mean, 0.0)


class NormalizedCut(Normalization):
    """D^-1/2 K D^-1/2; points are placed by D^-1/2 v, eigenvectors of the random walk D^-1 K."""

    @property
    def top(self) -> float:
        """One."""
        return 1.0

    def matrix(self, gram: Gram) -> Gram:
        """Divide by the roots of the degrees."""
        return scaled(gram, self.weight**-0.5)

    def first(self) -> Array | None:
        """Return the roots of the degrees."""
        return np.sqrt(self.weight)

    def place(self, vectors: Array) -> Array:
        """Divide by the roots of the degrees."""
        return np.asarray(vectors / np.sqrt(self.weight)[:, None])

    def shown(self, values: Array) -> Array:
        """Return the eigenvalues."""
        return values

    def expanded(self, vectors: Array) -> Array:
        """Take the places, and ones for the degree."""
        return np.column_stack([self.place(vectors), np.ones(len(vectors))])

    def extend(self, sums: Array, values: Array) -> Array:
        """Return u(z) = sum_j k(z, x_j) u_j / (m d(z))."""
        with np.errstate(over="ignore"):  # an infinite divisor leaves zero
            divisor = values[None, :] * sums[:, -1:]
        return _over(sums[:, :-1], divisor)


class DoublyStochastic(Normalization):
    """X K X with all row sums one, X diagonal: the limit of K <- D^-1/2 K D^-1/2."""

    balanced = True

    @property
    def top(self) -> float:
        """One."""
        return 1.0

    def matrix(self, gram: Gram) -> Gram:
        """Multiply by the scales."""
        return scaled(gram, self.weight)

    def first(self) -> Array | None:
        """Return the constant."""
        return np.ones(len(self.weight))

    def place(self, vectors: Array) -> Array:
        """Take the vectors."""
        return vectors

    def shown(self, values: Array) -> Array:
        """Return the eigenvalues."""
        return values

    def expanded(self, vectors: Array) -> Array:
        """Multiply the vectors by the scales; these themselves give the scale of a new point."""
        return np.asarray(self.weight[:, None] * np.column_stack([vectors, np.ones(len(vectors))]))

    def extend(self, sums: Array, values: Array) -> Array:
        """Return v(z) = x(z) sum_j k(z, x_j) x_j v_j / m with x(z) = 1 / sum_j k(z, x_j) x_j."""
        return _over(sums[:, :-1], values[None, :] * sums[:, -1:])


def _over(sums: Array, divisor: Array) -> Array:
    """Divide, leaving zero where there is nothing to divide by."""
    divisor = np.broadcast_to(divisor, sums.shape)
    out: Any = np.zeros_like(sums)
    np.divide(sums, divisor, out=out, where=np.abs(divisor) > np.finfo(float).tiny)
    return np.asarray(out)


def _unit_rows(vectors: Array) -> Array:
    # by powers of two first: squares at the end of the range are not finite, or nothing
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    vectors = np.ldexp(vectors, -np.frexp(largest)[1])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))
