"""
Maximum entropy: a loaded die
=============================

A die was thrown many times and only the mean is known: 4.5 instead of 3.5. Of all distributions
with this mean, the one of largest entropy claims nothing else. Two numbers tell more than one, and
a mean of six leaves no choice at all.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import MaximumEntropy

faces = np.arange(1, 7)
mean = MaximumEntropy().fit(faces, [4.5])
both = MaximumEntropy([lambda x: x, lambda x: x % 2 == 0]).fit(faces, [4.5, 0.4])
prior = np.array([1, 1, 1, 1, 1, 3]) / 8
believed = MaximumEntropy(prior=prior).fit(faces, [4.5])
print(mean.certificate_)

# %%
# What cannot be is said, and proved: a direction in which the targets lie beyond all points.

try:
    MaximumEntropy(lambda x: [x, x**2]).fit(faces, [4.5, 16.0])
except ValueError as error:
    print(error)

# %%
# On the right, the mean goes from one end to the other.

INK, BLUE, ORANGE = "#333333", "#0072B2", "#D55E00"
figure, axes = plt.subplots(1, 4, figsize=(12.5, 3.7), layout="constrained")
bars = [
    (mean, np.full(6, 1 / 6), "mean 4.5"),
    (both, np.full(6, 1 / 6), "mean 4.5, even faces 40 %"),
    (believed, prior, "mean 4.5, sixes believed in"),
]
for ax, (found, before, title) in zip(axes, bars, strict=False):
    ax.bar(faces, found.probabilities_, color=BLUE, width=0.75, label="maximum entropy")
    ax.step(np.r_[0.5, faces + 0.5], np.r_[before, before[-1]], where="post", color=ORANGE, lw=2)
    ax.plot([], [], color=ORANGE, lw=2, label="prior")
    ax.set_title(title, loc="left", size=10)
    ax.set(xlabel="face", ylim=(0, 0.5), xticks=faces)
    ax.text(0.75, 0.435, f"entropy {found.entropy_:.3f}", size=9, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("probability")
axes[0].legend(frameon=False, loc="center left", bbox_to_anchor=(0, 0.66))

means = np.linspace(1, 6, 61)
table = np.array([MaximumEntropy().fit(faces, [m]).probabilities_ for m in means])
axes[3].stackplot(means, table.T, colors=plt.cm.Blues(np.linspace(0.15, 0.95, 6)))
for face, low in zip(faces, np.cumsum(np.r_[0.0, table[30][:-1]]), strict=True):
    middle = low + table[30][face - 1] / 2
    axes[3].text(3.5, middle, face, ha="center", va="center", color="w" if face > 3 else INK)
axes[3].set(xlim=(1, 6), ylim=(0, 1), xlabel="mean", xticks=faces)
axes[3].set_title("all six, as the mean moves", loc="left", size=10)
plt.show()
