"""`kneighbors` finds what scikit-learn finds, copies and other kernels included."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import neighbors

from mercer import NearestNeighbors, ParameterError
from mercer.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Z = RNG.normal(size=(7, 3))
Y = np.arange(40) % 2


@pytest.mark.parametrize("rows", [np.asarray, csr_array])
def test_as_scikit_learn(rows):
    theirs = neighbors.NearestNeighbors(n_neighbors=4).fit(X)
    ours = NearestNeighbors(n_neighbors=4).fit(rows(X), Y)
    for new in (Z, None):
        expected = theirs.kneighbors(new)
        found = ours.kneighbors(None if new is None else rows(new))
        np.testing.assert_allclose(found[0], expected[0], atol=1e-7)
        np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(
        ours.kneighbors(Z, 2, return_distance=False), theirs.kneighbors(Z, 2)[1]
    )


def test_copies_are_counted_one_by_one():
    twice = np.concatenate([X, X])
    ours = NearestNeighbors(n_neighbors=3).fit(twice, np.concatenate([Y, Y]))
    distance, index = ours.kneighbors()
    assert np.array_equal(index[:, 0], (np.arange(80) + 40) % 80)
    np.testing.assert_allclose(distance[:, 0], 0.0, atol=1e-7)
    _, index = ours.kneighbors(X[:5], 2)
    assert np.array_equal(index, np.column_stack([np.arange(5), np.arange(5) + 40]))


def test_distances_are_those_of_the_kernels_space():
    ours = NearestNeighbors(n_neighbors=2, kernel=Gaussian(1.0)).fit(X, Y)
    distance, index = ours.kneighbors(Z)
    np.testing.assert_allclose(
        distance, np.sqrt(2 - 2 * np.take_along_axis(Gaussian(1.0)(Z, X), index, axis=1)), atol=1e-7
    )


def test_rows_that_do_not_count_are_nobodys_neighbours():
    weights = np.where(np.arange(40) < 20, 1.0, 0.0)
    ours = NearestNeighbors(n_neighbors=3).fit(X, Y, sample_weight=weights)
    assert ours.kneighbors(Z, return_distance=False).max() < 20
    assert ours.kneighbors(return_distance=False).shape == (20, 3)


def test_a_given_matrix_has_no_distances_to_new_rows():
    ours = NearestNeighbors(n_neighbors=3, kernel="precomputed").fit(X @ X.T, Y)
    plain = NearestNeighbors(n_neighbors=3).fit(X, Y)
    expected = plain.kneighbors(Z, return_distance=False)
    assert np.array_equal(ours.kneighbors(Z @ X.T, return_distance=False), expected)
    with pytest.raises(ValueError, match="return_distance=False"):
        ours.kneighbors(Z @ X.T)


@pytest.mark.parametrize("count", [0, 41, 2.5])
def test_counts_that_cannot_be(count):
    with pytest.raises(ParameterError, match="from 1 to 40"):
        NearestNeighbors().fit(X, Y).kneighbors(Z, count)
