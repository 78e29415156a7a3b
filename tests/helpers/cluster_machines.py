"""Machines that are fitted on a cluster, their targets, and the rows."""

import numpy as np

from helpers.block_machines import block_machines
from mercer import KernelRidge
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

RNG = np.random.default_rng(0)
X = np.abs(np.concatenate([RNG.standard_normal((60, 2)), RNG.standard_normal((40, 2)) + 4.0]))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = np.where(X.sum(axis=1) > 3.0, "far", "near")
KERNEL = Nystrom(12).of(Gaussian(2.0), X)

MACHINES = [(KernelRidge(0.1), Y), *block_machines(KERNEL, Y, LABELS).values()]


def named(value):
    return type(value[0]).__name__ if isinstance(value, tuple) else None
