"""
Looking at data: projections, histograms, kernel matrices
=========================================================

Before any model: which directions tell something? Most directions through many columns look like a
Gaussian, whatever the rows are. Principal components show where rows vary, discriminant directions
where classes differ, and projection pursuit (by independent components) where rows look least
Gaussian.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from mercer import CCA, PCA
from mercer.kernels import Gaussian
from mercer.plots import (
    CanonicalPairsDisplay,
    KernelMatrixDisplay,
    ProjectionDisplay,
    ProjectionHistogramDisplay,
    SpectrumDisplay,
    style,
)

wine = load_wine()
X, y = StandardScaler().fit_transform(wine.data), wine.target_names[wine.target]

# %%
# Thirteen chemical measures of 178 wines, along two directions of each kind.

with style():
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for ax, kind in zip(
        axes.flat, ("random", "principal", "discriminant", "non_gaussian"), strict=True
    ):
        ProjectionDisplay.from_directions(X, y, directions=kind, ax=ax)
plt.show()

# %%
# One direction at a time, as histograms beside the Gaussian of the same mean and variance.

with style():
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8))
    for ax, kind in zip(axes, ("random", "non_gaussian"), strict=True):
        ProjectionHistogramDisplay.from_directions(X, y, directions=kind, ax=ax)
plt.show()

# %%
# How much do components explain, and does a kernel suit the labels? Bright squares along the
# diagonal say that rows of a class are alike.

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4))
    SpectrumDisplay.from_estimator(PCA().fit(X), ax=left)
    KernelMatrixDisplay.from_kernel(Gaussian(3.0), X, y, ax=right)
plt.show()

# %%
# Two views of the same rows: the left and the right half of digits. Canonical correlation finds
# what they agree on; here on pictures that it was not fitted to.

digits = load_digits()
halves = digits.images[:, :, :4].reshape(-1, 32), digits.images[:, :, 4:].reshape(-1, 32)
machine = CCA(n_components=2, penalty=0.01).fit(halves[0][:900], halves[1][:900])
CanonicalPairsDisplay.from_estimator(
    machine, halves[0][900:], halves[1][900:], labels=digits.target[900:]
)
plt.show()
