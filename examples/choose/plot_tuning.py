"""
Tuning a grid of parameters
===========================

Which cost, which scale? A grid of 80 settings, each judged on five folds, is 400 fits for
scikit-learn's grid search. `tune` gives the same 400 scores from one matrix for each scale and one
chain of answers along the costs. On the left the mean scores: the best point, and those that are
as good within one standard error. On the right what more points cost.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.kernels import Gaussian
from mercer.plots import TuningDisplay, style
from mercer.selection import rules, tune

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X[:, :10])  # ten measurements of the cells
costs, scales = np.logspace(-1, 3, 8), np.logspace(-0.3, 1.5, 10)
machine = SVC(Gaussian(1.0))
found = tune(machine, X, y, grid={"C": costs, "kernel__scale": scales})
simple = found.points[rules.one_standard_error(found.points, found.scores)]
print(found)
print("simplest within one standard error:", dict(simple))

# %%
# The same folds, the same scores: what differs is the time.

folds = StratifiedKFold(5, shuffle=True, random_state=0)  # what `tune` makes of cv=5
sizes, ours, theirs = [(2, 2), (4, 4), (6, 6), (8, 8)], [], []
for a, b in sizes:
    grid = {"C": np.logspace(-1, 3, a), "kernel__scale": np.logspace(-0.3, 1.5, b)}
    started = time.perf_counter()
    quick = tune(machine, X, y, grid=grid)
    ours.append(time.perf_counter() - started)
    started = time.perf_counter()
    slow = GridSearchCV(machine, grid, cv=folds).fit(X, y)
    theirs.append(time.perf_counter() - started)
    assert np.abs(quick.mean - slow.cv_results_["mean_test_score"]).max() < 0.01

# %%
# Scores are flat along a ridge: a larger scale is made up for by a larger cost. The rule of one
# standard error takes the simplest point of it.

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8))
    TuningDisplay.from_tuning(found, name="SVC with a Gaussian kernel", write=False, ax=left)
    counts = [a * b for a, b in sizes]
    right.plot(counts, theirs, "s-", color="#8C8C8C", label="GridSearchCV, every fit anew")
    right.plot(counts, ours, "o-", color="#0072B2", label="tune, work shared")
    right.set(xlabel="points of the grid", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    right.set_title("569 rows, the same machine, the same scores")
    right.legend()
plt.show()
