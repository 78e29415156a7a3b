"""
K-means with clusters of equal sizes
====================================

Teams, delivery rounds, shards: sometimes all clusters must have the same number of rows. Every step
then assigns all rows to the means at once, at the least total distance that leaves sizes equal.
Each cluster has a price, and a row goes where squared distance plus price is least: borders are
still straight lines, moved by the prices.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KMeans
from mercer.kernels import Gaussian

rng = np.random.default_rng(2)
centres, sizes = np.array([[0, 0], [3.2, 0.5], [1.6, 3.0]]), (150, 60, 30)
X = np.vstack([c + 0.8 * rng.standard_normal((s, 2)) for c, s in zip(centres, sizes, strict=True)])
machines = {
    "plain": KMeans(3).fit(X),
    "balanced": KMeans(3, balanced=True).fit(X),
    "balanced, Gaussian kernel": KMeans(3, Gaussian(1.5), balanced=True).fit(X),
}
for name, machine in machines.items():
    print(
        f"{name:<26} sizes {machine.cluster_sizes_.astype(int)}, objective {machine.inertia_:.1f}"
    )
print(machines["balanced"].certificate_)

# %%
# Crosses are the means. On the right: what balance costs, by the number of clusters, against the
# bound below which no partition can be.

COLOURS = np.array(["#0072B2", "#D55E00", "#009E73"])
figure, axes = plt.subplots(1, 4, figsize=(15, 3.7), layout="constrained")
for ax, (name, machine) in zip(axes, machines.items(), strict=False):
    ax.scatter(*X.T, c=COLOURS[machine.labels_], s=10)
    means = [X[machine.labels_ == c].mean(axis=0) for c in range(3)]
    ax.plot(*np.transpose(means), "k+", markersize=12, markeredgewidth=2)
    counts = ", ".join(str(int(size)) for size in machine.cluster_sizes_)
    ax.set(title=f"{name}: {counts}", xticks=[], yticks=[])
numbers = np.arange(2, 9)
few = {"n_init": 3}
plain = [KMeans(k, **few).fit(X).inertia_ for k in numbers]
even = [KMeans(k, balanced=True, **few).fit(X) for k in numbers]
axes[3].plot(
    numbers, [machine.inertia_ for machine in even], "o-", color="#D55E00", label="balanced"
)
axes[3].plot(numbers, plain, "o-", color="#0072B2", label="plain")
bounds = [machine.relaxation_.bound for machine in even]
axes[3].plot(numbers, bounds, "--", color="#999999", label="bound for all partitions")
axes[3].set(xlabel="clusters", ylabel="objective", title="What balance costs", ylim=(0, None))
axes[3].legend(frameon=False)
plt.show()
