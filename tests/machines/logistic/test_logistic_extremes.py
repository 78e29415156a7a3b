"""Smooth risks where they are hard: offsets, scales, hardly a penalty, many classes, Ctrl-C."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Theirs
from threadpoolctl import threadpool_limits

import mercer
from mercer import LogisticRegression, Status
from mercer.certificates import certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Intersection, Linear, Polynomial
from mercer.machines.logistic import newton
from mercer.machines.logistic.descent import space_of
from mercer.machines.logistic.newton import MeanHessian, _by_conjugate_gradients, _exact
from mercer.problems import LogLoss, SmoothRisk, SquaredLoss
from mercer.solvers import NewtonRisk, Watch, solve

pytestmark = pytest.mark.numerics


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def data(n=300, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X @ rng.standard_normal((d, k)) + 0.7 * rng.standard_normal((n, k))
    return X, f.argmax(axis=1)


def dual_objective(machine, X, y):
    """The objective of the coefficients alone, in long double."""
    X, a = X.astype(np.longdouble), machine.dual_coef_.astype(np.longdouble)
    w = X.T @ a
    f = np.column_stack([np.zeros(len(X)), X @ w + machine.intercept_])
    f = f if f.shape[1] == 2 else f[:, 1:]
    loss = np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(X)), y]
    return float(loss.sum() + machine.penalty * (w * w).sum() / 2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("offset", "penalty"), [(0.0, 1e-12), (0.0, 1e-8), (1e4, 1.0)])
@pytest.mark.parametrize("k", [2, 3])
def test_coefficients_of_rows_are_the_function_of_the_weights(k, offset, penalty, container):
    # slopes over a small penalty, or of rows far from zero, are rounding: F'a was another function
    X, y = data(40, 2, k, seed=3)
    machine = LogisticRegression(Linear(), penalty).fit(container(X + offset), y)
    assert machine.certificate_.ok and machine.solution_.status is Status.SOLVED
    found = dual_objective(machine, X + offset, y)
    assert abs(found / machine.certificate_.quantities.objective - 1) <= 1e-6


@pytest.mark.parametrize("k", [2, 3, 5])
def test_coefficients_are_the_function_at_rows_very_far_from_zero(k):
    X, y = data(60, 2, k, seed=4)
    X = X + 1e7
    machine = LogisticRegression(Linear(), 1.0).fit(X, y)
    assert machine.certificate_.ok and machine.solution_.status is Status.SOLVED
    found = dual_objective(machine, X, y)
    assert abs(found / machine.certificate_.quantities.objective - 1) <= 1e-6


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_coefficients_agree_with_weights_of_many_features(container):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1500, 1300)) < 0.02, rng.standard_normal((1500, 1300)), 0.0)
    y = (X @ rng.standard_normal(1300) > 0).astype(int)
    machine = LogisticRegression(Linear(), 1e-2).fit(container(X), y)
    w = machine.coef_.T
    assert machine.certificate_.ok
    assert np.linalg.norm(X.T @ machine.dual_coef_ - w) <= 1e-8 * np.linalg.norm(w)


def test_both_forms_are_compared_as_functions():
    X, y = data(40, 2)
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = SmoothRisk(gram, y, 2, np.ones(40), 1.0, LogLoss(), True)
    value = solve(problem).value
    assert certify(problem, value).ok
    wrong = replace(value, coef=value.coef * (1 + 1e-4))
    assert not certify(problem, wrong).ok
    beside = np.linalg.svd(np.column_stack([X, np.ones(40)]).T)[2][-1:].T  # no function at all
    assert certify(problem, replace(value, coef=value.coef + beside)).ok


@pytest.mark.parametrize("little", [1e-6, 1e-9, 1e-12])
def test_the_bound_is_balanced_for_a_class_of_little_weight(little):
    X, y = data(60, 2, 4)
    gram = make_gram(Gaussian(1.0), X, Need.PRODUCTS)
    weights = np.where(y == 0, little, 1.0)
    problem = SmoothRisk(gram, y, 4, weights, 1.0, LogLoss(), True)
    measured = certify(problem, solve(problem).value).quantities
    assert measured.imbalance <= 1e-9
    assert measured.relative_gap <= 1e-6


@pytest.mark.parametrize("penalty", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("k", [2, 4])
def test_conjugate_gradients_continue_until_the_fit_is_certified(penalty, k):
    X, y = data(1000, 60, k)
    machine = LogisticRegression(Linear(), penalty).fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("solver", [NewtonRisk(), NewtonRisk(tol=1e-7)])
def test_columns_far_from_zero(offset, solver):
    """The bias takes the offset up: the weights are those of columns about zero."""
    A, c = data(200, 3)
    expected = LogisticRegression().fit(A, c)
    found = LogisticRegression(solver=solver).fit(A + offset, c)
    assert found.solution_.status.ok and found.certificate_.ok
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6 * max(1, offset / 1e6))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_of_any_size_with_a_penalty_to_match(scale):
    A, c = data(60, 2)
    expected = LogisticRegression(penalty=0.5).fit(A, c)
    found = LogisticRegression(penalty=0.5 * scale).fit(A, c, np.full(60, scale))
    assert found.certificate_.ok
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
    faint = LogisticRegression().fit(A, c, np.full(60, 1e-300))  # nothing pulls: f = 0
    assert faint.certificate_.ok and np.abs(faint.decision_function(A)).max() < 0.5


@pytest.mark.parametrize("penalty", [1e-8, 1e-4])
def test_squares_with_hardly_a_penalty(penalty):
    A, c = data(100, 4)
    machine = LogisticRegression(Gaussian(1.0), penalty, loss="squared").fit(A, c)
    assert machine.certificate_.ok
    targets = np.where(c == 1, 1.0, -1.0)
    assert np.abs(machine.decision_function(A) - targets).max() < 0.1


@pytest.mark.parametrize("loss", [LogLoss(), SquaredLoss()])
@pytest.mark.parametrize("bias", [True, False])
def test_steps_by_conjugate_gradients_are_those_of_newton(loss, bias):
    A, c = data(400, 12, 5, seed=1)
    sizes = np.logspace(-2, 2, 12)
    gram = make_gram(Linear(), A * sizes + 3.0, Need.PRODUCTS)
    rng = np.random.default_rng(0)
    problem = SmoothRisk(gram, c, 5, rng.uniform(0.5, 2.0, 400), 0.3, loss, bias)
    space = space_of(problem)
    u = space.element(0.1 * rng.standard_normal((12, 5)) / sizes[:, None], np.zeros(5))
    g = space.gradient(u)
    exact = _exact(space, u, g)
    step = _by_conjugate_gradients(space, u, g, Watch(), MeanHessian(space))
    gap = space.inner(space.change(step, exact), space.change(step, exact))
    assert gap < 0.05 * space.inner(exact, exact)


@pytest.mark.parametrize("widest", [2, 1200])  # without and with the mean Hessian
@pytest.mark.parametrize("shift", [0.0, 1e8])
@pytest.mark.parametrize("scale", [1.0, 1e-25])
def test_conjugate_gradients_end_where_a_factor_does(monkeypatch, scale, shift, widest):
    A, c = data(900, 14, 3, seed=3)
    A = np.round(1024 * A) / 1024  # so that a shift loses nothing
    weights = np.random.default_rng(0).integers(0, 3, 900).astype(float)
    expected = LogisticRegression(penalty=0.5).fit(A, c, weights)
    monkeypatch.setattr(newton, "_SMALL", 2)
    monkeypatch.setattr(newton, "_WIDEST", widest)
    found = LogisticRegression(penalty=0.5 * scale**2).fit(scale * (A + shift), c, weights)
    assert found.solution_.status.ok and found.certificate_.ok
    np.testing.assert_allclose(scale * found.coef_, expected.coef_, rtol=1e-5, atol=1e-7)


def test_many_classes_and_columns_of_all_scales_agree_with_scikit_learn():
    A, c = data(1500, 15, 6, seed=2)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 1500)
    ours = LogisticRegression(penalty=2.0).fit(A + 1.0, c, weights)
    theirs = Theirs(C=0.5, tol=1e-9, max_iter=10**4).fit(A + 1.0, c, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.certificate_.quantities.relative_gap < 1e-12
    stretched = np.logspace(-3, 3, 15)
    hard = LogisticRegression(penalty=1e-3).fit(A * stretched + 1.0, c)
    assert hard.solution_.status.ok and hard.certificate_.ok
    blind = LogisticRegression(penalty=2.0, bias=False).fit(A + 1.0, c)
    assert blind.certificate_.quantities.relative_gap < 1e-12


def test_separable_classes_of_many_columns_with_hardly_a_penalty():
    A, _ = data(400, 20, 4)
    c = (A @ np.random.default_rng(1).standard_normal((20, 4))).argmax(axis=1)
    machine = LogisticRegression(penalty=1e-9).fit(A, c)
    assert machine.solution_.status.ok and machine.certificate_.ok and machine.score(A, c) == 1.0


def test_gradient_and_loss_at_fifty_digits():
    rng = np.random.default_rng(0)
    f, codes = 30 * rng.standard_normal((20, 4)), rng.integers(4, size=20)
    values, slopes = LogLoss().both(f, codes)
    with mpmath.workdps(50):
        for i in range(20):
            e = [mpmath.exp(mpmath.mpf(v)) for v in f[i]]
            p = [v / sum(e) for v in e]
            truth = -mpmath.log(p[codes[i]])
            assert values[i] == pytest.approx(float(truth), rel=1e-13)
            for c in range(4):
                slope = p[c] if c != codes[i] else -sum(p[e] for e in range(4) if e != c)
                assert slopes[i, c] == pytest.approx(float(slope), rel=1e-12)


def test_logarithms_of_probabilities_are_finite():
    A, c = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    for loss in ("log", "tanh"):
        for labels in (c, np.array([0, 1, 1, 2])):
            machine = LogisticRegression(penalty=1e-8, loss=loss).fit(A, labels)
            far = machine.predict_log_proba([[1e4], [-1e4]])
            assert np.isfinite(far).all()
            near = np.exp(machine.predict_log_proba(A))
            np.testing.assert_allclose(near, machine.predict_proba(A), atol=1e-12)


def test_a_stream_goes_on_from_a_fit_with_coefficients_of_rows():
    A, c = data(15, 5)
    machine = LogisticRegression(Polynomial(2)).fit(A, c)  # fewer rows than features
    before = machine.decision_function(A)
    machine.partial_fit(A[:1], c[:1])
    assert np.abs(machine.decision_function(A) - before).max() < 0.5


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_stream_refuses_rows_that_overflow(convert):
    A, c = data(30, 2)
    machine = LogisticRegression().partial_fit(convert(A), c, classes=[0, 1])
    before = machine.coef_.copy()
    A[3, 0] = 1e200
    with pytest.raises(ValueError, match=r"overflows on 1 row\(s\) of X \(3\)"):
        machine.partial_fit(convert(A), c)
    np.testing.assert_array_equal(machine.coef_, before)


def test_a_search_cut_short_says_so():
    A, c = data(80, 2, 3)
    seen = []
    machine = LogisticRegression(loss="tanh")
    machine.set_params(callback=lambda p: seen.append(p) or len(seen) > 25)
    with pytest.warns(ConvergenceWarning, match="callback"):
        machine.fit(A, c)
    assert machine.solution_.status is Status.STOPPED
    assert "not convex" in machine.solution_.detail
    with pytest.warns(ConvergenceWarning, match="time limit"):
        LogisticRegression(loss="tanh", time_limit=1e-9).fit(A, c)


@pytest.mark.filterwarnings("ignore:.*stopped making progress:UserWarning")
def test_a_matrix_that_is_nearly_singular_is_solved_or_says_no():
    A = np.repeat(data(20, 2)[0], 3, axis=0)
    c = np.arange(60) % 2
    gram = make_gram(Gaussian(1.0), A, Need.PRODUCTS)
    for loss in (LogLoss(), SquaredLoss()):
        for penalty in (1e-10, 1e-4, 1.0):
            problem = SmoothRisk(gram, c, 2, np.ones(60), penalty, loss, True)
            found = solve(problem)
            assert certify(problem, found.value).ok or not found.status.ok


# --- Ctrl-C --------------------------------------------------------------------------------------

SOURCE = str(Path(mercer.__file__).parents[1])
INTERRUPT = """
import signal, time, warnings
import numpy as np
from mercer import LogisticRegression, Perceptron
from mercer.kernels import Gaussian
from mercer.solvers import AnnealedGradient
warnings.simplefilter("ignore")
signal.signal(signal.SIGPROF, signal.default_int_handler)  # sent by a timer of processor time
rng = np.random.default_rng(0)
X = rng.standard_normal(({n}, {d}))
y = rng.integers({k}, size=len(X))
y[:200] = X[:200, :{k}].argmax(axis=1)  # so that the first fit is soon over
machine = {machine}
machine.fit(X[:200], y[:200])
kept, first = {{name: id(value) for name, value in vars(machine).items()}}, machine.predict(X[:50])
late = []
for wait in (0.05, 0.2, 0.4):
    due = time.process_time() + wait
    try:
        signal.setitimer(signal.ITIMER_PROF, wait)
        machine.fit(X, y)
        signal.setitimer(signal.ITIMER_PROF, 0)
        machine = {machine}.fit(X[:200], y[:200])
        kept = {{name: id(value) for name, value in vars(machine).items()}}
    except KeyboardInterrupt:
        late.append(time.process_time() - due)
        assert {{name: id(value) for name, value in vars(machine).items()}} == kept
        assert np.array_equal(machine.predict(X[:50]), first)
print(len(late), max(late, default=0.0))
"""
SCENES = {
    "newton, features": ("LogisticRegression(penalty=1e-6)", 60_000, 40, 6),
    "newton, rows": ("LogisticRegression(Gaussian(1.0), 1e-3)", 2500, 5, 3),
    "annealed": ("LogisticRegression(solver=AnnealedGradient(epochs=9999))", 20_000, 5, 3),
    "perceptron": ("Perceptron(max_epochs=10**6)", 20_000, 20, 3),
    "kernel perceptron": ("Perceptron(Gaussian(1.0), max_epochs=10**6)", 1500, 5, 2),
}


@pytest.mark.sampled(6)
@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX does")
@pytest.mark.parametrize("scene", SCENES)
def test_ctrl_c_leaves_the_machine_as_it_was(scene):
    machine, n, d, k = SCENES[scene]
    code = INTERRUPT.format(machine=machine, n=n, d=d, k=k)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    heard, latest = done.stdout.split()
    assert int(heard) >= 1
    assert float(latest) < 3.0


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("memory", ["200 kB", "400 kB", "900 kB"])
def test_what_float32_found_under_a_budget_goes_on_in_float64(memory, loss):
    X, y = data(180, 6)
    machine = LogisticRegression(Intersection(), loss=loss)
    with mercer.config(memory=memory):
        machine.fit(sparse.coo_array(np.abs(X)), y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
