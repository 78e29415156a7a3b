"""
Support vector classifier: margin and zones
===========================================

The optimality conditions of the classifier sort the training rows into three zones by the size of
their coefficient, and the same three zones are places in the picture: outside the margin
(coefficient zero), on its border (between zero and C), and inside or beyond it (at C). The
certificate checks just that.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.kernels import Gaussian

X, y = make_moons(240, noise=0.24, random_state=4)
C = 5.0
machine = SVC(Gaussian(scale=0.6), C=C).fit(X, y)
print(machine.certificate_)

# %%
# Zones by coefficient. The margins below are measured, not taken from the solver.

size = np.zeros(len(y))
size[machine.support_] = np.abs(machine.dual_coef_)
zones = {
    "zero: outside the margin": size == 0,
    "free: on its border": (size > 0) & (size < C),
    "at C: inside or wrong": size == C,
}
margin = np.where(y == 1, 1, -1) * machine.decision_function(X)
for name, rows in zones.items():
    print(f"{name:<26} {rows.sum():>4} rows, y f(x) from {margin[rows].min():7.3f}", end=" ")
    print(f"to {margin[rows].max():.3f}")

# %%
# The same in the plane.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
low, high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
columns, rows = np.meshgrid(np.linspace(low[0], high[0], 250), np.linspace(low[1], high[1], 200))
f = machine.decision_function(np.column_stack([columns.ravel(), rows.ravel()]))
f = f.reshape(columns.shape)

figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
limit = np.abs(f).max()
ax.contourf(columns, rows, f, np.linspace(-limit, limit, 21), cmap="PuOr_r", alpha=0.35)
lines = ax.contour(
    columns, rows, f, [-1, 0, 1], colors=INK, linewidths=[1, 1.8, 1], linestyles=["--", "-", "--"]
)
ax.clabel(lines, fmt={-1: "f = -1", 0: "f = 0", 1: "f = 1"}, fontsize=9)
marks = dict(zip(zones, ({"s": 14}, {"s": 75}, {"s": 45}), strict=True))
for name, chosen in zones.items():
    for label, colour in ((0, BLUE), (1, ORANGE)):
        points = X[chosen & (y == label)]
        border = {"edgecolors": INK, "linewidths": 1.4 if name.startswith("free") else 0.0}
        alpha = 0.5 if name.startswith("zero") else 1.0
        mark = "s" if name.startswith("at C") else "o"
        ax.scatter(*points.T, c=colour, marker=mark, alpha=alpha, **marks[name], **border)
    ax.scatter([], [], c="#888888", marker=mark, alpha=alpha, label=name, **marks[name], **border)
ax.set(xlabel="first column", ylabel="second column")
ax.set_title(
    f"{len(machine.support_)} of {len(y)} rows carry the boundary; relative gap "
    f"{machine.certificate_.quantities.relative_gap:.0e}",
    loc="left",
)
ax.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="upper right", title="coefficient")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
