"""Interfaces of kernel matrices: `Gram`, `Cross`, `Expansion`, and functions of their space.

Solvers see only these, whatever the storage. `Gram` is square and symmetric; `Cross` is the
rectangle of new points against the training points; `Expansion` is the function
f(z) = sum_i c_i k(x_i, z) + b of every fitted estimator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Index, Points
from mercer.backends import choose_backend
from mercer.backends.contract import Factor, Operator
from mercer.resources import rows_at_once

if TYPE_CHECKING:
    from mercer.gram.evaluated import Source


_ROWS_AT_ONCE = 256
_ARRAYS = 4  # of a block: its rows before and after, and what is taken off or multiplied by


class Cross(ABC):
    """K(Z, X): new points against the training points of a Gram.

    Attributes
    ----------
    shape : tuple of int
        (new points, training points).
    """

    shape: tuple[int, int]

    @abstractmethod
    def rows(self, index: Index) -> Array:
        """Evaluate the rows of some new points."""

    @abstractmethod
    def __matmul__(self, V: Array) -> Array:
        """Multiply by V (training points, k); float64."""

    def dense(self) -> Array:
        """Evaluate everything."""
        return self.rows(slice(0, self.shape[0]))


class Expansion(ABC):
    """f(z) = sum_i c_i k(x_i, z) + b, for one or several columns of coefficients."""

    @abstractmethod
    def __call__(self, Z: Points) -> Array:
        """Evaluate at new points: (len(Z), k), float64."""

    @abstractmethod
    def plus(self, offset: Array) -> Expansion:
        """Return the same expansion with `offset` added to b."""


class Gram(ABC):
    """The matrix K of a kernel on its training points.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    dtype : numpy dtype
        Type of `rows` and `dense`.
    valid : bool
        Whether K is known to be positive semidefinite; nobody need look for negative curvature.
    source : Source or None
        The kernel and the points, where K can be evaluated anew from them; None where what is held
        is the data itself (a given matrix, features), and for Grams made from others.
    factor : (n, D) array, sparse array or None
        F of K = F F', where K is held by features: then work with F'F may replace work with K.
    placed : (n, D) array, sparse array, CardRows or None
        The same F where work with it is done: on the card on which it was made, or here.
    features : callable or None
        The map from points to the rows of F.
    csr : sparse array or None
        K itself, where it is held as a sparse matrix.
    """

    shape: tuple[int, int]
    dtype: Any
    valid: bool = False
    source: Source | None = None
    factor: Any = None
    placed: Any = None
    features: Any = None
    csr: Any = None
    _row_sizes: Array | None = None

    @property
    def at_hand(self) -> Any:
        """F where it lies, if it is written out already; None else: nobody writes it for this."""
        return self.placed

    @property
    def rank(self) -> int:
        """Bound the rank of K: by the number of features, or else of rows."""
        return self.shape[0]

    @property
    def raw(self) -> Gram:
        """Return K before it was centred and scaled."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix, or the features, that are held in memory."""
        return 0

    @abstractmethod
    def diag(self) -> Array:
        """Return the diagonal in float64: (n,)."""

    def row_sizes(self) -> Array:
        """Return the largest |k(x_i, x_j)| of each row, in float64; all entries are read, once."""
        if self._row_sizes is None:
            n = self.shape[0]
            found = np.empty(n)
            for first in range(0, n, _ROWS_AT_ONCE):
                part = slice(first, min(first + _ROWS_AT_ONCE, n))
                found[part] = np.abs(self.rows(part)).max(axis=1)
            self._row_sizes = found
        return self._row_sizes

    @abstractmethod
    def rows(self, index: Index) -> Array:
        """Return some rows: (len(index), n)."""

    @abstractmethod
    def __matmul__(self, V: Array) -> Array:
        """Multiply by V (n,) or (n, k); float64."""

    def operator(self) -> Operator:
        """Return products with arrays that lie where those are made."""
        return Operator(self.__matmul__)

    @abstractmethod
    def dense(self) -> Array:
        """Return the whole matrix; not to be written to."""

    @abstractmethod
    def cross(self, Z: Points) -> Cross:
        """Return new points against the training points."""

    @abstractmethod
    def expand(self, coef: Array) -> Expansion:
        """Return f(z) = sum_i coef[i] k(x_i, z), for columns of `coef` (n, k)."""

    def expand_weights(self, weights: Array) -> Expansion:
        """Return f(z) = phi(z)'w, where K is held by features."""
        raise TypeError(f"{type(self).__name__} holds no features")

    def push(self, W: Array) -> Array:
        """Return F W, where K is held by features."""
        raise TypeError(f"{type(self).__name__} holds no features")

    def cholesky(self, shift: Array, scale: Array | None = None) -> Factor | None:
        """Factor diag(scale) K diag(scale) + diag(shift), in float64, where the backend works.

        Parameters
        ----------
        shift : (n,) array
            Added to the diagonal.
        scale : (n,) array, optional
            Factors of rows and columns; ones when not given.

        Returns
        -------
        Factor or None
            None where the matrix is not positive definite.
        """
        A = written_out(self)
        if scale is not None and not (scale == 1.0).all():
            for some in deadline.row_slices(len(A), len(A)):
                A[some] *= scale[some, None]
                A[some] *= scale
        A.flat[:: len(A) + 1] += shift
        return choose_backend().cholesky_factor(A)

    def exact(self) -> Gram:
        """Return K evaluated anew in float64, from the points where it was made from points.

        What certificates judge by: nothing that a solver stored is trusted. Given matrices and
        factors are data, and are K itself.
        """
        return self

    def unwrapped(self) -> Unwrapped:
        """Return K out of `PartGram` and `ShiftedGram`, however they are nested."""
        return Unwrapped(self, None, None)


@dataclass(frozen=True, eq=False)
class Unwrapped:
    """K = base[index, index] + diag(shift): a Gram without its wrappers.

    Attributes
    ----------
    base : Gram
        Neither a part nor shifted.
    index : (m,) int64 array or None
        Which of its points; None for all in order.
    shift : (m,) array or None
        What is added to the diagonal.
    """

    base: Gram
    index: Array | None
    shift: Array | None


def exact(gram: Gram | Source) -> Gram:
    """Return a Gram that trusts nothing a solver stored; given matrices and factors are data.

    Of a kernel and points alone (`Source`), the Gram that is evaluated from them in float64.
    """
    return gram.exact()


def written_out(gram: Gram) -> Array:
    """Return K as a new matrix, block of rows by block, so that no second one is held on the way.

    Parameters
    ----------
    gram : Gram
        K.

    Returns
    -------
    (n, n) float64 array
        Free to be overwritten.
    """
    n = gram.shape[0]
    matrix = choose_backend().empty(n, n)
    step = rows_at_once(n, _ROWS_AT_ONCE, arrays=_ARRAYS)
    for first in range(0, n, step):
        deadline.check()
        rows = slice(first, min(first + step, n))
        matrix[rows] = gram.rows(rows)
    return matrix


def columns_of(V: Array) -> Array:
    """See a vector as one column, in float64."""
    V = np.asarray(V, dtype=np.float64)
    return V[:, None] if V.ndim == 1 else V


def nonzero_rows(coef: Array) -> Array:
    """Return which rows, in order, have an entry that is not zero.

    Examples
    --------
    >>> nonzero_rows(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 1.0]]))
    array([0, 2])
    """
    if coef.ndim == 1:
        return np.flatnonzero(coef)
    rows = np.flatnonzero(coef) // max(1, coef.shape[1])  # `any` of short rows takes longer
    return np.asarray(rows[np.append(True, rows[1:] != rows[:-1])] if len(rows) else rows)


# --- a function of the kernel's space, by coefficients of points or by weights of features -------


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
        if self.gram.features is None:
            object.__setattr__(self, "weights", None)

    @property
    def is_primal(self) -> bool:
        """Whether f is given by weights of features."""
        return self.weights is not None

    def at_points(self) -> Array:
        """Evaluate at the training points: F w or K c, (n, k)."""
        if self.weights is not None:
            return self.gram.push(self.weights)
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
            return self.gram.expand_weights(self.weights)
        assert self.coef is not None
        return self.gram.expand(self.coef)
