"""Model selection: tuning, kernel selection, cross-validation, thresholds, active learning."""

from mercer.machines.base.sharing import (
    Fold,
    FoldPath,
    KnownClassifier,
    KnownDetector,
    KnownRegressor,
    Sharing,
)
from mercer.machines.kernel_learning.combine import Combined, MultipleKernel, alignment, combine
from mercer.machines.kernel_learning.scales import LearntScales, learn_scales
from mercer.selection import rules as rules
from mercer.selection.active import (
    ActiveEnding,
    ActiveLearner,
    ActiveRound,
    EntropyQuery,
    ExpectedChangeQuery,
    MarginQuery,
    QueryRule,
    RandomQuery,
    VarianceQuery,
    posterior_variance,
)
from mercer.selection.artificial_outliers import ArtificialOutliers
from mercer.selection.bias_and_variance import BiasVariance, bias_variance
from mercer.selection.choice import Choice, Contender, choose
from mercer.selection.cross_validation import (
    LearningCurve,
    Nested,
    Validation,
    cross_validate,
    learning_curve,
    nested_cross_validate,
)
from mercer.selection.elimination import (
    EliminationPath,
    EliminationStep,
    FeatureElimination,
    eliminate_features,
)
from mercer.selection.grids import Grid, default_grid
from mercer.selection.journal import JournalError
from mercer.selection.minimum_description_length import (
    description_length,
    gaussian_log_likelihood,
    regression_description_length,
)
from mercer.selection.search import Exhaustive, Halve, Race, Refine, Search
from mercer.selection.task import TuningProgress
from mercer.selection.thresholds import Roc, Threshold, choose_threshold, roc
from mercer.selection.tuned import Tuned
from mercer.selection.tuning import Trial, Tuning, tune

__all__ = [
    "ActiveLearner",
    "ActiveEnding",
    "EntropyQuery",
    "ExpectedChangeQuery",
    "MarginQuery",
    "QueryRule",
    "RandomQuery",
    "ActiveRound",
    "VarianceQuery",
    "posterior_variance",
    "ArtificialOutliers",
    "BiasVariance",
    "Choice",
    "Combined",
    "Contender",
    "EliminationPath",
    "EliminationStep",
    "Exhaustive",
    "FeatureElimination",
    "Fold",
    "FoldPath",
    "Grid",
    "Halve",
    "JournalError",
    "KnownClassifier",
    "KnownDetector",
    "KnownRegressor",
    "LearningCurve",
    "LearntScales",
    "MultipleKernel",
    "Nested",
    "Race",
    "Refine",
    "Roc",
    "Search",
    "Sharing",
    "Threshold",
    "Trial",
    "Tuned",
    "Tuning",
    "TuningProgress",
    "Validation",
    "alignment",
    "bias_variance",
    "choose",
    "choose_threshold",
    "combine",
    "cross_validate",
    "default_grid",
    "description_length",
    "eliminate_features",
    "gaussian_log_likelihood",
    "learn_scales",
    "learning_curve",
    "nested_cross_validate",
    "regression_description_length",
    "roc",
    "tune",
]
