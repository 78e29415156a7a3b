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
    from mercer.certificates import Certificate, certify
    from mercer.deadline import TimeLimitError
    from mercer.files import ModelFormatError
    from mercer.files.load import load
    from mercer.files.save import save
    from mercer.fitting import TableModel, cluster, project, topics
    from mercer.fitting.fit import fit
    from mercer.machines import (
        CCA,
        ICA,
        MDS,
        PCA,
        SVC,
        SVR,
        ApproximationWarning,
        Autoencoder,
        AxisAlignedRectangle,
        BagOfWords,
        BayesDecision,
        BernoulliMixture,
        DisconnectedWarning,
        EnclosingBall,
        FisherDiscriminant,
        FitWarning,
        GaussianClassifier,
        GaussianMixture,
        GaussianProcess,
        GaussianProcessClassifier,
        HarmonicRegressor,
        Independence,
        JointTable,
        KernelRidge,
        KMeans,
        LabelPropagation,
        LabelSpreading,
        LaplacianRidge,
        LaplacianSVC,
        LogisticRegression,
        LogShift,
        MaximumEntropy,
        MultinomialMixture,
        MultiTaskGaussianProcess,
        NaiveBayes,
        NearestMean,
        NearestNeighbors,
        OneClassSVM,
        ParameterError,
        Perceptron,
        ProbabilisticPCA,
        ProjectionPursuit,
        SpectralClustering,
        Telling,
        VariationalAutoencoder,
        Whiten,
        compress,
        to_device,
    )
    from mercer.resources import Config, MemoryBudgetError, config, get_config, set_config
    from mercer.selection import Tuned, choose, tune
    from mercer.solvers import Solution, SolverError, Status
    from mercer.solvers.solve import solve

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
