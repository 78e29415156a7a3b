"""The drop-in KNeighborsClassifier against scikit-learn's."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import neighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import KNeighborsClassifier

THEIRS = neighbors.KNeighborsClassifier
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(200, 6)), rng.normal(size=(70, 6))
y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=200), [-0.5, 0.5])


@parametrize_with_checks([KNeighborsClassifier(), KNeighborsClassifier(3, weights="distance")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 4, 200])
@pytest.mark.parametrize("labels", [y, np.array(["a", "b", "c"])[y], np.c_[y, y[::-1]]])
def test_values_are_the_same(k, weights, labels):
    theirs, ours = (c(k, weights=weights).fit(X, labels) for c in (THEIRS, KNeighborsClassifier))
    for mine, other in zip(ours.kneighbors(Z), theirs.kneighbors(Z), strict=True):
        assert_allclose(mine, other, rtol=1e-10)
        assert mine.dtype == other.dtype
    assert_array_equal(ours.predict(Z), theirs.predict(Z))
    assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-12)
    if k < 200:
        assert_array_equal(ours.predict(None), theirs.predict(None))


def test_the_certificate_is_of_the_same_rows():
    machine = KNeighborsClassifier().fit(X, y)
    assert machine.certificate_.ok
    assert machine.machine_.n_neighbors_ == 5
    twin = pickle.loads(pickle.dumps(machine))
    assert_array_equal(twin.predict(Z), machine.predict(Z))


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"p": 1}, np.asarray), ({"algorithm": "ball_tree"}, np.asarray), ({}, sparse.csr_array)],
)
def test_what_is_left_runs_on_scikit_learn(options, kind):
    ours = KNeighborsClassifier().fit(X, y).set_params(**options).fit(kind(X), y)
    assert_array_equal(ours.predict(Z), THEIRS(**options).fit(kind(X), y).predict(Z))
    assert not hasattr(ours, "certificate_")


def test_no_certificate_where_there_is_no_machine():
    X = np.random.default_rng(0).standard_normal((20, 2))
    one_class = KNeighborsClassifier().fit(X, np.zeros(20))
    few_rows = KNeighborsClassifier(n_neighbors=5).fit(X[:2], [0, 1])
    huge = KNeighborsClassifier(n_neighbors=1).fit(1e152 * X, np.arange(20) % 2)
    for machine in (one_class, few_rows, huge):
        assert not hasattr(machine, "certificate_")
        assert not hasattr(machine, "solution_")
    assert (one_class.predict(X) == 0).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("options", "scale"),
    [({}, 1e200), ({"metric": "euclidean"}, 1e300), ({"p": 1}, 1e308)],
)
def test_distances_beyond_float64_are_refused(options, scale, kind):
    rows = np.random.default_rng(0).uniform(0.5, 1, (20, 3))
    machine = KNeighborsClassifier(**options)
    with pytest.raises(ValueError, match="distances between rows of X overflow"):
        machine.fit(kind(rows * scale), np.arange(20) % 2)
    assert not hasattr(machine, "classes_")
    machine.fit(kind(rows), np.arange(20) % 2)
    for ask in (machine.predict, machine.predict_proba, machine.kneighbors):
        with pytest.raises(ValueError, match="distances between rows of X overflow"):
            ask(kind(rows * scale))
    largest = {"metric": "chebyshev", "algorithm": "ball_tree"}
    assert KNeighborsClassifier(**largest).fit(rows * 1e300, np.arange(20) % 2).predict(rows).size


@pytest.mark.parametrize("p", [None, 2**70, 1e300])
def test_powers_that_no_distance_has_are_refused(p):
    with pytest.raises(ValueError, match="KNeighborsClassifier: p must be"):
        KNeighborsClassifier(p=p).fit([[0.0], [1.0]], [0, 1])
    near = KNeighborsClassifier(1, p=p, metric="euclidean").fit([[0.0], [1.0]], [0, 1])
    assert near.predict([[0.2]]).tolist() == [0]  # where it is not used, it may be anything


def test_votes_of_distances_next_to_none():
    """The reciprocal of 5e-324 is infinite: such a row counts like an equal one, and in silence."""
    options = {"n_neighbors": 3, "weights": "distance", "metric": "manhattan"}
    rows = sparse.csr_array(np.array([[0.0], [5e-324], [1.0], [2.0]]))
    machine = KNeighborsClassifier(**options).fit(rows, [0, 0, 1, 1])
    assert machine.predict_proba(sparse.csr_array([[1e-323]])).tolist() == [[1.0, 0.0]]
    assert machine.predict(sparse.csr_array([[1e-323]])).tolist() == [0]


@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "chebyshev"])
def test_copies_break_ties_alike_whatever_the_order_of_bytes(metric):
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 4, (40, 15)).astype(">f8"), rng.integers(0, 2, 40)
    options = {"weights": "distance", "metric": metric, "algorithm": "brute"}
    machine = KNeighborsClassifier(**options).fit(rows, labels)
    copy = pickle.loads(pickle.dumps(machine))
    for asked in (rows, 3.0 * rows + 1):
        assert_array_equal(machine.kneighbors(asked)[1], copy.kneighbors(asked)[1])


@pytest.mark.parametrize("asked", [None, True])
def test_counts_that_are_none(asked):
    machine = KNeighborsClassifier(asked, algorithm="kd_tree").fit([[0.0], [1.0]], [0, 1])
    if asked:
        assert machine.predict([[0.2]]).tolist() == [0]
        return
    assert not hasattr(KNeighborsClassifier(None).fit([[0.0], [1.0]], [0, 1]), "solution_")
    for ask in (machine.predict, machine.predict_proba, machine.kneighbors):
        with pytest.raises(ValueError, match="n_neighbors must be an integer"):
            ask([[0.2]])
    assert machine.kneighbors([[0.2]], 1)[1].tolist() == [[0]]


def test_a_tree_that_is_made_already():
    rows, labels = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    own = KNeighborsClassifier().fit(neighbors.KDTree(rows), labels)
    theirs = neighbors.KNeighborsClassifier().fit(neighbors.KDTree(rows), labels)
    assert_array_equal(own.predict(rows), theirs.predict(rows))
