"""Nearest mean and nearest neighbours, with any kernel, against brute force and scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import NearestMean, NearestNeighbors, ParameterError, Status, certify
from mercer.gram import CenteredGram, Need, PrecomputedGram, exact, make_gram
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Precomputed, Spectrum
from mercer.machines.neighbors.search import smallest
from mercer.problems import ClassMeans, Means, Nearest, Neighbourhoods
from mercer.rows.points import to_dense

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 3))
Z = rng.standard_normal((30, 3))
y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [-0.3, 0.7])]
KERNELS = [Linear(), Gaussian(1.2), Polynomial(2), Gaussian(2.0) + 0.5 * Linear()]


@parametrize_with_checks(
    [
        NearestMean(),
        NearestMean(Gaussian(1.0)),
        NearestMean(Precomputed()),
        NearestNeighbors(),
        NearestNeighbors(kernel=Gaussian(1.0), votes="similarity"),
        NearestNeighbors(n_neighbors="loo"),
        NearestNeighbors(kernel=Precomputed()),
        NearestNeighbors(by="similarity", votes="signed"),
    ]
)
def test_scikit_learn_protocol(estimator, check):
    check(estimator)


def squared_distances(kernel, A, B):
    lengths = kernel.diag(A)[:, None] + kernel.diag(B)[None, :]
    return lengths - 2 * kernel(A, B)


# --- means -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_nearest_mean_by_distances(kernel):
    machine = NearestMean(kernel).fit(X, y)
    K, KZ = kernel(X), kernel(Z, X)
    shares = np.stack([(y == label) / np.sum(y == label) for label in machine.classes_], axis=1)
    squared = np.einsum("ij,ij->j", shares, K @ shares) - 2 * KZ @ shares  # less k(z, z)
    scores = machine.decision_function(Z)
    np.testing.assert_allclose(scores - scores[:, :1], squared[:, :1] - squared, atol=1e-9)
    assert machine.certificate_.ok
    assert machine.solution_.status.ok


def test_nearest_mean_is_the_nearest_centroid():
    ours, theirs = NearestMean().fit(X, y), NearestCentroid().fit(X, y)
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))


def test_two_classes_are_divided_where_both_means_are_equally_far():
    two = np.where(X[:, 0] > 0, 1, -1)
    machine = NearestMean(Gaussian(1.0)).fit(X, two)
    kernel = Gaussian(1.0)
    plus, minus = X[two > 0], X[two < 0]
    means = [(kernel(Z, A).mean(axis=1), kernel(A).mean()) for A in (minus, plus)]
    far = [kernel.diag(Z) - 2 * near + length for near, length in means]
    np.testing.assert_allclose(machine.decision_function(Z), (far[0] - far[1]) / 2, atol=1e-12)
    coef = np.where(two > 0, 1 / len(plus), -1 / len(minus))  # a_i = y_i / m
    b = (means[0][1] - means[1][1]) / 2
    np.testing.assert_allclose(machine.decision_function(Z), kernel(Z, X) @ coef + b, atol=1e-12)


def test_nearest_mean_in_explicit_features():
    kernel = Polynomial(2)
    features = kernel.features(3)
    ours = NearestMean(kernel).fit(X, y)
    theirs = NearestMean().fit(np.asarray(features(X)), y)
    np.testing.assert_allclose(
        ours.decision_function(Z), theirs.decision_function(np.asarray(features(Z))), atol=1e-8
    )


@pytest.mark.parametrize("Machine", [NearestMean, NearestNeighbors])
def test_rows_may_be_sparse_precomputed_or_texts(Machine):
    kernel = Gaussian(1.2)
    plain = Machine(kernel=kernel).fit(X, y).predict(Z)
    as_csr = Machine(kernel=kernel).fit(sparse.csr_array(X), y).predict(sparse.csr_array(Z))
    given = Machine(kernel=Precomputed()).fit(kernel(X), y).predict(kernel(Z, X))
    own = Machine(kernel=lambda A, B: 0.0 + kernel(A, B)).fit(X, y).predict(Z)
    for other in (as_csr, given, own):
        np.testing.assert_array_equal(plain, other)
    words, labels = ["abab", "aabb", "xyxy", "xxyy", "abba", "yxyx"], [0, 0, 1, 1, 0, 1]
    options = {} if Machine is NearestMean else {"n_neighbors": 1}
    machine = Machine(kernel=Spectrum(1), **options).fit(words, labels)
    assert machine.predict(["bbaa", "xy"]).tolist() == [0, 1]
    assert machine.certificate_.ok


def test_wrong_means_are_refused_by_the_certificate():
    machine = NearestMean(Gaussian(1.0)).fit(X, y)
    codes = np.searchsorted(machine.classes_, y)
    gram = CenteredGram(PrecomputedGram(Gaussian(1.0)(X)))
    problem = ClassMeans(gram, codes, np.ones(80), 3)
    value = machine.solution_.value
    assert certify(problem, value).ok
    assert not certify(problem, Means(value.coef, value.squared * 1.001)).ok
    assert not certify(problem, Means(value.coef * 1.001, value.squared)).ok


# --- neighbours ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:NearestNeighbors. .* negative similarity:UserWarning")
@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_votes_by_brute_force(kernel, k):
    machine = NearestNeighbors(k, kernel=kernel).fit(X, y)
    near = np.argsort(squared_distances(kernel, Z, X), axis=1)[:, :k]
    share = np.stack([(y[near] == c).mean(axis=1) for c in machine.classes_], axis=1)
    np.testing.assert_allclose(machine.predict_proba(Z), share, atol=1e-12)
    alike = NearestNeighbors(k, kernel=kernel, votes="similarity").fit(X, y)
    sim = np.maximum(np.take_along_axis(kernel(Z, X), near, axis=1), 0)
    sim = np.where(sim.any(axis=1, keepdims=True), sim, 1.0)
    weighed = np.stack([((y[near] == c) * sim).sum(axis=1) for c in alike.classes_], axis=1)
    np.testing.assert_allclose(
        alike.predict_proba(Z), weighed / weighed.sum(axis=1, keepdims=True), atol=1e-9
    )
    proba = machine.predict_proba(Z)
    chosen = np.searchsorted(machine.classes_, machine.predict(Z))
    np.testing.assert_allclose(proba[np.arange(30), chosen], proba.max(axis=1))
    assert machine.certificate_.ok


def test_linear_neighbours_are_those_of_scikit_learn():
    theirs = KNeighborsClassifier(5).fit(X, y)
    np.testing.assert_allclose(
        NearestNeighbors().fit(X, y).predict_proba(Z), theirs.predict_proba(Z), atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:NearestNeighbors. .* negative similarity:UserWarning")
@pytest.mark.parametrize("votes", ["plain", "similarity", "signed"])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=repr)
def test_leave_one_out_is_n_refits(kernel, votes):
    small, labels = X[:30], y[:30]
    machine = NearestNeighbors("loo", kernel=kernel, max_neighbors=12, votes=votes).fit(
        small, labels
    )
    for k in (1, 2, 5, 12):
        wrong = 0
        for i in range(30):
            rest = np.arange(30) != i
            one = NearestNeighbors(k, kernel=kernel, votes=votes).fit(small[rest], labels[rest])
            wrong += one.predict(small[[i]])[0] != labels[i]
        assert machine.loo_errors_[k - 1] == pytest.approx(wrong / 30)
    assert machine.n_neighbors_ == machine.loo_errors_.argmin() + 1


def test_leave_one_out_takes_away_one_copy():
    times = rng.integers(0, 4, 30)
    again = np.repeat(np.arange(30), times)
    options = {"kernel": Gaussian(1.0), "n_neighbors": "loo", "max_neighbors": 9}
    weighted = NearestNeighbors(**options).fit(X[:30], y[:30], sample_weight=times)
    repeated = NearestNeighbors(**options).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.loo_errors_, repeated.loo_errors_, atol=1e-12)
    wrong = 0
    for i in range(len(again)):
        rest = np.arange(len(again)) != i
        one = NearestNeighbors(3, kernel=Gaussian(1.0)).fit(X[again][rest], y[again][rest])
        wrong += one.predict(X[again][[i]])[0] != y[again][i]
    assert repeated.loo_errors_[2] == pytest.approx(wrong / len(again))


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 3), min_size=12, max_size=12), st.integers(1, 6), st.randoms())
def test_weights_are_repetition_and_order_does_not_matter(times, k, random):
    times = np.array(times)
    rows = np.round(X[:12])  # with ties
    again = np.repeat(np.arange(12), times)
    if len(np.unique(y[:12][times > 0])) < 2 or times.sum() < k:
        return
    weighted = NearestNeighbors(n_neighbors=k).fit(rows, y[:12], sample_weight=times)
    shuffled = list(again)
    random.shuffle(shuffled)
    repeated = NearestNeighbors(n_neighbors=k).fit(rows[shuffled], y[shuffled])
    at = np.round(Z)
    np.testing.assert_allclose(weighted.predict_proba(at), repeated.predict_proba(at), atol=1e-12)
    np.testing.assert_array_equal(weighted.predict(at), repeated.predict(at))
    means = NearestMean(Gaussian(1.0)).fit(rows, y[:12], sample_weight=times)
    means_again = NearestMean(Gaussian(1.0)).fit(rows[shuffled], y[shuffled])
    np.testing.assert_allclose(
        means.decision_function(at), means_again.decision_function(at), atol=1e-12
    )


def test_ties_go_to_the_class_with_the_nearest_row():
    rows = np.array([[0.0], [1.0], [3.0], [4.0]])
    machine = NearestNeighbors(n_neighbors=4).fit(rows, ["b", "b", "a", "a"])
    assert machine.predict([[1.4], [2.6]]).tolist() == ["b", "a"]
    np.testing.assert_allclose(machine.predict_proba([[1.4]]), [[0.5, 0.5]], rtol=1e-15)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 6))
def test_the_smallest_are_chosen_without_a_sort(seed, n, levels):
    draw = np.random.default_rng(seed)
    key = draw.integers(0, levels, (5, n)).astype(float)
    key[draw.uniform(size=key.shape) < 0.1] = np.inf
    count = int(draw.integers(0, n + 1))
    expected = np.argsort(key, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(smallest(key, count), expected)


def test_a_far_row_does_not_tie_under_a_gaussian():
    """exp(-d^2) underflows far away, but the order of distances does not."""
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    machine = NearestNeighbors(1, kernel=Gaussian(0.01)).fit(rows, [0, 1, 2, 3])
    assert machine.predict([[500.0], [-300.0], [1.4]]).tolist() == [3, 0, 1]


@pytest.mark.parametrize("shift", [1e6, 1e8])
def test_a_far_origin_costs_no_digits(shift):
    ours, theirs = NearestMean().fit(X + shift, y), NearestCentroid().fit(X, y)
    np.testing.assert_array_equal(ours.predict(Z + shift), theirs.predict(Z))
    assert ours.certificate_.ok
    near = NearestNeighbors(n_neighbors=3).fit(X + shift, y)
    assert near.certificate_.ok
    gram = make_gram(Linear(), X + shift, Need.ROWS)
    wrong = Neighbourhoods(np.arange(30).reshape(10, 3))
    assert not certify(Nearest(gram, np.arange(50, 60), 3), wrong).ok


@pytest.mark.filterwarnings("ignore:.*stopped making progress")  # as the certificate says
def test_means_that_coincide_are_not_certified():
    rows = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    machine = NearestMean().fit(rows, [0, 0, 1, 1])
    assert not machine.certificate_.ok
    assert "same to rounding" in machine.certificate_.statement


def test_wrong_neighbours_are_refused_by_the_certificate():
    K = Gaussian(1.0)(X)
    near = np.argsort(-K, axis=1)[:, :4]
    problem = Nearest(PrecomputedGram(K), np.arange(80), 4)
    assert certify(problem, Neighbourhoods(near)).ok
    far = near.copy()
    far[3, 3] = np.argmin(K[3])
    assert not certify(problem, Neighbourhoods(far)).ok
    twice = near.copy()
    twice[5, 3] = twice[5, 2]
    assert not certify(problem, Neighbourhoods(twice)).ok
    assert not certify(problem, Neighbourhoods(near - 80)).ok
    assert not certify(problem, Neighbourhoods(near[:, :3])).ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be"),
        ({"n_neighbors": "cv"}, "n_neighbors='cv'"),
        ({"n_neighbors": np.nan}, "n_neighbors=nan"),
        ({"n_neighbors": 81}, "at most the total weight of the rows; n_samples = 80"),
        ({"max_neighbors": 2.5}, "max_neighbors=2.5"),
        ({"votes": "loud"}, "votes='loud' must be 'plain' or 'similarity' or 'signed'"),
    ],
)
def test_parameters_out_of_range_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        NearestNeighbors(**options).fit(X, y)


def test_copies_carry_the_verdict():
    machine = NearestNeighbors("loo", kernel=Gaussian(1.0)).fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    assert again.certificate_.ok
    np.testing.assert_array_equal(again.predict(Z), machine.predict(Z))


def test_noise_columns_hurt():
    draw = np.random.default_rng(1)
    rows = draw.standard_normal((300, 2))
    labels = np.hypot(*rows.T) > 1.1
    noisy = np.column_stack([rows, 2 * draw.standard_normal((300, 20))])
    clean, spoilt = (
        NearestNeighbors(n_neighbors="loo").fit(A, labels).loo_errors_.min() for A in (rows, noisy)
    )
    assert clean < 0.1 < spoilt


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0), Laplacian(1.0)], ids=str)
@pytest.mark.parametrize("width", [1, 4, 40])
def test_near_copies_are_judged_beside_a_row_far_away(width, kernel, kind):
    """Around the mean of all rows, or by products, differences of 1e-12 would be rounding."""
    rng = np.random.default_rng(width)
    rows = np.eye(width)[np.arange(60) % min(width, 2)] + 1e-12 * rng.standard_normal((60, width))
    rows[0] = 1e6
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        machine = NearestNeighbors(5, kernel=kernel).fit(kind(rows), np.arange(60) % 3)
    solved = machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok == solved != any(w.category is ConvergenceWarning for w in said)
    if not solved:
        assert isinstance(kernel, Laplacian)  # searched around the mean, and said so in time
        return
    source = machine._search.source
    rows, value = to_dense(source.X), machine.solution_.value
    true = np.abs(rows[:, None] - rows).sum(axis=2)
    wrong = value.index.copy()
    wrong[:, 4] = np.argsort(true, axis=1)[:, 9]  # nearer ones are left out
    asked = Nearest(exact(source), points=np.arange(60), count=5)
    assert certify(asked, value).ok
    assert not certify(asked, Neighbourhoods(wrong)).ok


def test_labels_are_those_of_decision_values_at_the_smallest_numbers():
    """Half of the smallest number is zero: the label is that of the value, not of its double."""
    Z = np.array([[0.0], [5e-324], [0.0], [0.0], [0.0]])
    with pytest.warns(ConvergenceWarning, match="the same to rounding"):
        machine = NearestMean(approximation=None).fit(Z, ["no", "yes", "no", "yes", "no"])
    for rows in (Z, 3 * Z + 1):
        label = np.where(machine.decision_function(rows) > 0, "yes", "no")
        np.testing.assert_array_equal(machine.predict(rows), label)
