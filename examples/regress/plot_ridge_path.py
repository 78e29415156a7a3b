"""
Kernel ridge regression: the penalty by leave-one-out
=====================================================

``KernelRidge(penalty="loo")`` tries a whole list of penalties and takes the one with the smallest
leave-one-out error. That error is exact, the one that fitting again without each row in turn would
give, and it comes from the same factorisation as the fits themselves.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.plots import RidgePathDisplay, style

# %%
# Made data, so that the truth is known: a wave that speeds up, with noise.

rng = np.random.default_rng(3)


def truth(x):
    return np.sin(6 * x**2) + 0.5 * x


NOISE = 0.35
x = np.sort(rng.uniform(0, 1.6, 120))
y = truth(x) + NOISE * rng.standard_normal(len(x))

kernel = Gaussian(scale=0.08)
machine = KernelRidge(kernel=kernel, penalty="loo", penalties=np.logspace(-4, 2, 60)).fit(
    x[:, None], y
)
print(f"chosen penalty {machine.penalty_:.3g}, leave-one-out error {machine.loo_scores_.min():.4f}")
print(machine.certificate_)

# %%
# What leave-one-out sees, beside what it stands for: the mean squared error at new points, which
# only made data can tell.

new_x = np.linspace(0, 1.6, 400)


def fitted(penalty):
    return KernelRidge(kernel=kernel, penalty=penalty).fit(x[:, None], y).predict(new_x[:, None])


new_errors = [np.mean((fitted(p) - truth(new_x)) ** 2) + NOISE**2 for p in machine.penalties_]

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.plot(machine.penalties_, new_errors, "--", color="#009E73", label="new points, expected")
    left.set_title("The path", loc="left")
    RidgePathDisplay.from_estimator(machine, ax=left)
    left.set_ylabel("mean squared error")
    left.set_ylim(bottom=0)

    right.plot(x, y, "o", ms=4, color="#999999", label="data")
    fits = {"too small: 1e-4": 1e-4, "too large: 30": 30.0}
    fits[f"chosen: {machine.penalty_:.2g}"] = machine.penalty_
    for (name, penalty), colour in zip(
        fits.items(), ("#D55E00", "#0072B2", "#262626"), strict=True
    ):
        right.plot(new_x, fitted(penalty), color=colour, lw=1 if "too" in name else 2, label=name)
    right.set(xlabel="x", ylabel="y", ylim=(y.min() - 0.9, y.max() + 0.4))
    right.set_title("Three of the fits", loc="left")
    right.legend(ncols=2, loc="lower left")
plt.show()
