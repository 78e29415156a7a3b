"""Features that are evaluated when needed: the same Gram as that of features written out."""

import numpy as np
import pytest

from mercer import config
from mercer.approximation import Nystrom, RandomFeatures
from mercer.gram import FactoredGram, Need, StreamedGram, make_gram
from mercer.kernels import Gaussian
from mercer.resources import MemoryBudgetError
from mercer.testing import check_gram

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((90, 3)), rng.standard_normal((7, 3))
MAPS = [Nystrom(12).of(Gaussian(1.5), X).phi, RandomFeatures(12).of(Gaussian(1.5), X).phi]


@pytest.mark.parametrize("phi", MAPS)
def test_it_is_the_gram_of_its_features(phi):
    gram, F = StreamedGram(phi, phi, X), phi(X)
    check_gram(gram, F @ F.T, Z, phi(Z) @ F.T)
    W, V = rng.standard_normal((F.shape[1], 2)), rng.standard_normal((90, 3))
    np.testing.assert_allclose(gram.push(W), F @ W, atol=1e-9)
    np.testing.assert_allclose(gram.pull(V), F.T @ V, atol=1e-9)
    cubes = gram.round_trip(W, lambda rows, values: values**3 * V[rows, :1])
    np.testing.assert_allclose(cubes, F.T @ ((F @ W) ** 3 * V[:, :1]), atol=1e-8)
    assert (gram.diag() <= gram.longest() + 1e-9).all()
    absolute = np.linalg.norm(abs(F.T) @ abs(V), axis=0)
    assert (absolute <= gram.absolute_pull(abs(V))[0] + 1e-9).all()


@pytest.mark.parametrize("phi", MAPS)
@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_rows_that_are_held(phi, dtype, digits):
    """The first pass is exact and fills; the next reads what was filled."""
    gram, F = StreamedGram(phi, phi, X).hold(dtype), phi(X)
    W = rng.standard_normal((F.shape[1], 2))
    np.testing.assert_allclose(gram.push(W), F @ W, atol=1e-9)
    np.testing.assert_allclose(gram.push(W), F @ W, atol=digits)
    np.testing.assert_allclose(gram.push(1e60 * W), 1e60 * F @ W, atol=1e60 * digits)
    assert gram.nbytes == 90 * F.shape[1] * np.dtype(dtype).itemsize


def test_a_pass_that_is_broken_off_fills_nothing():
    gram = StreamedGram(MAPS[0], MAPS[0], X).hold(np.float64)
    W = np.eye(MAPS[0].dimension)

    def broken_off(rows, values):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gram.round_trip(W, broken_off)
    np.testing.assert_allclose(gram.push(W), MAPS[0](X), atol=1e-9)


def test_few_rows_are_written_out_and_many_are_not(monkeypatch):
    kernel = Nystrom(12).of(Gaussian(1.5), X)
    assert type(make_gram(kernel, X, Need.PRODUCTS)) is FactoredGram
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 100)
    gram = make_gram(kernel, X, Need.PRODUCTS)
    assert type(gram) is StreamedGram
    assert gram.written is None
    many = rng.standard_normal((60_000, 3))
    with (
        config(memory="10MB"),
        pytest.raises(MemoryBudgetError, match="12 features of 60000 rows"),
    ):
        _ = make_gram(kernel, many, Need.PRODUCTS).factor
