"""How K is held. Solvers see only this room, and never the points.

`make_gram` is the only choice of storage. `DenseGram` stores K, `CachedGram` keeps rows,
`LazyGram` stores nothing, `PrecomputedGram` is the user's matrix, `FactoredGram` is K = F F' (the
primal space), `StreamedGram` the same with rows of F evaluated when they are needed;
`CenteredGram`, `ScaledGram`, `ShiftedGram` and `PartGram` wrap any of them.
"""

from mercer.gram.base import Cross, Expansion, Gram, exact
from mercer.gram.build import Need, make_gram
from mercer.gram.definite import Definiteness, definiteness
from mercer.gram.graphs.components import components
from mercer.gram.graphs.graph import EdgeWeight, GraphGram, neighbour_graph
from mercer.gram.graphs.neighbours import neighbours
from mercer.gram.source import CachedGram, DenseGram, LazyGram, Source
from mercer.gram.storage.factored import FactoredGram
from mercer.gram.storage.lowrank import PartialFactor, pivoted_cholesky
from mercer.gram.storage.precomputed import PrecomputedGram
from mercer.gram.storage.sparse import SparseGram
from mercer.gram.storage.streamed import StreamedGram
from mercer.gram.transformed.centered import CenteredGram, centered
from mercer.gram.transformed.part import PartGram
from mercer.gram.transformed.scaled import ScaledGram, scaled
from mercer.gram.transformed.shifted import ShiftedGram

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
