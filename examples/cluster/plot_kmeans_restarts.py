"""
K-means: restarts and a lower bound
===================================

The objective of K-means falls with every step, and every start ends in a minimum of its own. How
good is the best of them? The spectral relaxation bounds all partitions from below, so it says how
much, at most, anybody could still gain.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import KMeans
from mercer.kernels import Gaussian

X = load_digits().data / 16.0
options = {"n_clusters": 10, "kernel": Gaussian(2.0), "n_init": 12, "random_state": 0}
lloyd = KMeans(**options, refine=False).fit(X)
refined = KMeans(**options).fit(X)
print(refined.certificate_)
bound = refined.relaxation_
print(
    f"best objective {bound.objective:.1f}; no partition is below {bound.bound:.1f}, "
    f"so none is lower by more than {100 * bound.gap:.1f} %"
)

# %%
# Left: the way of every start, and the bound. Right: where the same starts end with Lloyd's steps
# alone, and finished by moves of single rows.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
traces = refined.solution_.value.traces
best = int(np.argmin(traces[:, -1]))
for i, trace in enumerate(traces):
    steps = np.arange(1 + int(np.argmin(trace)))  # afterwards the last value is repeated
    color, width = (ORANGE, 2.5) if i == best else (BLUE, 1.0)
    left.plot(steps, trace[steps], c=color, lw=width, zorder=3 if i == best else 2)
left.axhline(bound.bound, c=INK, ls="--", lw=1.2)
left.text(0.3, bound.bound + 3, "no partition is below this line", color=INK, va="bottom")
left.set(xlabel="step", ylabel="objective", title="12 starts; the best in orange")

order = np.argsort(traces[:, -1])
ends = [machine.solution_.value.traces[order, -1] for machine in (lloyd, refined)]
places = np.arange(1, len(order) + 1)
right.vlines(places, ends[1], ends[0], colors="#BBBBBB")
right.plot(places, ends[0], "s", c=BLUE, ms=6, label="Lloyd's steps alone")
right.plot(places, ends[1], "o", c=ORANGE, ms=6, label="finished by moves of single rows")
right.set(xlabel="start, best first", title="where they end", xticks=places)
right.legend(frameon=False, loc="upper left")
for ax in (left, right):
    ax.title.set_size(11)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
