"""Gradient steps as taught: by hand, too short, good, exploding; and no penalty at all."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from mercer import LogisticRegression, ParameterError, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.problems import Coefficients, LogLoss, SmoothRisk, SquaredLoss, TanhLoss
from mercer.selection import Tuned
from mercer.solvers import (
    GradientDescent,
    NewtonRisk,
    SolverError,
    Status,
    StochasticGradient,
    UnpenalizedNewton,
    solve,
)

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3)) * [1.0, 0.5, 2.0] + [0.0, 1.0, 0.5]
y = np.where(X @ [1.0, -1.0, 0.5] + rng.standard_normal(60) > 0, 1, -1)


def quietly(machine, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(*data)


def test_steps_are_those_of_the_text():
    # C = 1/2N sum (Y - w'X + alpha)^2; w - eta dC/dw, alpha - eta dC/dalpha (7.2 to 7.7)
    w, alpha, eta = np.zeros(3), 0.0, 0.1
    for _ in range(7):
        left = y - X @ w + alpha
        w, alpha = w + eta * X.T @ left / 60, alpha - eta * left.mean()
    solver = GradientDescent(step=eta, max_iter=7)
    machine = quietly(LogisticRegression(penalty=0, loss="squared", solver=solver), X, y)
    assert_allclose(machine.coef_[0], w, rtol=1e-12)
    assert_allclose(machine.intercept_, -alpha, rtol=1e-12)
    cost = 0.5 * np.mean((y - X @ w + alpha) ** 2)
    assert_allclose(machine.solution_.trace[-1].measure, cost, rtol=1e-12)
    assert len(machine.solution_.trace) == 8


def test_stochastic_steps_are_those_of_the_text():
    # w + eta (Y_n - w'X_n + alpha) X_n, alpha - eta (Y_n - w'X_n + alpha) (7.8, 7.9)
    rows = np.random.default_rng(3).random(60)
    heights = np.arange(1.0, 61.0)
    w, alpha = np.zeros(3), 0.0
    for t, n in enumerate(np.searchsorted(heights, rows * 60, side="right")):
        left, eta = y[n] - w @ X[n] + alpha, 0.05 / (1 + 2.0 * t / 60)
        w, alpha = w + eta * left * X[n], alpha - eta * left
    solver = StochasticGradient(step=0.05, decay=2.0, epochs=1, random_state=3)
    machine = quietly(LogisticRegression(penalty=0, loss="squared", solver=solver), X, y)
    assert_allclose(machine.coef_[0], w, rtol=1e-11)
    assert_allclose(machine.intercept_, -alpha, rtol=1e-11)


@pytest.mark.parametrize("loss", ["log", "squared", "tanh"])
def test_steps_with_a_penalty_and_weights(loss):
    s = rng.integers(1, 4, 60).astype(float)
    solver = GradientDescent(step=0.2, max_iter=5)
    machine = quietly(LogisticRegression(penalty=3.0, loss=loss, solver=solver), X, y, s)
    w, b = np.zeros(3), 0.0
    slope = {
        "log": lambda f: -y / (1 + np.exp(y * f)),
        "squared": lambda f: f - y,
        "tanh": lambda f: -y / np.cosh(f) ** 2,
    }[loss]
    for _ in range(5):
        pull = s * slope(X @ w + b)
        w, b = w - 0.2 * (X.T @ pull + 3.0 * w) / s.sum(), b - 0.2 * pull.sum() / s.sum()
    assert_allclose(machine.coef_[0], w, rtol=1e-10)
    assert_allclose(machine.intercept_[0], b, rtol=1e-10)
    assert_allclose(machine.coef_[0], X.T @ machine.dual_coef_[:, 0], atol=1e-12)


def test_too_short_good_and_exploding_steps():
    A = np.column_stack([X, np.ones(60)])
    curvature = np.linalg.eigvalsh(A.T @ A / 60)[-1]
    best = LogisticRegression(penalty=0, loss="squared").fit(X, y)
    ends = {}
    for name, step in (("short", 1e-4), ("good", 1.0 / curvature), ("long", 2.1 / curvature)):
        solver = GradientDescent(step=step, max_iter=3000)
        ends[name] = quietly(LogisticRegression(penalty=0, loss="squared", solver=solver), X, y)
    assert ends["short"].solution_.status is Status.ITERATION_LIMIT
    assert not ends["short"].certificate_.ok
    assert ends["good"].solution_.status is Status.SOLVED
    assert ends["good"].certificate_.ok
    assert_allclose(ends["good"].coef_, best.coef_, atol=1e-5)
    long = ends["long"]
    assert long.solution_.status is Status.DIVERGED
    assert not long.certificate_.ok
    assert np.isfinite(long.decision_function(X)).all()
    measures = [progress.measure for progress in long.solution_.trace]
    assert measures[-1] > 1e8 * measures[0]
    with pytest.warns(ConvergenceWarning, match=f"explode.*{2 / curvature:.2g} explodes"):
        LogisticRegression(penalty=0, loss="squared", solver=GradientDescent(step=1e300)).fit(X, y)
    wild = quietly(LogisticRegression(solver=StochasticGradient(step=1e200)), X, y)
    assert np.isfinite(wild.predict_proba(X)).all()
    assert wild.solution_.status is not Status.SOLVED


def test_kernels_without_features_and_starts():
    newton = LogisticRegression(Gaussian(1.5), penalty=2.0).fit(X, y)
    solver = GradientDescent(step=4.0, max_iter=3000)
    plain = LogisticRegression(Gaussian(1.5), penalty=2.0, solver=solver).fit(X, y)
    assert plain.solution_.status is Status.SOLVED
    assert_allclose(plain.decision_function(X), newton.decision_function(X), atol=1e-5)
    assert plain.certificate_.ok
    with pytest.raises(SolverError, match="explicit finite feature map"):
        LogisticRegression(Gaussian(1.5), solver=StochasticGradient()).fit(X, y)
    for solver in (GradientDescent(step=0.0), StochasticGradient(decay=-1.0)):
        with pytest.raises(SolverError, match="must be positive"):
            LogisticRegression(solver=solver).fit(X, y)
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = SmoothRisk(gram, (y > 0).astype(int), 2, np.ones(60), 1.0, LogLoss(), True)
    best = solve(problem).value
    again = solve(problem, GradientDescent(step=0.1, tol=1e-5), start=best)
    assert again.iterations == 0
    assert_allclose(again.value.weights, best.weights, rtol=1e-9)


def test_time_callback_and_interrupts_are_heard():
    machine = LogisticRegression(solver=GradientDescent(step=1e-6, max_iter=10**9), time_limit=0.2)
    assert quietly(machine, X, y).solution_.status is Status.TIME_LIMIT
    heard = []
    machine = LogisticRegression(
        solver=StochasticGradient(step=1e-6, epochs=10**9),
        callback=lambda progress: len(heard) >= 3 or heard.append(progress),
    )
    assert quietly(machine, X, y).solution_.status is Status.STOPPED


# --- no penalty ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_least_squares_without_a_penalty(bias):
    machine = LogisticRegression(penalty=0, loss="squared", bias=bias).fit(X, y)
    A = np.column_stack([X, np.ones(60)]) if bias else X
    expected = np.linalg.lstsq(A, y.astype(float), rcond=None)[0]
    assert_allclose(machine.coef_[0], expected[:3], rtol=1e-9)
    assert_allclose(machine.intercept_[0], expected[3] if bias else 0.0, rtol=1e-9)
    assert machine.certificate_.ok
    three = np.digitize(X[:, 0], [-0.3, 0.5])
    many = LogisticRegression(penalty=0, loss="squared", bias=bias).fit(X, three)
    targets = np.where(three[:, None] == np.arange(3), 1.0, -1.0)
    assert_allclose(many.coef_.T, np.linalg.lstsq(A, targets, rcond=None)[0][:3], atol=1e-9)
    assert many.certificate_.ok


def test_logistic_without_a_penalty():
    machine = LogisticRegression(penalty=0).fit(X, y)
    A = np.column_stack([X, np.ones(60)])
    found = optimize.minimize(
        lambda w: np.logaddexp(0, -y * (A @ w)).sum(), np.zeros(4), method="BFGS", tol=1e-10
    )
    assert_allclose(np.append(machine.coef_[0], machine.intercept_), found.x, atol=1e-4)
    assert machine.certificate_.ok
    assert machine.solution_.solver == "UnpenalizedNewton"
    small = LogisticRegression(penalty=1e-7).fit(X, y)
    assert_allclose(machine.coef_, small.coef_, atol=1e-5)
    curved = LogisticRegression(Polynomial(2), penalty=0, bias=False).fit(X, y)
    assert curved.certificate_.ok
    solver = GradientDescent(step=0.5, max_iter=20_000)
    plain = LogisticRegression(penalty=0, solver=solver).fit(X, y)
    assert plain.certificate_.ok
    s = rng.integers(1, 3, 60)
    weighted = LogisticRegression(penalty=0).fit(X, y, sample_weight=s)
    repeated = LogisticRegression(penalty=0).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_values_of_the_risk_do_not_stop_newton(scale):
    """A fit in six ended at its iteration limit: rounding of the risk hid what steps gained."""
    for seed in range(60):
        drawn = np.random.default_rng(seed)
        Z = scale * drawn.standard_normal((60, 3)) + scale
        signs = np.where(Z[:, 0] / scale - 1 + 0.7 * drawn.standard_normal(60) > 0, 1, -1)
        machine = LogisticRegression(penalty=0).fit(Z, signs)
        assert machine.solution_.status is Status.SOLVED
        assert machine.solution_.iterations <= 15
        assert machine.certificate_.ok
        A = np.column_stack([Z, np.ones(60)])
        f = A @ np.append(machine.coef_[0], machine.intercept_)
        slopes = -signs / (1 + np.exp(signs * f))
        assert (np.abs(A.T @ slopes) <= 1e-11 * (np.abs(A).T @ np.abs(slopes))).all()


def test_the_certificate_of_no_penalty_refutes():
    codes = (y > 0).astype(int)
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    for loss in (LogLoss(), SquaredLoss()):
        problem = SmoothRisk(gram, codes, 2, np.ones(60), 0.0, loss, True)
        value = solve(problem, UnpenalizedNewton()).value
        assert certify(problem, value).ok
        off = Coefficients(value.coef * 1.01, value.intercept, value.weights * 1.01)
        judged = certify(problem, off)
        assert not judged.ok
        true = problem.risk(X @ off.weights + off.intercept) - problem.risk(
            X @ value.weights + value.intercept
        )
        assert judged.quantities.relative_gap * judged.quantities.objective >= true * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_tanh_has_a_minimum_where_it_is_below_the_limits_of_growing_weights(seed):
    random = np.random.default_rng(seed)
    rows = random.standard_normal(8) * 10 ** random.uniform(-1, 1, 8)
    labels = np.where(random.random(8) < 0.5, 1, -1)
    labels[:2] = [1, -1]
    w = np.geomspace(1e-4, 1e4, 20_001) * np.array([[1], [-1]])
    loss = (1 - labels[:, None, None] * np.tanh(rows[:, None, None] * w)).sum(axis=0)
    limit = min(2 * (labels * rows * side < 0).sum() for side in (1, -1))
    machine = LogisticRegression(loss="tanh", penalty=0, bias=False)
    if loss.min() >= limit:
        with pytest.raises((ValueError, SolverError), match=r"there is no minimum|no minimum was"):
            machine.fit(rows[:, None], labels)
        return
    machine.fit(rows[:, None], labels)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    assert_allclose(machine.coef_[0, 0], w.ravel()[loss.argmin()], rtol=2e-3)
    off = replace(machine.solution_.value, weights=1.01 * machine.coef_.T)
    gram = make_gram(Linear(), rows[:, None], Need.PRODUCTS)
    codes = (labels == 1).astype(int)
    problem = SmoothRisk(gram, codes, 2, np.ones(8), 0.0, TanhLoss(), False)
    assert not certify(problem, off).ok


def test_tanh_without_a_penalty_by_hand():
    X, y = np.kron(np.eye(3), [[1.0], [0.1]]), np.tile([1, -1], 3)
    one = optimize.brentq(lambda w: 0.1 / np.cosh(0.1 * w) ** 2 - 1 / np.cosh(w) ** 2, 1, 3)
    machine = LogisticRegression(loss="tanh", penalty=0, bias=False).fit(X, y)
    assert_allclose(machine.coef_[0], one, rtol=1e-9)
    assert machine.certificate_.ok


def test_what_has_no_minimum_is_refused():
    with pytest.raises(ValueError, match="all rows of a class on its side"):
        LogisticRegression(penalty=0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="all rows of a class on its side"):  # touching at 1
        LogisticRegression(penalty=0).fit([[0.0], [1.0], [1.0], [3.0]], [0, 0, 1, 1])
    LogisticRegression(penalty=0).fit([[0.0], [2.0], [1.0], [3.0]], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="have rank 4"):
        LogisticRegression(penalty=0, loss="squared").fit(np.column_stack([X, X[:, 0]]), y)
    with pytest.raises(ValueError, match="two classes"):
        LogisticRegression(penalty=0).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="fewer features than rows"):
        LogisticRegression(Gaussian(1.0), penalty=0).fit(X, y)
    with pytest.raises(ValueError, match="all rows of a class on its side"):
        LogisticRegression(penalty=0, loss="tanh").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 2])
    with pytest.raises(SolverError, match="no minimum was found: the loss falls on and on"):
        LogisticRegression(penalty=0, loss="tanh", bias=False).fit([[1.0]] * 3, [1, 1, -1])
    with pytest.raises(ParameterError, match="or one of UnpenalizedNewton with penalty=0"):
        LogisticRegression(penalty=0, loss="tanh", solver=GradientDescent()).fit(X, y)
    with pytest.raises(ParameterError, match="be None or one of GradientDescent"):
        LogisticRegression(penalty=0, solver=NewtonRisk()).fit(X, y)
    with pytest.raises(ParameterError, match="penalty=-1"):
        LogisticRegression(penalty=-1).fit(X, y)


def test_no_penalty_among_others_in_a_grid():
    search = Tuned(LogisticRegression(), {"penalty": [0.0, 1.0]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("solver", "named"),
    [
        (GradientDescent(step="a"), "step='a'"),
        (GradientDescent(tol=-1.0), "tol=-1.0"),
        (GradientDescent(max_iter=1.5), "max_iter=1.5"),
        (StochasticGradient(decay=np.nan), "decay=nan"),
        (StochasticGradient(epochs=1.5), "epochs=1.5"),
    ],
)
def test_settings_that_mean_nothing_are_refused_by_name(solver, named):
    with pytest.raises(SolverError, match=named):
        LogisticRegression(solver=solver).fit([[0.0], [1.0], [2.0], [0.5]], [0, 1, 0, 1])


def test_seeds_that_are_none_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 2))
    y = np.where(X[:, 0] > 0, 1, 0)
    with pytest.raises(SolverError, match="random_state='a' must be a whole number"):
        LogisticRegression(solver=StochasticGradient(random_state="a")).fit(X, y)
