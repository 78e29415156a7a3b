"""
Gradient descent: steps too short, good, exploding
==================================================

Plain gradient descent with a step of one length, on the squared cost of labels. Too short, and it
crawls; above two over the largest curvature, it explodes. Stochastic steps, of one row each, are
cheap and wiggle: shrinking them ends the wiggling.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import LogisticRegression
from mercer.solvers import GradientDescent, StochasticGradient

warnings.simplefilter("ignore", ConvergenceWarning)  # not arriving is what is shown here
rng = np.random.default_rng(1)
X = rng.standard_normal((200, 2)) @ np.array([[1.0, 0.9], [0.0, 0.45]])
y = np.where(X @ [1.0, -0.6] + 0.6 * rng.standard_normal(200) > 0, 1, -1)
longest = 2 / np.linalg.eigvalsh(X.T @ X / len(X))[-1]
STEPS = {0.02: "#0072B2", 0.5: "#009E73", 0.97: "#CC79A7", 1.1: "#D55E00"}


def fitted(solver):
    """Fit without bias and penalty: two weights, and a quadratic cost of them."""
    machine = LogisticRegression(penalty=0, loss="squared", bias=False, solver=solver)
    return machine.fit(X, y)


best = fitted(None)
lowest = best.certificate_.quantities.objective / len(X)
print("best weights:", best.coef_[0].round(3), best.certificate_.ok)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
for share, colour in STEPS.items():
    end = fitted(GradientDescent(step=share * longest, max_iter=150))
    cost = np.array([progress.measure for progress in end.solution_.trace])
    print(f"{share:>5} of the longest: {end.solution_.status.name}, {end.solution_.detail}")
    left.semilogy(np.maximum(cost - lowest, 1e-12), color=colour, label=f"{share} of 2 / L")
left.set(xlabel="step", ylabel="cost above the minimum", ylim=(1e-9, 1e3), title="Four lengths")
left.legend(frameon=False)

# The way of the weights on the cost: short steps follow the gradient, long ones jump across the
# valley, and those that are too long leave it.

grid = np.linspace(-1.6, 1.9, 60), np.linspace(-2.4, 1.4, 60)
weights = np.stack(np.meshgrid(*grid), axis=-1)
surface = 0.5 * np.mean((y - weights @ X.T) ** 2, axis=-1)
levels = lowest + np.logspace(-3, 0.5, 10)
middle.contour(*grid, surface, levels=levels, cmap="Greys_r", linewidths=0.8)
for share, colour in STEPS.items():
    w, way = np.zeros(2), [np.zeros(2)]
    for _ in range(25):
        w = w - share * longest * X.T @ (X @ w - y) / len(X)  # eq. 7.6, by hand
        way.append(w)
    middle.plot(*np.transpose(way), ".-", color=colour, linewidth=1, markersize=4)
middle.plot(*best.coef_[0], "k*", markersize=11)
middle.set(xlim=(-1.6, 1.9), ylim=(-2.4, 1.4), xlabel="w1", ylabel="w2", title="The first 25 steps")
WALKS = {
    "step 0.1": ({"step": 0.1}, "#D55E00"),
    "step 0.01": ({"step": 0.01}, "#0072B2"),
    "step 0.1, decay 1": ({"step": 0.1, "decay": 1.0}, "#009E73"),
}
for name, (options, colour) in WALKS.items():
    end = fitted(StochasticGradient(epochs=25, **options))
    cost = np.array([progress.measure for progress in end.solution_.trace])
    right.semilogy(np.maximum(cost - lowest, 1e-9), color=colour, label=name)
right.set(xlabel="epoch", ylabel="cost above the minimum", title="Steps of one row")
right.legend(frameon=False)
plt.show()
