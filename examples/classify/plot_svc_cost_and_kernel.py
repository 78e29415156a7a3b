"""
Support vector classification: cost and kernel
==============================================

Two choices shape a classifier. The kernel says which boundaries are simple; C says how dear it is
to leave a row on the wrong side of its margin. A small C gives a wide margin, drawn by many rows; a
large one follows the rows it was shown.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.kernels import Gaussian, Linear, Polynomial

X, y = make_moons(160, noise=0.25, random_state=1)
X_new, y_new = make_moons(4000, noise=0.25, random_state=2)

kernels = {"linear": Linear(), "cubic": Polynomial(3), "Gaussian, scale 0.5": Gaussian(0.5)}
costs = (0.1, 3.0, 1000.0)
machines = {
    (name, C): SVC(kernel, C=C).fit(X, y) for name, kernel in kernels.items() for C in costs
}

# %%
# Each row of pictures is a kernel, each column a C. The error is that of new rows.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
low, high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
columns, rows = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 160))
grid = np.column_stack([columns.ravel(), rows.ravel()])

figure, axes = plt.subplots(3, 3, figsize=(10, 8.4), layout="constrained", sharex=True, sharey=True)
for ax, machine in zip(axes.flat, machines.values(), strict=True):
    f = machine.decision_function(grid).reshape(columns.shape)
    ax.contourf(columns, rows, f, [-1e9, 0, 1e9], colors=[BLUE, ORANGE], alpha=0.13)
    ax.contourf(columns, rows, f, [-1, 1], colors="#888888", alpha=0.25)
    ax.contour(columns, rows, f, [0], colors=INK, linewidths=1.6)
    ax.scatter(*X.T, c=np.where(y == 1, ORANGE, BLUE), s=9)
    error = 1 - machine.score(X_new, y_new)
    ax.set_title(
        f"{len(machine.support_)} support vectors, error {100 * error:.1f} %", loc="left", size=9
    )
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for ax, C in zip(axes[0], costs, strict=True):
    ax.annotate(f"C = {C:g}", (0.5, 1.14), xycoords="axes fraction", ha="center", size=12)
for ax, name in zip(axes[:, 0], kernels, strict=True):
    ax.set_ylabel(name, size=12)
figure.suptitle("Grey: the margin, |f| < 1", x=0.99, ha="right", size=10, color="#666666")
plt.show()
