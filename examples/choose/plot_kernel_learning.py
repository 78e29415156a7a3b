"""
Learning the kernel
===================

Left: a label depends on the product of two of six columns, and a little on a third. One Gaussian
kernel for each pair of columns; multiple kernel learning gives weights to the pairs that matter,
little or exactly zero to the others. Middle: the duality gap falls to rounding in a dozen steps,
each the fit of one machine. Right: scales of the features of a regression, learnt by the gradient
of the exact leave-one-out error. Features that do not matter get scales so large that they drop
out; a straight line, as in feature 7, needs a long scale only.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.selection import combine, learn_scales

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 6))
label = X[:, 1] * X[:, 4] + 0.4 * X[:, 2] + 0.2 * rng.standard_normal(400) > 0
pairs = [(i, j) for i in range(6) for j in range(i)]
found = combine(
    [Gaussian(1.0).on(list(pair)) for pair in pairs], X, label, method="margin", C=1.0, tol=1e-8
)
print(found)

new = rng.standard_normal((2000, 6))
truth = new[:, 1] * new[:, 4] + 0.4 * new[:, 2] > 0
learnt = SVC(found.kernel, C=1.0).fit(X, label).score(new, truth)
plain = max(SVC(Gaussian(s), C=1.0).fit(X, label).score(new, truth) for s in (0.5, 1, 2, 4))

# %%
# A regression in which three of ten features matter.

Z = rng.standard_normal((250, 10))


def target(Z):
    """Return the function without noise."""
    return np.sin(2 * Z[:, 0]) + 0.5 * Z[:, 3] ** 2 + 0.8 * Z[:, 7]


y = target(Z) + 0.1 * rng.standard_normal(250)
scales = learn_scales(Z, y, starts=2)
print(scales)
fresh = rng.standard_normal((1000, 10))
errors = [
    np.sqrt(np.mean((machine.fit(Z, y).predict(fresh) - target(fresh)) ** 2))
    for machine in (
        KernelRidge("loo", kernel="gaussian"),
        KernelRidge(scales.penalty, kernel=scales.kernel),
    )
]

# %%
# The picture.

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#BBBBBB", "#333333"
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.3), layout="constrained")
table = np.full((6, 6), np.nan)
for (i, j), weight in zip(pairs, found.weights, strict=True):
    table[i, j] = weight
image = left.imshow(table, cmap="Blues", vmin=0, vmax=found.weights.max())
for (i, j), weight in zip(pairs, found.weights, strict=True):
    shade = "white" if weight > 0.5 * found.weights.max() else INK
    left.text(j, i, f"{weight:.2f}" if weight > 0 else "0", ha="center", va="center", color=shade)
left.set(xlabel="column", ylabel="column", xticks=range(6), yticks=range(6))
left.set_title(f"Weights of pairs of columns\nnew rows right: {learnt:.1%}, one kernel {plain:.1%}")
left.spines[:].set_visible(False)

gaps = [step.measure for step in found.solution.trace]
middle.semilogy(range(len(gaps)), gaps, "o-", color=BLUE)
middle.axhline(1e-8, color=INK, ls=":", lw=1)
middle.text(0, 1.4e-8, "tolerance", color=INK, va="bottom")
middle.set(xlabel="step", ylabel="relative duality gap")
middle.set_xticks(range(len(gaps)))
middle.set_title("Newton steps over the simplex")

matters = np.isin(np.arange(10), [0, 3, 7])
right.bar(range(10), scales.scales, color=np.where(matters, ORANGE, GREY))
right.set(yscale="log", xlabel="feature", ylabel="learnt scale", xticks=range(10))
right.set_ylim(1, 10 * scales.scales.max())
right.set_title(
    f"Scales: small where a feature matters\nerror on new rows {errors[1]:.2f}, one scale "
    f"{errors[0]:.2f}"
)
for name, colour in (("in the target", ORANGE), ("not in it", GREY)):
    right.bar(0, 0, color=colour, label=name)
right.legend(frameon=False, loc="upper center", ncols=2)
plt.show()
