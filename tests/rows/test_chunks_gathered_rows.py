"""Rows gathered in threads are those that indexing gives, whatever the index."""

import numpy as np
import pytest
from scipy import sparse

from mercer import config
from mercer.rows.chunks import gathered

X = np.random.default_rng(0).normal(size=(20_000, 5))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_rows_by_number(threads, dtype):
    rows, index = X.astype(dtype), np.random.default_rng(1).integers(0, len(X), 30_000)
    with config(threads=threads):
        found = gathered(rows, index)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, rows[index])


def test_other_indices_and_other_points():
    index = np.array([3, -1, 0])
    np.testing.assert_array_equal(gathered(X, index), X[index])
    chosen = X[:, 0] > 0
    np.testing.assert_array_equal(gathered(X, chosen), X[chosen])
    assert gathered(X, np.empty(0, dtype=int)).shape == (0, 5)
    with pytest.raises(IndexError):
        gathered(X, np.array([len(X)]))
    thin = sparse.csr_array(X[:50])
    np.testing.assert_array_equal(gathered(thin, np.array([4, 2])).toarray(), X[[4, 2]])
    words = np.array(["a", "b", "c"], dtype=object)
    assert gathered(words, np.array([2, 0])).tolist() == ["c", "a"]
