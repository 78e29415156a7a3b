"""Eigenpairs of matrices near the identity: LAPACK may return fewer pairs than asked for."""

import numpy as np
import pytest

from mercer import PCA
from mercer.compat.sklearn import KernelPCA
from mercer.kernels import Gaussian, Laplacian
from mercer.solvers import Status
from mercer.solvers.eigen.dense import largest_pairs

pytestmark = pytest.mark.numerics


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Gaussian(0.3), Laplacian(0.05)])
@pytest.mark.parametrize(("n", "count"), [(30, 1), (90, 2), (90, 10), (150, 5)])
def test_components_are_not_zero(kernel, n, count):
    X = np.random.default_rng(0).normal(size=(n, 6))
    machine = PCA(count, kernel=kernel).fit(X)
    K = kernel(X, X)
    H = np.eye(n) - 1 / n
    truth = np.linalg.eigvalsh(H @ K @ H)[::-1][:count]
    np.testing.assert_allclose(machine.eigenvalues_, truth, rtol=1e-10)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok


def test_the_scikit_learn_face_finds_them_too():
    X = np.random.default_rng(0).normal(size=(90, 6))
    np.testing.assert_allclose(KernelPCA(2, kernel="rbf", gamma=50.0).fit(X).eigenvalues_, 1.0)


@pytest.mark.parametrize("A", [np.eye(40), np.zeros((40, 40)), np.eye(40) + 1e-15])
def test_as_many_pairs_as_asked_for(A):
    values, vectors, sound = largest_pairs(A, 3)
    assert sound and len(values) == 3
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-12)


@pytest.mark.parametrize("spoilt", ["fewer", "none", "wrong", "raises"])
def test_all_pairs_are_found_where_some_are_not(monkeypatch, spoilt):
    from mercer.solvers.eigen import dense as symmetric_pairs

    def eigh(A, **options):
        values, vectors = np.linalg.eigh(A)
        if spoilt == "raises":
            raise np.linalg.LinAlgError("no")
        kept = {"fewer": slice(-2, None), "none": slice(0, 0), "wrong": slice(-3, None)}[spoilt]
        return values[kept], vectors[:, kept] * (1.001 if spoilt == "wrong" else 1.0)

    monkeypatch.setattr(symmetric_pairs.linalg, "eigh", eigh)
    A = np.diag(np.arange(20.0))
    values, vectors, sound = largest_pairs(A, 3)
    assert sound
    np.testing.assert_allclose(values, [19.0, 18.0, 17.0])
    np.testing.assert_allclose(np.abs(vectors[-3:]), np.eye(3)[::-1], atol=1e-12)
