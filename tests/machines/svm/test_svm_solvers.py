"""Support vector solvers against an independent QP solver, LIBSVM, and one another."""

import dataclasses
import warnings

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as libsvm
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer.backends.box_programs import Box
from mercer.certificates import certify
from mercer.gram import (
    DenseGram,
    LazyGram,
    Need,
    PartGram,
    PrecomputedGram,
    ShiftedGram,
    Source,
    exact,
    make_gram,
)
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from mercer.machines.svm import active_set_newton, subset_descent
from mercer.machines.svm import problem as svm
from mercer.machines.svm.active_set_newton import newton
from mercer.machines.svm.descent import Violation
from mercer.problems import Dual, Duals, Many
from mercer.solvers import SMO, Each, Gap, SolverError, Status, WorkingSets, solve
from mercer.solvers.dispatch import choose
from mercer.testing import check_solver

KINDS = ["svc", "svc_l2", "nu_svc", "svr", "svr_l2", "nu_svr", "one_class", "ball"]


def gaussian(X, scale=1.0, dtype=np.float64, gram=DenseGram):
    return gram(Source(Gaussian(scale).expression(), X, dtype))


def random_problem(seed, dtype=np.float64, gram=DenseGram):
    """Return one of the machines on a random small set, with random weights."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 50)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = [1, -1]
    held = gaussian(X, float(rng.uniform(0.5, 3)), dtype, gram)
    if seed % 3 and gram is DenseGram:
        held = PrecomputedGram((Linear() if seed % 3 == 1 else Polynomial(2))(X).astype(dtype))
    C = 10.0 ** rng.uniform(-2, 3) * rng.integers(1, 4, n)
    t, eps = 2 * X[:, 0] + rng.standard_normal(n), float(rng.choice([0, 0.05, 0.3]))
    w, nu = rng.integers(1, 4, n).astype(float), float(rng.uniform(0.05, 0.95))
    most = 2 * min(w[y > 0].sum(), w[y < 0].sum()) / w.sum()
    soft = np.full(n, [np.inf, 2 / n, 0.3][int(rng.integers(3))])
    return {
        "svc": lambda: svm.svc(held, y, C),
        "svc_l2": lambda: svm.svc_l2(held, y, C),
        "nu_svc": lambda: svm.nu_svc(held, y, w, nu * most),
        "svr": lambda: svm.svr(held, t, C, eps),
        "svr_l2": lambda: svm.svr_l2(held, t, C, eps),
        "nu_svr": lambda: svm.nu_svr(held, t, C, nu),
        "one_class": lambda: svm.one_class(held, w, nu),
        "ball": lambda: svm.ball(held, soft),
    }[KINDS[seed % 8]]()


def solved(problem):
    """Solve; that classes meet at some nu is news, but no failure."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SMO: no margin at this nu", ConvergenceWarning)
        return solve(problem)


def objective(problem, b):
    Kb = exact(problem.gram) @ b
    return 0.5 * b @ Kb - problem.linear @ b + problem.epsilons @ np.abs(b)


def optimum(problem):
    """Return the smallest objective by a general interior point method, and whether it is sure.

    Where |b| has a price, b = u - v.
    """
    K, n = np.asarray(exact(problem.gram).dense(), dtype=float), len(problem.linear)
    P, q, eye, sums = K, -problem.linear, np.eye(n), np.zeros((len(problem.totals), n))
    for g, m in enumerate(problem.members()):
        sums[g, m] = 1.0
    upper, lower = problem.upper, problem.lower
    if problem.epsilons.any():
        P, sums, eye = np.block([[K, -K], [-K, K]]), np.hstack([sums, -sums]), np.eye(2 * n)
        q = np.concatenate([problem.epsilons - problem.linear, problem.epsilons + problem.linear])
        upper, lower = np.concatenate([upper, -lower]), np.zeros(2 * n)
    above, below = np.isfinite(upper), np.isfinite(lower)
    A = np.vstack([sums, eye[above], -eye[below]])
    right = np.concatenate([problem.totals, upper[above], -lower[below]])
    cones = [clarabel.ZeroConeT(len(sums)), clarabel.NonnegativeConeT(len(A) - len(sums))]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    parts = sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), right, cones, options
    answer = clarabel.DefaultSolver(*parts).solve()
    return answer.obj_val, str(answer.status) == "Solved"


# --- against others --------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_two_hundred_random_problems_reach_the_optimum(block, dtype):
    sure = 0
    for seed in range(25 * block, 25 * block + 25):
        problem = random_problem(seed, dtype)
        solution = solved(problem)
        answer = solution.value
        judged = certify(problem, answer)
        best, known = optimum(problem)
        none = solution.status is Status.NO_MARGIN
        assert judged.ok != none, f"{seed}: {judged}"
        zero = 1e16 * np.finfo(dtype).eps * problem.least_objective(answer.coef)
        assert not none or abs(best) <= zero, seed
        slack = 1e-8 * abs(best) + 1e-7 + (zero if none else 0.0)
        above = objective(problem, answer.coef) - best
        assert above <= judged.quantities.gap + slack, seed
        assert above >= -slack or not known, seed
        sure += known
    assert sure >= 20


@pytest.mark.parametrize("seed", range(0, 40))
def test_never_above_libsvm(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 120))
    X, w = rng.standard_normal((n, 3)), rng.integers(1, 4, n).astype(float)
    C, gamma = 10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(-1, 0.5)
    gram = gaussian(X, float(np.sqrt(0.5 / gamma)), np.float32)
    if seed % 2:
        y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
        y[:2] = [1, -1]
        theirs = libsvm.SVC(C=C, gamma=gamma).fit(X, y, w)
        problem = svm.svc(gram, y, C * w)
    else:
        t = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(n)
        theirs = libsvm.SVR(C=C, gamma=gamma, epsilon=0.1).fit(X, t, w)
        problem = svm.svr(gram, t, C * w, 0.1)
    coef = np.zeros(n)
    coef[theirs.support_] = theirs.dual_coef_[0]
    # their bounds and sums are met to rounding, their float32 rows to less than 1e-3
    assert certify(problem, Dual(coef, float(theirs.intercept_[0])), 5e-3).ok
    ours = solve(problem)
    rival = objective(problem, coef)
    assert ours.status is Status.SOLVED
    assert objective(problem, ours.value.coef) <= rival + 1e-3 * abs(rival)
    fine = solve(problem, SMO(tol=1e-6)).value
    assert objective(problem, fine.coef) <= rival + 1e-9 * abs(rival)


# --- the last digits -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 3, 6, 9, 12, 15, 27, 36, 39, 45, 51, 63])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gap_of_one_in_a_billion(seed, dtype):
    problem = random_problem(seed, dtype)
    solution = solve(problem, SMO(tol=1e-9, criterion=Gap()))
    q = certify(problem, solution.value).quantities
    assert solution.status is Status.SOLVED
    assert q.relative_gap <= 2e-9 and q.infeasibility <= 1e-9


def test_newton_from_far_away_goes_down_or_gives_up():
    for seed in range(24):
        problem = random_problem(3 * seed)
        b = problem.feasible_near(np.zeros(len(problem.linear)))
        F = problem.linear - problem.gram @ b
        found = newton(problem, b, F, Gap(), 0.0)
        if found is not None:
            assert np.isfinite(found.b).all()
            assert (found.b >= problem.lower).all() and (found.b <= problem.upper).all()
            assert objective(problem, found.b) <= objective(problem, b) + 1e-9


def test_newton_brings_a_variable_back_from_its_bound():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2))
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(60)
    problem = svm.svr(gaussian(X, 1.0), t, np.full(60, 5.0), 0.1)
    best = solve(problem, SMO(tol=1e-10, criterion=Gap())).value.coef
    inside = np.flatnonzero((np.abs(best) > 1e-6) & (np.abs(best) < 5 - 1e-6))
    found = 0
    for i in inside[best[inside] > 0]:
        for j in inside[best[inside] < 0]:
            b = best.copy()
            missing = min(problem.upper[i] - b[i], b[j] - problem.lower[j])
            b[[i, j]] += [missing, -missing]  # one of both is at its bound now
            step = active_set_newton._step(problem, b, problem.linear - problem.gram @ b)
            if step is not None:
                found += 1
                assert (b * (b + step) >= 0).all()  # no side of zero changes within a step
                assert objective(problem, b + step) < objective(problem, b)
    assert found > 10  # one, where what is at a bound was taken across zero


def hard_for_float32():
    """Columns of zeros and ones with a few far outliers: float32 distances lose digits."""
    rng = np.random.default_rng(2)
    X = np.hstack([rng.standard_normal((700, 6)), (rng.random((700, 20)) < 0.01) * 15.0])
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(700) > 0, 1.0, -1.0)
    return X, y


def test_a_matrix_in_float32_is_refined_to_the_truth():
    X, y = hard_for_float32()
    problem = svm.svc(gaussian(X, 3.0, np.float32), y, np.full(700, 1e4))
    raw = mercer.backends.choose_backend().box_qps(
        problem.gram.dense(),
        [Box(problem.linear, np.zeros(700), problem.lower, problem.upper)],
        9e-4,
        10**7,
        None,
    )[0]
    F = problem.linear - exact(problem.gram) @ raw.b
    assert problem.violation(raw.b, F) > 1e-3  # what the matrix says is not what the points say
    solution = solve(problem)
    assert solution.status is Status.SOLVED
    assert certify(problem, solution.value).quantities.violation <= 1e-3
    finer = solve(problem, SMO(tol=1e-6))
    assert certify(problem, finer.value, 1e-6).ok


# --- hard margins, kernels that are none -----------------------------------------------------


def separable(n=80):
    X = np.random.default_rng(1).standard_normal((n, 2))
    return X, np.where(X[:, 0] > 0, 1.0, -1.0)


def test_a_hard_margin_that_exists_is_found():
    X, y = separable()
    for gram in (gaussian(X, 1.0), PrecomputedGram(X @ X.T)):
        problem = svm.svc(gram, y, np.full(80, np.inf))
        solution = solve(problem, SMO(tol=1e-6))
        q = certify(problem, solution.value).quantities
        assert solution.status is Status.SOLVED and q.rescaled_gap < 1e-4
        soft = svm.svc(gram, y, np.full(80, 1e7))
        assert q.dual == pytest.approx(-objective(soft, solve(soft, SMO(tol=1e-6)).value.coef))


def test_no_hard_margin_is_said_so():
    X, y = separable()
    twice, both = np.vstack([X, X[:1]]), np.append(y, -y[0])
    none = np.full(81, np.inf)
    cases = [
        svm.svc(gaussian(twice), both, none),
        svm.svc_l2(gaussian(twice), both, none),
        svm.svc(PrecomputedGram(twice @ twice.T), both, none),
        svm.svr(PrecomputedGram(twice @ twice.T), twice[:, 0] ** 2, none, 0.01),
        svm.svc(gaussian(twice, gram=LazyGram), both, none),
    ]
    for problem in cases:
        with pytest.warns(ConvergenceWarning, match="without slack"):
            solution = solve(problem)
        assert solution.status is Status.INFEASIBLE
        assert np.isfinite(solution.value.coef).all()


def test_an_invalid_kernel_is_named_with_its_curvature():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 60))
    problem = svm.svc(PrecomputedGram(A + A.T), np.where(A[0] > 0, 1.0, -1.0), np.ones(60))
    with pytest.warns(ConvergenceWarning, match="curvature -"):
        solution = solve(problem, SMO(max_iter=100_000))
    assert solution.status is Status.NOT_CONVEX and "curvature" in solution.detail


# --- families --------------------------------------------------------------------------------


def three_classes(gram=DenseGram, dtype=np.float64):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 2))
    labels = (np.arctan2(X[:, 0], X[:, 1]) + 0.4 * rng.standard_normal(150) > 0).astype(int)
    labels[:50] = 2
    held = gaussian(X, 1.0, dtype, gram)
    parts = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        index = np.flatnonzero((labels == a) | (labels == b))
        signs = np.where(labels[index] == a, 1.0, -1.0)
        parts.append(svm.svc(PartGram(held, index), signs, np.full(len(index), 10.0)))
    return Many(tuple(parts))


@pytest.mark.parametrize("gram", [DenseGram, LazyGram])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_family_is_answered_as_its_members_are(gram, dtype):
    family = three_classes(gram, dtype)
    solution = solve(family)
    assert solution.status is Status.SOLVED and certify(family, solution.value).ok
    for problem, dual in zip(family.problems, solution.value.parts, strict=True):
        alone = solve(problem).value
        scale = abs(objective(problem, alone.coef))
        gap = objective(problem, dual.coef) - objective(problem, alone.coef)
        assert abs(gap) < 1e-3 * scale


def test_a_family_conforms():
    check_solver(SMO(), three_classes())
    check_solver(WorkingSets(), three_classes(LazyGram))
    check_solver(Each(SMO()), three_classes())


def test_programmes_on_different_grams_are_answered_one_by_one():
    a, b = three_classes().problems[0], three_classes().problems[1]
    family = Many((a, b))
    assert "do not share" in SMO().refuses(family)
    assert choose(family) == Each(SMO())
    assert certify(family, solve(family).value).ok
    with pytest.raises(SolverError, match="no programme"):
        solve(Many(()))


def test_a_family_says_which_member_went_wrong():
    X, y = separable(40)
    gram = gaussian(np.vstack([X, X[:1]]))
    good = svm.svc(gram, np.append(y, y[0]), np.ones(41))
    bad = svm.svc(gram, np.append(y, -y[0]), np.full(41, np.inf))
    with pytest.warns(ConvergenceWarning, match="1 of 2 programmes, number 1 first"):
        solution = solve(Many((good, bad)))
    assert solution.status is Status.INFEASIBLE
    assert certify(good, solution.value.parts[0]).ok


# --- a matrix that is not stored -------------------------------------------------------------


def lazily(problem):
    def unstored(gram):
        if isinstance(gram, ShiftedGram):
            return ShiftedGram(unstored(gram.base), gram.shift)
        if isinstance(gram, PartGram):
            return PartGram(unstored(gram.base), gram.index)
        return LazyGram(gram.source)

    return dataclasses.replace(problem, gram=unstored(problem.gram))


ROUTES = {
    "sets of all rows": {"_LEAST_SAMPLED": 1000, "_ENOUGH": np.inf},
    "a sample, then all rows": {"_LEAST_SAMPLED": 8, "_ENTRIES_PER_PART": 0.0},
    "few points at once": {"_LEAST_SAMPLED": 8, "_ENTRIES_PER_PART": 0.0, "_AT_ONCE": 24},
    "all of K stored at once": {"_LEAST_SAMPLED": 1, "_ENTRIES_PER_PART": np.inf},
    "all of K stored after a sample": {"_LEAST_SAMPLED": 8, "_ENTRIES_PER_PART": 0.0, "_MANY": 0.0},
    "all of K stored after some sets": {"_LEAST_SAMPLED": 1000, "_ENOUGH": 0.3},
}
UNSTORED = ("a sample, then all rows", "few points at once")


@pytest.fixture(params=list(ROUTES))
def small_sets(request, monkeypatch):
    """Make sets so small that problems of fifty rows need many of them, on each route."""
    sizes = {"DIRECT": 8, "SMALLEST": 6, "FIRST": 8, "LEAST_FIRST": 2, "LEAST_JOINING": 4}
    for name, size in (sizes | {"SAMPLED": 4, "ONE_IN": 3}).items():
        monkeypatch.setattr(subset_descent, name, size)
    for name, value in ({"_AT_ONCE": 1} | ROUTES[request.param]).items():
        monkeypatch.setattr(subset_descent, name, value)
    if request.param in UNSTORED:
        monkeypatch.setattr(subset_descent.Sets, "_fits", lambda self, parts: False)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_working_sets_equal_the_stored_matrix(small_sets, dtype):
    for seed in range(0, 72, 3):
        problem = random_problem(seed, dtype)
        unstored = lazily(problem)
        assert choose(unstored) == WorkingSets()
        solution = solve(unstored)
        judged = certify(unstored, solution.value)
        assert solution.status is Status.SOLVED and judged.ok, f"{seed}: {judged}"
        stored = objective(problem, solve(problem, SMO(tol=1e-6)).value.coef)
        above = objective(problem, solution.value.coef) - stored
        assert above <= judged.quantities.gap + 1e-9 * abs(stored) + 1e-12, seed


def test_working_sets_reach_a_tiny_gap(small_sets):
    problem = lazily(random_problem(3, np.float32))
    solution = solve(problem, WorkingSets(tol=1e-9, criterion=Gap()))
    assert certify(problem, solution.value).quantities.relative_gap <= 2e-9


def test_working_sets_conform_and_refuse(small_sets):
    problem = random_problem(0)
    check_solver(WorkingSets(), lazily(problem))
    assert "use SMO()" in WorkingSets().refuses(problem)
    assert "not Violation" in WorkingSets().refuses(Violation())


def test_working_sets_end_when_asked(small_sets):
    problem = lazily(random_problem(24))
    for option in ({"time_limit": 1e-9}, {"callback": lambda progress: True}):
        with pytest.warns(ConvergenceWarning):
            solution = solve(problem, WorkingSets(tol=1e-12), **option)
        assert solution.status in (Status.TIME_LIMIT, Status.STOPPED)
        assert certify(problem, solution.value).quantities.infeasibility < 1e-9
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        solve(problem, WorkingSets(tol=1e-9, max_iter=3))


def test_progress_counts_all_rounds():
    seen = []
    problem = svm.svc(
        gaussian(hard_for_float32()[0], 3.0, np.float32), hard_for_float32()[1], np.full(700, 1e4)
    )
    solution = solve(problem, callback=lambda progress: seen.append(progress.iteration))
    assert seen == sorted(seen) and seen[-1] <= solution.iterations


@pytest.mark.parametrize("kernel", ["callable", "strings"])
def test_kernels_in_python_and_on_strings_need_no_matrix(kernel, small_sets):
    rng = np.random.default_rng(4)
    if kernel == "strings":
        X = np.array(["".join(rng.choice(list("abc"), 12)) for _ in range(60)], dtype=object)
        source = Source(Spectrum(2).normalized().expression(), X)
        signs = np.where([x.count("a") > 4 for x in X], 1.0, -1.0)
    else:
        from mercer.kernels import resolve

        X = rng.standard_normal((60, 2))
        kernel = resolve(lambda A, B: np.exp(-np.abs(A[:, None] - B).sum(-1)), X)
        source, signs = Source(kernel.expression(), X), np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = svm.svc(LazyGram(source), signs, np.full(60, 2.0))
    assert certify(problem, solve(problem).value).ok


def test_holding_an_exact_gram_for_later_costs_nothing():
    X = np.random.default_rng(0).standard_normal((20_000, 100))
    gram = DenseGram(Source(Gaussian(1.0).expression(), X[:50]))
    gram.source = Source(Gaussian(1.0).expression(), X)
    assert "_pairs" not in vars(exact(gram))


def test_a_wide_box_does_not_fool_the_certificate():
    signs = np.array([1.0, -1.0])
    problem = svm.svc(PrecomputedGram(np.eye(2)), signs, np.full(2, 1e10))
    assert certify(problem, Dual(signs, 0.0)).ok
    assert not certify(problem, Dual(5 * signs, 0.0)).ok


def test_the_worst_relative_gap_of_a_family_counts():
    signs = np.array([1.0, -1.0])
    gram = PrecomputedGram(np.eye(2))
    family = Many(tuple(svm.svc(gram, signs, np.full(2, C)) for C in (1.0, 1e-5)))
    answer = Duals((Dual(signs, 0.0), Dual(0 * signs, 0.0)))
    assert certify(family, answer).quantities.relative_gap == 1.0


def test_a_relative_gap_is_asked_of_tubes_that_cancel():
    X = np.random.default_rng(3).standard_normal((30, 3)) * 20
    targets = np.random.default_rng(4).standard_normal(30)
    gram = make_gram(Polynomial(2, 1.0), X, Need.ROWS)
    problem = svm.nu_svr(gram, targets, np.full(30, 1e5), 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve(problem, SMO(tol=1e-4, criterion=Gap(), max_iter=100_000))
    found = certify(problem, solution.value).quantities.relative_gap
    assert solution.status is not Status.SOLVED or found <= 2e-4


def test_a_descent_goes_on_while_it_gains():
    # the violation stays where it is for very long while the objective falls
    rng = np.random.default_rng(0)
    X = 300 * rng.standard_normal((60, 3))
    signs = np.where(X[:, 0] + 150 * rng.standard_normal(60) > 0, 1.0, -1.0)
    problem = svm.svc(make_gram(Linear(), X, Need.ROWS), signs, np.full(60, 100.0))
    assert solve(problem, SMO()).status is Status.SOLVED


@pytest.mark.parametrize("seed", [0, 3])
def test_many_pairs_of_classes_in_float32_are_checked_before_they_are_solved(seed):
    draw = np.random.default_rng(seed)
    codes, spreads = np.repeat(np.arange(26), 45), draw.normal(7, 1.5, (26, 16))
    noise = draw.normal(0, 1, (len(codes), 16)) * draw.uniform(0.5, 2.5, 26)[codes][:, None]
    grades = np.clip(np.round(spreads[codes] + noise), 0, 15)
    machine = mercer.SVC(Gaussian(60.0), C=1e5).fit(grades, codes)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
