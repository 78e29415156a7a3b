"""Relaxed cuts of rows in blocks: leading eigenvectors of normalised K = F F', by the features.

With d_i = phi_i'z, z = sum_j s_j phi_j, the eigenvectors of D^-1/2 K D^-1/2 are u = G v / sqrt(m)
for eigenpairs (m, v) of the small matrix G'G = sum_i s_i phi_i phi_i' / d_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.gram.storage.factored import over_features
from mercer.problems.blocks.feature_rows import FeatureRows, counted, feature_pieces

FAINT = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)  # degrees below are none


@dataclass(frozen=True, eq=False)
class BlockCut:
    """The leading eigenvectors of a normalised affinity of rows in blocks.

    Attributes
    ----------
    rows : FeatureRows
        Features and weights.
    divided : bool
        Whether rows are divided by the roots of their degrees (normalised cut); else K is taken as
        it is.
    wanted : int
        How many pairs, unless the rank is less.
    """

    rows: FeatureRows
    divided: bool
    wanted: int


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows are placed by the eigenvectors: a map that travels to where the blocks are.

    Attributes
    ----------
    features : callable
        phi.
    weights : (D, k + 1) array
        Sums over training rows of phi times the eigenvectors (k), and of phi alone: the degree.
    values : (k,) array
        Eigenvalues; zero where there is no eigenvector.
    divided : bool
        Whether places are divided by the degree; else rows are brought to length one.
    """

    features: Any
    weights: Array
    values: Array
    divided: bool

    @property
    def dimension(self) -> int:
        """How many coordinates a place has."""
        return len(self.values)

    def __call__(self, X: Any) -> Array:
        """Place rows."""

        def places(F: Any) -> Array:
            return self.of(np.asarray(F @ self.weights))

        return over_features(places, self.features, X, len(self.weights))

    def of(self, sums: Array) -> Array:
        """Place rows by their sums phi'w (n, k + 1); those without a degree are at zero."""
        found = sums[:, :-1] * _inverse(self.values)
        if self.divided:
            degrees = sums[:, -1:]
            return np.asarray(found / np.where(degrees < FAINT, np.inf, degrees))
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(lengths > 0, lengths, 1.0))


@dataclass(frozen=True, eq=False)
class CutAnswer:
    """An answer to a `BlockCut`, and what k-means made of it.

    Attributes
    ----------
    places : Places
        The eigenpairs.
    centres : (c, k) array or None
        Mean place of each cluster; None where clusters are not made by means.
    """

    places: Places
    centres: Array | None


def _inverse(values: Array) -> Array:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values != 0)


def place_rows(block: Block, places: Places) -> Array:
    """Return the places of the rows of a block."""
    found = np.empty((len(block), places.dimension))
    for rows, F in feature_pieces(block, places.features):
        found[rows] = places.of(F @ places.weights)
    return found


def feature_sums(block: Block, features: Any) -> Array:
    """Return the sum of s phi over the rows of a block."""
    block = counted(block)
    s, sums = block.counts, np.zeros(features.dimension)
    for rows, F in feature_pieces(block, features):
        sums += s[rows] @ F
    return sums


def divided_products(block: Block, features: Any, z: Array | None) -> tuple[Array, int]:
    """Return sum s phi phi' / d over the rows of a block, and how many have no degree.

    Without z there is no division.
    """
    block = counted(block)
    s, m, faint = block.counts, features.dimension, 0
    products = np.zeros((m, m))
    for rows, F in feature_pieces(block, features):
        scale = s[rows]
        if z is not None:
            degrees = F @ z
            none = degrees < FAINT
            faint += int(none.sum())
            scale = np.where(none, 0.0, scale / np.where(none, 1.0, degrees))
        np.multiply(F, np.sqrt(scale)[:, None], out=F)
        products += F.T @ F
    return products, faint
