"""
Pictures of kernels
===================

A kernel is a similarity. The first picture shows how similar each point of the plane is to one
marked point; the second shows functions that come naturally to a kernel. Sums, products and choices
of columns are kernels again, and their pictures are what one would hope.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial, exp

# %%
# Similarity to the marked point, for eight kernels. The text above each is the code that makes it.

anchor = np.array([[1.0, 0.6]])
side = np.linspace(-3, 3, 161)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

kernels = {
    "Linear()": Linear(),
    "Polynomial(3)": Polynomial(3),
    "Gaussian(1)": Gaussian(1),
    "Laplacian(1)": Laplacian(1),
    "Gaussian([2, 0.4])": Gaussian([2, 0.4]),
    "Gaussian(0.5).on(0) + Gaussian(0.5).on(1)": Gaussian(0.5).on(0) + Gaussian(0.5).on(1),
    "Gaussian(1.5) * Linear()": Gaussian(1.5) * Linear(),
    "exp(3 * Cosine())": exp(3 * Cosine()),
}
figure, axes = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained", sharex=True, sharey=True)
for ax, (text, kernel) in zip(axes.flat, kernels.items(), strict=True):
    similarity = kernel(plane, anchor).reshape(len(side), len(side))
    limit = np.abs(similarity).max()
    ax.contourf(side, side, similarity, np.linspace(-limit, limit, 26), cmap="PuOr_r")
    ax.plot(*anchor[0], "x", color="black", ms=7, mew=1.8)
    ax.set_title(text.replace(" + ", "\n+ "), fontsize=9, family="monospace")
    ax.set(aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
figure.suptitle(
    "Similarity to the cross: orange alike, white not at all, purple opposite", fontsize=11
)
plt.show()

# %%
# Functions of a kernel's space: random combinations of its features. Rougher kernels give rougher
# functions; a sum adds its parts' functions, a product modulates one by the other.

line = np.linspace(0, 10, 300)[:, None]
shown = {
    "Matern(nu=0.5)": Matern(nu=0.5),
    "Matern(nu=1.5)": Matern(nu=1.5),
    "Gaussian(1)": Gaussian(1),
    "0.1 * Linear() + Gaussian(1)": 0.1 * Linear() + Gaussian(1),
    "Gaussian(0.4) + 4 * Gaussian(4)": Gaussian(0.4) + 4 * Gaussian(4),
    "0.04 * Gaussian(0.3) * Linear()": 0.04 * Gaussian(0.3) * Linear(),
}
draws = np.random.default_rng(1).standard_normal((len(line), 3))
figure, axes = plt.subplots(2, 3, figsize=(11, 5), layout="constrained", sharex=True)
for ax, (text, kernel) in zip(axes.flat, shown.items(), strict=True):
    values, vectors = np.linalg.eigh(kernel(line))
    root = vectors * np.sqrt(np.maximum(values, 0))
    for path, colour in zip((root @ draws).T, ("#0072B2", "#D55E00", "#009E73"), strict=True):
        ax.plot(line, path, color=colour, lw=1.4)
    ax.set_title(text, fontsize=9, family="monospace")
    ax.spines[["top", "right"]].set_visible(False)
for ax in axes[-1]:
    ax.set_xlabel("x")
plt.show()
