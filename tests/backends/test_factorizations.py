"""Decompositions in panels against LAPACK, where small matrices count as large ones."""

import numpy as np
import pytest
from scipy import linalg

from mercer.backends import factorizations

EPS = np.finfo(float).eps
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def low(monkeypatch):
    monkeypatch.setattr(factorizations, "SHORT", 20)
    monkeypatch.setattr(factorizations, "_WORK", 2e4)


def symmetric(name, n=290):
    A = rng.standard_normal((n, n))
    A = A + A.T
    X = rng.standard_normal((n, 3))
    squares = np.square(X[:, None] - X[None]).sum(axis=-1)
    wilkinson = np.diag(np.abs(np.arange(21.0) - 10)) + np.eye(21, k=1) + np.eye(21, k=-1)
    made = {
        "random": lambda: A,
        "gaussian": lambda: np.exp(-squares / 2),
        "laplacian": lambda: np.exp(-np.sqrt(squares)),
        "zero": lambda: np.zeros((n, n)),
        "one": lambda: np.eye(n),
        "constant": lambda: np.ones((n, n)),
        "tiny": lambda: A * 1e-300,
        "huge": lambda: A * 1e300,
        "repeated": lambda: np.kron(np.eye(40), A[:7, :7]),
        "glued": lambda: np.kron(np.eye(14), wilkinson) + 1e-9 * np.eye(294, k=21),
        "graded": lambda: np.diag(10.0 ** -np.arange(n)) + 1e-3 * np.eye(n),
        "decaying": lambda: (Q := linalg.qr(A)[0]) * 10.0 ** -np.linspace(0, 20, n) @ Q.T,
    }[name]()
    return np.tril(made) + np.tril(made, -1).T


KINDS = "random gaussian laplacian zero one constant tiny huge repeated glued graded decaying"


@pytest.mark.numerics
@pytest.mark.parametrize("name", KINDS.split())
def test_eigenpairs(name):
    A = symmetric(name)
    n, size = len(A), max(float(np.abs(A).max()), np.finfo(float).tiny)
    values, V = factorizations.eigh(A)
    unit = A / size
    assert (np.diff(values) >= 0).all()
    assert np.abs(V.T @ V - np.eye(n)).max() <= 10 * n * EPS
    assert np.linalg.norm(unit @ V - V * (values / size)) <= 10 * n * EPS * np.linalg.norm(unit)
    np.testing.assert_allclose(
        values / size, np.linalg.eigvalsh(unit), atol=10 * n * EPS * np.linalg.norm(unit, 2)
    )


def wide(name, m, n):
    A = rng.standard_normal((m, n))
    few = np.where(np.arange(n) < n // 2, 1.0, 0.0)
    return {
        "random": lambda: A,
        "singular": lambda: A * few @ rng.standard_normal((n, n)),
        "graded": lambda: A * 10.0 ** -np.linspace(0, 18, n),
        "one ahead": lambda: A * np.where(np.arange(n) == 0, 1.0, 1e-6),
        "zero": lambda: 0.0 * A,
        "huge": lambda: A * 1e200,
    }[name]()


@pytest.mark.numerics
@pytest.mark.parametrize("shape", [(300, 203), (203, 300), (290, 290), (500, 40), (9, 1), (1, 9)])
@pytest.mark.parametrize("name", ["random", "singular", "graded", "one ahead", "zero", "huge"])
def test_singular_values_and_qr(name, shape):
    A = wide(name, *shape)
    k, allowed = min(shape), 100 * A.size * EPS
    size = max(float(np.abs(A).max()), np.finfo(float).tiny)
    U, s, Vt = factorizations.svd(A)
    Q, R = factorizations.qr(A)
    for basis in (U, Vt.T, Q):
        assert np.abs(basis.T @ basis - np.eye(k)).max() <= allowed
    assert np.linalg.norm((U * (s / size)) @ Vt - A / size) <= allowed
    assert np.linalg.norm(Q @ (R / size) - A / size) <= allowed
    assert (np.diff(s) <= 0).all()
    np.testing.assert_allclose(s / size, np.linalg.svd(A / size, compute_uv=False), atol=allowed)
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_array_equal(factorizations.triangle(A), R)


@pytest.mark.parametrize("columns", [None, 0, 1, 290])
def test_lu(columns):
    C = rng.standard_normal((290, 290))
    right = rng.standard_normal(290 if columns is None else (290, columns))
    solved, sign, logarithm = factorizations.solve_with_determinant(C, right)
    assert solved.shape == right.shape
    np.testing.assert_allclose(C @ solved, right, atol=1e-9)
    np.testing.assert_allclose((sign, logarithm), np.linalg.slogdet(C), rtol=1e-12)
    C[:, 3] = 0.0
    assert np.isnan(factorizations.solve(C, right)).all()
    assert factorizations.log_determinant(C) == -np.inf


def test_nothing_at_all():
    assert factorizations.solve_with_determinant(np.zeros((0, 0)), np.zeros((0, 2)))[1:] == (1, 0)
    assert factorizations.svd(np.zeros((5, 0)))[1].shape == (0,)
    assert factorizations.eigh(np.zeros((0, 0)))[0].shape == (0,)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_triangles(lower, transposed):
    A = rng.standard_normal((100, 100)) + 20 * np.eye(100)
    L = np.tril(A) if lower else np.triu(A)
    right = rng.standard_normal((100, 30))
    found = factorizations.solve_triangular(A, right, lower, transposed)
    np.testing.assert_allclose((L.T if transposed else L) @ found, right, atol=1e-10)


@pytest.mark.parametrize("shape", [(300, 203), (203, 300)])
def test_least_squares_of_least_norm(shape):
    A = wide("singular", *shape)
    right = rng.standard_normal((shape[0], 3))
    expected = np.linalg.lstsq(A, right, rcond=None)[0]
    np.testing.assert_allclose(factorizations.least_squares(A, right), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["eigh", "svd"])
@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_what_is_no_number_is_refused(name, entry):
    A = np.eye(60)
    A[3, 3] = entry
    with pytest.raises(np.linalg.LinAlgError, match="no numbers"):
        getattr(factorizations, name)(A)


@pytest.mark.numerics
@pytest.mark.parametrize("D", [0, 1, 5, 90])
def test_rows_are_taken_into_a_triangle(D):
    F, factors = rng.standard_normal((300, D)), rng.random(300)
    R = np.array(np.triu(rng.standard_normal((D, D))), order="F")
    expected = R.T @ R + (F * factors[:, None] ** 2).T @ F
    factorizations.extend_triangle(R, F, factors)
    np.testing.assert_allclose(np.triu(R).T @ np.triu(R), expected, atol=1e-11)
