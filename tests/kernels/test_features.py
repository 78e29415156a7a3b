"""Finite feature maps: dimensions, the textbook's coefficients, and <phi(x), phi(y)> = k(x, y)."""

from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer.backends import available_backends
from mercer.kernels import (
    AllSubsets,
    Anova,
    Bilinear,
    ChiSquared,
    Constant,
    Cosine,
    FromCallable,
    FromFeatures,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Tanimoto,
    exp,
    polynomial,
)
from mercer.resources import config

RNG = np.random.default_rng(10)


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def pairs_of_columns(X):
    return X[:, :1] * X


def first_plus_two(X):
    return np.asarray(X[:, 0] + 2.0)


def check(kernel, X):
    phi = kernel.features(X.shape[1])
    F, K = phi(X), kernel(X)
    assert F.shape == (len(X), phi.dimension)
    np.testing.assert_allclose(F @ F.T, K, rtol=0, atol=1e-12 * max(np.abs(K).max(), 1e-300))


@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_polynomial_dimensions(d, degree):
    X = RNG.normal(size=(9, d))
    assert Polynomial(degree, 1.0).features(d).dimension == comb(d + degree, degree)
    assert Polynomial(degree, 0.0).features(d).dimension == comb(d + degree - 1, degree)
    check(Polynomial(degree, 1.0), X)
    check(Polynomial(degree, 0.0), X)


def test_the_map_of_the_textbook():
    x, z = 3.0, 5.0
    found = Polynomial(2, 1.0).features(2)([[x, z]])[0]
    wanted = [1, sqrt(2) * x, sqrt(2) * z, x * x, z * z, sqrt(2) * x * z]
    np.testing.assert_allclose(sorted(found), sorted(wanted), rtol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_subset_dimensions(d):
    X = RNG.normal(size=(9, d))
    assert AllSubsets().features(d).dimension == 2**d
    check(AllSubsets(), X)
    for degree in range(1, d + 2):
        assert Anova(degree).features(d).dimension == comb(d, degree)
        check(Anova(degree), X)


def test_dimensions_are_found_without_computing():
    assert AllSubsets().features(1000).dimension == 2**1000
    assert Polynomial(20).features(10**6).dimension == comb(10**6 + 20, 20)


@pytest.mark.parametrize(
    ("kernel", "dimension"),
    [
        (Linear() + 1, 5),
        (2 * Linear(), 4),
        (Linear() * Linear(), 16),
        (Linear() ** 2, 10),
        (Polynomial(2) * AllSubsets(), 15 * 16),
        (Linear().on([0, 2]) * Polynomial(2).on(1), 6),
        (Bilinear(np.diag([1.0, 1.0, 0.0, 0.0])), 2),
        (Cosine(), 4),
        (Polynomial(2).normalized(), 15),
        (polynomial(Linear(), [1, 2, 0, 3]), 1 + 4 + 20),
        (FromFeatures(pairs_of_columns), 4),
        (Polynomial(2).after(pairs_of_columns), 15),
        (Polynomial(2).after(pairs_of_columns).on([1, 2]), 6),
        (Linear().scaled_by(first_plus_two), 4),
        (Constant(0.0) + 0 * Linear(), 4),
    ],
    ids=repr,
)
def test_rules(kernel, dimension):
    assert kernel.features(4).dimension == dimension
    check(kernel, RNG.normal(size=(12, 4)))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(),
        Laplacian(),
        Matern(),
        RationalQuadratic(),
        Sigmoid(),
        ChiSquared(),
        Tanimoto(),
        Spectrum(),
        FromCallable(np.dot),
        exp(Linear()),
        Linear() + Gaussian(),
        Linear() * Gaussian(),
        Gaussian() ** 2,
        Gaussian().normalized(),
    ],
    ids=repr,
)
def test_no_finite_map(kernel):
    assert kernel.features(4) is None


def test_maps_are_values():
    assert Polynomial(2).features(3) == Polynomial(2).features(3)
    assert Polynomial(2).features(3) != Polynomial(2).features(4)
    with pytest.raises(ValueError, match="X has 2 features; this map was made for 3"):
        Linear().features(3)(np.zeros((1, 2)))


def test_types_follow_the_rows():
    X = RNG.normal(size=(5, 3)).astype(np.float32)
    for kernel in (Linear(), Polynomial(3), AllSubsets(), Anova(2), Cosine(), 2 * Linear() + 1):
        assert kernel.features(3)(X).dtype == np.float32


@pytest.mark.parametrize(
    "kernel", [Linear(), 2 * Linear(), Linear().on([2, 0]), Linear() + 1, Cosine()]
)
def test_linear_maps_keep_rows_sparse(kernel):
    X = RNG.normal(size=(6, 4)) * (RNG.uniform(size=(6, 4)) < 0.5)
    F = kernel.features(4)(sparse.csr_array(X))
    assert sparse.issparse(F)
    np.testing.assert_allclose(F.toarray(), kernel.features(4)(X), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    "kernel", [Polynomial(2), AllSubsets(), Anova(2), Linear() * Linear(), Polynomial(2) + Linear()]
)
def test_other_maps_take_sparse_rows(kernel):
    X = RNG.normal(size=(6, 4)) * (RNG.uniform(size=(6, 4)) < 0.5)
    F = kernel.features(4)(sparse.csr_matrix(X))
    assert isinstance(F, np.ndarray)
    np.testing.assert_allclose(F, kernel.features(4)(X), rtol=1e-14)


def test_many_rows_at_once():
    X = RNG.normal(size=(20_000, 43))
    F = Polynomial(2).features(43)(X)
    assert F.shape == (20_000, 990)
    K = Polynomial(2)(X[:5], X[-5:])
    # relative to the size of the features: single products may cancel
    atol = 1e-12 * np.outer(*(np.linalg.norm(part, axis=1) for part in (F[:5], F[-5:]))).max()
    np.testing.assert_allclose(F[:5] @ F[-5:].T, K, rtol=0, atol=atol)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), AllSubsets(), Linear().on(["a"])])
def test_rows_stand_for_their_length(kernel):
    pandas = pytest.importorskip("pandas")
    X = RNG.normal(size=(6, 3))
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    for rows in (frame, X, X.tolist(), sparse.csr_array(X)):
        assert kernel.features(rows) == kernel.features(3)
    np.testing.assert_allclose(
        kernel.features(frame)(frame) @ kernel.features(3)(frame).T, kernel(frame)
    )
    assert Gaussian(1.0).features(X) is None
    assert Spectrum(2).features(["ab", "ba"]) is None


@pytest.mark.parametrize("wrong", [2.5, "3", None, True, -1])
def test_a_length_is_a_whole_number(wrong):
    with pytest.raises(TypeError, match="must be the length of rows, or rows X"):
        Linear().features(wrong)


# --- random expressions ----------------------------------------------------------------------

leaves = st.one_of(
    st.just(Linear()),
    st.builds(Polynomial, st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    st.just(AllSubsets()),
    st.builds(Anova, st.integers(1, 3)),
    st.builds(Constant, st.sampled_from([0.0, 0.25, 2.0])),
)
columns = st.lists(st.integers(0, 2), min_size=1, max_size=3)


def larger(kernels):
    return st.one_of(
        st.builds(lambda a, b: a + b, kernels, kernels),
        st.builds(lambda a, b: a * b, kernels, kernels),
        st.builds(lambda c, a: c * a, st.just(0.0) | st.floats(1e-9, 4.0), kernels),
        kernels.map(lambda k: k.scaled_by(first_plus_two)),
        st.builds(lambda k: k**2, leaves),
        st.builds(lambda k, c: k.on(c), leaves, columns),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(leaves, larger, max_leaves=4), st.integers(0, 10**6))
def test_features_reproduce_random_kernels(kernel, seed):
    phi = kernel.features(3)
    assert phi is not None
    if phi.dimension <= 20_000:
        check(kernel, np.random.default_rng(seed).normal(size=(5, 3)))
