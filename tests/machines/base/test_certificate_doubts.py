"""A fit that has a reason to doubt its answer says so itself, not when its certificate is read."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    CCA,
    SVR,
    BernoulliMixture,
    FisherDiscriminant,
    GaussianMixture,
    KernelRidge,
    KMeans,
    LogisticRegression,
    MultinomialMixture,
    NearestNeighbors,
    Perceptron,
    SpectralClustering,
    Status,
)
from mercer.gram import LazyGram, Source
from mercer.kernels import Gaussian, Linear, Precomputed, Sigmoid
from mercer.machines.base.certificate import is_well_conditioned

pytestmark = pytest.mark.numerics


def fitted(machine, *given):
    """Fit, and return whether the fit itself warned; reading the certificate must add nothing."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        machine.fit(*given)
        before, status = len(said), machine.solution_.status
        _ = machine.certificate_
        assert len(said) == before
    assert machine.solution_.status is status
    assert machine.certificate_.ok or status is not Status.SOLVED
    return any(issubclass(w.category, ConvergenceWarning) for w in said)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_cca_of_an_indefinite_kernel(rng):
    X = rng.standard_normal((20, 2))
    assert fitted(CCA(kernel_x=Sigmoid(0.8, -1.0)), X, X)
    assert fitted(CCA(kernel_x=Linear(), kernel_y=Sigmoid(0.8, -1.0)), X, X)


def test_spectral_clustering_beyond_the_rank():
    for n in (20, 54, 200):
        machine = SpectralClustering(kernel=Gaussian(1.0))
        assert not fitted(machine, np.ones((n, 2)))
        assert machine.solution_.status is Status.SOLVED


def test_spectral_clustering_of_degrees_that_cancel():
    rng = np.random.default_rng(348328)
    X = rng.integers(0, 4, (18, 11)).astype(float) + 1e-12 * rng.standard_normal((18, 11))
    fitted(SpectralClustering(kernel=Gaussian(0.5**0.5), self_loops=False), X)


@pytest.mark.parametrize("seed", range(10))
def test_mixture_of_collapsed_parts(seed):
    """Gains are below what rounding takes from densities, so their sign decides nothing."""
    X = np.random.default_rng(785826).standard_normal((6, 3))
    if seed:
        X = np.nextafter(X, np.random.default_rng(seed).choice([-np.inf, np.inf], X.shape))
    machine = GaussianMixture(floor=1e-12, random_state=2)
    assert fitted(machine, X)
    assert machine.solution_.status is Status.INACCURATE
    assert "rounding may change the gain" in machine.certificate_.statement
    assert machine.collapsed_.all()  # both are on three rows, which lie in a plane
    machine = GaussianMixture(floor=1e-6, random_state=2)
    fitted(machine, X)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok and machine.collapsed_.all()


def test_neighbours_of_an_indefinite_kernel(rng):
    X = np.abs(rng.standard_normal((42, 1)))
    assert fitted(NearestNeighbors(kernel=Sigmoid(0.26, 0.5)), X, np.arange(42) % 3)


def test_perceptron_of_a_matrix_that_is_all_mean():
    rng = np.random.default_rng(596844)
    X, y = rng.integers(0, 4, (7, 9)) + 1e8, rng.integers(0, 2, 7)
    fitted(Perceptron(Precomputed(), budget=5, bias=False, random_state=9), X @ X.T, y)


def test_ridge_whose_time_is_over(rng):
    X = rng.exponential(1.0, (39, 6)) * 10.0 ** rng.uniform(-3, 3, (39, 1))
    fitted(KernelRidge(kernel=Gaussian(1.0), penalty=1e-12, time_limit=1e-9), X, X[:, 0])


def test_coefficients_that_the_kernel_sends_to_nothing_are_no_gain():
    rng = np.random.default_rng(77860)
    X = np.abs(rng.standard_normal((3, 2))[rng.integers(0, 3, 6)])
    assert not fitted(FisherDiscriminant("gaussian"), X, rng.integers(0, 6, 6))


def test_inertia_of_an_indefinite_kernel_is_negative(rng):
    K = rng.standard_normal((54, 54))
    K = K + K.T
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        machine = KMeans(kernel=Precomputed(), random_state=0).fit(K)
    own = np.trace(K) - sum(
        K[np.ix_(c, c)].sum() / len(c)
        for c in (np.flatnonzero(machine.labels_ == j) for j in range(machine.n_clusters))
    )
    assert own < 0
    np.testing.assert_allclose(machine.inertia_, own)


def test_lloyd_alone_is_solved_where_its_points_are_with_their_means(rng):
    X = rng.standard_normal((165, 1))
    machine = KMeans(5, n_init=1, refine=False, random_state=0).fit(X)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.quantities.reassignment_gain <= machine.certificate_.tol


@pytest.mark.parametrize("kind", [GaussianMixture, BernoulliMixture, MultinomialMixture])
def test_parts_beyond_the_rows_are_refused(kind, rng):
    with pytest.raises(ValueError, match=f"{kind.__name__}: n_components=1000000 must be at most"):
        kind(10**6).fit((rng.random((20, 2)) > 0.5) * 1.0)


def test_a_negative_seed_is_refused_by_name(rng):
    with pytest.raises(ValueError, match="Perceptron: random_state=-1 must be"):
        Perceptron(random_state=-1).fit(rng.standard_normal((4, 1)), [0, 1, 0, 1])


def test_counts_in_float32_say_nothing(rng):
    X = np.abs(rng.standard_normal((5, 1))).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        MultinomialMixture(random_state=9).fit(X)


def test_weights_that_no_penalty_can_be_compared_with_are_refused(rng):
    Z, t = rng.standard_normal((8, 1)), rng.standard_normal(8)
    with pytest.raises(ValueError, match=r"KernelRidge: sample_weight is .* beside a penalty"):
        KernelRidge(kernel=Gaussian(1.0)).fit(Z, t, sample_weight=1e-300 * rng.random(8))


def test_biases_of_three_classes_have_no_common_part(rng):
    X, y = rng.standard_normal((30, 2)), rng.integers(0, 3, 30)
    for kernel in ("linear", Gaussian(1.0)):
        machine = LogisticRegression(kernel, 1e-12).fit(X, y)
        assert abs(machine.intercept_.sum()) <= 1e-12 * abs(machine.intercept_).max()


def test_a_sample_that_moves_the_mean_is_looked_at_within_the_fit():
    """Distances are taken from the mean, and lose digits where it is far from most samples."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 1)), rng.standard_normal(40)
    X[7] = -1e9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SVR(Gaussian(0.7), C=1e5, tube="l2").fit(X, y)
    assert machine.solution_.status.ok == machine.certificate_.ok
    cases = [(Gaussian(0.7), X, False), (Gaussian(0.7), X[8:], True), (Linear(), np.eye(50), True)]
    for kernel, rows, calm in cases:
        gram = LazyGram(Source(kernel.expression(), rows))
        assert is_well_conditioned(gram, None, None, None) == calm
