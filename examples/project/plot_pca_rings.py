"""
Kernel principal components
===========================

A principal component of a kernel is a function on the plane: the score of a point there. For the
linear kernel its level lines are straight. For a Gaussian kernel they follow the rows: the first
scores tell two rings apart, the next run along them.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import PCA
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 400)
ring = np.repeat([0, 1], [130, 270])
radius = np.where(ring == 0, 0.8, 2.4)
X = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
X += 0.13 * rng.standard_normal(X.shape)

linear = PCA(n_components=2).fit(X)
kernel = PCA(kernel=Gaussian(0.9), n_components=6).fit(X)
print(kernel.certificate_)

# %%
# The first six components of the Gaussian kernel. White is where the score is zero.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
columns, rows = np.meshgrid(np.linspace(-3.2, 3.2, 160), np.linspace(-3.2, 3.2, 160))
grid = np.column_stack([columns.ravel(), rows.ravel()])
scores = kernel.transform(grid)
figure, axes = plt.subplots(2, 3, figsize=(10, 7), layout="constrained")
for j, ax in enumerate(axes.flat):
    f = scores[:, j].reshape(columns.shape)
    limit = np.abs(f).max()
    ax.contourf(columns, rows, f, np.linspace(-limit, limit, 21), cmap="PuOr_r", alpha=0.8)
    ax.contour(columns, rows, f, 8, colors=INK, linewidths=0.5)
    ax.scatter(*X.T, s=4, c=INK, linewidths=0)
    share = 100 * kernel.explained_variance_ratio_[j]
    ax.set_title(f"component {j + 1}: {share:.0f} % of the variance", loc="left", size=10)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()

# %%
# Scores of the rows. No straight line separates the rings, so the linear components cannot; two of
# the kernel's do. Which ones is found by looking for the largest gap between the rings.

T = kernel.transform(X)
apart = [abs(T[ring == 0, j].mean() - T[ring == 1, j].mean()) / T[:, j].std() for j in range(6)]
first = int(np.argmax(apart))
second = 0 if first else 1
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
views = [
    ("linear: components 1 and 2", linear.transform(X), 0, 1),
    (f"Gaussian: components {first + 1} and {second + 1}", T, first, second),
]
for ax, (title, values, a, b) in zip(axes, views, strict=True):
    for group, colour, name in ((0, ORANGE, "inner ring"), (1, BLUE, "outer ring")):
        ax.scatter(*values[ring == group][:, [a, b]].T, s=14, c=colour, alpha=0.7, label=name)
    ax.set_title(title, loc="left")
    ax.set(xlabel=f"score {a + 1}", ylabel=f"score {b + 1}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=True, framealpha=0.9, edgecolor="none", loc="upper right")
plt.show()
