"""How K is held. Solvers see only this room, and never the points.

`make_gram` is the only choice of storage. `DenseGram` stores K, `CachedGram` keeps rows,
`LazyGram` stores nothing, `PrecomputedGram` is the user's matrix, `FactoredGram` is K = F F' (the
primal space); `CenteredGram`, `ScaledGram`, `ShiftedGram` and `PartGram` wrap any of them.
"""

from mercer.gram.base import Cross, Expansion, Gram
from mercer.gram.build import Need, make_gram
from mercer.gram.cached import CachedGram
from mercer.gram.centered import CenteredGram, centered
from mercer.gram.components import components
from mercer.gram.definite import Definiteness, definiteness
from mercer.gram.dense import DenseGram
from mercer.gram.exact import exact
from mercer.gram.factored import FactoredGram
from mercer.gram.graph import EdgeWeight, GraphGram, neighbour_graph
from mercer.gram.lazy import LazyGram
from mercer.gram.lowrank import PartialFactor, pivoted_cholesky
from mercer.gram.neighbours import neighbours
from mercer.gram.part import PartGram
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.scaled import ScaledGram, scaled
from mercer.gram.shifted import ShiftedGram
from mercer.gram.source import Source
from mercer.gram.sparse import SparseGram

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
