"""The inverse that leaves other threads alone, against NumPy's."""

import threading

import numpy as np
import pytest

from mercer.backends.lapack import invert


def matrix(n, dtype):
    X = np.random.default_rng(n).standard_normal((n, n + 5))
    return np.ascontiguousarray(X @ X.T / n + np.eye(n), dtype=dtype)


@pytest.mark.parametrize("n", [0, 1, 2, 17, 133, 141, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_inverse(n, dtype):
    A = matrix(n, dtype)
    expected = np.linalg.inv(A.astype(np.float64))
    above = np.triu(A, 1)
    assert invert(A)
    np.testing.assert_allclose(
        np.tril(A), np.tril(expected), atol=1e-4 if dtype == np.float32 else 1e-12
    )
    np.testing.assert_array_equal(np.triu(A, 1), above)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_has_none_is_told(dtype):
    A = matrix(20, dtype)
    A[7, 7] = -1.0
    assert not invert(A)
    with pytest.raises(ValueError, match="square matrix"):
        invert(np.zeros((3, 4), dtype))
    with pytest.raises(ValueError, match="row after row"):
        invert(np.asfortranarray(matrix(5, dtype)))


def test_other_threads_go_on():
    A, done, seen = matrix(1200, np.float64), threading.Event(), []

    def count():
        while not done.is_set():
            seen.append(len(seen))
            done.wait(1e-4)

    counter = threading.Thread(target=count)
    counter.start()
    before = len(seen)
    assert invert(A)
    during = len(seen) - before
    done.set()
    counter.join()
    assert during > 3
