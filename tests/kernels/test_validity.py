"""`is_valid` flags what is no kernel and accepts the rest."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mercer.backends import available_backends
from mercer.kernels import (
    AllSubsets,
    Anova,
    ChiSquared,
    Cosine,
    FromCallable,
    Gaussian,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Subsequence,
    Tanimoto,
    exp,
    is_valid,
)
from mercer.resources import config

X = np.random.default_rng(9).uniform(size=(300, 4))


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3),
        Cosine(),
        AllSubsets(),
        Anova(2),
        Gaussian(0.5),
        Laplacian(),
        Matern(0.7),
        Matern(2.5),
        RationalQuadratic(),
        ChiSquared(),
        Intersection(),
        Tanimoto(),
        exp(Linear()) * Gaussian() + 1,
    ],
    ids=repr,
)
def test_kernels_are_accepted(kernel):
    verdict = is_valid(kernel, X)
    assert verdict, verdict.statement
    assert verdict.n_samples == 200
    assert "positive semidefinite on 200 rows" in verdict.statement


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2).normalized()])
def test_sequence_kernels_are_accepted(kernel):
    words = ["".join(np.random.default_rng(i).choice(list("abc"), 8)) for i in range(30)]
    assert is_valid(kernel, words)


@pytest.mark.parametrize("kernel", [Sigmoid(), Sigmoid(1.0, -2.0), Sigmoid(-1.0, 0.0)])
def test_sigmoid_is_flagged(kernel):
    verdict = is_valid(kernel, X - 0.5)
    assert not verdict
    assert verdict.smallest_eigenvalue < -verdict.tol
    assert "not positive semidefinite" in verdict.statement


def test_asymmetry_is_seen():
    verdict = is_valid(FromCallable(lambda A, B: A[:, :1] + 2 * B[:, :1].T), X)
    assert not verdict
    assert verdict.asymmetry > 0.5
    assert "differ" in verdict.statement


def test_values_that_are_not_finite():
    verdict = is_valid(Polynomial(200), 1e3 * X[:5])
    assert not verdict
    assert "not finite" in verdict.statement


def test_a_distance_is_no_kernel():
    def distance(A, B):
        return np.abs(A[:, None, 0] - B[None, :, 0])

    assert not is_valid(FromCallable(distance), X)


def test_kinds_of_rows():
    assert is_valid(Gaussian(), sparse.csr_array(X), n_samples=20).n_samples == 20
    assert is_valid(Gaussian(), X.astype(np.float32))
    assert is_valid(Gaussian().on("b"), pd.DataFrame(X, columns=list("abcd")))
    assert is_valid(Linear(), X[:1])
    with pytest.raises(ValueError, match="no rows"):
        is_valid(Linear(), X[:0])


def test_tolerance_is_the_users():
    assert is_valid(Sigmoid(), X - 0.5, tol=1e9)
