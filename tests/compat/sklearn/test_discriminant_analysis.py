"""The drop-in LinearDiscriminantAnalysis against scikit-learn's."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgWarning
from sklearn import discriminant_analysis
from sklearn.covariance import OAS
from sklearn.datasets import load_iris, load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import LinearDiscriminantAnalysis

THEIRS = discriminant_analysis.LinearDiscriminantAnalysis
OPTIONS = [
    {},
    {"priors": [0.2, 0.3, 0.5]},
    {"solver": "lsqr"},
    {"solver": "lsqr", "shrinkage": 0.3},
    {"solver": "lsqr", "shrinkage": 1.0},
    {"solver": "lsqr", "priors": [0.2, 0.3, 0.5]},
    {"solver": "eigen"},
    {"solver": "eigen", "shrinkage": 0.1},
    {"n_components": 1, "store_covariance": True},
]


def both(options, X, y):
    return THEIRS(**options).fit(X, y), LinearDiscriminantAnalysis(**options).fit(X, y)


def same_up_to_sign(ours, theirs, tol=1e-7):
    signs = np.sign((ours * theirs).sum(axis=0))
    assert_allclose(signs * ours, theirs, atol=tol * np.abs(theirs).max())


def test_signature():
    ours, theirs = inspect.signature(LinearDiscriminantAnalysis), inspect.signature(THEIRS)
    assert [(p.name, p.default, p.kind) for p in ours.parameters.values()] == [
        (p.name, p.default, p.kind) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_same_decisions(options, load):
    X, y = load(return_X_y=True)
    theirs, ours = both(options, X, y)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    assert_allclose(ours.predict_log_proba(X)[:5], theirs.predict_log_proba(X)[:5], atol=1e-5)
    size = np.abs(theirs.decision_function(X)).max()
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-7 * size)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6 * np.abs(theirs.coef_).max())
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-7 * np.abs(theirs.intercept_).max())
    assert_allclose(ours.means_, theirs.means_)
    assert_allclose(ours.priors_, theirs.priors_)
    assert ours.certificate_.ok
    for name in ("xbar_", "covariance_"):
        if hasattr(theirs, name):
            assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)


@pytest.mark.parametrize("options", [o for o in OPTIONS if o.get("solver") != "lsqr"], ids=str)
def test_same_places(options):
    X, y = load_iris(return_X_y=True)
    theirs, ours = both(options, X, y)
    if "shrinkage" in options:  # they shrink the total scatter too, which turns directions a bit
        first = np.corrcoef(ours.transform(X)[:, 0], theirs.transform(X)[:, 0])
        assert abs(first[0, 1]) > 0.99
        return
    same_up_to_sign(ours.transform(X), theirs.transform(X))
    assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-9)
    assert ours.get_feature_names_out().shape == theirs.get_feature_names_out().shape


def test_two_classes_have_one_function():
    X, y = load_iris(return_X_y=True)
    theirs, ours = both({}, X[y < 2], y[y < 2])
    assert ours.coef_.shape == (1, 4) and ours.intercept_.shape == (1,)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    assert ours.transform(X).shape == (150, 1)


def test_directions_without_scatter_are_left_out():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    base = rng.standard_normal((60, 3)) + y[:, None]
    doubled = np.hstack([base, base @ rng.standard_normal((3, 2)), np.ones((60, 1))])
    wide = rng.standard_normal((60, 90)) + y[:, None]
    for X in (doubled, wide):
        theirs, ours = both({}, X, y)
        assert_array_equal(ours.predict(X), theirs.predict(X))
        same_up_to_sign(ours.transform(X), theirs.transform(X), 1e-6)


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
@pytest.mark.parametrize("options", [{"shrinkage": "auto"}, {"covariance_estimator": OAS()}])
def test_covariances_by_an_estimator(solver, options):
    X, y = load_iris(return_X_y=True)
    for labels in (y, y > 0):
        theirs, ours = both({"solver": solver} | options, X, labels)
        for name in ("coef_", "intercept_", "covariance_", "means_"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8)
        assert ours.certificate_.ok
    if solver == "eigen":  # theirs has another scatter between classes: see the guide
        assert ours.transform(X).shape == (150, 1)


def test_refusals():
    X, y = load_iris(return_X_y=True)
    for options, error, message in [
        ({"solver": "eigen", "shrinkage": "most"}, ValueError, "among {'auto'}"),
        ({"covariance_estimator": OAS()}, ValueError, "not supported with svd"),
        ({"shrinkage": 0.1}, NotImplementedError, "svd"),
        ({"n_components": 3}, ValueError, "cannot be larger"),
        ({"priors": [0.5, 0.7, -0.2]}, ValueError, "non-negative"),
        ({"solver": "qr"}, ValueError, "solver"),
    ]:
        with pytest.raises(error, match=message):
            LinearDiscriminantAnalysis(**options).fit(X, y)
    with pytest.raises(NotImplementedError, match="lsqr"):
        LinearDiscriminantAnalysis("lsqr").fit(X, y).transform(X)
    with pytest.warns(UserWarning, match="Renormalizing"):
        LinearDiscriminantAnalysis(priors=[1, 1, 1]).fit(X, y)
    with pytest.raises(np.linalg.LinAlgError, match=r"LinearDiscriminantAnalysis: .*shrinkage"):
        LinearDiscriminantAnalysis("eigen").fit(np.hstack([X, X]), y)


def test_least_squares_where_covariance_is_singular():
    X, y = load_iris(return_X_y=True)
    few = np.random.default_rng(0).normal(size=(150, 30))[::8]
    for rows, labels in ((np.column_stack([X, np.full(len(X), 0.1)]), y), (few, y[::8])):
        for classes in (labels, labels > 0):
            theirs = THEIRS("lsqr").fit(rows, classes)
            with pytest.warns(LinAlgWarning, match="takes the smallest weights"):
                ours = LinearDiscriminantAnalysis("lsqr").fit(rows, classes)
            assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
            assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)
            assert not hasattr(ours, "certificate_")


@parametrize_with_checks(
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis("eigen", shrinkage=0.1),
    ]  # no list of expected failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
