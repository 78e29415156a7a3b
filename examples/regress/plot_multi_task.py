"""
Several tasks: readings of one help another
===========================================

Two quantities that go together, one read everywhere and one only here and there. A covariance of
the tasks, learnt from the readings, lets the well-read one fill the gaps of the other, and the band
says how far that goes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from mercer import GaussianProcess, MultiTaskGaussianProcess
from mercer.plots import style

# %%
# Made curves, so that the truth is known: the second is read on the left only.

rng = np.random.default_rng(2)
x = np.linspace(0, 10, 60)
truth = np.column_stack([np.sin(x) + 0.5 * np.sin(2.3 * x), np.zeros(60)])
truth[:, 1] = -0.8 * truth[:, 0] + 0.15 * np.cos(0.6 * x)
readings = truth + 0.12 * rng.standard_normal(truth.shape)
readings[22:, 1] = np.nan

machine = MultiTaskGaussianProcess(noise=0.1, optimize=True).fit(x[:, None], readings)
B = machine.task_covariance_
print(f"correlation of the tasks: {B[0, 1] / np.sqrt(B[0, 0] * B[1, 1]):.2f}")
print(machine.certificate_)
alone = GaussianProcess("1 * gaussian", noise=0.1, optimize=True).fit(
    x[:22, None], readings[:22, 1]
)

# %%
# Real flowers: the petals of 150 irises from their sepals. Lengths were read of all, widths of
# a few.

iris = load_iris()
sepals, petals = iris.data[:, :2], iris.data[:, 2:]
petals = (petals - petals.mean(axis=0)) / petals.std(axis=0)
order = rng.permutation(150)
counts, errors = (5, 10, 20, 40, 80), {"width alone": [], "with the lengths": []}
for count in counts:
    few, rest = order[:count], order[count:]
    gaps = petals.copy()
    gaps[rest, 1] = np.nan
    together = MultiTaskGaussianProcess(noise=0.1, optimize=True, max_iter=40, tol=1e-3)
    together.fit(sepals, gaps)
    single = GaussianProcess("1 * gaussian", noise=0.1, optimize=True, tol=1e-3)
    single.fit(sepals[few], petals[few, 1])
    for name, found in (
        ("width alone", single.predict(sepals[rest])),
        ("with the lengths", together.predict(sepals[rest])[:, 1]),
    ):
        errors[name].append(np.sqrt(np.mean((found - petals[rest, 1]) ** 2)))

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), width_ratios=[1.6, 1])
    mean, std = machine.predict(x[:, None], return_std=True)
    for t, colour in enumerate(("#0072B2", "#D55E00")):
        left.plot(x, mean[:, t], color=colour)
        left.fill_between(
            x, mean[:, t] - 2 * std[:, t], mean[:, t] + 2 * std[:, t], color=colour, alpha=0.2, lw=0
        )
        left.plot(x, readings[:, t], "o", color=colour, ms=4, label=("first", "second")[t])
    left.plot(x[22:], truth[22:, 1], ":", color="#262626", label="second, not read")
    left.plot(x, alone.predict(x[:, None]), "--", color="#999999", label="second, alone")
    left.legend(loc="lower left", ncols=2)
    left.set(xlabel="x", ylim=(-3, 2.1))
    left.set_title("Two tasks, one of them read on the left only", loc="left")
    for (name, values), colour in zip(errors.items(), ("#999999", "#D55E00"), strict=True):
        right.plot(counts, values, "o-", color=colour, label=name)
    right.set(xscale="log", xlabel="flowers whose width was read", ylabel="error of the others")
    right.set_xticks(counts, counts)
    right.minorticks_off()
    right.set_ylim(bottom=0)
    right.set_title("Irises: width of the petals", loc="left")
    right.legend()
plt.show()
