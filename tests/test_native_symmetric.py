"""Products with stored symmetric matrices in the compiled core, against NumPy in wider numbers."""

import numpy as np
import pytest

pytest.importorskip("mercer._native")

from mercer import _native as native
from mercer.backends.native import Native

ROUNDING = {np.float32: 2e-6, np.float64: 3e-15}


@pytest.fixture(params=native.instruction_sets(), autouse=True)
def instruction_set(request, monkeypatch):
    monkeypatch.setenv("MERCER_ISA", request.param)


def symmetric(n, dtype, seed=0):
    B = np.random.default_rng(seed).standard_normal((n, n))
    return (B + B.T).astype(dtype)


def assert_product(found, K, V, dtype):
    wide = K.astype(np.longdouble)
    size = np.abs(wide) @ np.abs(V)
    assert found.shape == V.shape and found.dtype == np.float64
    assert (np.abs(found - wide @ V) <= ROUNDING[dtype] * size).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [*range(19), 32, 33])
def test_every_number_of_columns_and_odd_sizes(columns, dtype):
    rng = np.random.default_rng(columns)
    for n in (0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 191, 192, 193, 199, 385, 397):
        K, V = symmetric(n, dtype, seed=n), rng.standard_normal((n, columns))
        assert_product(Native().symmetric_product(K, V), K, V, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 5, 6, 7, 8])
def test_strides(columns, dtype):
    n = 211
    K = symmetric(2 * n, dtype)[::2, ::2]
    V = np.random.default_rng(1).standard_normal((columns, 3 * n)).T[::3]
    expected = Native().symmetric_product(K.copy(), V.copy())
    np.testing.assert_array_equal(Native().symmetric_product(K, V), expected)
    np.testing.assert_array_equal(Native().symmetric_product(K.T, V[:, ::-1]), expected[:, ::-1])
    assert_product(expected, K, V, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 5, 6, 8, 9])
def test_threads_do_not_change_a_bit(columns, dtype):
    K, V = symmetric(1001, dtype), np.random.default_rng(2).standard_normal((1001, columns))
    alone = native.symmetric_product(K, V, 1)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(native.symmetric_product(K, V, threads), alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", range(1, 10))
def test_what_is_not_finite_stays_where_it_belongs(columns, dtype):
    """Neither lanes beyond an edge nor other columns may see it."""
    n = 397
    K, V = np.eye(n, dtype=dtype), np.ones((n, columns))
    K[5, 396] = K[396, 5] = np.inf
    K[200, 200] = np.nan
    V[300, columns - 1] = np.nan
    found = ~np.isfinite(Native().symmetric_product(K, V))
    assert np.flatnonzero(found[:, :-1].any(axis=1)).tolist() == (
        [5, 200, 396] if columns > 1 else []
    )
    assert found[:, -1].all()
