"""What is asked: frozen values that hold a Gram and vectors, and nothing about how to answer.

A machine translates data to one of these; solvers answer them; certificates judge the answers.
`svm` writes each support vector machine as a `BoxQP`.
"""

from mercer.problems import svm
from mercer.problems.box_qp import BoxQP, Dual
from mercer.problems.class_means import ClassMeans, Means
from mercer.problems.class_tables import ClassModel, ClassTables, ColumnMoments
from mercer.problems.correlation import CanonicalPairs, Correlation
from mercer.problems.cuts import Bipartition, CutValues, MinimumCut, cut_values
from mercer.problems.discriminant import Directions, Discriminant, as_directions
from mercer.problems.eigenproblem import Eigenproblem, Modes
from mercer.problems.entropy import Expectations, GibbsAnswer, InfeasibleError
from mercer.problems.gaussian_classes import GaussianClasses, Scatter, Spread
from mercer.problems.gaussian_mixture import GaussianMix, GaussianParts
from mercer.problems.kernel_alignment import KernelAlignment, KernelWeights
from mercer.problems.kernel_combination import KernelCombination, WeightedDuals
from mercer.problems.latent import LatentGaussian, Plane
from mercer.problems.linear_system import Coefficients, LinearSystem
from mercer.problems.losses import LogLoss, Loss, SquaredLoss, TanhLoss
from mercer.problems.many import Duals, Many
from mercer.problems.mixture import Mixture
from mercer.problems.nearest import Nearest, Neighbourhoods
from mercer.problems.partition import Clusters, Partition
from mercer.problems.relevance import Relevance, Scaled
from mercer.problems.ridge_path import PathValue, RidgePath
from mercer.problems.scaling import Scales, Scaling
from mercer.problems.separation import Separation, Separator
from mercer.problems.shrinkage import Lengths, Norm, Shrinkage, Squared
from mercer.problems.smooth_risk import SmoothRisk
from mercer.problems.table_mixture import BernoulliMix, MultinomialMix, TableParts
from mercer.problems.topics import TopicMix, TopicParts

__all__ = [
    "BernoulliMix",
    "Expectations",
    "GaussianMix",
    "GaussianParts",
    "GibbsAnswer",
    "InfeasibleError",
    "Mixture",
    "MultinomialMix",
    "TableParts",
    "TopicMix",
    "TopicParts",
    "Bipartition",
    "BoxQP",
    "CanonicalPairs",
    "ClassMeans",
    "ClassModel",
    "ClassTables",
    "Clusters",
    "Coefficients",
    "Correlation",
    "CutValues",
    "Directions",
    "Discriminant",
    "Dual",
    "Duals",
    "Eigenproblem",
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
    "Means",
    "MinimumCut",
    "Modes",
    "ColumnMoments",
    "Nearest",
    "Neighbourhoods",
    "Norm",
    "Partition",
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
