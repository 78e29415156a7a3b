"""
Gaussian processes: functions before and after the data
=======================================================

A Gaussian process is a distribution over functions: its covariance is the kernel. Before any data
its draws wiggle freely; after a few readings only those functions are left that pass near them, and
far from the readings the band is as wide as it was.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import GaussianProcess
from mercer.kernels import Gaussian
from mercer.plots import style

# %%
# Eight noisy readings of a wave, and a prior that expects functions of size one that turn within
# lengths of about one.

rng = np.random.default_rng(4)
x = np.array([0.3, 0.9, 1.4, 2.2, 4.4, 4.9, 5.3, 5.5])
y = np.sin(1.3 * x) + 0.1 * rng.standard_normal(len(x))
grid = np.linspace(-1, 8, 250)

machine = GaussianProcess(1.0 * Gaussian(1.0), noise=0.01)
prior = machine.sample_y(grid[:, None], 6, random_state=1)
machine.fit(x[:, None], y)
posterior = machine.sample_y(grid[:, None], 6, random_state=1)
mean, std = machine.predict(grid[:, None], return_std=True)
print(machine.certificate_)

# %%
# Six functions before the readings, six after them, with the mean and twice the standard
# deviation.

with style():
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for ax, draws, title in zip(axes, (prior, posterior), ("Prior", "Posterior"), strict=True):
        ax.plot(grid, draws, lw=0.9, alpha=0.8)
        ax.set_title(title, loc="left")
        ax.set_xlabel("x")
    axes[0].fill_between(grid, -2, 2, color="#999999", alpha=0.25, lw=0)
    axes[1].fill_between(grid, mean - 2 * std, mean + 2 * std, color="#999999", alpha=0.25, lw=0)
    axes[1].plot(grid, mean, color="#262626", lw=2, label="mean")
    axes[1].plot(x, y, "o", color="#D55E00", ms=5, label="readings")
    axes[1].legend(loc="lower left")
    axes[0].set(ylabel="f(x)", ylim=(-3.2, 3.2))
plt.show()
