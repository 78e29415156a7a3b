"""How good a classifier is: thresholds, probabilities, confusions."""

from mercer.plots.classification.calibration import CalibrationDisplay
from mercer.plots.classification.confusion import ConfusionMatrixDisplay
from mercer.plots.classification.roc import RocCurveDisplay

__all__ = ["CalibrationDisplay", "ConfusionMatrixDisplay", "RocCurveDisplay"]
