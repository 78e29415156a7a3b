"""Support vector machines where bounds overflow, margins vanish, or options exclude each other."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer.compat.sklearn as compat
from mercer import SVC, SVR, EnclosingBall, OneClassSVM, SolverError, Status
from mercer.certificates import certify
from mercer.gram import PrecomputedGram
from mercer.kernels import (
    AllSubsets,
    Cosine,
    FromCallable,
    Gaussian,
    Linear,
    Matern,
    Precomputed,
    RationalQuadratic,
    exp,
)
from mercer.machines.base.certificate import certify_gap
from mercer.machines.svm import problem as svm
from mercer.problems import Dual, Duals, Many
from mercer.solvers import SMO, solve

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((20, 2))
y = (X[:, 0] > 0) * 1


def quietly(machine, *given, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(*given, **weights)


# --- bounds ------------------------------------------------------------------------------------


def test_a_gap_that_overflows_is_no_bound():
    machine = quietly(
        SVC(Precomputed(), C=1e156, slack="l2", criterion="gap"), -np.ones((20, 20)), y
    )
    assert not machine.certificate_.ok
    machine = quietly(SVC(Linear(), C=1e160, slack="l2"), X * 1e-155, y)
    assert machine.certificate_.quantities.relative_gap > 0


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("C", [1e9, 1e11, 1e14, np.inf])
def test_a_high_price_does_not_blow_up_the_bound(C, slack):
    Z, t = np.random.default_rng(426305).standard_normal((11, 17)), np.arange(11) % 2
    machine = SVC(Linear(), C=C, slack=slack).fit(Z, t)
    found = machine.certificate_.quantities
    assert found.rescaled_gap < 0.01
    hard = quietly(SVC(Linear(), C=np.inf, tol=1e-9), Z, t).certificate_.quantities
    assert found.dual * (1 - 1e-6) <= hard.dual <= found.primal * (1 + 1e-6)


def test_a_bound_above_the_tolerance_is_still_one():
    signs, gram = np.where(y == 1, 1.0, -1.0), PrecomputedGram(Gaussian(1.0)(X, X))
    problem = svm.svc(gram, signs, np.full(20, 1e10))
    best = solve(problem, SMO(tol=1e-9)).value
    worse = Dual(0.98 * best.coef, best.intercept)
    found = certify(problem, worse).quantities
    truth = certify(problem, best).quantities
    assert found.primal >= truth.dual * (1 - 1e-9)
    assert found.relative_gap < 1


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("C", [1e3, 1e5, 1e8])
def test_the_primal_objective_is_that_of_the_stored_model(C, slack):
    draw, kernel = np.random.default_rng(5), Gaussian(0.7)
    Z = draw.standard_normal((40, 3))
    t = np.where(draw.random(40) < 0.5, 1, -1)
    machine = quietly(SVC(kernel, C=C, slack=slack), Z, t)
    b = np.zeros(40)
    b[machine.support_] = machine.dual_coef_
    missing = np.maximum(0, 1 - t * machine.decision_function(Z))
    primal = 0.5 * b @ kernel(Z) @ b + C * (missing ** {"l1": 1, "l2": 2}[slack]).sum()
    found = machine.certificate_
    assert found.quantities.primal == pytest.approx(primal, rel=1e-6)
    true = (primal - found.quantities.dual) / primal
    assert found.quantities.relative_gap == pytest.approx(true, rel=1e-3, abs=1e-9)
    if found.quantities.rescaled_gap < 0.5 * found.quantities.relative_gap:
        assert "multiplied by a constant that brings its margin to 1" in found.statement


def test_the_rescaled_gap_is_that_of_the_rescaled_model():
    draw, kernel, C = np.random.default_rng(5), Gaussian(0.7), 1e5
    Z = draw.standard_normal((40, 3))
    t = np.where(draw.random(40) < 0.5, 1, -1)
    machine = SVC(kernel, C=C).fit(Z, t)
    found, f = machine.certificate_.quantities, machine.decision_function(Z)
    b = np.zeros(40)
    b[machine.support_] = machine.dual_coef_
    squared = b @ kernel(Z) @ b
    constants = np.linspace(1, 1.01, 20001)  # C times their step is far below the gap
    primal = min(0.5 * a**2 * squared + C * np.maximum(0, 1 - a * t * f).sum() for a in constants)
    assert (primal - found.dual) / primal <= found.rescaled_gap * 1.02
    assert found.rescaled_gap < 1e-3 < found.relative_gap


@pytest.mark.parametrize("family", [False, True])
def test_a_gap_that_bounds_nothing_is_said_to(family):
    targets, gram, C = np.where(y == 1, 1.0, -1.0), PrecomputedGram(np.eye(20)), np.full(20, 1e9)
    problem = svm.svr(gram, targets, C, eps=0.1)
    best = solve(problem, SMO(tol=1e-12)).value
    off = Dual((1 - 4e-4) * best.coef, best.intercept)
    asked, answer = (Many((problem, problem)), Duals((best, off))) if family else (problem, off)
    found = certify(asked, answer)
    assert found.ok  # the conditions hold to the tolerance, while slack of that size is dear
    assert found.quantities.relative_gap > 0.999
    assert "nothing is shown about" in found.statement
    assert "%" not in found.statement
    assert "nothing is shown" not in certify(problem, best).statement
    # what is shown: it is the optimum for targets moved by no more than the violation
    slope = targets - off.coef - best.intercept
    near = targets - (slope - 0.1 * np.sign(off.coef))
    assert np.abs(near - targets).max() <= found.quantities.violation
    exact = solve(svm.svr(gram, near, C, eps=0.1), SMO(tol=1e-12)).value
    np.testing.assert_allclose(exact.coef, off.coef, rtol=1e-9)


@pytest.mark.parametrize("tol", [0.4, 7.0])
def test_no_tolerance_makes_a_gap_of_all_a_bound(tol):
    machine = quietly(SVR(Gaussian(1.0), 1e9, 1e-4, criterion="gap", tol=tol), X, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.relative_gap <= 0.5
    problem = svm.svr(PrecomputedGram(np.eye(20)), X[:, 0], np.full(20, 1e9), eps=0.1)
    assert not certify_gap(problem, Dual(np.zeros(20), 0.0), tol).ok


def test_a_hard_tube_has_a_gap():
    Z, t = rng.standard_normal((28, 6)), rng.standard_normal(28)
    machine = SVR(Gaussian(1.0), C=np.inf, epsilon=0.5, criterion="gap").fit(Z, t)
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.relative_gap <= 1e-3


def test_gaps_are_relative_to_the_objective_that_is_reached():
    Z = np.random.default_rng(123493).standard_normal((16, 1))
    machine = SVR(Gaussian(0.172), C=1e6, nu=0.5, criterion="gap").fit(Z, np.sin(3 * Z[:, 0]))
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok


# --- pair steps --------------------------------------------------------------------------------


def test_steps_that_end_at_a_bound_by_chance_are_not_remembered():
    """Points far from all others reach C = 1 by the step that nothing bounds."""
    draw = np.random.default_rng(117666)
    points = 1e8 + (np.linspace(-1, 1, 30) * 10.0 ** draw.uniform(-3, 3, 30))[:, None]
    K, signs = Gaussian(1.0)(points, points), np.where(np.arange(30) % 2, 1.0, -1.0)
    for _ in range(60):
        order = np.lexsort((draw.random(30), signs))
        gram = PrecomputedGram(K[np.ix_(order, order)])
        problem = svm.svc(gram, signs[order], np.ones(30))
        assert certify(problem, solve(problem, SMO()).value).ok


# --- kernels that are positive semidefinite on differences only --------------------------------


def test_a_ball_needs_differences_only():
    Z = rng.standard_normal((49, 1))
    low = FromCallable(lambda A, B: np.cos(A[:, :1] - B[:, 0]) - 0.5, psd=False)
    high = FromCallable(lambda A, B: np.cos(A[:, :1] - B[:, 0]), psd=True)
    shifted, plain = (EnclosingBall(k, nu=0.1, tol=1e-8).fit(Z) for k in (low, high))
    assert shifted.solution_.status is Status.SOLVED
    assert shifted.certificate_.ok
    assert np.isnan(shifted.center_norm_)
    assert shifted.radius_ == pytest.approx(plain.radius_, rel=1e-6)
    np.testing.assert_allclose(shifted.decision_function(Z), plain.decision_function(Z), atol=1e-6)


# --- margins that are none ---------------------------------------------------------------------


def test_rounding_is_no_margin():
    Z = 1e-8 * np.linspace(-1, 1, 113)[:, None] ** np.arange(1, 5)
    t = (Z[:, 0] > 0) * 1
    for machine in (
        SVC(RationalQuadratic(2.56, 42.6), nu=0.1, criterion="gap", time_limit=1e-9),
        SVC(RationalQuadratic(2.56, 42.6), nu=0.1),
    ):
        try:
            assert not quietly(machine, Z, t).certificate_.ok
        except ValueError as error:
            assert "no margin" in str(error)


def test_a_thin_margin_is_certified_or_said_to_be_inaccurate():
    draw = np.random.default_rng(836376)
    Z, t = draw.integers(0, 4, (30, 11)).astype(float), draw.integers(0, 6, 30)
    Z[0] = 1e6
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        machine = SVC(nu=0.5).fit(Z, t)
        told = any(issubclass(w.category, ConvergenceWarning) for w in said)
    assert machine.certificate_.ok or told


@pytest.mark.parametrize("C", [1.0, 1e3, 1e200])
@pytest.mark.parametrize("scale", [1e8, 1e100, 1e150])
def test_targets_beyond_the_tolerance_are_said_at_once(scale, C):
    machine = quietly(SVR(Gaussian(1.0), C=C, tol=1e-10), X, scale * (1 + X[:, 0]))
    before = machine.solution_.status  # reading the certificate may change it
    assert before is not Status.SOLVED or machine.certificate_.ok


# --- numbers at the end of float64 -------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [compat.SVC, compat.NuSVC, compat.SVR, compat.NuSVR, compat.OneClassSVM]
)
@pytest.mark.parametrize("scale", [1e155, 1e200, 1e300])
def test_sparse_rows_of_any_size_end_in_words(kind, scale):
    rows = csr_array(np.where(np.abs(X) > 0.5, X, 0.0) * scale)
    given = (rows,) if kind is compat.OneClassSVM else (rows, y)
    for kernel in ("rbf", "linear"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                kind(kernel=kernel).fit(*given)
            except (ValueError, SolverError) as error:
                assert len(str(error)) > 20


@pytest.mark.parametrize(
    "machine", [SVC(C=1e308), SVC(C=1e308, slack="l2"), SVR(C=1e308), SVR(C=1e308, tube="l2")]
)
def test_the_largest_price_raises_no_alarm(machine):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(clone(machine).fit(X, y).predict(X)).all()


def test_the_smallest_price_has_probabilities():
    found = SVC(probability=True, C=5e-324).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [SVC(nu=0.3, slack="l2"), SVR(nu=0.3, tube="l2")])
def test_squared_slack_beside_nu_is_refused_by_name(machine):
    with pytest.raises(ValueError, match=r"(slack|tube)='l2' must be 'l1' beside nu=0.3"):
        machine.fit(X, y)


@pytest.mark.parametrize(
    ("machine", "name"), [(SVC(nu=0.3, C=10.0), "C"), (SVR(nu=0.3, epsilon=0.2), "epsilon")]
)
def test_what_nu_stands_for_is_said_to_have_no_effect(machine, name):
    with pytest.warns(UserWarning, match=f"{name}=.* has no effect beside nu=0.3"):
        found = machine.fit(X, y).predict(X)
    usual = clone(machine).set_params(**{name: {"C": 1.0, "epsilon": 0.1}[name]})
    np.testing.assert_array_equal(usual.fit(X, y).predict(X), found)


def test_weights_of_twelve_powers_of_ten_are_solved_or_said_not_to_be():
    Z = rng.standard_normal((108, 1))
    w = 10.0 ** rng.uniform(-6, 6, 108)
    for machine in (OneClassSVM(Gaussian(1.0)), SVR(Gaussian(1.0), nu=0.5)):
        given = (Z,) if isinstance(machine, OneClassSVM) else (Z, np.sin(Z[:, 0]))
        fitted = quietly(machine, *given, sample_weight=w)
        assert fitted.certificate_.ok or fitted.solution_.status is not Status.SOLVED


@pytest.mark.parametrize("machine", [EnclosingBall, OneClassSVM, SVC, SVR])
def test_new_rows_on_which_the_kernel_overflows_are_answered_or_refused_in_words(machine):
    fitted = quietly(machine(exp(12.7 * AllSubsets())), X[:12] / 2, y[:12])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            assert np.isfinite(fitted.predict(9 * X[:4] + 1)).all()
        except ValueError as error:
            assert "overflows on" in str(error)


@pytest.mark.parametrize("machine", [OneClassSVM, EnclosingBall])
def test_a_gap_below_rounding_is_judged_before_the_fit_ends(machine):
    Z = np.linspace(-1, 1, 105)[:, None]  # as many of one sign as of the other: the mean is zero
    fitted = quietly(machine(Cosine(), 0.5, criterion="gap"), Z)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is taken back when the verdict is read
        ok = fitted.certificate_.ok
    assert ok is (fitted.solution_.status is Status.SOLVED)


def test_a_nu_below_the_smallest_number_is_refused_in_words():
    """Its share of the rows rounds to zero, and tolerances were divided by it."""
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    with (
        pytest.warns(ConvergenceWarning, match="no margin at this nu"),
        pytest.raises(ValueError, match="no margin at this nu"),
    ):
        SVC(nu=5e-324).fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("nu", [None, 0.5])
@pytest.mark.parametrize("size", [1.0, 1e-8, 1e-100])
def test_a_gap_that_is_asked_for_is_judged_within_the_fit(nu, size):
    """K is the identity; a gap of programmes in which nothing is at a bound is hard to reach."""
    rng = np.random.default_rng(164208)
    X, y = rng.standard_normal((36, 1)) * 1e300, size * rng.standard_normal(36)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SVR(nu=nu, criterion="gap", kernel=Matern(0.5, 0.112)).fit(X, y)
    assert machine.certificate_.ok == (machine.solution_.status is Status.SOLVED)
