"""
Feature spaces
==============

The Gaussian kernel has infinitely many features. A few of them carry almost everything near the
rows, and the error of leaving the others out is known before any is computed. In that space the
minimiser of a regularised risk lies in the span of the training rows: functions from outside of it
get no weight.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Gaussian

BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"

# %%
# The features exp(-x^2 / 2) x^p / sqrt(p!), and how many are needed.

k = Gaussian(1.0)
x = np.linspace(-3, 3, 301)[:, None]
phi = k.features(x, tol=1e-3)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for p, curve in enumerate(phi(x).T):
    left.plot(x, curve, color=plt.cm.viridis(p / phi.dimension), lw=1.4)
left.plot(x, np.square(phi(x)).sum(axis=1), "--", color="0.3", lw=1.2)
left.set(title=f"{phi.dimension} features; dashed: |phi(x)|$^2$, 1 for all of them", xlabel="x")

rng = np.random.default_rng(0)
for d, colour in ((1, BLUE), (2, RED), (4, GREEN)):
    X = rng.uniform(-1, 1, size=(100, d))
    sizes, errors = [], []
    for tol in 10.0 ** -np.arange(1, 11):
        cut = k.features(X, tol)
        sizes.append(cut.dimension)
        F = cut(X)
        errors.append(max(np.abs(F @ F.T - k(X)).max(), 1e-16))
        right.plot(cut.dimension, tol, "_", color=colour, ms=9)
    right.loglog(
        sizes, errors, "o-", ms=3, color=colour, label=f"{d} column{'s' * (d > 1)} in [-1, 1]"
    )
right.set(title="Largest error; marks: the bound asked for", xlabel="number of features")
right.set_ylim(1e-16, 1)
right.legend(frameon=False, loc="lower left", fontsize=9)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The representer theorem, seen: the squared loss plus a penalty on the norm is minimised over the
# span of the training rows and of 60 other functions k(z, .). Parts outside the span of the rows
# vanish; the part inside is kernel ridge regression.

X = rng.uniform(-2, 2, size=(12, 1))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=12)
Z = np.linspace(-4, 4, 60)[:, None]
penalty = 0.05

values, vectors = np.linalg.eigh(k(np.vstack([X, Z])))
kept = values > 1e-12 * values[-1]
F = vectors[:, kept] * np.sqrt(
    values[kept]
)  # coordinates in an orthonormal basis of the large span
w = np.linalg.solve(F[:12].T @ F[:12] + penalty * np.eye(kept.sum()), F[:12].T @ y)
inside = np.linalg.qr(F[:12].T)[0]
part = inside @ (inside.T @ w)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
grid = np.linspace(-4, 4, 300)[:, None]
alpha = np.linalg.solve(k(X) + penalty * np.eye(12), y)
basis = np.linalg.pinv(F) @ k(np.vstack([X, Z]), grid)
left.plot(grid, basis.T @ w, color=RED, lw=4, alpha=0.4, label="minimiser over all 72 functions")
left.plot(grid, k(grid, X) @ alpha, color=BLUE, lw=1.4, label="sum over the 12 rows")
left.plot(X, y, "o", color="0.2", ms=4)
left.set(title="The same function", xlabel="x", ylim=(-1.6, 1.2))
left.legend(frameon=False, loc="lower left", fontsize=9)
right.bar([0, 1], [np.linalg.norm(part), np.linalg.norm(w - part)], color=[BLUE, RED], width=0.5)
right.set_yscale("log")
right.set(xticks=[0, 1], xticklabels=["in the span\nof the rows", "outside"], ylim=(1e-16, 10))
right.set_title("Norm of the two parts of the minimiser")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
