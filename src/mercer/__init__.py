"""Kernel machine learning, whole: one kernel language, exact solvers, a certificate with every fit.

Kernels live in `mercer.kernels`, machines here at the top::

    from mercer import SVC
    from mercer.kernels import Gaussian, Linear

    machine = SVC(Gaussian(2.0) + Linear(), C=10.0).fit(X, y)
    print(machine.certificate_)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.certificates import Certificate, certify
from mercer.deadline import TimeLimitError
from mercer.machines import (
    CCA,
    PCA,
    SVC,
    SVR,
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
    Independence,
    JointTable,
    KernelRidge,
    KMeans,
    LogisticRegression,
    LogShift,
    MaximumEntropy,
    MultinomialMixture,
    NaiveBayes,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    ParameterError,
    Perceptron,
    ProbabilisticPCA,
    SpectralClustering,
    Telling,
    Whiten,
)
from mercer.resources import Config, MemoryBudgetError, config, get_config, set_config
from mercer.solvers import Solution, SolverError, Status, solve

if TYPE_CHECKING:
    from mercer.selection import Tuned, choose, tune

__version__ = "0.8.0"

_SELECTION = ("Tuned", "choose", "tune")  # a room of its own, imported when first asked for

__all__ = [
    "CCA",
    "PCA",
    "SVC",
    "SVR",
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
    "KMeans",
    "FisherDiscriminant",
    "FitWarning",
    "KernelRidge",
    "LogisticRegression",
    "LogShift",
    "MemoryBudgetError",
    "NaiveBayes",
    "MaximumEntropy",
    "MultinomialMixture",
    "NearestMean",
    "NearestNeighbors",
    "OneClassSVM",
    "ParameterError",
    "Perceptron",
    "ProbabilisticPCA",
    "Solution",
    "SolverError",
    "SpectralClustering",
    "Status",
    "TimeLimitError",
    "Telling",
    "Tuned",
    "Whiten",
    "certify",
    "choose",
    "config",
    "get_config",
    "set_config",
    "solve",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _SELECTION:
        return getattr(import_module("mercer.selection"), name)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SELECTION})
