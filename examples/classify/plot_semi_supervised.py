"""
Two labels, and rows without
============================

Two moons of 300 rows, of which one in each has a label. A support vector machine on the two
labelled rows can do no better than the line half way between them. Where the other rows lie says
where *not* to cut: a Laplacian SVC makes functions that change along a graph of all rows long, and
label propagation gives every row the mean of its neighbours' labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons

from mercer import SVC, LabelPropagation, LaplacianSVC
from mercer.kernels import Gaussian

X, moon = make_moons(300, noise=0.08, random_state=1)
y = np.full(300, -1)
for label in (0, 1):
    y[np.flatnonzero(moon == label)[3]] = label

kernel = Gaussian(0.3)
alone = SVC(kernel, C=100.0).fit(X[y >= 0], y[y >= 0])
margin = LaplacianSVC(kernel, C=100.0, intrinsic_penalty=100.0).fit(X, y)
spread = LabelPropagation(neighbors=10).fit(X, y)
print(margin.certificate_)
print(spread.certificate_)

# %%
# Colours are what each machine says of the plane; large points are the rows with a label.

COLOURS = np.array(["#0072B2", "#D55E00"])
x0, x1 = np.meshgrid(np.linspace(-1.6, 2.6, 90), np.linspace(-1.1, 1.6, 60))
plane = np.column_stack([x0.ravel(), x1.ravel()])
titles = {
    "SVC on two rows": alone.predict(plane),
    "Laplacian SVC": margin.predict(plane),
    "label propagation": spread.predict(plane),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.3), sharey=True, layout="constrained")
for ax, (title, labels), machine in zip(axes, titles.items(), (alone, margin, spread), strict=True):
    ax.contourf(x0, x1, labels.reshape(x0.shape), [-0.5, 0.5, 1.5], colors=COLOURS, alpha=0.25)
    ax.scatter(*X.T, s=6, c="#555555")
    ax.scatter(*X[y >= 0].T, s=110, c=COLOURS[y[y >= 0]], edgecolors="k", zorder=3)
    wrong = 100 * np.mean(machine.predict(X) != moon)
    ax.set_title(f"{title}: {wrong:.1f} % wrong", loc="left")
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()

# %%
# 600 handwritten digits, of which a few have a label. Errors at the others, means of three draws.

digits = load_digits()
rows, kinds = digits.data[:600], digits.target[:600]
machines = {
    "SVC on labelled rows": lambda: SVC(Gaussian(25.0), C=100.0),
    "Laplacian SVC": lambda: LaplacianSVC(Gaussian(25.0), C=100.0, intrinsic_penalty=100.0),
    "label propagation": lambda: LabelPropagation(neighbors=7),
}
counts = [20, 50, 100, 200]
errors = {name: np.zeros((3, len(counts))) for name in machines}
for draw in range(3):
    order = np.random.default_rng(draw).permutation(600)
    # one of each digit first
    first = [order[np.flatnonzero(kinds[order] == digit)[0]] for digit in range(10)]
    order = np.concatenate([first, np.setdiff1d(order, first, assume_unique=True)])
    for place, count in enumerate(counts):
        known, hidden = order[:count], order[count:]
        labels = np.full(600, -1)
        labels[known] = kinds[known]
        for name, make in machines.items():
            machine = make()
            if name.startswith("SVC"):
                machine.fit(rows[known], kinds[known])
                found = machine.predict(rows[hidden])
            else:
                found = machine.fit(rows, labels).transduction_[hidden]
            errors[name][draw, place] = np.mean(found != kinds[hidden])

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, found), colour in zip(errors.items(), ("#333333", "#0072B2", "#D55E00"), strict=True):
    ax.plot(counts, 100 * found.mean(axis=0), "o-", c=colour, label=name)
ax.set(xscale="log", xlabel="rows with a label, of 600", ylabel="errors at the others (%)")
ax.set_xticks(counts, counts)
ax.set_ylim(bottom=0)
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
