"""
Bernoulli mixture of handwritten digits
=======================================

Handwritten digits in black and white are rows of 64 zeros and ones. A mixture of twenty sets of
coins finds the ways in which digits are written, without having been told what a digit is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import BernoulliMixture

X, y = load_digits(return_X_y=True)
mixture = BernoulliMixture(20, binarize=7.0, random_state=2).fit(X)
print(mixture.certificate_)

parts = mixture.predict(X)
table = np.zeros((20, 10), dtype=int)
np.add.at(table, (parts, y), 1)
agree = table.max(axis=1).sum() / len(X)
print(f"{100 * agree:.0f} % of the rows are the most common digit of their component")

# %%
# Each picture is a component: how often a pixel is black. Above it stands which digit it mostly
# holds, and how purely; the last row shows pictures drawn from the mixture.

order = np.lexsort((-mixture.weights_, table.argmax(axis=1)))
figure, axes = plt.subplots(3, 10, figsize=(11.5, 4.4), layout="constrained")
for ax, j in zip(axes[:2].ravel(), order, strict=True):
    ax.imshow(mixture.means_[j].reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
    pure = 100 * table[j].max() / table[j].sum()
    ax.set_title(f"{table[j].argmax()} ({pure:.0f} %)", size=9)
drawn, labels = mixture.sample(10, random_state=1)
for ax, row, label in zip(axes[2], drawn, labels, strict=True):
    ax.imshow(row.reshape(8, 8), cmap="Blues", vmin=0, vmax=1.3)
    ax.set_title(f"drawn ({table[label].argmax()})", size=9)
for ax in axes.ravel():
    ax.set(xticks=[], yticks=[])
figure.suptitle("Twenty components of a mixture of coins: mean pictures, main digit and its share")
plt.show()
