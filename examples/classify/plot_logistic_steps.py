"""
Logistic regression by stochastic gradients
===========================================

Stochastic gradients wiggle about the optimum as long as their steps are of one length. Steps that
shrink slowly end the wiggling; the mean of the places visited ends it sooner. Small batches go far
with the first rows they see; large ones need more passes, and wiggle less. What is drawn is the
distance of the objective from the optimum, which Newton's method finds in six steps.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import LogisticRegression
from mercer.solvers import AnnealedGradient

warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is what is shown here
rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 10)) * np.linspace(0.5, 2, 10)
y = (X @ rng.standard_normal(10) / 3 + rng.standard_normal(1500) > 0).astype(int)
best = LogisticRegression(penalty=2.0).fit(X, y).certificate_.quantities.objective
epochs = [1, 2, 3, 5, 8, 12, 20]


def gaps(**options):
    """Return how far the objective is above the optimum after some passes, relatively."""
    found = []
    for count in epochs:
        solver = AnnealedGradient(epochs=count, tol=0.0, **options)
        machine = LogisticRegression(penalty=2.0, solver=solver).fit(X, y)
        found.append(machine.certificate_.quantities.objective / best - 1)
    return np.maximum(found, 1e-9)


figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained", sharey=True)
colors = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]
schedules = {
    "one length": {"power": 0.0, "average": False},
    "annealed": {"power": 0.5, "average": False},
    "annealed, averaged": {"power": 0.5},
}
for (name, options), color in zip(schedules.items(), colors, strict=False):
    axes[0].plot(epochs, gaps(**options), "o-", color=color, label=name)
axes[0].set_title("Schedules of the step")
for step, color in zip((0.1, 1.0, 4.0), colors, strict=False):
    axes[1].plot(epochs, gaps(step=step), "o-", color=color, label=f"first step {step:g}")
axes[1].set_title("Length of the first step")
for batch, color in zip((4, 16, 64, 512), colors, strict=True):
    axes[2].plot(epochs, gaps(batch=batch), "o-", color=color, label=f"{batch} rows a step")
axes[2].set_title("Size of a batch")
for ax in axes:
    ax.set(xscale="log", yscale="log", xlabel="passes over the rows")
    ax.set_xticks(epochs, map(str, epochs))
    ax.minorticks_off()
    ax.legend(frameon=False)
axes[0].set_ylabel("objective above the optimum, relatively")
plt.show()
