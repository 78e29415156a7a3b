"""
Support vector regression
=========================

Errors up to epsilon cost nothing. So the rows inside the tube have no say in where it runs: only
those on its border or outside carry the function. The nu form turns the question round: it is told
what share of the rows may be outside, and finds the width.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR
from mercer.kernels import Gaussian
from mercer.plots import TubeDisplay, style

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 10, 120))[:, None]
y = np.sin(x[:, 0]) + 0.1 * x[:, 0] + 0.15 * rng.standard_normal(120)
y[[20, 60, 100]] += [1.6, -1.5, 1.4]  # three readings that went wrong

wide = SVR(Gaussian(1.2), C=5.0, epsilon=0.3).fit(x, y)
share = SVR(Gaussian(1.2), C=5.0, nu=0.5).fit(x, y)
print(wide.certificate_)
print(f"nu = 0.5 stands for epsilon = {share.epsilon_:.3f}")

# %%
# Both tubes. The outliers pull no harder than any row outside does: the slack counts as it is, not
# squared.

with style():
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True)
    for ax, machine in zip(axes, (wide, share), strict=True):
        TubeDisplay.from_estimator(machine, x, y, ax=ax)
plt.show()
