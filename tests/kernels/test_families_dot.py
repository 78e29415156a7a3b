"""Kernels of the dot product, against scikit-learn and enumeration."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import pairwise

from mercer.backends import available_backends
from mercer.kernels import (
    AllSubsets,
    Anova,
    Bilinear,
    Constant,
    Cosine,
    Linear,
    Polynomial,
    Sigmoid,
)
from mercer.resources import config

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(12, 6)), RNG.normal(size=(7, 6))


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_linear():
    close(Linear()(X, Y), pairwise.linear_kernel(X, Y))


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("offset", [0.0, 1.0, 2.5])
def test_polynomial(degree, offset):
    wanted = pairwise.polynomial_kernel(X, Y, degree=degree, gamma=1.0, coef0=offset)
    close(Polynomial(degree, offset)(X, Y), wanted)


def test_sigmoid():
    wanted = pairwise.sigmoid_kernel(X, Y, gamma=0.3, coef0=-0.2)
    close(Sigmoid(0.3, -0.2)(X, Y), wanted)
    assert not Sigmoid().psd


def test_cosine_with_a_zero_row():
    Z = X.copy()
    Z[3] = 0.0
    close(Cosine()(Z, Y), pairwise.cosine_similarity(Z, Y))
    assert Cosine().diag(Z)[3] == 0.0
    np.testing.assert_allclose(np.delete(Cosine().diag(Z), 3), 1.0, rtol=1e-14)


@pytest.mark.parametrize("rank", [0, 1, 3, 6])
def test_bilinear(rank):
    B = RNG.normal(size=(6, rank))
    A = B @ B.T
    close(Bilinear(A)(X, Y), X @ A @ Y.T)


def test_constant():
    close(Constant(3)(X, Y), np.full((12, 7), 3.0))


def subsets(x, y, sizes):
    d = len(x)
    return sum(np.prod([x[i] * y[i] for i in S]) for p in sizes for S in combinations(range(d), p))


def test_all_subsets_is_the_sum_over_all_subsets():
    wanted = [[subsets(x, y, range(7)) for y in Y] for x in X]
    close(AllSubsets()(X, Y), wanted)


@pytest.mark.parametrize("degree", [1, 2, 4, 6, 7])
def test_anova_is_the_sum_over_sets_of_one_size(degree):
    wanted = [[subsets(x, y, [degree]) for y in Y] for x in X]
    close(Anova(degree)(X, Y), wanted)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Polynomial(degree=0), "degree=0"),
        (lambda: Polynomial(degree=2.5), "degree=2.5"),
        (lambda: Polynomial(degree="2"), "degree='2'"),
        (lambda: Polynomial(degree=np.inf), "degree=inf"),
        (lambda: Polynomial(offset=-1), "offset=-1"),
        (lambda: Polynomial(offset=np.nan), "offset=nan"),
        (lambda: Anova(degree=-3), "degree=-3"),
        (lambda: Sigmoid(slope=np.inf), "slope=inf"),
        (lambda: Constant(-0.5), "value=-0.5"),
        (lambda: Bilinear([[1.0, 2.0]]), "square"),
        (lambda: Bilinear([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: Bilinear([[1.0, 2.0], [2.0, 1.0]]), "smallest eigenvalue is -1"),
        (lambda: Bilinear([[np.nan]]), "not finite"),
        (lambda: Bilinear("no"), "numbers only"),
    ],
)
def test_refusals_name_the_parameter(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_numpy_scalars_become_plain_numbers():
    k = Polynomial(degree=np.int64(3), offset=np.float32(0.5))
    assert repr(k) == "Polynomial(degree=3, offset=0.5)"
    assert type(k.degree) is int
    assert type(k.offset) is float
    assert Polynomial(degree=3.0) == Polynomial(degree=3)
