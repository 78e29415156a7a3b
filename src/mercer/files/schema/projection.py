"""Schema of PCA, ICA, MDS, CCA, Fisher's discriminant, whitening, and autoencoders."""

from dataclasses import fields
from typing import Any

from mercer.files.schema.records import FITTED, JUDGED, machine, record
from mercer.machines.correlation.cca import CCA
from mercer.machines.correlation.problem import CanonicalPairs
from mercer.machines.correlation.views import FittedView, Reader, Regression, Route
from mercer.machines.decomposition.components import (
    FeatureSubspace,
    MatrixSubspace,
    OriginSubspace,
    PointSubspace,
    ReducedSubspace,
)
from mercer.machines.decomposition.ica import ICA, ProjectionPursuit
from mercer.machines.decomposition.ica_fixed_point import Unmixing
from mercer.machines.decomposition.mds import MDS
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.preimage import Exact, Impossible, Iterated, Learned
from mercer.machines.decomposition.probabilistic_pca import ProbabilisticPCA
from mercer.machines.decomposition.probabilistic_pca_em import Plane
from mercer.machines.decomposition.whiten import LogShift, Whiten, WhiteningQuantities
from mercer.machines.discriminant.fisher import FisherDiscriminant, Mahalanobis, SharedGaussian
from mercer.machines.discriminant.problem import Directions
from mercer.machines.neural.autoencoder import Autoencoder, VariationalAutoencoder
from mercer.machines.neural.problem import ACTIVATIONS, NetworkLayout, NetworkParameters
from mercer.solvers.eigen.problem import Modes

record(Modes, "values: f8[k]\nvectors: f8[n,k]", group="answer")
record(
    Plane, "mean: f8[d]\nloadings: f8[d,k]\nnoise: float\nlikelihoods: none | f8[_]", group="answer"
)
record(
    WhiteningQuantities,
    "\n".join(f"{each.name}: number" for each in fields(WhiteningQuantities)),
    group="quantities",
)
record(Unmixing, "mean: f8[d]\ncomponents: f8[k,d]", group="answer")
record(
    CanonicalPairs,
    """
    values: f8[k]
    coef_x, coef_y: f8[n,k]
    rank_x, rank_y: none | int
    bound: number
    weights_x, weights_y: none | f8[_,k]
    """,
    group="answer",
)
record(Directions, "values: f8[k]\ncoef: none | f8[n,k]\nweights: none | f8[w,k]", group="answer")

record(
    FeatureSubspace,
    "features: @features{d=d} | function\nmean: f8[w]\ndirections: f8[w,k]\nspread: number",
    group="subspace",
)
record(PointSubspace, "source: Source{n=n,d=d}\ncoef: f8[n,k]\nweights: f8[n]", group="subspace")
record(OriginSubspace, "source: Source{n=n,d=d}\ncoef: f8[n,k]\nweights: f8[n]", group="subspace")
record(
    ReducedSubspace,
    "source: Source{n=m,d=d}\ncoef: f8[m,k]\nmean: f8[m]\nspread: number",
    group="subspace",
)
record(MatrixSubspace, "expansion: MatrixExpansion{d=d,k=k}\nspread: number", group="subspace")
record(Impossible, "reason: text", group="inverse")
record(Exact, "subspace: FeatureSubspace{d=d}", group="inverse")
record(
    Iterated,
    "subspace: @subspace{d=d}\nkernel, pull: kernel\ntraining: rows[_,_]",
    group="inverse",
)
record(Learned, "training: rows[n,_]\nrows: rows[n,d]\nweights: f8[n]", group="inverse")
machine(
    PCA,
    FITTED
    + """
    _store?: none
    center?: param
    _found: number
    n_components_: int=k
    eigenvalues_, explained_variance_: f8[k]
    _unit: F[k]
    dual_coef_?: f8[n,k]
    _subspace: @subspace{d=d,k=k}
    _inverse: @inverse
    """,
)
machine(
    MDS,
    """
    solution_: Solution
    certificate_: Certificate
    embedding_: f8[n,k]
    eigenvalues_: f8[k]
    explained_, negative_share_, stress_: number
    _kept: i8[m]<n
    _rows: none | rows[m,d]
    _unit: number
    _coef: f8[m,k]
    _offset: f8[k]
    """,
)
machine(
    ProbabilisticPCA,
    """
    solution_: Solution
    certificate_: Certificate
    mean_: f8[d]
    loadings_: f8[d,k]
    noise_variance_, log_likelihood_: float
    n_components_: int=k
    n_iter_: int
    log_likelihoods_?: f8[_]
    """,
)
machine(
    Whiten,
    """
    rank_: int=r
    n_dropped_: int
    mean_: f8[d]
    variances_: f8[_]
    solution_: Solution
    certificate_: Certificate
    whitening_, coloring_: f8[_,_]
    """,
)
for kind in (ICA, ProjectionPursuit):
    machine(
        kind,
        JUDGED
        + """
    mean_: f8[d]
    components_: f8[k,d]
    mixing_: f8[d,k]
    non_gaussianity_: f8[k]
    n_components_: int=k
    n_iter_: int
    converged_: bool
    """,
    )
machine(LogShift, "shift_: f8[d]")

# --- two views -----------------------------------------------------------------------------------

record(FittedView, "kernel: kernel\nexpansion: @expansion{d=d,k=k}")
record(
    Reader,
    "machine: text\nprecomputed, flat: bool\nwidth: none | int\nnames: none | tuple(text)",
)
record(Regression, "slopes: f8[k,t]\ncentre: f8[t]")
record(Route, "rows, from_variates: Regression{k=k,t=t}\nvariates: Regression{k=k,t=k}")
machine(
    CCA,
    JUDGED
    + """
    _store?: none
    _reader: Reader
    kernel_x_, kernel_y_: kernel
    penalty_: tuple(float)
    cv_scores_?: F[_,_]
    penalties_?: F[_] | list(param)
    correlations_: f8[k]
    rank_x_, rank_y_: none | int
    _x: FittedView{d=d,k=k}
    _y: FittedView{k=k}
    dual_coef_x_, dual_coef_y_: f8[n,k]
    _regression: none | Regression{k=k}
    _routes?: tuple(Route{k=k})
    """,
)

# --- classes -------------------------------------------------------------------------------------

record(SharedGaussian, "means: f8[c,k]\npriors: f8[c]\nvariance: float", group="decision")
record(Mahalanobis, "means: f8[c,k]\nfactors: f8[c,_,_] | f8[c,_]", group="decision")
machine(
    FisherDiscriminant,
    FITTED
    + """
    penalty_on?: param
    classes_: labels[c]
    prior_: f8[c]
    _origin: none | f8[d]
    penalty_: float
    dual_coef_?: f8[n,k]
    _expansion: @expansion{d=d,k=k}
    ratios_: f8[k]
    means_: f8[c,k]
    _rule: @decision{c=c,k=k}
    _directions?: f8[d,_]
    """,
)

# --- autoencoders: the shape of their networks, and all weights in one vector ---------------------

record(NetworkLayout, "encoder, decoder: tuple(int)\nactivation: text")
record(NetworkParameters, "parameters: f8[_]", group="answer")


def _whole(more: int, codes: int) -> Any:
    """Return a check that the weights are as many as the layers ask for, and end in rows."""

    def check(built: Any) -> None:
        layout, d = built._layout, len(built.mean_)
        ends = (layout.encoder[0], layout.encoder[-1], layout.decoder[0], layout.decoder[-1])
        q = built.n_components_
        if ends != (d, codes * q, q, d) or min(*layout.encoder, *layout.decoder) < 1:
            raise ValueError(f"layers {layout.encoder} and {layout.decoder} for {d} columns")
        if layout.activation not in ACTIVATIONS:
            raise ValueError(f"an activation {layout.activation!r:.60}")
        count = len(built.solution_.value.parameters)
        if count != layout.size + more:
            raise ValueError(f"{count} weights for layers of {layout.size + more}")

    return check


_COMMON = """
    solution_: Solution
    certificate_: Certificate
    mean_: f8[d]
    unit_: float
    n_components_: int=k
    n_iter_: int
    _layout: NetworkLayout
    _seed: int
"""
machine(
    Autoencoder,
    _COMMON + "code_mean_: f8[k]\ncode_covariance_: f8[k,k]\n",
    check=_whole(0, 1),
)
machine(VariationalAutoencoder, _COMMON + "noise_variance_: number\n", check=_whole(1, 2))
