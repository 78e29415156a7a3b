"""(A + s)^-1 on the rows of every fold, from one inverse on all rows.

With M = (A + s)^-1 on all rows, and F those that a fold leaves out, the inverse on the others is
M - M_F M_FF^-1 M_F': two products with M, and a small factor for each fold. Folds share M and the
passes over it. What it gives is where to look for answers, not the answers, so float32 will do
while s is well above its rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import invert
from mercer.solvers.ridge.folds.products import FoldParts
from mercer.solvers.ridge.folds.system import FoldSystem

_BLOCK = 256  # rows at a time


@dataclass(frozen=True, eq=False)
class _Place:
    """Where a fold is among all rows: what it has, what it leaves out, and M_FF^-1."""

    inside: Array
    outside: Array
    S: Array

    @classmethod
    def of(cls, M: Array, inside: Array) -> _Place:
        outside = np.setdiff1d(np.arange(len(M)), inside, assume_unique=True)
        S = M[np.ix_(outside, outside)]
        if not invert(S):
            raise np.linalg.LinAlgError("an inverse that is not positive definite")
        return cls(inside, outside, _mirrored(S))

    def correct(self, W: Array, X: Array) -> None:
        """Change W at rows left out, so that M W is zero there; X is M W."""
        if self.outside.size and W.size:
            W[self.outside] -= self.S @ X[self.outside].astype(self.S.dtype)


class ShiftedInverse:
    """The inverse at one shift.

    Parameters
    ----------
    systems : sequence of FoldSystem
        The folds.
    shift : float
        s.
    dtype : dtype
        Precision of the inverse: float32 or float64.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where A + s is not positive definite in that precision.
    """

    def __init__(self, systems: Sequence[FoldSystem], shift: float, dtype: Any) -> None:
        root = np.zeros(len(systems[0].K))
        for system in systems:
            root[system.rows] = system.root
        rows = np.flatnonzero(root)
        self._systems = systems
        self._M = _inverse(systems[0].K, rows, root, shift, np.dtype(dtype))
        self._places = [_Place.of(self._M, np.searchsorted(rows, s.rows)) for s in systems]
        self._parts = FoldParts([place.inside for place in self._places], len(rows))
        along = [system.along for system in systems if system.along is not None]
        self._along = self._solve([w[:, None] for w in along]) if along else []

    def solve(self, blocks: Sequence[Array]) -> list[Array]:
        """Return (A + s)^-1 W for a block of every fold, nearly and up to a factor.

        With a bias, A is the projected matrix.
        """
        found = self._solve(blocks)
        for k, u in enumerate(self._along):
            w = self._systems[k].along
            found[k] -= u * (w @ found[k] / (w @ u))
        return [system.project(X) for system, X in zip(self._systems, found, strict=True)]

    def _solve(self, blocks: Sequence[Array]) -> list[Array]:
        full = [np.zeros((len(self._M), block.shape[1])) for block in blocks]
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        for place, block, W in zip(self._places, blocks, full, strict=True):
            W[place.inside] = block
        X = self._parts.product(self._M, full, reads=True, writes=False)
        for place, W, own in zip(self._places, full, np.split(X, ends, axis=1), strict=True):
            place.correct(W, own)
        X = self._parts.product(self._M, full, writes=True)
        found = zip(self._places, np.split(X, ends, axis=1), strict=True)
        return [own[place.inside] for place, own in found]


def _inverse(K: Array, rows: Array, root: Array, shift: float, dtype: np.dtype[Any]) -> Array:
    """Return (R K R + s)^-1 in units of its largest entry, block by block: K may be large."""
    n = len(rows)
    unit = float((root[rows] ** 2 * K.diagonal()[rows]).max(initial=0.0)) or 1.0
    A = np.empty((n, n), dtype)
    scaled = root[rows] / np.sqrt(unit)
    for i in range(0, n, _BLOCK):
        part = K[i : i + _BLOCK] if n == len(K) else K[np.ix_(rows[i : i + _BLOCK], rows)]
        np.multiply(
            part * scaled, scaled[i : i + _BLOCK, None], out=A[i : i + _BLOCK], casting="same_kind"
        )
    A.flat[:: n + 1] += shift / unit
    if not invert(A):
        raise np.linalg.LinAlgError("not positive definite")
    return _mirrored(A)


def _mirrored(A: Array) -> Array:
    """Copy what is above the diagonal below it."""
    for i in range(0, len(A), _BLOCK):
        j = i + _BLOCK
        A[i:j, i:j] = np.triu(A[i:j, i:j]) + np.triu(A[i:j, i:j], 1).T
        A[j:, i:j] = A[i:j, j:].T
    return A
