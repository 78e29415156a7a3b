"""Ridge paths over folds: every solver gives what single fits to each fold do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.model_selection import KFold

from mercer import KernelRidge
from mercer.gram import Need, make_gram
from mercer.gram.build import matrix_gram
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines.ridge.folds import FoldSystem
from mercer.machines.ridge.krylov_folds import by_subspaces
from mercer.machines.ridge.problem import FeatureMoments
from mercer.problems import FoldedRidgePath, LinearSystem
from mercer.solvers import (
    BandFolds,
    BandPath,
    CholeskyFolds,
    KrylovFolds,
    PrimalFolds,
    SolverError,
    Status,
    Watch,
    solve,
)
from mercer.solvers.dispatch import choose
from mercer.testing import check_solver

pytestmark = pytest.mark.numerics

PENALTIES = np.logspace(-3, 2, 8)
BY_MATRIX = [BandFolds(), CholeskyFolds(), KrylovFolds()]


def sample(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n) + 5.0


def weights_of(kind, n):
    s = np.random.default_rng(2).uniform(0.1, 2.0, n) if kind else np.ones(n)
    s[10:20] = 0.0 if kind else 1.0
    return s


def asked(kernel, n=120, *, bias=True, weighted=False, folds=3, penalties=PENALTIES, X=None):
    rows, y = sample(n)
    rows = rows if X is None else X
    cut = KFold(folds, shuffle=True, random_state=0).split(rows)
    gram = make_gram(kernel, rows, Need.MATRIX)
    trains = tuple(train for train, _ in cut)
    return FoldedRidgePath(gram, y, weights_of(weighted, n), penalties, bias, trains)


def closed_form(problem, fold, penalty):
    """f at all rows, from the bordered system of one fold."""
    rows, K = problem.learnt_from(fold), problem.gram.dense()
    m = len(rows)
    C = K[np.ix_(rows, rows)] + penalty * np.diag(1 / problem.row_weights[rows])
    if not problem.bias:
        return K[:, rows] @ np.linalg.solve(C, problem.targets[rows])
    bordered = np.block([[C, np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    solved = np.linalg.solve(bordered, np.append(problem.targets[rows], 0.0))
    return K[:, rows] @ solved[:-1] + solved[-1]


def compare(problem, value, atol=1e-7):
    assert value.met.all()
    for k, fold in enumerate(problem.folds):
        for j, penalty in enumerate(problem.penalties):
            expected = closed_form(problem, fold, penalty)
            np.testing.assert_allclose(value.values[k, :, j], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("solver", [*BY_MATRIX, PrimalFolds()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_solvers_are_certified_and_equal_the_closed_form(solver, bias, weighted):
    primal = isinstance(solver, PrimalFolds)
    kernel = Polynomial(2) if primal else Gaussian(1.5)
    problem = asked(kernel, bias=bias, weighted=weighted, penalties=PENALTIES[2:])
    check_solver(solver, problem)
    compare(problem, solve(problem, solver).value)


@pytest.mark.parametrize("weighted", [True, False])
def test_single_fits_to_each_fold_say_the_same(weighted):
    problem, (X, y) = asked(Gaussian(1.5), weighted=weighted), sample()
    value = solve(problem).value
    for k, fold in enumerate(problem.folds):
        rows = problem.learnt_from(fold)
        for j, penalty in enumerate(PENALTIES.tolist()):
            machine = KernelRidge(penalty, kernel=Gaussian(1.5))
            machine.fit(X[rows], y[rows], sample_weight=problem.row_weights[rows])
            np.testing.assert_allclose(value.values[k, :, j], machine.predict(X), atol=1e-7)
            np.testing.assert_allclose(value.intercept[k, j], machine.intercept_, atol=1e-7)


def test_scikit_learn_says_the_same():
    problem, (X, y) = asked(Gaussian(1.5), bias=False, weighted=True), sample()
    value = solve(problem).value
    for k, fold in enumerate(problem.folds):
        rows = problem.learnt_from(fold)
        for j, penalty in enumerate(PENALTIES):
            theirs = TheirRidge(alpha=penalty, kernel="rbf", gamma=1 / (2 * 1.5**2))
            theirs.fit(X[rows], y[rows], sample_weight=problem.row_weights[rows])
            np.testing.assert_allclose(value.values[k, :, j], theirs.predict(X), atol=1e-7)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_leave_one_out_equals_folds_of_all_rows_but_one(bias, weighted):
    problem = asked(Gaussian(1.5), 60, bias=bias, weighted=weighted)
    every = np.arange(60)
    alone = FoldedRidgePath(
        problem.gram, problem.targets, problem.row_weights, PENALTIES, bias, None
    )
    folds = tuple(np.delete(every, i) for i in range(60))
    one_by_one = FoldedRidgePath(
        problem.gram, problem.targets, problem.row_weights, PENALTIES, bias, folds
    )
    check_solver(BandPath(), alone)
    expected = solve(one_by_one).value.values[every, every]
    np.testing.assert_allclose(solve(alone).value.values[0], expected, atol=1e-7)


def test_the_choice_is_made_by_what_the_problem_is():
    few = PENALTIES[:3]
    assert isinstance(choose(asked(Gaussian(1.0))), BandFolds)
    assert isinstance(choose(asked(Gaussian(1.0), penalties=few)), CholeskyFolds)
    assert isinstance(choose(asked(Gaussian(1.0), 760)), KrylovFolds)
    assert isinstance(choose(asked(Gaussian(1.0), 740)), BandFolds)  # folds of 493 rows
    assert isinstance(choose(asked(Gaussian(1.0), 760, weighted=True)), BandFolds | KrylovFolds)
    assert isinstance(choose(asked(Linear())), PrimalFolds)
    problem = asked(Linear())
    alone = FoldedRidgePath(
        problem.gram, problem.targets, problem.row_weights, PENALTIES, True, None
    )
    assert isinstance(choose(alone), BandPath)


def test_sparse_features():
    X, _ = sample(120, 6)
    X = sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    problem = asked(Linear(), X=X)
    assert isinstance(choose(problem), PrimalFolds)
    compare(problem, solve(problem).value)


def test_moments_may_be_known_already():
    problem = asked(Linear(), weighted=True)
    moments = FeatureMoments.of(problem.gram, problem.row_weights, True)
    parts = [
        FoldedRidgePath(
            problem.gram, problem.targets, problem.row_weights, PENALTIES, True, (fold,), moments
        )
        for fold in problem.folds
    ]
    whole = solve(problem).value.values
    np.testing.assert_array_equal(np.vstack([solve(p).value.values for p in parts]), whole)


def test_folds_of_no_rows_meet_nothing():
    X, y = sample(40)
    gram = make_gram(Gaussian(1.0), X, Need.MATRIX)
    s = np.ones(40)
    s[:20] = 0.0
    folds = (np.arange(20), np.arange(40))
    problem = FoldedRidgePath(gram, y, s, PENALTIES, True, folds)
    with pytest.warns(ConvergenceWarning, match="8 of 16 fits do not meet their equations"):
        found = solve(problem)
    assert not found.value.met[0].any() and found.value.met[1].all()


@pytest.mark.parametrize("solver", BY_MATRIX, ids=lambda s: type(s).__name__)
def test_what_is_not_met_is_said(solver):
    X, y = sample(60)
    K = np.asarray(Gaussian(1.0)(X)) - 0.5 * np.eye(60)
    problem = FoldedRidgePath(matrix_gram(K), y, np.ones(60), PENALTIES, True, (np.arange(50),))
    found = solve(problem, solver, warn=False)
    assert found.status is Status.INACCURATE and "of 8 fits" in found.detail
    met = found.value.met[0]
    assert met[PENALTIES > 1].all() and not met[PENALTIES < 0.3].any()
    for part in (found.value.values, found.value.coef):
        assert np.isnan(part[0][:, ~met]).all() and np.isfinite(part[0][:, met]).all()


@pytest.mark.parametrize("solver", [*BY_MATRIX, PrimalFolds()], ids=lambda s: type(s).__name__)
def test_the_callback_ends_it(solver):
    problem = asked(Linear())
    found = solve(problem, solver, callback=lambda progress: True, warn=False)
    assert found.status is Status.STOPPED and not found.value.met.any()


def test_penalties_that_were_walked_in_time_are_kept():
    problem, penalties = asked(Linear()), np.logspace(-3, 2, 20)
    alone = FoldedRidgePath(
        problem.gram, problem.targets, problem.row_weights, penalties, True, None
    )
    found = solve(alone, callback=lambda progress: True, warn=False)
    assert found.status is Status.STOPPED and found.value.met[0].tolist() == [True] * 16 + 4 * [
        False
    ]


@pytest.mark.parametrize("solver", [BandFolds(), PrimalFolds()], ids=lambda s: type(s).__name__)
def test_folds_that_were_answered_in_time_are_kept(solver):
    problem = asked(Linear())
    found = solve(problem, solver, callback=lambda told: told.iteration > 0, warn=False)
    assert found.status is Status.STOPPED and "16 of 24" in found.detail
    assert found.value.met[0].all() and not found.value.met[1:].any()


def test_refusals_name_the_remedy():
    problem = asked(Gaussian(1.0))
    alone = FoldedRidgePath(
        problem.gram, problem.targets, problem.row_weights, PENALTIES, True, None
    )
    with pytest.raises(SolverError, match="feature map"):
        solve(problem, PrimalFolds())
    with pytest.raises(SolverError, match=r"use solver=BandPath\(\)"):
        solve(alone, KrylovFolds())
    with pytest.raises(SolverError, match="folds=None"):
        solve(problem, BandPath())
    with pytest.raises(SolverError, match="positive penalties"):
        solve(asked(Gaussian(1.0), penalties=np.array([0.0, 1.0])))
    system = LinearSystem(problem.gram, problem.targets[:, None], PENALTIES[:1], np.ones(120), True)
    with pytest.raises(SolverError, match="FoldedRidgePath"):
        solve(system, BandFolds())


def test_steps_do_not_depend_on_how_many_folds_go_together():
    X, y = sample(500)
    K, penalties = Gaussian(3.0)(X), np.logspace(-2, 1, 5)
    folds = [train for train, _ in KFold(10).split(X)]
    systems = [FoldSystem.of(K, train, y, None, True) for train in folds]
    together, _ = by_subspaces(systems, penalties, Watch())
    for system, answer in zip(systems, together, strict=True):
        ((alone,), _) = by_subspaces([system], penalties, Watch())
        assert answer.met.all() and alone.met.all()
        np.testing.assert_allclose(answer.values, alone.values, rtol=0, atol=1e-7)


def test_steps_end_where_there_is_nothing_to_find():
    X, y = sample(300)
    penalties = np.logspace(-1, 2, 5)
    train = (np.arange(250),)
    for K, right in (
        (np.asarray(Gaussian(2.0)(X)), np.zeros(300)),  # targets without any length
        (np.eye(300), y),  # one step, and there is no new vector
        (np.ones((300, 300)), y),  # two
    ):
        problem = FoldedRidgePath(matrix_gram(K), right, np.ones(300), penalties, False, train)
        system = FoldSystem.of(K, train[0], right, None, False)
        ((answer,), _) = by_subspaces([system], penalties, Watch())
        assert answer.met.all()
        for j, penalty in enumerate(penalties):
            expected = closed_form(problem, train[0], penalty)
            np.testing.assert_allclose(answer.values[:, j], expected, rtol=0, atol=1e-7)
    indefinite = np.asarray(Gaussian(2.0)(X)) - 5.0 * np.eye(300)
    system = FoldSystem.of(indefinite, np.arange(250), y, None, False)
    ((answer,), _) = by_subspaces([system], penalties, Watch())
    assert not answer.met[penalties < 1].any()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_subspaces_and_factors_agree_on_large_folds(bias, weighted):
    X, y = sample(700)
    s = weights_of(weighted, 700)
    gram, penalties = make_gram(Gaussian(4.0), X, Need.MATRIX), np.logspace(-3, 2, 6)
    problem = FoldedRidgePath(gram, y, s, penalties, bias, (np.arange(100, 700),))
    for solver in BY_MATRIX:
        compare(problem, solve(problem, solver).value)
