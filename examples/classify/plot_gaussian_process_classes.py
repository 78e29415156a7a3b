"""
Gaussian process classification: what is not known
==================================================

Logistic regression has one probability at every place, however far from all rows. A Gaussian
process classifier has a mode as well, and a variance beside it: where no rows were seen,
probabilities go back to one half.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import GaussianProcessClassifier, LogisticRegression
from mercer.plots import style

# %%
# Two moons; the evidence chooses scale and height of the prior.

X, y = make_moons(120, noise=0.2, random_state=0)
machine = GaussianProcessClassifier("1 * gaussian", optimize=True).fit(X, y)
logistic = LogisticRegression("linear").fit(X, y)
print(machine.kernel_, machine.log_marginal_likelihood_value_)
print(machine.certificate_)

# %%
# Probability of the orange class, and the standard deviation of the latent function.

first, second = np.meshgrid(np.linspace(-4, 5, 60), np.linspace(-4, 4.5, 60))
plane = np.column_stack([first.ravel(), second.ravel()])
spread = np.sqrt(machine.latent_mean_and_variance(plane)[1])
panels = {
    "Logistic regression": logistic.predict_proba(plane)[:, 1],
    "Gaussian process": machine.predict_proba(plane)[:, 1],
    "Standard deviation of f": spread,
}

with style():
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.6), sharey=True)
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        limits = (0, spread.max()) if "deviation" in title else (0, 1)
        shown = ax.pcolormesh(
            first,
            second,
            values.reshape(first.shape),
            vmin=limits[0],
            vmax=limits[1],
            cmap="viridis" if "deviation" in title else "PuOr_r",
            rasterized=True,
        )
        for label, colour in enumerate(("#5e3c99", "#e66101")):
            ax.plot(*X[y == label].T, "o", ms=3, color=colour, mec="white", mew=0.4)
        ax.set_title(title, loc="left")
        figure.colorbar(shown, ax=ax)
plt.show()
