"""
Which features matter? Elimination by the margin
================================================

The 30 measurements of 569 tumours, and beside them 30 columns that are the same measurements
shuffled over the tumours: they look alike and say nothing. A Gaussian support vector machine is
fitted, the column without which the norm of w changes least is left out, and so on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from mercer import SVC
from mercer.kernels import Gaussian
from mercer.selection import FeatureElimination

data = load_breast_cancer()
rng = np.random.default_rng(0)
rows = rng.permutation(len(data.data))[:300]
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
shuffled = np.column_stack([rng.permutation(column) for column in X.T])
X, y = np.hstack([X, shuffled])[rows], data.target[rows]

selector = FeatureElimination(SVC(Gaussian(20.0), C=10.0), step=0.2).fit(X, y)
kept = selector.get_support(indices=True)
print(f"{selector.n_features_} of 60 columns, {np.sum(kept >= 30)} of them shuffled")
print(", ".join(data.feature_names[kept[kept < 30]]))

# %%
# Left: accuracy on rows left out, by how many columns are used; every fold makes its own
# elimination. Right: the order in which columns were left out on all rows.

INK, COLOURS = "#333333", ("#0072B2", "#D55E00")
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
axes[0].plot(selector.sizes_, 100 * selector.scores_.mean(axis=1), "o-", c=INK)
axes[0].axvline(selector.n_features_, c=COLOURS[1], ls=":")
axes[0].set(xscale="log", xlabel="columns used", ylabel="accuracy on rows left out (%)")
axes[0].set_xticks([1, 2, 5, 10, 20, 60], [1, 2, 5, 10, 20, 60])
axes[0].minorticks_off()

left = [np.sum(features >= 30) for features in selector.path_.features]
real = [np.sum(features < 30) for features in selector.path_.features]
sizes = selector.path_.sizes
axes[1].plot(sizes, real, "o-", c=COLOURS[0], label="measurements")
axes[1].plot(sizes, left, "o-", c=COLOURS[1], label="shuffled columns")
axes[1].set(xlabel="columns left", ylabel="how many of each kind", xlim=(61, 0))
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
