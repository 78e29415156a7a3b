"""The nu forms, one class and balls: tolerances relative to the margin, whatever its size."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

from mercer import SVC, SVR, EnclosingBall, OneClassSVM
from mercer.gram import PrecomputedGram
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines.svm import problem as svm
from mercer.solvers import Status, solve

pytestmark = pytest.mark.numerics

KERNELS = [Gaussian(0.3), Gaussian(1.0), Linear(), Polynomial(2)]


def positive_rows(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    noise = rng.uniform(0.1, 1.5)
    return X, (X.sum(axis=1) + noise * rng.standard_normal(n) > 1.5).astype(int)


def quadratic_features(X):
    rows = np.column_stack([np.ones(len(X)), X])
    i, j = np.triu_indices(rows.shape[1])
    return rows[:, i] * rows[:, j] * np.where(i == j, 1.0, np.sqrt(2.0))


def hulls_meet(F, y, nu):
    """Return by a linear programme whether the hulls, reduced by nu, have a point in common."""
    sums = np.vstack([F.T * np.where(y == 1, 1.0, -1.0), y == 1, y == 0])
    right = np.append(np.zeros(F.shape[1]), [1.0, 1.0])
    found = linprog(np.zeros(len(y)), A_eq=sums, b_eq=right, bounds=(0, 2 / (nu * len(y))))
    return found.status == 0


def refused(machine, X, y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no margin at this nu")
        try:
            machine.fit(X, y)
        except ValueError as error:
            assert "no margin at this nu" in str(error)
            assert "Raise nu" in str(error)
            return True
    return False


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_certified_margin_is_one_and_where_there_is_none_that_is_said(kernel, seed):
    X, y = positive_rows(seed)
    for nu in (0.1, 0.3):
        machine = SVC(kernel, nu=nu)
        F = {Linear(): X, Polynomial(2): quadratic_features(X)}.get(kernel)
        none = F is not None and hulls_meet(F, y, nu)
        assert refused(machine, X, y) == none, nu
        if none:
            continue
        assert machine.solution_.status is Status.SOLVED
        assert machine.certificate_.ok
        assert machine.certificate_.quantities.relative_gap < 0.1
        fine = SVC(kernel, nu=nu, tol=1e-9).fit(X, y)
        f, g = machine.decision_function(X), fine.decision_function(X)
        np.testing.assert_allclose(f, g, atol=0.02 * np.abs(g).max())
        sure = np.abs(g) > 0.02 * np.abs(g).max()
        np.testing.assert_array_equal(machine.predict(X)[sure], fine.predict(X)[sure])


@pytest.mark.parametrize("tol", [0.5, 1e-1, 1e-3])
def test_no_refusal_while_there_is_a_margin(tol):
    for seed in range(12):
        X, y = positive_rows(seed)
        for kernel in KERNELS[:2]:
            machine = SVC(kernel, nu=0.3, tol=tol)
            assert not refused(machine, X, y)
            assert machine.certificate_.ok


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_answers_do_not_depend_on_the_order_of_columns_and_rows(kernel):
    rng = np.random.default_rng(5)
    for seed in range(6):
        X, y = positive_rows(seed)
        first = SVC(kernel, nu=0.6)
        if refused(first, X, y):
            continue
        columns, rows = rng.permutation(3), rng.permutation(len(X))
        second = SVC(kernel, nu=0.6).fit(X[:, columns][rows], y[rows])
        f = first.decision_function(X)
        g = second.decision_function(X[:, columns])
        np.testing.assert_allclose(f, g, atol=0.02 * np.abs(f).max())
        assert first.margin_ == pytest.approx(second.margin_, rel=0.02)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e3, 1e9])
def test_stopping_does_not_depend_on_the_scale_of_the_kernel(scale):
    X, y = positive_rows(3)
    K = Gaussian(0.5)(X)
    one, other = SVC("precomputed", nu=0.3), SVC("precomputed", nu=0.3)
    f = one.fit(K, y).decision_function(K)
    g = other.fit(scale * K, y).decision_function(scale * K)
    np.testing.assert_allclose(f, g, atol=1e-2)
    assert other.certificate_.ok
    kinds = [OneClassSVM("precomputed", nu=0.2), EnclosingBall("precomputed")]
    for machine in kinds:
        machine.fit(scale * K)
        assert machine.solution_.status is Status.SOLVED
        assert machine.certificate_.ok
        assert machine.certificate_.quantities.relative_gap < 0.1


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0])
def test_scores_and_radii_of_small_rows_are_as_good_as_those_of_large_ones(scale):
    X = scale * (np.random.default_rng(0).standard_normal((80, 3)) + 2.0)
    for kind, size in ((OneClassSVM(Linear(), nu=0.2), 1), (EnclosingBall(Linear()), 2)):
        machine, fine = kind.fit(X), type(kind)(Linear(), nu=kind.nu, tol=1e-9).fit(X)
        np.testing.assert_allclose(machine.offset_, fine.offset_, rtol=5e-3)
        assert machine.certificate_.quantities.relative_gap < 0.05, size


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("nu", [None, 0.3])
def test_a_tube_around_small_targets(nu, scale):
    X = np.random.default_rng(0).uniform(size=(60, 1))
    t = scale * np.sin(6 * X[:, 0])
    width = {"epsilon": 0.01 * scale} if nu is None else {"nu": nu}
    machine = SVR(Gaussian(0.3), C=10 * scale, **width).fit(X, t)
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.relative_gap < 0.1
    assert np.abs(machine.predict(X) - t).max() < 0.2 * scale


def test_one_class_around_the_origin_is_solved():
    X = np.vstack([np.eye(2), -np.eye(2)])
    machine = OneClassSVM(Linear(), nu=0.9).fit(X)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    assert abs(machine.offset_) < 1e-7


def test_a_margin_is_not_missed_far_from_the_origin():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]) + 1e4
    machine = SVC(Linear(), nu=0.9).fit(X, [0, 0, 1, 1])
    assert machine.certificate_.ok
    assert machine.margin_ == pytest.approx(0.5, rel=1e-2)


def test_a_fit_cut_short_is_not_called_without_a_margin():
    X, y = positive_rows(1)
    with pytest.warns(UserWarning, match="iteration limit"):
        machine = SVC(Gaussian(1.0), nu=0.2, max_iter=1).fit(X, y)
    assert machine.solution_.status is Status.ITERATION_LIMIT
    assert not machine.certificate_.ok
    assert np.isfinite(machine.decision_function(X)).all()


def test_the_problem_itself_says_that_there_is_no_margin():
    problem = svm.nu_svc(PrecomputedGram(np.ones((2, 2))), np.array([1.0, -1.0]), np.ones(2), 0.5)
    with pytest.warns(UserWarning, match="no margin at this nu"):
        assert solve(problem).status is Status.NO_MARGIN
