"""
Ridge regression on many rows
=============================

The distance that an arm of eight links reaches, from its angles: 3000 rows, a Gaussian kernel, one
penalty. Left: error on new rows against the time of a fit, with features by landmarks and random
ones, in Mercer (whose time has the certificate in it) and in scikit-learn; at so few rows nobody is
far ahead. Right: the same against the number of features, which is what memory goes with; the
dashed line is the exact kernel, with as many features as there are rows.
"""

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter, NullLocator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from mercer import KernelRidge
from mercer.approximation import Nystrom, RandomFeatures
from mercer.kernels import Gaussian

scale, penalty = 2.5, 1e-3
angles = np.random.default_rng(0).uniform(-np.pi / 2, np.pi / 2, (4000, 8))
joints = np.exp(1j * np.cumsum(angles, axis=1)).sum(axis=1)
reach = np.abs(joints - 2.0)
X, y, Z, z = angles[:3000], reach[:3000], angles[3000:], reach[3000:]
gamma, numbers = 0.5 / scale**2, [50, 100, 200, 400]


def error(machine):
    return np.sqrt(np.mean((machine.predict(Z) - z) ** 2))


fits = {
    "Mercer, Nystrom": lambda m: KernelRidge(penalty, Gaussian(scale), approximation=Nystrom(m)),
    "Mercer, RandomFeatures": lambda m: KernelRidge(
        penalty, Gaussian(scale), approximation=RandomFeatures(m)
    ),
    "scikit-learn, Nystroem": lambda m: make_pipeline(
        Nystroem(gamma=gamma, n_components=m, random_state=0), Ridge(penalty)
    ),
    "scikit-learn, RBFSampler": lambda m: make_pipeline(
        RBFSampler(gamma=gamma, n_components=m, random_state=0), Ridge(penalty)
    ),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for (name, make), style in zip(fits.items(), ("o-", "s-", "o:", "s:"), strict=True):
    seconds, errors = [], []
    for m in numbers:
        begun = process_time()
        machine = make(m).fit(X, y)
        seconds.append(process_time() - begun)
        errors.append(error(machine))
    left.loglog(seconds, errors, style, ms=4, label=name)
    right.loglog(numbers, errors, style, ms=4)
exact = error(KernelRidge(penalty, Gaussian(scale)).fit(X, y))
right.axhline(exact, color="0.5", ls="--", lw=1)
right.text(numbers[0], exact, "the exact kernel", va="bottom", fontsize=8, color="0.4")
left.xaxis.set_minor_formatter(NullFormatter())
right.xaxis.set_minor_formatter(NullFormatter())
left.set_yticks([0.5, 0.6, 0.8, 1.0, 1.2], ["0.5", "0.6", "0.8", "1", "1.2"])
left.yaxis.set_minor_locator(NullLocator())
right.set_xticks(numbers, [str(m) for m in numbers])
left.set(xlabel="seconds of processor time", ylabel="root mean square error on new rows")
right.set(xlabel="features")
left.legend(frameon=False, fontsize=8)
plt.show()
