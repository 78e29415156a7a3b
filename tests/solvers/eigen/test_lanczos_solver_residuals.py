"""Residuals of eigenpairs from a few exact rows, and products that are less exact than float32."""

import numpy as np
import pytest

from mercer.certificates import certify
from mercer.gram import CenteredGram, DenseGram, Need, PrecomputedGram, ScaledGram, exact, make_gram
from mercer.kernels import Gaussian
from mercer.problems import Eigenproblem
from mercer.solvers import Lanczos, Status, solve
from mercer.solvers.eigen.lanczos_solver import ROWS, sampled_residuals

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((1200, 2))
WEIGHTS = rng.uniform(0.5, 2.0, len(X))


def stored(dtype=np.float32):
    return make_gram(Gaussian(1.5), X, Need.PASSES, dtype=dtype)


class Noisy(DenseGram):
    """K in float32 whose entries have 18 bits, as a careless tensor core would make them."""

    def __matmul__(self, V):
        n = self.shape[0]
        E = np.random.default_rng(1).standard_normal((n, n))
        return super().__matmul__(V) + 4e-6 * ((E + E.T) / 2) @ V


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda gram: gram,
        CenteredGram,
        lambda gram: ScaledGram(CenteredGram(gram, WEIGHTS), np.sqrt(WEIGHTS)),
        lambda gram: CenteredGram(PrecomputedGram(gram.dense())),
    ],
)
def test_a_few_rows_tell_the_length_of_all(wrapped):
    gram = wrapped(stored())
    V = np.linalg.qr(rng.standard_normal((len(X), 6)))[0]
    found = solve(Eigenproblem(gram, 6), Lanczos(tol=1e-4)).value
    for vectors in (found.vectors, np.linalg.qr(found.vectors + 1e-6 * V)[0]):
        wanted = np.linalg.norm(exact(gram) @ vectors - vectors * found.values, axis=0)
        estimated = sampled_residuals(gram, found.values, vectors, 0)
        np.testing.assert_allclose(estimated, wanted, rtol=0.4)  # a fifth of all rows is read


def test_fewer_rows_than_are_sampled():
    small = CenteredGram(make_gram(Gaussian(1.5), X[: ROWS // 4], Need.PASSES))
    V = np.linalg.qr(rng.standard_normal((ROWS // 4, 2)))[0]
    V -= V.mean(axis=0)
    wanted = np.linalg.norm(small @ V - V, axis=0)
    np.testing.assert_allclose(sampled_residuals(small, np.ones(2), V, 0), wanted, rtol=1e-6)


def test_products_that_are_less_exact_than_float32_are_corrected_in_float64():
    problem = Eigenproblem(CenteredGram(Noisy(stored().source)), 4)
    found = solve(problem, Lanczos(tol=1e-6))
    assert found.status is Status.SOLVED
    assert certify(problem, found.value, tol=1e-6).ok
