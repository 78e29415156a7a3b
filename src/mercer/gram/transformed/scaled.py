"""diag(s) K diag(s): weighted rows, normalised cuts. New points have no scale of their own."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram, columns_of, written_out
from mercer.gram.storage.factored import FactoredGram
from mercer.points import is_sparse


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
