"""Conformance kit for Grams: however K is held, it must answer like the matrix it stands for."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram, exact
from mercer.points import to_dense


def check_gram(
    gram: Gram, K: Array, Z: Points | None = None, KZ: Array | None = None, rtol: float = 1e-10
) -> None:
    """Compare every verb of a Gram with the matrix it should be.

    Parameters
    ----------
    gram : Gram
        What is tested.
    K : (n, n) array
        The matrix it stands for.
    Z : Points, optional
        New points.
    KZ : (m, n) array, optional
        The matrix of the new points against the training points.
    rtol : float
        Allowed difference, relative to the largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> check_gram(PrecomputedGram(np.eye(3)), np.eye(3))
    """
    n = len(K)
    atol = rtol * max(float(np.abs(K).max(initial=0.0)), 1e-300)
    rng = np.random.default_rng(0)
    assert gram.shape == (n, n)
    np.testing.assert_allclose(gram.dense(), K, rtol=0, atol=atol)
    np.testing.assert_array_equal(gram.dense(), gram.dense().T)
    np.testing.assert_allclose(gram.diag(), np.diagonal(K), rtol=0, atol=atol)
    index = rng.integers(0, n, size=min(n, 5))
    np.testing.assert_allclose(gram.rows(index), K[index], rtol=0, atol=atol)
    np.testing.assert_allclose(gram.rows(slice(0, 2)), K[:2], rtol=0, atol=atol)
    for V in (rng.standard_normal(n), rng.standard_normal((n, 3))):
        product = gram @ V
        assert product.shape == V.shape
        np.testing.assert_allclose(product, K @ V, rtol=0, atol=atol * n)
    _check_forms(gram, K, atol)
    if Z is not None and KZ is not None:
        _check_cross(gram, Z, KZ, atol, rng.standard_normal((n, 2)))


def _check_forms(gram: Gram, K: Array, atol: float) -> None:
    """Compare what machines may ask for, where the Gram has it, with the matrix."""
    n = len(K)
    assert gram.raw.shape == gram.shape
    assert gram.rank >= np.linalg.matrix_rank(K, tol=n * atol, hermitian=True)
    if gram.factor is not None:
        assert gram.features is not None
        assert gram.factor.shape == (n, gram.rank)
        np.testing.assert_allclose(to_dense(gram.factor @ gram.factor.T), K, rtol=0, atol=atol)
    if gram.csr is not None:
        np.testing.assert_allclose(to_dense(gram.csr), K, rtol=0, atol=atol)
    if gram.source is not None:
        np.testing.assert_allclose(exact(gram.source).dense(), K, rtol=0, atol=atol)


def _check_cross(gram: Gram, Z: Points, KZ: Array, atol: float, V: Array) -> None:
    n = gram.shape[0]
    cross = gram.cross(Z)
    assert cross.shape == KZ.shape
    np.testing.assert_allclose(cross.dense(), KZ, rtol=0, atol=atol)
    np.testing.assert_allclose(cross @ V, KZ @ V, rtol=0, atol=atol * n)
    expansion = gram.expand(V)
    np.testing.assert_allclose(expansion(Z), KZ @ V, rtol=0, atol=10 * atol * n)
    np.testing.assert_allclose(
        expansion.plus(np.array([1.0, 2.0]))(Z), KZ @ V + [1.0, 2.0], rtol=0, atol=10 * atol * n
    )
