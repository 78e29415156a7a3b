"""Logistic regression: against scikit-learn, closed forms and finite differences."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from mercer import KernelRidge, LogisticRegression, ParameterError, SolverError
from mercer.certificates import certify
from mercer.gram import LazyGram, Need, make_gram
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed, Spectrum
from mercer.machines.logistic.descent import FeatureSpace, RowSpace, descend, space_of
from mercer.machines.logistic.newton import _by_conjugate_gradients
from mercer.problems import Coefficients, LogLoss, SmoothRisk, SquaredLoss, TanhLoss
from mercer.solvers import AnnealedGradient, NewtonRisk, Status, Watch, solve

LOSSES = {"log": LogLoss(), "squared": SquaredLoss(), "tanh": TanhLoss()}


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def data(n=120, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    f = X @ rng.standard_normal((d, k)) + 0.7 * rng.standard_normal((n, k))
    return X, f.argmax(axis=1)


X, y = data()
XK, yk = data(k=3)
XN = data(30, seed=5)[0]


# one check takes the mean off a precomputed matrix, which is indefinite then, and we say so
@pytest.mark.filterwarnings("ignore:.*not positive semidefinite:UserWarning")
@parametrize_with_checks(
    [
        LogisticRegression(),
        LogisticRegression(class_weight="balanced", penalty=0.1),
        LogisticRegression(Gaussian(1.0)),
        LogisticRegression(Polynomial(2)),
        LogisticRegression(loss="squared"),
        LogisticRegression("precomputed", loss="squared"),
        LogisticRegression(loss="tanh"),
        LogisticRegression("gaussian", loss="tanh"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- against others ----------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("A", "c"), [(X, y), (XK, yk)])
def test_agrees_with_scikit_learn(A, c, penalty, bias):
    ours = LogisticRegression(penalty=penalty, bias=bias).fit(A, c)
    theirs = Theirs(C=1 / penalty, fit_intercept=bias, tol=1e-10, max_iter=10**4).fit(A, c)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(XN), theirs.predict_proba(XN), atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(XN), theirs.decision_function(XN), atol=1e-5)
    assert ours.certificate_.ok and ours.certificate_.quantities.relative_gap < 1e-9


def test_weights_of_rows_and_classes_agree_with_scikit_learn():
    w = np.random.default_rng(0).uniform(0.1, 3, len(y))
    for given_weight in (None, "balanced", {0: 3.0, 1: 0.5}):
        ours = LogisticRegression(class_weight=given_weight).fit(X, y, w)
        class_weight = given_weight
        if given_weight == "balanced":  # theirs does not count the weights of the rows here
            totals = np.bincount(y, w)
            class_weight = dict(enumerate(w.sum() / (2 * totals)))
        theirs = Theirs(class_weight=class_weight, tol=1e-10, max_iter=10**4).fit(X, y, w)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.5)])
@pytest.mark.parametrize(("A", "c"), [(X, y), (XK, yk)])
def test_squared_loss_is_ridge_regression_in_closed_form(kernel, A, c):
    k = c.max() + 1
    targets = np.where(c[:, None] == np.arange(k), 1.0, -1.0)
    targets = targets[:, 1:] if k == 2 else targets
    ridge = KernelRidge(kernel=kernel, penalty=0.3).fit(A, targets)
    ours = LogisticRegression(kernel, 0.3, loss="squared").fit(A, c)
    expected = ridge.predict(XN)
    scores = ours.decision_function(XN)
    np.testing.assert_allclose(scores.reshape(len(XN), -1), expected, atol=1e-8)
    assert ours.certificate_.ok and not hasattr(ours, "predict_proba")


@pytest.mark.parametrize("loss", ["log", "tanh"])
def test_kernels_by_brute_force(loss):
    A, c = data(40, 2)
    K, s = Gaussian(1.0)(A, A), 2 * c - 1

    def objective(z):
        f = K @ z[:-1] + z[-1]
        values = np.logaddexp(0, -s * f) if loss == "log" else 1 - s * np.tanh(f)
        return values.sum() + 0.25 * z[:-1] @ K @ z[:-1]

    ours = LogisticRegression(Gaussian(1.0), 0.5, loss=loss).fit(A, c)
    start = np.append(ours.dual_coef_[:, 0], ours.intercept_)
    begin = np.zeros(41) if loss == "log" else start + 1e-3
    best = minimize(objective, begin, method="BFGS", options={"maxiter": 500})
    assert objective(start) <= best.fun + 1e-7
    assert ours.certificate_.ok


# --- slopes and curvatures by finite differences -------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_rows_that_are_wrong_for_certain_have_a_bound(k):
    """A probability that rounds to one has no entropy; rows of little weight may be that wrong."""
    codes, scores = np.array([0, 1]), np.zeros((2, 1 if k == 2 else k))
    scores[0, -1], scores[1, 0] = 60.0, -60.0 if k == 2 else 60.0
    loss = LogLoss()
    assert np.isfinite(loss.conjugates(loss.slopes(scores, codes), codes)).all()
    rng = np.random.default_rng(588041)
    X, y, weights = rng.standard_normal((83, 15)), np.arange(83) % k, 10.0 ** rng.uniform(-6, 6, 83)
    machine = LogisticRegression().fit(X, y, sample_weight=weights)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.quantities.relative_gap < 1e-6


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("k", [1, 3])
def test_derivatives_by_finite_differences(name, k):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    f, codes, h = rng.standard_normal((20, k)), rng.integers(max(k, 2), size=20), 1e-6
    slopes, bend = loss.slopes(f, codes), loss.curvature(f, codes)
    for c in range(k):
        step = h * np.eye(k)[c]
        up, down = loss.values(f + step, codes), loss.values(f - step, codes)
        np.testing.assert_allclose((up - down) / (2 * h), slopes[:, c], atol=1e-8)
        change = (loss.slopes(f + step, codes) - loss.slopes(f - step, codes)) / (2 * h)
        np.testing.assert_allclose(bend.times(np.tile(np.eye(k)[c], (20, 1))), change, atol=1e-8)
        for e in range(k):
            between = bend.between(c, e)
            np.testing.assert_allclose(0 if between is None else between, change[:, e], atol=1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_of_the_whole_cost(name):
    """The sign of the offset too: f = w'x + b, so both w and b go against the slope of the loss."""
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = SmoothRisk(gram, y, 2, np.ones(len(y)), 0.7, LOSSES[name], True)
    space, rng, h = space_of(problem), np.random.default_rng(1), 1e-6
    u = space.element(rng.standard_normal((4, 1)), rng.standard_normal(1))
    g = space.gradient(u)
    for _ in range(5):
        d = space.element(rng.standard_normal((4, 1)), rng.standard_normal(1))
        slope = (space.objective(u.plus(h, d)) - space.objective(u.plus(-h, d))) / (2 * h)
        assert slope == pytest.approx(space.inner(g, d), abs=1e-5)


@pytest.mark.parametrize("name", ["log", "squared"])
@pytest.mark.parametrize("k", [1, 3])
def test_conjugates_by_the_inequality_of_fenchel(name, k):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    f, g = 3 * rng.standard_normal((50, k)), 3 * rng.standard_normal((50, k))
    codes = rng.integers(max(k, 2), size=50)
    u = loss.slopes(f, codes)
    conjugate = loss.conjugates(u, codes)
    met = loss.values(f, codes) + conjugate - (u * f).sum(axis=1)
    np.testing.assert_allclose(met, 0.0, atol=1e-10)  # equality where u is the slope
    assert (loss.values(g, codes) + conjugate - (u * g).sum(axis=1) > -1e-10).all()


def test_losses_stay_exact_far_out():
    far, codes = np.array([[800.0, 0.0, -800.0]]), np.array([0])
    assert LogLoss().values(far, codes)[0] == 0.0
    assert LogLoss().values(far, np.array([2]))[0] == 1600.0
    near = LogLoss().values(np.array([[40.0, 0.0]]), codes)[0]
    assert near == pytest.approx(np.exp(-40.0))
    assert LogLoss().values(np.array([[-800.0]]), np.array([1]))[0] == 800.0
    assert TanhLoss().values(np.array([[-1e6]]), np.array([1]))[0] == 2.0


# --- the same by other ways ----------------------------------------------------------------------


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.sampled_from(["log", "squared", "tanh"]), st.integers(2, 3))
def test_weights_mean_repetition_and_order_does_not_matter(seed, loss, k):
    rng = np.random.default_rng(seed)
    A, c = data(40, 2, k, seed)
    c[:k] = np.arange(k)
    w = rng.integers(0, 3, 40)
    w[:k] = 1
    rows = rng.permutation(np.repeat(np.arange(40), w))
    for kernel in (Linear(), Gaussian(1.0)):
        machine = LogisticRegression(kernel, 0.5, loss=loss)
        a = machine.fit(A, c, w).decision_function(A)
        b = machine.fit(A[rows], c[rows]).decision_function(A)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("A", "c"), [(X, y), (XK, yk)])
def test_linear_kernel_is_the_primal(loss, A, c):
    primal = LogisticRegression(loss=loss).fit(A, c)
    given_matrix = LogisticRegression(Precomputed(), loss=loss).fit(A @ A.T, c)
    callable_kernel = LogisticRegression(lambda u, v: u @ v.T, loss=loss).fit(A, c)
    csr = LogisticRegression(loss=loss).fit(sparse.csr_array(A), c)
    expected = primal.decision_function(XN)
    for found in (given_matrix.decision_function(XN @ A.T), callable_kernel.decision_function(XN)):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(csr.decision_function(XN), expected, atol=1e-8)


def test_more_columns_than_rows():
    A, c = data(20, 50)
    ours = LogisticRegression(penalty=0.1).fit(A, c)
    theirs = Theirs(C=10, tol=1e-10, max_iter=10**4).fit(A, c)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("A", "c"), [(X, y), (XK, yk)])
def test_minimize_finds_nothing_better(kernel, loss, A, c):
    machine = LogisticRegression(kernel, loss=loss).fit(A, c)
    problem = SmoothRisk(
        make_gram(kernel, A, Need.PRODUCTS),
        c,
        len(set(c)),
        np.ones(len(c)),
        1.0,
        LOSSES[loss],
        True,
    )
    K, shape = kernel(A), (len(c) + 1, problem.columns)

    def objective(z):
        a, b = z.reshape(shape)[:-1], z.reshape(shape)[-1]
        f = K @ a + b
        pulls = problem.weighted_slopes(f)
        gradient = np.vstack([K @ (pulls + a), pulls.sum(axis=0)])
        return problem.risk(f) + 0.5 * float((a * (K @ a)).sum()), gradient.ravel()

    start = np.vstack([np.zeros((len(c), shape[1])), machine.intercept_.reshape(1, -1)])
    start[:-1] = machine.dual_coef_.reshape(len(c), -1)
    best = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B").fun
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.objective <= best * (1 + 1e-6)


@pytest.mark.parametrize("make", [RowSpace, space_of])
@pytest.mark.parametrize("k", [2, 3])
def test_newton_by_conjugate_gradients(make, k):
    A, c = data(60, 3, k)
    gram = make_gram(Linear(), A, Need.PRODUCTS)
    problem = SmoothRisk(gram, c, k, np.ones(60), 0.5, LogLoss(), True)
    space, watch = make(problem), Watch()
    found = descend(
        space,
        space.zero(),
        lambda u, g: _by_conjugate_gradients(space, u, g, watch),
        1e-8,
        50,
        watch,
    )
    value = space.answer(found.element)
    assert found.status.ok and certify(problem, value, 1e-9).ok
    direct = solve(problem, NewtonRisk()).value
    fitted = gram @ direct.coef + direct.intercept
    np.testing.assert_allclose(found.element.scores, fitted, atol=1e-6)


def test_a_matrix_that_is_not_stored():
    source = make_gram(Gaussian(1.0), X, Need.ROWS).source
    problem = SmoothRisk(LazyGram(source), y, 2, np.ones(len(y)), 1.0, LogLoss(), True)
    assert certify(problem, solve(problem).value).ok


# --- certificates --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_gap_bounds_the_distance_to_the_optimum(loss, k):
    A, c = data(80, 3, k)
    gram = make_gram(Gaussian(1.0), A, Need.PRODUCTS)
    problem = SmoothRisk(gram, c, k, np.ones(80), 0.5, LOSSES[loss], True)
    best = solve(problem).value
    optimum = certify(problem, best)
    assert optimum.ok and optimum.quantities.relative_gap < 1e-9
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        off = Coefficients(
            best.coef + size * rng.standard_normal(best.coef.shape), best.intercept + size
        )
        found = certify(problem, off).quantities
        truth = (found.objective - optimum.quantities.objective) / found.objective
        assert truth <= found.relative_gap * (1 + 1e-9) and not certify(problem, off).ok


def test_certificate_judges_scikit_learn():
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = SmoothRisk(gram, y, 2, np.ones(len(y)), 1.0, LogLoss(), True)
    theirs = Theirs(tol=1e-10, max_iter=10**4).fit(X, y)
    value = Coefficients(np.empty((0, 1)), theirs.intercept_, theirs.coef_.T)  # weights only
    assert certify(problem, value).ok
    worse = Coefficients(np.zeros((len(y), 1)), theirs.intercept_, 1.1 * theirs.coef_.T)
    assert not certify(problem, worse).ok


def test_tanh_says_that_it_is_not_convex():
    machine = LogisticRegression(loss="tanh").fit(X, y)
    assert "not convex" in machine.certificate_.statement
    assert "not convex" in machine.solution_.detail
    assert np.isnan(machine.certificate_.quantities.relative_gap)
    np.testing.assert_allclose(machine.predict_proba(X).sum(axis=1), 1.0)
    one = LogisticRegression(loss="tanh", solver=NewtonRisk(n_init=1)).fit(X, y)
    few = machine.certificate_.quantities.objective
    assert few <= one.certificate_.quantities.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_outliers_pull_the_log_loss_and_not_the_tanh(seed):
    """Rows far on the side of the other class, where no line can do them justice."""
    rng = np.random.default_rng(seed)
    A = np.vstack([rng.normal((-2, 0), 0.7, (60, 2)), rng.normal((2, 0), 0.7, (60, 2))])
    c = np.repeat([0, 1], 60)
    far = np.vstack([A, np.tile([30.0, 0.0], (12, 1))]), np.append(c, np.zeros(12, dtype=int))
    scores = {
        loss: LogisticRegression(loss=loss, penalty=0.1).fit(*far).score(A, c) for loss in LOSSES
    }
    assert scores["tanh"] > 0.98 and scores["tanh"] > max(scores["log"], scores["squared"])


def test_tanh_finds_the_best_of_many_starts():
    rng = np.random.default_rng(0)
    A = np.vstack([rng.normal((-2, 0), 0.7, (60, 2)), rng.normal((2, 0), 0.7, (60, 2))])
    A, c = np.vstack([A, np.tile([30.0, 30.0], (12, 1))]), np.repeat([0, 1, 0], [60, 60, 12])
    s = 2 * c - 1

    def objective(z):
        return (1 - s * np.tanh(A @ z[:2] + z[2])).sum() + 0.05 * z[:2] @ z[:2]

    machine = LogisticRegression(loss="tanh", penalty=0.1).fit(A, c)
    starts = [size * rng.standard_normal(3) for size in (0.1, 1.0, 3.0) for _ in range(10)]
    best = min(minimize(objective, z, method="BFGS").fun for z in starts)
    assert objective(np.append(machine.coef_[0], machine.intercept_)) <= best * (1 + 1e-6)


def test_separable_data_with_hardly_a_penalty_ends():
    A, c = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    for kernel in (Linear(), Gaussian(1.0)):
        machine = LogisticRegression(kernel, 1e-10).fit(A, c)
        assert machine.certificate_.ok and machine.score(A, c) == 1.0
        assert np.isfinite(machine.decision_function(A)).all()


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_annealed_gradients_reach_the_optimum(loss):
    A, c = data(2000, 4, seed=3)
    best = LogisticRegression(loss=loss, penalty=20.0).fit(A, c)
    solver = AnnealedGradient(epochs=60, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="more epochs"):
        near = LogisticRegression(loss=loss, penalty=20.0, solver=solver).fit(A, c)
    assert near.solution_.status is Status.ITERATION_LIMIT
    np.testing.assert_allclose(near.coef_, best.coef_, atol=0.02)
    gap = near.certificate_.quantities.relative_gap
    assert gap < 1e-3
    solver = AnnealedGradient(epochs=2)
    with pytest.warns(ConvergenceWarning, match="2 passes"):
        short = LogisticRegression(loss=loss, penalty=20.0, solver=solver).fit(A, c)
    assert short.certificate_.quantities.relative_gap > gap
    done = LogisticRegression(loss=loss, penalty=20.0, solver=AnnealedGradient(epochs=60)).fit(A, c)
    assert done.solution_.status.ok and done.solution_.iterations < 60
    assert done.certificate_.quantities.relative_gap < 1e-2


def uneven(seed):
    """Draw rows with columns of very different scales that have much in common."""
    A, c = data(20_000, 5, 3, seed)
    return (A @ np.tril(np.ones((5, 5)))) * [1e-3, 1.0, 1e3, 10.0, 0.1], c


@pytest.mark.parametrize("draw", [lambda s: data(20_000, 4, 3, s), uneven])
@pytest.mark.parametrize("seed", [21, 22, 23])
def test_a_stream_comes_near_the_batch_on_other_rows(draw, seed):
    A, c = draw(seed)
    stream = LogisticRegression().partial_fit(A, c, classes=[0, 1, 2])
    batch = LogisticRegression().fit(A, c)
    new = A[:50]
    np.testing.assert_allclose(stream.predict_proba(new), batch.predict_proba(new), atol=0.05)
    assert stream.score(A, c) > batch.score(A, c) - 0.005


def test_a_stream_comes_near_the_batch():
    A, c = data(20_000, 4, 3, seed=4)
    machine = LogisticRegression()
    for first in range(0, len(A), 1000):
        part = slice(first, first + 1000)
        machine.partial_fit(A[part], c[part], classes=[0, 1, 2])
    batch = LogisticRegression().fit(A, c)
    np.testing.assert_allclose(machine.predict_proba(XN), batch.predict_proba(XN), atol=0.05)
    found = machine.certificate_
    assert not found.ok and found.quantities.rows == 20_000
    assert machine.score(A, c) > batch.score(A, c) - 0.01
    csr = LogisticRegression().partial_fit(sparse.csr_array(A), c, classes=[0, 1, 2])
    dense = LogisticRegression().partial_fit(A, c, classes=[0, 1, 2])
    np.testing.assert_allclose(csr.coef_, dense.coef_, atol=1e-10)


def test_a_stream_goes_on_from_a_fit():
    A, c = data(500)
    machine = LogisticRegression().fit(A, c)
    before = machine.coef_.copy()
    machine.partial_fit(A[:50], c[:50])
    assert np.abs(machine.coef_ - before).max() < 0.2
    assert not np.array_equal(machine.coef_, before)


def test_streams_need_features():
    assert not hasattr(LogisticRegression(Gaussian(1.0)), "partial_fit")
    assert hasattr(LogisticRegression("polynomial(2)"), "partial_fit")
    with pytest.raises(SolverError, match="feature map"):
        LogisticRegression(Gaussian(1.0), solver=AnnealedGradient()).fit(X, y)


# --- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": -1.0},
        {"loss": "hinge"},
        {"bias": 2},
        {"class_weight": "even"},
        {"solver": "newton"},
        {"time_limit": 0},
    ],
)
def test_parameters_are_checked(options):
    with pytest.raises(ParameterError, match=f"LogisticRegression: {next(iter(options))}"):
        LogisticRegression(**options).fit(X, y)


def test_strings_callbacks_and_limits():
    words = ["aab", "aba", "abb", "xxy", "xyx", "yyx"]
    machine = LogisticRegression(Spectrum(2)).fit(words, [0, 0, 0, 1, 1, 1])
    assert machine.predict(["aabb", "xxyy"]).tolist() == [0, 1]
    seen = []
    with pytest.warns(UserWarning, match="callback"):
        LogisticRegression(callback=lambda p: seen.append(p) or True).fit(X, y)
    assert len(seen) == 1
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = LogisticRegression(Gaussian(1.0)).fit(X, y).coef_


def test_a_kernel_that_is_none_says_so():
    K = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]])
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        LogisticRegression(Precomputed()).fit(K, [0, 0, 1, 1])


def test_spaces_are_what_they_say():
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = SmoothRisk(gram, y, 2, np.ones(len(y)), 1.0, LogLoss(), True)
    assert isinstance(space_of(problem), FeatureSpace)
