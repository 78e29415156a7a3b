"""
Fewer labels by asking for the right ones
=========================================

Rows are cheap, labels are not. A learner that may choose asks about the row it is least sure of:
for a support vector machine, the one nearest to the hyperplane. On digits and on spam it needs
about half of the labels that random rows would need.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import SVC
from mercer.kernels import Gaussian
from mercer.selection import ActiveLearner

digits = load_digits()
HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
spam = np.load(HERE.parent / "data" / "spambase.npz")
words = np.log(spam["X"] + 0.1)
SETS = {
    "digits": (digits.data / 16, digits.target, SVC(Gaussian(1.5), C=10.0)),
    "spam": ((words - words.mean(0)) / words.std(0), spam["y"], SVC(Gaussian(8.0), C=3.0)),
}


def curve(X, y, machine, rule, seed):
    """Return how many labels there were, and how many labels of new rows were right."""
    rng = np.random.default_rng(seed)
    pool, test = np.split(rng.permutation(len(X))[:1200], [600])
    learner = ActiveLearner(machine, X[pool], rule, random_state=seed)
    start = rng.choice(600, 20, replace=False)
    learner.teach(start, y[pool][start])
    right = []
    learner.run(
        y[pool],
        budget=160,
        batch=20,
        callback=lambda now: right.append(np.mean(now.machine_.predict(X[test]) == y[test])),
    )
    return [done.labels for done in learner.rounds_[1:]], right


figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for axis, (name, (X, y, machine)) in zip(axes, SETS.items(), strict=True):
    for rule, colour in (("margin", "C3"), ("random", "C7")):
        runs = [curve(X, y, machine, rule, seed) for seed in range(3)]
        labels, right = runs[0][0], np.array([run[1] for run in runs])
        axis.plot(labels, right.mean(0), color=colour, label=rule)
        axis.fill_between(labels, right.min(0), right.max(0), color=colour, alpha=0.2, lw=0)
        print(f"{name}, {rule}: {right.mean(0)[-1]:.3f} right with {labels[-1]} labels")
    axis.set(title=name, xlabel="labels", ylabel="share of new rows that are right")
    axis.legend(loc="lower right")
plt.show()
