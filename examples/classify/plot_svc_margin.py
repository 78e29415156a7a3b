"""
Support vector classification: margin and support vectors
=========================================================

The optimality conditions of the classifier sort the training rows into three zones, and the zones
are places in the picture: beyond the margin (coefficient zero), on its border (between zero and C),
and inside it or on the wrong side (at C). The certificate checks just that.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.kernels import Gaussian

X, y = make_moons(240, noise=0.24, random_state=4)
machine = SVC(Gaussian(scale=0.6), C=5.0).fit(X, y)
print(machine.certificate_)

# %%
# Zones are measured from the decision function; the coefficients, which the solver found, say the
# same.

zone = machine.zones(X, y).zone
size = np.zeros(len(y))
size[machine.support_] = np.abs(machine.dual_coef_)
for name in ("beyond", "on", "inside"):
    rows = zone == name
    print(f"{name:<7}{rows.sum():>4} rows, coefficients from {size[rows].min():.3f}", end=" ")
    print(f"to {size[rows].max():.3f}")

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
looks = {
    "beyond": ("beyond the margin: zero", {"marker": "o", "s": 14, "alpha": 0.5}),
    "on": ("on its border: free", {"marker": "o", "s": 75, "edgecolors": INK, "linewidths": 1.4}),
    "inside": ("inside or wrong: at C", {"marker": "s", "s": 42}),
}
for name, (label, look) in looks.items():
    for group, colour in ((0, BLUE), (1, ORANGE)):
        ax.scatter(*X[(zone == name) & (y == group)].T, c=colour, **look)
    ax.scatter([], [], c="#888888", label=label, **look)
ax.set(xlabel="first column", ylabel="second column")
ax.set_title(
    f"{len(machine.support_)} of {len(y)} rows carry the boundary; relative gap "
    f"{machine.certificate_.quantities.relative_gap:.0e}",
    loc="left",
)
ax.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="lower left", title="coefficient")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
