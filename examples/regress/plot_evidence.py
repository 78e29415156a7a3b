"""
Gaussian processes: the landscape of the evidence
=================================================

The marginal likelihood of the targets has the unknown function integrated out, so it can choose
scale and noise by itself, with no rows held out. It need not have one maximum: few readings may be
a wavy function with little noise, or a trend with much. Which is found depends on where the search
starts, and the certificate claims no more than a local maximum.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import GaussianProcess
from mercer.kernels import Gaussian
from mercer.plots import style

# %%
# Twelve readings.

rng = np.random.default_rng(16)
x = np.sort(rng.uniform(0, 6, 12))
y = np.sin(2.5 * x) + 0.4 * (x - 3) + 0.35 * rng.standard_normal(len(x))
X = x[:, None]

scales, noises = np.logspace(-0.9, 1.4, 30), np.logspace(-2.2, 0.4, 24)
value = np.array(
    [
        [
            GaussianProcess(Gaussian(scale), noise=noise).log_marginal_likelihood(X, y)
            for scale in scales
        ]
        for noise in noises
    ]
)

# %%
# Two searches, from a short and from a long scale, end at two maxima.

ends = {
    "from a short scale": GaussianProcess(Gaussian(0.3), noise=0.1, optimize=True).fit(X, y),
    "from a long scale": GaussianProcess(Gaussian(6.0), noise=0.5, optimize=True).fit(X, y),
}
for name, machine in ends.items():
    found = machine.log_marginal_likelihood_value_
    print(f"{name}: {machine.kernel_}, noise {machine.noise_:.3g}, log-likelihood {found:.3f}")
print(ends["from a short scale"].certificate_)

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4))
    levels = value.max() - np.array([12, 8, 5.5, 4, 3, 2.3, 1.8, 1.5, 1.38, 1.1, 0.7, 0.4, 0.1])
    drawn = left.contour(scales, noises, value, levels=levels, cmap="viridis", linewidths=1)
    left.clabel(drawn, fontsize=7, fmt="%.1f")
    left.set(xscale="log", yscale="log", xlabel="scale", ylabel="noise variance")
    left.set_title("Logarithm of the evidence", loc="left")
    grid = np.linspace(-0.3, 6.3, 300)[:, None]
    right.plot(x, y, "o", color="#262626", ms=5)
    for (name, machine), colour in zip(ends.items(), ("#0072B2", "#D55E00"), strict=True):
        left.plot(machine.kernel_.scale, machine.noise_, "*", ms=13, color=colour, label=name)
        mean, std = machine.predict(grid, return_std=True)
        right.plot(grid, mean, color=colour, label=name)
        right.fill_between(
            grid[:, 0], mean - 2 * std, mean + 2 * std, color=colour, alpha=0.15, lw=0
        )
    left.legend(loc="lower right")
    right.legend(loc="lower left")
    right.set(xlabel="x", ylabel="y")
    right.set_title("Two explanations of the same data", loc="left")
plt.show()
