"""Schema of k-means, spectral clustering, and semi-supervised estimators on graphs."""

from dataclasses import fields

from mercer.files.schema.records import FITTED, machine, record
from mercer.machines.clustering.graph_cut_relaxation import (
    DoublyStochastic,
    NormalizedCut,
    Plain,
    RatioCut,
    StochasticQuantities,
)
from mercer.machines.clustering.kmeans import FeatureLengths, KernelDiagonal, KMeans
from mercer.machines.clustering.problem import Clusters, CutValues
from mercer.machines.clustering.spectral import ByCentre, BySign, SpectralClustering
from mercer.machines.clustering.spectral_blocks import CutQuantities
from mercer.machines.semi_supervised.label_propagation import (
    HarmonicRegressor,
    LabelPropagation,
    LabelSpreading,
)
from mercer.machines.semi_supervised.manifold import LaplacianRidge, LaplacianSVC
from mercer.machines.semi_supervised.problem import GraphValues

record(Clusters, "labels: i8[n]\ntraces: F[_,_]", group="answer")
record(
    StochasticQuantities,
    "\n".join(f"{each.name}: number" for each in fields(StochasticQuantities)),
    group="quantities",
)
record(
    CutQuantities,
    "\n".join(
        f"{each.name}: {'int' if each.name == 'without_degree' else 'number'}"
        for each in fields(CutQuantities)
    ),
    group="quantities",
)
record(CutValues, "cut, ratio, normalized: number")
record(FeatureLengths, "features: @features{d=d} | function", group="lengths")
record(KernelDiagonal, "expression: expression", group="lengths")
for _kind in (Plain, RatioCut, NormalizedCut, DoublyStochastic):
    record(_kind, "weight: F[n]", group="normalization")
record(BySign, "column: int", group="grouping")
record(ByCentre, "centres: f8[m,_]\nlevel: F[c]\nowner: i8[m]<c", group="grouping")

MEANS = """
    _store?: none
    balanced?: param
    _expansion: @expansion{d=d,k=k}
    _own: none | @lengths
    inertia_: float
    cluster_sizes_: f8[k]
    n_iter_: int
    cluster_centers_?: f8[k,d]
    labels_?: i8[n]<k
"""
machine(KMeans, FITTED + MEANS, forgets=frozenset({"_relaxation"}))
machine(
    SpectralClustering,
    FITTED
    + """
    _store?: none
    degrees_?: F[n]
    n_connected_: int
    eigenvalues_: f8[_]
    eigengaps_?: F[_]
    embedding_?: f8[n,_]
    _grouping: @grouping
    n_clusters_: int=k
    _norm: @normalization
    _expansion: @expansion{d=d}
    cut_values_: none | CutValues
    graph_?: csr[n,n]
    scaling_?: F[n]
    _scaling_ended?: Status
    labels_?: i8[n]<k
    """,
)

# --- few labels ----------------------------------------------------------------------------------

record(GraphValues, "values: f8[n,t]\nsteps: f8[n]", group="answer")
_DIFFUSED = (
    FITTED
    + """
    steps_: f8[n]
    unreached_: i8[_]<n
    _sparse_graph: bool
    _expansion: @expansion{d=d}
    _unknown: f8[_]
    """
)
_CLASSES = "classes_: labels[c]\ntransduction_: labels[n]\n"
_LABELS = _DIFFUSED + _CLASSES + "label_distributions_: f8[n,c]\n"
machine(LabelPropagation, _LABELS)
machine(LabelSpreading, _LABELS)
machine(HarmonicRegressor, _DIFFUSED + "values_: f8[n]\n")
_DEFORMED = FITTED + "machine_: @machine\nlabelled_: i8[_]<n\n_expansion: @expansion{d=d}\n"
machine(
    LaplacianRidge,
    _DEFORMED + "dual_coef_: f8[n] | f8[n,_]\nintercept_: float | f8[_]\n",
)
machine(LaplacianSVC, _DEFORMED + _CLASSES + "n_iter_: int\n")
