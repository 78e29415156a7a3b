"""Landmarks: projections of the kernel, never above it; four ways to draw them."""

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC, KernelRidge
from mercer.approximation import Nystrom
from mercer.approximation.nystrom import RULES
from mercer.kernels import FromFeatures, Gaussian, Linear, Polynomial, Spectrum

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3))


@pytest.mark.parametrize("sampling", RULES)
def test_it_is_a_projection(sampling):
    """K - F F' is positive semidefinite, and zero in rows and columns of landmarks."""
    kernel = Nystrom(40, sampling).of(Gaussian(1.5), X)
    F, K = kernel.phi(X), Gaussian(1.5)(X)
    assert F.shape[1] <= 40
    assert np.linalg.eigvalsh(K - F @ F.T).min() > -1e-9
    at_landmarks = kernel.phi(kernel.phi.landmarks)
    np.testing.assert_allclose(
        F @ at_landmarks.T, Gaussian(1.5)(X, kernel.phi.landmarks), atol=1e-9
    )


def test_closed_form():
    """F F' = K_nm K_mm^-1 K_mn, by an inverse."""
    kernel = Nystrom(10).of(Gaussian(1.0), X)
    Z = kernel.phi.landmarks
    cross, between = Gaussian(1.0)(X, Z), Gaussian(1.0)(Z)
    F = kernel.phi(X)
    np.testing.assert_allclose(F @ F.T, cross @ np.linalg.inv(between) @ cross.T, atol=1e-8)


@pytest.mark.parametrize("sampling", RULES)
def test_a_kernel_of_low_rank_is_exact(sampling):
    kernel = Nystrom(60, sampling).of(Polynomial(degree=2, offset=1.0), X)
    assert kernel.phi.dimension == 10  # C(3 + 2, 2)
    assert kernel.error(X) < 1e-9
    assert Nystrom(60, sampling).of(0.0 * Linear(), X).phi.dimension == 0


def test_more_landmarks_than_rows():
    kernel = Nystrom(10_000).of(Gaussian(1.0), X[:50])
    assert kernel.phi.dimension <= 50
    assert kernel.error(X[:50]) < 1e-5


def test_rows_of_weight_zero_are_no_landmarks():
    weights = (np.arange(300) < 100).astype(float)
    for sampling in ("uniform", "pivoted"):
        found = Nystrom(4, sampling).of(Gaussian(1.0), X, weights).phi.landmarks
        assert all((X[:100] == row).all(axis=1).any() for row in found)


def test_far_groups_are_found_by_all_but_uniform_draws():
    """Of nine far rows among a thousand, uniform draws of 30 miss most; the others find all."""
    rows = np.vstack([0.01 * rng.standard_normal((1000, 2)), 100 * rng.standard_normal((9, 2))])
    errors = {name: Nystrom(30, name).of(Gaussian(1.0), rows).phi(rows[-9:]) for name in RULES}
    for name in ("pivoted", "kmeans++"):
        np.testing.assert_allclose(np.square(errors[name]).sum(axis=1), 1.0, atol=1e-6)
    assert np.square(errors["uniform"]).sum() < 5


def test_strings_and_sparse_rows():
    words = ["".join(rng.choice(list("abc"), size=8)) for _ in range(40)]
    kernel = Nystrom(15).of(Spectrum(2), words)
    machine = KernelRidge(1.0, kernel).fit(words, np.arange(40.0))
    assert machine.certificate_.ok
    rows = sparse.random_array((60, 20), density=0.2, random_state=0, format="csr")
    thin, full = Nystrom(15).of(Gaussian(2.0), rows), Nystrom(15).of(Gaussian(2.0), rows.toarray())
    np.testing.assert_allclose(thin.phi(rows), full.phi(rows.toarray()), atol=1e-9)


def test_a_machine_works_with_the_features():
    labels = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, "in", "out")
    kernel = Nystrom(50).of(Gaussian(1.0), X)
    machine = SVC(kernel, tol=1e-8).fit(X, labels)
    other = SVC(FromFeatures(kernel.phi), tol=1e-8).fit(X, labels)
    assert machine.certificate_.ok
    np.testing.assert_allclose(machine.decision_function(X), other.decision_function(X), atol=1e-5)
    exact = SVC(Gaussian(1.0), tol=1e-8).fit(X, labels)
    assert (machine.predict(X) == exact.predict(X)).mean() > 0.97


def test_refusals():
    with pytest.raises(ValueError, match="sampling='best' must be one of"):
        Nystrom(10, "best")
    with pytest.raises(ValueError, match="n_components=0"):
        Nystrom(0)
