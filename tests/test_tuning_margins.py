"""Grids of support vector machines: chains give what fits of every point would give."""

import threading
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import check_scoring, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ParameterGrid,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from mercer import SVC, SVR, OneClassSVM, config
from mercer.backends import choose_backend
from mercer.backends.reference import Reference
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from mercer.selection.sharing import Stopped, groups
from mercer.selection.sharing.chains import ladder
from mercer.selection.sharing.margins import Margins
from mercer.selection.sharing.questions import Setting
from mercer.selection.task import Task

KERNELS = [Gaussian(0.7), Gaussian(3.0)]
RNG = np.random.default_rng(0)
X, Y = make_classification(160, 6, n_informative=4, flip_y=0.1, random_state=3)
T = X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(len(X))
FOLDS = tuple(StratifiedKFold(4, shuffle=True, random_state=0).split(X, Y))


def task_of(machine, X, y, splits=FOLDS, scoring=None, weights=None, train_scores=False):
    scorers = {"score": check_scoring(machine, scoring=scoring)}
    return Task(machine, X, y, tuple(splits), scorers, weights, train_scores)


def never():
    return False


def judged(task, points):
    """Judge all points the simple way, one unit after the other."""
    found, kinds = {}, set()
    for group in groups(task, points):
        group.prepare()
        for unit in reversed(range(len(group.units))):
            found |= group.judge(unit, never)
        group.release()
        kinds.add(type(group))
    return found, kinds


def table(task, points, kind=Margins):
    found, kinds = judged(task, points)
    assert kinds == {kind}
    scores = np.empty((len(points), len(task.splits)))
    for (point, fold), one in found.items():
        assert not one.failure
        scores[point, fold] = one.test["score"]
    return scores


def grid_search(machine, X, y, grid, splits=FOLDS, scoring=None, weights=None, train=False):
    search = GridSearchCV(
        machine, grid, cv=list(splits), scoring=scoring, refit=False, return_train_score=train
    )
    search.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    name = "train" if train else "test"
    folds = [search.cv_results_[f"split{k}_{name}_score"] for k in range(len(splits))]
    return np.stack(folds, axis=1)


TIGHT = {"tol": 1e-7}
CASES = {
    "svc": (SVC(**TIGHT), {"C": [30.0, 0.1, 1.0]}, Y, "roc_auc"),
    "svc accuracy": (SVC(**TIGHT), {"C": [30.0, 0.1, 1.0]}, Y, None),
    "svc labels": (SVC(**TIGHT), {"C": [1.0, 9.0]}, np.array(["no", "yes"])[Y], None),
    "svc l2": (SVC(slack="l2", **TIGHT), {"C": [0.1, 10.0]}, Y, "roc_auc"),
    "svc nu": (SVC(**TIGHT), {"nu": [0.6, 0.3, 0.4]}, Y, "roc_auc"),
    "svc weights of classes": (
        SVC(**TIGHT),
        {"C": [0.3, 3.0], "class_weight": [None, "balanced", {0: 3.0, 1: 1.0}]},
        Y,
        "roc_auc",
    ),
    "svr": (SVR(**TIGHT), {"C": [10.0, 0.1], "epsilon": [0.0, 0.1, 0.4]}, T, None),
    "svr l2": (SVR(tube="l2", **TIGHT), {"C": [10.0, 0.1], "epsilon": [0.0, 0.3]}, T, None),
    # no whole number of rows at their bounds makes these shares: then the constant would be free
    "svr nu": (SVR(**TIGHT), {"C": [0.1, 10.0], "nu": [0.23, 0.71]}, T, None),
    "one class": (OneClassSVM(**TIGHT), {"nu": [0.5, 0.1, 0.3]}, 2 * Y - 1, "roc_auc"),
    "one class accuracy": (OneClassSVM(**TIGHT), {"nu": [0.5, 0.13]}, 2 * Y - 1, "accuracy"),
}


@pytest.mark.parametrize("name", CASES)
def test_scores_equal_those_of_refitting_every_point(name):
    machine, grid, y, scoring = CASES[name]
    grid = {"kernel": KERNELS, **grid}
    found = table(task_of(machine, X, y, scoring=scoring), list(ParameterGrid(grid)))
    expected = grid_search(machine, X, y, grid, scoring=scoring)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_many_classes(multiclass):
    D, y = load_digits(return_X_y=True)
    D, y = D[:240] / 16.0, y[:240]
    splits = tuple(StratifiedKFold(3, shuffle=True, random_state=0).split(D, y))
    machine = SVC(multiclass=multiclass, tol=1e-6)
    grid = {"kernel": [Gaussian(1.0), Polynomial(3)], "C": [0.1, 10.0]}
    found = table(task_of(machine, D, y, splits), list(ParameterGrid(grid)))
    np.testing.assert_array_equal(found, grid_search(machine, D, y, grid, splits))


def test_a_class_that_a_fold_does_not_learn_is_not_predicted():
    y = np.where(np.arange(len(X)) < 40, 2, Y)
    rare = (np.arange(40, 160), np.arange(40))
    splits = (rare, FOLDS[0])
    grid = {"kernel": KERNELS, "C": [1.0]}
    found = table(task_of(SVC(**TIGHT), X, y, splits), list(ParameterGrid(grid)))
    np.testing.assert_array_equal(found, grid_search(SVC(**TIGHT), X, y, grid, splits))
    assert (found[:, 0] == 0).all()


def test_weights_of_rows_mean_repetition():
    weights = RNG.integers(0, 3, len(X)).astype(float)
    points = list(ParameterGrid({"C": [0.5, 5.0], "class_weight": [None, "balanced"]}))
    machine = SVC(Gaussian(2.0), **TIGHT)
    found, _ = judged(task_of(machine, X, Y, weights=weights, scoring="roc_auc"), points)
    twice = np.repeat(np.arange(len(X)), weights.astype(int))
    for fold, (train, test) in enumerate(FOLDS):
        copies = twice[np.isin(twice, train)]
        for number, point in enumerate(points):
            fitted = machine.set_params(**point).fit(X[copies], Y[copies])
            values = fitted.decision_function(X[test])
            expected = roc_auc_score(Y[test], values, sample_weight=weights[test])
            assert found[number, fold].test["score"] == pytest.approx(expected, abs=1e-5)


def test_row_formats_strings_and_given_matrices():
    grid = {"C": [0.2, 8.0]}
    points = list(ParameterGrid(grid))
    machine = SVC(Gaussian(1.5), **TIGHT)
    dense = table(task_of(machine, X, Y, scoring="roc_auc"), points)
    csr = table(task_of(machine, sparse.csr_array(X), Y, scoring="roc_auc"), points)
    given = table(
        task_of(SVC("precomputed", **TIGHT), Gaussian(1.5)(X), Y, scoring="roc_auc"), points
    )
    np.testing.assert_allclose(csr, dense, atol=1e-9)
    np.testing.assert_allclose(given, dense, atol=1e-9)
    words = ["".join(RNG.choice(list("ab" if label else "bc"), 8)) for label in Y]
    strings = {"kernel": [Spectrum(2), Spectrum(3).normalized()], "C": [0.1, 10.0]}
    found = table(task_of(SVC(**TIGHT), words, Y), list(ParameterGrid(strings)))
    np.testing.assert_array_equal(found, grid_search(SVC(**TIGHT), words, Y, strings))


@pytest.mark.parametrize(
    "splitter",
    [
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.3, train_size=0.4, random_state=0),
        KFold(len(X) // 8),
    ],
)
def test_any_folds(splitter):
    splits = tuple(splitter.split(X, Y))
    grid = {"kernel": [Gaussian(1.0)], "C": [0.1, 10.0]}
    found = table(task_of(SVC(**TIGHT), X, Y, splits), list(ParameterGrid(grid)))
    np.testing.assert_array_equal(found, grid_search(SVC(**TIGHT), X, Y, grid, splits))


def test_scores_of_rows_learnt_from():
    machine, grid = SVR(**TIGHT), {"kernel": KERNELS, "C": [0.1, 10.0]}
    points = list(ParameterGrid(grid))
    found, _ = judged(task_of(machine, X, T, train_scores=True), points)
    expected = grid_search(machine, X, T, grid, train=True)
    scores = [[found[p, f].train["score"] for f in range(4)] for p in range(len(points))]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_the_order_of_a_grid_changes_no_bit():
    C = [5.0, 0.1, 0.1, 40.0, 1.0]
    found = table(task_of(SVC(Gaussian(1.0)), X, Y, scoring="roc_auc"), [{"C": c} for c in C])
    other = table(
        task_of(SVC(Gaussian(1.0)), X, Y, scoring="roc_auc"), [{"C": c} for c in sorted(C)]
    )
    np.testing.assert_array_equal(found[np.argsort(C, kind="stable")], other)


def test_a_unit_does_not_depend_on_others():
    points = [{"C": c} for c in (0.1, 1.0, 10.0)]
    task = task_of(SVC(Gaussian(1.0)), X, Y, scoring="roc_auc")
    (group,) = groups(task, points)
    group.prepare()
    first = [group.judge(unit, never) for unit in range(4)]
    for unit in (3, 1, 0, 2):
        again = group.judge(unit, never)
        assert {key: one.test for key, one in again.items()} == {
            key: one.test for key, one in first[unit].items()
        }
    group.release()


def big(n=1500, d=8):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((n, d))
    rows[:, -1] = (rng.random(n) < 0.02) * 30.0  # a rare flag far away: norms that float32 feels
    y = (rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.8 * rng.standard_normal(n) > 0).astype(int)
    return rows, y


def test_large_C_on_a_float32_matrix_is_right_to_the_tolerance():
    rows, y = big()
    splits = tuple(StratifiedKFold(3).split(rows, y))[:1]
    task = task_of(SVC(Gaussian(4.0)), rows, y, splits, "roc_auc")
    (group,) = groups(task, [{"C": c} for c in (1.0, 100.0, 3000.0)])
    group.prepare()
    assert group.gram.dtype == np.float32
    seen = []
    original = group._score
    group._score = lambda question, answer, *rest: (
        seen.append((answer, question)) or original(question, answer, *rest)
    )
    group.judge(0, never)
    (train, test), by_C = splits[0], {}
    for (values, offsets, setting), question in seen:
        by_C[setting.C] = question.known(values, offsets, setting).decision
    for C, decision in by_C.items():
        exact = SVC(Gaussian(4.0), C, tol=1e-6).fit(rows[train], y[train])
        error = np.abs(decision - exact.decision_function(rows[test])).max()
        usual = SVC(Gaussian(4.0), C).fit(rows[train], y[train]).decision_function(rows[test])
        allowed = np.abs(usual - exact.decision_function(rows[test])).max()
        assert error <= 3 * allowed + 2e-3, (C, error, allowed)


def test_points_that_are_no_factors_are_fitted():
    points = [{"C": np.inf}, {"probability": True}, {"criterion": "gap"}, {"kernel": Linear()}]
    found, kinds = judged(task_of(SVC(Gaussian(1.0)), X, Y), [*points, {"C": 1.0}])
    assert Margins in kinds and len(kinds) > 1
    for number, point in enumerate(points):
        for fold, (train, test) in enumerate(FOLDS):
            machine = SVC(Gaussian(1.0)).set_params(**point).fit(X[train], Y[train])
            assert found[number, fold].test["score"] == machine.score(X[test], Y[test])


def test_what_has_no_answer_says_why():
    unequal = np.where(np.arange(len(X)) % 8 == 0, 1, 0)
    task = task_of(SVC(Gaussian(1.0)), X, unequal)
    points = [{"nu": 0.9}, {"nu": 0.1}, {"C": -1.0}, {"C": np.ones(len(X))}]
    found, _ = judged(task, points)
    assert "nu=0.9 is infeasible" in found[0, 0].failure
    assert not found[1, 0].failure
    assert "C" in found[2, 0].failure and "one entry for each" in found[3, 0].failure
    one = tuple(np.flatnonzero(unequal == 0)[:40] for _ in range(2))
    found, _ = judged(task_of(SVC(Gaussian(1.0)), X, unequal, (one,)), [{"C": 1.0}])
    assert "only one class" in found[0, 0].failure


def test_a_walk_can_be_stopped():
    rows, y = big(2500)
    splits = tuple(StratifiedKFold(3).split(rows, y))
    task = task_of(SVC(Gaussian(3.0), tol=1e-5), rows, y, splits)
    (group,) = groups(task, [{"C": c} for c in (1e3, 1e5, 1e7)])
    group.prepare()
    told = threading.Event()
    threading.Timer(0.1, told.set).start()
    started = time.perf_counter()
    with pytest.raises(Stopped):
        group.judge(0, told.is_set)
    assert time.perf_counter() - started < 5
    group.release()


def test_ladders_go_up_along_C_and_from_wide_tubes_to_narrow_ones():
    settings = [Setting(e, 1.0, C) for e in (0.1, 0.5) for C in (10.0, 1.0, 1.0)]
    ordered, starts = ladder(settings)
    assert [(s.epsilon, s.C) for s in ordered] == [(0.5, 1.0), (0.5, 10.0), (0.1, 1.0), (0.1, 10.0)]
    assert starts == (-1, 0, 0, 2)


def test_the_specification_walks_to_the_same_scores():
    points = list(ParameterGrid({"C": [0.1, 3.0], "epsilon": [0.05, 0.3]}))
    task = task_of(SVR(Gaussian(1.0), tol=1e-5), X[:80], T[:80], KFold(3).split(X[:80]))
    compiled = table(task, points)
    assert not isinstance(choose_backend(), Reference)
    with config(backend="reference"):
        np.testing.assert_allclose(table(task, points), compiled, atol=1e-4)
