"""The perceptron: online, certified by Novikoff's bound, the same in both spaces."""

import contextlib
import os
import pickle
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Theirs
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from mercer import ParameterError, Perceptron, Status, config
from mercer.backends import available_backends, choose_backend
from mercer.backends.contract import LinearFunctions
from mercer.backends.reference.backend import Reference
from mercer.certificates import certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Intersection, Linear, Polynomial, Precomputed, Spectrum
from mercer.machines.perceptron.solvers import AtRandom, Oldest, Smallest
from mercer.problems import Separation
from mercer.solvers import Mistakes, solve
from mercer.theory import novikoff


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def separable(n=200, d=5, gamma=0.2, seed=0):
    """Rows of length one with margin `gamma` about a known hyperplane through the origin."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    rows = []
    while len(rows) < n:
        x = rng.standard_normal(d)
        x /= np.linalg.norm(x)
        if abs(x @ w) >= gamma:
            rows.append(x)
    X = np.array(rows)
    return X, np.where(X @ w > 0, "up", "down")


def blobs(n=150, k=4, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return 6 * rng.standard_normal((k, d))[y] + rng.standard_normal((n, d)), y


X, y = separable()
XM, ym = blobs()


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.*iteration limit:UserWarning")
@parametrize_with_checks(
    [
        Perceptron(),
        Perceptron(answer="averaged"),
        Perceptron(answer="voted"),
        Perceptron(Gaussian(1.0)),
        Perceptron("gaussian", budget=80, removal="random"),
        Perceptron("precomputed"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- the algorithm -----------------------------------------------------------------------------


def by_hand(X, codes, k, bias=True):
    """Follow the definition: W starts at zero; a row that is not strictly ahead is added."""
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    W, mistakes = np.zeros((k, Z.shape[1])), []
    for i, (z, c) in enumerate(zip(Z, codes, strict=True)):
        scores = W @ z
        others = [e for e in range(k) if e != c]
        rival = max(others, key=lambda e: (scores[e], -e))
        if scores[c] <= scores[rival]:
            W[c] += z
            W[rival] -= z
            mistakes.append(i)
    return W, mistakes


@pytest.mark.parametrize("bias", [True, False])
def test_many_classes_follow_the_definition(bias):
    W, mistakes = by_hand(XM, ym, 4, bias)
    machine = Perceptron(bias=bias).partial_fit(XM, ym, classes=range(4))
    assert machine.mistakes_ == len(mistakes)
    np.testing.assert_allclose(machine.coef_, W[:, :3], atol=1e-12)
    if bias:
        np.testing.assert_allclose(machine.intercept_, W[:, 3])


def test_two_classes_follow_the_definition():
    w, b, mistakes = np.zeros(5), 0.0, 0
    for x, s in zip(X, np.where(y == "up", 1, -1), strict=True):
        if s * (w @ x + b) <= 0:
            w, b, mistakes = w + s * x, b + s, mistakes + 1
    machine = Perceptron().partial_fit(X, y, classes=["down", "up"])
    assert machine.mistakes_ == mistakes
    np.testing.assert_allclose(machine.coef_[0], w, atol=1e-12)
    assert machine.intercept_[0] == b


def test_agrees_with_scikit_learn_on_one_pass():
    theirs = Theirs(shuffle=False, max_iter=1, tol=None).fit(X, y)
    ours = Perceptron().partial_fit(X, y, classes=["down", "up"])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(2, 4), st.booleans())
def test_kernel_and_primal_are_the_same_update_by_update(seed, k, bias):
    rng = np.random.default_rng(seed)
    A, c = rng.integers(-3, 4, (40, 3)).astype(float), rng.integers(k, size=40)
    primal = Perceptron(bias=bias)
    dual = Perceptron(Polynomial(1, offset=0.0), bias=bias)  # x'y, but no `Linear`
    for x, label in zip(A, c, strict=True):
        for machine in (primal, dual):
            machine.partial_fit([x], [label], classes=range(k))
        assert primal.mistakes_ == dual.mistakes_
        np.testing.assert_array_equal(primal.intercept_, dual.intercept_)
        np.testing.assert_allclose(primal.decision_function(A), dual.decision_function(A))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_blocks_of_a_stream_do_not_matter(seed, size):
    rng = np.random.default_rng(seed)
    A, c = rng.integers(-3, 4, (40, 3)).astype(float), rng.integers(3, size=40)
    for options in ({}, {"kernel": Gaussian(2.0)}, {"kernel": Gaussian(2.0), "budget": 5}):
        one = Perceptron(**options).partial_fit(A, c, classes=range(3))
        many = Perceptron(**options)
        for i in range(0, 40, size):
            many.partial_fit(A[i : i + size], c[i : i + size], classes=range(3))
        assert one.mistakes_ == many.mistakes_
        np.testing.assert_allclose(one.decision_function(A), many.decision_function(A), atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"kernel": Gaussian(1.0)}, {"answer": "averaged"}])
def test_one_pass_of_fit_is_the_stream(options):
    with pytest.warns(UserWarning, match="not separated so far"):
        fitted = Perceptron(max_epochs=1, shuffle=False, **options).fit(XM, ym)
    stream = Perceptron(**options).partial_fit(XM, ym, classes=range(4))
    assert fitted.mistakes_ == stream.mistakes_ and fitted.n_seen_ == stream.n_seen_
    new = XM + 0.1
    a, b = fitted.decision_function(new), stream.decision_function(new)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    fitted.partial_fit(XM, ym)  # and goes on alike
    stream.partial_fit(XM, ym)
    a, b = fitted.decision_function(new), stream.decision_function(new)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"answer": "averaged"}, {"kernel": Gaussian(1.0)}])
def test_sparse_rows_are_dense_rows(options):
    A = np.where(np.random.default_rng(0).random(XM.shape) < 0.5, XM, 0.0)
    a = Perceptron(**options).partial_fit(A, ym, classes=range(4))
    b = Perceptron(**options).partial_fit(sparse.csr_array(A), ym, classes=range(4))
    assert a.mistakes_ == b.mistakes_
    np.testing.assert_allclose(a.decision_function(A), b.decision_function(sparse.csr_matrix(A)))


def test_averages_and_votes_are_what_they_say():
    """Keep every function, and take the mean and the vote by hand."""
    codes = (y == "up").astype(int)
    signs, Z = 2 * codes - 1, np.hstack([X, np.ones((len(X), 1))])
    w, after = np.zeros(6), []
    for z, s in zip(Z, signs, strict=True):
        if s * (w @ z) <= 0:
            w = w + s * z
        after.append(w)
    mean = np.mean(after, axis=0)
    averaged = Perceptron(answer="averaged").partial_fit(X, codes, classes=[0, 1])
    np.testing.assert_allclose(averaged.coef_[0], mean[:5], atol=1e-12)
    np.testing.assert_allclose(averaged.intercept_, mean[5:], atol=1e-12)
    kernel = Perceptron(Polynomial(1, offset=0.0), answer="averaged")
    kernel.partial_fit(X, codes, classes=[0, 1])
    a, b = averaged.decision_function(X), kernel.decision_function(X)
    np.testing.assert_allclose(a, b, atol=1e-12)
    new = np.random.default_rng(1).standard_normal((30, 5))
    votes = np.sign(np.array(after) @ np.hstack([new, np.ones((30, 1))]).T).mean(axis=0)
    voted = Perceptron(answer="voted").partial_fit(X, codes, classes=[0, 1])
    np.testing.assert_allclose(voted.decision_function(new), votes, atol=1e-12)
    with pytest.warns(UserWarning, match="not separated"):
        fitted = Perceptron(answer="voted", max_epochs=1, shuffle=False).fit(X, codes)
    np.testing.assert_allclose(fitted.decision_function(new), votes, atol=1e-12)


def test_votes_of_many_classes():
    voted = Perceptron(answer="voted").fit(XM, ym)
    shares = voted.decision_function(XM)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert voted.score(XM, ym) > 0.95


# --- Novikoff ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.05, 0.2])
@pytest.mark.parametrize("kernel", ["linear", Polynomial(1, offset=0.0)])
def test_mistakes_stay_below_the_bound(gamma, kernel):
    A, c = separable(300, 4, gamma)
    machine = Perceptron(kernel, bias=False, max_epochs=1000).fit(A, c)
    assert machine.mistakes_ <= novikoff(1.0, gamma).value  # the margin the rows were made with
    found = machine.certificate_
    assert found.ok and "every order of the rows" in found.statement
    assert machine.mistakes_ <= found.quantities.bound
    assert found.quantities.widest >= gamma - 1e-12  # the true margin is not ruled out
    assert machine.radius_ == pytest.approx(1.0)
    w = machine.decision_function(A) * np.where(c == "up", 1, -1)
    assert machine.margin_ == pytest.approx(w.min() / np.linalg.norm(_weights(machine, A)))
    assert machine.score(A, c) == 1.0


def _weights(machine, A):
    return np.linalg.lstsq(A, machine.decision_function(A), rcond=None)[0]


def test_many_classes_have_a_bound_too():
    machine = Perceptron().fit(XM, ym)
    found = machine.certificate_.quantities
    assert machine.certificate_.ok and found.mistakes <= found.bound
    radius = np.sqrt(2 * (np.square(XM).sum(axis=1).max() + 1))
    assert machine.radius_ == pytest.approx(radius) == found.radius


def test_what_cannot_be_separated_says_so():
    A = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match="not separated so far"):
        machine = Perceptron(max_epochs=50).fit(A, [0, 1, 0])
    found = machine.certificate_
    assert not found.ok and "not separated" in found.statement
    assert found.quantities.margin <= 0 and np.isinf(found.quantities.bound)
    assert found.quantities.widest == pytest.approx(machine.radius_ / np.sqrt(machine.mistakes_))


def test_certificate_of_a_stream():
    machine = Perceptron().partial_fit(X, y, classes=["down", "up"])
    found = machine.certificate_
    assert not found.ok and np.isnan(machine.margin_) and "rows were not kept" in found.statement
    assert machine.solution_.iterations == len(X)


def test_certificate_judges_rivals():
    theirs = Theirs(max_iter=1000, tol=None).fit(X, y)
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = Separation(gram, (y == "up").astype(int), 2, True)
    ours = solve(problem, Mistakes(max_epochs=1000)).value
    theirs_value = replace(ours, weights=theirs.coef_.T, intercept=theirs.intercept_)
    assert certify(problem, theirs_value).ok
    assert not certify(problem, replace(ours, weights=-theirs.coef_.T)).ok
    assert not certify(problem, replace(ours, mistakes=10**9)).ok


# --- budgets (and streams that never separate) -------------------------------------------------


@pytest.mark.parametrize("removal", ["oldest", "smallest", "random"])
@pytest.mark.parametrize("budget", [1, 7])
def test_memory_is_bounded_by_the_budget(removal, budget):
    rng = np.random.default_rng(0)
    A, c = rng.standard_normal((3000, 2)), rng.integers(2, size=3000)  # labels mean nothing
    machine = Perceptron(Gaussian(1.0), budget=budget, removal=removal)
    machine.partial_fit(A, c, classes=[0, 1])
    stream = machine._stream
    assert machine.n_support_ <= budget and len(stream.points) <= budget
    assert np.abs(stream.memory.coef).max() == 1.0  # no drift: coefficients are whole numbers
    assert abs(stream.memory.bias[0]) <= budget
    assert machine.mistakes_ - stream.forgotten == machine.n_support_
    assert "no function" not in machine.certificate_.statement  # forgotten mistakes prove nothing


def test_norms_do_not_drift_on_an_endless_stream():
    """|w|^2 <= mistakes R^2, whatever the stream; and cycling rows return to the same weights."""
    A, c = np.array([[1.0], [1.0], [-1.0]]), np.array([0, 1, 1])
    machine = Perceptron().partial_fit(A, c, classes=[0, 1])
    sizes = []
    for _ in range(50):
        machine.partial_fit(np.tile(A, (700, 1)), np.tile(c, 700))
        sizes.append(np.abs(machine.coef_).max() + np.abs(machine.intercept_).max())
    assert machine.n_seen_ == 3 + 50 * 2100
    assert max(sizes) <= 4 and machine.mistakes_ > 10_000


def test_budget_in_fit():
    machine = Perceptron(Gaussian(2.0), budget=30).fit(XM, ym)
    assert machine.n_support_ <= 30 and machine.score(XM, ym) > 0.9


def test_removal_rules():
    coef, age = np.array([[1.0], [2.0], [1.0]]), np.array([5, 1, 3])
    squares = np.array([1.0, 1.0, 1.0])
    assert Oldest().pick(coef, age, squares, 9) == 1
    assert Smallest().pick(coef, age, squares, 9) == 2
    drawn = {AtRandom(3).pick(coef, age, squares, step) for step in range(50)}
    assert drawn == {0, 1, 2}


# --- bad input, and what is around -------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_bad_rows_change_nothing(convert):
    machine = Perceptron().partial_fit(X, y, classes=["down", "up"])
    before = machine.coef_.copy()
    for bad in (np.nan, np.inf, 1e200):
        rows = X[:4].copy()
        rows[2, 1] = bad
        with pytest.raises(ValueError, match=r"row 2"):
            machine.partial_fit(convert(rows), y[:4])
        np.testing.assert_array_equal(machine.coef_, before)
        assert machine.n_seen_ == len(X)
    with pytest.raises(ValueError, match="3 features"):
        machine.partial_fit(X[:1, :3], y[:1])
    with pytest.raises(ValueError, match="none of the classes"):
        machine.partial_fit(X[:1], ["sideways"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        machine.partial_fit(X[:2], y[:1])
    with pytest.raises(ValueError, match="classes must be passed"):
        Perceptron().partial_fit(X, y)


def test_kernel_streams_refuse_bad_rows_too():
    machine = Perceptron(Gaussian(1.0)).partial_fit(X, y, classes=["down", "up"])
    rows = X[:3].copy()
    rows[1, 0] = np.nan
    with pytest.raises(ValueError, match="row 1"):
        machine.partial_fit(rows, y[:3])
    assert machine.n_seen_ == len(X)


@pytest.mark.parametrize(
    "options",
    [
        {"max_epochs": 0},
        {"answer": "mean"},
        {"budget": 0},
        {"removal": "newest"},
        {"budget": 3, "answer": "averaged"},
        {"bias": 1},
        {"time_limit": -1},
    ],
)
def test_parameters_are_checked(options):
    with pytest.raises(ParameterError, match=f"Perceptron: {next(reversed(options))}"):
        Perceptron(**options).fit(X, y)


def test_strings_and_precomputed():
    words = ["aab", "aba", "abb", "xxy", "xyx", "yyx"]
    machine = Perceptron(Spectrum(2)).fit(words, [0, 0, 0, 1, 1, 1])
    assert machine.predict(["aabb", "xxyy"]).tolist() == [0, 1]
    machine.partial_fit(["bbb"], [0])
    K = Gaussian(2.0)(XM, XM)
    for answer in ("last", "averaged", "voted"):
        direct = Perceptron(Gaussian(2.0), answer=answer).fit(XM, ym)
        given_matrix = Perceptron(Precomputed(), answer=answer).fit(K, ym)
        a, b = direct.decision_function(XM), given_matrix.decision_function(K)
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert not hasattr(Perceptron("precomputed"), "partial_fit")


def test_copies_go_on_alone():
    machine = Perceptron(answer="averaged").partial_fit(X, y, classes=["down", "up"])
    twin = pickle.loads(pickle.dumps(machine))
    before = machine.decision_function(X)
    twin.partial_fit(X, y)
    np.testing.assert_array_equal(machine.decision_function(X), before)
    assert not hasattr(clone(machine), "classes_")


def test_an_answer_must_be_prepared():
    machine = Perceptron().fit(X, y)
    with pytest.raises(ValueError, match="fit it again"):
        machine.set_params(answer="averaged").predict(X)
    assert not hasattr(machine, "support_vectors_")
    kept = Perceptron(Gaussian(1.0)).fit(X, y)
    assert kept.support_vectors_.shape == (kept.n_support_, 5)


def test_callback_and_repeatability():
    seen = []
    with pytest.warns(UserWarning, match="callback"):
        Perceptron(callback=lambda p: seen.append(p) or len(seen) > 1).fit(X, np.roll(y, 7))
    assert len(seen) == 2
    a, b = (Perceptron(random_state=3).fit(XM, ym) for _ in range(2))
    np.testing.assert_array_equal(a.coef_, b.coef_)


# --- the compiled walk is that of the reference --------------------------------------------------


@pytest.mark.parametrize("name", available_backends())
@pytest.mark.parametrize("k", [1, 3])
def test_backends_walk_alike(name, k):
    rng = np.random.default_rng(0)
    A = np.where(rng.random((60, 7)) < 0.6, rng.integers(-4, 5, (60, 7)), 0).astype(float)
    codes, order = rng.integers(max(k, 2), size=60), rng.permutation(60)
    with config(backend=name):
        backend = choose_backend()
    for rows in (A, sparse.csr_array(A)):
        for walk in (None, order):
            found = []
            for each in (backend, Reference()):
                late = np.zeros((7, k)), np.zeros(k)
                rules = LinearFunctions(np.zeros((7, k)), np.zeros(k), True, *late)
                met = each.perceptron(rows, codes, walk, rules, 5.0, True)
                found.append((met, rules))
            assert found[0][0] == found[1][0]
            for part in ("weights", "bias", "late", "late_bias"):
                ours, theirs = (getattr(rules, part) for _, rules in found)
                np.testing.assert_array_equal(ours, theirs)


# --- what is refused, interrupted or asked for late -----------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_rows_that_overflow_are_refused_by_fit(convert):
    with pytest.raises(ValueError, match=r"overflows on 1 row\(s\) of X \(1\)"):
        Perceptron().fit(convert(np.array([[1.0], [1e200], [-1.0]])), [0, 0, 1])


def test_a_large_block_is_learned_whole_or_not_at_all():
    A = np.ones((90_000, 50))
    A[-1, 3] = 1e200  # finite, but its square is not
    c = np.arange(90_000) % 2
    machine = Perceptron().partial_fit(A[:5], c[:5], classes=[0, 1])
    before = machine.coef_.copy()
    with pytest.raises(ValueError, match="row 89999"):
        machine.partial_fit(A, c)
    assert machine.n_seen_ == 5
    np.testing.assert_array_equal(machine.coef_, before)


def test_votes_and_means_that_were_not_kept_are_refused():
    merged = Perceptron(Gaussian(1.0)).fit(XM, ym)
    with pytest.raises(ValueError, match="'voted' was set after the stream began"):
        merged.set_params(answer="voted").predict(XM)
    few = Perceptron(Gaussian(1.0), budget=5).partial_fit(XM, ym, classes=range(4))
    with pytest.raises(ValueError, match="'averaged' was set after the stream began"):
        few.set_params(budget=None, answer="averaged").predict(XM)
    stream = Perceptron(Gaussian(1.0)).partial_fit(XM, ym, classes=range(4))
    voted = Perceptron(Gaussian(1.0), answer="voted").partial_fit(XM, ym, classes=range(4))
    expected = voted.decision_function(XM)
    np.testing.assert_allclose(stream.set_params(answer="voted").decision_function(XM), expected)


def test_what_a_fit_handed_back_stays_what_it_was():
    for kernel in ("linear", Gaussian(1.0)):
        machine = Perceptron(kernel).fit(X, y)
        value = machine.solution_.value
        before = [np.copy(a) for a in (value.coef, value.intercept)]
        if value.weights is not None:
            weights = value.weights.copy()
        machine.partial_fit(-X, y)
        for a, b in zip(before, (value.coef, value.intercept), strict=True):
            np.testing.assert_array_equal(a, b)
        if value.weights is not None:
            np.testing.assert_array_equal(value.weights, weights)
        assert not machine.certificate_.ok


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX does")
@pytest.mark.parametrize(
    "options", [{"answer": "averaged"}, {"kernel": Gaussian(1.0), "budget": 9}]
)
def test_ctrl_c_in_a_stream_leaves_a_whole_number_of_rows(options):
    """What was learned is what a stream of so many rows learns, counts and averages included."""
    rng = np.random.default_rng(0)
    n = 60_000 if options.get("budget") else 600_000
    A, c = rng.standard_normal((n, 8)), rng.integers(2, size=n)
    machine = Perceptron(**options).partial_fit(A[:10], c[:10], classes=[0, 1])
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
    try:
        with contextlib.suppress(KeyboardInterrupt):
            sender.start()
            while True:
                machine.partial_fit(A, c)
    finally:
        sender.join()
        signal.signal(signal.SIGINT, handler)
    seen = machine.n_seen_ - 10
    again = Perceptron(**options).partial_fit(A[:10], c[:10], classes=[0, 1])
    for first in range(0, seen, n):
        again.partial_fit(A[: seen - first], c[: seen - first])
    assert again.n_seen_ == machine.n_seen_ and again.mistakes_ == machine.mistakes_
    assert again.radius_ == machine.radius_
    a, b = machine.decision_function(A[:50]), again.decision_function(A[:50])
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Intersection(), Linear(), Polynomial(2), Gaussian(1.0)], ids=str
)
def test_a_lead_that_is_rounding_is_a_mistake(kernel):
    """Scores that cancel to nothing, in one order of the sum, must not end the passes."""
    solved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 7)), int(rng.integers(1, 3))
        classes = 3 if seed % 4 == 0 and n > 3 else 2
        rows, labels = rng.uniform(0, 1, (n, d)), np.arange(n) % classes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = Perceptron(kernel, bias=bool(seed % 3)).fit(rows, labels)
        if machine.solution_.status is Status.SOLVED:
            assert machine.certificate_.ok and machine.certificate_.quantities.margin > 0
            solved += 1
    assert solved > 20
