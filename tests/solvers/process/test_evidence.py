"""The gradient of the evidence by finite differences, for every rule of the kernels."""

import numpy as np
import pytest

from mercer.kernels import (
    ChiSquared,
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Spectrum,
    exp,
    polynomial,
)
from mercer.kernels.parameter_slopes import parameters
from mercer.problems import Evidence, KernelParameters
from mercer.solvers.process.evidence import evidence

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


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradient(kernel, bias):
    family = KernelParameters(kernel, tuple(each.name for each in parameters(kernel)))
    logs = np.append(family.logs, np.log(0.3))
    unbounded = np.full(len(logs), np.inf)
    problem = Evidence(X, family, Y, WEIGHTS, bias, 0.3, True, -unbounded, unbounded, logs[None, :])
    _, gradient = evidence(problem, logs)
    step = 1e-5
    expected = [
        (evidence(problem, logs + step * e)[0] - evidence(problem, logs - step * e)[0]) / (2 * step)
        for e in np.eye(len(logs))
    ]
    assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def test_what_can_be_learnt():
    assert [each.name for each in parameters(0.0 * Gaussian(1.0))] == ["k1__scale"]
    assert [each.name for each in parameters(2.0 * Spectrum(2))] == ["factor"]
    assert parameters((2.0 * Linear()).normalized()) == []
    assert parameters(Polynomial(2, 0.0)) == []
