"""Series of features, cut off: products of maps are within the bound, on hostile rows as well."""

import pickle
from math import comb, factorial

import numpy as np
import pytest
from scipy import sparse, stats

from mercer.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    TruncatedFeatureMap,
    exp,
    polynomial,
)
from mercer.kernels.features import symmetric_power, symmetric_powers
from mercer.resources import MemoryBudgetError, config

RNG = np.random.default_rng(3)
X = RNG.uniform(-1.0, 1.0, size=(25, 3))
ROUNDING = 1e-13


def check(kernel, X, tol):
    phi = kernel.features(X, tol)
    F, K, bound = phi(X), kernel(X), phi.error(X)
    room = ROUNDING * np.abs(K).max()
    assert F.shape == (len(X), phi.dimension)
    assert bound.max() <= tol + room
    assert (np.abs(F @ F.T - K) <= np.sqrt(np.outer(bound + room, bound + room)) + room).all()
    return phi


KERNELS = [
    Gaussian(1.0),
    Gaussian([0.7, 2.0, 1.0]),
    Matern(np.inf, 1.5),
    RationalQuadratic(2.0, 2.0),
    RationalQuadratic(0.4, 3.0),
    exp(Linear()),
    exp(Polynomial(2, 0.5).on([0])),
    exp(Gaussian(2.0).on([1])),
    exp(Linear() + 1),
    exp(Linear()).normalized(),
    Gaussian(1.0) + Linear(),
    3 * Gaussian(2.0) * Linear(),
    Gaussian(2.0) ** 3,
    Gaussian(2.0).on([0]) * Gaussian(1.0).on([1, 2]),
    polynomial(Gaussian(2.0), [1.0, 2.0, 0.5]),
    Gaussian(1.0).after(np.tanh),
    1e-9 * Gaussian(1.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_products_are_within_the_bound(kernel, tol):
    phi = check(kernel, X, tol)
    assert isinstance(phi, TruncatedFeatureMap)


def test_the_series_of_the_text():
    """phi(x) = exp(-x^2 / 2) (1, x, x^2 / sqrt 2, x^3 / sqrt 3!, ...)."""
    x = np.array([-1.5, 0.0, 0.3, 1.5])
    phi = Gaussian(1.0).features(x[:, None], tol=1e-8)
    wanted = [np.exp(-(x**2) / 2) * x**p / np.sqrt(factorial(p)) for p in range(phi.dimension)]
    np.testing.assert_allclose(phi(x[:, None]), np.stack(wanted, axis=1), atol=1e-15)


def test_the_degree_is_the_smallest_one():
    """The error at |x| = R is a Poisson tail, in any number of columns."""
    for d, radius, tol in [(1, 2.0, 1e-6), (2, 1.0, 1e-3), (4, 0.5, 1e-9)]:
        end = np.zeros((2, d))
        end[0, 0], end[1, 0] = -radius, radius
        phi = Gaussian(1.0).features(end, tol)
        degree = next(p for p in range(99) if stats.poisson.sf(p, radius**2) <= tol)
        assert phi.dimension == comb(d + degree, degree)
        np.testing.assert_allclose(phi.error(end), stats.poisson.sf(degree, radius**2), atol=1e-14)
        inside = RNG.normal(size=(30, d))
        inside *= (radius * RNG.uniform(size=30) / np.linalg.norm(inside, axis=1))[:, None]
        assert phi.error(inside).max() <= tol
        assert phi.error(3 * end).min() > tol


def test_powers_of_all_degrees():
    F = RNG.normal(size=(4, 3))
    for p, block in enumerate(symmetric_powers(F, 5)):
        wanted = symmetric_power(F, p) if p else np.ones((4, 1))
        np.testing.assert_allclose(block, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "rows"),
    [
        (Gaussian(1.0), X + 1e8),
        (Gaussian(1e-3), np.linspace(0, 0.06, 20)[:, None]),  # degrees in the thousands
        (Gaussian(1.0), np.full((4, 3), 7.0)),
        (Gaussian(1.0), np.zeros((1, 2))),
        (Gaussian(1e-140), X * 1e-140),
        (Gaussian(1e150), X * 1e150),
        (Gaussian(1.0), np.repeat(X[:2], 3, axis=0)),
        (RationalQuadratic(1.0, 1.0), np.array([[0.0], [5.0], [1.0]])),
    ],
    ids=range(8),
)
def test_hostile_rows(kernel, rows):
    check(kernel, rows, 1e-6)


def test_rows_of_other_kinds():
    wanted = Gaussian(1.0).features(X, 1e-4)
    np.testing.assert_array_equal(wanted(sparse.csr_array(X)), wanted(X))
    single = Gaussian(1.0).features(X.astype(np.float32), 1e-4)(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted(X), atol=1e-6)


def test_maps_are_values():
    phi = Gaussian(1.0).features(X, 1e-4)
    assert phi == Gaussian(1.0).features(X, 1e-4)
    assert hash(phi) == hash(pickle.loads(pickle.dumps(phi)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(phi))(X), phi(X))


def test_a_finite_map_stays_exact():
    assert Polynomial(2).features(X, 1e-3) == Polynomial(2).features(3)


def test_refusals():
    with pytest.raises(TypeError, match="pass rows X in place of the number 3"):
        Gaussian(1.0).features(3, tol=1e-3)
    for tol in (0.0, -1.0, np.nan, np.inf, True, "small", 1e-20):
        with pytest.raises(ValueError, match="tol"):
            Gaussian(1.0).features(X, tol)
    for kernel in (Laplacian(), Matern(1.5), Sigmoid(), Gaussian(1.0) + Laplacian()):
        with pytest.raises(ValueError, match=r"no series of features.*eigenfunctions"):
            kernel.features(X, 1e-3)
    with pytest.raises(ValueError, match="beyond float64"):
        exp(Linear()).features(1e3 * X, 1e-3)
    with pytest.raises(ValueError, match="beyond float64"):
        exp(Linear()).normalized().features(1e3 * X, 1e-3)
    with pytest.raises(TypeError, match="strings"):
        exp(Spectrum(2)).features(["ab", "b"], 1e-3)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            Gaussian(1.0).features([[0.0], [bad]], 1e-3)
    with pytest.raises(ValueError, match="no rows"):
        Gaussian(1.0).features(X[:0], 1e-3)
    with pytest.raises(ValueError, match="65536 terms"):
        Gaussian(1e-6).features(X, 1e-3)


def test_too_many_features_are_counted_and_refused():
    wide = RNG.normal(size=(50, 30))
    with pytest.raises(
        MemoryBudgetError, match=r"needs .* features for each of 50 rows.*larger tol"
    ):
        Gaussian(1.0).features(wide, 1e-6)
    with config(memory="1 MB"):
        phi = Gaussian(1.0).features(X[:3], 1e-6)
        with pytest.raises(MemoryBudgetError, match="fewer rows at a time"):
            phi(np.repeat(X, 100, axis=0))
