"""Kernels that the user brings."""

import numpy as np
import pytest

from mercer.backends import available_backends
from mercer.kernels import FromCallable, FromFeatures, Linear, Precomputed
from mercer.resources import config
from mercer.testing import check_kernel

X = np.random.default_rng(4).normal(size=(9, 3))


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def square(block):
    return block**2


def dot(rows, columns):
    return rows @ columns.T


def wrong_shape(rows, columns):
    return np.zeros(3)


def test_from_features():
    k = FromFeatures(square)
    np.testing.assert_allclose(k(X), square(X) @ square(X).T, rtol=1e-12)
    assert k.features(3).dimension == 3
    assert repr(k).startswith("FromFeatures(phi=")
    assert "square" in repr(k)
    check_kernel(k, X)


def test_from_callable():
    k = FromCallable(dot)
    np.testing.assert_allclose(k(X, X[:2]), X @ X[:2].T, rtol=1e-12)
    assert k.features(3) is None
    assert k.psd
    assert not FromCallable(dot, psd=False).psd
    assert not (FromCallable(dot, psd=False) + Linear()).psd
    assert k == FromCallable(dot)
    check_kernel(k, X)
    with pytest.raises(ValueError, match="must return the matrix"):
        FromCallable(wrong_shape)(X)


@pytest.mark.parametrize("make", [FromFeatures, FromCallable])
def test_a_function_is_needed(make):
    with pytest.raises(TypeError, match="must be a function"):
        make(3)


def test_precomputed_is_only_a_mark():
    assert Precomputed() == Precomputed()
    assert Precomputed().psd
    for k in (Precomputed(), Precomputed() + Linear()):
        with pytest.raises(ValueError, match="given kernel matrix"):
            k(X)
