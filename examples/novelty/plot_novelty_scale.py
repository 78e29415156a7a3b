"""
The scale of a detector, without labels
=======================================

A one-class machine learns handwritten digits of nine kinds; the tenth comes only afterwards. The
scale of the kernel decides how well it is ranked below the others. `tune` needs no novel row for
that: it compares rows left out with artificial ones. Where the border lies is another question.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import OneClassSVM
from mercer.kernels import Gaussian, resolve
from mercer.selection import roc, tune

UNSEEN, NU = 3, 0.1
X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(np.flatnonzero(y != UNSEEN))
train, held, later = X[order[:700]], X[order[700:1000]], X[order[1000:]]
novel = X[y == UNSEEN]

scales = resolve("gaussian", train).scale * 2.0 ** (np.arange(-5, 4) / 2)
grid = {"kernel": [Gaussian(scale) for scale in scales]}
found = tune(OneClassSVM(nu=NU), train, grid=grid)
print(found)

# %%
# The machines are fitted again to all rows, to see what truly novel ones would have said. The
# border that belongs to the plane rejects a share nu of the rows *learnt from*; at small scales
# nearly every new row is outside. The quantile nu of scores of rows that were held back keeps its
# word at any scale.

area, own, taken, detected = [], [], [], []
for kernel in grid["kernel"]:
    machine = OneClassSVM(kernel, nu=NU).fit(train)
    common, unseen = machine.score_samples(later), machine.score_samples(novel)
    which = np.repeat([1, 0], [len(common), len(unseen)])
    area.append(roc(which, np.concatenate([common, unseen])).area)
    own.append((common < machine.offset_).mean())
    border = np.quantile(machine.score_samples(held), NU)
    taken.append((common < border).mean())
    detected.append((unseen < border).mean())

BLUE, ORANGE, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#333333"
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.plot(scales, area, c=INK, marker="o", label="digits of the unseen kind")
left.plot(scales, found.scores.mean(axis=1), c=BLUE, marker="s", label="artificial rows (tune)")
left.set_title("Area under the ROC curve", loc="left", size=10)
right.plot(scales, own, c=ORANGE, marker="o", label="false alarms, border of the plane")
right.plot(scales, taken, c=BLUE, marker="s", label="false alarms, border from rows held back")
right.plot(scales, detected, c=GREEN, marker="^", label="unseen kind found, same border")
right.axhline(NU, c=INK, lw=0.8, ls=":")
right.set_title("Share called novel", loc="left", size=10)
for ax in (left, right):
    ax.axvline(found.best_params["kernel"].scale, c=INK, lw=0.8, ls="--")
    ax.set_xscale("log", base=2)
    ax.set_xlabel("scale; dashed: chosen without labels")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
