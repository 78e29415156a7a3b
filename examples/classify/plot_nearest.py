"""
Nearest means and nearest neighbours
====================================

The two simplest machines of feature space. With the linear kernel, nearest means divide the plane
by a straight line; with a Gaussian they follow where rows are dense. Neighbours vote, and
leave-one-out tells how many should.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import NearestMean, NearestNeighbors
from mercer.kernels import Gaussian

X, y = make_moons(300, noise=0.25, random_state=0)
machines = {
    "nearest mean, linear": NearestMean().fit(X, y),
    "nearest mean, Gaussian": NearestMean(Gaussian(0.35)).fit(X, y),
    "neighbours by leave-one-out": NearestNeighbors(n_neighbors="loo", max_neighbors=60).fit(X, y),
}
votes = machines["neighbours by leave-one-out"]
for name, machine in machines.items():
    print(f"{name:<28} certified: {machine.certificate_.ok}")

# %%
# Noise columns hurt: two columns that matter, and more and more that do not.

rng = np.random.default_rng(0)
noise = rng.standard_normal((300, 40))
counts = [0, 1, 2, 5, 10, 20, 40]
errors = [
    NearestNeighbors(n_neighbors="loo").fit(np.hstack([X, noise[:, :c]]), y).loo_errors_.min()
    for c in counts
]

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
figure, axes = plt.subplots(1, 4, figsize=(15, 3.8), layout="constrained")
columns, rows = np.meshgrid(np.linspace(-2, 3, 160), np.linspace(-1.6, 2.1, 160))
grid = np.column_stack([columns.ravel(), rows.ravel()])
for ax, (name, machine) in zip(axes, machines.items(), strict=False):
    side = machine.predict(grid).reshape(columns.shape)
    ax.contourf(columns, rows, side, levels=[-0.5, 0.5, 1.5], colors=[BLUE, ORANGE], alpha=0.18)
    ax.contour(columns, rows, side, levels=[0.5], colors=INK, linewidths=1)
    ax.scatter(*X.T, c=np.where(y == 1, ORANGE, BLUE), s=9)
    error = 1 - machine.score(X, y)
    ax.set(title=f"{name}\n{100 * error:.0f} % of own rows wrong", xticks=[], yticks=[])
axes[2].set_title(f"{votes.n_neighbors_} neighbours, by leave-one-out")
right = axes[3]
k = np.arange(1, len(votes.loo_errors_) + 1)
right.plot(k, 100 * votes.loo_errors_, color=BLUE, label="by number of neighbours")
right.plot(votes.n_neighbors_, 100 * votes.loo_errors_.min(), "o", color=BLUE)
right.plot(counts, 100 * np.array(errors), "s-", color=ORANGE, label="best, by noise columns")
right.set(xlabel="neighbours, or noise columns", ylabel="errors, %", title="Leave-one-out errors")
right.set_ylim(0, None)
right.legend(frameon=False)
plt.show()
