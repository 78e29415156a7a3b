"""Recursive elimination of features by what they do to the margin."""

from mercer.selection.elimination.path import EliminationPath, EliminationStep, eliminate_features
from mercer.selection.elimination.selector import FeatureElimination

__all__ = ["EliminationPath", "EliminationStep", "FeatureElimination", "eliminate_features"]
