import pickle
import time
import warnings

import numpy as np
import pytest
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer.certificates import certify
from mercer.gram import CenteredGram, Need, PrecomputedGram, make_gram
from mercer.kernels import Gaussian, Linear, Polynomial, Sigmoid
from mercer.machines.svm import problem as svm
from mercer.problems import BoxQP, Eigenproblem, LinearSystem, RidgePath
from mercer.solvers import (
    SMO,
    BandPath,
    Cholesky,
    CholeskyPath,
    ConjugateGradient,
    Eigh,
    Lanczos,
    Primal,
    PrimalPath,
    Solution,
    SolverError,
    Status,
    Watch,
    WorkingSets,
    solve,
)
from mercer.solvers.dispatch import choose
from mercer.testing import check_solver

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 5))
Y = rng.standard_normal((120, 2)) + X[:, :2]
WEIGHTS = rng.integers(1, 4, 120).astype(float)
GRAM = make_gram(Gaussian(1.5), X, Need.MATRIX)
FEATURES = make_gram(Polynomial(2), X, Need.PRODUCTS)
SIGNS = np.where(X[:, 0] + 0.3 * rng.standard_normal(120) > 0, 1.0, -1.0)


def ridge(gram, penalty=0.1, bias=True):
    return LinearSystem(gram, Y, np.broadcast_to(penalty, (2,)), WEIGHTS, bias)


def path(gram, bias=True, penalties=(1e-3, 0.1, 1.0, 10.0, 100.0)):
    return RidgePath(gram, Y, WEIGHTS, np.array(penalties), bias)


CASES = {
    "cholesky": (Cholesky(), ridge(GRAM)),
    "cholesky, no bias": (Cholesky(), ridge(GRAM, bias=False)),
    "cholesky, a penalty for each target": (Cholesky(), ridge(GRAM, np.array([0.1, 3.0]))),
    "conjugate gradient": (ConjugateGradient(), ridge(GRAM)),
    "conjugate gradient, diagonal": (ConjugateGradient(rank=0), ridge(GRAM, 1.0, False)),
    "primal": (Primal(), ridge(FEATURES)),
    "primal, tiny penalty": (Primal(), ridge(FEATURES, 1e-9)),
    "band path": (BandPath(width=8), path(GRAM)),
    "cholesky path": (CholeskyPath(), path(GRAM)),
    "primal path": (PrimalPath(), path(FEATURES)),
    "eigh": (Eigh(), Eigenproblem(CenteredGram(GRAM), 7)),
    "eigh of features": (Eigh(), Eigenproblem(FEATURES, 7)),
    "lanczos": (Lanczos(), Eigenproblem(CenteredGram(GRAM), 3)),
    "smo": (SMO(), svm.svc(GRAM, SIGNS, np.full(120, 5.0))),
    "smo, small C": (SMO(), svm.svc(GRAM, SIGNS, np.full(120, 1e-3))),
}


@pytest.mark.parametrize("name", CASES)
def test_conformance(name):
    solver, problem = CASES[name]
    check_solver(solver, problem)


def bordered(K, shift, y, bias):
    """Solve the ridge equations by one general elimination."""
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + np.diag(shift)
    A[:n, n] = A[n, :n] = 1.0 if bias else 0.0
    A[n, n] = 0.0 if bias else 1.0
    answer = np.linalg.solve(A, np.append(y, 0.0))
    return answer[:n], answer[n] if bias else 0.0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("solver", [Cholesky(), ConjugateGradient(tol=1e-12), Primal()])
def test_linear_system_equals_elimination(solver, bias):
    gram = FEATURES if isinstance(solver, Primal) else GRAM
    system = LinearSystem(gram, Y, np.array([0.5, 2.0]), WEIGHTS, bias)
    value = solver.run(system, Watch()).value
    for t, penalty in enumerate([0.5, 2.0]):
        a, b = bordered(gram.dense(), penalty / WEIGHTS, Y[:, t], bias)
        np.testing.assert_allclose(value.coef[:, t], a, atol=1e-8)
        np.testing.assert_allclose(value.intercept[t], b, atol=1e-8)


def refit_without(gram, i, weights, penalty, bias, t):
    """Return y_i - f_{-i}(x_i) by an actual refit with one copy of row i taken away."""
    K = gram.dense()
    less = weights.copy()
    less[i] -= min(1.0, less[i])
    kept = np.flatnonzero(less)
    a, b = bordered(K[np.ix_(kept, kept)], penalty / less[kept], Y[kept, t], bias)
    return Y[i, t] - K[i, kept] @ a - b


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weights", [np.ones(120), WEIGHTS, WEIGHTS / 5])
@pytest.mark.parametrize("solver", [BandPath(width=8), CholeskyPath(), PrimalPath()])
def test_leave_one_out_equals_refits(solver, weights, bias):
    gram = FEATURES if isinstance(solver, PrimalPath) else GRAM
    penalties = np.array([0.05, 1.0])
    value = solver.run(RidgePath(gram, Y, weights, penalties, bias), Watch()).value
    for t in range(2):
        refits = np.array(
            [[refit_without(gram, i, weights, p, bias, t) for i in range(120)] for p in penalties]
        )
        np.testing.assert_allclose(
            value.scores[:, t], refits**2 @ weights / weights.sum(), rtol=1e-8
        )
        np.testing.assert_allclose(
            value.residuals[:, t], refits[value.best[t]], rtol=1e-7, atol=1e-9
        )


@pytest.mark.parametrize("solver", [BandPath(width=8), CholeskyPath()])
def test_all_path_solvers_agree(solver):
    gram = PrecomputedGram(FEATURES.dense())
    ours = solver.run(path(gram), Watch()).value
    theirs = PrimalPath().run(path(FEATURES), Watch()).value
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-7)
    np.testing.assert_array_equal(ours.best, theirs.best)
    np.testing.assert_allclose(ours.coef, theirs.coef, atol=1e-7)


def test_ties_on_the_path_go_to_the_larger_penalty():
    problem = RidgePath(GRAM, np.zeros((120, 1)), np.ones(120), np.array([1.0, 7.0, 2.0]), True)
    assert solve(problem).value.best.tolist() == [1]


@pytest.mark.parametrize("k", [1, 4, 20])
def test_lanczos_equals_lapack(k):
    points = rng.standard_normal((400, 3))
    gram = CenteredGram(make_gram(Gaussian(1.0), points, Need.PRODUCTS))
    exact = np.linalg.eigvalsh(gram.dense())[::-1][:k]
    found = Lanczos(block=8).run(Eigenproblem(gram, k), Watch()).value
    np.testing.assert_allclose(found.values, exact, rtol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-11)


def test_lanczos_restarts_thickly():
    matrix = np.diag(np.concatenate([np.linspace(1.0, 1.01, 5), np.linspace(0, 0.995, 295)]))
    solver = Lanczos(block=2, max_iter=2000, tol=1e-9)
    solution = solver.run(Eigenproblem(PrecomputedGram(matrix), 5), Watch())
    assert solution.status is Status.SOLVED
    np.testing.assert_allclose(solution.value.values, np.linspace(1.01, 1.0, 5), rtol=1e-9)


def test_lanczos_with_repeated_and_zero_eigenvalues():
    Q = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    matrix = Q[:, :6] @ np.diag([3, 3, 3, 1, 1, 1.0]) @ Q[:, :6].T
    problem = Eigenproblem(PrecomputedGram((matrix + matrix.T) / 2), 8)
    check_solver(Lanczos(block=4), problem)
    values = solve(problem, Lanczos(block=4)).value.values
    np.testing.assert_allclose(values, [3, 3, 3, 1, 1, 1, 0, 0], atol=1e-9)


def test_lanczos_of_a_zero_matrix():
    check_solver(Lanczos(), Eigenproblem(PrecomputedGram(np.zeros((200, 200))), 2))


def test_smo_reaches_the_optimum_of_a_general_solver():
    from scipy.optimize import LinearConstraint, minimize

    n = 25
    gram = make_gram(Gaussian(1.0), X[:n], Need.ROWS)
    problem = svm.svc(gram, SIGNS[:n], np.full(n, 2.0))
    K = gram.dense()
    rival = minimize(
        lambda b: 0.5 * b @ K @ b - problem.linear @ b,
        np.zeros(n),
        jac=lambda b: K @ b - problem.linear,
        hess=lambda b: K,
        bounds=list(zip(problem.lower, problem.upper, strict=True)),
        constraints=LinearConstraint(np.ones((1, n)), 0, 0),
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 2000},
    )
    b = solve(problem, SMO(tol=1e-8)).value.coef
    assert 0.5 * b @ K @ b - problem.linear @ b <= rival.fun + 1e-7


def test_sets_on_cached_rows_equal_smo_on_the_matrix():
    upper = np.full(120, 3.0)
    stored = solve(svm.svc(GRAM, SIGNS, upper), SMO(tol=1e-6)).value
    with mercer.config(memory="20 kB"):
        gram = make_gram(Gaussian(1.5), X, Need.ROWS)
        with pytest.raises(mercer.SolverError, match="stored"):
            solve(svm.svc(gram, SIGNS, upper), SMO())
        cached = solve(svm.svc(gram, SIGNS, upper), WorkingSets(tol=1e-6)).value
    np.testing.assert_allclose(cached.coef, stored.coef, atol=1e-4)
    np.testing.assert_allclose(cached.intercept, stored.intercept, atol=1e-5)


def test_smo_warm_start_needs_fewer_steps():
    problem = svm.svc(GRAM, SIGNS, np.full(120, 5.0))
    cold = solve(problem, SMO(tol=1e-6))
    warm = solve(problem, SMO(tol=1e-6), start=cold.value)
    assert warm.iterations <= 1 < cold.iterations


def test_limits_end_with_a_usable_answer():
    problem = svm.svc(GRAM, SIGNS, np.full(120, 5.0))
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        limited = solve(problem, SMO(max_iter=3))
    assert limited.status is Status.ITERATION_LIMIT
    assert certify(problem, limited.value).quantities.infeasibility < 1e-12
    with pytest.warns(ConvergenceWarning, match="time limit"):
        slow = solve(ridge(GRAM, 1e-6), ConjugateGradient(rank=0, tol=1e-15), time_limit=1e-9)
    assert slow.status is Status.TIME_LIMIT


def test_callback_sees_progress_and_stops():
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 3

    with pytest.warns(ConvergenceWarning, match="callback"):
        solution = solve(ridge(GRAM, 1e-4), ConjugateGradient(rank=0), callback=stop)
    assert solution.status is Status.STOPPED
    assert [p.iteration for p in seen] == [1, 2, 3]
    assert seen == list(solution.trace)


def test_a_raising_callback_propagates():
    def fail(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solve(ridge(GRAM, 1e-4), ConjugateGradient(rank=0), callback=fail)


def test_singular_system_gets_least_norm_and_a_warning():
    doubled = np.vstack([X, X])
    gram = make_gram(Gaussian(1.5), doubled, Need.MATRIX)
    y = np.vstack([Y, Y])
    system = LinearSystem(gram, y, np.zeros(2), np.ones(240), False)
    with pytest.warns(linalg.LinAlgWarning, match="least norm"):
        solution = solve(system)
    assert solution.status is Status.SINGULAR
    expected = np.linalg.pinv(gram.dense(), rcond=1e-12, hermitian=True) @ y
    np.testing.assert_allclose(gram @ solution.value.coef, gram.dense() @ expected, atol=1e-6)
    np.testing.assert_allclose(solution.value.coef[:120], solution.value.coef[120:], atol=1e-4)


def test_unpenalised_features_are_least_squares():
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    value = solve(LinearSystem(gram, Y, np.zeros(2), np.ones(120), True)).value
    design = np.column_stack([X, np.ones(120)])
    expected = np.linalg.lstsq(design, Y, rcond=None)[0]
    np.testing.assert_allclose(X.T @ value.coef, expected[:-1], atol=1e-10)
    np.testing.assert_allclose(value.intercept, expected[-1], atol=1e-10)


def test_unpenalised_features_that_repeat_are_singular():
    gram = make_gram(Linear(), np.hstack([X, X]), Need.PRODUCTS)
    with pytest.warns(linalg.LinAlgWarning, match="least norm"):
        solution = solve(LinearSystem(gram, Y, np.zeros(2), np.ones(120), True))
    w = solution.value.weights
    np.testing.assert_allclose(w[:5], w[5:], atol=1e-10)


def test_a_start_from_another_box_is_brought_inside():
    wide = solve(svm.svc(GRAM, SIGNS, np.full(120, 50.0))).value
    problem = svm.svc(GRAM, SIGNS, np.full(120, 0.5))
    certificate = certify(problem, solve(problem, start=wide).value)
    assert certificate.ok and certificate.quantities.infeasibility < 1e-9


def test_conjugate_gradients_do_not_trust_their_own_residual():
    points = rng.standard_normal((300, 3))
    gram = make_gram(Gaussian(3.0), points, Need.MATRIX)
    y = (points @ [1.0, 2.0, 3.0])[:, None]
    system = LinearSystem(gram, y, np.array([1e-12]), np.ones(300), True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(system, ConjugateGradient())
    true = np.linalg.norm(
        system.residual(solution.value, gram @ solution.value.coef)
    ) / np.linalg.norm(y)
    assert solution.status is not Status.SOLVED or true < 1e-6


def test_conjugate_gradients_on_an_invalid_kernel_say_so():
    gram = make_gram(Sigmoid(1.0, -1.0), 1.5 * X, Need.MATRIX)
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        solve(ridge(gram, 1e-3), ConjugateGradient())


def test_lanczos_finds_all_copies_of_an_eigenvalue():
    points = np.arange(1000.0)[:, None] * 100
    points[980:] = points[:20]  # twenty pairs of equal points, far from all others
    problem = Eigenproblem(make_gram(Gaussian(1.0), points, Need.PRODUCTS), 20)
    solution = solve(problem, Lanczos())
    np.testing.assert_allclose(solution.value.values, 2.0, rtol=1e-9)
    assert certify(problem, solution.value).ok


def test_more_pairs_than_features():
    problem = Eigenproblem(make_gram(Linear(), X, Need.PRODUCTS), 8)
    values = solve(problem).value.values
    assert len(values) == 8
    np.testing.assert_allclose(values[5:], 0.0, atol=1e-10)
    with pytest.raises(ValueError, match="count=0"):
        Eigenproblem(GRAM, 0)


def test_an_indefinite_kernel_ends_and_says_so():
    K = rng.standard_normal((60, 60))
    problem = svm.svc(PrecomputedGram(K + K.T), SIGNS[:60], np.full(60, 1.0))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(problem, SMO(max_iter=100_000))
    assert time.process_time() - started < 20
    assert solution.status in (Status.NOT_CONVEX, Status.ITERATION_LIMIT, Status.SOLVED)
    assert np.isfinite(solution.value.coef).all()
    sigmoid = make_gram(Sigmoid(5.0, -1.0), X, Need.ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(solve(svm.svc(sigmoid, SIGNS, np.full(120, 1.0))).value.coef).all()


def test_refusals_are_sentences():
    with pytest.raises(SolverError, match="LinearSystem problems, not Eigenproblem"):
        solve(Eigenproblem(GRAM, 2), Cholesky())
    with pytest.raises(SolverError, match="positive penalty"):
        solve(ridge(GRAM, 0.0), ConjugateGradient())
    with pytest.raises(SolverError, match="few of many"):
        solve(Eigenproblem(GRAM, 100), Lanczos())
    impossible = BoxQP(GRAM, SIGNS, np.zeros(120), np.ones(120), total=-1.0)
    with pytest.raises(SolverError, match="infeasible"):
        solve(impossible)


def test_the_choice_of_algorithm():
    assert choose(ridge(GRAM)) == Cholesky()
    assert choose(ridge(FEATURES)) == Primal()
    assert choose(path(GRAM)) == BandPath()
    assert choose(path(GRAM, penalties=(1.0,))) == CholeskyPath()
    assert choose(path(FEATURES)) == PrimalPath()
    assert choose(Eigenproblem(GRAM, 2)) == Eigh()
    with mercer.config(memory="100 kB"):
        lazy = make_gram(Gaussian(1.0), X, Need.PRODUCTS)
    assert isinstance(choose(ridge(lazy)), ConjugateGradient)
    big = make_gram(Gaussian(1.0), rng.standard_normal((700, 2)), Need.PRODUCTS)
    assert choose(Eigenproblem(big, 3)) == Lanczos()
    with pytest.raises(TypeError, match="no solver"):
        choose(object())


def test_feasible_start_meets_the_sum():
    problem = BoxQP(GRAM, SIGNS, np.full(120, -1.0), np.full(120, 2.0), total=30.0)
    start = problem.feasible_near(np.zeros(120))
    assert start.sum() == pytest.approx(30.0)
    assert (start >= problem.lower).all() and (start <= problem.upper).all()
    check_solver(SMO(), problem)


def test_solutions_of_earlier_pickles_are_read():
    solution = Solution(None, Status.SOLVED, 1, 0.0, "one")
    held = vars(solution).copy()  # what 0.8 wrote
    again = object.__new__(Solution)
    again.__setstate__(held)
    assert again.status is Status.SOLVED
    assert pickle.loads(pickle.dumps(solution)).status is Status.SOLVED


def test_least_norm_with_weights_at_the_end_of_the_range():
    K = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])  # of rank one
    y, s = np.array([[1.0], [2.5], [2.0]]), np.array([1.0, 3.0, 2.0])
    near = LinearSystem(PrecomputedGram(K), y, np.zeros(1), s, True)
    far = LinearSystem(PrecomputedGram(K * 2.0**980), y, np.zeros(1), s * 2.0**500, True)
    with pytest.warns(linalg.LinAlgWarning, match="least norm"):
        expected, found = solve(near).value, solve(far).value
    np.testing.assert_allclose(found.coef * 2.0**980, expected.coef, rtol=1e-9)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-9)
