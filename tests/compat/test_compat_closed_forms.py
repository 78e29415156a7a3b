"""Drop-ins that run on scikit-learn: the same answers, and certificates that see what is wrong."""

import pickle

import numpy as np
import pytest
from sklearn import mixture, naive_bayes
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat import sklearn as ours

X, y = load_iris(return_X_y=True)
COUNTS = np.floor(2 * X).astype(int)
WEIGHTS = np.random.default_rng(0).uniform(0, 3, len(X))
NAIVE = ["GaussianNB", "MultinomialNB", "ComplementNB", "BernoulliNB", "CategoricalNB"]
ROWS = {"BernoulliNB": X > X.mean(axis=0), "GaussianNB": X}


@pytest.mark.filterwarnings("ignore:divide by zero")  # scikit-learn's own: log 0 of a prior
@parametrize_with_checks([getattr(ours, name)() for name in [*NAIVE, "GaussianMixture"]])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("name", NAIVE)
def test_naive_bayes_is_that_of_scikit_learn_and_certified(name, weights):
    rows = ROWS.get(name, COUNTS)
    machine, theirs = (
        kind().fit(rows, y, weights) for kind in (getattr(ours, name), getattr(naive_bayes, name))
    )
    np.testing.assert_array_equal(machine.predict_proba(rows), theirs.predict_proba(rows))
    assert machine.certificate_.ok, machine.certificate_
    assert machine.solution_.status.ok
    assert pickle.loads(pickle.dumps(machine)).certificate_.ok


@pytest.mark.parametrize(
    "machine",
    [
        ours.MultinomialNB(alpha=[0.1, 1.0, 2.0, 3.0]),
        ours.MultinomialNB(alpha=0, force_alpha=False),
        ours.ComplementNB(norm=True),
        ours.BernoulliNB(alpha=0.3, binarize=2.5),
        ours.CategoricalNB(min_categories=20),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:alpha too small")
def test_options_are_judged_as_asked(machine):
    assert machine.fit(COUNTS, y).certificate_.ok, machine.certificate_


@pytest.mark.parametrize("name", NAIVE)
def test_a_wrong_number_is_seen(name):
    machine = getattr(ours, name)().fit(ROWS.get(name, COUNTS), y)
    held = machine.theta_ if name == "GaussianNB" else machine.feature_log_prob_
    (held[0] if isinstance(held, list) else held)[0, 0] *= 1.001
    assert not machine.certificate_.ok


def test_gaussians_without_rows_are_not_judged():
    machine = ours.GaussianNB().partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(AttributeError, match="after partial_fit"):
        _ = machine.certificate_
    with pytest.raises(AttributeError, match="before it is fitted"):
        _ = ours.MultinomialNB().certificate_


@pytest.mark.parametrize("form", ["full", "tied", "diag", "spherical"])
def test_mixtures_are_those_of_scikit_learn_and_certified(form):
    options = {"n_components": 3, "covariance_type": form, "random_state": 0, "tol": 1e-6}
    machine = ours.GaussianMixture(max_iter=1000, **options).fit(X)
    theirs = mixture.GaussianMixture(max_iter=1000, **options).fit(X)
    np.testing.assert_array_equal(machine.means_, theirs.means_)
    assert machine.certificate_.ok, machine.certificate_
    found = machine.certificate_.quantities.mean_log_likelihood
    assert found == pytest.approx(theirs.score(X), rel=1e-10)
    assert pickle.loads(pickle.dumps(machine)).certificate_.ok


@pytest.mark.parametrize("name", ["means_", "weights_", "covariances_", "precisions_"])
def test_a_wrong_number_of_a_mixture_is_seen(name):
    machine = ours.GaussianMixture(3, random_state=0, tol=1e-8, max_iter=1000).fit(X)
    getattr(machine, name)[0] *= 1.05
    assert not machine.certificate_.ok


def test_a_mixture_that_did_not_converge_says_so():
    with pytest.warns(ConvergenceWarning):
        machine = ours.GaussianMixture(3, random_state=0, tol=1e-9, max_iter=2).fit(X)
    assert not machine.solution_.status.ok
    assert not machine.certificate_.ok


@pytest.mark.parametrize("prior", [np.array(2.0), [[0.5, 0.5]], [-1.0, 2.0], [np.nan, 1.0], {}])
def test_priors_that_are_no_list_of_probabilities_are_refused(prior):
    rows, labels = np.arange(40).reshape(20, 2) % 7, np.arange(20) % 2
    makers = (
        lambda: ours.GaussianNB(priors=prior),
        lambda: ours.MultinomialNB(class_prior=prior),
        lambda: ours.BernoulliNB(class_prior=prior),
        lambda: ours.QuadraticDiscriminantAnalysis(priors=prior),
    )
    for make in makers:
        with pytest.raises(ValueError, match="prior"):
            make().fit(rows, labels)
