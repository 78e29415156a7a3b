"""Problems of all families: frozen values that hold a Gram and vectors.

Estimators translate data to a problem, solvers solve it, and `mercer.certificates` verifies the
solution. `svm` writes each support vector machine as a `BoxQP`.
"""

from mercer.machines.bayes.problem import (
    ClassModel,
    ClassTables,
    ColumnGaussians,
    ColumnMoments,
    GaussianClasses,
    LogShares,
    MeansAndVariances,
    Scatter,
    SmoothedShares,
    Spread,
)
from mercer.machines.clustering.problem import (
    BalancedPartition,
    Bipartition,
    Clusters,
    CutValues,
    MinimumCut,
    Partition,
    cut_values,
)
from mercer.machines.clustering.sinkhorn import Scales, Scaling
from mercer.machines.compression.problem import ReducedSet, Reduction
from mercer.machines.correlation.problem import (
    CanonicalPairs,
    Correlation,
    Lengths,
    Norm,
    Shrinkage,
    Squared,
)
from mercer.machines.decomposition.ica_fixed_point import (
    CONTRASTS,
    Contrast,
    IndependentComponents,
    Unmixing,
)
from mercer.machines.decomposition.probabilistic_pca_em import LatentGaussian, Plane
from mercer.machines.discriminant.problem import Directions, Discriminant, as_directions
from mercer.machines.entropy.problem import Expectations, GibbsAnswer, InfeasibleError
from mercer.machines.gaussian_process.problem import (
    Evidence,
    KernelParameters,
    LaplaceEvidence,
    LaplacePosterior,
    LogParameters,
    ProcessClassification,
    ProcessPosterior,
    ProcessRegression,
)
from mercer.machines.kernel_learning.problem import (
    KernelAlignment,
    KernelCombination,
    KernelWeights,
    Relevance,
    Scaled,
    WeightedDuals,
)
from mercer.machines.logistic.problem import LogLoss, Loss, SmoothRisk, SquaredLoss, TanhLoss
from mercer.machines.mixture.discrete_em_steps import (
    BernoulliMix,
    MultinomialMix,
    TableParts,
    TiedBernoulliMix,
    TopicMix,
    TopicParts,
)
from mercer.machines.mixture.gaussian_em_steps import (
    GaussianComponents,
    GaussianMix,
    GaussianParts,
    RegularizedMixture,
)
from mercer.machines.mixture.problem import Mixture
from mercer.machines.multitask.problem import TaskEvidence, TaskPosterior, TaskRegression
from mercer.machines.neighbors.problem import (
    ClassMeans,
    Means,
    MostSimilar,
    Nearest,
    Neighbourhoods,
)
from mercer.machines.neural.problem import (
    Autoencoding,
    Network,
    NetworkParameters,
    VariationalAutoencoding,
)
from mercer.machines.perceptron.problem import Separation, Separator
from mercer.machines.reinforcement.problem import BellmanEquation, KernelQ
from mercer.machines.ridge.problem import (
    Coefficients,
    FoldedPathValue,
    FoldedRidgePath,
    LinearSystem,
    PathValue,
    RidgePath,
)
from mercer.machines.semi_supervised.problem import (
    Deformation,
    DeformedKernel,
    GraphLabels,
    GraphValues,
)
from mercer.machines.svm import problem as svm
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many, MarginPath, PathDuals, PathSetting
from mercer.solvers.eigen.problem import Eigenproblem, Modes

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
