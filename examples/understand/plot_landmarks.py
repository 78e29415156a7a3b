"""
How many landmarks?
===================

Left: what landmarks leave out of a kernel, trace(K - FF') / trace(K), against their number, for
three scales of a Gaussian kernel. Right: the error of a ridge regression on new rows with these
landmarks in place of the kernel; dashed, with the kernel itself. The wider the kernel, the fewer
landmarks it takes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from mercer import KernelRidge
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

X, y = make_friedman1(1000, noise=1.0, random_state=0)
train, test, targets, truth = X[:700], X[700:], y[:700], y[700:]
numbers = [10, 20, 40, 80, 160, 320]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for scale in (0.7, 1.5, 3.0):
    machine = KernelRidge("loo", Gaussian(scale))
    left_out, errors = [], []
    for m in numbers:
        few = machine.set_params(approximation=Nystrom(m)).fit(train, targets)
        left_out.append(few.approximation_error_.value)
        errors.append(np.sqrt(np.mean((few.predict(test) - truth) ** 2)))
    exact = machine.set_params(approximation=None).fit(train, targets)
    (line,) = left.loglog(numbers, left_out, "o-", ms=4, label=f"scale {scale:g}")
    right.semilogx(numbers, errors, "o-", ms=4, color=line.get_color())
    best = np.sqrt(np.mean((exact.predict(test) - truth) ** 2))
    right.axhline(best, color=line.get_color(), ls="--", lw=1)
left.set(xlabel="landmarks", ylabel="left out of the trace", title="Gaussian kernels, ten columns")
right.set(xlabel="landmarks", ylabel="root mean square error", title="KernelRidge on new rows")
left.legend(frameon=False, fontsize=8)
plt.show()
