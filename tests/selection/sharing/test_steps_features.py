"""Grids over features in place of a kernel: scores of single fits, features found once a fold."""

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    SVC,
    SVR,
    FisherDiscriminant,
    KernelRidge,
    LogisticRegression,
    NearestMean,
    OneClassSVM,
    tune,
)
from mercer.approximation import Nystrom, RandomFeatures
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 3))
labels = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "in", "out")
y = X[:, 0] ** 2
weights = rng.integers(1, 3, size=90).astype(float)
few = {"approximation": Nystrom(15)}
KERNELS = [Gaussian(1.0), Gaussian(3.0)]

CASES = {
    "SVC": (SVC(tol=1e-6, **few), {"C": [0.1, 10.0], "kernel": KERNELS}, labels),
    "SVR": (SVR("gaussian", tol=1e-9, **few), {"C": [0.1, 10.0]}, y),
    "ridge": (
        KernelRidge(kernel=Gaussian(1.0)),
        {"penalty": [0.1, 10.0], "approximation": [None, "nystrom:9", RandomFeatures(20)]},
        y,
    ),
    "logistic": (
        LogisticRegression(Gaussian(1.0), **few),
        {"penalty": [0.1, 1.0], "approximation__n_components": [5, 15]},
        labels,
    ),
    "mean": (NearestMean(**few), {"kernel": KERNELS}, labels),
    "pipeline": (
        make_pipeline(StandardScaler(), SVC("gaussian", tol=1e-6, **few)),
        {"svc__C": [0.1, 10.0], "svc__approximation__n_components": [5, 15]},
        labels,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_single_fits(case):
    machine, grid, targets = CASES[case]
    expected = GridSearchCV(machine, grid, cv=KFold(3)).fit(X, targets)
    found = tune(machine, X, targets, grid=grid, cv=KFold(3))
    by_point = {repr(sorted(p.items(), key=repr)): k for k, p in enumerate(found.points)}
    places = [by_point[repr(sorted(p.items(), key=repr))] for p in expected.cv_results_["params"]]
    np.testing.assert_allclose(
        found.mean[places], expected.cv_results_["mean_test_score"], atol=1e-9
    )


def test_features_are_found_once_for_each_fold_and_kernel(monkeypatch):
    found = []
    features = Nystrom.features

    def counted(self, kernel, *rest):
        found.append(kernel)
        return features(self, kernel, *rest)

    monkeypatch.setattr(Nystrom, "features", counted)
    grid = {"kernel": KERNELS, "penalty": [0.1, 1.0, 10.0]}
    tune(KernelRidge(approximation=Nystrom(9)), X, y, grid=grid, cv=KFold(3), sample_weight=weights)
    assert len(found) == 6


def test_scorers_that_look_at_rows_see_rows():
    def scorer(machine, rows, targets=None):
        assert rows.shape[1] == 3
        return float(machine.score_samples(rows).mean())

    machine = OneClassSVM(Gaussian(1.0), **few)
    found = tune(machine, X, grid={"nu": [0.1, 0.5]}, scoring=scorer, cv=KFold(3))
    assert np.isfinite(found.mean).all()


def test_past_the_limit_the_number_of_threads_changes_nothing():
    """A fit with a share of the memory is not approximated: alone it may be exact."""
    rows = np.tile(X, (4, 1)) + 1e-3 * np.arange(360)[:, None]
    found = []
    for memory, threads in (("500 kB", 1), ("500 kB", 2), ("1 GB", 2)):
        with mercer.config(memory=memory, threads=threads):
            machine = FisherDiscriminant(Gaussian(1.0), penalty=0.1)
            one = tune(machine, rows, np.tile(labels, 4), grid={"penalty": [0.1, 1.0]}, cv=KFold(2))
        assert not any(trial.failure for trial in one.trials)
        found.append(one.scores)
    np.testing.assert_allclose(found[0], found[1])
    assert np.isfinite(found[2]).all()


def test_what_cannot_be_fitted_says_why():
    grid = {"approximation": [Nystrom(9), "nystroem"]}
    with pytest.warns(FitFailedWarning, match="did you mean 'nystrom'"):
        found = tune(KernelRidge(1.0, Gaussian(1.0)), X, y, grid=grid, cv=KFold(3))
    assert found.best_params == {"approximation": Nystrom(9)}
