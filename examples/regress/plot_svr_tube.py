"""
Support vector regression
=========================

Errors up to epsilon cost nothing. So the rows inside the tube have no say in where it runs: only
those on its border or outside carry the function. The nu form turns the question round: it is told
what share of the rows may be outside, and finds the width.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR
from mercer.kernels import Gaussian

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 10, 120))
y = np.sin(x) + 0.1 * x + 0.15 * rng.standard_normal(120)
y[[20, 60, 100]] += [1.6, -1.5, 1.4]  # three readings that went wrong

wide = SVR(Gaussian(1.2), C=5.0, epsilon=0.3).fit(x[:, None], y)
share = SVR(Gaussian(1.2), C=5.0, nu=0.5).fit(x[:, None], y)
print(wide.certificate_)
print(f"nu = 0.5 stands for epsilon = {share.epsilon_:.3f}")

# %%
# Both tubes. The outliers pull no harder than any row outside does: the slack counts as it is, not
# squared.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
new = np.linspace(0, 10, 400)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.3), layout="constrained", sharey=True)
names = ("epsilon = 0.3 is given", f"nu = 0.5 found epsilon = {share.epsilon_:.2f}")
for ax, machine, name in zip(axes, (wide, share), names, strict=True):
    f, zone = machine.predict(new[:, None]), machine.zones(x[:, None], y).zone
    ax.fill_between(new, f - machine.epsilon_, f + machine.epsilon_, color=BLUE, alpha=0.15, lw=0)
    ax.plot(new, f, color=INK, lw=1.8)
    for kind, look in {
        "inside": {"c": "#999999", "s": 14},
        "on": {"c": "white", "s": 42, "edgecolors": INK, "linewidths": 1.4},
        "outside": {"c": ORANGE, "s": 26, "marker": "s"},
    }.items():
        rows = zone == kind
        ax.scatter(x[rows], y[rows], label=f"{kind}: {rows.sum()}", zorder=3, **look)
    ax.set_title(name, loc="left")
    ax.set_xlabel("x")
    ax.legend(frameon=False, loc="upper left", ncols=3, title="rows")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="y", ylim=(y.min() - 0.4, y.max() + 1.1))
plt.show()
