"""Ridge and Gaussian processes on samples far from zero, and bounds of what they predict."""

import numpy as np
import pytest

from mercer import GaussianProcess, KernelRidge, Status, certify, load, save
from mercer.approximation import Nystrom
from mercer.gram.build import factor_gram
from mercer.kernels import Gaussian, Polynomial
from mercer.problems import Coefficients, LinearSystem

pytestmark = pytest.mark.numerics


def exact(X, y, penalty, Z):
    """Plain ridge with a constant on rows less their mean, moved in longdouble."""
    first = X[0].astype(np.longdouble)
    A, B = (rows.astype(np.longdouble) - first for rows in (X, Z))
    A, B = ((rows - A.mean(axis=0)).astype(float) for rows in (A, B))
    K = A @ A.T + penalty * np.eye(len(y))
    coef = np.linalg.solve(K, y - y.mean())
    return B @ (A.T @ coef) + y.mean()


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("shape", [(60, 100), (60, 59), (60, 5)])
@pytest.mark.parametrize(
    "machine", [KernelRidge(0.1), GaussianProcess("linear", noise=0.1, bias=True)], ids=repr
)
def test_an_offset_costs_no_digits(machine, shape, offset, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    y = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    X += offset
    Z = X[:5] + 0.3
    fitted = machine.fit(X, y)
    assert fitted.solution_.status is Status.SOLVED and fitted.certificate_.ok
    np.testing.assert_allclose(fitted.predict(Z), exact(X, y, 0.1, Z), atol=1e-10)
    save(fitted, tmp_path / "model.mercer")
    np.testing.assert_array_equal(load(tmp_path / "model.mercer").predict(Z), fitted.predict(Z))


def test_weights_and_constant_are_those_of_rows_as_given():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3)) + 2.0**20
    machine = KernelRidge(0.1).fit(X, X @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        X @ machine.coef_ + machine.intercept_, machine.predict(X), rtol=1e-9
    )


def test_leave_one_out_penalties_do_not_see_an_offset():
    rng = np.random.default_rng(2)
    X = np.round(rng.standard_normal((30, 40)) * 1024) / 1024
    y = X[:, 0] + rng.standard_normal(30)
    near, far = KernelRidge("loo").fit(X, y), KernelRidge("loo").fit(X + 2.0**25, y)
    assert far.penalty_ == pytest.approx(near.penalty_, rel=1e-7)
    np.testing.assert_allclose(far.predict(X + 2.0**25), near.predict(X), atol=1e-8)


def test_posterior_spread_does_not_see_an_offset():
    rng = np.random.default_rng(3)
    X = np.round(rng.standard_normal((30, 40)) * 1024) / 1024
    y = rng.standard_normal(30)
    near = GaussianProcess("linear", noise=0.5, bias=True).fit(X, y)
    far = GaussianProcess("linear", noise=0.5, bias=True).fit(X + 2.0**25, y)
    for a, b in zip(
        near.predict(X[:4] + 0.5, return_std=True),
        far.predict(X[:4] + (2.0**25 + 0.5), return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(b, a, atol=1e-8)
    assert far.log_marginal_likelihood_value_ == pytest.approx(near.log_marginal_likelihood_value_)


# --- what the certificate says of predictions ----------------------------------------------------


def values_of(F, y, penalty):
    """Values of the exact solution, by singular values."""
    U, sigma, _ = np.linalg.svd(F, full_matrices=False)
    return U @ ((sigma**2 / (sigma**2 + penalty))[:, None] * (U.T @ y))


@pytest.mark.parametrize("error", [1e-12, 1e-7, 1e-4, 1e-1])
@pytest.mark.parametrize("penalty", [1e-8, 1e-2])
def test_the_bound_holds_for_badly_scaled_features(error, penalty):
    rng = np.random.default_rng(4)
    F = rng.standard_normal((50, 4)) * [1e4, 1.0, 1.0, 1e-2]
    y = rng.standard_normal((50, 1))
    A = F.T @ F + penalty * np.eye(4)
    weights = np.linalg.solve(A, F.T @ y) + error * rng.standard_normal((4, 1)) / [
        [1e4],
        [1],
        [1],
        [1e-2],
    ]
    system = LinearSystem(factor_gram(np.asarray, F), y, np.array([penalty]), np.ones(50), False)
    found = certify(system, Coefficients(np.zeros((0, 1)), np.zeros(1), weights))
    off = np.linalg.norm(F @ weights - values_of(F, y, penalty)) / np.linalg.norm(y)
    assert off <= found.quantities.prediction_error * (1 + 1e-6) + 1e-12
    assert found.ok == (found.quantities.prediction_error <= found.tol)
    if error > 1e-6:
        assert not found.ok and "known to" in found.statement


@pytest.mark.filterwarnings("ignore")
def test_products_of_an_outlier_under_a_polynomial_are_not_certified():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    X[3, 1] = 1e10
    machine = KernelRidge(1e-6, Polynomial(2)).fit(X, y)
    assert not machine.certificate_.ok


@pytest.mark.filterwarnings("ignore:.*stopped making progress")
@pytest.mark.parametrize(("scale", "ok"), [(3.0, True), (100.0, False), (1000.0, False)])
def test_landmarks_under_a_wide_kernel_say_how_far_predictions_are_known(scale, ok):
    """Values at landmarks round, and the inverse of a singular matrix blows that up."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    machine = KernelRidge(1e-12, Gaussian(scale), approximation=Nystrom(20)).fit(X, y)
    assert machine.certificate_.ok == ok
    moved = machine.predict(X * (1 + 2.0**-52))  # one rounding of the rows
    off = np.linalg.norm(moved - machine.predict(X)) / np.linalg.norm(y - y.mean())
    assert off <= machine.certificate_.quantities.prediction_error
