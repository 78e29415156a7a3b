"""Products whose sums do not round, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.gram import FactoredGram, Need, PrecomputedGram, make_gram
from mercer.gram.accurate_products import accurate_product, product_rounding, transposed_product
from mercer.kernels import Gaussian


def exactly(F, b):
    columns = range(F.shape[1])
    return [
        sum(Fraction(x) * Fraction(t) for x, t in zip(F[:, j], b, strict=True)) for j in columns
    ]


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
    found = transposed_product(held(F), b)
    np.testing.assert_allclose(found, truth, rtol=4e-16, atol=1e-28 * largest.max())
    assert np.abs(F.T @ b - truth)[0] > 1e3 * np.abs(found - truth)[0]


def test_blocks_of_rows_and_empty_columns():
    rng = np.random.default_rng(0)
    F, b = rng.standard_normal((3000, 200)), rng.standard_normal(3000)
    F[:, 5] = 0.0
    truth = [float(sum(Fraction(x) * Fraction(t) for x, t in zip(F[:, 3], b, strict=True)))]
    for held in (F, sp.csr_array(F)):
        found = transposed_product(held, b)
        assert found[5] == 0
        np.testing.assert_allclose(found[[3]], truth, rtol=4e-16)
    assert transposed_product(np.zeros((0, 3)), np.zeros(0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold(seed):
    F, b = hostile(seed)
    w = exactly(F, b)
    truth = np.array(
        [float(sum(Fraction(x) * v for x, v in zip(row, w, strict=True))) for row in F]
    )
    gram = FactoredGram(lambda Z: Z, F)
    product, rounding = accurate_product(gram, b)
    assert (np.abs(product - truth) <= rounding).all()
    assert (np.abs(np.asarray(gram @ b) - truth) <= product_rounding(gram, b)).all()


def test_given_matrices_are_data_and_kernels_are_not():
    F, b = hostile(0)
    X = F / np.abs(F).max()
    K = PrecomputedGram(X @ X.T)
    product, rounding = accurate_product(K, b)
    truth = np.array([float(x) for x in exactly(K.dense(), b)])
    assert (np.abs(product - truth) <= rounding + 1e-28 * np.abs(b).max()).all()
    assert accurate_product(make_gram(Gaussian(1.0), X, Need.ROWS), b) is None
