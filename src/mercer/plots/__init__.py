"""Pictures in scikit-learn's manner: classes with `from_estimator` and `plot`.

Each display holds its data (`from_estimator`, `from_predictions` and others compute them, `plot`
draws it) and afterwards its axes, `ax_`, its figure, `figure_`, and its artists. All have one look,
`style`. Matplotlib is an extra (`pip install "mercer[plot]"`), imported when something is drawn.
With `ax=` nothing of pyplot is used; without, a figure of pyplot is made, as scikit-learn's
displays do.
"""

from mercer.plots.base import style
from mercer.plots.classification import (
    CalibrationDisplay,
    ConfusionMatrixDisplay,
    RocCurveDisplay,
)
from mercer.plots.convergence import ConvergenceDisplay
from mercer.plots.duality import ForcesDisplay, ImageSetDisplay
from mercer.plots.learning import BiasVarianceDisplay, BoundsDisplay, LearningCurveDisplay
from mercer.plots.margins import MarginDisplay, TubeDisplay
from mercer.plots.matrices import KernelMatrixDisplay, SpectrumDisplay
from mercer.plots.projections import (
    CanonicalPairsDisplay,
    ProjectionDisplay,
    ProjectionHistogramDisplay,
)
from mercer.plots.regions import DecisionRegionDisplay
from mercer.plots.regression import ResidualsDisplay, RidgePathDisplay
from mercer.plots.topics import TopicsDisplay
from mercer.plots.tuning import TuningDisplay

__all__ = [
    "style",
    "DecisionRegionDisplay",
    "MarginDisplay",
    "TubeDisplay",
    "KernelMatrixDisplay",
    "SpectrumDisplay",
    "ProjectionDisplay",
    "ProjectionHistogramDisplay",
    "CanonicalPairsDisplay",
    "RocCurveDisplay",
    "CalibrationDisplay",
    "ConfusionMatrixDisplay",
    "ResidualsDisplay",
    "RidgePathDisplay",
    "TuningDisplay",
    "LearningCurveDisplay",
    "BiasVarianceDisplay",
    "ConvergenceDisplay",
    "TopicsDisplay",
    "BoundsDisplay",
    "ImageSetDisplay",
    "ForcesDisplay",
]
