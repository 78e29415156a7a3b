"""Feature spaces: evaluation is an inner product, and minimisers lie in the span of the rows."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import SVC, KernelRidge, LogisticRegression
from mercer.kernels import Gaussian, Linear, Polynomial, RationalQuadratic, exp

RNG = np.random.default_rng(2)
X, Z = RNG.uniform(-1.5, 1.5, size=(10, 1)), np.linspace(-2.5, 2.5, 30)[:, None]
EVERYWHERE = np.vstack([X, Z])
Y = np.sin(2 * X[:, 0])
KERNELS = [Gaussian(1.0), RationalQuadratic(2.0, 2.0), Polynomial(12), exp(Linear())]
PENALTY = 0.05


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_the_reproducing_property(k):
    phi = k.features(EVERYWHERE, tol=1e-9 * k.diag(EVERYWHERE).max())
    a, b = RNG.normal(size=10), RNG.normal(size=30)
    f, g = a @ phi(X), b @ phi(Z)
    size = np.sqrt((a @ k(X) @ a) * (b @ k(Z) @ b))
    np.testing.assert_allclose(f @ g, a @ k(X, Z) @ b, atol=1e-7 * size)
    np.testing.assert_allclose(f @ f, a @ k(X) @ a, rtol=1e-6)
    lengths = np.sqrt(k.diag(Z))
    values = k(Z, X) @ a
    assert (np.abs(phi(Z) @ f - values) <= 1e-7 * np.linalg.norm(f) * lengths).all()
    assert (np.abs(values) <= np.linalg.norm(f) * lengths * (1 + 1e-7)).all()


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_ridge_over_the_whole_space(k):
    phi = k.features(EVERYWHERE, tol=1e-11 * k.diag(EVERYWHERE).max())
    F = phi(X)
    w = np.linalg.solve(F.T @ F + PENALTY * np.eye(phi.dimension), F.T @ Y)
    span = np.linalg.qr(F.T)[0]
    assert np.linalg.norm(w - span @ (span.T @ w)) < 1e-8 * np.linalg.norm(w)
    machine = KernelRidge(PENALTY, k, bias=False).fit(X, Y)
    np.testing.assert_allclose(F @ w, machine.predict(X), atol=1e-6)
    alpha = np.linalg.solve(k(X) + PENALTY * np.eye(10), Y)
    np.testing.assert_allclose(w @ w, alpha @ k(X) @ alpha, rtol=1e-4)


def test_a_smooth_loss_over_the_whole_space():
    k = Gaussian(1.0)
    F = k.features(EVERYWHERE, tol=1e-10)(X)
    signs = np.where(Y > 0, 1.0, -1.0)

    def risk(w):
        margins = signs * (F @ w)
        value = np.logaddexp(0, -margins).sum() + PENALTY / 2 * w @ w
        return value, F.T @ (-signs / (1 + np.exp(margins))) + PENALTY * w

    start = RNG.normal(size=F.shape[1])
    w = minimize(risk, start, jac=True, options={"gtol": 1e-10}).x
    span = np.linalg.qr(F.T)[0]
    outside = [np.linalg.norm(v - span @ (span.T @ v)) for v in (start, w)]
    assert outside[0] > 1
    assert outside[1] < 1e-6
    machine = LogisticRegression(k, penalty=PENALTY, bias=False).fit(X, Y > 0)
    np.testing.assert_allclose(F @ w, machine.decision_function(X), atol=1e-6)


def test_the_norm_of_a_support_vector_machine():
    machine = SVC(Gaussian(1.0), C=5.0, tol=1e-8).fit(X, Y > 0)
    b = machine.dual_coef_
    squared = b @ Gaussian(1.0)(machine.support_vectors_) @ b
    np.testing.assert_allclose(1 / machine.margin_**2, squared, rtol=1e-10)
