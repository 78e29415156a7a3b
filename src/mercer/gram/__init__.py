"""Kernel matrices: how K is stored, its products and its factors. Solvers never see the points.

`make_gram` is the only choice of storage. `DenseGram` stores K, `CachedGram` keeps rows,
`LazyGram` stores nothing, `PrecomputedGram` is the user's matrix, `FactoredGram` is K = F F' (the
primal space), `StreamedGram` the same with rows of F evaluated when they are needed;
`CenteredGram`, `ScaledGram`, `ShiftedGram` and `PartGram` wrap any of them.
"""

from mercer.gram.base import Cross, Expansion, Gram, exact
from mercer.gram.build import Need, make_gram
from mercer.gram.centering import CenteredGram, centered
from mercer.gram.definite import Definiteness, definiteness
from mercer.gram.evaluated import CachedGram, DenseGram, LazyGram, Source
from mercer.gram.factored import FactoredGram, StreamedGram
from mercer.gram.graph import EdgeWeight, GraphGram, components, neighbour_graph, neighbours
from mercer.gram.partial_cholesky import PartialFactor, pivoted_cholesky
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.sparse import SparseGram
from mercer.gram.transformed import PartGram, ScaledGram, ShiftedGram, scaled

__all__ = [
    "CachedGram",
    "CenteredGram",
    "Cross",
    "Definiteness",
    "DenseGram",
    "EdgeWeight",
    "Expansion",
    "FactoredGram",
    "Gram",
    "GraphGram",
    "LazyGram",
    "Need",
    "PartGram",
    "PartialFactor",
    "PrecomputedGram",
    "ScaledGram",
    "ShiftedGram",
    "Source",
    "SparseGram",
    "StreamedGram",
    "centered",
    "components",
    "definiteness",
    "exact",
    "make_gram",
    "neighbour_graph",
    "neighbours",
    "pivoted_cholesky",
    "scaled",
]
