"""
Perceptron: mistakes, averages and budgets
==========================================

A stream of rows; each is predicted first and learned after, if the prediction was wrong. Where the
classes are apart by a margin, Novikoff's bound says how many mistakes there can ever be. Where they
are not apart, mistakes go on, and the mean of all functions on the way predicts better than the
last one. With a kernel, mistakes are what is kept: all of them, or as many as a budget allows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import Perceptron
from mercer.kernels import Gaussian
from mercer.theory import novikoff

BLUE, ORANGE, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#333333"
rng = np.random.default_rng(0)


def apart(n, gamma):
    """Draw rows of length one that a plane through the origin keeps apart by `gamma`."""
    X = rng.standard_normal((40 * n, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.abs(X[:, 0]) >= gamma][:n]
    return X, (X[:, 0] > 0).astype(int)


# %%
# Mistakes of a stream of examples, one at a time, under the bound of its margin.

_, left = plt.subplots(figsize=(8, 4.5), layout="constrained")
for gamma, color in ((0.05, BLUE), (0.1, ORANGE), (0.2, GREEN)):
    X, y = apart(2000, gamma)
    machine, mistakes = Perceptron(bias=False), []
    for i in range(len(X)):
        machine.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        mistakes.append(machine.mistakes_)
    bound = novikoff(1.0, gamma).value
    left.plot(np.arange(1, 2001), mistakes, color=color, label=f"margin {gamma}")
    left.axhline(bound, color=color, linestyle="--", linewidth=1)
left.set(xscale="log", yscale="log", xlabel="rows seen", ylabel="mistakes")
left.set_title("Mistakes, and Novikoff's bound (dashed)")
left.legend(frameon=False)
plt.show()

# %%
# Classes that overlap: the error on new rows of the last function, of the mean, and of the vote.

_, right = plt.subplots(figsize=(8, 4.5), layout="constrained")
centre = np.zeros(10)
centre[0] = 1.2
signs = rng.choice([-1, 1], 6000)
X, y = rng.standard_normal((6000, 10)) + np.outer(signs, centre), signs
test = slice(3000, 6000)
for answer, color in (("last", ORANGE), ("averaged", BLUE), ("voted", GREEN)):
    machine, errors = Perceptron(answer=answer), []
    for first in range(0, 1500, 50):
        part = slice(first, first + 50)
        machine.partial_fit(X[part], y[part], classes=[-1, 1])
        errors.append(1 - machine.score(X[test], y[test]))
    right.plot(np.arange(50, 1501, 50), 100 * np.array(errors), color=color, label=answer)
right.set(xlabel="rows seen", ylabel="errors on new rows, %", title="Classes that overlap")
right.set_ylim(0, None)
right.legend(frameon=False)
plt.show()

# %%
# Moons, with a Gaussian kernel: every mistake kept, and twenty of them.

X, y = make_moons(600, noise=0.22, random_state=0)
columns, rows = np.meshgrid(np.linspace(-1.8, 2.8, 150), np.linspace(-1.3, 1.8, 150))
grid = np.column_stack([columns.ravel(), rows.ravel()])
_, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, budget in zip(axes, (None, 20), strict=True):
    machine = Perceptron(Gaussian(0.4), budget=budget, removal="oldest")
    machine.partial_fit(X, y, classes=[0, 1])
    side = machine.predict(grid).reshape(columns.shape)
    ax.contourf(columns, rows, side, levels=[-0.5, 0.5, 1.5], colors=[BLUE, ORANGE], alpha=0.18)
    ax.contour(columns, rows, side, levels=[0.5], colors=INK, linewidths=1)
    ax.scatter(*X.T, c=np.where(y == 1, ORANGE, BLUE), s=6)
    points = machine.support_vectors_
    ax.scatter(*points.T, facecolors="none", edgecolors=INK, s=40, linewidths=1)
    kept = "all mistakes kept" if budget is None else f"a budget of {budget}"
    title = f"{kept}: {machine.n_support_}\n{100 * (1 - machine.score(X, y)):.0f} % of rows wrong"
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
