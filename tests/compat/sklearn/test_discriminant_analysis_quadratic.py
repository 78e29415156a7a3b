"""The drop-in QuadraticDiscriminantAnalysis against scikit-learn's."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import discriminant_analysis
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import QuadraticDiscriminantAnalysis

THEIRS = discriminant_analysis.QuadraticDiscriminantAnalysis
X, y = load_iris(return_X_y=True)


@parametrize_with_checks([QuadraticDiscriminantAnalysis()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["svd", "eigen"])
@pytest.mark.parametrize("labels", [y, y > 0], ids=["three", "two"])
def test_values_are_the_same(solver, labels):
    for priors in (None, np.full(len(np.unique(labels)), 1 / len(np.unique(labels)))):
        options = {"solver": solver, "priors": priors, "store_covariance": True}
        theirs, ours = (
            c(**options).fit(X, labels) for c in (THEIRS, QuadraticDiscriminantAnalysis)
        )
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-8)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)
        for name in ("means_", "priors_", "scalings_", "covariance_"):
            assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-12)
        assert ours.certificate_.ok


@pytest.mark.parametrize(
    "options",
    [{"reg_param": 0.1}, {"solver": "eigen", "shrinkage": "auto"}],
    ids=str,
)
def test_what_is_left_runs_on_scikit_learn(options):
    ours = QuadraticDiscriminantAnalysis().fit(X, y).set_params(**options).fit(X, y)
    assert_allclose(ours.predict_proba(X), THEIRS(**options).fit(X, y).predict_proba(X))
    assert not hasattr(ours, "certificate_")


def test_singular_covariances_are_refused():
    with pytest.raises(np.linalg.LinAlgError, match="not full rank"):
        QuadraticDiscriminantAnalysis().fit(np.hstack([X, X]), y)


def test_a_pickled_copy_answers_with_the_same_bits():
    rng = np.random.default_rng(806)
    for d in (1, 3):
        X, y = rng.standard_normal((40, d)), np.arange(40) % 3
        machine = QuadraticDiscriminantAnalysis().fit(X, y)
        copied = pickle.loads(pickle.dumps(machine))
        np.testing.assert_array_equal(copied.decision_function(X), machine.decision_function(X))


@pytest.mark.parametrize("reg_param", [0.0, 0.1])
def test_priors_and_sizes_are_refused_in_words(reg_param):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 3
    machine = QuadraticDiscriminantAnalysis(priors=[0.3, 0.7], reg_param=reg_param)
    with pytest.raises(ValueError, match="priors has 2 entries, but y has 3 classes"):
        machine.fit(X, y)
    assert not hasattr(machine, "means_")
    with pytest.raises(ValueError, match="squares overflow; scale the features"):
        QuadraticDiscriminantAnalysis(reg_param=0.1).fit(1e200 * X, y)
