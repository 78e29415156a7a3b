"""Grams made from another Gram: submatrix, diagonal scaling, and diagonal shift."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram, Unwrapped, columns_of, written_out
from mercer.gram.factored import FactoredGram
from mercer.rows.points import is_sparse

# --- part ----------------------------------------------------------------------------------------
#
# Some points of a Gram, in any order, repeats allowed: a pair of classes, a fold.


class PartGram(Gram):
    """A Gram restricted to some of its points; nothing is copied.

    Parameters
    ----------
    base : Gram
        The Gram that is shared.
    index : (m,) int array
        Which of its points.
    """

    def __init__(self, base: Gram, index: Array) -> None:
        self.base = base
        self.index = np.ascontiguousarray(index, dtype=np.int64)
        self.shape = (len(index), len(index))
        self.dtype, self.valid = base.dtype, base.valid

    @property
    def nbytes(self) -> int:
        """Bytes that the base holds."""
        return self.base.nbytes

    def diag(self) -> Array:
        """Read the diagonal."""
        return self.base.diag()[self.index]

    def rows(self, index: Index) -> Array:
        """Read rows, and of these the columns that are here."""
        return self.base.rows(self.index[index])[:, self.index]

    def __matmul__(self, V: Array) -> Array:
        spread = np.zeros((self.base.shape[0], *np.shape(V)[1:]))
        np.add.at(spread, self.index, np.asarray(V, dtype=np.float64))
        return np.asarray((self.base @ spread)[self.index])

    def dense(self) -> Array:
        """Copy the part."""
        return self.base.dense()[np.ix_(self.index, self.index)]

    def cross(self, Z: Points) -> Cross:
        """Bind new points."""
        return PartCross(self.base.cross(Z), self.index)

    def expand(self, coef: Array) -> Expansion:
        """Expand over the points that are here."""
        coef = columns_of(coef)
        spread = np.zeros((self.base.shape[0], coef.shape[1]))
        np.add.at(spread, self.index, coef)
        return self.base.expand(spread)

    def exact(self) -> Gram:
        """Evaluate anew the points that are here, each once."""
        source = self.base.source
        if source is None:
            return PartGram(self.base.exact(), self.index)
        points, index = np.unique(self.index, return_inverse=True)
        if len(points) == len(self.index):
            return source.only(self.index).exact()
        return PartGram(source.only(points).exact(), index)

    def unwrapped(self) -> Unwrapped:
        """Take the points that are here from the base.

        A shift inside a part that repeats points would not be diagonal here: this part is then the
        base itself.
        """
        inner, index = self.base.unwrapped(), self.index
        if inner.shift is not None and len(np.unique(index)) < len(index):
            return Unwrapped(self, None, None)
        shift = None if inner.shift is None else inner.shift[index]
        return Unwrapped(inner.base, index if inner.index is None else inner.index[index], shift)


def restricted(gram: Gram, rows: Array) -> Gram:
    """Return K between some of its points, in any order, repeats allowed; nothing is copied."""
    return PartGram(gram, rows)


class PartCross(Cross):
    """New points against some of the training points."""

    def __init__(self, base: Cross, index: Array) -> None:
        self._base, self._index = base, index
        self.shape = (base.shape[0], len(index))

    def rows(self, index: Index) -> Array:
        """Read rows, and of these the columns that are here."""
        return self._base.rows(index)[:, self._index]

    def __matmul__(self, V: Array) -> Array:
        spread = np.zeros((self._base.shape[1], *np.shape(V)[1:]))
        np.add.at(spread, self._index, np.asarray(V, dtype=np.float64))
        return self._base @ spread


# --- scaled --------------------------------------------------------------------------------------
#
# diag(s) K diag(s): weighted rows, normalised cuts. New points have no scale of their own.


class ScaledGram(Gram):
    """A Gram whose points are multiplied by factors: s_i s_j k(x_i, x_j).

    Parameters
    ----------
    base : Gram
        The Gram to scale.
    scale : (n,) array
        The factor s of each training point.
    """

    def __init__(self, base: Gram, scale: Array) -> None:
        self.base = base
        self.scale = np.asarray(scale, dtype=np.float64)
        self.shape, self.dtype, self.valid = base.shape, base.dtype, base.valid

    @property
    def nbytes(self) -> int:
        """Bytes that the base holds."""
        return self.base.nbytes

    @property
    def raw(self) -> Gram:
        """Return the base, taken out of its own wrappers."""
        return self.base.raw

    def diag(self) -> Array:
        """Scale the diagonal."""
        return np.asarray(self.base.diag() * self.scale**2)

    def rows(self, index: Index) -> Array:
        """Scale rows."""
        # one factor for a pair, so that both orders round alike
        both = self.scale[index][:, None] * self.scale[None, :]
        return np.asarray((self.base.rows(index) * both).astype(self.dtype, copy=False))

    def __matmul__(self, V: Array) -> Array:
        scale = self.scale if np.ndim(V) == 1 else self.scale[:, None]
        return np.asarray(scale * (self.base @ (scale * V)))

    def dense(self) -> Array:
        """Scale everything."""
        return written_out(self).astype(self.dtype, copy=False)

    def cross(self, Z: Points) -> Cross:
        """Scale the training side only."""
        return ScaledCross(self.base.cross(Z), self.scale)

    def expand(self, coef: Array) -> Expansion:
        """Move the scale into the coefficients."""
        return self.base.expand(self.scale[:, None] * columns_of(coef))

    def exact(self) -> Gram:
        """Do the same to the exact base."""
        return ScaledGram(self.base.exact(), self.scale)


class ScaledCross(Cross):
    """New points against scaled training points."""

    def __init__(self, base: Cross, scale: Array) -> None:
        self._base, self._scale = base, scale
        self.shape = base.shape

    def rows(self, index: Index) -> Array:
        """Scale rows."""
        return np.asarray(self._base.rows(index) * self._scale)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._base @ (self._scale[:, None] * columns_of(V)))


@singledispatch
def scaled(gram: Gram, scale: Array) -> Gram:
    """Return diag(scale) K diag(scale); features stay features.

    Parameters
    ----------
    gram : Gram
        K.
    scale : (n,) array
        The factor of each training point.

    Returns
    -------
    Gram
        A `FactoredGram` for a `FactoredGram`, else a `ScaledGram`.
    """
    return ScaledGram(gram, scale)


@scaled.register
def _(gram: FactoredGram, scale: Array) -> Gram:
    scale = np.asarray(scale, dtype=np.float64)
    factor = gram.factor.multiply(scale[:, None]) if is_sparse(gram.factor) else None
    rows = scale[:, None] * gram.factor if factor is None else factor.tocsr()
    return FactoredGram.of(gram.features, rows)


# --- shifted -------------------------------------------------------------------------------------
#
# K + diag(d): ridge, noise, slack on the diagonal. New points are not shifted.


class ShiftedGram(Gram):
    """A Gram with a diagonal added.

    Parameters
    ----------
    base : Gram
        The Gram to shift.
    shift : float or (n,) array
        What is added to the diagonal.
    """

    def __init__(self, base: Gram, shift: float | Array) -> None:
        self.base = base
        self.shift = np.broadcast_to(np.asarray(shift, dtype=np.float64), base.shape[:1])
        self.shape, self.dtype = base.shape, base.dtype
        self.valid = base.valid and bool((self.shift >= 0).all())

    @property
    def nbytes(self) -> int:
        """Bytes that the base holds."""
        return self.base.nbytes

    def diag(self) -> Array:
        """Shift the diagonal."""
        return self.base.diag() + self.shift

    def rows(self, index: Index) -> Array:
        """Shift rows."""
        block = np.array(self.base.rows(index))
        requested = np.arange(self.shape[0])[index]
        block[np.arange(len(requested)), requested] += self.shift[requested]
        return block

    def __matmul__(self, V: Array) -> Array:
        shift = self.shift if V.ndim == 1 else self.shift[:, None]
        return np.asarray(self.base @ V + shift * V)

    def dense(self) -> Array:
        """Return a new matrix, free to be overwritten by a factorisation."""
        matrix = written_out(self.base)
        matrix.flat[:: len(matrix) + 1] += self.shift
        return matrix

    def cross(self, Z: Points) -> Cross:
        """Return new points as they are."""
        return self.base.cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Expand as the unshifted kernel does."""
        return self.base.expand(coef)

    def exact(self) -> Gram:
        """Do the same to the exact base."""
        return ShiftedGram(self.base.exact(), self.shift)

    def unwrapped(self) -> Unwrapped:
        """Add the shift to that of the base."""
        inner = self.base.unwrapped()
        shift = self.shift if inner.shift is None else inner.shift + self.shift
        return Unwrapped(inner.base, inner.index, shift)


def shifted(gram: Gram, shift: float | Array) -> Gram:
    """Return K + diag(shift), K left as it is held: solvers see the shift, and may divide by it."""
    return ShiftedGram(gram, shift)


@singledispatch
def with_diagonal(gram: Gram, shift: Array) -> Gram:
    """Return K + diag(shift), written into K where that is a sparse matrix."""
    return shifted(gram, shift) if np.any(shift) else gram
