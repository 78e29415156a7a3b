"""Coefficients of rows and weights of features are one function, whatever rounding does."""

import numpy as np
import pytest
from scipy import sparse

from mercer import GaussianProcess, KernelRidge, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Linear, Polynomial
from mercer.problems import Coefficients, LinearSystem
from mercer.solvers.linear_algebra import dual_form

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
n = 40
X = rng.standard_normal((n, 3))
noise = rng.standard_normal(n)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("penalty", [1e-10, 1e-6, 1.0])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_ridge_of_targets_far_from_zero_with_hardly_a_penalty(offset, penalty, container):
    # residuals are known to 1e-8 here: over the penalty they were coefficients of another function
    machine = KernelRidge(penalty, kernel=Linear()).fit(container(X), offset + noise)
    assert machine.certificate_.ok
    w = machine.coef_
    assert np.linalg.norm(X.T @ machine.dual_coef_ - w) <= 1e-6 * np.linalg.norm(w)


def test_a_wrong_form_is_not_certified_and_an_equal_one_is():
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = LinearSystem(gram, noise[:, None], np.ones(1), np.ones(n), True)
    machine = KernelRidge(1.0, kernel=Linear()).fit(X, noise)
    a, b, w = machine.dual_coef_[:, None], np.array([machine.intercept_]), machine.coef_[:, None]
    assert certify(problem, Coefficients(a, b, w)).ok
    assert not certify(problem, Coefficients(a * (1 + 1e-5), b, w)).ok
    beside = np.linalg.svd(np.column_stack([X, np.ones(n)]).T)[2][-1:].T  # no function at all
    same = certify(problem, Coefficients(a + beside, b, w))
    assert same.ok
    left = np.linalg.norm(beside) / np.linalg.norm(noise - noise.mean())
    assert same.quantities.dual_residual == pytest.approx(left, rel=1e-6)
    assert "the coefficients a of the rows give the same function, but leave" in same.statement


@pytest.mark.parametrize("penalty", [4e-11, 1e-8, 1e-4, 1.0])
@pytest.mark.parametrize("kind", ["ridge", "ridge path", "process"])
def test_what_coefficients_leave_of_their_equations_is_stated(kind, penalty):
    one = rng.standard_normal((20, 3))
    rows = np.vstack([one, one + 1e-9 * rng.standard_normal(one.shape)])
    machine = {
        "ridge": KernelRidge(penalty, kernel=Polynomial(2)),
        "ridge path": KernelRidge("loo", kernel=Polynomial(2), penalties=[penalty]),
        "process": GaussianProcess(Polynomial(2), noise=penalty, bias=True),
    }[kind].fit(rows, noise)
    wide = rows.astype(np.longdouble)
    a = machine.dual_coef_.astype(np.longdouble)
    left = noise - (wide @ wide.T + 1) ** 2 @ a - penalty * a - machine.intercept_
    true = np.linalg.norm(left.astype(float)) / np.linalg.norm(noise - noise.mean())
    certificate = machine.certificate_
    # what the statement says holds, but for the rounding of the features, eps |K| |a|
    rounding = 1e-15 * np.abs(wide @ wide.T + 1).max() ** 2 * np.abs(a).sum()
    assert true <= 1.01 * certificate.quantities.dual_residual + float(rounding)
    assert ("but leave" in certificate.statement) == (certificate.quantities.dual_residual > 1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("columns", [3, 1300])  # decomposed, and by conjugate gradients
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_any_coefficients_are_made_to_agree(container, columns, bias):
    F = np.random.default_rng(1).standard_normal((2 * columns, columns)) / np.sqrt(columns)
    F[:, 0] *= 1e-3
    s = np.random.default_rng(2).uniform(0.5, 2.0, len(F))
    w = np.random.default_rng(3).standard_normal((columns, 2)) * [1.0, 1e-6]
    start = F @ w
    if columns > 3:  # as iterations leave it: near
        Z, ends = np.column_stack([F, np.ones(len(F))]), np.vstack([w, np.zeros(2)])
        start = Z @ np.linalg.solve(Z.T @ Z, ends) + 1e-6 * start
    found = dual_form(container(F), None, s, bias, start, w)
    before, after = (np.linalg.norm(F.T @ a - w, axis=0) for a in (start, found))
    assert (after <= np.maximum(1e-2 * before, 1e-8 * np.linalg.norm(w, axis=0))).all()
    if bias and columns == 3:
        assert (np.abs(found.sum(axis=0)) <= 1e-9 * np.abs(found).sum(axis=0)).all()


def test_without_digits_for_the_residuals_the_shortest_are_taken():
    F, w = X, np.ones((3, 1))
    noisy = 1e20 * noise[:, None]
    found = dual_form(F, None, np.ones(n), True, noisy, w)
    np.testing.assert_allclose(F.T @ found, w, rtol=1e-9)
    shortest = np.linalg.lstsq(np.column_stack([F, np.ones(n)]).T, [[1], [1], [1], [0]], rcond=None)
    np.testing.assert_allclose(found, shortest[0], atol=1e-9)
