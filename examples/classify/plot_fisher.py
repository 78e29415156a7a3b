"""
Fisher discriminant, linear and with a kernel
=============================================

Two classes like parallel cigars: most of the variance runs along them, so the first principal
component mixes the classes. Fisher's direction asks for class means that are far apart in units of
the spread within classes, and separates them. With a kernel the same question is asked in another
space, and its answer bends.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.datasets import make_moons

from mercer import PCA, FisherDiscriminant
from mercer.kernels import Gaussian

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
SHADES = LinearSegmentedColormap.from_list("shades", ["#7db4d8", "#ffffff", "#f0b08a"])
rng = np.random.default_rng(0)

y = np.repeat([0, 1], 150)
along = np.array([np.cos(0.5), np.sin(0.5)])
across = np.array([-along[1], along[0]])
X = rng.normal(0, 3.0, 300)[:, None] * along + rng.normal(0, 0.35, 300)[:, None] * across
X += np.where(y == 1, 1.0, -1.0)[:, None] * across

fisher = FisherDiscriminant().fit(X, y)
main = PCA(n_components=1).fit(X)
print(fisher.certificate_)

# %%
# The same rows, seen along the principal component and along Fisher's direction.

figure, (plane, lines) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1.25, 1)
)
w = fisher.scalings_[:, 0] / np.linalg.norm(fisher.scalings_[:, 0])
for c, color in enumerate((BLUE, ORANGE)):
    plane.scatter(*X[y == c].T, s=12, color=color, alpha=0.7, lw=0, label=f"class {c}")
for direction, length, name in (
    (along, 5.5, "principal component"),
    (w, 2.4, "Fisher's direction"),
):
    ends = np.array([-direction, direction]) * length
    plane.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "<->", "color": INK, "lw": 1.8})
    plane.annotate(name, ends[1] * 1.04, color=INK, size=10)
plane.set_aspect("equal")
plane.set(xlim=(-9, 11), ylim=(-5.5, 6))
plane.set_title("Two cigars", loc="left")
plane.legend(frameon=False, loc="lower right")

places = {"principal component": main.transform(X)[:, 0], "Fisher": fisher.transform(X)[:, 0]}
for row, (name, place) in enumerate(places.items()):
    z = place / np.abs(place).max()
    for c, color in enumerate((BLUE, ORANGE)):
        height, edges = np.histogram(z[y == c], bins=np.linspace(-1.02, 1.02, 45))
        lines.fill_between(
            edges[:-1],
            1.0 - row + 0.8 * height / height.max(),
            1.0 - row,
            step="post",
            color=color,
            alpha=0.55,
            lw=0,
        )
    lines.annotate(name, (-1.02, 1.84 - row), color=INK, size=11)
lines.set(yticks=[], xticks=[], ylim=(-0.05, 2.0))
lines.set_title("What is left on one line", loc="left")
for ax in (plane, lines):
    ax.spines[["top", "right", "left"]].set_visible(False)
plt.show()

# %%
# In the space of a Gaussian kernel a single direction still does for two classes. The colour is
# the probability that a Gaussian rule gives along it, the line where it is one half.

X, y = make_moons(300, noise=0.2, random_state=0)
grid = np.meshgrid(np.linspace(-1.8, 2.8, 220), np.linspace(-1.4, 1.9, 180))
points = np.column_stack([grid[0].ravel(), grid[1].ravel()])
figure, axes = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained", sharey=True)
machines = {
    "linear": FisherDiscriminant(),
    "wide Gaussian, penalty 1e-2": FisherDiscriminant(Gaussian(0.7), penalty=1e-2),
    "narrow Gaussian, penalty 1e-6": FisherDiscriminant(Gaussian(0.3), penalty=1e-6),
}
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    p = machine.fit(X, y).predict_proba(points)[:, 1].reshape(grid[0].shape)
    shade = ax.pcolormesh(*grid, p, cmap=SHADES, vmin=0, vmax=1, shading="auto")
    ax.contour(*grid, p, levels=[0.5], colors=INK, linewidths=1.6)
    for c, color in enumerate((BLUE, ORANGE)):
        ax.scatter(*X[y == c].T, s=11, color=color, lw=0)
    ax.set(xticks=[], yticks=[])
    new, label = make_moons(2000, noise=0.2, random_state=1)
    ax.set_title(
        f"{name}\nerror on new rows {100 * (1 - machine.score(new, label)):.1f} %", size=10
    )
figure.colorbar(shade, ax=axes, label="probability of the orange class", shrink=0.85)
plt.show()
