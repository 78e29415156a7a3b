"""
Spectral embedding and the number of clusters
=============================================

Rows that hang together come to lie together when the leading eigenvectors place them anew: long
bands, side by side, become points. How many clusters there are shows in the eigenvalues, which drop
behind the last one; and new rows are placed by the same eigenvectors, so the whole plane can be
assigned. K-means on the rows themselves would cut the bands across.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SpectralClustering
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
band = rng.standard_normal((480, 2)) * [0.75, 0.13]
X = band + np.repeat([[0.0, 0.0], [0.9, 1.15], [-0.2, 2.3]], 160, axis=0)
X = X @ [[0.92, 0.39], [-0.39, 0.92]]

machine = SpectralClustering("eigengap", Gaussian(0.4), random_state=0).fit(X)
print(f"{machine.n_clusters_} clusters; {machine.certificate_}")

# %%
# Left: the rows, and to which cluster each place of the plane belongs. Middle: the rows placed by
# the second and third eigenvector. Right: the eigenvalues, and the gap that chose the number.

COLOURS = np.array(["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"])
colours = COLOURS[machine.labels_ % len(COLOURS)]
figure, axes = plt.subplots(1, 3, figsize=(13, 4.1), layout="constrained")
columns, rows = np.meshgrid(np.linspace(-3.2, 2.4, 150), np.linspace(-1.3, 3.4, 120))
grid = np.column_stack([columns.ravel(), rows.ravel()])
owner = machine.predict(grid).reshape(columns.shape)
for cluster in range(machine.n_clusters_):
    axes[0].contourf(
        columns, rows, owner == cluster, [0.5, 1.5], colors=COLOURS[cluster], alpha=0.2
    )
axes[0].scatter(*X.T, s=8, c=colours)
axes[0].set_title("rows, and the plane assigned", loc="left", size=10)
axes[0].set(xticks=[], yticks=[], aspect="equal")

axes[1].scatter(*machine.embedding_[:, 1:3].T, s=10, c=colours)
axes[1].set_title("places of the rows", loc="left", size=10)
axes[1].set(xlabel="second eigenvector", ylabel="third eigenvector", xticks=[], yticks=[])

k, values = machine.n_clusters_, machine.eigenvalues_
axes[2].plot(np.arange(1, len(values) + 1), values, "o", c="#333333")
axes[2].axvspan(k, k + 1, color="#D55E00", alpha=0.15, lw=0)
axes[2].annotate("largest drop", (k + 1.1, (values[k - 1] + values[k]) / 2), color="#D55E00")
axes[2].set_title("eigenvalues of the normalised matrix", loc="left", size=10)
axes[2].set(xlabel="number", xticks=np.arange(1, len(values) + 1))
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
axes[0].spines[:].set_visible(False)
plt.show()
