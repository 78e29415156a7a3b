"""From a table to a model: prepare, choose, tune, calibrate, certify."""

from mercer.fitting.evaluation import CalibrationTable, Evaluation, Importance, Metric
from mercer.fitting.model import Settings, TableModel
from mercer.fitting.unsupervised import ClusterModel, ProjectionModel, TopicModel

__all__ = [
    "CalibrationTable",
    "ClusterModel",
    "Evaluation",
    "Importance",
    "Metric",
    "ProjectionModel",
    "Settings",
    "TableModel",
    "TopicModel",
]
