"""Machines for points alone: clusters, novelty, densities, components."""

from __future__ import annotations

from functools import partial

from mercer.studio.catalog.classifiers import GAUSSIAN
from mercer.studio.catalog.entry import Entry, without_targets
from mercer.studio.catalog.parameters import Choice, Integer, Number, Switch
from mercer.studio.drawing import layers, margin_layers, surfaces
from mercer.studio.reasons import shares, sums

unlabelled = partial(Entry, tasks=("unlabelled",), fit=without_targets)

UNLABELLED = (
    unlabelled(
        "KMeans", "K-means", "Each point to the nearest mean, each mean amid its points.",
        surface=surfaces.cluster, layers=(layers.clusters, layers.centres),
        parameters=(
            Integer("n_clusters", 3, "clusters", 1, 12),
            Switch("refine", True, "whether single points are moved in the end"),
            Switch("balanced", False, "whether clusters are of equal size"),
        ),
        kernel="linear", reason=shares.distances,
    ),
    unlabelled(
        "SpectralClustering", "Spectral clustering", "Cuts the graph where it is thin.",
        surface=surfaces.cluster, layers=(layers.clusters,),
        parameters=(
            Integer("n_clusters", 2, "clusters", 1, 12),
            Choice("normalization", "normalized", "which cut is relaxed",
                   choices=("normalized", "ratio", "doubly_stochastic", "plain")),
        ),
        kernel="gaussian(0.15)",
    ),
    unlabelled(
        "GaussianMixture", "Mixture of Gaussians", "Each point drawn from one of several.",
        surface=surfaces.density, layers=(layers.likeliest, layers.mixture_ellipses),
        parameters=(
            Integer("n_components", 3, "Gaussians", 1, 10),
            Choice("covariance", "full", "which shapes they may have",
                   choices=("full", "diagonal", "spherical")),
        ),
        reason=shares.responsibilities,
    ),
    unlabelled(
        "OneClassSVM", "One-class support vector machine",
        "A border around all but a share nu of the points.",
        surface=surfaces.novelty, layers=(margin_layers.border, layers.inside),
        parameters=(
            Number("nu", 0.1, "share of the points outside, at most", 0.005, 0.95, "linear",
                   curve=True),
        ),
        kernel=GAUSSIAN, reason=sums.kernel_sum, proves=True,
    ),
    unlabelled(
        "EnclosingBall", "Enclosing ball", "The smallest ball around the points, in feature space.",
        surface=surfaces.novelty, layers=(margin_layers.border, layers.inside),
        parameters=(Number("nu", 0.1, "share of the points outside, at most", 0.0, 0.95),),
        kernel=GAUSSIAN, reason=sums.ball_sum, proves=True,
    ),
    unlabelled(
        "PCA", "Principal components", "The directions of the largest spread, in feature space.",
        surface=surfaces.component, layers=(layers.principal_directions, layers.scores),
        parameters=(
            Integer("n_components", 2, "components", 1, 6),
            Switch("center", True, "whether the mean is taken away first"),
        ),
        kernel="linear",
    ),
    unlabelled(
        "ProbabilisticPCA", "Probabilistic PCA", "A Gaussian with few directions and noise.",
        surface=surfaces.density, layers=(layers.model_ellipse,),
        parameters=(Integer("n_components", 1, "directions", 1, 2),),
    ),
    unlabelled(
        "ICA", "Independent components", "Directions along which the points look least Gaussian.",
        surface=surfaces.component, layers=(layers.independent_directions, layers.scores),
        parameters=(
            Choice("contrast", "logcosh", "how far from Gaussian is measured",
                   choices=("logcosh", "cube")),
        ),
    ),
)  # fmt: skip
