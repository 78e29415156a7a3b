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
    huge = KNeighborsClassifier(n_neighbors=1).fit(1e200 * X, np.arange(20) % 2)
    for machine in (one_class, few_rows, huge):
        assert not hasattr(machine, "certificate_")
        assert not hasattr(machine, "solution_")
    assert (one_class.predict(X) == 0).all()
