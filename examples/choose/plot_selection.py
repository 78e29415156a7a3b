"""
Learning curves, bias and variance, thresholds
==============================================

The error on new rows has two parts that move against each other: what a machine cannot say (bias)
and what it says by accident (variance). Beside them a learning curve, and the choice of a threshold
when a miss costs ten wrong alarms.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.plots import BiasVarianceDisplay, LearningCurveDisplay, RocCurveDisplay, style
from mercer.selection import choose_threshold

rng = np.random.default_rng(1)
x = rng.uniform(-3, 3, size=(360, 1))
target = np.sin(2 * x[:, 0]) + 0.4 * rng.standard_normal(360)
points = rng.standard_normal((900, 2))
label = (points**2).sum(axis=1) + 0.8 * rng.standard_normal(900) > 1.5
machine = SVC(Gaussian(1.0)).fit(points[:300], label[:300])
score = machine.decision_function(points[500:])
print(choose_threshold(label[500:], score))
print(choose_threshold(label[500:], score, false_negative_cost=10.0))

# %%
# On the left the scale of the kernel is varied: small scales follow the noise, large ones cannot
# follow the sine. On the right the threshold of `predict`, and the cheapest if a miss costs ten
# wrong alarms.

with style():
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.4))
    BiasVarianceDisplay.from_estimator(
        KernelRidge(0.05, kernel=Gaussian(1.0)), x[:60], target[:60], x[60:], target[60:],
        param_name="kernel__scale", param_range=np.logspace(-1.3, 0.9, 12), resamples=25, ax=left,
    )  # fmt: skip
    left.axhline(0.16, color="#009E73", ls=":", lw=1.4, label="noise alone")
    left.legend()
    LearningCurveDisplay.from_estimator(
        SVC(Gaussian(1.0)), points[:500], label[:500], sizes=[15, 30, 60, 120, 240, 400], ax=middle
    )
    RocCurveDisplay.from_estimator(
        machine, points[500:], label[500:], false_negative_cost=10.0, ax=right
    )
plt.show()
