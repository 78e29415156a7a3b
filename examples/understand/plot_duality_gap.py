"""
The duality gap while a fit runs
================================

A solver that is stopped early is not lost: it has an answer, and the duality gap says how far that
can be from the optimum. Here a fit is stopped again and again, judged, and resumed where it was.
The violation of the optimality conditions (LIBSVM's stopping rule) and the gap both fall; the
accuracy on new rows is settled long before.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC
from mercer.kernels import Gaussian

X, y = make_moons(1000, noise=0.3, random_state=0)
X_new, y_new = make_moons(3000, noise=0.3, random_state=1)

machine = SVC(Gaussian(0.5), C=100.0, tol=1e-6, warm_start=True, max_iter=1)
steps, gaps, violations, errors = [0], [], [], []
while len(steps) < 60:
    machine.set_params(max_iter=max(20, steps[-1] // 4))  # judged more rarely as it goes on
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that is what we are looking at
        machine.fit(X, y)
    steps.append(steps[-1] + machine.n_iter_)
    gaps.append(machine.certificate_.quantities.relative_gap)
    violations.append(machine.certificate_.quantities.violation)
    errors.append(1 - machine.score(X_new, y_new))
    if machine.solution_.status.ok:
        break
print(machine.certificate_)

# %%
# Judged from outside after every stop, in double precision.

BLUE, ORANGE, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#333333"
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(steps[1:], violations, color=ORANGE, lw=1.6, label="violation of the conditions")
left.plot(steps[1:], gaps, color=BLUE, lw=2, label="relative duality gap")
left.axhline(1e-3, color="#999999", lw=0.8, ls="--")
left.annotate("the default tol", (steps[1], 1.2e-3), color="#777777", size=9)
left.set(xscale="log", yscale="log", xlabel="pair steps")
left.set_title("What is left to gain, at most", loc="left")
left.legend(frameon=False, loc="lower left")
right.plot(steps[1:], 100 * np.array(errors), color=INK, lw=2)
right.set(xscale="log", xlabel="pair steps", ylabel="error on new rows, %", ylim=(0, None))
right.set_title("What a user would notice", loc="left")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
