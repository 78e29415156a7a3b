"""Random features: on average the kernel itself, for every part of the algebra."""

import numpy as np
import pytest
from scipy import sparse

from mercer.approximation import ApproximationError, RandomFeatures
from mercer.approximation.random_features import KINDS
from mercer.kernels import (
    Constant,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))

KERNELS = [
    Gaussian(2.0),
    Gaussian([1.0, 2.0, 3.0, 4.0]),
    Laplacian(6.0),
    Matern(0.5, 3.0),
    Matern(1.5, 3.0),
    Matern(0.9, 3.0),
    Matern(np.inf, 2.0),
    RationalQuadratic(1.5, 2.0),
    2.0 * Gaussian(2.0) * Matern(2.5, 3.0),
    Gaussian(2.0).on([0, 1]) * Laplacian(5.0).on([2, 3]),
    Gaussian(2.0) + 0.5 * Linear() + Constant(2.0),
    Gaussian(2.0).on([0]) + Gaussian(1.0).on([1, 2, 3]),
]


@pytest.mark.parametrize("draws", KINDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_many_features_are_the_kernel(kernel, draws):
    """The error of m features is about 1 / sqrt(m): 0.015 here, and four times that is allowed."""
    assert RandomFeatures(4096, draws).of(kernel, X).error(X) < 0.06


def test_errors_fall_as_the_root_of_the_number():
    few, many = (
        np.mean(
            [RandomFeatures(m, "independent", s).of(Gaussian(1.0), X).error(X) for s in range(8)]
        )
        for m in (256, 4096)
    )
    assert 3 < few / many < 5.3  # sqrt(4096 / 256) is four


def test_better_draws_have_smaller_errors():
    error = {
        kind: np.mean(
            [RandomFeatures(512, kind, s).of(Gaussian(2.0), X).error(X) for s in range(6)]
        )
        for kind in KINDS
    }
    assert error["orthogonal"] < error["independent"]
    assert error["quasi"] < error["independent"]


@pytest.mark.parametrize(
    "kernel", [Polynomial(4, 1.0), Polynomial(3, 0.0), (Linear() + 1.0) ** 4], ids=str
)
def test_sketches_of_products_are_right_on_average(kernel):
    rows = rng.standard_normal((20, 12))
    assert kernel.features(12).dimension > 300
    found = [RandomFeatures(300, random_state=s).of(kernel, rows).phi(rows) for s in range(60)]
    mean = np.mean([F @ F.T for F in found], axis=0)
    deviation = np.std([F @ F.T for F in found], axis=0) / np.sqrt(60)
    off = np.abs(mean - kernel(rows)) / np.maximum(deviation, 1e-12 * np.abs(kernel(rows)).max())
    assert np.quantile(off, 0.95) < 3


def test_a_product_of_waves_and_numbers_is_sketched():
    kernel = Gaussian(2.0) * Linear()
    assert RandomFeatures(4096).of(kernel, X).error(X) < 0.2


def test_kernels_of_few_features_are_exact():
    assert RandomFeatures(100).of(Polynomial(2, 1.0), X).error(X) < 1e-12
    assert RandomFeatures(100).of(Polynomial(2, 1.0), X).phi.dimension == 15


def test_values_are_values():
    one, two = RandomFeatures(64).of(Gaussian(1.0), X), RandomFeatures(64).of(Gaussian(1.0), X)
    np.testing.assert_array_equal(one.phi(X), two.phi(X))
    assert repr(RandomFeatures(64)) == (
        "RandomFeatures(n_components=64, draws='orthogonal', random_state=0)"
    )


def test_refusals():
    with pytest.raises(ApproximationError, match="Nystrom takes any kernel"):
        RandomFeatures(64).of(Sigmoid(), X)
    with pytest.raises(ApproximationError, match="Nystrom takes any rows"):
        RandomFeatures(64).of(Gaussian(1.0), ["ab", "cd"])
    with pytest.raises(ValueError, match="X has no column names"):
        RandomFeatures(64).of(Gaussian(1.0).on(["age"]), X)
    with pytest.raises(ValueError, match="draws='best'"):
        RandomFeatures(64, "best")


def test_features_of_its_own_are_computed_in_float64():
    rows = np.random.default_rng(0).standard_normal((6, 11)).astype(np.float32)
    for X in (rows, sparse.csr_array(rows)):
        phi = RandomFeatures(20).of(Cosine(), X).phi
        np.testing.assert_array_equal(phi(X), phi(X.astype(np.float64)))
