"""K-means on samples far from zero, next to outliers, and in extreme units, against longdouble."""

import numpy as np
import pytest
from scipy import sparse

from mercer import KMeans, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from mercer.machines.clustering.distances import feature_means, loses_digits, squared_distances
from mercer.problems import Clusters, Partition

pytestmark = pytest.mark.numerics


def measured(X, labels):
    """Squared distances from the means, by plain differences: (n, k)."""
    X = X.astype(np.longdouble)
    groups = [X[labels == c] for c in range(labels.max() + 1)]
    means = [rows[0] + (rows - rows[0]).mean(axis=0) for rows in groups]
    return np.stack([((X - mean) ** 2).sum(axis=1) for mean in means], axis=1)


def best_move(D, labels):
    """The most that one sample gains by another cluster, both means following it."""
    sizes, rows = np.bincount(labels), np.arange(len(labels))
    own = sizes[labels]
    leave = np.where(own > 1, own / np.maximum(own - 1, 1) * D[rows, labels], 0.0)
    join = D * (sizes / (sizes + 1))
    join[rows, labels] = np.inf
    return float((leave - join.min(axis=1)).max())


def check(machine, X):
    D = measured(X, machine.labels_)
    own = D[np.arange(len(X)), machine.labels_]
    objective = float(own.sum())
    assert machine.certificate_.ok, machine.certificate_.statement
    assert (D.min(axis=1) >= own * (1 - 1e-6)).all()
    assert best_move(D, machine.labels_) <= 1e-5 * objective
    assert machine.inertia_ == pytest.approx(objective, rel=1e-7)
    np.testing.assert_array_equal(machine.predict(X), machine.labels_)
    return D


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("shape", [(60, 100), (60, 59), (60, 60), (60, 4)])
def test_an_offset_costs_no_digits_of_wide_and_tall_samples(shape, offset):
    X = np.random.default_rng(0).standard_normal(shape)
    X[:30] += 1
    X += offset
    machine = KMeans(2, random_state=0).fit(X)
    D = check(machine, X)
    np.testing.assert_allclose(machine.transform(X) ** 2, D.astype(float), rtol=1e-6)


def test_a_wide_offset_leaves_the_clusters_that_are_there():
    X = np.random.default_rng(0).standard_normal((60, 100))
    X[:30] += 1
    near, far = KMeans(2).fit(X), KMeans(2).fit(X + 2.0**26)
    np.testing.assert_array_equal(near.labels_, far.labels_)
    assert sorted(far.cluster_sizes_) == [30, 30]
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-7)


@pytest.mark.filterwarnings("ignore:.*differ in scale")
@pytest.mark.parametrize("outlier", [1e6, 1e8, 1e10, 1e12, 1e14])
@pytest.mark.parametrize("shape", [(12, 1), (200, 2), (100, 150), (300, 20)])
def test_one_outlier_misplaces_no_other_sample(shape, outlier):
    X = np.random.default_rng(1).standard_normal(shape)
    X[: len(X) // 2] += 3
    X[3, -1] = outlier
    check(KMeans(3, random_state=0).fit(X), X)


@pytest.mark.parametrize("far", [1e6, 1e10])
def test_clusters_far_from_one_another_are_parted_inside(far):
    rng = np.random.default_rng(2)
    places = np.repeat([[0.0, 0.0], [-6.0, 5.0], [far, far], [far + 8, far]], 50, axis=0)
    X = places + rng.standard_normal(places.shape)
    check(KMeans(4, random_state=0).fit(X), X)


@pytest.mark.filterwarnings("ignore:.*stopped making progress")
def test_what_rounding_of_the_samples_hides_is_not_certified():
    rng = np.random.default_rng(2)
    places = np.repeat([[0.0, 0.0], [1e14, 1e14]], 60, axis=0)
    machine = KMeans(4, random_state=0).fit(places + rng.standard_normal(places.shape))
    assert not machine.certificate_.ok


def test_the_certificate_refuses_samples_that_products_misplace():
    """Distances of 12 numbers, one of them 1e10: products leave no digit of the others."""
    X = np.random.default_rng(3).standard_normal((12, 1))
    X[0] = 1e10
    labels = np.array([0] + [1, 2] * 5 + [1])
    problem = Partition(make_gram(Linear(), X, Need.PRODUCTS), 3, np.ones(12))
    found = certify(problem, Clusters(labels))
    assert not found.ok and found.quantities.misplaced > 0
    assert "nearer to the mean of another" in found.statement
    objective = measured(X, labels)[np.arange(12), labels].sum()
    assert found.quantities.objective == pytest.approx(float(objective), rel=1e-9)


def test_a_polynomial_kernel_without_features_counts_what_an_outlier_hides():
    X = np.random.default_rng(4).standard_normal((40, 30))
    X[3, 1] = 1e6
    labels = np.arange(40) % 3
    gram = make_gram(Polynomial(3), X, Need.ROWS)
    found = certify(Partition(gram, 3, np.ones(40)), Clusters(labels))
    assert gram.factor is None and not found.ok


@pytest.mark.parametrize("exponent", [-440, -100, 100, 440])
def test_units_change_nothing(exponent):
    X = np.random.default_rng(5).standard_normal((50, 3))
    unit = 2.0**exponent
    plain, scaled = KMeans(3).fit(X), KMeans(3, "linear").fit(X * unit)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(scaled.transform(X * unit), plain.transform(X) * unit, rtol=1e-12)


def test_units_whose_squares_underflow_are_refused():
    X = np.random.default_rng(5).standard_normal((50, 3))
    with pytest.raises(ValueError, match="Scale the features"):
        KMeans(3).fit(X * 1e-200)
    plain, tiny = KMeans(3, Gaussian(1.0)).fit(X), KMeans(3, Gaussian(2.0**-660)).fit(X * 2.0**-660)
    np.testing.assert_array_equal(plain.labels_, tiny.labels_)


# --- distances and means -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_distances_are_known_relatively(kind):
    rng = np.random.default_rng(6)
    F = rng.standard_normal((50, 4)) + 1e9
    M = F[:3] + 1e-3 * rng.standard_normal((3, 4))
    wanted = ((F[None].astype(np.longdouble) - M[:, None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(kind(F), M), wanted.astype(float), rtol=1e-10)


def test_means_are_within_their_bound():
    rng = np.random.default_rng(7)
    F, labels, w = rng.standard_normal((400, 3)) + 1e7, rng.integers(4, size=400), rng.random(400)
    sums = np.stack([w[labels == c] @ F[labels == c] for c in range(4)])
    found = feature_means(F, labels, w, sums)
    for c in range(4):
        rows, share = F[labels == c].astype(np.longdouble), w[labels == c]
        mean = rows[0] + share @ (rows - rows[0]) / share.sum()
        assert np.sqrt(((found.means[c] - mean) ** 2).sum()) <= found.rounding[c]
    assert loses_digits(F, found, labels, w) and not loses_digits(
        F - 1e7, feature_means(F - 1e7, labels, w, sums - 1e7 * found.weights[:, None]), labels, w
    )


def test_the_certificate_says_what_rounding_hides_of_the_objective():
    X, weights = np.array([[0.0], [1.0], [2.5]]), np.array([1e12, 1.0, 1.0])
    machine = KMeans(1, Laplacian(0.25), n_init=1, random_state=0).fit(X, sample_weight=weights)
    K = np.exp(-np.abs(X.astype(np.longdouble) - X.T) / 0.25)
    share = weights / weights.sum(dtype=np.longdouble)
    rest = weights[1:].sum() * 2.0 - 2.0 * weights[1:] @ K[1:, 0]  # about the heavy sample
    objective = rest - weights.sum() * (share[1:] @ (K[1:, 1:] - 2 * K[1:, :1] + 1) @ share[1:])
    found = machine.certificate_.quantities
    assert abs(machine.inertia_ - objective) <= found.hidden * found.unit
    assert found.hidden > machine.certificate_.tol
    assert f"the objective is known to {found.hidden:.1e} of it" in machine.certificate_.statement
