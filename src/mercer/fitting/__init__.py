"""Fit models to tables: preprocess, select, tune, calibrate, certify and evaluate."""

from mercer.fitting.evaluation import CalibrationTable, Evaluation, Importance, Metric
from mercer.fitting.fit import evaluate, fit
from mercer.fitting.model import Settings, TableModel
from mercer.fitting.phases import FitProgress
from mercer.fitting.target import Split, rows_with_target, split
from mercer.fitting.text_filter import Answer, TextFilter
from mercer.fitting.unsupervised import (
    ClusterModel,
    ProjectionModel,
    TopicModel,
    cluster,
    project,
    topics,
)

__all__ = [
    "Answer",
    "CalibrationTable",
    "ClusterModel",
    "Evaluation",
    "FitProgress",
    "Importance",
    "Metric",
    "ProjectionModel",
    "Settings",
    "Split",
    "TableModel",
    "TextFilter",
    "TopicModel",
    "cluster",
    "evaluate",
    "fit",
    "project",
    "rows_with_target",
    "split",
    "topics",
]
