"""The same Gram, evaluated anew in float64 from the points: what certificates judge by."""

from __future__ import annotations

from functools import singledispatch

from mercer.gram.base import Gram
from mercer.gram.cached import CachedGram
from mercer.gram.centered import CenteredGram
from mercer.gram.dense import DenseGram
from mercer.gram.lazy import LazyGram
from mercer.gram.part import PartGram
from mercer.gram.shifted import ShiftedGram


@singledispatch
def exact(gram: Gram) -> Gram:
    """Give a Gram that trusts nothing a solver stored; given matrices and factors are data."""
    return gram


@exact.register(DenseGram)
@exact.register(CachedGram)
@exact.register(LazyGram)
def _(gram: DenseGram | CachedGram | LazyGram) -> Gram:
    return LazyGram(gram.source.in_float64())


@exact.register
def _(gram: PartGram) -> Gram:
    base = gram.base
    if isinstance(base, DenseGram | CachedGram | LazyGram):  # only the points that are here
        return LazyGram(base.source.in_float64().only(gram.index))
    return PartGram(exact(base), gram.index)


@exact.register
def _(gram: CenteredGram) -> Gram:
    return CenteredGram(exact(gram.base), gram.weights)


@exact.register
def _(gram: ShiftedGram) -> Gram:
    return ShiftedGram(exact(gram.base), gram.shift)
