"""Products whose sums do not round, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.gram import FactoredGram, Need, PrecomputedGram, make_gram
from mercer.gram.accurate_products import accurate_product, product_rounding, transposed_product
from mercer.gram.centering import CenteredGram
from mercer.gram.sparse import SparseGram
from mercer.gram.transformed import ScaledGram
from mercer.kernels import Gaussian

pytestmark = pytest.mark.numerics


def exactly(F, b):
    columns = range(F.shape[1])
    return [
        sum(Fraction(x) * Fraction(t) for x, t in zip(F[:, j], b, strict=True)) for j in columns
    ]


def within(found, truth, bound):
    """Return whether no number is farther from the truth than its bound, in rational arithmetic."""
    apart = [abs(Fraction(float(x)) - t) for x, t in zip(found, truth, strict=True)]
    return all(a <= Fraction(float(r)) for a, r in zip(apart, bound, strict=True))


def hostile(seed, n=40, d=3):
    """Draw terms of very different sizes, whose sum in the first column nearly vanishes."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-9, 9, (n, 1))
    b = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 3, n)
    b[-1] = -(F[:-1, 0] @ b[:-1]) / F[-1, 0]
    return F, b


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("held", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_sums_that_cancel_keep_their_digits(seed, held):
    F, b = hostile(seed)
    truth = np.array([float(x) for x in exactly(F, b)])
    largest = np.abs(F * b[:, None]).max(axis=0)
    found, rounding = transposed_product(held(F), b)
    assert within(found, exactly(F, b), rounding)
    np.testing.assert_allclose(found, truth, rtol=4e-16, atol=1e-28 * largest.max())
    assert np.abs(F.T @ b - truth)[0] > 1e3 * np.abs(found - truth)[0]


def test_blocks_of_rows_and_empty_columns():
    rng = np.random.default_rng(0)
    F, b = rng.standard_normal((3000, 200)), rng.standard_normal(3000)
    F[:, 5] = 0.0
    truth = [float(sum(Fraction(x) * Fraction(t) for x, t in zip(F[:, 3], b, strict=True)))]
    for held in (F, sp.csr_array(F)):
        found = transposed_product(held, b)[0]
        assert found[5] == 0
        np.testing.assert_allclose(found[[3]], truth, rtol=4e-16)
    assert transposed_product(np.zeros((0, 3)), np.zeros(0))[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("held", [np.asarray, sp.csr_array, sp.csc_array])
def test_the_bounds_hold(seed, held):
    F, b = hostile(seed, n=5 + 7 * (seed % 9), d=1 + seed % 5)
    F[np.random.default_rng(seed).random(F.shape) < 0.1 * (seed % 4)] = 0.0
    w = exactly(F, b)
    truth = [sum(Fraction(x) * v for x, v in zip(row, w, strict=True)) for row in F]
    gram = FactoredGram.of(lambda Z: Z, held(F))
    product, rounding = accurate_product(gram, b)
    assert within(product, truth, rounding)
    assert within(np.asarray(gram @ b), truth, product_rounding(gram, b))


@pytest.mark.parametrize("n", [400, 3000])
@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_hold_for_long_sums(seed, n):
    rng = np.random.default_rng(seed)
    F, b = rng.exponential(1.0, (n, 2)), rng.exponential(1.0, n)
    if seed % 2:
        F, b = hostile(seed, n, 2)
    w = exactly(F, b)
    gram, some = FactoredGram(lambda Z: Z, F), slice(0, 20)
    truth = [sum(Fraction(x) * v for x, v in zip(row, w, strict=True)) for row in F[some]]
    product, rounding = accurate_product(gram, b)
    assert within(product[some], truth, rounding[some])
    assert within((gram @ b)[some], truth, product_rounding(gram, b)[some])
    assert (rounding <= product_rounding(gram, b)).all()


@pytest.mark.parametrize("scale", [1e-160, 1e-170, 1e-110, 1e100])
def test_the_bounds_hold_where_products_underflow_or_are_huge(scale):
    F, b = np.random.default_rng(0).standard_normal((2, 30, 3))
    F, b = F * scale, b[:, 0]
    w = exactly(F, b)
    truth = [sum(Fraction(x) * v for x, v in zip(row, w, strict=True)) for row in F]
    gram = FactoredGram(lambda Z: Z, F)
    product, rounding = accurate_product(gram, b)
    assert within(product, truth, rounding)
    assert within(gram @ b, truth, product_rounding(gram, b))
    K = PrecomputedGram(F @ F.T)
    assert within(K @ b, exactly(K.dense(), b), product_rounding(K, b))
    b = np.where(np.arange(30) % 2, 1e-160, b)
    assert within(K @ b, exactly(K.dense(), b), product_rounding(K, b))


@pytest.mark.parametrize("seed", range(10))
def test_the_bounds_hold_for_matrices_that_are_not_positive_semidefinite(seed):
    F, b = hostile(seed)
    points = F / np.abs(F).max() * 10.0 ** (seed - 5)
    squares = np.square(points[:, None] - points[None]).sum(axis=2)  # of zero diagonal
    for K in (PrecomputedGram(-squares), SparseGram(sp.csr_array(-squares))):
        truth = exactly(K.dense(), b)
        assert within(K @ b, truth, product_rounding(K, b))
    product, rounding = accurate_product(PrecomputedGram(-squares), b)
    assert within(product, truth, rounding)


@pytest.mark.parametrize("seed", range(10))
def test_the_bounds_hold_for_centred_and_scaled_matrices(seed):
    F, b = hostile(seed)
    s = np.random.default_rng(seed).standard_normal(len(F))
    K = PrecomputedGram(F @ F.T + 1e12)
    weights = [Fraction(v) for v in CenteredGram(K).weights]
    total = sum(Fraction(v) for v in b)
    centred = [Fraction(v) - w * total for v, w in zip(b, weights, strict=True)]
    product = [sum(Fraction(k) * v for k, v in zip(row, centred, strict=True)) for row in K.dense()]
    mean = sum(w * v for w, v in zip(weights, product, strict=True))
    centred = CenteredGram(K)
    assert within(centred @ b, [v - mean for v in product], product_rounding(centred, b))
    scaled = ScaledGram(K, s)
    times = [Fraction(v) * Fraction(x) for v, x in zip(b, s, strict=True)]
    truth = [
        Fraction(x) * sum(Fraction(k) * v for k, v in zip(row, times, strict=True))
        for x, row in zip(s, K.dense(), strict=True)
    ]
    assert within(scaled @ b, truth, product_rounding(scaled, b))


def test_given_matrices_are_data_and_kernels_are_not():
    F, b = hostile(0)
    X = F / np.abs(F).max()
    K = PrecomputedGram(X @ X.T)
    product, rounding = accurate_product(K, b)
    truth = np.array([float(x) for x in exactly(K.dense(), b)])
    assert within(product, exactly(K.dense(), b), rounding)
    np.testing.assert_allclose(product, truth, rtol=1e-15, atol=1e-28 * np.abs(b).max())
    assert accurate_product(make_gram(Gaussian(1.0), X, Need.ROWS), b) is None
