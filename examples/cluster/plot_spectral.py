"""
Spectral clustering
===================

K-means draws straight borders between means. Spectral clustering asks instead which rows hang
together: it cuts a graph of similarities where that costs least. On rings, moons and spirals the
difference is plain. Both machines get the same rows and the same number of clusters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from mercer import KMeans, SpectralClustering
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
turn = np.sqrt(rng.uniform(0.08, 1, 300)) * 2.3 * np.pi
arm = np.column_stack([np.cos(turn), np.sin(turn)]) * turn[:, None] / (2.3 * np.pi)
spirals = np.vstack([arm, -arm]) + 0.015 * rng.standard_normal((600, 2))
data = {
    "rings": make_circles(600, factor=0.45, noise=0.05, random_state=0),
    "moons": make_moons(600, noise=0.06, random_state=0),
    "spirals": (spirals, np.repeat([0, 1], 300)),
}
machines = {
    "k-means": KMeans(2, random_state=0),
    "spectral clustering, Gaussian": SpectralClustering(2, Gaussian(0.09), random_state=0),
    "spectral clustering, 10 neighbours": SpectralClustering(2, neighbors=10, random_state=0),
}

# %%
# Agreement with the truth is the adjusted Rand index: 1 for the same clusters, about 0 for chance.

BLUE, ORANGE = "#0072B2", "#E69F00"
figure, axes = plt.subplots(3, 3, figsize=(10, 9.6), layout="constrained")
for row, (shape, (X, y)) in zip(axes, data.items(), strict=True):
    for ax, (name, machine) in zip(row, machines.items(), strict=True):
        labels = machine.fit(X).labels_
        agreement = max(adjusted_rand_score(y, labels), 0.0)
        first = labels == labels[0]
        ax.scatter(*X[first].T, s=9, c=BLUE)
        ax.scatter(*X[~first].T, s=9, c=ORANGE, marker="^")
        ax.set_title(f"{name}\n{shape}: agreement {agreement:.2f}", loc="left", size=10)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
        print(f"{shape:<8} {name:<35} {agreement:.2f}  certified: {machine.certificate_.ok}")
plt.show()
