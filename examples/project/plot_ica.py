"""
Independent components and projection pursuit
=============================================

Three signals are heard through three microphones, each of which hears all of them. A mixture is
closer to Gaussian than what it is mixed of, so directions as far from Gaussian as they go give the
signals back, up to order, sign and size. Projection pursuit looks for such directions one by one:
they show groups where directions of most variance show a cloud.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import ICA, PCA, ProjectionPursuit

rng = np.random.default_rng(0)
t = np.arange(1000)
signals = np.column_stack([np.sin(t / 20), np.sign(np.sin(t / 33)), rng.laplace(size=1000)])
signals = (signals - signals.mean(axis=0)) / signals.std(axis=0)
mixing = np.array([[1.0, 0.8, 0.5], [0.6, 1.0, 0.9], [0.9, 0.4, 1.0]])
heard = signals @ mixing.T

machine = ICA().fit(heard)
print(machine.certificate_)
print(f"Amari index {machine.amari_index(mixing):.3f} (0: the sources themselves)")

# %%
# Signals, what was heard, principal components (uncorrelated, and still mixed), and independent
# components, here in the order and with the signs of the signals.

INK, COLOURS = "#333333", ("#0072B2", "#D55E00", "#009E73")
found = machine.transform(heard)
match = np.corrcoef(found.T, signals.T)[:3, 3:]
place = np.abs(match).argmax(axis=0)
found = found[:, place] * np.sign(match[place, range(3)])
principal = PCA(whiten=True).fit_transform(heard)

columns = {
    "signals": signals,
    "heard": heard,
    "principal components": principal,
    "independent components": found,
}
figure, axes = plt.subplots(3, 4, figsize=(12, 4.5), sharex=True, layout="constrained")
for column, (title, values) in zip(axes.T, columns.items(), strict=True):
    for ax, row, colour in zip(column, values.T, COLOURS, strict=True):
        ax.plot(t[:400], row[:400], lw=0.9, c=INK if title != "signals" else colour)
        ax.set_yticks([])
        ax.spines[["top", "right", "left"]].set_visible(False)
    column[0].set_title(title, loc="left")
for ax, colour in zip(axes[:, 3], COLOURS, strict=True):
    ax.lines[0].set_color(colour)
for ax in axes[-1]:
    ax.set_xlabel("time")
plt.show()

# %%
# 365 images of the digits 1 and 3, 64 pixels each; the labels are used for the colours only. Left:
# a random direction looks nearly Gaussian. Middle: the direction of most variance. Right: the least
# Gaussian one of six principal components, which has two peaks and a gap.

digits = load_digits()
kept = np.isin(digits.target, (1, 3))
X, y = digits.data[kept], digits.target[kept]
scores = PCA(6).fit_transform(X)
drawn = rng.normal(size=64)
views = {
    "a random direction": (X - X.mean(axis=0)) @ (drawn / np.linalg.norm(drawn)),
    "most variance": scores[:, 0],
    "least Gaussian": ProjectionPursuit(1).fit_transform(scores)[:, 0],
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for ax, (title, values) in zip(axes, views.items(), strict=True):
    parts = [values[y == digit] for digit in (1, 3)]
    ax.hist(parts, bins=40, stacked=True, color=COLOURS[:2], label=["a 1", "a 3"])
    ax.set_title(title, loc="left")
    ax.set_xlabel("projection")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("images")
axes[2].legend(frameon=False)
plt.show()
