"""
Support vector classification: margin and support vectors
=========================================================

The optimality conditions of the classifier sort the training rows into three zones, and the zones
are places in the picture: beyond the margin (coefficient zero), on its border (between zero and C),
and inside it or on the wrong side (at C). The certificate checks just that.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.kernels import Gaussian
from mercer.plots import MarginDisplay

X, y = make_moons(240, noise=0.24, random_state=4)
machine = SVC(Gaussian(scale=0.6), C=5.0).fit(X, y)
print(machine.certificate_)

# %%
# Zones are measured from the decision function; the coefficients, which the solver found, say the
# same.

zone = machine.zones(X, y).zone
size = np.zeros(len(y))
size[machine.support_] = np.abs(machine.dual_coef_)
for name in ("beyond", "on", "inside"):
    rows = zone == name
    print(f"{name:<7}{rows.sum():>4} rows, coefficients from {size[rows].min():.3f}", end=" ")
    print(f"to {size[rows].max():.3f}")

# %%
# The same in the plane.

MarginDisplay.from_estimator(machine, X, y)
plt.show()
