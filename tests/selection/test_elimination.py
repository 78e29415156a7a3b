"""Recursive elimination against scikit-learn's, brute force, and features that were planted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm
from sklearn.feature_selection import RFE
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    SVC,
    SVR,
    KernelRidge,
    NearestNeighbors,
    ParameterError,
    TimeLimitError,
    Whiten,
    deadline,
)
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.selection import FeatureElimination, eliminate_features
from mercer.selection.elimination import margin_losses


def ring(n=120, d=8, seed=0):
    """Return rows of which only columns 1 and 3 matter, and no line tells the classes apart."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.where(X[:, 1] ** 2 + X[:, 3] ** 2 > 1.5, "out", "in")


@parametrize_with_checks([FeatureElimination(SVC(Linear()), cv=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Polynomial(2), 0.5 * Linear() + Gaussian(3.0)])
def test_planted_features_are_found(kernel):
    X, y = ring()
    path = eliminate_features(SVC(kernel, C=10.0), X, y)
    assert sorted(path.features[-2].tolist()) == [1, 3]
    assert path.sizes.tolist() == list(range(8, 0, -1))
    assert sorted(path.ranking.tolist()) == list(range(1, 9))


def test_cross_validation_finds_how_many():
    X, y = ring()
    selector = FeatureElimination(SVC(Gaussian(3.0), C=10.0)).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 3]
    assert selector.scores_.shape == (8, 5)
    assert selector.sizes_.tolist() == list(range(8, 0, -1))
    assert np.array_equal(selector.transform(X), X[:, [1, 3]])
    assert np.array_equal(selector.inverse_transform(X[:, [1, 3]])[:, [1, 3]], X[:, [1, 3]])
    assert selector.certificate_.ok
    assert np.array_equal(selector.predict(X), selector.machine_.predict(X[:, [1, 3]]))


def test_the_linear_kernel_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 7))
    y = (X @ [3.0, 0.0, -2.0, 0.5, 0.0, 1.0, 0.1] + 0.3 * rng.normal(size=100)) > 0
    ours = eliminate_features(SVC(Linear(), tol=1e-9), X, y)
    theirs = RFE(svm.SVC(kernel="linear", tol=1e-9), n_features_to_select=1).fit(X, y)
    assert np.array_equal(ours.ranking, theirs.ranking_)
    first = SVC(Linear(), tol=1e-9).fit(X, y)
    assert np.allclose(ours.losses[0], np.square(first.coef_) / 2, rtol=1e-6)


def test_losses_by_brute_force():
    rng = np.random.default_rng(2)
    X, coef = rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
    coef[:5] = 0.0
    for kernel in (Gaussian(1.5), Linear(), Polynomial(2), Gaussian([1.0, 2.0, 3.0, 4.0])):
        found = margin_losses(kernel, X, coef)
        for p in range(4):
            without = X * (np.arange(4) != p)
            change = coef.T @ (kernel(X) - kernel(without)) @ coef
            assert found[p] == pytest.approx(np.abs(np.diag(change)).sum() / 2)


def test_scores_are_those_of_fits_without_the_rows_left_out():
    X, y = ring(90, 4)
    machine, cv = SVC(Gaussian(3.0), C=10.0, tol=1e-6), StratifiedKFold(3)
    selector = FeatureElimination(machine, cv=cv).fit(X, y)
    for fold, (train, test) in enumerate(cv.split(X, y)):
        path = eliminate_features(machine, X[train], y[train])
        for row, features in enumerate(path.features):
            found = SVC(Gaussian(3.0), C=10.0, tol=1e-6).fit(X[train][:, features], y[train])
            score = found.score(X[test][:, features], y[test])
            assert selector.scores_[row, fold] == pytest.approx(score)


def test_rules():
    X, y = ring(60, 6)
    machine = SVC(Gaussian(3.0), C=10.0)
    fewest, best = (
        FeatureElimination(machine, rule=rule).fit(X, y) for rule in ("one_standard_error", "best")
    )
    means = best.scores_.mean(axis=1)
    assert best.n_features_ == best.sizes_[means == means.max()].min()
    error = best.scores_[means.argmax()].std(ddof=1) / np.sqrt(5)
    assert fewest.n_features_ == best.sizes_[means >= means.max() - error].min()


def test_many_classes_steps_and_regression():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 10))
    kinds = np.digitize(X[:, 0] + X[:, 7], [-0.7, 0.7])
    path = eliminate_features(SVC(Gaussian(4.0)), X, kinds, n_features=2, step=0.3)
    assert path.features[-1].tolist() == [0, 7]
    assert path.sizes.tolist() == [10, 7, 5, 4, 3, 2]
    assert (path.ranking == 1).sum() == 2
    targets = X[:, 2] ** 2 + X[:, 5] ** 2
    for machine in (KernelRidge(1.0, Gaussian(4.0)), SVR(Gaussian(4.0), C=10.0)):
        path = eliminate_features(machine, X, targets, n_features=2, step=3)
        assert path.features[-1].tolist() == [2, 5]


def test_in_a_pipeline():
    X, y = ring()
    chain = make_pipeline(
        Whiten(rotate_back=True),
        FeatureElimination(SVC(Gaussian(3.0)), n_features_to_select=2),
        SVC(Gaussian(1.0), C=10.0),
    )
    assert cross_val_score(chain, X, y, cv=3).mean() > 0.85


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (FeatureElimination(n_features_to_select=9), "at most the number of features"),
        (FeatureElimination(n_features_to_select=0), "n_features_to_select"),
        (FeatureElimination(step=0), "step=0 must be"),
        (FeatureElimination(step=1.5), "step=1.5 must be"),
        (FeatureElimination(SVC("precomputed")), "has no features"),
        (FeatureElimination(Whiten()), "must have a kernel"),
        (FeatureElimination(rule="first"), "rule='first'"),
        (FeatureElimination(min_features_to_select=0), "min_features_to_select"),
    ],
)
def test_refusals(selector, message):
    with pytest.raises(ParameterError, match=message):
        selector.fit(*ring())


def test_a_time_limit_gives_up_and_changes_nothing(monkeypatch):
    X, y = ring()
    selector = FeatureElimination(SVC(Gaussian(3.0)), n_features_to_select=2).fit(X, y)
    before = dict(vars(selector))
    ticks = iter(range(10**9))
    monkeypatch.setattr(deadline, "clock", lambda: float(next(ticks)))
    selector.time_limit = 1.0
    with pytest.raises(TimeLimitError, match="FeatureElimination: time_limit=1 s"):
        selector.fit(X[:, :5], y)
    assert vars(selector) == {**before, "time_limit": 1.0}


def test_machines_without_a_sum_over_rows_are_refused():
    X, y = np.eye(6)[:, :3], [0, 1] * 3
    with pytest.raises(ParameterError, match="must have a kernel: SVC"):
        FeatureElimination(svm.SVC(kernel="linear"), n_features_to_select=1).fit(X, y)
    with pytest.raises(ParameterError, match="NearestNeighbors is no sum over its rows"):
        FeatureElimination(NearestNeighbors(1), n_features_to_select=1).fit(X, y)
    with pytest.raises(ParameterError, match="min_features_to_select=4 must be at most"):
        FeatureElimination(min_features_to_select=4).fit(X, y)


@pytest.mark.parametrize(
    "options", [{"cv": 3}, {"rule": "best"}, {"scoring": "accuracy"}, {"min_features_to_select": 3}]
)
def test_what_a_given_number_leaves_idle_is_refused(options):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.integers(0, 2, 30)
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}=.* if n_features_to_select is set"):
        FeatureElimination(n_features_to_select=2, **options).fit(X, y)
