"""Rows, targets, and a kernel for every rule by which parameters are learnt."""

import numpy as np

from mercer.kernels import (
    ChiSquared,
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    exp,
    polynomial,
)

rng = np.random.default_rng(0)
X = rng.random((12, 3))
X[5] = X[4]  # distances of zero off the diagonal, too
Y = rng.normal(size=(12, 2))
WEIGHTS = rng.integers(1, 4, 12).astype(float)
KERNELS = [
    Gaussian(0.7),
    Gaussian([0.5, 1.0, 2.0]),
    2.0 * Laplacian(0.8) + Constant(0.3),
    Laplacian([1.0, 2.0, 3.0]) * Gaussian(0.6),
    Matern(0.5, 0.7),
    Matern(1.5, 0.7),
    Matern(2.5, [0.5, 0.6, 0.7]),
    Matern(3.3, 0.9),
    RationalQuadratic(0.7, 1.3),
    3.0 * RationalQuadratic(1.7, [1.0, 2.0, 0.3]) * Matern(1.5, 1.0),
    ChiSquared(0.5),
    Polynomial(3, 0.4),
    Polynomial(1, 0.4),
    (0.5 * Gaussian(0.6) + Linear()) ** 2,
    exp(0.3 * Polynomial(2, 0.5)),
    polynomial(0.7 * Matern(1.5, 0.5), [0.1, 0.0, 2.0, 1.0]),
    (Gaussian(0.7) * Polynomial(2, 0.5) + Linear()).on([0, 2]).normalized(),
    Gaussian([0.3, 0.4]).on([0, 1]).scaled_by(lambda X: X.sum(axis=1)),
    (2.0 * RationalQuadratic()).after(np.square),
    (2.0 * Linear()).normalized(),
]
