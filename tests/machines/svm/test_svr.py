"""Support vector regression: closed forms, against LIBSVM, ridge and a general solver."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn import svm as sk
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from threadpoolctl import threadpool_limits

from mercer import SVR, KernelRidge, Status, certify
from mercer.gram import PrecomputedGram
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from mercer.machines.svm import problem as svm
from mercer.problems import Dual


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(60)
XN = rng.standard_normal((25, 4))


def close(found, wanted, tol):
    wanted = np.asarray(wanted)
    atol = tol * max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tol, atol=atol)


def dense_coef(machine, n):
    coef = np.zeros(n)
    coef[machine.support_] = machine.dual_coef_
    return coef


# --- closed forms ------------------------------------------------------------------------------


def test_two_points():
    """The flattest line within the tube of (0, 0) and (1, 3): slope 3 - 2 epsilon."""
    machine = SVR(Linear(), C=np.inf, epsilon=0.5, tol=1e-9).fit([[0.0], [1.0]], [0.0, 3.0])
    close(machine.coef_, [2.0], 1e-8)
    assert machine.intercept_ == pytest.approx(0.5)


def test_a_tube_wider_than_the_targets_needs_nobody():
    machine = SVR(Gaussian(1.0), epsilon=10.0).fit(X, y)
    assert len(machine.support_) == 0
    assert machine.support_vectors_.shape == (0, 4)
    middle = machine.predict(XN)
    assert np.ptp(middle) == 0
    assert (np.abs(y - middle[0]) <= 10.0).all()
    assert machine.certificate_.ok


def test_tiny_cost_gives_a_constant():
    machine = SVR(Gaussian(1.0), C=1e-12).fit(X, y)
    assert np.ptp(machine.predict(XN)) < 1e-9
    assert abs(machine.intercept_ - np.median(y)) < 0.2


def test_no_tube_and_squared_slack_is_ridge():
    """sum C e^2 + |w|^2/2: the penalty of ridge regression is 1 / (2 C)."""
    for kernel in (Gaussian(1.0), Linear()):
        ours = SVR(kernel, C=2.0, epsilon=0.0, tube="l2", tol=1e-8).fit(X, y)
        ridge = KernelRidge(kernel=kernel, penalty=1 / 4).fit(X, y)
        close(ours.predict(XN), ridge.predict(XN), 1e-6)


# --- against other solvers ---------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_against_libsvm(kernel, epsilon, C):
    K, weights = kernel(X), np.arange(60) % 3 + 0.5
    theirs = sk.SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-7)
    theirs.fit(K, y, sample_weight=weights)
    ours = SVR(kernel, C=C, epsilon=epsilon, tol=1e-7).fit(X, y, sample_weight=weights)
    problem = svm.svr(PrecomputedGram(K), y, C * weights, epsilon)
    coef = np.zeros(60)
    coef[theirs.support_] = theirs.dual_coef_[0]
    rival = certify(problem, Dual(coef, float(theirs.intercept_[0])))
    mine = certify(problem, Dual(dense_coef(ours, 60), ours.intercept_), 1e-5)
    assert mine.ok
    assert mine.quantities.dual >= rival.quantities.dual - 1e-6 * abs(rival.quantities.dual)
    close(ours.predict(XN), theirs.predict(kernel(XN, X)), 1e-3)


def test_squared_slack_against_a_general_solver():
    kernel, C, epsilon, m = Gaussian(1.0), 3.0, 0.2, 25
    K, targets = kernel(X[:m]), y[:m]

    def objective(v):
        f = K @ v[:-1] + v[-1]
        beyond = np.maximum(0, np.abs(targets - f) - epsilon)
        slope = -2 * C * beyond * np.sign(targets - f)
        value = 0.5 * v[:-1] @ K @ v[:-1] + C * beyond @ beyond
        return value, np.append(K @ (v[:-1] + slope), slope.sum())

    best = minimize(objective, np.zeros(m + 1), jac=True, method="BFGS", options={"gtol": 1e-9})
    ours = SVR(kernel, C=C, epsilon=epsilon, tube="l2", tol=1e-8).fit(X[:m], targets)
    close(ours.predict(X[:m]), K @ best.x[:-1] + best.x[-1], 1e-5)
    assert ours.certificate_.quantities.primal == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.8])
def test_nu_form_against_libsvm_and_the_nu_property(nu):
    theirs = sk.NuSVR(gamma=0.5, C=2.0, nu=nu, tol=1e-8).fit(X, y)
    ours = SVR(Gaussian(1.0), C=2.0, nu=nu, tol=1e-8).fit(X, y)
    close(ours.predict(XN), theirs.predict(XN), 1e-3)
    zone = ours.zones(X, y).zone
    assert (zone == "outside").mean() <= nu + 1e-9
    assert len(ours.support_) / 60 >= nu - 1e-9
    same = SVR(Gaussian(1.0), C=2.0, epsilon=ours.epsilon_, tol=1e-8).fit(X, y)
    close(same.predict(XN), ours.predict(XN), 1e-3)


def test_bundled_data():
    rows, targets = load_diabetes(return_X_y=True)
    rows = rows * 20
    theirs = sk.SVR(C=100.0, epsilon=5.0, gamma=0.1).fit(rows, targets)
    ours = SVR(Gaussian(np.sqrt(5.0)), C=100.0, epsilon=5.0).fit(rows, targets)
    assert ours.certificate_.ok
    assert abs(ours.score(rows, targets) - theirs.score(rows, targets)) < 1e-3


# --- zones, weights, kinds of rows -------------------------------------------------------------


def test_zones_are_the_sizes_of_the_coefficients():
    machine = SVR(Gaussian(1.0), C=2.0, epsilon=0.2, tol=1e-7).fit(X, y)
    size, found = np.abs(dense_coef(machine, 60)), machine.zones(X, y)
    assert (size[found.zone == "inside"] == 0).all()
    assert (size[found.zone == "outside"] == 2.0).all()
    assert (found.zone[(size > 0) & (size < 2.0)] == "on").all()
    beyond = np.maximum(0, np.abs(y - machine.predict(X)) - 0.2)
    np.testing.assert_allclose(found.slack, np.where(found.zone == "outside", beyond, 0.0))


quick = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
values = st.integers(-12, 12).map(lambda i: i / 8)


@st.composite
def weighted_rows(draw):
    n, d = draw(st.integers(4, 14)), draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n))
    targets = draw(st.lists(values, min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights[0] = max(1, weights[0])
    rows[0][0] += 0.1
    return np.array(rows), np.array(targets), np.array(weights)


MACHINES = [
    SVR(Gaussian(0.7), C=3.0),
    SVR(Linear(), C=3.0, tube="l2"),
    SVR(Polynomial(2), C=0.5, nu=0.5),
]


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
@quick
@given(case=weighted_rows(), order=st.randoms(use_true_random=False))
def test_weights_mean_repetition_to_the_last_bit(machine, case, order):
    rows, targets, weights = case
    index = np.repeat(np.arange(len(rows)), weights)
    order.shuffle(index)
    weighted = clone(machine).fit(rows, targets, sample_weight=weights)
    repeated = clone(machine).fit(rows[index], targets[index])
    np.testing.assert_array_equal(weighted.predict(rows), repeated.predict(rows))
    assert weighted.epsilon_ == repeated.epsilon_


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_matrix_function_and_sparse_rows(machine):
    machine = clone(machine).set_params(tol=1e-8)
    thin, new, kernel = np.where(np.abs(X) > 0.5, X, 0.0), np.where(XN > 0, XN, 0.0), machine.kernel
    base = clone(machine).fit(thin, y).predict(new)
    by_matrix = clone(machine).set_params(kernel="precomputed").fit(kernel(thin), y)
    close(by_matrix.predict(kernel(new, thin)), base, 1e-5)
    by_function = clone(machine).set_params(kernel=kernel.__call__).fit(thin, y)
    close(by_function.predict(new), base, 1e-5)
    by_csr = clone(machine).fit(sparse.csr_array(thin), y)
    close(by_csr.predict(sparse.csr_array(new)), base, 1e-5)


def test_strings():
    words = ["banana", "bandana", "ananas", "stone", "rock", "boulder"]
    machine = SVR(Spectrum(1), C=10.0, epsilon=0.01).fit(words, [len(word) for word in words])
    assert machine.predict(["banana"]) == pytest.approx([6.0], abs=0.1)


def test_a_tube_too_narrow_without_slack():
    rows, targets = np.ones((2, 1)), [0.0, 1.0]
    with pytest.warns(UserWarning, match="use a finite C|Use a finite C"):
        machine = SVR(Linear(), C=np.inf, epsilon=0.1).fit(rows, targets)
    assert machine.solution_.status is Status.INFEASIBLE
    assert np.isfinite(machine.predict(rows)).all()


def test_warm_start_and_limits():
    warm = SVR(Gaussian(1.0), C=1.0, warm_start=True, tol=1e-6).fit(X, y)
    warm.set_params(C=1.3).fit(X, y)
    cold = SVR(Gaussian(1.0), C=1.3, tol=1e-6).fit(X, y)
    close(warm.predict(XN), cold.predict(XN), 1e-4)
    assert warm.certificate_.ok
    with pytest.warns(UserWarning, match="iteration limit"):
        machine = SVR(Gaussian(1.0), max_iter=3).fit(X, y)
    assert machine.solution_.status is Status.ITERATION_LIMIT
    assert not machine.certificate_.ok
