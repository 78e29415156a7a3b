"""The gradient of the evidence by finite differences, for every rule of the kernels."""

import numpy as np
import pytest
from helpers.evidence_kernels import KERNELS, WEIGHTS, X, Y

from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from mercer.kernels.derivatives import parameters
from mercer.machines.gaussian_process.marginal_likelihood import evidence
from mercer.problems import Evidence, KernelParameters


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
