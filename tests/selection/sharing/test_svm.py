"""Grids of support vector machines: paths give what fits of every point would give."""

import threading
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import check_scoring, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    ParameterGrid,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from mercer import SVC, SVR, OneClassSVM, config
from mercer.backends import choose_backend
from mercer.backends.box_programs import Box, BoxPath, PathStep
from mercer.backends.reference.backend import Reference
from mercer.gram import accurate_products
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Spectrum
from mercer.selection.sharing import Stopped, groups
from mercer.selection.sharing.base import Refit
from mercer.selection.sharing.svm import Margins
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


@pytest.mark.sampled(4)
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


@pytest.mark.parametrize("widened", [True, False])
def test_large_C_on_a_float32_matrix_is_right_to_the_tolerance(widened, monkeypatch):
    """What float32 spoils is mended on a float64 matrix, or else from the points."""
    monkeypatch.setattr(accurate_products, "FLOAT64_COPY", 0.5)
    rows, y = big()
    splits = tuple(StratifiedKFold(3).split(rows, y))[:1]
    task = task_of(SVC(Gaussian(4.0)), rows, y, splits, "roc_auc")
    (group,) = groups(task, [{"C": c} for c in (1.0, 100.0, 3000.0)])
    group.prepare()
    copy = group.float64
    assert group.gram.dtype == np.float32 and copy is not None
    group.float64 = copy if widened else None
    seen = watched(group)
    group.judge(0, never)
    assert (copy.matrix is not None) == widened
    train, _ = splits[0]
    ((test, _),) = group._scored(0)
    for setting, decision in seen:
        C = setting.bound
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
    started = time.process_time()
    with pytest.raises(Stopped):
        group.judge(0, told.is_set)
    assert time.process_time() - started < 10
    group.release()


def test_the_specification_walks_to_the_same_scores():
    points = list(ParameterGrid({"C": [0.1, 3.0], "epsilon": [0.05, 0.3]}))
    task = task_of(SVR(Gaussian(1.0), tol=1e-5), X[:80], T[:80], KFold(3).split(X[:80]))
    compiled = table(task, points)
    assert not isinstance(choose_backend(), Reference)
    with config(backend="reference"):
        np.testing.assert_allclose(table(task, points), compiled, atol=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [{"class_weight": {0: 1.0, 1: 0.0}}, {"slack": "l3"}, {"multiclass": "all"}, {"tol": "small"}],
)
def test_what_a_fit_refuses_is_refused(wrong):
    found, _ = judged(task_of(SVC(Gaussian(1.0)), X, Y), [{"C": 1.0, **wrong}, {"C": 1.0}])
    assert next(iter(wrong)) in found[0, 0].failure
    assert not found[1, 0].failure


def test_constants_of_balanced_classes_are_those_of_fits():
    """All rows are at their bounds there: rounding must not make one of them free."""
    machine = SVC(Gaussian(2.0), class_weight="balanced", tol=1e-5)
    weights = np.random.default_rng(2).uniform(0.1, 2.0, len(X))
    splits = tuple(KFold(3).split(X))
    task = task_of(machine, X, (T > 0.5).astype(int), splits, weights=weights)
    for fold, (train, test) in enumerate(splits):
        for setting, decision in decisions(task, [{"C": C} for C in (1e-6, 1e-3, 0.02)], fold):
            machine = clone(machine).set_params(C=setting.bound)
            machine.fit(X[train], T[train] > 0.5, sample_weight=weights[train])
            np.testing.assert_allclose(decision, machine.decision_function(X[test]), atol=1e-4)


def test_a_fold_is_the_same_on_any_number_of_threads():
    D, y = load_digits(return_X_y=True)
    D, y = D[:900], y[:900]
    task = task_of(SVC(Gaussian(20.0)), D, y, tuple(StratifiedKFold(3).split(D, y)))
    found = []
    for threads in (1, 3):
        with config(threads=threads):
            found.append(decisions(task, [{"C": C} for C in (0.1, 10.0, 1000.0)], 1))
    for (_, alone), (_, spread) in zip(*found, strict=True):
        np.testing.assert_array_equal(alone, spread)
    assert Margins.spreads


def decisions(task, points, fold):
    """Return the settings of a fold with the values that were scored, in the order of its rows."""
    (group,) = groups(task, points)
    group.prepare()
    seen = watched(group)
    back = np.argsort(np.argsort(group.rows.place[task.splits[fold][1]]))
    group.judge(fold, never)
    group.release()
    return [(setting, found[back]) for setting, found in seen]


def watched(group):
    """Return a list that fills with settings and the values that are scored, rows as stored."""
    seen, original = [], group._score

    def score(path, value, setting, scored, seconds):
        known = path.known(value, setting, slice(0, len(scored[0][0])))
        found = getattr(known, "decision", getattr(known, "values", None))
        seen.append((path.problem.settings[setting], found))
        return original(path, value, setting, scored, seconds)

    group._score = score
    return seen


def test_large_targets_and_steps_of_C_keep_the_tolerance():
    rows, targets = X[:40], 1e6 * T[:40]
    machine = SVR(Gaussian(2.0), epsilon=1e4, tol=1e-3)
    splits = tuple(KFold(2).split(rows))
    points = [{"C": 1e-3 * 20.0**k} for k in range(8)]
    seen = decisions(task_of(machine, rows, targets, splits), points, 0)
    train, test = splits[0]
    for setting, values in seen:
        fitted = machine.set_params(C=setting.bound, tol=1e-6).fit(rows[train], targets[train])
        np.testing.assert_allclose(values, fitted.predict(rows[test]), rtol=0, atol=2e-2)


def test_sums_of_large_terms_that_cancel_are_right():
    rng = np.random.default_rng(5)
    rows = np.tile(rng.standard_normal((300, 3)), (2, 1))
    y = rng.integers(0, 2, 600)  # equal rows of different classes: both are support vectors
    machine = SVC(Laplacian(2.0), 1e4, slack="l2", tol=1e-4)
    splits = tuple(KFold(3, shuffle=True, random_state=0).split(rows))
    task = task_of(machine, rows, y, splits)
    ((_, decision),) = decisions(task, [{"C": 1e4}], 0)
    train, test = splits[0]
    expected = machine.fit(rows[train], y[train]).decision_function(rows[test])
    np.testing.assert_allclose(decision, expected, rtol=0, atol=3e-3)


def test_bounds_far_away_do_not_swallow_coefficients():
    rows = np.linspace(-1.0, 1.0, 24)[:, None] ** 3
    y = (rows[:, 0] > 0).astype(int)
    machine = SVC(100.0 * Gaussian(0.5), tol=1e-6)
    splits = ((np.arange(0, 24, 2), np.arange(1, 24, 2)),)
    (one, near), (other, far) = decisions(
        task_of(machine, rows, y, splits), [{"C": 1e7}, {"C": 5e9}], 0
    )
    assert one.bound < other.bound
    np.testing.assert_allclose(far, near, atol=1e-4)


@pytest.mark.filterwarnings("ignore:SMO. the kernel matrix is not positive")
def test_given_matrices_with_several_optima_are_fitted():
    K = np.tanh(X @ X.T - 1)
    grid = {"C": [1.0, 2.0]}
    found = table(task_of(SVC("precomputed"), K, Y), list(ParameterGrid(grid)), Refit)
    np.testing.assert_array_equal(found, grid_search(SVC("precomputed"), K, Y, grid))


def test_classes_that_nu_does_not_part_say_so():
    rows = np.concatenate([X[:40], X[:40]])
    y = np.repeat([0, 1], 40)
    splits = tuple(KFold(2, shuffle=True, random_state=0).split(rows))
    folds = tuple((np.arange(80), test) for _, test in splits)
    machine = SVC(Gaussian(1.0), tol=1e-13)  # by less than rounding there is no margin
    found, kinds = judged(task_of(machine, rows, y, folds), [{"nu": 0.6}, {"nu": 0.3}])
    assert kinds == {Margins}
    assert all("no margin at this nu" in one.failure for one in found.values())


def test_memory_is_that_of_the_matrix_and_of_all_answers():
    rows, y = big(600)
    splits = tuple(StratifiedKFold(3).split(rows, y))
    points = [{"C": float(c)} for c in range(1, 101)]
    (single,) = groups(task_of(SVC(Gaussian(1.0)), rows, y, splits), points[:1])
    (double,) = groups(task_of(SVC(Gaussian(1.0), tol=1e-9), rows, y, splits), points[:1])
    (many,) = groups(task_of(SVC(Gaussian(1.0)), rows, y, splits), points)
    assert single.size >= (4 + 8) * 600**2  # to walk on, and for settings in doubt
    assert double.size >= 8 * 600**2
    with config(memory=int(single.size)):
        (modest,) = groups(task_of(SVC(Gaussian(1.0)), rows, y, splits), points[:1])
    assert single.float64 is not None and modest.float64 is None
    assert single.size - modest.size >= 8 * 600**2
    assert many.size - single.size >= 99 * 600 * 2 * 8


def test_rows_are_not_sorted_by_thousands_of_folds():
    rows, y = big(1200)
    splits = tuple(LeaveOneOut().split(rows))
    task = task_of(SVC(Gaussian(1.0)), rows, y, splits)
    tracemalloc.start()
    groups(task, [{"C": 1.0}])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


CHAIN_BOX = Box(np.ones(6), np.zeros(6), np.zeros(6), np.ones(6))
CHAIN = BoxPath(CHAIN_BOX, np.zeros(1), [PathStep()], np.arange(2))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(CHAIN, totals=np.zeros(1000)),
        replace(CHAIN, totals=np.zeros(0)),
        replace(CHAIN, totals=np.array([np.nan])),
        replace(CHAIN, totals=np.zeros(3), box=replace(CHAIN_BOX, group=np.array([0, 2] * 3))),
        replace(CHAIN, box=replace(CHAIN_BOX, group=np.array([0, 1] * 3))),
        replace(CHAIN, box=replace(CHAIN_BOX, lower=np.full(6, np.nan))),
        replace(CHAIN, box=replace(CHAIN_BOX, lower=np.full(6, 2.0))),
        replace(CHAIN, box=replace(CHAIN_BOX, start=np.zeros(5))),
        replace(CHAIN, box=replace(CHAIN_BOX, rows=np.arange(6) - 1)),
        replace(CHAIN, evaluation_rows=np.array([6])),
        replace(CHAIN, steps=[PathStep(np.nan)]),
        replace(CHAIN, steps=[PathStep(0.0)]),
        replace(CHAIN, steps=[PathStep(start=0)]),
    ],
)
def test_chains_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError):
        choose_backend().box_paths(np.eye(6), [wrong], 1e-3, 100, None)


def test_a_chain_without_stages_has_no_answers():
    (answer,) = choose_backend().box_paths(np.eye(6), [replace(CHAIN, steps=[])], 1e-3, 9, None)
    assert answer.b.shape == (0, 6) and answer.values.shape == (0, 2)
