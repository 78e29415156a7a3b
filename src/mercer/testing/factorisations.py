"""Conformance of dense factorisations: Cholesky factors, eigenpairs, band reductions."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.contract import Backend
from mercer.backends.stored import Factor


def check_factorisations(backend: Backend) -> None:
    """Factor and reduce matrices of several sizes, and multiply back."""
    rng = np.random.default_rng(4)
    for n in (1, 5, 70, 260):
        B = rng.standard_normal((n, n))
        A = B @ B.T / n + 0.1 * np.eye(n)
        _check_cholesky(backend, A)
        _check_stored(backend, A)
        values, vectors = backend.eigh(A.copy())
        np.testing.assert_allclose((vectors * values) @ vectors.T, A, rtol=0, atol=1e-10)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), rtol=0, atol=1e-10)
        assert (np.diff(values) >= 0).all()
        for width in (1, 4, 16):
            _check_band(backend, A, width)


def _check_cholesky(backend: Backend, A: Array) -> None:
    L = A.copy()
    assert backend.cholesky(L) == 0
    np.testing.assert_allclose(np.tril(L), linalg.cholesky(A, lower=True), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))
    indefinite = A.copy()
    middle = len(A) // 2
    indefinite[middle, middle] = -1.0
    assert backend.cholesky(indefinite) == middle + 1


def _check_stored(backend: Backend, A: Array) -> None:
    """Compare a stored matrix, and its factors with and without scales, with arrays."""
    n, rng = len(A), np.random.default_rng(9)
    scale, shift = rng.uniform(0.5, 2.0, n), rng.uniform(0.1, 1.0, n)
    right, points = rng.standard_normal((n, 3)), rng.integers(0, n, 7)
    for dtype, atol in ((np.float64, 1e-11), (np.float32, 1e-5)):
        given = A.astype(dtype)
        K, entries = backend.stored(given.copy()), given.astype(np.float64)
        assert K.shape == (n, n) and K.dtype == dtype and K.nbytes == given.nbytes
        np.testing.assert_array_equal(K.dense(), given)
        assert not K.dense().flags.writeable
        np.testing.assert_array_equal(K.rows(points), given[points])
        np.testing.assert_array_equal(K.diagonal(), entries.diagonal())
        np.testing.assert_allclose(K.product(right), entries @ right, atol=n * atol)
        summed = K.combination(points, np.arange(7.0))
        np.testing.assert_allclose(summed, np.arange(7.0) @ entries[points], atol=n * atol)
        for s in (None, scale):
            C = entries * (1.0 if s is None else np.outer(s, s)) + np.diag(shift)
            _check_factor(K.cholesky(shift, s), C, right)
            U, E = right[:, :2] / n, right[:, 1:] / (10 * n)
            _check_factor(K.cholesky(shift, s, (U, E)), C - U @ E.T - E @ U.T, right)
            _check_factor(K.cholesky(shift, s, (0.1 * U, None)), C - 0.01 * (U @ U.T), right)
        assert K.cholesky(shift - 1e3) is None
    _check_factor(backend.cholesky_factor(A.copy()), A, right)
    whole = backend.cholesky_factor(A.copy())
    assert whole is not None
    np.testing.assert_allclose(whole.inverse(), linalg.inv(A), atol=1e-9)
    assert backend.cholesky_factor(-A) is None
    C = A + rng.standard_normal((n, n))
    found, sign, logarithm = backend.solve_with_determinant(C, right)
    np.testing.assert_allclose(found, linalg.solve(C, right), atol=1e-8)
    np.testing.assert_allclose((sign, logarithm), np.linalg.slogdet(C), atol=1e-9)
    assert np.isnan(backend.solve_with_determinant(np.zeros((2, 2)), np.ones((2, 1)))[0]).all()


def _check_factor(factor: Factor | None, C: Array, right: Array) -> None:
    assert factor is not None
    inverse = linalg.inv(C)
    np.testing.assert_allclose(factor.solve(right), inverse @ right, atol=1e-9)
    for transposed in (False, True):
        half = factor.half_solve(right, transposed)
        lower = linalg.cholesky(C, lower=True)
        np.testing.assert_allclose((lower.T if transposed else lower) @ half, right, atol=1e-9)
    np.testing.assert_allclose(factor.solve(right[:, 0]), inverse @ right[:, 0], atol=1e-9)
    L = factor.lower().copy()
    np.testing.assert_allclose(L, linalg.cholesky(C, lower=True), atol=1e-10)
    np.testing.assert_allclose(factor.diagonal(), L.diagonal(), atol=1e-10)
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=1e-8)


def _check_band(backend: Backend, A: Array, width: int) -> None:
    n = len(A)
    band = backend.band_reduce(A.copy(), width)
    assert band.width == width and band.lower.shape == (n, width + 1)
    B = np.zeros((n, n))
    for k in range(min(width + 1, n)):
        entries = band.lower[: n - k, k]
        B += np.diag(entries, -k) + (np.diag(entries, k) if k else 0.0)
    np.testing.assert_allclose(band.Qt.T @ B @ band.Qt, A, rtol=0, atol=1e-10)
    np.testing.assert_allclose(band.Qt @ band.Qt.T, np.eye(n), rtol=0, atol=1e-10)
    shifts = np.array([0.0, 0.3, 10.0, -1e6])
    found = backend.band_inverse_diagonals(band, shifts)
    expected = [np.diagonal(linalg.inv(A + shift * np.eye(n))) for shift in shifts[:3]]
    np.testing.assert_allclose(found[:3], expected, rtol=1e-9)
    assert np.isnan(found[3]).all()
