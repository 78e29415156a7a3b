"""The bound by landmarks: its gradient, its formula written out, and what it bounds."""

import numpy as np
import pytest
from helpers.evidence_kernels import KERNELS, WEIGHTS, X, Y

from mercer.kernels import Gaussian
from mercer.kernels.derivatives import parameters
from mercer.machines.gaussian_process.marginal_likelihood import JITTER, evidence
from mercer.problems import Evidence, KernelParameters

NOISE = 0.3
LANDMARKS = X[[0, 3, 5, 7, 9]]


def question(kernel, bias, landmarks, rows=X, targets=Y, weights=WEIGHTS):
    family = KernelParameters(kernel, tuple(each.name for each in parameters(kernel)))
    logs = np.append(family.logs, np.log(NOISE))
    free = np.full(len(logs), np.inf)
    problem = Evidence(
        rows,
        family,
        targets,
        weights,
        bias,
        NOISE,
        True,
        -free,
        free,
        logs[None, :],
        1e-4,
        landmarks,
    )
    return problem, logs


def written_out(kernel, bias):
    """Return the bound of Titsias for the repeated rows, with dense matrices."""
    often = np.repeat(np.arange(len(X)), WEIGHTS.astype(int))
    rows, targets, (n, t) = X[often], Y[often], Y[often].shape
    between = kernel(LANDMARKS)
    between = between + JITTER * np.mean(np.diag(between)) * np.eye(len(LANDMARKS))
    across = kernel(rows, LANDMARKS)
    Q = across @ np.linalg.solve(between, across.T)
    C = Q + NOISE * np.eye(n)
    G, determinant = np.linalg.inv(C), np.linalg.slogdet(C)[1]
    if bias:
        u = G.sum(axis=1)
        determinant += np.log(u.sum())
        G = G - np.outer(u, u) / u.sum()
    spread = determinant + (n - bias) * np.log(2 * np.pi)
    value = -0.5 * (np.trace(targets.T @ G @ targets) + t * spread)
    return value - 0.5 * t / NOISE * (np.sum(kernel.diag(rows)) - np.trace(Q))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_value_and_gradient(kernel, bias):
    problem, logs = question(kernel, bias, LANDMARKS)
    value, gradient = evidence(problem, logs)
    assert np.isclose(value, written_out(kernel, bias), rtol=1e-9, atol=1e-7)
    step = 1e-5
    expected = [
        (evidence(problem, logs + step * e)[0] - evidence(problem, logs - step * e)[0]) / (2 * step)
        for e in np.eye(len(logs))
    ]
    assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", KERNELS[:12], ids=str)
def test_it_is_a_bound(kernel, bias):
    exact = evidence(*question(kernel, bias, None))[0]
    bounds = [evidence(*question(kernel, bias, X[:m]))[0] for m in (2, 5, 8)]
    assert all(low <= high + 1e-7 for low, high in zip(bounds, [*bounds[1:], exact], strict=True))


def test_all_rows_as_landmarks_are_the_kernel_itself():
    rows = np.unique(X, axis=0)
    y, weights = np.sin(4 * rows[:, :1]), np.ones(len(rows))
    kernel = Gaussian(0.2)
    found = evidence(*question(kernel, False, rows, rows, y, weights))
    expected = evidence(*question(kernel, False, None, rows, y, weights))
    assert np.isclose(found[0], expected[0], atol=1e-5)
    assert np.allclose(found[1], expected[1], atol=1e-4)
