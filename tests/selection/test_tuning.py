"""Tuning: scores of GridSearchCV, for less work; journals, interrupts, limits, and `Tuned`."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KernelCenterer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

import mercer
from mercer import PCA, SVC, SVR, KernelRidge, KMeans, LogisticRegression, NearestMean, OneClassSVM
from mercer.kernels import Gaussian, Linear, Precomputed, Spectrum
from mercer.resources import call_threads
from mercer.selection import (
    Exhaustive,
    Halve,
    JournalError,
    Race,
    Refine,
    Tuned,
    TuningProgress,
    tune,
)
from mercer.selection.folds import folds_of
from mercer.selection.identity import digest
from mercer.selection.scheduler import ScheduledWork, run
from mercer.selection.sharing import Group, Judged, Stopped, groups, register
from mercer.selection.sharing.base import Refit
from mercer.selection.task import Task, machine_at, make_task

SOURCE = str(Path(mercer.__file__).parents[1])

rng = np.random.default_rng(0)
n = 90
X = rng.standard_normal((n, 3))
y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n)
c = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "in", "out")
three = np.digitize(X[:, 0], [-0.5, 0.5])
table = pd.DataFrame(X, columns=["a", "b", "c"])
weights = rng.integers(1, 4, n).astype(float)
words = ["".join(rng.choice(list("ab" if k % 2 else "bc"), 8)) for k in range(40)]
kinds = np.arange(40) % 2

svc = SVC(Gaussian(1.0), tol=1e-8)
SVC_GRID = {"C": [0.1, 1.0, 10.0], "kernel__scale": [0.3, 1.0, 3.0]}


def equal_to_grid_search(found, machine, grid, rows, target, atol=1e-6, fit=None, **options):
    """Compare everything that is the same whatever the clock says, on the same folds."""
    groups = (fit or {}).get("groups")
    options["cv"] = folds_of(machine, rows, target, options.get("cv", 5), groups)
    theirs = GridSearchCV(machine, grid, refit=options.pop("refit", False), **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One or more of the test scores", UserWarning)
        theirs.fit(rows, target, **(fit or {}))
    ours = found.cv_results
    assert set(ours) == set(theirs.cv_results_)
    assert [dict(point) for point in ours["params"]] == theirs.cv_results_["params"]
    for name, column in theirs.cv_results_.items():
        if name.startswith("param_"):
            assert ours[name].mask.tolist() == column.mask.tolist()
            assert ours[name].dtype == column.dtype
        elif "time" not in name and name != "params" and not name.startswith("rank"):
            np.testing.assert_allclose(ours[name], column, atol=atol, err_msg=name)
    return theirs


# --- scores are GridSearchCV's ---------------------------------------------------------------

CASES = {
    "classes": (svc, SVC_GRID, X, c, {}),
    "three classes": (svc, SVC_GRID, X, three, {"cv": 3}),
    "kernels as values": (svc, {"kernel": [Gaussian(0.5), Linear(), Gaussian(2.0)]}, X, c, {}),
    "regression": (SVR(Gaussian(1.0), tol=1e-8), {"C": [1, 5], "epsilon": [0.1, 0.3]}, X, y, {}),
    "ridge": (
        KernelRidge(kernel=Gaussian(1.0)),
        {"penalty": [1e-3, 0.1, 10.0], "kernel__scale": [0.5, 2.0]},
        X,
        y,
        {"scoring": "neg_mean_absolute_error"},
    ),
    "several boxes": (svc, [{"C": [1.0]}, {"kernel": [Linear()], "C": [0.1, 1.0]}], X, c, {}),
    "area": (svc, SVC_GRID, X, c, {"scoring": "roc_auc"}),
    "sparse": (svc, SVC_GRID, sparse.csr_array(X), c, {"cv": 3}),
    "other sparse": (svc, SVC_GRID, sparse.coo_matrix(X), c, {"cv": 3}),
    "table": (SVC(Gaussian(1.0).on(["a", "b"]), tol=1e-8), {"C": [0.1, 1.0]}, table, c, {}),
    "lists": (svc, {"C": [0.1, 1.0]}, X.tolist(), c.tolist(), {"cv": 3}),
    "matrix": (SVC(Precomputed(), tol=1e-8), {"C": [0.1, 1.0]}, Gaussian(1.0)(X), c, {}),
    "words": (SVC(Spectrum(2), tol=1e-8), {"C": [0.1, 1.0], "kernel__k": [1, 2]}, words, kinds, {}),
    "means": (NearestMean(Gaussian(1.0)), {"kernel__scale": [0.5, 2.0]}, X, three, {}),
    "wide means": (
        NearestMean(Gaussian(1.0)),
        {"kernel__scale": [3.0, 20.0]},
        np.tile(X, 80),
        three,
        {"return_train_score": True},
    ),
    "logistic": (
        LogisticRegression(Gaussian(1.0)),
        {"penalty": [0.1, 1.0], "kernel": [Gaussian(1.0), Linear()]},
        sparse.csr_array(X),
        c,
        {"cv": 3, "scoring": "neg_log_loss"},
    ),
    "clusters": (KMeans(2, random_state=0), {"n_clusters": [2, 3, 4]}, X, None, {}),
    "splitter": (svc, {"C": [0.1, 1.0]}, X, c, {"cv": KFold(4, shuffle=True, random_state=1)}),
    "given folds": (svc, {"C": [0.1, 1.0]}, X, c, {"cv": [(np.arange(40), np.arange(40, 90))]}),
    "neighbours": (KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, c, {}),
    "theirs": (svm.SVC(), {"C": [0.1, 1.0], "kernel": ["rbf", "linear"]}, X, c, {}),
    "train scores": (svc, SVC_GRID, X, c, {"return_train_score": True, "cv": 3}),
    "steps": (
        make_pipeline(StandardScaler(), svc),
        {"svc__C": [0.1, 1.0, 10.0], "standardscaler__with_std": [True, False]},
        X * [1, 5, 9],
        c,
        {"return_train_score": True},
    ),
    "steps in and out": (
        make_pipeline(StandardScaler(), PCA(n_components=2), KernelRidge(kernel=Gaussian(1.0))),
        [
            {"kernelridge__penalty": [0.1, 1.0], "standardscaler": ["passthrough", None]},
            {
                "pca__n_components": [1, 2],
                "kernelridge": [KernelRidge(kernel=Linear()), SVR(Gaussian(1.0), tol=1e-8)],
            },
        ],
        X,
        y,
        {},
    ),
    "columns": (
        make_pipeline(
            make_column_transformer(
                (StandardScaler(), ["a", "b"]), (OneHotEncoder(handle_unknown="ignore"), ["kind"])
            ),
            svc,
        ),
        {"svc__C": [0.1, 1.0]},
        table.assign(kind=np.where(X[:, 2] > 0, "x", "y")),
        c,
        {},
    ),
    "tables between": (
        make_pipeline(StandardScaler(), svc).set_output(transform="pandas"),
        {"svc__C": [0.1, 1.0]},
        table,
        c,
        {"cv": 3},
    ),
    "centred matrix": (
        make_pipeline(KernelCenterer(), SVC(Precomputed(), tol=1e-8)),
        {"svc__C": [0.1, 1.0]},
        Gaussian(1.0)(X),
        c,
        {"cv": 3},
    ),
    "nothing to learn": (
        make_pipeline("passthrough", FunctionTransformer(), svc),
        {"svc__C": [0.1, 1.0]},
        X,
        c,
        {"cv": 3},
    ),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_grid_search(case):
    machine, grid, rows, target, options = CASES[case]
    ours = {name: value for name, value in options.items() if name != "return_train_score"}
    if "return_train_score" in options:
        ours["train_scores"] = True
    found = tune(machine, rows, target, grid=grid, **ours)
    theirs = equal_to_grid_search(found, machine, grid, rows, target, **options)
    best = theirs.cv_results_["mean_test_score"].max()
    assert found.best_score == pytest.approx(best, abs=1e-6)
    assert found.scores.shape == (len(found.points), theirs.n_splits_)
    assert found.complete


def test_work_is_shared_where_it_can_be():
    assert (
        "Refit" not in tune(KernelRidge(kernel=Gaussian(1.0)), X, y, grid={"penalty": [1, 2]}).work
    )
    steps = make_pipeline(StandardScaler(), svc)
    assert tune(steps, X, c, grid={"svc__C": [1, 2]}).work == {"SharedSteps": 10}
    assert tune(svm.SVC(), X, c, grid={"C": [1, 2]}).work == {"Refit": 10}


def test_a_kernel_is_evaluated_once_for_all_points_and_folds():
    calls = []

    def counted(A, B):
        calls.append(A.shape[0] * B.shape[0])
        return A @ B.T

    tune(NearestMean(counted), X, three, grid={"kernel": [counted]})
    assert sum(calls) <= 2 * n**2


def test_steps_are_fitted_once_for_each_fold_and_setting():
    seen = []

    class Counted(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(len(X))
            return super().fit(X, y, sample_weight)

    grid = {"svc__C": [0.1, 1.0, 10.0], "counted__with_mean": [True, False]}
    tune(Pipeline([("counted", Counted()), ("svc", svc)]), X, c, grid=grid, cv=3)
    assert len(seen) == 2 * 3


def test_groups_of_rows_stay_together():
    parts = np.repeat(np.arange(9), 10)
    found = tune(svc, X, c, grid=SVC_GRID, cv=GroupKFold(3), groups=parts)
    equal_to_grid_search(found, svc, SVC_GRID, X, c, cv=GroupKFold(3), fit={"groups": parts})


@pytest.mark.parametrize(
    ("machine", "name", "target"),
    [
        (KernelRidge(kernel=Gaussian(1.0)), "", y),
        (SVC(Gaussian(1.0), tol=1e-8), "", c),
        (NearestMean(Gaussian(1.0)), "", three),
        (make_pipeline(StandardScaler(), KernelRidge(kernel=Gaussian(1.0))), "kernelridge__", y),
    ],
)
def test_weights_go_to_every_fit_and_score(machine, name, target):
    folds = list(KFold(3).split(X))
    found = tune(
        machine, X, target, grid={f"{name}kernel__scale": [0.5, 2.0]}, cv=folds,
        sample_weight=weights,
    )  # fmt: skip
    for row, scale in zip(found.scores, [0.5, 2.0], strict=True):
        alone = clone(machine).set_params(**{f"{name}kernel__scale": scale})
        for (train, test), score in zip(folds, row, strict=True):
            alone.fit(X[train], target[train], **{f"{name}sample_weight": weights[train]})
            weighed = alone.score(X[test], target[test], sample_weight=weights[test])
            assert score == pytest.approx(weighed, abs=1e-6)


def test_weights_are_those_of_grid_search():
    for machine, grid, target in [
        (KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]}, y),
        (svc, SVC_GRID, c),
        (linear_model.Ridge(), {"alpha": [0.1, 1.0]}, y),
    ]:
        found = tune(machine, X, target, grid=grid, sample_weight=weights)
        equal_to_grid_search(found, machine, grid, X, target, fit={"sample_weight": weights})
    unweighable = tune(linear_model.Ridge(), X, y, grid={"alpha": [1.0]}, sample_weight=weights,
                       scoring=lambda m, A, b: m.score(A, b))  # fmt: skip
    assert unweighable.mean[0] != tune(linear_model.Ridge(), X, y, grid={"alpha": [1.0]}).mean[0]
    with pytest.raises(ValueError, match=r"shape \(3,\), but X has 90 rows"):
        tune(svc, X, c, grid=SVC_GRID, sample_weight=[1, 2, 3])


def test_one_row_at_a_time():
    small, target = X[:20], y[:20]
    machine, grid = KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]}
    found = tune(machine, small, target, grid=grid, cv="loo", scoring="neg_mean_squared_error")
    equal_to_grid_search(
        found, machine, grid, small, target, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    )
    with pytest.raises(ValueError, match="'loo'"):
        tune(machine, small, target, grid=grid, cv="leave")


@pytest.mark.parametrize("scoring", [["accuracy", "roc_auc"], {"a": "accuracy", "b": "roc_auc"}])
def test_several_scores(scoring):
    first, second = scoring
    found = tune(svc, X, c, grid=SVC_GRID, scoring=scoring, metric=second, train_scores=True)
    theirs = equal_to_grid_search(
        found, svc, SVC_GRID, X, c, scoring=scoring, refit=second, return_train_score=True
    )
    assert found.best_params == theirs.best_params_
    assert found.metric == second
    with pytest.raises(ValueError, match=f"{first}, {second}"):
        tune(svc, X, c, grid=SVC_GRID, scoring=scoring)
    with pytest.raises(ValueError, match="'c' is not among"):
        tune(svc, X, c, grid=SVC_GRID, scoring=scoring, metric="c")


def both_scores(machine, rows, target):
    return {
        "accuracy": machine.score(rows, target),
        "support": machine.support_vectors_.shape[1],
    }


def test_scorers_of_ones_own_see_a_fitted_machine_and_the_rows():
    found = tune(svc, X, c, grid=SVC_GRID, scoring=both_scores, metric="accuracy")
    equal_to_grid_search(found, svc, SVC_GRID, X, c, scoring=both_scores, refit="accuracy")
    assert (found.cv_results["mean_test_support"] == 3).all()
    with pytest.raises(ValueError, match="not among the scores"):
        tune(svc, X, c, grid=SVC_GRID, scoring=both_scores)
    with pytest.raises(ValueError, match="must give a number"):
        tune(svc, X, c, grid=SVC_GRID, scoring=lambda m, A, b: "x", error_score="raise")


def test_novelty_with_a_scorer_of_ones_own():
    machine = OneClassSVM(Gaussian(1.0), tol=1e-8)
    found = tune(
        machine,
        X,
        grid={"nu": [0.1, 0.5]},
        scoring=lambda m, A, b=None: float((m.predict(A) > 0).mean()),
    )
    assert found.mean[0] > found.mean[1]


def test_without_a_score_the_error_says_so():
    with pytest.raises(TypeError, match="score"):
        tune(PCA(), X, grid={"n_components": [1, 2]})


# --- errors ----------------------------------------------------------------------------------


def test_points_that_cannot_be_fitted_do_not_stop_the_others():
    grid = {"C": [-1.0, 1.0]}
    for spare in (np.nan, -7.0):
        with pytest.warns(FitFailedWarning, match="5 of 10 fits of SVC failed"):
            found = tune(svc, X, c, grid=grid, error_score=spare)
        np.testing.assert_array_equal(found.scores[0], np.full(5, spare))
        assert found.best_params == {"C": 1.0}
        assert "C=-1" in found.trials[0].failure
        with pytest.warns(FitFailedWarning):
            equal_to_grid_search(found, svc, grid, X, c, error_score=spare)
    assert found.cv_results["rank_test_score"].tolist() == [2, 1]
    with pytest.raises(ValueError, match="C=-1"):
        tune(svc, X, c, grid=grid, error_score="raise")
    with pytest.raises(ValueError, match="5 of 5 fits of SVC failed") as caught:
        tune(svc, X, c, grid={"C": [-1.0]})
    assert "5 of them: ParameterError: SVC: C=-1" in str(caught.value)


def test_scorers_that_fail_leave_a_gap():
    def moody(machine, rows, target):
        if machine.C > 1:
            raise RuntimeError("not today")
        return 0.5

    with pytest.warns(UserWarning, match="not today"):
        found = tune(svc, X, c, grid={"C": [1.0, 2.0]}, scoring=moody)
    assert np.isnan(found.mean).tolist() == [False, True]
    with pytest.raises(RuntimeError, match="not today"):
        tune(svc, X, c, grid={"C": [1.0, 2.0]}, scoring=moody, error_score="raise")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"grid": {"D": [1]}}, "D"),
        ({"grid": {"C": []}}, "no values"),
        ({"cv": 1}, "k-fold"),
        ({"cv": []}, "has no folds"),
        ({"rule": "worst"}, "rule="),
        ({"error_score": "ignore"}, "error_score"),
        ({"scoring": {}}, "at least one"),
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": "soon"}, "time_limit"),
    ],
)
def test_wrong_options_are_told(change, error):
    with pytest.raises(ValueError, match=error):
        tune(svc, X, c, **{"grid": {"C": [1.0]}, **change})


@pytest.mark.parametrize(
    ("fold", "error"),
    [
        ([0.5, 1.5], ValueError),
        (np.ones(5, dtype=bool), ValueError),
        ([[0, 1]], ValueError),
        ([0, n], IndexError),
        ([-n - 1], IndexError),
    ],
)
def test_wrong_folds_are_told(fold, error):
    with pytest.raises(error, match="cv: "):
        tune(svc, X, c, grid=SVC_GRID, cv=[(fold, np.arange(n))])


def test_why_a_scorer_failed_is_told():
    words = np.where(X[:, 0] > 0, "yes", "no")
    for spare in (np.nan, "raise"):
        with pytest.raises(ValueError, match="pos_label=1 is not a valid label"):
            tune(svc, X, words, grid=SVC_GRID, scoring="f1", error_score=spare)
    with pytest.raises(ValueError, match="45 of 45 fits of SVC could not be scored"):
        tune(svc, X, words, grid=SVC_GRID, scoring="f1")
    with pytest.raises(AttributeError, match="SVC has none of the following attributes"):
        tune(svc, X, c, grid=SVC_GRID, scoring="neg_log_loss", error_score="raise")
    some = {"grid": SVC_GRID, "scoring": ["accuracy", "neg_log_loss"], "metric": "accuracy"}
    with pytest.warns(UserWarning, match="predict_proba"):
        assert tune(svc, X, c, **some).best_score > 0.5


def test_scores_that_are_not_defined_are_told():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"one row to evaluate.*neg_mean_squared_error"):
            grid = {"penalty": [1.0]}
            tune(KernelRidge(kernel=Gaussian(1.0)), X, X[:, 0], grid=grid, cv="loo", scoring="r2")


def test_wrong_kinds_are_told():
    with pytest.raises(TypeError, match="no fit"):
        tune("SVC", X, c)
    with pytest.raises(TypeError, match="search="):
        tune(svc, X, c, grid=SVC_GRID, search="all")
    with pytest.raises(ValueError, match="inconsistent"):
        tune(svc, X, c[:-1], grid=SVC_GRID)
    with pytest.raises(ValueError, match="requires y"):
        tune(svc, X, grid=SVC_GRID)
    spoilt = X.copy()
    spoilt[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7, column 1"):
        tune(svc, spoilt, c, grid=SVC_GRID)


# --- the result ------------------------------------------------------------------------------


def test_the_result_says_what_was_found():
    found = tune(svc, X, c, grid=SVC_GRID)
    means = found.scores.mean(axis=1)
    np.testing.assert_array_equal(found.mean, means)
    np.testing.assert_allclose(found.standard_error, found.scores.std(axis=1, ddof=1) / np.sqrt(5))
    assert found.best == means.argmax()
    assert len(found.trials) == 45
    text = str(found)
    assert "9 points" in text
    assert "5 folds" in text
    assert "C=" in text
    one = tune(svc, X, c, grid=SVC_GRID, cv=[(np.arange(50), np.arange(50, n))])
    assert np.isnan(one.standard_error).all()


def test_runs_repeat():
    first, second = (tune(svc, X, c, grid=SVC_GRID) for _ in range(2))
    np.testing.assert_array_equal(first.scores, second.scores)
    with mercer.config(threads=1):
        alone = tune(svc, X, c, grid=SVC_GRID)
    np.testing.assert_array_equal(first.scores, alone.scores)


def test_the_machine_and_the_grid_are_left_alone():
    machine, kernel = SVC(Gaussian(1.0)), KernelRidge()
    before = repr(machine)
    grid = {"a": [kernel]}
    tune(machine, X, c, grid=SVC_GRID)
    assert repr(machine) == before
    tune(Pipeline([("s", StandardScaler()), ("a", KernelRidge())]), X, y, grid=grid)
    assert not hasattr(kernel, "solution_")


# --- journals --------------------------------------------------------------------------------


def stop_after(count):
    calls = []

    def callback(progress):
        calls.append(progress)
        return len(calls) >= count

    return callback


def same(first, second):
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.best == second.best
    for one, other in zip(first.trials, second.trials, strict=True):
        assert (one.params, one.fold, one.test, one.train) == (
            other.params,
            other.fold,
            other.test,
            other.train,
        )


JOURNALLED = {
    "shared": (svc, SVC_GRID, {}),
    "refitted": (svm.SVC(), {"C": [0.1, 1.0, 10.0]}, {}),
    "steps": (make_pipeline(StandardScaler(), svc), {"svc__C": [0.1, 1.0]}, {"train_scores": True}),
}


@pytest.mark.parametrize("case", JOURNALLED)
def test_a_run_that_was_cut_short_goes_on(case, tmp_path):
    machine, grid, options = JOURNALLED[case]
    whole = tune(machine, X, c, grid=grid, **options)
    for cut in (1, 2, 4):
        path = tmp_path / f"{cut}.jsonl"
        go_on = partial(tune, machine, X, c, grid=grid, journal=path, **options)
        try:
            partly = go_on(callback=stop_after(cut))
            assert not partly.complete or len(partly.trials) == len(whole.trials)
            assert partly.complete or "callback" in partly.status
        except RuntimeError as error:
            assert "before any candidate" in str(error)
        lines = len(path.read_text().splitlines())
        resumed = go_on()
        same(resumed, whole)
        judged = sum(resumed.work.values())
        assert judged < len(whole.trials) or lines == 1
        assert sum(go_on().work.values()) == 0  # everything is there now
        same(go_on(), whole)


def test_a_torn_line_is_judged_again(tmp_path):
    path = tmp_path / "journal"
    whole = tune(svc, X, c, grid=SVC_GRID, journal=path)
    content = path.read_bytes()
    for keep in (len(content) - 1, len(content) - 30, content.index(b"\n") + 5, 20, 0):
        path.write_bytes(content[:keep])
        same(tune(svc, X, c, grid=SVC_GRID, journal=path), whole)
        assert len(path.read_bytes().splitlines()) == len(content.splitlines())
        assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"machine": SVC(Gaussian(1.0), tol=1e-7)}, "the machine"),
        ({"X": X + 1e-12}, "the rows"),
        ({"y": three}, "the targets"),
        ({"grid": {"C": [1.0]}}, "the grid"),
        ({"cv": 4}, "the folds"),
        ({"scoring": "roc_auc"}, "the scoring"),
        ({"sample_weight": weights}, "the weights"),
        ({"train_scores": True}, "the options"),
    ],
)
def test_a_journal_of_another_question_is_refused(change, part, tmp_path):
    asked = {"machine": svc, "X": X, "y": c, "grid": SVC_GRID, "journal": tmp_path / "journal"}
    tune(**asked)
    before = asked["journal"].read_bytes()
    with pytest.raises(JournalError, match=f"another search.*{part}"):
        tune(**{**asked, **change})
    assert asked["journal"].read_bytes() == before


@pytest.mark.parametrize("content", ["hello", "hello\n", "[1]\n", '{"kind": 3}\n', "\n\n"])
def test_other_files_are_left_alone(content, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(JournalError, match="not a tuning journal"):
        tune(svc, X, c, grid=SVC_GRID, journal=path)
    assert path.read_text() == content


def test_broken_lines_and_other_writers_are_told(tmp_path):
    path = tmp_path / "journal"
    tune(svc, X, c, grid=SVC_GRID, journal=path)
    lines = path.read_text().splitlines()
    for broken in ("{}", "nonsense", '{"unit": "a", "results": [1]}', "3"):
        path.write_text("\n".join([lines[0], broken, *lines[1:], ""]))
        with pytest.raises(JournalError, match="line 2"):
            tune(svc, X, c, grid=SVC_GRID, journal=path)
    if os.name != "nt":
        path.write_text("")

        def write_at_the_same_time(progress):
            with pytest.raises(JournalError, match="another run"):
                tune(svc, X, c, grid=SVC_GRID, journal=path)

        tune(svc, X, c, grid={"C": [1.0]}, cv=2, journal=path, callback=write_at_the_same_time)


def test_numbers_come_back_exactly(tmp_path):
    path = tmp_path / "journal"
    values = iter([0.1 + 0.2, np.inf, -np.inf, np.nan, 1e-320, np.pi])
    ask = partial(tune, svm.SVC(), X, c, grid={"C": [1.0]}, cv=6, journal=path)
    with mercer.config(threads=1):
        first = ask(scoring=_next_of(values), error_score="raise", rule=lambda p, s: 0)
        second = ask(scoring=_next_of(values), error_score="raise", rule=lambda p, s: 0)
    assert np.array_equal(first.scores, second.scores, equal_nan=True)
    assert np.isnan(second.scores).sum() == 1
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # plain JSON, any reader takes it


class _next_of:  # noqa: N801  a scorer that says what it is told
    def __init__(self, values):
        self.values = values

    def __call__(self, machine, rows, target):
        return next(self.values)

    def __reduce__(self):
        return _next_of, (None,)


def test_any_text_can_be_written(tmp_path):
    def scorer(machine, A, b):
        if machine.C == 1.0:
            raise ValueError("\udc80 \x00 \u2028 \n")
        return 1.0

    asked = {"grid": {"C": [1.0, 2.0]}, "scoring": scorer, "journal": tmp_path / "j\u00fc.jsonl"}
    for work in ({"Refit": 10}, {}):
        with pytest.warns(UserWarning, match="scoring 5 of 10"):
            assert tune(svc, X, c, **asked).work == work


def test_progress_of_a_finished_journal_is_told(tmp_path):
    calls = []
    for _ in range(2):
        calls.clear()
        asked = {"grid": SVC_GRID, "journal": tmp_path / "journal", "callback": calls.append}
        tune(svc, X, c, **asked)
    assert calls[-1].done == calls[-1].points


def test_failures_are_remembered(tmp_path):
    path = tmp_path / "journal"
    for _ in range(2):
        with pytest.warns(FitFailedWarning, match="C=-1"):
            found = tune(svc, X, c, grid={"C": [-1.0, 1.0]}, journal=path)
        assert np.isnan(found.scores[0]).all()
    assert not found.work


def test_what_has_no_name_cannot_be_written_down(tmp_path):
    class Nameless:
        def __reduce__(self):
            raise TypeError("no")

    lock = threading.Lock()
    with pytest.raises(ValueError, match="the machine cannot be identified"):
        tune(SVC(Gaussian(1.0), callback=lambda p, lock=lock: None), X, c, grid=SVC_GRID,
             journal=tmp_path / "a")  # fmt: skip
    tune(SVC(Gaussian(1.0), callback=lambda p, lock=lock: None), X, c, grid=SVC_GRID)
    with pytest.raises(ValueError, match="the scoring cannot be identified"):
        tune(svc, X, c, grid=SVC_GRID, scoring=partial(both_scores, lock), journal=tmp_path / "b")


@pytest.mark.slow
def test_a_killed_process_leaves_a_journal_that_goes_on(tmp_path):
    path = tmp_path / "journal"
    code = f"""
        import os
        import numpy as np
        from sklearn import svm
        from mercer.selection import tune
        rng = np.random.default_rng(3)
        X = rng.standard_normal((80, 2))
        tune(svm.SVC(), X, X[:, 0] > 0, grid={{"C": list(range(1, 21))}}, journal={str(path)!r},
             callback=lambda progress: os._exit(9))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=False,
        timeout=60,
    )
    assert done.returncode == 9
    rows = np.random.default_rng(3).standard_normal((80, 2))
    ask = partial(tune, svm.SVC(), rows, rows[:, 0] > 0, grid={"C": list(range(1, 21))})
    resumed = ask(journal=path)
    same(resumed, ask())
    assert 0 < sum(resumed.work.values()) < 100


# --- progress, limits, interrupts ------------------------------------------------------------


def test_progress_is_told():
    seen = []
    tune(svc, X, c, grid=SVC_GRID, callback=seen.append)
    assert all(isinstance(one, TuningProgress) for one in seen)
    last = seen[-1]
    assert (last.done, last.points) == (9, 9)
    assert last.seconds_left == 0
    assert last.best_score == tune(svc, X, c, grid=SVC_GRID).best_score
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert "9/9 points" in str(last)
    first = seen[0]
    assert first.seconds_left > 0 or len(seen) == 1


class Slow(ClassifierMixin, BaseEstimator):
    """Takes its time; notes how many are at work at once."""

    at_work = 0
    most = 0
    limits = ()
    lock = threading.Lock()

    def __init__(self, seconds=0.01, level=0):
        self.seconds, self.level = seconds, level

    def fit(self, X, y):
        with Slow.lock:
            Slow.at_work += 1
            Slow.most = max(Slow.most, Slow.at_work)
        blas = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
        limits = mercer.get_config()
        Slow.limits = (*Slow.limits, (limits.threads, max(blas, default=1), limits.memory))
        time.sleep(self.seconds)
        with Slow.lock:
            Slow.at_work -= 1
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_threads_are_as_many_as_allowed_and_have_one_each():
    for count in (1, 2, 3):
        Slow.most, Slow.limits = 0, ()
        with mercer.config(threads=count, memory=12 * 10**6):
            allowed = call_threads(np.inf)
            tune(Slow(), X, c, grid={"level": [0, 1, 2]})
        assert Slow.most <= allowed <= count
        assert set(Slow.limits) == {(1, 1, 12 * 10**6 // allowed)}


def test_a_time_limit_keeps_what_is_done():
    found = tune(Slow(0.05), X, c, grid={"level": list(range(200))}, time_limit=1.5)
    assert not found.complete
    assert "time limit" in str(found)
    assert 0 < (~np.isnan(found.mean)).sum() < 200
    assert found.points[found.best] == found.best_params
    with pytest.raises(RuntimeError, match="time limit was reached before any candidate"):
        tune(Slow(2.0), X, c, grid={"level": [0, 1]}, time_limit=0.01)


@pytest.mark.slow
def test_a_tuning_within_a_tuning_ends_with_it():
    inner = Tuned(Slow(0.02), {"level": list(range(30))}, cv=2)
    with pytest.raises(RuntimeError, match="time limit was reached before any candidate"):
        tune(inner, X, c, grid={"machine__seconds": [0.25, 0.26]}, cv=2, time_limit=0.3)
    for _ in range(6000):
        if Slow.at_work == 0 and threading.active_count() == 1:
            break
        time.sleep(0.01)
    assert Slow.at_work == 0


INTERRUPT = """
import signal, threading, time
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.selection import Tuned
rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 5))
y = np.where(X[:, 0] + 2 * rng.standard_normal(1500) > 0, 1, -1)
grid = {grid}
machine = Tuned({machine}, grid, cv=5)
machine.fit(X[:60], y[:60])
kept = {{name: id(value) for name, value in vars(machine).items()}}
late = []
for delay in (0.3, 0.8):
    due = time.process_time() + delay
    try:
        signal.setitimer(signal.ITIMER_PROF, delay)
        machine.fit(X, y)
        raise SystemExit("was not interrupted")
    except KeyboardInterrupt:
        late.append(time.process_time() - due)
    assert {{name: id(value) for name, value in vars(machine).items()}} == kept
for _ in range(6000):
    if threading.active_count() == 1:
        break
    time.sleep(0.01)
print(min(late), max(late), threading.active_count())
"""

INTERRUPTED = {
    "shared": (
        "SVC(Gaussian(1.0), tol=1e-7)",
        "{'C': [1e2, 1e3, 1e4, 1e5], 'kernel__scale': [0.3, 0.5, 1.0, 2.0]}",
    ),
    "steps": (
        "make_pipeline(StandardScaler(), SVC(Gaussian(1.0), tol=1e-7))",
        "{'svc__C': [1e2, 1e3, 1e4, 1e5], 'svc__kernel__scale': [0.3, 0.5, 1.0, 2.0]}",
    ),
    "refitted": (
        "SVC(Gaussian(1.0), tol=1e-7, probability=True)",
        "{'C': [1e2, 1e3, 1e4, 1e5], 'kernel__scale': [0.3, 0.5, 1.0, 2.0]}",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX does")
@pytest.mark.parametrize("case", INTERRUPTED)
def test_ctrl_c_is_heard_within_a_second_and_changes_nothing(case):
    machine, grid = INTERRUPTED[case]
    # sent by a timer of processor time, which other programs on the same cores do not change
    code = "import signal\nsignal.signal(signal.SIGPROF, signal.default_int_handler)\n"
    code += INTERRUPT.format(machine=machine, grid=grid)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    soonest, latest, threads = done.stdout.split()
    assert float(soonest) < 1.0
    assert float(latest) < 3.0  # of all threads together
    assert int(threads) == 1  # nobody goes on working


# --- the scheduler, with groups that tell what happens to them ------------------------------


class Told(Group):
    held = 0
    most = 0
    order = ()

    def __init__(self, position, size=10.0, folds=2, fails=None, seconds=0.005):
        self.points, self.size = (position,), size
        self.units = tuple((fold,) for fold in range(folds))
        self.fails, self.seconds, self.ready = fails, seconds, False

    def prepare(self):
        if self.fails == "prepare":
            raise ValueError("prepare")
        self.ready = True
        Told.held += self.size
        Told.most = max(Told.most, Told.held)
        Told.order = (*Told.order, self.points[0])

    def judge(self, unit, stop):
        assert self.ready
        if self.fails == "judge" and unit == 1:
            raise ArithmeticError("judge")
        if self.fails == "badly":
            raise KeyError("badly")
        time.sleep(self.seconds)
        if stop():
            raise Stopped
        return {(self.points[0], unit): Judged({"score": self.points[0] + unit / 10})}

    def release(self):
        if self.ready:
            Told.held -= self.size
        self.ready = False


def judged_by(made, stopping=lambda: False, done=lambda group, unit: False, instead=None):
    Told.held = Told.most = 0
    Told.order = ()
    found = {}

    def keep(finished):
        for one in finished:
            found.update(one.judged)

    run(ScheduledWork(made, done, keep, stopping, instead or (lambda *_: [])))
    return found


def test_groups_are_prepared_once_in_order_and_released():
    found = judged_by([Told(k) for k in range(6)])
    assert set(found) == {(k, fold) for k in range(6) for fold in range(2)}
    assert Told.order == tuple(range(6))
    assert Told.held == 0
    skipped = judged_by([Told(k) for k in range(3)], done=lambda group, unit: group.points == (1,))
    assert Told.order == (0, 2)
    assert (1, 0) not in skipped


def test_the_last_unit_may_use_all_threads():
    class Counting(Told):
        def judge(self, unit, stop):
            seen[self.points[0], unit] = call_threads(np.inf)
            return super().judge(unit, stop)

    for spreads, last in ((True, 2), (False, 1)):
        seen = {}
        made = [Counting(k, folds=3) for k in range(3)]
        made[0].spreads, made[2].spreads = True, spreads
        with mercer.config(threads=2):
            judged_by(made)
        assert seen.pop((2, 2)) == min(last, call_threads(np.inf))
        assert set(seen.values()) == {1}


def test_memory_that_groups_hold_stays_within_the_budget():
    for budget, most in ((10**6, 10**6), (2.5 * 10**6, 2 * 10**6)):
        with mercer.config(memory=budget):
            judged_by([Told(k, size=10**6, folds=3) for k in range(5)])
        assert Told.most <= most


def test_groups_that_are_too_large_or_fail_are_replaced():
    def instead(group, units, error):
        return [] if group.points[0] >= 100 else [Told(group.points[0] + 100, size=1.0)]

    with mercer.config(memory=10**6):
        found = judged_by([Told(0, size=10**7), Told(1)], instead=instead)
    assert {point for point, _ in found} == {100, 1}
    found = judged_by([Told(0, fails="prepare"), Told(1, fails="judge")], instead=instead)
    assert set(found) == {(100, 0), (100, 1), (1, 0), (101, 0), (101, 1)}
    assert Told.held == 0
    for group, error in (
        (Told(100, fails="prepare"), ValueError),
        (Told(0, fails="badly"), KeyError),
    ):
        with pytest.raises(error):
            judged_by([Told(2), group], instead=instead)
        assert Told.held == 0


def test_stopping_leaves_in_time():
    asked = iter(range(10**6))
    with pytest.raises(Stopped):
        judged_by(
            [Told(k, seconds=0.05) for k in range(1000)],
            stopping=lambda: next(asked) == 5,
        )
    assert next(asked) == 6  # nobody asks again
    assert len(Told.order) < 1000
    assert Told.held == 0


def test_matrices_that_do_not_fit_are_not_shared():
    wide, grid = np.tile(X, 80), {"kernel__scale": [5.0, 10.0]}
    with mercer.config(memory=150_000):
        small = tune(NearestMean(Gaussian(1.0)), wide, three, grid=grid)
    large = tune(NearestMean(Gaussian(1.0)), wide, three, grid=grid)
    narrow = tune(NearestMean(Gaussian(1.0)), X, three, grid=grid)
    assert narrow.work == {"Refit": 10}  # evaluating is sooner done than checking a matrix
    assert small.work == {"Refit": 10}
    assert large.work == {"OneGram": 10}
    np.testing.assert_allclose(small.scores, large.scores)


def test_what_needs_more_than_its_share_is_fitted_alone():
    found = []
    for threads in (1, 2):
        with mercer.config(memory="5 MB", threads=threads):  # 3.5 MB is needed
            rows = np.tile(X, (6, 1)) + 1e-3 * np.arange(6 * n)[:, None]
            score = lambda machine, A, b=None: float(machine.eigenvalues_[0])  # noqa: E731
            grid = {"kernel__scale": [0.5, 1.0]}
            machine = PCA(kernel=Gaussian(1.0), n_components=2)
            found.append(tune(machine, rows, grid=grid, cv=2, scoring=score))
    assert not any(trial.failure for one in found for trial in one.trials)
    np.testing.assert_allclose(found[0].scores, found[1].scores)


# --- families --------------------------------------------------------------------------------


class Hushed(Slow):
    def fit(self, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y)


def test_filters_of_warnings_are_left_as_they_were():
    before = list(warnings.filters)
    tune(Hushed(0.003), X, c, grid={"level": list(range(6))})
    assert warnings.filters == before


def test_subclasses_are_refitted():
    class Mine(SVC):
        pass

    assert tune(Mine(Gaussian(1.0)), X, c, grid={"C": [1.0]}).work == {"Refit": 5}


def test_a_family_may_leave_points_to_others():
    class Odd(Slow):
        pass

    class Halved(Told):
        pass

    @register(Odd)
    def all_but_the_first(task: Task, points):
        return [Halved(k) for k in range(len(points)) if points[k]["level"] > 0]

    @register(Odd)
    def only_the_second(task: Task, points):
        return [Told(k) for k in range(len(points)) if points[k]["level"] == 1]

    task = make_task(
        Odd(0.0), X, c, cv=2, scoring=None, sample_weight=None, groups=None, train_scores=False,
        error_score=np.nan,
    )  # fmt: skip
    made = groups(task, [{"level": k} for k in range(4)])
    assert [group.kind for group in made] == ["Told", "Halved", "Halved", "Refit"]
    assert [group.points for group in made] == [(1,), (2,), (3,), (0,)]
    made[1].prepare()
    assert list(made[1].judge(0, lambda: False)) == [(2, 0)]
    assert isinstance(made[3], Refit)
    made[1].release()


def test_fitted_parts_are_told_apart():
    near, far = (FrozenEstimator(StandardScaler().fit(X * size)) for size in (1.0, 100.0))
    assert digest(near) != digest(far)
    found = tune(make_pipeline(near, svc), X, c, grid={"frozenestimator": [near, far]})
    assert len(found.points) == 2


def test_threads_do_not_share_frozen_parts():
    frozen = FrozenEstimator(StandardScaler().fit(X))
    pipeline = make_pipeline(frozen, svc)
    made = [machine_at(pipeline, {}), machine_at(pipeline, {"frozenestimator": frozen})]
    shells = [one.named_steps["frozenestimator"] for one in made]
    assert len({id(shell) for shell in [frozen, *shells]}) == 3
    assert all(shell.estimator is frozen.estimator for shell in shells)


def test_values_are_told_apart():
    def scaled(factor):
        return lambda A, B: factor * A @ B.T

    different = [
        1, 1.0, True, "1", None, [1], (1,), {"a": 1}, np.float64(1), np.array([1.0]), np.array([1]),
        Gaussian(1.0), Gaussian(2.0), Linear(), SVC(), SVC(C=2.0), scaled(1), scaled(2), np.sin,
        np.cos, partial(np.sin, 1), {1, 2}, float("nan"), sparse.csr_array(np.eye(2)), table,
        table["a"], words, np.array(words), get_scorer("accuracy"), get_scorer("f1"), b"1",
        KFold(2), KFold(3), SVC, 1j,
    ]  # fmt: skip
    names = [digest(value) for value in different]
    assert len(set(names)) == len(names)
    assert digest(scaled(2)) == digest(scaled(2))
    assert digest(table) == digest(table.copy())
    assert digest(sparse.csr_array(np.eye(2))) == digest(sparse.csr_array(np.eye(2)))


# --- Tuned -----------------------------------------------------------------------------------


class Spread:
    """A scorer whose name is the same in every process."""

    def __call__(self, machine, rows, target=None):
        return float(np.var(machine.transform(rows)))

    def __repr__(self):
        return "spread"


spread = Spread()


@parametrize_with_checks(
    [
        Tuned(SVC(), {"C": [0.5, 1.0]}, cv=2),
        Tuned(SVR(), {"C": [0.5, 1.0]}, cv=2),
        Tuned(KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]}, cv=2),
        Tuned(KMeans(2, random_state=0), {"n_clusters": [2, 3]}, cv=2),
        Tuned(PCA(n_components=1), {"whiten": [False, True]}, cv=2, scoring=spread),
        Tuned(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.5, 1.0]}, cv=2),
        Tuned(linear_model.Ridge(), {"alpha": [0.5, 1.0]}, cv=2),
    ],
    expected_failed_checks=lambda machine: {},
)
def test_check_estimator(estimator, check):
    check(estimator)


def test_it_behaves_like_grid_search():
    ours = Tuned(svc, SVC_GRID).fit(X, c)
    theirs = GridSearchCV(svc, SVC_GRID, cv=folds_of(svc, X, c, 5, None)).fit(X, c)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    assert ours.n_splits_ == theirs.n_splits_
    assert ours.refit_time_ > 0
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=1e-5, atol=1e-6
    )
    assert ours.score(X, c) == theirs.score(X, c)
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.certificate_.ok
    assert ours.solution_.status.ok
    assert ours.best_estimator_.C == ours.best_params_["C"]
    assert ours.tuning_.best_params == ours.best_params_


def test_only_what_the_machine_can_do_can_be_done():
    assert not hasattr(Tuned(svc), "predict_proba")
    assert not hasattr(Tuned(svc), "transform")
    assert hasattr(Tuned(svm.SVC()), "decision_function")
    assert not hasattr(Tuned(KernelRidge()), "decision_function")
    assert hasattr(Tuned(SVC(probability=True)), "predict_proba")
    found = Tuned(SVC(Gaussian(1.0), probability=True), {"C": [1.0]}, cv=2).fit(X, c)
    assert found.predict_proba(X).shape == (n, 2)
    projected = Tuned(PCA(), {"n_components": [1, 2]}, scoring=spread).fit(table)
    assert projected.transform(table).shape[1] == projected.best_params_["n_components"]
    assert list(projected.feature_names_in_) == ["a", "b", "c"]
    assert len(projected.get_feature_names_out()) == projected.best_params_["n_components"]
    clusters = Tuned(KMeans(random_state=0), {"n_clusters": [2, 3]})
    np.testing.assert_array_equal(clusters.fit_predict(X), clusters.labels_)


def test_before_and_without_a_fit():
    with pytest.raises(NotFittedError):
        Tuned(svc, SVC_GRID).predict(X)
    with pytest.raises(AttributeError, match="certificate_"):
        Tuned(svc, SVC_GRID).certificate_  # noqa: B018
    chosen = Tuned(svc, SVC_GRID, refit=False).fit(X, c)
    assert chosen.best_params_
    assert not hasattr(chosen, "classes_")
    with pytest.raises(NotFittedError, match="refit=False"):
        chosen.predict(X)
    fitted = Tuned(svc, SVC_GRID).fit(X, c).set_params(refit=False).fit(X, c)
    assert not hasattr(fitted, "best_estimator_")
    with pytest.raises(ValueError, match="metric="):
        Tuned(svc, SVC_GRID, refit="accuracy").fit(X, c)
    with pytest.raises(TypeError, match="parameter 'colour'"):
        Tuned(svc, SVC_GRID).fit(X, c, colour=3)


def test_it_can_be_copied_and_nested():
    machine = Tuned(svc, {"C": [0.1, 1.0]}, cv=3)
    again = pickle.loads(pickle.dumps(machine.fit(X, c)))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    assert again.certificate_.ok
    assert not hasattr(clone(machine), "tuning_")
    changed = clone(machine).set_params(machine__kernel__scale=2.0, cv=2)
    assert changed.fit(X, c).best_estimator_.kernel == Gaussian(2.0)
    outer = cross_val_score(machine, X, c, cv=3)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    theirs = cross_val_score(GridSearchCV(svc, {"C": [0.1, 1.0]}, cv=folds), X, c, cv=3)
    np.testing.assert_allclose(outer, theirs)
    steps = make_pipeline(StandardScaler(), machine).fit(X, c)
    assert steps.score(X, c) > 0.8
    inside = Tuned(machine, {"machine__kernel__scale": [0.5, 1.0]}, cv=2).fit(X, c)
    assert inside.best_estimator_.best_params_
    K = Gaussian(1.0)(X)
    given = Tuned(SVC(Precomputed(), tol=1e-8), {"C": [0.1, 1.0]}, cv=3)
    np.testing.assert_allclose(cross_val_score(given, K, c, cv=3), outer)


def test_weights_reach_into_pipelines_of_pipelines():
    inner = make_pipeline(StandardScaler(), svc)
    weights = rng.uniform(0.0, 2.0, n)
    outer = Tuned(make_pipeline(StandardScaler(), inner), {"pipeline__svc__C": [1.0]})
    plain = clone(inner).fit(X, c, svc__sample_weight=weights)
    found = outer.fit(X, c, sample_weight=weights)
    np.testing.assert_allclose(found.decision_function(X), plain.decision_function(X), atol=1e-2)


def test_several_scores_and_weights_and_rules():
    machine = Tuned(svc, SVC_GRID, scoring=["accuracy", "roc_auc"], metric="roc_auc").fit(X, c)
    both, folds = ["accuracy", "roc_auc"], folds_of(svc, X, c, 5, None)
    theirs = GridSearchCV(svc, SVC_GRID, scoring=both, refit="roc_auc", cv=folds).fit(X, c)
    assert machine.score(X, c) == pytest.approx(theirs.score(X, c))
    assert machine.multimetric_
    mine = Tuned(svc, SVC_GRID, scoring=both_scores, metric="accuracy").fit(X, c)
    assert mine.score(X, c) == mine.best_estimator_.score(X, c)
    weighed = Tuned(KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]})
    weighed.fit(X, y, sample_weight=weights)
    plain = KernelRidge(kernel=Gaussian(1.0), **weighed.best_params_).fit(
        X, y, sample_weight=weights
    )
    np.testing.assert_allclose(weighed.predict(X), plain.predict(X))
    last = Tuned(svc, SVC_GRID, rule=lambda points, scores: len(points) - 1).fit(X, c)
    assert last.best_index_ == 8
    assert Tuned(svc, SVC_GRID, search=Exhaustive()).fit(X, c).tuning_.complete


def test_a_fit_that_fails_changes_nothing():
    machine = Tuned(svc, SVC_GRID).fit(X, c)
    before = dict(vars(machine))
    spoilt = X.copy()
    spoilt[3, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        machine.fit(spoilt, c)
    assert vars(machine) == before

    def raises(progress):
        raise OSError("the disk is full")

    machine.callback = raises
    before = dict(vars(machine))
    with pytest.raises(OSError, match="disk"):
        machine.fit(X, c)
    assert vars(machine) == before


def test_without_a_grid_one_is_made():
    machine = Tuned(SVC()).fit(X, c)
    assert machine.score(X, c) > 0.9
    with pytest.raises(ValueError, match="pass grid"):
        tune(KNeighborsClassifier(), X, c)


@pytest.mark.parametrize("search", [Refine(rounds=1), Halve(least=30), Race(first=2)])
def test_searches_go_on_where_they_were_cut_short(search, tmp_path):
    ask = partial(tune, svc, X, c, grid=SVC_GRID, search=search, random_state=3)
    whole = ask()
    for cut in (1, 3, 7):
        path = tmp_path / f"{cut}"
        try:
            ask(journal=path, callback=stop_after(cut))
        except RuntimeError as error:
            assert "before any candidate" in str(error)
        resumed = ask(journal=path)
        assert resumed.points == whole.points
        assert np.array_equal(resumed.scores, whole.scores, equal_nan=True)
        assert len(resumed.trials) == len(whole.trials)
        assert resumed.notes == whole.notes
        assert sum(resumed.work.values()) < sum(whole.work.values())


def test_regressors_left_out_row_by_row_have_a_score_without_asking():
    X = np.linspace(0, 6, 40)[:, None]
    y = np.sin(X[:, 0])
    found = tune(KernelRidge(kernel=Gaussian(1.0)), X, y, grid={"penalty": [0.1, 1.0]}, cv="loo")
    direct = KernelRidge(kernel=Gaussian(1.0), penalty="loo", penalties=[0.1, 1.0]).fit(X, y)
    np.testing.assert_allclose(-found.mean, direct.loo_scores_, rtol=1e-9)
