"""The Gram matrix with row weights on both sides."""

from __future__ import annotations

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import Gram


def weighted(gram: Gram, root: Array) -> Array:
    """Return S^1/2 K S^1/2 as a new matrix, free to be overwritten."""
    matrix = choose_backend().empty(*gram.shape)
    matrix[:] = gram.dense()
    if not (root == 1.0).all():
        matrix *= root[:, None]
        matrix *= root[None, :]
    return matrix
