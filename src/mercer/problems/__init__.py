"""What is asked: frozen values that hold a Gram and vectors, and nothing about how to answer.

A machine translates data to one of these; solvers answer them; certificates judge the answers.
`svm` writes each support vector machine as a `BoxQP`.
"""

from mercer.problems.bayes.class_means import ClassMeans, Means
from mercer.problems.bayes.class_tables import ClassModel, ClassTables, ColumnMoments
from mercer.problems.bayes.column_gaussians import ColumnGaussians, MeansAndVariances
from mercer.problems.bayes.gaussian_classes import GaussianClasses, Scatter, Spread
from mercer.problems.bayes.nearest import MostSimilar, Nearest, Neighbourhoods
from mercer.problems.bayes.smoothed_shares import LogShares, SmoothedShares
from mercer.problems.bellman import BellmanEquation, KernelQ
from mercer.problems.clustering.balanced import BalancedPartition
from mercer.problems.clustering.cuts import Bipartition, CutValues, MinimumCut, cut_values
from mercer.problems.clustering.partition import Clusters, Partition
from mercer.problems.correlation import (
    CanonicalPairs,
    Correlation,
    Lengths,
    Norm,
    Shrinkage,
    Squared,
)
from mercer.problems.discriminant import Directions, Discriminant, as_directions
from mercer.problems.entropy import Expectations, GibbsAnswer, InfeasibleError
from mercer.problems.independent.contrasts import CONTRASTS, Contrast
from mercer.problems.independent.unmixing import IndependentComponents, Unmixing
from mercer.problems.kernel_learning.kernel_alignment import KernelAlignment, KernelWeights
from mercer.problems.kernel_learning.kernel_combination import KernelCombination, WeightedDuals
from mercer.problems.kernel_learning.relevance import Relevance, Scaled
from mercer.problems.margin import svm
from mercer.problems.margin.box_qp import BoxQP, Dual
from mercer.problems.margin.many import Duals, Many
from mercer.problems.margin.path import MarginPath, PathDuals, PathSetting
from mercer.problems.mixture.gaussian_mixture import GaussianMix, GaussianParts
from mercer.problems.mixture.latent import LatentGaussian, Plane
from mercer.problems.mixture.mixture import Mixture
from mercer.problems.mixture.regularized_mixture import GaussianComponents, RegularizedMixture
from mercer.problems.mixture.table_mixture import BernoulliMix, MultinomialMix, TableParts
from mercer.problems.mixture.tied_coins import TiedBernoulliMix
from mercer.problems.mixture.topics import TopicMix, TopicParts
from mercer.problems.multitask.regression import TaskEvidence, TaskPosterior, TaskRegression
from mercer.problems.neural.autoencoding import Autoencoding, NetworkParameters
from mercer.problems.neural.network import Network
from mercer.problems.neural.variational import VariationalAutoencoding
from mercer.problems.process.classification import (
    LaplaceEvidence,
    LaplacePosterior,
    ProcessClassification,
)
from mercer.problems.process.evidence import Evidence, LogParameters
from mercer.problems.process.kernel_parameters import KernelParameters
from mercer.problems.process.regression import ProcessPosterior, ProcessRegression
from mercer.problems.reduction import ReducedSet, Reduction
from mercer.problems.ridge.folded_path import FoldedPathValue, FoldedRidgePath
from mercer.problems.ridge.linear_system import Coefficients, LinearSystem
from mercer.problems.ridge.ridge_path import PathValue, RidgePath
from mercer.problems.risk.losses import LogLoss, Loss, SquaredLoss, TanhLoss
from mercer.problems.risk.smooth_risk import SmoothRisk
from mercer.problems.semi_supervised.deformation import Deformation, DeformedKernel
from mercer.problems.semi_supervised.graph_labels import GraphLabels, GraphValues
from mercer.problems.separation import Separation, Separator
from mercer.problems.spectral.eigenproblem import Eigenproblem, Modes
from mercer.problems.spectral.scaling import Scales, Scaling

__all__ = [
    "Evidence",
    "KernelParameters",
    "LaplaceEvidence",
    "LaplacePosterior",
    "ProcessClassification",
    "LogParameters",
    "TaskEvidence",
    "TaskPosterior",
    "TaskRegression",
    "ProcessPosterior",
    "ProcessRegression",
    "Autoencoding",
    "BellmanEquation",
    "KernelQ",
    "Network",
    "NetworkParameters",
    "VariationalAutoencoding",
    "CONTRASTS",
    "Deformation",
    "DeformedKernel",
    "GraphLabels",
    "GraphValues",
    "ReducedSet",
    "Reduction",
    "BalancedPartition",
    "BernoulliMix",
    "Contrast",
    "IndependentComponents",
    "Unmixing",
    "Expectations",
    "GaussianMix",
    "GaussianParts",
    "GibbsAnswer",
    "InfeasibleError",
    "Mixture",
    "MultinomialMix",
    "TableParts",
    "TiedBernoulliMix",
    "TopicMix",
    "TopicParts",
    "Bipartition",
    "BoxQP",
    "CanonicalPairs",
    "ClassMeans",
    "ClassModel",
    "ClassTables",
    "ColumnGaussians",
    "GaussianComponents",
    "LogShares",
    "MeansAndVariances",
    "RegularizedMixture",
    "SmoothedShares",
    "Clusters",
    "Coefficients",
    "Correlation",
    "CutValues",
    "Directions",
    "Discriminant",
    "Dual",
    "Duals",
    "Eigenproblem",
    "FoldedPathValue",
    "FoldedRidgePath",
    "GaussianClasses",
    "KernelAlignment",
    "KernelCombination",
    "KernelWeights",
    "LatentGaussian",
    "Lengths",
    "LinearSystem",
    "LogLoss",
    "Loss",
    "Many",
    "MarginPath",
    "Means",
    "MinimumCut",
    "Modes",
    "ColumnMoments",
    "MostSimilar",
    "Nearest",
    "Neighbourhoods",
    "Norm",
    "Partition",
    "PathDuals",
    "PathSetting",
    "PathValue",
    "Plane",
    "Relevance",
    "RidgePath",
    "Scaled",
    "Scales",
    "Scaling",
    "Scatter",
    "Separation",
    "Separator",
    "Shrinkage",
    "SmoothRisk",
    "Spread",
    "Squared",
    "SquaredLoss",
    "TanhLoss",
    "WeightedDuals",
    "as_directions",
    "cut_values",
    "svm",
]
