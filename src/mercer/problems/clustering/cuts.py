"""Cuts of a graph: what they cost, and the question for the cheapest one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mercer.array_types import Array
from mercer.gram import Gram, PrecomputedGram, SparseGram


@dataclass(frozen=True)
class CutValues:
    """What a division of a graph cuts.

    Attributes
    ----------
    cut : float
        Total weight of the edges between different clusters, each counted once.
    ratio : float
        Ratio cut: for each cluster, the weight that leaves it over the number of its points.
    normalized : float
        Normalised cut: for each cluster, the weight that leaves it over the sum of its degrees.
    """

    cut: float
    ratio: float
    normalized: float


def affinity_gram(affinity: Any) -> Gram:
    """Return a Gram for an affinity: a Gram as it is, a matrix, dense or sparse, checked."""
    if isinstance(affinity, Gram):
        return affinity
    if sparse.issparse(affinity):
        return SparseGram(affinity)
    return PrecomputedGram(np.asarray(affinity))


def cut_values(affinity: Any, labels: npt.ArrayLike) -> CutValues:
    """Return the cut, ratio cut and normalised cut of a division.

    Parameters
    ----------
    affinity : Gram, (n, n) array or sparse matrix
        Weights of the edges: symmetric, not negative. The diagonal counts in degrees only.
    labels : (n,) array-like
        The cluster of each point.

    Returns
    -------
    CutValues
        All three.

    Examples
    --------
    >>> cut_values([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [0, 0, 1])
    CutValues(cut=1.0, ratio=1.5, normalized=1.2)
    """
    gram = affinity_gram(affinity)
    _, labels = np.unique(np.asarray(labels), return_inverse=True)
    if labels.shape != (gram.shape[0],):
        raise ValueError(f"cut_values: {gram.shape[0]} points, but labels of shape {labels.shape}")
    members = np.zeros((gram.shape[0], int(labels.max(initial=-1)) + 1))
    members[np.arange(len(labels)), labels] = 1.0
    between = members.T @ np.asarray(gram @ members, dtype=np.float64)
    volume = between.sum(axis=1)
    leaving = np.maximum(volume - between.diagonal(), 0.0)
    share = np.divide(leaving, volume, out=np.zeros_like(leaving), where=volume > 0)
    return CutValues(
        float(leaving.sum() / 2),
        float((leaving / members.sum(axis=0)).sum()),
        float(share.sum()),
    )


@dataclass(frozen=True, eq=False)
class Bipartition:
    """An answer to a `MinimumCut`.

    Attributes
    ----------
    labels : (n,) int array
        1 on the side of the source (for a global cut, of point 0), else 0.
    value : float
        The weight of the cut.
    flow : float
        A flow of this value exists between every pair that had to be separated, so no cut is
        cheaper.
    """

    labels: Array
    value: float
    flow: float


@dataclass(frozen=True, eq=False)
class MinimumCut:
    """The division in two that cuts the least weight.

    Attributes
    ----------
    affinity : Gram
        Weights of the edges, not negative.
    source, sink : int or None
        Points that must be separated; None for the cheapest division whatever it separates.
    """

    affinity: Gram
    source: int | None = None
    sink: int | None = None

    def __post_init__(self) -> None:
        n = self.affinity.shape[0]
        if n < 2:
            raise ValueError("MinimumCut: there is nothing to divide in fewer than two points")
        ends = (self.source, self.sink)
        if not all(p is None or isinstance(p, Integral) for p in ends):
            raise ValueError(f"MinimumCut: source and sink {ends} must be whole numbers, or None")
        if (self.source is None) != (self.sink is None):
            raise ValueError("MinimumCut: give both source and sink, or neither")
        if self.source is not None and (
            self.source == self.sink or not all(0 <= int(p) < n for p in ends if p is not None)
        ):
            raise ValueError(f"MinimumCut: source and sink {ends} must be two points below {n}")
