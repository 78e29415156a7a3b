"""
K-means, plain and with a kernel
================================

K-means puts every row with the nearest mean, so borders between its clusters are straight. With a
Gaussian kernel the means lie in feature space, and the borders bend. Every start ends in a minimum
of its own: k-means++ finds the rings, the eigenvectors of the kernel matrix (`init="relaxation"`)
find the moons. The objective says which of two ends is the better one; no labels are needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons

from mercer import KMeans
from mercer.kernels import Gaussian

rings, of_ring = make_circles(300, factor=0.3, noise=0.05, random_state=0)
moons, of_moon = make_moons(300, noise=0.05, random_state=0)
data = {"rings": (rings, of_ring, Gaussian(0.4)), "moons": (moons, of_moon, Gaussian(0.2))}


def own_kind(machine, truth):
    """Return the share of rows that are with their own kind."""
    right = np.mean(machine.labels_ == truth)
    return 100 * max(right, 1 - right)


fits = {}
for name, (X, truth, kernel) in data.items():
    starts = [KMeans(2, kernel, init=init, random_state=0) for init in ("k-means++", "relaxation")]
    bent = min((machine.fit(X) for machine in starts), key=lambda machine: machine.inertia_)
    fits[name] = (KMeans(2, random_state=0).fit(X), bent)
    for machine in fits[name]:
        share, ok = own_kind(machine, truth), machine.certificate_.ok
        print(f"{name}: {machine.kernel_!r:<20} {share:5.1f} % right, certified: {ok}")

# %%
# Colours are the clusters; the line is where both means are equally far. The certificate says that
# no row gains by changing sides, and that is true on the left as well: a right answer to a question
# that does not fit the data.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for row, (name, (X, truth, _)) in zip(axes, data.items(), strict=True):
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    across, up = (np.linspace(a, b, 200) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    for ax, machine in zip(row, fits[name], strict=True):
        distance = machine.transform(grid.reshape(-1, 2)).reshape(*grid.shape[:2], 2)
        ax.contour(across, up, distance[..., 1] - distance[..., 0], [0], colors=INK)
        first = machine.labels_ == 0
        ax.scatter(*X[first].T, s=12, c=BLUE)
        ax.scatter(*X[~first].T, s=12, c=ORANGE, marker="s")
        kind = "Gaussian" if isinstance(machine.kernel_, Gaussian) else "linear"
        share = f"{own_kind(machine, truth):.0f} % with their own kind"
        ax.set_title(f"{name}, {kind} kernel: {share}", loc="left", size=10)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
plt.show()
