"""What machines share: solutions, certificates, Grams' expansions, feature maps."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from mercer import certificates, solvers
from mercer.certificates import Certificate
from mercer.files.schema.record import ENUMS, FUNCTIONS, Fields, record
from mercer.gram.graphs.graph import EdgeWeight, GraphExpansion, LargestRule, NeighbourRule
from mercer.gram.source import KernelExpansion, Source
from mercer.gram.storage.factored import FeatureExpansion
from mercer.gram.storage.precomputed import MatrixExpansion
from mercer.gram.storage.sparse import SparseExpansion
from mercer.gram.transformed.centered import CenteredFeatures
from mercer.kernels.features import FeatureMap
from mercer.machines.classification.nearest_mean import rows_as_features
from mercer.machines.correlation.views import Densified
from mercer.machines.projection.origin import MovedExpansion
from mercer.points import to_dense
from mercer.solvers import Progress, Solution, Solver, Status

ENUMS.update(Status=Status, EdgeWeight=EdgeWeight)
FUNCTIONS.update(rows_as_features=rows_as_features, to_dense=to_dense)

# --- how a fit ended -----------------------------------------------------------------------------

record(Progress, "iteration: int\nseconds, measure: number")
record(
    Solution,
    """
    value: @answer
    status: Status
    iterations: int
    seconds: number
    solver, detail: text
    trace: tuple(Progress)
    """,
)
record(Certificate, "ok: bool\nquantities: @quantities\ntol: number\nstatement: text")

_PLAIN = {"float": "number", "int": "int", "bool": "bool", "str": "text",
          "tuple[float, ...]": "tuple(number)"}  # fmt: skip


def _plain(kind: Any) -> str:
    """Return the fields of a dataclass of numbers and texts, as its annotations say."""
    return "\n".join(f"{each.name}: {_PLAIN[str(each.type)]}" for each in fields(kind))


for _name in certificates.__all__:
    if _name.endswith("Quantities"):
        _kind = getattr(certificates, _name)
        record(_kind, _plain(_kind), group="quantities")

for _name in solvers.__all__:  # options of solvers are parameters
    _kind = getattr(solvers, _name)
    if isinstance(_kind, type) and issubclass(_kind, Solver) and _kind is not Solver:
        record(_kind, group="solver")
for _kind in (solvers.Gap, solvers.Violation, solvers.PlusPlus, solvers.RandomPoints):
    record(_kind, group="option")
for _kind in (solvers.Given, solvers.Relaxed):
    record(_kind, group="option")

# --- functions of new rows: d columns come in, k numbers go out -----------------------------------


def _source(value: Source) -> Fields:
    dtype = np.dtype(value.dtype).name
    return {"expression": value.expression, "X": value.X, "dtype": dtype, "valid": value.valid}


def _make_source(found: Fields) -> Source:
    if found["dtype"] not in ("float32", "float64"):
        raise ValueError(f"a kernel matrix of {found['dtype']!r:.60}")
    return Source(**{**found, "dtype": np.dtype(found["dtype"]).type})


def _make_features(found: Fields) -> FeatureExpansion:
    made = FeatureExpansion(**found)
    size = getattr(made.features, "dimension", len(made.weights))
    if size != len(made.weights):
        raise ValueError(f"{len(made.weights)} weights for {size} features")
    return made


record(
    Source,
    "expression: expression\nX: rows[n,d]\ndtype: text\nvalid: bool",
    state=_source,
    make=_make_source,
    closed=True,
)
record(FeatureMap, "expression: expression\nn_features: int=d", group="features")
record(CenteredFeatures, "features: @features{d=d} | function\nmean: f8[w]", group="features")
record(Densified, "features: @features{d=d} | function", group="features")
record(
    KernelExpansion,
    "expression: expression\npoints: rows[s,d]\ncoef: f8[s,k]\noffset: f8[k]",
    group="expansion",
)
record(
    FeatureExpansion,
    "features: @features{d=d,w=w} | function\nweights: f8[w,k]\noffset: f8[k]",
    group="expansion",
    make=_make_features,
)
record(MatrixExpansion, "coef: f8[d,k]\noffset: f8[k]", group="expansion")
record(SparseExpansion, "coef: f8[d,k]\noffset: f8[k]", group="expansion")
record(MovedExpansion, "base: @expansion{d=d,k=k}\nmean: f8[d]", group="expansion")
record(
    GraphExpansion,
    "rule: @rule{n=n,d=d}\ncoef: f8[n,k]\noffset: f8[k]",
    group="expansion",
)
record(NeighbourRule, "source: Source{n=n,d=d}\ncount: int\nweight: EdgeWeight", group="rule")
record(LargestRule, "matrix: f[n,n]\ncount: int\nweight: EdgeWeight", group="rule")
