"""
Choosing a kernel
=================

`choose` tunes a small set of kernels on the same folds and takes the plainest one that is not
behind the best by more than the error of their difference. Filled: the one taken. Bars are one
standard error of the difference to the best.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, make_moons

from mercer.selection import choose

moons, sides = make_moons(300, noise=0.25, random_state=0)
cells, malignant = load_breast_cancer(return_X_y=True)
patients, progression = load_diabetes(return_X_y=True)
data = {
    "two moons": (moons, sides, "accuracy"),
    "breast cancer": (cells, malignant, "accuracy"),
    "diabetes": (patients, progression, "variance explained"),
}

# %%
# The table says what was compared, and why one was taken.

choices = {name: choose(X, y) for name, (X, y, _) in data.items()}
print(choices["two moons"])

# %%
# On the moons a plane will not do. On the other two sets all families are close, and the error of
# their differences decides.

figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for panel, (name, found) in zip(panels, choices.items(), strict=True):
    scores = np.array([one.tuning.best_score for one in found.contenders])
    errors = [one.behind_error for one in found.contenders]
    places = np.arange(len(scores))[::-1]
    for place, score, error, taken in zip(
        places, scores, errors, np.arange(len(scores)) == found.chosen, strict=True
    ):
        colour = "tab:red" if taken else "tab:blue"
        face = colour if taken else "white"
        panel.errorbar(score, place, xerr=error, fmt="o", color=colour, mfc=face, ms=8, capsize=3)
    panel.set_yticks(places, [one.name for one in found.contenders])
    panel.set_ylim(-0.6, len(scores) - 0.4)
    panel.axvline(scores.max(), color="grey", lw=0.8, ls=":")
    panel.set_xlabel(data[name][2] + ", on rows left out")
    panel.locator_params(axis="x", nbins=4)
    panel.set_title(name)
plt.show()
