"""
Fewer support vectors
=====================

A kernel machine compares each new row with all of its vectors. `mercer.compress` keeps a few, gives
them the best coefficients, and states how far the function moved. Vectors that may move do it with
fewer still.
"""

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, compress
from mercer.kernels import Gaussian

BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"

# %%
# Two classes in the plane: 16 of the support vectors draw nearly the same border, and 16 that moved
# come closer.

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2))
y = np.hypot(*X.T) + 0.25 * rng.normal(size=300) > 1.1
machine = SVC(Gaussian(0.8), C=2.0).fit(X, y)
shown = {
    f"all {len(machine.support_)} vectors": machine,
    "16 chosen": compress(machine, n_vectors=16),
    "16 moved": compress(machine, n_vectors=16, move=True),
}
side = np.linspace(-3, 3, 90)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained", sharey=True)
for ax, (name, one) in zip(axes, shown.items(), strict=True):
    height = one.decision_function(plane).reshape(90, 90)
    ax.contourf(side, side, height, np.linspace(-2.5, 2.5, 11), cmap="PuOr_r", extend="both")
    ax.contour(side, side, height, [0], colors="black", linewidths=1.2)
    ax.plot(*one.support_vectors_.T, "o", mfc="white", mec="black", ms=4.5)
    ax.set(title=name, aspect="equal", xlim=(-3, 3), ylim=(-3, 3))
    if one is not machine:
        share = one.certificate_.quantities.relative_error
        ax.set_title(f"{name}: |f - g| = {share:.1%} of |f|")
plt.show()

# %%
# Mail that is spam or not, 2000 letters to learn from and 2601 others: error of the function and
# of its labels, and the time that a prediction takes, against the number of vectors.

here = Path(__file__).parents[1] if "__file__" in globals() else Path("..")
mail = np.load(here / "data" / "spambase.npz")
rows, labels = np.log1p(mail["X"]), mail["y"]
rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
order = rng.permutation(len(rows))
learn, new = order[:2000], order[2000:]
machine = SVC(Gaussian(6.0), C=3.0).fit(rows[learn], labels[learn])
full = machine.decision_function(rows[new])


def seconds(one):
    """Return the processor time of a prediction, the least of five."""
    times = []
    for _ in range(5):
        start = time.process_time()
        one.decision_function(rows[new])
        times.append(time.process_time() - start)
    return min(times)


counts = [10, 20, 40, 80, 160, 320, len(machine.support_)]
small = [compress(machine, n_vectors=m, X=rows[new]) for m in counts[:-1]] + [machine]
error = [one.certificate_.quantities.relative_error for one in small[:-1]]
changed = [np.mean((one.decision_function(rows[new]) > 0) != (full > 0)) for one in small]
wrong = [np.mean(one.predict(rows[new]) != labels[new]) for one in small]
times = [1e3 * seconds(one) for one in small]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
left.semilogx(counts[:-1], error, "o-", color=RED)
left.set(title="|f - g| / |f|", xlabel="vectors", ylim=(0, 1))
middle.semilogx(counts, 100 * np.array(wrong), "o-", color=BLUE, label="wrong")
middle.semilogx(counts, 100 * np.array(changed), "o-", color=GREEN, label="other than before")
middle.set(title="Labels of new rows, %", xlabel="vectors", ylim=(0, None))
middle.legend(frameon=False)
right.plot(counts, times, "o-", color="0.3")
right.set(title="Time to predict 2601 rows, ms", xlabel="vectors", ylim=(0, None))
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
print(f"{len(machine.support_)} vectors: {times[-1]:.0f} ms, {wrong[-1]:.1%} wrong")
print(f"{counts[3]} vectors: {times[3]:.1f} ms, {wrong[3]:.1%} wrong, {changed[3]:.1%} other")
