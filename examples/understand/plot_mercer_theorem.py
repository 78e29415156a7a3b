"""
Mercer's theorem
================

A kernel is a sum over eigenfunctions, k(x, y) = sum_j lambda_j psi_j(x) psi_j(y), and cutting the
sum off gives features whose error is known. A function that is no kernel has a negative eigenvalue,
and its eigenfunction breaks the condition of the theorem.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import (
    Gaussian,
    NormalDensity,
    Sigmoid,
    UniformDensity,
    eigenfunctions,
    mercer_condition,
)

BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"

# %%
# Under a normal density the eigenfunctions of the Gaussian kernel are Hermite functions, in closed
# form. Their eigenvalues fall like a geometric series, the faster the larger the scale.

x = np.linspace(-3.5, 3.5, 400)[:, None]
found = eigenfunctions(Gaussian(1.0), NormalDensity(0.0, 1.0), n_components=4)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
density = np.exp(-(x[:, 0] ** 2) / 2)
left.fill_between(x[:, 0], -2.2 + density, -2.2, color="0.88", lw=0)
for j, (colour, height) in enumerate(
    zip((BLUE, RED, GREEN, "0.3"), (-0.1, 0.2, 0.55, 1.45), strict=True)
):
    left.plot(x, found(x)[:, j], color=colour, lw=1.6)
    left.text(3.6, height, f"{j + 1}", color=colour, va="center")
left.set(title="Eigenfunctions, scale 1; density grey", xlabel="x", ylim=(-2.2, 2.4))

for scale, colour in ((0.3, RED), (1.0, BLUE), (3.0, GREEN)):
    values = eigenfunctions(Gaussian(scale), NormalDensity(), 20).eigenvalues
    middle.semilogy(np.arange(1, 21), values, "o-", ms=3, color=colour, label=f"scale {scale:g}")
middle.set(title="Eigenvalues", xlabel="number", ylim=(1e-12, 2))
middle.legend(frameon=False)

sample = np.random.default_rng(0).normal(size=(200, 1))
counts = np.arange(1, 21)
sup, bound, trace = [], [], []
for m in counts:
    cut = eigenfunctions(Gaussian(1.0), NormalDensity(), int(m))
    sup.append(np.abs(cut.expansion(sample) - Gaussian(1.0)(sample)).max())
    bound.append(cut.error(sample).max())
    trace.append(cut.remainder)
right.semilogy(counts, bound, "-", color=RED, lw=5, alpha=0.35, label="bound: largest r(x)")
right.semilogy(counts, sup, "-", color=RED, lw=1.5, label="largest error on a sample")
right.semilogy(counts, trace, "o-", ms=3, color=BLUE, label="trace left out")
right.set(title="Error of the sum of m terms", xlabel="m", ylim=(1e-9, 5))
right.legend(frameon=False)
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# tanh(x y - 1) is no kernel: for the function on the right, the integral of f(x) k(x, y) f(y) is
# negative, as much as it can be for functions of mean square 1.

sigmoid = Sigmoid(slope=1.0, offset=-1.0)
broken = mercer_condition(sigmoid, UniformDensity(-2.0, 2.0))
print(broken.statement)
x = np.linspace(-2, 2, 200)[:, None]
f = broken.f(x)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
shape = f * sigmoid(x) * f[:, None]
limit = np.abs(shape).max()
image = left.contourf(x[:, 0], x[:, 0], shape, np.linspace(-limit, limit, 26), cmap="PuOr_r")
left.set(title="f(x) k(x, y) f(y): mostly below zero", xlabel="x", ylabel="y", aspect="equal")
figure.colorbar(image, ax=left, ticks=[-1, 0, 1])
right.axhline(0, color="0.7", lw=0.8)
right.plot(x, f, color=BLUE, lw=1.8)
right.set(title=f"f: its integral with k is {broken.value:.2f}", xlabel="x")
right.spines[["top", "right"]].set_visible(False)
plt.show()
