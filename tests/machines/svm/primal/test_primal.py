"""Box programmes in the space of the features: right, certified, and ending whatever the data."""

import signal
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as sk

from mercer import certify
from mercer.backends import choose_backend
from mercer.backends.box_programs import FeatureBox
from mercer.backends.reference.backend import Reference
from mercer.gram import (
    DenseGram,
    FactoredGram,
    LazyGram,
    Need,
    PartGram,
    PrecomputedGram,
    make_gram,
)
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines.svm import problem as svm
from mercer.problems import BoxQP
from mercer.solvers import (
    SMO,
    DualDescent,
    Gap,
    InteriorPoint,
    SolverError,
    Status,
    Watch,
    solve,
)
from mercer.testing import check_solver

SOLVERS = [InteriorPoint(), DualDescent(max_iter=100_000)]


def two_classes(n=400, d=6, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sign(X @ rng.standard_normal(d) + 0.3)
    y[rng.random(n) < noise] *= -1
    return X, y


def factored(X):
    return FactoredGram(lambda Z: Z, X)


def stored(X):
    X = X.toarray() if sparse.issparse(X) else X
    return PrecomputedGram(X @ X.T, None)


def hinge(X, y, w, r, C):
    return 0.5 * w @ w + C * np.maximum(0.0, 1 - y * (X @ w + r)).sum()


def weights(problem, solution, X):
    return np.asarray(X.T @ solution.value.coef).ravel()


def run(solver, problem):
    solution = solver.run(problem, Watch())
    assert solution.status is Status.SOLVED, solution.status
    certificate = certify(problem, solution.value)
    assert certificate.ok, str(certificate)
    return solution


# --- right answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0])
def test_objective_is_that_of_libsvm_or_better(solver, C):
    X, y = two_classes()
    solution = run(solver, svm.svc(factored(X), y, np.full(len(y), C)))
    w = weights(None, solution, X)
    theirs = sk.SVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
    best = hinge(X, y, theirs.coef_[0], theirs.intercept_[0], C)
    assert hinge(X, y, w, solution.value.intercept, C) <= best * (1 + 1e-4)


def test_penalised_bias_is_a_constant_feature_and_no_sum():
    X, y = two_classes()
    C, wide = 0.5, np.column_stack([X, np.ones(len(X))])
    for gram, slack in ((svm.svc, 1), (svm.svc_l2, 2)):
        box = gram(factored(wide), y, np.full(len(y), C))
        alone = np.full(len(y), -1)
        problem = BoxQP(box.gram, box.linear, box.lower, box.upper, np.zeros(0), 0.0, alone)
        loss = "hinge" if slack == 1 else "squared_hinge"
        theirs = sk.LinearSVC(C=C, loss=loss, dual=True, tol=1e-8, max_iter=100_000).fit(X, y)
        expected = np.append(theirs.coef_[0], theirs.intercept_)
        for solver in SOLVERS:
            solution = solver.run(problem, Watch())
            assert solution.status is Status.SOLVED
            w = wide.T @ solution.value.coef
            np.testing.assert_allclose(w, expected, atol=3e-3)
            assert np.shape(solution.value.intercept) == (0,)


def problems(X, y):
    gram, ones = factored(X), np.ones(len(y))
    targets = X[:, 0] + 0.1 * X[:, 1] ** 2
    return {
        "svc": svm.svc(gram, y, ones),
        "svc, own C": svm.svc(gram, y, np.linspace(0.1, 2.0, len(y))),
        "svc, squared": svm.svc_l2(gram, y, ones),
        "svr": svm.svr(gram, targets, ones, 0.1),
        "svr, squared": svm.svr_l2(gram, targets, ones, 0.1),
        "nu svc": svm.nu_svc(gram, y, ones, 0.8),
        "nu svr": svm.nu_svr(gram, targets, ones, 0.3),
        "one class": svm.one_class(factored(X + 2.0), ones, 0.2),
        "one class around the origin": svm.one_class(gram, ones, 0.2),
        "ball": svm.ball(gram, np.full(len(y), np.inf)),
    }


@pytest.mark.parametrize("name", problems(*two_classes(60, 3)))
def test_primal_and_dual_ways_agree(name):
    X, y = two_classes(120, 5)
    problem = problems(X, y)[name]
    solution = run(InteriorPoint(), problem)
    b = solution.value.coef
    assert np.all(b >= problem.lower)
    assert np.all(b <= problem.upper)
    K = problem.gram @ np.eye(len(b))
    there = BoxQP(
        PrecomputedGram(K, None),
        problem.linear,
        problem.lower,
        problem.upper,
        problem.total,
        problem.epsilon,
        problem.group,
    )
    other = solve(there, SMO(tol=1e-9))
    np.testing.assert_allclose(K @ b, K @ other.value.coef, atol=1e-5 * (1 + np.abs(K @ b).max()))


@pytest.mark.parametrize("name", ["svc", "svc, squared", "svr", "nu svc"])
def test_descent_agrees_with_interior_point(name):
    X, y = two_classes(150, 4)
    problem = problems(X, y)[name]
    b = run(InteriorPoint(), problem).value.coef
    d = run(DualDescent(tol=1e-4, max_iter=200_000), problem).value.coef
    np.testing.assert_allclose(problem.gram @ b, problem.gram @ d, atol=5e-3)


def test_svr_is_that_of_libsvm():
    X, _ = two_classes()
    targets = X[:, 0] + 0.3 * np.sin(5 * X[:, 1])
    solution = run(InteriorPoint(), svm.svr(factored(X), targets, np.ones(len(X)), 0.1))
    theirs = sk.SVR(kernel="linear", C=1.0, epsilon=0.1, tol=1e-8).fit(X, targets)
    np.testing.assert_allclose(X.T @ solution.value.coef, theirs.coef_[0], atol=1e-5)
    assert solution.value.intercept == pytest.approx(theirs.intercept_[0], abs=1e-4)


def test_sparse_rows_are_rows():
    X, y = two_classes(300, 8)
    X[np.abs(X) < 0.8] = 0.0
    for solver in SOLVERS:
        found = []
        for rows in (X, sparse.csr_array(X)):
            found.append(run(solver, svm.svc(factored(rows), y, np.ones(len(y)))))
        f = [X @ (X.T @ s.value.coef) + s.value.intercept for s in found]
        np.testing.assert_allclose(f[0], f[1], atol=2e-3)


def test_weights_are_repetition():
    X, y = two_classes(80, 3)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    once = run(InteriorPoint(), svm.svc(factored(X), y, 0.7 * times))
    again = np.repeat(np.arange(len(y)), times)
    often = run(InteriorPoint(), svm.svc(factored(X[again]), y[again], np.full(len(again), 0.7)))
    np.testing.assert_allclose(X.T @ once.value.coef, X[again].T @ often.value.coef, atol=1e-7)


def test_parts_of_a_gram():
    X, y = two_classes(200, 4)
    index = np.flatnonzero(np.arange(200) % 3)
    C = np.ones(len(index))
    part = run(InteriorPoint(), svm.svc(PartGram(factored(X), index), y[index], C))
    copy = run(InteriorPoint(), svm.svc(factored(X[index]), y[index], C))
    np.testing.assert_allclose(
        X[index].T @ part.value.coef, X[index].T @ copy.value.coef, atol=1e-7
    )


def test_screening_keeps_the_answer_exact():
    X, y = two_classes(40_000, 5)  # two samples before the whole
    problem = svm.svc(factored(X), y, np.ones(len(y)))
    solution = run(InteriorPoint(criterion=Gap(), tol=1e-9), problem)
    q = certify(problem, solution.value).quantities
    assert q.violation <= 1e-7
    assert q.relative_gap <= 1e-9
    assert abs(solution.value.coef.sum()) <= 1e-12 * np.abs(solution.value.coef).sum()


# --- hard data -------------------------------------------------------------------------------


def hard_data():
    X, y = two_classes(300, 4, seed=3)
    return {
        "unscaled": (X * np.array([1e-3, 1.0, 1e3, 1e-1]), y),
        "far from the origin": (X + 100.0, y),
        "equal columns": (np.column_stack([X, X, X]), y),
        "constant column": (np.column_stack([X, np.full(len(X), 3.0)]), y),
        "zero column": (np.column_stack([X, np.zeros(len(X))]), y),
        "equal rows": (np.tile(X[:20], (15, 1)), np.tile(y[:20], 15)),
        "opposite labels on equal rows": (np.tile(X[:150], (2, 1)), np.repeat([1.0, -1.0], 150)),
        "more columns than rows": (np.random.default_rng(0).standard_normal((30, 90)), y[:30]),
        "one of a class": (X, np.where(np.arange(len(X)) == 7, 1.0, -1.0)),
        "whole numbers": (np.round(X), y),
        "no features": (np.zeros((len(X), 1)), y),
    }


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
def test_hard_data(name, C):
    X, y = hard_data()[name]
    run(InteriorPoint(), svm.svc(factored(X), y, np.full(len(y), C)))
    run(InteriorPoint(), svm.svc_l2(factored(X), y, np.full(len(y), C)))


def test_hard_margin_is_the_widest():
    X = np.array([[0.0, 0.0], [-1.0, 1.0], [2.0, 0.0], [3.0, 5.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    for solver in SOLVERS:
        solution = run(solver, svm.svc(factored(X), y, np.full(4, np.inf)))
        np.testing.assert_allclose(X.T @ solution.value.coef, [1.0, 0.0], atol=2e-3)
        assert solution.value.intercept == pytest.approx(-1.0, abs=2e-3)


def test_what_cannot_be_separated_is_said_to_be():
    X, y = two_classes(200, 3)
    problem = svm.svc(factored(X), y, np.full(len(y), np.inf))
    for solver in (InteriorPoint(), DualDescent()):
        solution = solver.run(problem, Watch())
        assert not solution.status.ok
        assert np.isfinite(solution.value.coef).all()
    assert InteriorPoint().run(problem, Watch()).status is Status.INFEASIBLE


# --- how it is chosen ------------------------------------------------------------------------


def test_need_of_box_programmes():
    X, _ = two_classes(1200, 6)
    assert isinstance(make_gram(Linear(), X, Need.BOX), FactoredGram)
    assert isinstance(make_gram(Polynomial(2), X, Need.BOX), FactoredGram)
    assert isinstance(make_gram(Gaussian(1.0), X, Need.BOX), DenseGram)
    assert isinstance(make_gram(Linear(), X[:500], Need.BOX), DenseGram)  # K is small
    rows = np.zeros((30_001, 1))
    assert isinstance(make_gram(Gaussian(1.0), rows, Need.BOX), LazyGram)
    text = sparse.random_array((40_000, 50_000), density=1e-5, format="csr", rng=0)
    gram = make_gram(Linear(), text, Need.BOX)
    assert isinstance(gram, FactoredGram)
    assert sparse.issparse(gram.factor)


def test_the_door_chooses():
    X, y = two_classes(200, 3)
    assert solve(svm.svc(factored(X), y, np.ones(200))).solver == "InteriorPoint"
    wide = sparse.random_array((300, 3000), density=0.01, format="csr", rng=0)
    sides = np.where(np.arange(300) % 2, 1.0, -1.0)
    assert solve(svm.svc(factored(wide), sides, np.ones(300))).solver == "DualDescent"


def test_refusals():
    X, y = two_classes(50, 2)
    for solver in SOLVERS:
        assert "feature map" in solver.refuses(svm.svc(stored(X), y, np.ones(50)))
        problem = svm.svc(factored(X), np.ones(50), np.ones(50))
        assert solver.refuses(problem) is None  # one class only: b = 0
        impossible = BoxQP(factored(X), y, np.zeros(50), np.zeros(50), 1.0)
        with pytest.raises(SolverError, match="infeasible"):
            solve(impossible, solver)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_conformance(solver):
    X, y = two_classes(150, 4)
    check_solver(solver, svm.svc(factored(X), y, np.full(len(y), 0.5)))


# --- every run ends --------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_callback_and_time_limit(solver):
    X, y = two_classes(5000, 20)
    problem = svm.svc(factored(X), y, np.full(len(y), 10.0))
    for watch, status in (
        (Watch(callback=lambda p: p.iteration >= 2), Status.STOPPED),
        (Watch(time_limit=1e-6), Status.TIME_LIMIT),
    ):
        solution = solver.run(problem, watch)
        assert solution.status is status
        assert np.isfinite(solution.value.coef).all()
        assert not certify(problem, solution.value).quantities.infeasibility > 1e-9


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_ctrl_c(solver):
    X, y = two_classes(300_000, 60)
    problem = svm.svc(factored(X), y, np.full(len(y), 1e4))
    # sent by a timer of processor time, which other programs on the same cores do not change
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    started = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_PROF, 0.5)
            while time.process_time() - started < 20:
                solver.run(problem, Watch())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert time.process_time() - started < 5


# --- the verbs of the backend ----------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 7, 50, 300])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_products_with_features(width, rows):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((max(rows, 3), width))
    index = rng.integers(0, len(F), rows)
    group = rng.integers(-1, 2, rows).astype(np.int8)
    weight, centre = rng.random(rows) * (rng.random(rows) < 0.7), rng.standard_normal(width)
    mine, spec = choose_backend().features(F, index), Reference().features(F, index)
    w, x = rng.standard_normal(width), rng.standard_normal(rows)
    np.testing.assert_allclose(mine.matvec(w), F[index] @ w, atol=1e-11)
    np.testing.assert_allclose(mine.rmatvec(x), F[index].T @ x, atol=1e-11)
    A = np.column_stack([F[index] - centre, group == 0, group == 1])
    expected = A.T @ (weight[:, None] * A)
    for rows_of in (mine, spec):
        np.testing.assert_allclose(rows_of.gram(weight, centre, group, 2), expected, atol=1e-9)
    thin = Reference().features(sparse.csr_array(F), index)
    zero = np.zeros(width)
    np.testing.assert_allclose(
        thin.gram(weight, zero, group, 2), spec.gram(weight, zero, group, 2), atol=1e-9
    )


def test_descents_of_both_backends():
    X, y = two_classes(60, 3)
    nothing = np.zeros(60)
    box = FeatureBox(
        y,
        np.where(y < 0, -1.0, 0.0),
        np.where(y > 0, 1.0, 0.0),
        np.zeros(60, np.int8),
        np.zeros(1),
        nothing,
        np.zeros(1),
    )
    found = [
        backend.features(F, None).descend(box, 1e-5, 100_000, None)
        for backend in (choose_backend(), Reference())
        for F in (X, sparse.csr_array(X))
    ]
    for answer in found:
        assert answer.violation <= 1e-5
        np.testing.assert_allclose(X.T @ answer.b, X.T @ found[0].b, atol=1e-3)
        np.testing.assert_allclose(answer.offsets, found[0].offsets, atol=1e-3)
