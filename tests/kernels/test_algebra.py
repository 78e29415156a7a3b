"""The ten rules for building kernels: each is its formula, and keeps the matrix PSD.

The rules are those of the list "Construct new kernels from other kernels" (Bishop, page 296).
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.backends import available_backends
from mercer.kernels import (
    AllSubsets,
    Anova,
    Bilinear,
    ChiSquared,
    Constant,
    Cosine,
    FromFeatures,
    Gaussian,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Tanimoto,
    exp,
    polynomial,
)
from mercer.resources import config

D = 3


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def weight(X):
    return np.asarray(np.sin(3 * X[:, 0]) - 0.2)


def fold(X):
    return np.asarray(np.abs(X[:, [1, 0, 1]] - 0.5))


bounded = st.floats(0.1, 4.0)
amount = st.just(0.0) | st.floats(1e-9, 3.0)  # products of rows stay in the normal range
base = st.one_of(
    st.just(Linear()),
    st.builds(Polynomial, st.integers(1, 3), amount),
    st.just(Cosine()),
    st.just(AllSubsets()),
    st.builds(Anova, st.integers(1, 3)),
    st.builds(Constant, amount),
    st.builds(Gaussian, bounded),
    st.builds(Gaussian, st.lists(bounded, min_size=D, max_size=D)),
    st.builds(Laplacian, bounded),
    st.builds(Matern, st.sampled_from([0.5, 0.8, 1.5, 2.5, np.inf]), bounded),
    st.builds(RationalQuadratic, bounded, bounded),
    st.builds(ChiSquared, bounded),
    st.just(Intersection()),
    st.just(Tanimoto()),
    st.just(FromFeatures(fold)),
)
narrow = base.filter(
    lambda k: not hasattr(getattr(k, "scale", 1.0), "array") and not isinstance(k, FromFeatures)
)
rows = st.integers(0, 10**6).map(lambda s: np.random.default_rng(s).uniform(0, 1.5, size=(9, D)))
each = settings(max_examples=40, deadline=None)


def psd(k, X):
    assert k.psd
    K = k(X)
    np.testing.assert_array_equal(K, K.T)
    smallest, largest = np.linalg.eigvalsh(K)[[0, -1]]
    assert smallest >= -1e-11 * max(largest, 1e-300), k
    return K


def same(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12 * np.abs(wanted).max())


@each
@given(base, amount, rows)
def test_rule_1_multiple(k, c, X):
    same(psd(c * k, X), c * k(X))


@each
@given(base, rows)
def test_rule_2_function_on_both_sides(k, X):
    f = weight(X)
    same(psd(k.scaled_by(weight), X), f[:, None] * k(X) * f[None, :])


@each
@given(base, st.lists(amount, min_size=1, max_size=4), rows)
def test_rule_3_polynomial(k, coefficients, X):
    K = k(X)
    same(psd(polynomial(k, coefficients), X), sum(c * K**i for i, c in enumerate(coefficients)))


@each
@given(base, rows)
def test_rule_4_exponential(k, X):
    small = 0.05 * k  # so that exp stays within reach of float64
    same(psd(exp(small), X), np.exp(small(X)))


@each
@given(base, base, rows)
def test_rule_5_sum(k1, k2, X):
    same(psd(k1 + k2, X), k1(X) + k2(X))


@each
@given(base, base, rows)
def test_rule_6_product(k1, k2, X):
    same(psd(k1 * k2, X), k1(X) * k2(X))


@each
@given(base, rows)
def test_rule_7_after_a_map(k, X):
    same(psd(k.after(fold), X), k(fold(X)))


@each
@given(st.integers(0, 10**6), st.integers(0, D), rows)
def test_rule_8_bilinear_form(seed, rank, X):
    B = np.random.default_rng(seed).normal(size=(D, rank))
    same(psd(Bilinear(B @ B.T), X), X @ B @ B.T @ X.T)


@each
@given(narrow, narrow, rows)
def test_rule_9_sum_over_blocks_of_columns(ka, kb, X):
    same(psd(ka.on([0]) + kb.on([1, 2]), X), ka(X[:, :1]) + kb(X[:, 1:]))


@each
@given(narrow, narrow, rows)
def test_rule_10_product_over_blocks_of_columns(ka, kb, X):
    same(psd(ka.on([0]) * kb.on([1, 2]), X), ka(X[:, :1]) * kb(X[:, 1:]))


@each
@given(base, st.integers(1, 4), rows)
def test_power(k, p, X):
    same(psd(k**p, X), k(X) ** p)


@each
@given(base, rows)
def test_normalized(k, X):
    K = k(X)
    norms = np.sqrt(np.diagonal(K))
    inverse = np.where(norms > 0, 1 / np.where(norms > 0, norms, 1), 0)
    same(psd(k.normalized(), X), K * np.outer(inverse, inverse))


def larger(kernels):
    return st.one_of(
        st.builds(lambda a, b: a + b, kernels, kernels),
        st.builds(lambda a, b: a * b, kernels, kernels),
        st.builds(lambda c, a: c * a, st.sampled_from([0.0, 0.3, 3.0]), kernels),
        st.builds(lambda a, p: a**p, kernels, st.integers(1, 2)),
        kernels.map(lambda k: exp(0.5 * k.normalized())),
        kernels.map(lambda k: k.scaled_by(weight)),
        kernels.map(lambda k: k.after(fold)),
        kernels.map(lambda k: k.normalized()),
        st.builds(lambda k: polynomial(k, [0.5, 1.0, 0.25]), kernels),
        st.builds(lambda k, c: k.on(c), narrow, st.lists(st.integers(0, 2), min_size=1)),
    )


expressions = st.recursive(base, larger, max_leaves=5)


@settings(max_examples=150, deadline=None)
@given(expressions, rows)
def test_random_expressions_are_positive_semidefinite(k, X):
    psd(k, X)


@settings(max_examples=60, deadline=None)
@given(expressions, rows)
def test_diagonal_and_blocks_of_random_expressions(k, X):
    K = k(X)
    same(k.diag(X), np.diagonal(K))
    same(k(X[2:5], X), K[2:5])
    assert k.with_params(**k.get_params()) == k


def test_a_gaussian_from_a_linear_kernel():
    # exp(-|x - y|^2 / 2) = f(x) exp(x'y) f(y) with f(x) = exp(-|x|^2 / 2)
    X = np.random.default_rng(0).normal(size=(10, 3))
    built = exp(Linear()).scaled_by(lambda Z: np.exp(-0.5 * (Z**2).sum(axis=1)))
    same(built(X), Gaussian(1.0)(X))
    same(exp(Linear()).normalized()(X), Gaussian(1.0)(X))


@pytest.mark.parametrize("terms", [5, 10, 20, 40])
def test_the_infinite_map_of_the_gaussian_kernel(terms):
    # phi_i(x) = exp(-x^2/2) x^i / sqrt(i!): its partial sums converge to the kernel
    X = np.linspace(-1.5, 1.5, 7)[:, None]
    factorials = np.cumprod([1.0, *range(1, terms)])
    partial = polynomial(Linear(), 1 / factorials).scaled_by(lambda Z: np.exp(-0.5 * Z[:, 0] ** 2))
    error = np.abs(partial(X) - Gaussian(1.0)(X)).max()
    remainder = 2.25**terms / np.prod(np.arange(1.0, terms + 1))
    assert error <= remainder + 1e-15
