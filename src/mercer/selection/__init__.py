"""Choosing: how good is a machine on rows it has not seen, why is it not better, where to cut."""

from mercer.selection.bias_variance import BiasVariance, bias_variance
from mercer.selection.description import description_length, gaussian_log_likelihood
from mercer.selection.thresholds import Roc, Threshold, choose_threshold, roc
from mercer.selection.validation import (
    LearningCurve,
    Validation,
    cross_validate,
    learning_curve,
)

__all__ = [
    "BiasVariance",
    "LearningCurve",
    "Roc",
    "Threshold",
    "Validation",
    "bias_variance",
    "choose_threshold",
    "cross_validate",
    "description_length",
    "gaussian_log_likelihood",
    "learning_curve",
    "roc",
]
