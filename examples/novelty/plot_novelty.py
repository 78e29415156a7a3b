"""
Novelty detection
=================

A one-class machine learns from rows of one kind where such rows are found. `OneClassSVM` cuts off a
share nu of them with a plane in feature space; `EnclosingBall` puts the smallest ball around them.
For a Gaussian kernel both draw the same border; for others they do not.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import EnclosingBall, OneClassSVM
from mercer.kernels import Gaussian, Polynomial

rng = np.random.default_rng(0)
angle = rng.uniform(0, 1.6 * np.pi, 220)
ring = np.column_stack([np.cos(angle), np.sin(angle)]) * 2 + 0.22 * rng.standard_normal((220, 2))
cluster = np.array([0.2, 0.1]) + 0.3 * rng.standard_normal((80, 2))
X = np.vstack([ring, cluster])

machines = {
    "OneClassSVM, Gaussian, nu = 0.1": OneClassSVM(Gaussian(0.6), nu=0.1).fit(X),
    "OneClassSVM, Gaussian, nu = 0.3": OneClassSVM(Gaussian(0.6), nu=0.3).fit(X),
    "EnclosingBall, quadratic, nu = 0.05": EnclosingBall(Polynomial(2), nu=0.05).fit(X),
}
for name, machine in machines.items():
    outside = (machine.zones(X).zone == "outside").mean()
    print(f"{name:<37} {100 * outside:.1f} % outside, certified: {machine.certificate_.ok}")

# %%
# The border is the thick line; shades follow the score. At most a share nu of the rows is outside.

ORANGE, INK = "#D55E00", "#333333"
columns, rows = np.meshgrid(np.linspace(-3.2, 3.2, 220), np.linspace(-3.2, 3.2, 220))
grid = np.column_stack([columns.ravel(), rows.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharey=True)
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    f = machine.decision_function(grid).reshape(columns.shape)
    levels = np.quantile(f, np.linspace(0, 1, 13))
    ax.contourf(columns, rows, f, levels, cmap="Blues", alpha=0.75)
    ax.contour(columns, rows, f, [0], colors=INK, linewidths=2)
    outside = machine.zones(X).zone == "outside"
    share = f"outside: {outside.sum()} of {len(X)}"
    ax.scatter(*X[~outside].T, s=7, c="white", edgecolors=INK, linewidths=0.5)
    ax.scatter(*X[outside].T, s=26, c=ORANGE, marker="s", label=share)
    ax.set_title(name, loc="left", size=10)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none")
    ax.spines[:].set_visible(False)
plt.show()
