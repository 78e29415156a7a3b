"""Conformance of dense factorisations: Cholesky factors, band reductions."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.contract import Backend


def check_factorisations(backend: Backend) -> None:
    """Factor and reduce matrices of several sizes, and multiply back."""
    rng = np.random.default_rng(4)
    for n in (1, 5, 70, 260):
        B = rng.standard_normal((n, n))
        A = B @ B.T / n + 0.1 * np.eye(n)
        _check_cholesky(backend, A)
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
