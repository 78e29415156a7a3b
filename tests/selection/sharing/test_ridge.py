"""Tuning of ridge regression: scores are those of a grid search that refits every point."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ParameterGrid, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelRidge, config
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid, Spectrum
from mercer.machines.ridge import krylov_folds
from mercer.machines.ridge.krylov_folds import room
from mercer.selection import tune
from mercer.selection.sharing import Stopped, groups
from mercer.selection.sharing.ridge import FeaturePath, LeftOutPath, MatrixPath, Path
from mercer.selection.task import make_task

pytestmark = pytest.mark.numerics

FOLDS = KFold(4, shuffle=True, random_state=1)
PENALTIES = np.logspace(-4, 2, 7).tolist()
MANY = np.logspace(-4, 2, 13)
SHUFFLED = KFold(5, shuffle=True, random_state=0)
ERROR = "neg_mean_squared_error"


def sample(n=160, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n) + 5.0


def compare(machine, X, y, grid, *, cv=FOLDS, scoring=ERROR, atol=1e-8, train=True):
    found = tune(machine, X, y, grid=grid, cv=cv, scoring=scoring, train_scores=train)
    theirs = GridSearchCV(machine, grid, cv=cv, scoring=scoring, return_train_score=train)
    theirs.fit(X, y)
    for part in ("test", "train") if train else ("test",):
        for k in range(theirs.n_splits_):
            name = f"split{k}_{part}_score"
            np.testing.assert_allclose(
                found.cv_results[name], theirs.cv_results_[name], rtol=atol, atol=atol
            )
    assert found.best_params == theirs.best_params_
    return found


def refitted(machine, X, y, grid, cv, weights):
    """Weighted mean squared errors of weighted fits to each fold, by brute force."""
    out = []
    for point in ParameterGrid(grid):
        errors = []
        for train, test in cv.split(X):
            fitted = clone(machine).set_params(**point)
            fitted.fit(X[train], y[train], sample_weight=weights[train])
            off = np.square(y[test] - fitted.predict(X[test]))
            errors.append(-np.average(off, weights=weights[test]))
        out.append(errors)
    return np.array(out)


def asked(machine, X, y, cv=FOLDS):
    rest = {"sample_weight": None, "groups": None, "train_scores": False, "error_score": np.nan}
    return make_task(machine, X, y, cv=cv, scoring=ERROR, **rest)


def kinds(machine, X, y, grid, cv=FOLDS):
    task = asked(machine, X, y, cv=cv)
    return {type(group) for group in groups(task, list(ParameterGrid(grid)))}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "kernel", [Gaussian(1.5), Laplacian(2.0), Gaussian(1.0) + 0.5 * Polynomial(2)]
)
def test_paths_equal_refits(kernel, bias):
    X, y = sample()
    compare(KernelRidge(kernel=kernel, bias=bias), X, y, {"penalty": PENALTIES})
    compare(KernelRidge(kernel=kernel, bias=bias), X, y, {"penalty": [1e-3, 0.1]})


def test_scales_penalties_and_bias_in_one_grid():
    X, y = sample()
    grid = {"kernel__scale": [0.5, 1.0, 4.0], "penalty": PENALTIES, "bias": [True, False]}
    machine = KernelRidge(kernel=Gaussian(1.0))
    compare(machine, X, y, grid, scoring=None)
    assert kinds(machine, X, y, grid) == {MatrixPath}


def test_kernels_as_values_of_a_grid():
    X, y = sample()
    grid = {"kernel": [Gaussian(1.0), Linear(), Polynomial(2)], "penalty": [0.01, 1.0, 50.0]}
    compare(KernelRidge(), X, y, grid)
    assert kinds(KernelRidge(), X, y, grid) == {MatrixPath, FeaturePath}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_few_features(bias, shift):
    X, y = sample(300)
    machine = KernelRidge(kernel=Linear(), bias=bias)
    compare(machine, X + shift, y, {"penalty": PENALTIES}, atol=1e-8 if not shift else 1e-6)
    assert kinds(machine, X, y, {"penalty": PENALTIES}) == {FeaturePath}


def test_small_training_parts_with_features():
    X, y = sample(200)
    cv = [(np.arange(40), np.arange(40, 200)), (np.arange(150), np.arange(150, 200))]
    compare(KernelRidge(kernel=Polynomial(2)), X, y, {"penalty": PENALTIES}, cv=cv)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Linear()])
@pytest.mark.parametrize("bias", [True, False])
def test_weights_some_of_them_zero(kernel, bias):
    X, y = sample()
    weights = np.random.default_rng(3).integers(0, 4, len(y)).astype(float)
    machine, grid = KernelRidge(kernel=kernel, bias=bias), {"penalty": PENALTIES}
    found = tune(machine, X, y, grid=grid, cv=FOLDS, scoring=ERROR, sample_weight=weights)
    expected = refitted(machine, X, y, grid, FOLDS, weights)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-8, atol=1e-8)


def test_precomputed():
    X, y = sample()
    machine = KernelRidge(kernel="precomputed")
    K = Gaussian(1.5)(X)
    compare(machine, K, y, {"penalty": PENALTIES, "bias": [True, False]})
    assert kinds(machine, K, y, {"penalty": PENALTIES}) == {MatrixPath}


def test_sparse_rows():
    X, y = sample(120, 6)
    X = sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    compare(KernelRidge(kernel=Gaussian(2.0)), X, y, {"penalty": PENALTIES})
    compare(KernelRidge(kernel=Linear()), X, y, {"penalty": PENALTIES})


def test_strings():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc"), size=12)) for _ in range(60)]
    y = np.array([text.count("ab") for text in texts]) + 0.1 * rng.standard_normal(60)
    compare(KernelRidge(kernel=Spectrum(2)), texts, y, {"penalty": [0.1, 1.0, 10.0]})


def test_overlapping_and_partial_folds():
    X, y = sample()
    rng = np.random.default_rng(5)
    cv = [(rng.permutation(160)[:90], rng.permutation(160)[:30]) for _ in range(3)]
    compare(KernelRidge(kernel=Gaussian(1.5)), X, y, {"penalty": PENALTIES}, cv=cv)
    some = PredefinedSplit(np.where(np.arange(160) < 100, -1, np.arange(160) % 2))
    compare(KernelRidge(kernel=Gaussian(1.5)), X, y, {"penalty": PENALTIES}, cv=some)


def test_several_scores():
    X, y = sample()
    found = tune(
        KernelRidge(kernel=Gaussian(1.5)),
        X,
        y,
        grid={"penalty": PENALTIES},
        scoring=["r2", ERROR],
        metric="r2",
        cv=FOLDS,
    )
    theirs = GridSearchCV(
        KernelRidge(kernel=Gaussian(1.5)),
        {"penalty": PENALTIES},
        scoring=["r2", ERROR],
        refit="r2",
        cv=FOLDS,
    ).fit(X, y)
    for name in ("mean_test_r2", f"mean_test_{ERROR}"):
        np.testing.assert_allclose(found.cv_results[name], theirs.cv_results_[name], rtol=1e-8)


def test_several_targets_and_penalties_take_the_general_way():
    X, y = sample()
    Y = np.column_stack([y, X[:, 0] ** 2])
    grid = {"penalty": [0.1, 1.0]}
    compare(KernelRidge(kernel=Gaussian(1.5)), X, Y, grid)
    compare(KernelRidge(kernel=Gaussian(1.5)), X, Y, {"penalty": [[0.1, 1.0], [1.0, 2.0]]})
    assert not kinds(KernelRidge(kernel=Gaussian(1.5)), X, Y, grid) & {MatrixPath, FeaturePath}
    compare(KernelRidge(kernel=Gaussian(1.5)), X, y, {"penalty": ["loo", 1.0, 0.0]}, atol=1e-6)


def test_inside_a_pipeline():
    X, y = sample()
    machine = make_pipeline(StandardScaler(), KernelRidge(kernel=Gaussian(1.5)))
    compare(machine, X * [1, 10, 100], y, {"kernelridge__penalty": PENALTIES})


# leave-one-out


@pytest.mark.parametrize("cv", ["loo", LeaveOneOut()])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Linear()])
@pytest.mark.parametrize("bias", [True, False])
def test_leave_one_out_equals_n_refits(cv, kernel, bias):
    X, y = sample(50)
    machine, grid = KernelRidge(kernel=kernel, bias=bias), {"penalty": [1e-3, 0.1, 10.0]}
    found = tune(machine, X, y, grid=grid, cv=cv, scoring=ERROR)
    assert kinds(machine, X, y, grid, cv=cv) == {LeftOutPath}
    for point, scores in zip(found.points, found.scores, strict=True):
        for i, score in enumerate(scores):
            rest = np.delete(np.arange(50), i)
            fitted = KernelRidge(kernel=kernel, bias=bias, **point).fit(X[rest], y[rest])
            assert score == pytest.approx(-((y[i] - fitted.predict(X[[i]])[0]) ** 2), abs=1e-8)


def test_leave_one_out_with_weights():
    X, y = sample(40)
    weights = np.random.default_rng(3).integers(1, 4, 40).astype(float)
    machine, grid = KernelRidge(kernel=Gaussian(1.5)), {"penalty": [1e-2, 1.0]}
    found = tune(machine, X, y, grid=grid, cv="loo", scoring=ERROR, sample_weight=weights)
    expected = refitted(machine, X, y, grid, LeaveOneOut(), weights)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "scoring", ["neg_mean_absolute_error", "neg_root_mean_squared_error", "neg_max_error"]
)
def test_leave_one_out_scores(scoring):
    X, y = sample(30)
    compare(
        KernelRidge(kernel=Gaussian(1.5)),
        X,
        y,
        {"penalty": [0.1, 1.0]},
        cv=LeaveOneOut(),
        scoring=scoring,
        train=False,
    )


def test_leave_one_out_with_a_score_that_needs_its_scorer():
    X, y = sample(30)
    y = np.abs(y) + 1
    compare(
        KernelRidge(kernel=Gaussian(1.5)),
        X,
        y,
        {"penalty": [0.1, 1.0]},
        cv=LeaveOneOut(),
        scoring="neg_mean_absolute_percentage_error",
        train=False,
    )


# what is left to the machine


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_kernel_that_is_no_kernel_is_left_to_the_machine():
    X, y = sample(80)
    grid = {"penalty": [1e-3, 1e4]}
    machine = KernelRidge(kernel=Sigmoid(1.0, -1.0))
    found = tune(machine, X, y, grid=grid, cv=FOLDS, scoring=ERROR)
    theirs = GridSearchCV(machine, grid, cv=FOLDS, scoring=ERROR).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-6
    )


@pytest.mark.filterwarnings("ignore")
def test_tiny_penalties_of_a_nearly_singular_matrix():
    X, y = sample(300)
    grid = {"penalty": [1e-16, 1e-13, 1e-6]}
    machine = KernelRidge(kernel=Gaussian(20.0))
    X[:, 1:] *= 1e-3
    found = tune(machine, X, y, grid=grid, cv=FOLDS, scoring=ERROR)
    # of the smaller two even rounding of the kernel matters: what cannot be met is what the
    # machine itself makes of the same matrix
    theirs = GridSearchCV(KernelRidge(kernel="precomputed"), grid, cv=FOLDS, scoring=ERROR)
    theirs.fit(machine.kernel(X), y)
    np.testing.assert_allclose(
        found.cv_results["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-6
    )


def test_constant_targets():
    X, _ = sample(1200)
    found = tune(
        KernelRidge(kernel=Gaussian(4.0)),
        X,
        np.full(1200, 3.0),
        grid={"penalty": [0.1, 1.0]},
        scoring=ERROR,
    )
    np.testing.assert_allclose(found.scores, 0.0, atol=1e-18)


def test_units_can_be_left():
    X, y = sample()
    task = asked(KernelRidge(kernel=Gaussian(1.0)), X, y)
    (group,) = groups(task, [{"penalty": 0.1}, {"penalty": 1.0}])
    assert isinstance(group, Path)
    group.prepare()
    with pytest.raises(Stopped):
        group.judge(0, lambda: True)
    told = threading.Event()
    folds = [fold for unit in group.units for fold in unit]
    assert folds == [0, 1, 2, 3]
    assert group.judge(0, told.is_set).keys() == {(k, fold) for k in (0, 1) for fold in folds}
    group.release()


def test_a_run_taken_up_again_gives_the_same(tmp_path):
    X, y = sample()
    options = {"grid": {"kernel__scale": [0.5, 1.0, 2.0], "penalty": PENALTIES}, "cv": FOLDS}
    whole = tune(KernelRidge(kernel=Gaussian(1.0)), X, y, **options)
    journal = tmp_path / "journal"
    enough = len(whole.points) // 2
    with contextlib.suppress(RuntimeError):  # no point may be whole yet
        tune(
            KernelRidge(kernel=Gaussian(1.0)),
            X,
            y,
            **options,
            journal=journal,
            callback=lambda told: told.done >= enough,
        )
    again = tune(KernelRidge(kernel=Gaussian(1.0)), X, y, **options, journal=journal)
    np.testing.assert_array_equal(again.scores, whole.scores)


# large folds


@pytest.fixture
def subspaces(monkeypatch):
    """Few rows make cheap factors; here subspaces have to go on."""
    monkeypatch.setattr(krylov_folds, "_FACTOR", 1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("precomputed", [True, False])
def test_subspaces_equal_a_grid_search(bias, precomputed, subspaces):
    X, y = sample(900)
    cv = KFold(3, shuffle=True, random_state=1)
    kernel = Gaussian(0.7)
    machine = KernelRidge(kernel="precomputed" if precomputed else kernel, bias=bias)
    rows = kernel(X) if precomputed else X
    grid = {"penalty": np.logspace(-4, 1, 8).tolist()}
    found = tune(machine, rows, y, grid=grid, cv=cv)
    theirs = GridSearchCV(machine, grid, cv=cv).fit(rows, y)
    for k in range(3):
        np.testing.assert_allclose(
            found.cv_results[f"split{k}_test_score"],
            theirs.cv_results_[f"split{k}_test_score"],
            rtol=1e-8,
        )


@pytest.mark.parametrize("rows", [300, 900])
def test_one_kernel_or_many_one_thread_or_two_give_the_same_digits(rows, subspaces):
    X, y = sample(rows)
    grid = {"kernel__scale": [0.5, 0.8], "penalty": MANY.tolist()}
    machine = KernelRidge(kernel=Gaussian(1.0))
    both = tune(machine, X, y, grid=grid, cv=3)
    with config(threads=1):
        np.testing.assert_array_equal(tune(machine, X, y, grid=grid, cv=3).scores, both.scores)
    alone = tune(machine, X, y, grid={**grid, "kernel__scale": [0.5]}, cv=3)
    np.testing.assert_array_equal(alone.scores, both.scores[: len(MANY)])


def test_memory_is_planned():
    X, y = sample(900)
    rest = {"sample_weight": None, "groups": None, "train_scores": False, "error_score": np.nan}
    task = make_task(KernelRidge(kernel=Gaussian(1.0)), X, y, cv=3, scoring=None, **rest)
    (group,) = groups(task, [{"penalty": p} for p in MANY])
    assert group.size >= 8 * 900**2 + room(900, 3)


@pytest.mark.parametrize("weighted", [True, False])
def test_precomputed_and_shuffled_folds_equal_a_grid_search(weighted):
    X, y = sample(700)
    K = np.asarray(Gaussian(1.0)(X, X))
    grid = {"penalty": [1e-3, 1.0]}
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 700) if weighted else None
    fit = {} if weights is None else {"sample_weight": weights}
    found = tune(KernelRidge(kernel="precomputed"), K, y, grid=grid, cv=SHUFFLED, **fit)
    if weighted:
        again = tune(KernelRidge(kernel=Gaussian(1.0)), X, y, grid=grid, cv=SHUFFLED, **fit)
        np.testing.assert_allclose(found.scores, again.scores, rtol=0, atol=1e-8)
        return
    theirs = GridSearchCV(KernelRidge(kernel="precomputed"), grid, cv=SHUFFLED).fit(K, y)
    expected = theirs.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found.scores.mean(axis=1), expected, rtol=0, atol=1e-8)


def test_common_parts_are_sorted_as_well():
    """Parts that kernels share are evaluated on rows as they are."""
    rng = np.random.default_rng(5)
    X = ["".join(rng.choice(list("abc"), 12)) for _ in range(150)]
    y = np.array([x.count("ab") + 0.1 * rng.standard_normal() for x in X])
    kernels = [0.5 * Spectrum(2) + 0.1, 2.0 * Spectrum(2) + 0.1]
    grid = {"kernel": kernels, "penalty": [0.1, 10.0]}
    machine = KernelRidge(kernel=kernels[0], bias=True)
    found = tune(machine, X, y, grid=grid, cv=SHUFFLED)
    theirs = GridSearchCV(machine, grid, cv=SHUFFLED).fit(X, y)
    expected = theirs.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found.scores.mean(axis=1), expected, rtol=0, atol=1e-7)
