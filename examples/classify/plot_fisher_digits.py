"""
Fisher discriminant of handwritten digits
=========================================

Ten classes have nine discriminant directions. Here are the first two, for the linear kernel and for
a Gaussian one, learned from 900 digits; the points are digits that were not shown. Below is how
many directions a classifier needs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import FisherDiscriminant
from mercer.kernels import Gaussian

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=900, random_state=0, stratify=y)

machines = {
    "linear": FisherDiscriminant(penalty=1e-3).fit(X, y),
    "Gaussian": FisherDiscriminant(Gaussian(25.0)).fit(X, y),
}
print(machines["Gaussian"].certificate_)

# %%
# Each point is drawn as the digit it is; the large ones stand at the class means of the training
# rows.

COLORS = plt.get_cmap("tab10").colors
figure, axes = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    Z = machine.transform(X_new)
    for digit in range(10):
        z = Z[y_new == digit]
        marker = f"${digit}$"
        ax.scatter(z[:, 0], z[:, 1], marker=marker, s=22, color=COLORS[digit], lw=0.3, alpha=0.75)
        middle = machine.means_[digit]
        ax.scatter(*middle[:2], s=420, color="white", edgecolor=COLORS[digit], lw=1.4, zorder=3)
        ax.annotate(
            str(digit), middle[:2], ha="center", va="center", size=13, color=COLORS[digit], zorder=4
        )
    score = 100 * machine.score(X_new, y_new)
    ax.set_title(f"{name}: {score:.1f} % of new digits right with all nine directions", loc="left")
    ax.set(xlabel="first direction", ylabel="second direction")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# More directions, fewer errors.

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for (name, machine), color in zip(machines.items(), ("#D55E00", "#0072B2"), strict=True):
    errors = []
    for count in range(1, 10):
        machine.set_params(n_components=count).fit(X, y)
        errors.append(100 * (1 - machine.score(X_new, y_new)))
    ax.plot(range(1, 10), errors, "o-", color=color, label=name)
    ax.annotate(f"{errors[-1]:.1f} %", (9, errors[-1] + 1.2), ha="center", color=color, size=9)
ax.set(xlabel="directions used", ylabel="error on new digits, %", ylim=(0, None))
ax.set_xticks(np.arange(1, 10))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
