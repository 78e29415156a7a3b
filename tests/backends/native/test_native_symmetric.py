"""Products with stored symmetric matrices in the compiled core, against NumPy in wider numbers."""

import numpy as np
import pytest

pytest.importorskip("mercer._native")

from mercer import _native as native
from mercer.backends import RowParts
from mercer.backends.native.backend import Native

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


@pytest.mark.sampled(3)
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
    alone = native.symmetric_product(K, V, None, None, None, 1)
    for threads in (2, 3, 8):
        again = native.symmetric_product(K, V, None, None, None, threads)
        np.testing.assert_array_equal(again, alone)


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


def parts_of(rng, n, columns, count):
    ends = np.append(np.sort(rng.integers(0, n + 1, count - 1)), n)
    reads, writes = (rng.random((count, columns)) < 0.5 for _ in range(2))
    return RowParts(ends, reads, writes)


def at_rows(flags, parts):
    return np.repeat(flags, np.diff(parts.ends, prepend=0), axis=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 193, 397, 1201])
def test_parts_read_and_write_what_they_are_told_to(n, dtype):
    """Columns have parts of their own; some have none at all, some parts have no rows."""
    rng = np.random.default_rng(n)
    K = symmetric(n, dtype)
    for columns, count in ((1, 2), (5, 5), (13, 4), (4, 9)):
        parts = parts_of(rng, n, columns, count)
        V = np.where(at_rows(parts.reads, parts), rng.standard_normal((n, columns)), 0.0)
        found = Native().symmetric_product(K, V, parts)
        wanted = at_rows(parts.writes, parts)
        assert not found[~wanted].any()
        wide = K.astype(np.longdouble)
        size = np.abs(wide) @ np.abs(V)
        error = np.abs(found - wide @ V)
        assert (error <= ROUNDING[dtype] * size)[wanted].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit_of_parts(dtype):
    rng = np.random.default_rng(3)
    K, parts = symmetric(1500, dtype), parts_of(rng, 1500, 6, 5)
    V = np.where(at_rows(parts.reads, parts), rng.standard_normal((1500, 6)), 0.0)
    alone = native.symmetric_product(K, V, *parts, 1)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(native.symmetric_product(K, V, *parts, threads), alone)


def test_parts_that_do_not_fit_are_refused():
    K, V, flags = np.eye(4), np.ones((4, 2)), np.ones((2, 2), dtype=bool)
    for ends, reads in (
        (np.array([3, 2]), flags),
        (np.array([2, 3]), flags),
        (np.array([2, 5]), flags),
        (np.array([2, 4]), flags[:1]),
        (np.array([2, 4]), flags[:, :1]),
        (np.array([-1, 4]), flags),
    ):
        with pytest.raises(ValueError, match="part"):
            native.symmetric_product(K, V, ends, np.ascontiguousarray(reads), flags, 1)
    with pytest.raises(ValueError, match="part"):
        native.symmetric_product(K, V, np.array([2, 4]), flags, None, 1)
