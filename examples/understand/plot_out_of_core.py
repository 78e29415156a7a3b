"""
Rows that memory does not hold
==============================

The same ridge regression, once on an array and once on blocks that a function makes for each pass.
Memory of the first grows with the rows; the second holds sums of the size of its features. The
answers agree.
"""

import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.blocks import blocks_of
from mercer.kernels import Polynomial

machine = KernelRidge(1.0, Polynomial(2, 1.0))


def block(number):
    X = np.random.default_rng(number).standard_normal((1000, 8))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def peak(work):
    """Return what some work returns, and the most memory that it held, in megabytes."""
    tracemalloc.start()
    found = work()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return found, most


def in_memory(count):
    X, y = (np.concatenate(parts) for parts in zip(*map(block, range(count)), strict=True))
    return machine.fit(X, y).predict(block(0)[0])


def in_blocks(count):
    return machine.fit(blocks_of(lambda: map(block, range(count)))).predict(block(0)[0])


in_blocks(1)
counts, held = [5, 10, 20, 40], {"an array": [], "blocks": []}
for count in counts:
    whole, most = peak(lambda count=count: in_memory(count))
    held["an array"].append(most)
    apart, most = peak(lambda count=count: in_blocks(count))
    held["blocks"].append(most)
    assert np.abs(whole - apart).max() < 1e-9

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, most in held.items():
    axes.loglog(1000 * np.array(counts), most, "o-", ms=4, label=name)
axes.set(xlabel="rows", ylabel="most memory held, MB", title="Ridge regression on 45 features")
axes.legend(frameon=False)
plt.show()
