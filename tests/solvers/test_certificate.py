import dataclasses

import numpy as np
import pytest
from sklearn import svm
from sklearn.kernel_ridge import KernelRidge as TheirRidge

from mercer.certificates import certify
from mercer.gram import DenseGram, Need, PrecomputedGram, make_gram
from mercer.kernels import Gaussian, Linear
from mercer.machines.svm import problem as svm_problems
from mercer.problems import (
    Coefficients,
    Dual,
    Eigenproblem,
    LinearSystem,
    Modes,
    RidgePath,
)
from mercer.solvers import SMO, solve

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(1)
X = rng.standard_normal((80, 3))
SIGNS = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
GRAM = make_gram(Gaussian(1.0), X, Need.MATRIX)


def svc_problem(C=4.0):
    return svm_problems.svc(GRAM, SIGNS, np.full(80, C))


def test_gap_is_primal_minus_dual_of_the_textbook():
    problem = svc_problem()
    b = solve(problem, SMO(tol=0.3)).value
    q = certify(problem, b).quantities
    K, C = GRAM.dense(), 4.0
    f = K @ b.coef + b.intercept
    primal = 0.5 * b.coef @ K @ b.coef + C * np.maximum(0, 1 - SIGNS * f).sum()
    dual = np.abs(b.coef).sum() - 0.5 * b.coef @ K @ b.coef
    assert q.primal == pytest.approx(primal, rel=1e-12)
    assert q.dual == pytest.approx(dual, rel=1e-12)
    assert q.gap == pytest.approx(primal - dual, rel=1e-9)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("regression", [False, True])
def test_gap_with_kinks_and_squared_slack_is_primal_minus_dual(regression, squared):
    K, C, y = GRAM.dense(), 4.0, (X[:, 0] if regression else SIGNS)
    write = {
        (False, False): lambda: svm_problems.svc(GRAM, y, np.full(80, C)),
        (False, True): lambda: svm_problems.svc_l2(GRAM, y, np.full(80, C)),
        (True, False): lambda: svm_problems.svr(GRAM, y, np.full(80, C), 0.2),
        (True, True): lambda: svm_problems.svr_l2(GRAM, y, np.full(80, C), 0.2),
    }[regression, squared]
    problem = write()
    b = solve(problem, SMO(tol=0.3)).value
    f = K @ b.coef + b.intercept
    slack = np.maximum(0, np.abs(y - f) - 0.2) if regression else np.maximum(0, 1 - y * f)
    primal = 0.5 * b.coef @ K @ b.coef + C * (slack**2 if squared else slack).sum()
    dual = y @ b.coef - 0.5 * b.coef @ K @ b.coef
    dual -= 0.2 * np.abs(b.coef).sum() if regression else 0.0
    dual -= 0.5 / (2 * C) * b.coef @ b.coef if squared else 0.0
    q = certify(problem, b).quantities
    assert q.primal == pytest.approx(primal, rel=1e-10)
    assert q.dual == pytest.approx(dual, rel=1e-10)
    assert q.squared_norm == pytest.approx(b.coef @ K @ b.coef)
    assert q.margin == pytest.approx(q.squared_norm**-0.5) and q.radius == pytest.approx(1.0)


def test_what_each_zone_violates():
    problem = svc_problem(C=1.0)
    right = solve(problem, SMO(tol=1e-8)).value
    q = certify(problem, right).quantities
    at_bound = np.abs(right.coef) == 1.0
    assert q.bound_fraction == at_bound.mean() > 0
    assert q.support_fraction == np.mean(right.coef != 0)
    assert max(q.violation_at_zero, q.violation_free, q.violation_at_bound) < 1e-7
    moved = certify(problem, Dual(right.coef, right.intercept + 0.01)).quantities
    assert moved.violation_free == pytest.approx(0.01, rel=1e-3)
    assert moved.violation_free == moved.intercept_error


def test_a_hard_margin_is_bounded_by_scaling_it():
    problem = svm_problems.svc(GRAM, SIGNS, np.full(80, np.inf))
    value = solve(problem, SMO(tol=0.05)).value
    q = certify(problem, value).quantities
    best = certify(problem, solve(problem, SMO(tol=1e-7)).value).quantities
    above = q.dual / (1 - q.rescaled_gap)
    assert q.dual <= best.dual * (1 + 1e-6) and best.dual <= above < 1.3 * q.dual
    assert q.primal == np.inf  # of the answer as it is: some slack is left, which is not allowed


def test_another_librarys_answer_is_judged():
    theirs = svm.SVC(C=4.0, gamma=0.5, tol=1e-4).fit(X, SIGNS)
    coef = np.zeros(80)
    coef[theirs.support_] = theirs.dual_coef_[0]
    answer = Dual(coef, float(theirs.intercept_[0]))
    certificate = certify(svc_problem(), answer, tol=2e-3)
    assert certificate.ok
    assert certificate.quantities.relative_gap < 1e-4
    tube = svm.SVR(C=4.0, gamma=0.5, epsilon=0.1, tol=1e-4).fit(X, X[:, 0])
    coef = np.zeros(80)
    coef[tube.support_] = tube.dual_coef_[0]
    problem = svm_problems.svr(GRAM, X[:, 0], np.full(80, 4.0), 0.1)
    assert certify(problem, Dual(coef, float(tube.intercept_[0])), tol=2e-3).ok
    ridge = TheirRidge(kernel="rbf", gamma=0.5, alpha=0.3).fit(X, SIGNS)
    system = LinearSystem(GRAM, SIGNS[:, None], np.array([0.3]), np.ones(80), bias=False)
    assert certify(system, Coefficients(ridge.dual_coef_[:, None], np.zeros(1))).ok


@pytest.mark.parametrize("spoil", [1e-2, 0.5])
def test_a_wrong_answer_is_not_certified(spoil):
    problem = svc_problem()
    right = solve(problem, SMO(tol=1e-6)).value
    assert certify(problem, right).ok
    moved = right.coef.copy()
    free = np.flatnonzero((np.abs(moved) > 0.1) & (np.abs(moved) < 3.9))[:2]
    moved[free] += [spoil, -spoil]
    assert not certify(problem, Dual(moved, right.intercept), tol=1e-4).ok
    outside = right.coef.copy()
    outside[0] = np.sign(SIGNS[0]) * 4.5
    judged = certify(problem, Dual(outside, right.intercept))
    assert not judged.ok and judged.quantities.infeasibility > 0.05


@pytest.mark.parametrize("intercept", [1e6, -3.0, np.nan, np.inf])
def test_a_wrong_offset_is_not_certified(intercept):
    problem = svc_problem()
    assert not certify(problem, Dual(solve(problem).value.coef, intercept)).ok


def test_overflow_is_not_certified():
    K = PrecomputedGram(np.eye(2) * 1e200)
    problem = svm_problems.svc(K, np.array([1.0, -1.0]), np.full(2, 1e200))
    assert not certify(problem, Dual(np.array([1e200, -1e200]), 0.0)).ok


def test_bounds_met_to_rounding_are_met():
    problem = svc_problem()
    right = solve(problem, SMO(tol=1e-8)).value
    assert certify(problem, Dual(right.coef * (1 - 1e-13), right.intercept)).ok


def test_an_offset_of_the_targets_does_not_hide_a_wrong_fit():
    y = 1e8 + np.sin(X[:, :1])
    system = LinearSystem(GRAM, y, np.array([1e-3]), np.ones(80), bias=True)
    assert not certify(system, Coefficients(np.zeros((80, 1)), y.mean(axis=0))).ok
    assert certify(system, solve(system).value).ok


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()])
@pytest.mark.parametrize("penalty", [1.0, 1e-10])
def test_targets_that_are_fitted_exactly_are_certified(kernel, penalty):
    gram = make_gram(kernel, X, Need.PRODUCTS)
    for y in (np.full((80, 1), 0.1), X @ [[1.0], [2.0], [3.0]], np.zeros((80, 1))):
        system = LinearSystem(gram, y, np.array([penalty]), np.ones(80), bias=True)
        assert certify(system, solve(system).value).ok


def test_too_few_pairs_and_a_hidden_one_are_not_certified():
    four = solve(Eigenproblem(GRAM, 4)).value
    fewer = Modes(four.values[:2], four.vectors[:, :2])
    assert not certify(Eigenproblem(GRAM, 4), fewer).ok
    d = np.full(1500, 0.9)
    d[:3] = [10, 2, 1]
    hidden = Modes(d[[0, 2]], np.eye(1500)[:, [0, 2]])
    assert not certify(Eigenproblem(PrecomputedGram(np.diag(d)), 2), hidden).ok


def test_a_path_must_choose_by_its_own_scores():
    path = RidgePath(GRAM, X[:, :1], np.ones(80), np.array([1e-3, 1.0, 1e3]), True)
    value = solve(path).value
    assert certify(path, value).ok
    assert not certify(path, dataclasses.replace(value, scores=1.0 / value.scores)).ok


def test_a_hard_margin_has_no_finite_gap_when_violated():
    problem = svm_problems.svc(GRAM, SIGNS, np.full(80, np.inf))
    judged = certify(problem, Dual(np.zeros(80), 0.0))
    assert judged.quantities.relative_gap == np.inf and not judged.ok


def test_linear_system_certificate_sees_a_spoiled_coefficient_and_bias():
    y = rng.standard_normal((80, 1))
    system = LinearSystem(GRAM, y, np.array([0.1]), np.ones(80), bias=True)
    value = solve(system).value
    assert certify(system, value).ok
    spoiled = value.coef.copy()
    spoiled[3] *= 1.001
    assert not certify(system, Coefficients(spoiled, value.intercept)).ok
    assert not certify(system, Coefficients(value.coef, value.intercept + 1e-3)).ok
    assert not certify(system, Coefficients(value.coef * np.nan, value.intercept)).ok


def test_eigen_certificate_finds_a_missed_pair():
    problem = Eigenproblem(GRAM, 3)
    right = solve(problem).value
    assert certify(problem, right).ok
    four = solve(Eigenproblem(GRAM, 4)).value
    missed = Modes(four.values[[0, 2, 3]], four.vectors[:, [0, 2, 3]])
    judged = certify(problem, missed)
    assert not judged.ok and judged.quantities.largest_outside > 1
    assert judged.quantities.residual < 1e-10
    skew = dataclasses.replace(right, vectors=right.vectors + 1e-4)
    assert not certify(problem, skew).ok


def test_certificates_do_not_trust_the_stored_matrix():
    gram = make_gram(Gaussian(1.0), X, Need.MATRIX)
    assert isinstance(gram, DenseGram)
    y = rng.standard_normal((80, 1))
    gram.dense().setflags(write=True)
    gram.dense()[:] *= 1.01  # a solver with a bug
    system = LinearSystem(gram, y, np.array([0.1]), np.ones(80), bias=False)
    assert not certify(system, solve(system).value).ok


def test_a_certificate_prints_as_a_table():
    text = str(certify(svc_problem(), solve(svc_problem()).value))
    assert text.startswith("certified (tol 1.0e-03): no pair of points")
    for word in ("primal", "dual", "relative gap", "violation", "infeasibility"):
        assert word in text


def test_unknown_problems_are_refused():
    with pytest.raises(TypeError, match="no certificate for int"):
        certify(3, 4)
