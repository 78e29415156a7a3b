"""Each support vector machine as a box programme: closed forms, other libraries, a QP solver."""

import numpy as np
import pytest
from sklearn import svm as libsvm
from sklearn.exceptions import ConvergenceWarning

from mercer.certificates import certify
from mercer.gram import Need, PartGram, PrecomputedGram, ShiftedGram, exact, make_gram
from mercer.gram.accurate_products import exact_block, exact_rows, exact_rows_of_several
from mercer.kernels import Gaussian
from mercer.machines.svm import problem as svm
from mercer.problems import BoxQP, Dual, Duals, Many
from mercer.solvers import SMO, Gap, solve

rng = np.random.default_rng(5)
X = rng.standard_normal((90, 3))
SIGNS = np.where(X[:, 0] + 0.6 * rng.standard_normal(90) > 0, 1.0, -1.0)
TARGETS = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(90)
WEIGHTS = rng.integers(1, 4, 90).astype(float)
GRAM = make_gram(Gaussian(1.0), X, Need.MATRIX)
K = GRAM.dense()
FINE = SMO(tol=1e-10, criterion=Gap())
gamma = 0.5


def values(machine):
    return K @ machine.coef + machine.intercept


# --- closed forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [np.inf, 5.0, 0.3])
def test_two_points_have_a_margin_in_closed_form(C):
    gram = PrecomputedGram(np.array([[1.0, 0.2], [0.2, 1.0]]))
    answer = solve(svm.svc(gram, np.array([1.0, -1.0]), np.full(2, C))).value
    np.testing.assert_allclose(answer.coef, min(C, 1 / 0.8) * np.array([1.0, -1.0]))
    assert answer.intercept == pytest.approx(0.0, abs=1e-12)


def test_two_points_with_squared_slack():
    gram = PrecomputedGram(np.array([[1.0, 0.2], [0.2, 1.0]]))
    answer = solve(svm.svc_l2(gram, np.array([1.0, -1.0]), np.full(2, 2.0))).value
    np.testing.assert_allclose(answer.coef, [1 / (0.8 + 0.25), -1 / (0.8 + 0.25)])


def test_the_ball_around_two_and_three_points():
    points = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0]])
    problem = svm.ball(PrecomputedGram(points @ points.T), np.full(3, np.inf))
    answer = solve(problem, FINE).value
    radius, centre = svm.ball_radius(problem, answer)
    assert (radius, centre) == (pytest.approx(2.0), pytest.approx(2.0))
    np.testing.assert_allclose(answer.coef @ points, [2.0, 0.0], atol=1e-9)
    angles = 2 * np.pi * np.arange(3) / 3
    corners = 3 * np.column_stack([np.cos(angles), np.sin(angles)]) + [10.0, 0.0]
    problem = svm.ball(PrecomputedGram(corners @ corners.T), np.full(3, 1.0))
    radius, centre = svm.ball_radius(problem, solve(problem, FINE).value)
    assert (radius, centre) == (pytest.approx(3.0), pytest.approx(10.0))


def test_a_soft_ball_leaves_the_outlier_out():
    points = np.append(np.linspace(-1, 1, 20), 50.0)[:, None]
    problem = svm.ball(PrecomputedGram(points @ points.T), np.full(21, 0.2))
    radius, _ = svm.ball_radius(problem, solve(problem, FINE).value)
    assert radius < 15
    problem = svm.ball(PrecomputedGram(points @ points.T), np.full(21, np.inf))
    radius, _ = svm.ball_radius(problem, solve(problem, FINE).value)
    assert radius == pytest.approx(25.5)


# --- other libraries -------------------------------------------------------------------------


def test_nu_svc_equals_libsvm_and_svc_at_its_own_c():
    theirs = libsvm.NuSVC(nu=0.4, gamma=gamma, tol=1e-6).fit(X, SIGNS)
    machine, rho = svm.nu_svc_margin(
        solve(svm.nu_svc(GRAM, SIGNS, np.ones(90), 0.4), SMO(tol=1e-9)).value
    )
    np.testing.assert_allclose(values(machine), theirs.decision_function(X), atol=1e-3)
    equal = svm.svc(GRAM, SIGNS, np.full(90, 1 / rho))
    assert certify(equal, machine, 1e-5).ok


def test_nu_svr_equals_libsvm_and_svr_with_its_own_tube():
    theirs = libsvm.NuSVR(nu=0.3, C=2.0, gamma=gamma, tol=1e-6).fit(X, TARGETS)
    machine, eps = svm.nu_svr_tube(
        solve(svm.nu_svr(GRAM, TARGETS, np.full(90, 2.0), 0.3), SMO(tol=1e-9)).value
    )
    np.testing.assert_allclose(values(machine), theirs.predict(X), atol=1e-3)
    equal = svm.svr(GRAM, TARGETS, np.full(90, 2.0), eps)
    assert certify(equal, machine, 1e-5).ok
    assert np.mean(np.abs(TARGETS - values(machine)) > eps + 1e-6) <= 0.3


def test_one_class_equals_libsvm():
    theirs = libsvm.OneClassSVM(nu=0.25, gamma=gamma, tol=1e-7).fit(X)
    answer = solve(svm.one_class(GRAM, np.ones(90), 0.25), SMO(tol=1e-9)).value
    np.testing.assert_allclose(values(answer), theirs.decision_function(X), atol=1e-4)
    assert np.mean(values(answer) < -1e-6) <= 0.25


def test_for_a_radial_kernel_ball_and_half_space_are_the_same():
    nu = 0.25
    half = solve(svm.one_class(GRAM, np.ones(90), nu), FINE).value
    problem = svm.ball(GRAM, np.full(90, 1 / (nu * 90)))
    ball = solve(problem, FINE).value
    np.testing.assert_allclose(ball.coef * nu * 90, half.coef, atol=1e-6)


def test_svr_equals_libsvm():
    theirs = libsvm.SVR(C=3.0, epsilon=0.1, gamma=gamma, tol=1e-6).fit(X, TARGETS, WEIGHTS)
    answer = solve(svm.svr(GRAM, TARGETS, 3.0 * WEIGHTS, 0.1), SMO(tol=1e-9)).value
    np.testing.assert_allclose(values(answer), theirs.predict(X), atol=1e-3)


def test_squared_slack_is_the_objective_it_claims():
    """A gradient step of the primal, taken numerically, must not lower it."""
    C = 0.7 * WEIGHTS
    for problem, loss in (
        (svm.svc_l2(GRAM, SIGNS, C), lambda f: C @ np.maximum(0, 1 - SIGNS * f) ** 2),
        (
            svm.svr_l2(GRAM, TARGETS, C, 0.1),
            lambda f: C @ np.maximum(0, np.abs(TARGETS - f) - 0.1) ** 2,
        ),
    ):
        answer = solve(problem, FINE).value

        def primal(coef, intercept, loss=loss):
            return 0.5 * coef @ K @ coef + loss(K @ coef + intercept)

        best = primal(answer.coef, answer.intercept)
        assert certify(problem, answer).quantities.primal == pytest.approx(best, rel=1e-8)
        for _ in range(50):
            d, e = 1e-3 * rng.standard_normal(90), 1e-3 * rng.standard_normal()
            assert primal(answer.coef + d, answer.intercept + e) >= best - 1e-9


def test_no_tube_and_squared_slack_is_kernel_ridge():
    answer = solve(svm.svr_l2(GRAM, TARGETS, np.full(90, 5.0), 0.0), SMO(tol=1e-9)).value
    A = np.block([[K + 0.1 * np.eye(90), np.ones((90, 1))], [np.ones((1, 90)), np.zeros((1, 1))]])
    expected = np.linalg.solve(A, np.append(TARGETS, 0.0))
    np.testing.assert_allclose(answer.coef, expected[:90], atol=1e-5)
    assert answer.intercept == pytest.approx(expected[90], abs=1e-5)


# --- refusals and limits ---------------------------------------------------------------------


def test_infeasible_nu_says_what_is_feasible():
    signs = np.where(np.arange(90) < 9, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"nu=0.3 is infeasible.*at most 0.2"):
        svm.nu_svc(GRAM, signs, np.ones(90), 0.3)
    svm.nu_svc(GRAM, signs, np.ones(90), 0.2)
    for nu in (0.0, 1.1, np.nan):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            svm.nu_svr(GRAM, TARGETS, np.ones(90), nu)
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            svm.one_class(GRAM, np.ones(90), nu)
    with pytest.raises(ValueError, match="finite"):
        svm.nu_svr(GRAM, TARGETS, np.full(90, np.inf), 0.5)
    with pytest.raises(ValueError, match="sum to at least 1"):
        svm.ball(GRAM, np.full(90, 0.01))


def test_classes_that_meet_have_no_nu_margin():
    gram = PrecomputedGram(np.ones((2, 2)))
    with pytest.warns(ConvergenceWarning, match="no margin at this nu"):
        answer = solve(svm.nu_svc(gram, np.array([1.0, -1.0]), np.ones(2), 0.5)).value
    with pytest.raises(ValueError, match="Raise nu"):
        svm.nu_svc_margin(answer)


def test_a_weight_beyond_rounding_is_the_largest_finite_one():
    C = np.array([1e15, 1.0])
    problem = svm.svc(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), C)
    assert problem.upper[0] == 1e10 and problem.lower[1] == -1.0
    assert svm.svc_l2(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), C).gram.shift[0] == 5e-11
    C[0] = np.inf
    problem = svm.svc(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), C)
    assert problem.upper[0] == np.inf
    assert svm.svc_l2(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), C).gram.shift[0] == 0


# --- the form itself -------------------------------------------------------------------------


def test_some_variables_of_a_programme_are_a_programme():
    problem = svm.nu_svr(GRAM, TARGETS, np.ones(90), 0.5)
    b = solve(problem, FINE).value
    few = np.flatnonzero((b.coef != 0) & (np.abs(b.coef) < 1))
    part = problem.among(few, b.coef)
    np.testing.assert_allclose(part.gram.dense(), problem.gram.dense()[np.ix_(few, few)])
    assert not part.infeasible()
    sums = [b.coef[few][part.group == g].sum() for g in (0, 1)]
    np.testing.assert_allclose(part.totals, sums, atol=1e-12)


@pytest.mark.parametrize("wrap", ["shifted part", "part of shifted", "part", "nested"])
def test_layers_come_off_in_any_order(wrap):
    index, shift = np.array([5, 3, 70, 12]), np.array([0.1, 0.2, 0.3, 0.4])
    everywhere = np.zeros(90)
    everywhere[index] = shift
    gram = {
        "shifted part": lambda: ShiftedGram(PartGram(GRAM, index), shift),
        "part of shifted": lambda: PartGram(ShiftedGram(GRAM, everywhere), index),
        "part": lambda: PartGram(GRAM, index),
        "nested": lambda: PartGram(PartGram(GRAM, np.arange(90)[::-1]), 89 - index),
    }[wrap]()
    held = gram.unwrapped()
    assert held.base is GRAM and held.index.tolist() == index.tolist()
    expected = K[np.ix_(index, index)] + (np.diag(shift) if "shifted" in wrap else 0)
    np.testing.assert_allclose(gram.dense(), expected)
    v = rng.standard_normal(4)
    np.testing.assert_allclose(exact(gram) @ v, expected @ v, atol=1e-12)
    rows = np.array([2, 0])
    np.testing.assert_allclose(exact_rows(gram, rows, v), (expected @ v)[rows], atol=1e-12)
    np.testing.assert_allclose(exact_block(gram, rows), expected[np.ix_(rows, rows)], atol=1e-12)


def test_a_shift_under_repeated_points_is_no_layer():
    gram = PartGram(ShiftedGram(GRAM, 0.5), np.array([1, 1, 2]))
    assert gram.unwrapped().base is gram
    v = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(exact(gram) @ v, gram.dense() @ v, atol=1e-12)
    np.testing.assert_allclose(exact_rows(gram, np.arange(3), v), gram.dense() @ v, atol=1e-12)


@pytest.mark.parametrize("together", [1 << 20, 0])
def test_rows_of_several_products_are_those_of_each(monkeypatch, together):
    monkeypatch.setattr("mercer.gram.accurate_products._TOGETHER", together)
    index = np.array([5, 3, 70, 5, 12])  # 5 twice, as above and below a tube
    grams = [GRAM, PartGram(GRAM, index), ShiftedGram(PartGram(GRAM, index[:3]), 0.5)]
    asked = [(gram, np.array([2, 0]), rng.standard_normal(gram.shape[0])) for gram in grams]
    asked.append((GRAM, np.array([7]), np.zeros(90)))
    for found, (gram, rows, v) in zip(exact_rows_of_several(asked), asked, strict=True):
        np.testing.assert_allclose(found, (gram.dense() @ v)[rows], atol=1e-12)


def test_the_largest_term_of_a_product_is_that_of_all():
    index = np.flatnonzero(np.arange(90) % 3 != 1)
    for gram in (GRAM, PartGram(GRAM, index), ShiftedGram(PartGram(GRAM, index), 0.5)):
        n = gram.shape[0]
        problem = svm.svc(gram, np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n))
        b = rng.standard_normal(n)
        lengths = np.sqrt(
            problem.gram.unwrapped().base.diag()[index[:n] if n < 90 else slice(None)]
        )
        shift = 0.0 if problem.shift is None else np.abs(problem.shift * b).max()
        wanted = np.finfo(float).eps * (lengths.max() * (np.abs(b) @ lengths) + shift)
        np.testing.assert_allclose(problem.largest_term_rounding(b), wanted, rtol=1e-12)


def test_many_share_a_certificate():
    folds = [np.flatnonzero(np.arange(90) % 3 != k) for k in range(3)]
    problems = tuple(svm.svc(PartGram(GRAM, f), SIGNS[f], np.ones(len(f))) for f in folds)
    answer = solve(Many(problems)).value
    judged = certify(Many(problems), answer)
    alone = [certify(p, d).quantities for p, d in zip(problems, answer.parts, strict=True)]
    assert judged.ok and judged.quantities.programmes == 3
    assert judged.quantities.violation == pytest.approx(max(q.violation for q in alone))
    assert judged.quantities.gap == pytest.approx(sum(q.gap for q in alone))
    spoiled = Duals((*answer.parts[:2], Dual(np.zeros(len(folds[2])), 0.0)))
    judged = certify(Many(problems), spoiled)
    assert not judged.ok and judged.quantities.worst == 2 and "number 2" in judged.statement
    with pytest.raises(ValueError, match="3 programmes, but 1 answers"):
        certify(Many(problems), Duals(answer.parts[:1]))


def test_one_against_the_rest_is_judged_by_one_product():
    problems = tuple(
        svm.svc(GRAM, np.where(np.arange(90) % 3 == k, 1.0, -1.0), np.ones(90)) for k in range(3)
    )
    answer = solve(Many(problems)).value
    together = certify(Many(problems), answer).quantities
    alone = [certify(p, d).quantities for p, d in zip(problems, answer.parts, strict=True)]
    assert together.primal == pytest.approx(sum(q.primal for q in alone), rel=1e-12)


def test_a_programme_with_a_total_for_each_group():
    group = np.arange(90) % 2
    problem = BoxQP(
        GRAM, TARGETS, np.zeros(90), np.ones(90), np.array([3.0, 5.0]), np.full(90, 0.1), group
    )
    answer = solve(problem, SMO(tol=1e-8)).value
    assert answer.intercept.shape == (2,)
    assert answer.coef[group == 0].sum() == pytest.approx(3.0)
    assert certify(problem, answer, 1e-7).ok
