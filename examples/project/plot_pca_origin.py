"""
Principal components with and without centring
==============================================

With centring the first direction is the one in which rows vary most. Without, it is the one of
largest energy: squares are counted from the origin, and rows that lie far away from it give the
direction of their mean. For counts, where zero means that a word is absent, nothing need be taken
off.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import PCA
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
cloud = rng.standard_normal((150, 2)) @ [[1.6, 0.9], [0.0, 0.5]]
FORMS = {True: "#0072B2", False: "#D55E00"}
for shift in (0.0, 1.0, 5.0):
    machine = PCA(1, center=False).fit(cloud + np.array([0.0, shift]))
    share = machine.explained_variance_ratio_[0]
    print(
        f"mean {shift:g} away: {100 * share:.0f} % of the energy; {machine.certificate_.statement}"
    )

# %%
# Left: both first directions, at three distances from the origin. Right: contours of the first
# component of a Gaussian kernel. Without centring all kernel values are positive, and the first
# component is a smooth estimate of where rows are dense.

figure, axes = plt.subplots(1, 5, figsize=(15, 3.3), layout="constrained")
for ax, shift in zip(axes, (0.0, 1.0, 5.0), strict=False):
    X = cloud + np.array([0.0, shift])
    ax.scatter(*X.T, s=5, color="#999999")
    ax.plot(0, 0, "k+", markersize=12)
    for center, colour in FORMS.items():
        machine = PCA(1, center=center).fit(X)
        reach = 4.0 * machine.components_[0]
        start = machine.mean_
        ends = np.array([start - reach, start + reach])
        label = "variance" if center else "energy"
        ax.plot(*ends.T, color=colour, linewidth=2, label=label)
    ax.set(xlim=(-6, 6), ylim=(-4.5, 7.5), xticks=[], yticks=[], title=f"mean {shift:g} away")
axes[0].legend(frameon=False, loc="upper left")
columns, rows = np.meshgrid(np.linspace(-6, 6, 70), np.linspace(-4.5, 4.5, 70))
grid = np.column_stack([columns.ravel(), rows.ravel()])
for ax, center in zip(axes[3:], FORMS, strict=True):
    values = PCA(1, Gaussian(1.0), center=center).fit(cloud).transform(grid)
    ax.contourf(columns, rows, values.reshape(columns.shape), levels=12, cmap="RdBu_r")
    ax.scatter(*cloud.T, s=4, color="black")
    ax.set(xticks=[], yticks=[], title=f"Gaussian kernel, {'centred' if center else 'as it is'}")
plt.show()
