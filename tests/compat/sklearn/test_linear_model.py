"""The drop-in LogisticRegression against scikit-learn's."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import LogisticRegression

THEIRS = linear_model.LogisticRegression
X, y = load_iris(return_X_y=True)
X = X - X.mean(axis=0)


@parametrize_with_checks([LogisticRegression(), LogisticRegression(C=0.1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("labels", [y, y > 0], ids=["three", "two"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"C": 0.01},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"solver": "sag"},
        {"solver": "newton-cholesky"},
    ],
    ids=str,
)
def test_answers_are_those_that_theirs_tend_to(options, labels, kind):
    weights = np.random.default_rng(0).uniform(size=150)
    ours = LogisticRegression(**options).fit(kind(X), labels, weights)
    theirs = THEIRS(**(options | {"solver": "lbfgs", "tol": 1e-10, "max_iter": 10_000}))
    theirs.fit(kind(X), labels, weights)
    for name in ("coef_", "intercept_", "classes_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert_allclose(mine, other, atol=1e-5)
        assert mine.shape == other.shape
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.n_iter_.dtype == theirs.n_iter_.dtype
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.certificate_.ok
    assert ours.solution_.status.ok


@pytest.mark.parametrize(
    "options",
    [
        {"l1_ratio": 1.0, "solver": "liblinear"},
        {"C": np.inf},
        {"max_iter": 99},
        {"warm_start": True},
    ],
    ids=str,
)
def test_what_is_left_runs_on_scikit_learn(options):
    machine = LogisticRegression().fit(X, y > 0)
    assert machine.certificate_.ok
    again = machine.set_params(**options).fit(X, y > 0)
    theirs = THEIRS(**options, random_state=0).fit(X, y > 0)
    assert_allclose(again.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    for name in ("machine_", "certificate_", "solution_"):
        assert not hasattr(again, name)


def test_copies_are_theirs_too():
    machine = LogisticRegression(C=2.0).fit(X, y)
    assert isinstance(machine, THEIRS)
    assert clone(machine).get_params() == machine.get_params()
    twin = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(twin.predict_proba(X), machine.predict_proba(X))
    assert twin.certificate_.ok
    assert machine.sparsify().predict(X).shape == (150,)


def test_line_searches_that_fail_are_told_in_scikit_learn_s_words(recwarn):
    """SciPy warns of every step; what counts is how the solver ended."""
    rng = np.random.default_rng(422016)
    rows = np.vstack([rng.standard_normal((5, 8))[:2], 9 + rng.standard_normal((5, 8))])[:5]
    rows[-1] = 1e14
    LogisticRegression(C=np.inf, solver="newton-cg", max_iter=1000).fit(rows, [0, 1, 0, 1, 0])
    assert all(issubclass(said.category, UserWarning) for said in recwarn)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("solver", "C", "class_weight"), [("newton-cg", 0.1, "balanced"), ("sag", np.inf, None)]
)
def test_no_numbers_from_scikit_learn_are_refused(
    solver: str, C: float, class_weight: str | None
) -> None:
    """A class without weight, and rows of zeros without a penalty: its own solvers give NaN."""
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    machine = LogisticRegression(
        C=C, class_weight=class_weight, solver=solver, fit_intercept=C < 1, max_iter=1000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="let sample_weight leave rows of every class"):
            machine.fit(X, y, sample_weight=[1, 0, 2, 0])
