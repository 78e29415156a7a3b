"""
Looking at judgements: thresholds, probabilities, curves, bounds
================================================================

How good is it, where does it err, what would help? These displays take a machine and rows that it
was not fitted to; some take predictions alone (``from_predictions``), whoever made them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons

from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.plots import (
    BiasVarianceDisplay,
    BoundsDisplay,
    CalibrationDisplay,
    ConfusionMatrixDisplay,
    LearningCurveDisplay,
    ResidualsDisplay,
    RocCurveDisplay,
    TuningDisplay,
    style,
)
from mercer.selection import tune

cancer = load_breast_cancer()
X, y = cancer.data[:, :2], cancer.target_names[cancer.target]  # two of thirty measures: not easy
X = (X - X.mean(axis=0)) / X.std(axis=0)
train, new = slice(0, 280), slice(280, None)
machine = SVC(Gaussian(1.5), probability=True).fit(X[train], y[train])

# %%
# Every threshold, with that of the machine and the one to take if a miss costs 100 wrong alarms;
# whether probabilities mean what they say; and what is mistaken for what.

with style():
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.4))
    RocCurveDisplay.from_estimator(machine, X[new], y[new], false_negative_cost=100.0, ax=axes[0])
    CalibrationDisplay.from_estimator(machine, X[new], y[new], ax=axes[1])
    ConfusionMatrixDisplay.from_estimator(machine, X[new], y[new], ax=axes[2])
plt.show()

# %%
# A grid of settings: the best of them, and those that are as good within one standard error.

grid = {"C": np.logspace(-1, 3, 7), "kernel__scale": np.logspace(-0.5, 1, 8)}
TuningDisplay.from_tuning(tune(SVC(Gaussian(1.0)), X, y, grid=grid), name="SVC, Gaussian kernel")
plt.show()

# %%
# Would more rows help, or another scale? And what does a regression get wrong?

rng = np.random.default_rng(1)
x = rng.uniform(-3, 3, size=(360, 1))
target = np.sin(2 * x[:, 0]) + 0.4 * rng.standard_normal(360)
ridge = KernelRidge(0.05, kernel=Gaussian(0.7))
with style():
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.2))
    sizes = [15, 30, 60, 120, 240, 400]
    LearningCurveDisplay.from_estimator(SVC(Gaussian(1.5)), X, y, sizes=sizes, ax=axes[0])
    BiasVarianceDisplay.from_estimator(
        ridge, x[:60], target[:60], x[60:], target[60:], resamples=10,
        param_name="kernel__scale", param_range=np.logspace(-1.3, 0.9, 9), ax=axes[1],
    )  # fmt: skip
    ResidualsDisplay.from_estimator(ridge.fit(x[:60], target[:60]), x[60:], target[60:], ax=axes[2])
plt.show()

# %%
# What theory promises from the margin alone, what a count on other rows promises, and what comes.

X, y = make_moons(4000, noise=0.15, random_state=0)
BoundsDisplay.from_estimator(SVC(Gaussian(1.0), C=0.1), X[:3000], y[:3000], X[3000:], y[3000:])
plt.show()
