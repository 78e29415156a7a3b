"""Mercer's theorem: closed forms against mpmath, quadrature against both, errors of expansions."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse

from mercer.kernels import (
    BoxDensity,
    FromCallable,
    Gaussian,
    Laplacian,
    Linear,
    NormalDensity,
    Polynomial,
    SampleDensity,
    Sigmoid,
    Spectrum,
    UniformDensity,
    eigenfunctions,
)
from mercer.kernels.mercer_theorem import HermiteEigenfunctions, NystromEigenfunctions

RNG = np.random.default_rng(5)


def minimum(X, Y):
    """Return the covariance of Brownian motion."""
    return np.minimum(X, Y.T)


# --- the Gaussian kernel under a normal density ---------------------------------------------------


@pytest.mark.parametrize(("scale", "variance"), [(1.0, 1.0), (0.4, 2.0), (3.0, 0.25)])
def test_the_integral_equation_by_mpmath(scale, variance):
    found = eigenfunctions(Gaussian(scale), NormalDensity(0.5, variance), n_components=4)
    assert isinstance(found, HermiteEigenfunctions)

    def psi(j, y):
        return found(np.array([[float(y)]]))[0, j]

    with mp.workdps(20):
        s, v = mp.mpf(scale), mp.mpf(variance)
        spread = mp.sqrt(v)
        ends = [mp.mpf(0.5) + spread * t for t in (-12, -4, 0, 4, 12)]

        def p(y):
            return mp.exp(-((y - 0.5) ** 2) / (2 * v)) / mp.sqrt(2 * mp.pi * v)

        for j in (0, 3):
            for x in (-0.7, 1.6):
                left = mp.quad(
                    lambda y, j=j, x=x: mp.exp(-((x - y) ** 2) / (2 * s * s)) * psi(j, y) * p(y),
                    ends,
                )
                assert abs(left - found.eigenvalues[j] * psi(j, x)) < 1e-12


def test_the_golden_ratio():
    """With scale and variance 1 the eigenvalues are powers of (3 - sqrt 5) / 2."""
    found = eigenfunctions(Gaussian(1.0), NormalDensity(), 30)
    ratio = (3 - np.sqrt(5)) / 2
    np.testing.assert_allclose(found.eigenvalues, (1 - ratio) * ratio ** np.arange(30), rtol=1e-13)
    assert found.trace == 1.0
    np.testing.assert_allclose(found.remainder, ratio**30, atol=1e-15)


@pytest.mark.parametrize(
    ("scale", "density"),
    [
        (0.8, NormalDensity(1.0, 2.0)),
        ([1.0, 2.0], NormalDensity([0.0, 3.0], [1.0, 0.2])),
        (1.5, NormalDensity([1.0, -1.0], [[1.0, 0.4], [0.4, 0.5]])),
        ([1.0, 3.0], NormalDensity([1.0, -1.0], [[1.0, 0.4], [0.4, 0.5]])),
    ],
    ids=range(4),
)
def test_closed_form_and_quadrature_agree(scale, density):
    k = Gaussian(scale)
    found = eigenfunctions(k, density, 8)
    nodes = 80 if len(found.a) == 1 else 36
    np.testing.assert_allclose(found.products(n_nodes=2 * nodes), np.eye(8), atol=1e-10)
    assert found.residuals(n_nodes=nodes).max() < 1e-7
    other = eigenfunctions(k, density, 8, n_nodes=nodes)
    assert isinstance(other, NystromEigenfunctions)
    np.testing.assert_allclose(other.eigenvalues, found.eigenvalues, rtol=1e-6)
    at = density.nodes(5)[0]
    np.testing.assert_allclose(np.abs(other(at)), np.abs(found(at)), atol=1e-5)


def test_many_terms_give_the_kernel():
    X = RNG.normal(size=(20, 2))
    k = Gaussian(1.2)
    errors = []
    for m in (5, 50, 400):
        found = eigenfunctions(k, NormalDensity([0, 0], 1.0), m)
        gap, bound = np.abs(found.expansion(X) - k(X)), found.error(X)
        assert (gap <= np.sqrt(np.outer(bound, bound)) + 1e-12).all()
        errors.append(gap.max())
        np.testing.assert_allclose(found.features(X) @ found.features(X).T, found.expansion(X))
    assert errors[0] > errors[1] > errors[2] < 1e-6


def test_order_of_products():
    found = eigenfunctions(Gaussian([1.0, 1.3]), NormalDensity([0, 0], [1.0, 1.0]), 60)
    assert (np.diff(found.eigenvalues) <= 1e-15).all()
    assert len({tuple(row) for row in found.degrees}) == 60
    one, two = (eigenfunctions(Gaussian(s), NormalDensity(), 60).eigenvalues for s in (1.0, 1.3))
    wanted = np.sort(np.multiply.outer(one, two).ravel())[::-1][:60]
    np.testing.assert_allclose(found.eigenvalues, wanted, rtol=1e-12)


# --- other kernels and densities ------------------------------------------------------------------


def test_brownian_motion():
    """min(x, y) on [0, 1]: 4 / ((2 j + 1)^2 pi^2) and sqrt(2) sin((j + 1/2) pi x)."""
    found = eigenfunctions(FromCallable(minimum), UniformDensity(0.0, 1.0), 4)
    j = np.arange(4)
    np.testing.assert_allclose(found.eigenvalues, 4 / ((2 * j + 1) ** 2 * np.pi**2), rtol=1e-3)
    x = np.linspace(0.05, 0.95, 7)[:, None]
    np.testing.assert_allclose(
        np.abs(found(x)), np.abs(np.sqrt(2) * np.sin((j + 0.5) * np.pi * x)), atol=3e-3
    )
    np.testing.assert_allclose(found.trace, 0.5, rtol=1e-12)


def test_a_finite_kernel_has_few():
    found = eigenfunctions(Polynomial(2), UniformDensity(-1.0, 1.0), 10)
    assert len(found.eigenvalues) == 3
    assert found.remainder < 1e-14
    x = np.array([[-0.3], [0.8]])
    np.testing.assert_allclose(found.expansion(x), Polynomial(2)(x), atol=1e-12)
    assert len(eigenfunctions(Linear(), [[2.0], [3.0]]).eigenvalues) == 1


def test_any_density_on_a_box():
    one = eigenfunctions(Laplacian(1.0), UniformDensity([0, 1], [1, 3]), 5, n_nodes=20)
    two = eigenfunctions(
        Laplacian(1.0), BoxDensity(lambda X: np.full(len(X), 7.0), [0, 1], [1, 3]), 5, n_nodes=20
    )
    np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, rtol=1e-12)
    bent = BoxDensity(lambda X: np.exp(-(X[:, 0] ** 2) / 2), -8.0, 8.0)
    np.testing.assert_allclose(
        eigenfunctions(Gaussian(1.0), bent, 5).eigenvalues,
        eigenfunctions(Gaussian(1.0), NormalDensity(), 5).eigenvalues,
        rtol=1e-10,
    )


def test_a_sample():
    X = RNG.normal(size=(40, 3))
    found = eigenfunctions(Gaussian(1.0), X, 40)
    K = Gaussian(1.0)(X)
    np.testing.assert_allclose(found.expansion(X), K, atol=1e-8)
    np.testing.assert_allclose(found.eigenvalues.sum(), np.trace(K) / 40)
    np.testing.assert_allclose(found.products(), np.eye(40), atol=1e-9)
    few = eigenfunctions(Gaussian(1.0), X, 6)
    np.testing.assert_allclose(few.error(X).mean(), few.remainder, rtol=1e-10)
    new = RNG.normal(size=(30, 3))
    gap, bound = np.abs(few.expansion(new) - Gaussian(1.0)(new)), few.error(new)
    assert (gap <= np.sqrt(np.outer(bound, bound)) + 1e-12).all()


def test_a_large_sample_nears_the_density():
    X = RNG.normal(size=(600, 1))
    found = eigenfunctions(Gaussian(1.0), X, 3)
    exact = eigenfunctions(Gaussian(1.0), NormalDensity(), 3)
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, rtol=0.15)


def test_weights_are_repetitions():
    X = RNG.normal(size=(6, 2))
    counts = np.array([1, 3, 0, 2, 1, 1])
    one = eigenfunctions(Gaussian(1.0), SampleDensity(X, counts), 4)
    two = eigenfunctions(Gaussian(1.0), np.repeat(X, counts, axis=0), 4)
    np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(np.abs(one(X)), np.abs(two(X)), atol=1e-9)


def test_rows_of_other_kinds():
    X = RNG.normal(size=(9, 3))
    np.testing.assert_allclose(
        eigenfunctions(Gaussian(1.0), sparse.csr_array(X), 3).eigenvalues,
        eigenfunctions(Gaussian(1.0), X, 3).eigenvalues,
    )
    words = ["banana", "ananas", "cab", "bandana"]
    found = eigenfunctions(Spectrum(2), words, 4)
    np.testing.assert_allclose(found.expansion(words), Spectrum(2)(words), atol=1e-8)
    held = eigenfunctions(Gaussian(1.0), X, 3)
    before = held(np.zeros((1, 3)))
    X[:] = 0.0
    np.testing.assert_array_equal(held(np.zeros((1, 3))), before)


@pytest.mark.parametrize(
    ("X", "scale"),
    [
        (np.zeros((1, 2)), 1.0),
        (np.ones((5, 2)), 1.0),
        (RNG.normal(size=(9, 2)) + 1e8, 1.0),
        (RNG.normal(size=(9, 2)) * 1e-140, 1e-140),
        (RNG.normal(size=(9, 2)) * 1e140, 1e140),
    ],
    ids=range(5),
)
def test_hostile_samples(X, scale):
    found = eigenfunctions(Gaussian(scale), X, 20)
    assert found.error(X).max() < 1e-8
    np.testing.assert_allclose(found.expansion(X), Gaussian(scale)(X), atol=1e-7)


def test_refusals():
    with pytest.raises(ValueError, match=r"the eigenvalue -.*mercer_condition"):
        eigenfunctions(Sigmoid(1.0, -1.0), UniformDensity(-1.0, 1.0))
    with pytest.raises(TypeError, match="must be a kernel"):
        eigenfunctions("gaussian", UniformDensity())
    for count in (0, -1, 1.5, None):
        with pytest.raises(ValueError, match="n_components"):
            eigenfunctions(Gaussian(1.0), NormalDensity(), count)
    with pytest.raises(ValueError, match="at most 180"):
        eigenfunctions(Gaussian(1.0), UniformDensity(), 3, n_nodes=500)
    with pytest.raises(ValueError, match="leave n_nodes out"):
        eigenfunctions(Gaussian(1.0), [[0.0], [1.0]], 3, n_nodes=5)
    with pytest.raises(ValueError, match="not finite"):
        eigenfunctions(Gaussian(1.0), [[0.0], [np.nan]])
    with pytest.raises(ValueError, match="covariance must have positive eigenvalues"):
        NormalDensity(0.0, 0.0)
    with pytest.raises(ValueError, match="a covariance of as many"):
        NormalDensity([0.0, 1.0], np.eye(3))
    with pytest.raises(ValueError, match="below high"):
        UniformDensity(1.0, 0.0)
    with pytest.raises(ValueError, match="2 scales, the density 1"):
        eigenfunctions(Gaussian([1.0, 2.0]), NormalDensity())
    with pytest.raises(ValueError, match="the density has 1"):
        eigenfunctions(Gaussian(1.0), NormalDensity())(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="nowhere negative"):
        BoxDensity(lambda X: -X[:, 0]).nodes()
    with pytest.raises(ValueError, match="one for each of 2 rows"):
        SampleDensity([[0.0], [1.0]], [1.0]).nodes()
