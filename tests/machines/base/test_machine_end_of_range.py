"""Kernels near the largest number: sums of two of its values overflow, and answers must not."""

import numpy as np
import pytest

from mercer import MultiTaskGaussianProcess, NearestNeighbors
from mercer.kernels import Gaussian

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
labels = (X[:, 0] > 0).astype(int)
K = Gaussian(1.0)(X)


@pytest.mark.parametrize("size", [1e-300, 1e300, 1e308])
@pytest.mark.parametrize("votes", ["plain", "similarity"])
def test_neighbours_do_not_depend_on_a_factor_of_the_kernel(size, votes):
    plain = NearestNeighbors(5, kernel=Gaussian(1.0), votes=votes).fit(X, labels)
    large = NearestNeighbors(5, kernel=size * Gaussian(1.0), votes=votes).fit(X, labels)
    given = NearestNeighbors(5, kernel="precomputed", votes=votes).fit(size * K, labels)
    expected = plain.predict(X)
    assert (large.predict(X) == expected).all()
    assert (given.predict(size * K) == expected).all()
    assert (large.kneighbors(X, return_distance=False) == plain.kneighbors(X)[1]).all()


def test_distances_behind_the_range_are_found_without_a_warning():
    far, kernel = np.array([[0.0], [100.0], [200.0]]), 1e308 * Gaussian(1.0)
    assert len(NearestNeighbors(1, kernel=kernel).fit(far, [0, 1, 1]).predict(far)) == 3


@pytest.mark.filterwarnings("ignore:.*singular to working precision")
@pytest.mark.filterwarnings("ignore:.*not certified")
@pytest.mark.parametrize(
    ("factor", "tasks", "noise"),
    [(1e300, 1.0, 1e298), (1e300, 1.0, 0.01), (1e-290, 1.0, 1e-292), (1.0, 1e300, 1e298)],
)
def test_the_spread_of_tasks_scales_with_the_kernel(factor, tasks, noise):
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    size = factor * tasks

    def fitted(kernel, B, noise):
        given = {"task_covariance": B * np.eye(2), "noise": noise, "approximation": None}
        return MultiTaskGaussianProcess(kernel, **given).fit(X, Y)

    _, std = fitted(factor * Gaussian(1.0), tasks, noise).predict(X[:9] + 3.0, return_std=True)
    _, expected = fitted(Gaussian(1.0), 1.0, noise / size).predict(X[:9] + 3.0, return_std=True)
    assert np.isfinite(std).all()
    np.testing.assert_allclose(std / np.sqrt(size), expected, atol=1e-5)
