"""From a table to a model: prepare, choose, tune, calibrate, certify."""

from mercer.fitting.evaluation import CalibrationTable, Evaluation, Importance, Metric
from mercer.fitting.fit import fit
from mercer.fitting.model import Settings, TableModel
from mercer.fitting.new_rows import evaluate
from mercer.fitting.phases import FitProgress
from mercer.fitting.splitting import Split, split
from mercer.fitting.streaming import Answer, TextFilter
from mercer.fitting.targets import rows_with_target
from mercer.fitting.unsupervised.cluster import cluster
from mercer.fitting.unsupervised.models import ClusterModel, ProjectionModel, TopicModel
from mercer.fitting.unsupervised.project import project
from mercer.fitting.unsupervised.topics import topics

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
