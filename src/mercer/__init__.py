"""Kernel machine learning, whole: one kernel language, exact solvers, a certificate with every fit.

Kernels live in `mercer.kernels`, machines here at the top::

    from mercer import SVC
    from mercer.kernels import Gaussian, Linear

    machine = SVC(Gaussian(2.0) + Linear(), C=10.0).fit(X, y)
    print(machine.certificate_)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.deadline import TimeLimitError
    from mercer.files import ModelFormatError
    from mercer.files.model import load, save
    from mercer.fitting import TableModel, cluster, project, topics
    from mercer.fitting.fit import fit
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
    from mercer.resources import Config, MemoryBudgetError, config, get_config, set_config
    from mercer.selection import Tuned, choose, tune
    from mercer.solvers.base import Solution, Status
    from mercer.solvers.certificate import Certificate, certify
    from mercer.solvers.dispatch import SolverError, solve

__version__ = "0.15.0"

__all__ = [
    "CCA",
    "PCA",
    "SVC",
    "SVR",
    "Autoencoder",
    "AxisAlignedRectangle",
    "BagOfWords",
    "BayesDecision",
    "Certificate",
    "Config",
    "BernoulliMixture",
    "DisconnectedWarning",
    "EnclosingBall",
    "GaussianClassifier",
    "Independence",
    "JointTable",
    "GaussianMixture",
    "GaussianProcess",
    "GaussianProcessClassifier",
    "KMeans",
    "FisherDiscriminant",
    "ApproximationWarning",
    "FitWarning",
    "KernelRidge",
    "LogisticRegression",
    "LogShift",
    "MemoryBudgetError",
    "ModelFormatError",
    "NaiveBayes",
    "MaximumEntropy",
    "MultiTaskGaussianProcess",
    "MultinomialMixture",
    "NearestMean",
    "NearestNeighbors",
    "OneClassSVM",
    "ParameterError",
    "Perceptron",
    "MDS",
    "ProbabilisticPCA",
    "Solution",
    "SolverError",
    "SpectralClustering",
    "Status",
    "TableModel",
    "TimeLimitError",
    "Telling",
    "Tuned",
    "VariationalAutoencoder",
    "ICA",
    "ProjectionPursuit",
    "HarmonicRegressor",
    "LabelPropagation",
    "LabelSpreading",
    "LaplacianRidge",
    "LaplacianSVC",
    "Whiten",
    "certify",
    "choose",
    "cluster",
    "compress",
    "config",
    "fit",
    "get_config",
    "load",
    "project",
    "save",
    "set_config",
    "solve",
    "to_device",
    "topics",
    "tune",
]

# Each name is imported when it is first asked for: `mercer --version` must not wait for SciPy and
# scikit-learn.
_ROOMS = {
    "mercer.certificates": ("Certificate", "certify"),
    "mercer.deadline": ("TimeLimitError",),
    "mercer.files": ("ModelFormatError", "load", "save"),
    "mercer.fitting": ("TableModel", "cluster", "fit", "project", "topics"),
    "mercer.machines": (
        "Autoencoder",
        "AxisAlignedRectangle",
        "BagOfWords",
        "BayesDecision",
        "BernoulliMixture",
        "CCA",
        "DisconnectedWarning",
        "EnclosingBall",
        "FisherDiscriminant",
        "ApproximationWarning",
        "FitWarning",
        "GaussianClassifier",
        "GaussianMixture",
        "GaussianProcess",
        "GaussianProcessClassifier",
        "Independence",
        "JointTable",
        "KMeans",
        "KernelRidge",
        "LogShift",
        "LogisticRegression",
        "MaximumEntropy",
        "MultiTaskGaussianProcess",
        "MultinomialMixture",
        "NaiveBayes",
        "NearestMean",
        "NearestNeighbors",
        "OneClassSVM",
        "PCA",
        "ParameterError",
        "Perceptron",
        "MDS",
        "ProbabilisticPCA",
        "SVC",
        "SVR",
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
    ),
    "mercer.resources": ("Config", "MemoryBudgetError", "config", "get_config", "set_config"),
    "mercer.selection": ("Tuned", "choose", "tune"),
    "mercer.solvers": ("Solution", "SolverError", "Status", "solve"),
}
_MODULES = (
    "backends",
    "certificates",
    "compat",
    "data",
    "files",
    "fitting",
    "gram",
    "kernels",
    "machines",
    "plots",
    "problems",
    "reinforcement",
    "report",
    "selection",
    "serve",
    "solvers",
    "studio",
    "testing",
    "theory",
)
_HOME = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"mercer.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
