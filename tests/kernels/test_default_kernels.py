"""Names, texts and functions become kernels; defaults as in the table of the module."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process import kernels as gp
from sklearn.svm import SVC

from mercer.backends import available_backends
from mercer.kernels import (
    AllSubsets,
    ChiSquared,
    Cosine,
    FromCallable,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    ParseError,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    resolve,
)
from mercer.kernels.default_kernels import weighted_variance
from mercer.resources import config

RNG = np.random.default_rng(8)
X = RNG.normal(3.0, 2.0, size=(40, 5))
GAMMA = 1 / (5 * X.var())


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def dot(rows, columns):
    return rows @ columns.T


def test_kernels_pass_through():
    k = Gaussian(3) + Linear()
    assert resolve(k, X) is k


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("linear", Linear()),
        ("Cosine", Cosine()),
        ("precomputed", Precomputed()),
        ("all_subsets", AllSubsets()),
        ("AllSubsets", AllSubsets()),
        ("chi2", ChiSquared(1.0)),
        ("chi_squared", ChiSquared(1.0)),
        ("spectrum", Spectrum()),
        ("gaussian(2) + linear", Gaussian(2) + Linear()),
        ("gaussian() + linear", Gaussian(1) + Linear()),
        (" 2 * polynomial(2)[0, 1]", 2 * Polynomial(2).on([0, 1])),
    ],
)
def test_texts(name, kernel):
    assert resolve(name, X) == kernel
    assert resolve(name) == kernel


def test_rbf_is_that_of_scikit_learn():
    y = RNG.integers(0, 2, 40)
    theirs = SVC(gamma="scale").fit(X, y)._gamma
    for name in ("rbf", "gaussian", "Gaussian"):
        assert 0.5 / resolve(name, X).scale ** 2 == pytest.approx(theirs, rel=1e-14)


def test_other_defaults():
    scale = np.sqrt(0.5 / GAMMA)
    assert resolve("matern", X).scale == pytest.approx(scale)
    assert resolve("rational_quadratic", X).scale == pytest.approx(scale)
    assert isinstance(resolve("matern", X), Matern)
    assert isinstance(resolve("rational_quadratic", X), RationalQuadratic)
    assert resolve("laplacian", X).scale == pytest.approx(5 * X.std())
    assert resolve("sigmoid", X).slope == pytest.approx(GAMMA)
    for name in ("poly", "polynomial"):
        np.testing.assert_allclose(resolve(name, X)(X), (GAMMA * X @ X.T + 1) ** 3, rtol=1e-12)


def test_without_data_names_have_plain_defaults():
    assert resolve("rbf") == Gaussian()
    assert resolve("laplacian") == Laplacian()
    assert resolve("sigmoid") == Sigmoid()
    assert resolve("poly") == Polynomial(3)
    assert resolve("rbf", ["a", "b"]) == Gaussian()


def test_weights_mean_repetition():
    w = RNG.integers(0, 4, 40)
    repeated = np.repeat(X, w, axis=0)
    assert weighted_variance(X, w) == pytest.approx(repeated.var(), rel=1e-13)
    assert resolve("rbf", X, w).scale == pytest.approx(resolve("rbf", repeated).scale, rel=1e-13)
    with pytest.raises(ValueError, match="positive sum"):
        weighted_variance(X, np.zeros(40))


def test_sparse_and_float32_have_the_same_variance():
    S = X * (RNG.uniform(size=X.shape) < 0.3)
    w = RNG.uniform(size=40)
    assert weighted_variance(sparse.csr_array(S), w) == pytest.approx(weighted_variance(S, w))
    single = X.astype(np.float32)
    assert weighted_variance(single) == pytest.approx(single.astype(float).var(), rel=1e-6)
    far = X + 1e8  # one pass would cancel
    assert weighted_variance(far) == pytest.approx(far.var(), rel=1e-9)


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
def test_constant_data_warn(name):
    ones = np.full((4, 3), 2.0)
    with pytest.warns(UserWarning, match=f"kernel='{name}': all entries of X are equal"):
        k = resolve(name, ones)
    gamma_is_one = {
        "rbf": Gaussian(np.sqrt(0.5)),
        "poly": 1.0 * Polynomial(3),
        "sigmoid": Sigmoid(1.0),
    }
    np.testing.assert_allclose(k(ones), gamma_is_one[name](ones), rtol=1e-14)


def test_functions():
    assert resolve(dot) == FromCallable(dot)


def test_kernels_of_gaussian_processes():
    theirs = 2.0 * gp.RBF(1.5) + gp.DotProduct(0.5)
    k = resolve(theirs)
    np.testing.assert_allclose(k(X), theirs(X), rtol=1e-12)
    np.testing.assert_allclose(k(sparse.csr_array(X), X[:3]), theirs(X, X[:3]), rtol=1e-12)
    assert k == resolve(2.0 * gp.RBF(1.5) + gp.DotProduct(0.5))
    assert hash(k) == hash(resolve(2.0 * gp.RBF(1.5) + gp.DotProduct(0.5)))
    assert k != resolve(gp.RBF(1.5))
    assert "RBF" in repr(k)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (Gaussian, TypeError, "is a class; pass a kernel: Gaussian()"),
        (None, TypeError, "kernel=None must be"),
        (3.0, TypeError, "kernel=3.0 must be"),
        ("gausian", ParseError, "did you mean 'gaussian'"),
        ("", ParseError, "expected"),
    ],
)
def test_refusals(given, error, words):
    with pytest.raises(error, match=words):
        resolve(given, X)


@pytest.mark.parametrize("value", [3.7, 0.1, 1e8 / 3, 0.0])
def test_equal_entries_suggest_no_scale_whatever_their_rounding(value):
    X = np.full((7, 3), value)
    with pytest.warns(UserWarning, match="all entries of X are equal"):
        k = resolve("gaussian", X)
    assert k.scale == pytest.approx(np.sqrt(0.5))


def test_large_float32_entries_do_not_overflow():
    X = (1e25 * np.random.default_rng(0).standard_normal((20, 3))).astype(np.float32)
    assert resolve("gaussian", X).scale == pytest.approx(1e25 * np.sqrt(1.5), rel=0.5)
