"""
A kernel by few features
========================

Landmarks or random features stand in for a kernel. Left: the error of the matrix against their
number, on the digits; landmarks follow the data, random features do not look at them. Right: what
that means for a classifier, whose exact fit is the dashed line.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import SVC
from mercer.approximation import Nystrom, RandomFeatures
from mercer.kernels import Gaussian

X, y = load_digits(return_X_y=True)
X = X / 16
train, test, labels, truth = train_test_split(X, y == 3, test_size=0.3, random_state=0, stratify=y)
kernel = Gaussian(1.5)
numbers = [10, 40, 160, 640]
ways = {
    "landmarks, pivoted": Nystrom,
    "landmarks, uniform": lambda m: Nystrom(m, "uniform"),
    "random features, orthogonal": RandomFeatures,
    "random features, independent": lambda m: RandomFeatures(m, "independent"),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, way in ways.items():
    fits = [SVC(kernel, C=10.0, approximation=way(m)).fit(train, labels) for m in numbers]
    left.loglog(numbers, [fit.kernel_.error(test) for fit in fits], "o-", ms=4, label=name)
    errors = [np.mean(fit.predict(test) != truth) for fit in fits]
    right.semilogx(numbers, 100 * np.array(errors), "o-", ms=4, label=name)
exact = np.mean(SVC(kernel, C=10.0).fit(train, labels).predict(test) != truth)
right.axhline(100 * exact, color="black", ls="--", lw=1, label="exact")
left.set(xlabel="features", ylabel="error of the matrix, new rows", title="k by its features")
right.set(xlabel="features", ylabel="wrong, %", title='"Is it a three?"')
right.legend(frameon=False, fontsize=8)
plt.show()
