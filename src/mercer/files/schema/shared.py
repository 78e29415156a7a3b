"""Schema of what estimators share: solutions, certificates, expansions, and feature maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from mercer import certificates, solvers
from mercer.approximation import (
    ApproximateKernel,
    Nystrom,
    RandomFeatures,
    StatedError,
)
from mercer.approximation.nystrom import NystromFeatures
from mercer.approximation.random_features import (
    Beside,
    ExactFeatures,
    FourierFeatures,
    OnColumns,
    TensorSketch,
)
from mercer.files.schema.records import ENUMS, FUNCTIONS, RECORDS, Fields, record, retired
from mercer.gram.centering import CenteredFeatures
from mercer.gram.evaluated import KernelExpansion, Source
from mercer.gram.factored import FeatureExpansion
from mercer.gram.graph import EdgeWeight, GraphExpansion, LargestRule, NeighbourRule
from mercer.gram.precomputed import MatrixExpansion
from mercer.gram.sparse import SparseExpansion
from mercer.kernels import Precomputed
from mercer.kernels.features import FeatureMap
from mercer.machines.correlation.views import Densified
from mercer.machines.decomposition.components import MovedExpansion
from mercer.machines.neighbors.nearest_mean import rows_as_features
from mercer.rows.points import to_dense
from mercer.solvers.base import Progress, Solution, Solver, Status
from mercer.solvers.certificate import Certificate

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
    """Return the fields of a dataclass of numbers and texts, as its annotations say.

    Those of a default may lack: files from before they were measured have none.
    """
    return "\n".join(
        f"{each.name}{'' if each.default is MISSING else '?'}: {_PLAIN[str(each.type)]}"
        for each in fields(kind)
    )


for _name in certificates.__all__:
    if _name.endswith("Quantities"):
        _kind = getattr(certificates, _name)
        record(_kind, _plain(_kind), group="quantities")


def _solver(kind: type[Solver], kept: str | None = None) -> Callable[[Fields], Solver]:
    """Return what makes a solver of its options, those without effect left out."""
    return lambda found: kind(
        **{
            name: option
            for name, option in found.items()
            if name not in kind.without_effect and (kept is None or name in kept.split())
        }
    )


for _name in solvers.__all__:  # options of solvers are parameters
    _kind = getattr(solvers, _name)
    if isinstance(_kind, type) and issubclass(_kind, Solver) and _kind is not Solver:
        record(_kind, group="solver", make=_solver(_kind))
for _name, (_other, _options, _kept) in solvers.RETIRED.items():
    retired(_name, _options, _solver(RECORDS[_other].kind, _kept))
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
# --- features in place of a kernel: rows of d columns come in, w features go out ------------------


def _check_sketch(made: TensorSketch) -> None:
    counts = [factor.dimension for factor in made.factors]
    for arrays in (made.buckets, made.signs):
        if [array.shape for array in arrays] != [(count,) for count in counts]:
            raise ValueError("a sketch has a place and a sign for each feature of its factors")
    if not counts or made.size < 1 or any((b < 0).any() for b in made.buckets):
        raise ValueError("a sketch has no places")
    if any((b >= made.size).any() for b in made.buckets):
        raise ValueError(f"a sketch has places beyond its {made.size}")


def _make_sketch(found: Fields) -> TensorSketch:
    made = TensorSketch(**found)
    _check_sketch(made)
    return made


def _make_approximate(found: Fields) -> ApproximateKernel:
    made = ApproximateKernel(**found)
    if isinstance(made.kernel, ApproximateKernel | Precomputed):
        raise ValueError(f"{type(made.kernel).__name__} has no features in its place")
    formula = getattr(made.phi, "expression", None)
    if formula is not None and formula != made.kernel.expression():
        raise ValueError("the landmarks belong to another kernel")
    return made


_SEEDED = "n_components, random_state: int\n"
record(Nystrom, _SEEDED + "sampling: text", group="approximation")
record(RandomFeatures, _SEEDED + "draws: text", group="approximation")
record(StatedError, "value: number\nmeasure: text\nrows: int\nstandard_error?: number")
record(
    NystromFeatures,
    "expression: expression\nlandmarks: rows[w,d]\ninverse: f8[w,w]\nfactor?: none",
    group="phi",
    state=NystromFeatures.__getstate__,  # with L^-1, also if a GPU holds L
)
record(ExactFeatures, "map: FeatureMap{d=d}", group="phi")
record(FourierFeatures, "frequencies: f8[d,_]\namplitude: float", group="phi")
record(Beside, "parts: tuple(@phi{d=d})", group="phi")
record(OnColumns, "columns: tuple(int)\npart: @phi", group="phi")
record(
    TensorSketch,
    """
    factors: tuple(@phi{d=d})
    buckets: tuple(i8[_])
    signs: tuple(f8[_])
    size: int
    amplitude: float
    """,
    group="phi",
    make=_make_sketch,
)
record(
    ApproximateKernel,
    "kernel: kernel\napproximation: @approximation\nphi: @phi{d=d,w=w}",
    make=_make_approximate,
)
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
