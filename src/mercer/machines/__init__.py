"""The scikit-learn face: validate, translate to a problem, keep the answer. Thin."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.machines.base.approximate import ApproximationWarning, FitWarning
    from mercer.machines.base.machine import to_device
    from mercer.machines.base.parameters import ParameterError
    from mercer.machines.bayes.bag_of_words import BagOfWords
    from mercer.machines.bayes.decision import BayesDecision, Independence, JointTable
    from mercer.machines.bayes.gaussian_classifier import GaussianClassifier
    from mercer.machines.bayes.naive_bayes import NaiveBayes, Telling
    from mercer.machines.clustering.graph_cut_relaxation import DisconnectedWarning
    from mercer.machines.clustering.kmeans import KMeans
    from mercer.machines.clustering.spectral import SpectralClustering
    from mercer.machines.compression.compress import compress
    from mercer.machines.correlation.cca import CCA
    from mercer.machines.decomposition.ica import ICA, ProjectionPursuit
    from mercer.machines.decomposition.mds import MDS
    from mercer.machines.decomposition.pca import PCA
    from mercer.machines.decomposition.probabilistic_pca import ProbabilisticPCA
    from mercer.machines.decomposition.whiten import LogShift, Whiten
    from mercer.machines.discriminant.fisher import FisherDiscriminant
    from mercer.machines.entropy.maximum_entropy import MaximumEntropy
    from mercer.machines.gaussian_process.classifier import GaussianProcessClassifier
    from mercer.machines.gaussian_process.regressor import GaussianProcess
    from mercer.machines.logistic.logistic_regression import LogisticRegression
    from mercer.machines.mixture.discrete_mixtures import BernoulliMixture, MultinomialMixture
    from mercer.machines.mixture.gaussian_mixture import GaussianMixture
    from mercer.machines.multitask.gaussian_process import MultiTaskGaussianProcess
    from mercer.machines.neighbors.nearest_mean import NearestMean
    from mercer.machines.neighbors.nearest_neighbors import NearestNeighbors
    from mercer.machines.neural.autoencoder import Autoencoder, VariationalAutoencoder
    from mercer.machines.perceptron.perceptron import Perceptron
    from mercer.machines.rectangle import AxisAlignedRectangle
    from mercer.machines.ridge.kernel_ridge import KernelRidge
    from mercer.machines.semi_supervised.label_propagation import (
        HarmonicRegressor,
        LabelPropagation,
        LabelSpreading,
    )
    from mercer.machines.semi_supervised.manifold import LaplacianRidge, LaplacianSVC
    from mercer.machines.svm.novelty import EnclosingBall, OneClassSVM
    from mercer.machines.svm.svc import SVC
    from mercer.machines.svm.svr import SVR

__all__ = [
    "CCA",
    "PCA",
    "SVC",
    "SVR",
    "ApproximationWarning",
    "Autoencoder",
    "AxisAlignedRectangle",
    "BagOfWords",
    "BayesDecision",
    "BernoulliMixture",
    "DisconnectedWarning",
    "EnclosingBall",
    "FisherDiscriminant",
    "GaussianClassifier",
    "Independence",
    "JointTable",
    "GaussianMixture",
    "GaussianProcess",
    "GaussianProcessClassifier",
    "KMeans",
    "KernelRidge",
    "LogisticRegression",
    "LogShift",
    "NaiveBayes",
    "MaximumEntropy",
    "MultiTaskGaussianProcess",
    "MultinomialMixture",
    "NearestMean",
    "NearestNeighbors",
    "OneClassSVM",
    "FitWarning",
    "ParameterError",
    "Perceptron",
    "MDS",
    "ProbabilisticPCA",
    "SpectralClustering",
    "Telling",
    "VariationalAutoencoder",
    "ICA",
    "ProjectionPursuit",
    "HarmonicRegressor",
    "LabelPropagation",
    "LabelSpreading",
    "LaplacianRidge",
    "LaplacianSVC",
    "Whiten",
    "compress",
    "to_device",
]

# each name is imported when it is first asked for
_HOMES = {
    "mercer.machines.base.approximate": (
        "ApproximationWarning",
        "FitWarning",
    ),
    "mercer.machines.base.machine": ("to_device",),
    "mercer.machines.base.parameters": ("ParameterError",),
    "mercer.machines.bayes.bag_of_words": ("BagOfWords",),
    "mercer.machines.bayes.decision": (
        "BayesDecision",
        "Independence",
        "JointTable",
    ),
    "mercer.machines.bayes.gaussian_classifier": ("GaussianClassifier",),
    "mercer.machines.bayes.naive_bayes": (
        "Telling",
        "NaiveBayes",
    ),
    "mercer.machines.clustering.graph_cut_relaxation": ("DisconnectedWarning",),
    "mercer.machines.clustering.kmeans": ("KMeans",),
    "mercer.machines.clustering.spectral": ("SpectralClustering",),
    "mercer.machines.compression.compress": ("compress",),
    "mercer.machines.correlation.cca": ("CCA",),
    "mercer.machines.decomposition.ica": (
        "ICA",
        "ProjectionPursuit",
    ),
    "mercer.machines.decomposition.mds": ("MDS",),
    "mercer.machines.decomposition.pca": ("PCA",),
    "mercer.machines.decomposition.probabilistic_pca": ("ProbabilisticPCA",),
    "mercer.machines.decomposition.whiten": (
        "LogShift",
        "Whiten",
    ),
    "mercer.machines.discriminant.fisher": ("FisherDiscriminant",),
    "mercer.machines.entropy.maximum_entropy": ("MaximumEntropy",),
    "mercer.machines.gaussian_process.classifier": ("GaussianProcessClassifier",),
    "mercer.machines.gaussian_process.regressor": ("GaussianProcess",),
    "mercer.machines.logistic.logistic_regression": ("LogisticRegression",),
    "mercer.machines.mixture.discrete_mixtures": (
        "BernoulliMixture",
        "MultinomialMixture",
    ),
    "mercer.machines.mixture.gaussian_mixture": ("GaussianMixture",),
    "mercer.machines.multitask.gaussian_process": ("MultiTaskGaussianProcess",),
    "mercer.machines.neighbors.nearest_mean": ("NearestMean",),
    "mercer.machines.neighbors.nearest_neighbors": ("NearestNeighbors",),
    "mercer.machines.neural.autoencoder": (
        "Autoencoder",
        "VariationalAutoencoder",
    ),
    "mercer.machines.perceptron.perceptron": ("Perceptron",),
    "mercer.machines.rectangle": ("AxisAlignedRectangle",),
    "mercer.machines.ridge.kernel_ridge": ("KernelRidge",),
    "mercer.machines.semi_supervised.label_propagation": (
        "HarmonicRegressor",
        "LabelPropagation",
        "LabelSpreading",
    ),
    "mercer.machines.semi_supervised.manifold": (
        "LaplacianRidge",
        "LaplacianSVC",
    ),
    "mercer.machines.svm.novelty": (
        "EnclosingBall",
        "OneClassSVM",
    ),
    "mercer.machines.svm.svc": ("SVC",),
    "mercer.machines.svm.svr": ("SVR",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
