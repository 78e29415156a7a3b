"""The nearest points of some points, in feature space, and the most similar ones."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.array_types import Array
from mercer.gram import Gram


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """An answer to `Nearest` or `MostSimilar`.

    Attributes
    ----------
    index : (m, count) int array
        For each point asked about, the numbers of its nearest points, itself among them.
    """

    index: Array


@dataclass(frozen=True, eq=False)
class Nearest:
    """The `count` nearest points of some of the points of a Gram, each itself included.

    Attributes
    ----------
    gram : Gram
        K.
    points : (m,) int array
        Which points are asked about.
    count : int
        How many neighbours of each.
    """

    gram: Gram
    points: Array
    count: int


@dataclass(frozen=True, eq=False)
class MostSimilar:
    """The `count` points of a Gram with the largest k(x, z), each point itself a candidate.

    Attributes
    ----------
    gram : Gram
        K; it need not be positive semidefinite.
    points : (m,) int array
        Which points are asked about.
    count : int
        How many neighbours of each.
    """

    gram: Gram
    points: Array
    count: int
