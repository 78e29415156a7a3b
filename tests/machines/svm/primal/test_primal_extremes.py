"""Box programmes in the space of the features on data that is hard on numbers: never a wrong word.

Weights from 10^-8 to 10^7 in one problem, features from 10^-2 to 10^3, columns that repeat, groups
whose sums leave nothing free. Whatever comes out is inside its box, has its sums, and is what the
certificate says if the solver calls it solved.
"""

import numpy as np
import pytest

from mercer.gram import FactoredGram, exact
from mercer.machines.svm import problem as svm
from mercer.machines.svm.primal.barrier import Saddle
from mercer.problems import BoxQP
from mercer.solvers import DualDescent, InteriorPoint, Status, Watch, solve

pytestmark = pytest.mark.numerics

DATA = ("plain", "doubled", "constant", "wide", "rare", "far", "uneven", "zero", "repeated")


def data(name, scale, rng):
    n, d = (40, 100) if name == "wide" else (int(rng.choice([5, 60, 400])), int(rng.choice([1, 6])))
    X = rng.standard_normal((n, d))
    changed = {
        "doubled": lambda: np.column_stack([X, X]),
        "constant": lambda: np.column_stack([X, np.full(n, 3.0)]),
        "far": lambda: X + 50.0,
        "uneven": lambda: X * 10.0 ** rng.uniform(-2, 2, d),
        "zero": lambda: 0.0 * X,
        "repeated": lambda: X[rng.integers(0, max(2, n // 10), n)],
    }
    X = scale * changed.get(name, lambda: X)()
    y = np.where(X[:, 0] - X[:, 0].mean() + scale * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if name == "rare":
        y = np.where(np.arange(n) == 0, 1.0, -1.0)
    return X, y, X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(n)


def problems(X, y, t, C, rng):
    gram, n = FactoredGram(lambda Z: Z, X), len(y)
    ones, endless = np.ones(n), np.full(n, np.inf)
    most = 2 * min(np.sum(y > 0), np.sum(y < 0)) / n
    with np.errstate(invalid="ignore"):  # endless prices of rows of length zero
        hard = svm.svc(gram, y, endless), svm.svr(gram, t, endless, 0.1)
    machines = {
        "svc": svm.svc(gram, y, C),
        "svc, squared": svm.svc_l2(gram, y, C),
        "svr": svm.svr(gram, t, C, 0.1),
        "svr, squared": svm.svr_l2(gram, t, C, 0.1),
        "svr, no tube": svm.svr(gram, t, C, 0.0),
        "ridge": svm.svr_l2(gram, t, C, 0.0),
        "constant targets": svm.svr_l2(gram, np.full(n, 2.5), C, 0.1),
        "some weigh nothing": svm.svc_l2(gram, y, C * (rng.random(n) < 0.7)),
        "nu svc": svm.nu_svc(gram, y, ones, most * rng.choice([0.1, 1.0])),
        "nu svr": svm.nu_svr(gram, t, C, rng.choice([0.1, 1.0])),
        "one class": svm.one_class(gram, ones, rng.choice([0.1, 1.0])),
        "ball": svm.ball(gram, endless),
        "hard": hard[0],
        "hard svr": hard[1],
    }
    for name in ("svc", "svc, squared", "svr"):
        p, none = machines[name], np.full(n, -1)
        machines[name + ", alone"] = BoxQP(
            p.gram, p.linear, p.lower, p.upper, np.zeros(0), p.epsilon, none
        )
    return machines


def residuals(problem, solution):
    """Return the answer and p - K b."""
    b = solution.value.coef
    return b, problem.linear - exact(problem.gram) @ b


def check(problem, solution, tol):
    b = solution.value.coef
    assert np.isfinite(b).all()
    assert np.all((b >= problem.lower) & (b <= problem.upper))
    for m, total in zip(problem.members(), problem.totals, strict=True):
        size = max(np.abs(b[m]).sum(), abs(total))
        assert abs(b[m].sum() - total) <= 1e-9 * size
    if solution.status.ok:
        assert problem.violation(b, problem.linear - exact(problem.gram) @ b) <= tol


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scale", [1e-2, 1.0, 30.0])
def test_solved_and_proven(name, scale):
    rng = np.random.default_rng(DATA.index(name))
    X, y, t = data(name, scale, rng)
    C = 10.0 ** rng.uniform(-3, 3)
    for weights in (np.full(len(y), C), np.where(y > 0, 1e3 * C, 1e-4 * C)):
        for kind, problem in problems(X, y, t, weights, rng).items():
            solution = InteriorPoint(tol=9e-4).run(problem, Watch())
            check(problem, solution, 1e-3)
            most = np.abs(solution.value.coef).sum() * (X * X).sum(axis=1).max()
            wanted = {Status.SOLVED} | ({Status.INFEASIBLE} if "hard" in kind else set())
            wanted |= (
                {Status.NO_MARGIN} if problem.marginless(*residuals(problem, solution)) else set()
            )
            if most < 1e11:  # beyond, sums that cancel leave no digit for 10^-3
                assert solution.status in wanted, (kind, solution.status)


@pytest.mark.parametrize("name", DATA)
def test_descents_stay_inside(name):
    rng = np.random.default_rng(1)
    X, y, t = data(name, 1.0, rng)
    for problem in problems(X, y, t, np.where(y > 0, 1e2, 1e-4), rng).values():
        check(problem, DualDescent(tol=9e-4, max_iter=200).run(problem, Watch()), 1e-3)


def test_what_nobody_can_separate_is_told_from_what_is_thin():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1e-4], [1.0, 1e-4]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    gram, endless = FactoredGram(lambda Z: Z, X), np.full(4, np.inf)
    thin = InteriorPoint().run(svm.svc(gram, y, endless), Watch())
    assert thin.status is Status.SOLVED
    np.testing.assert_allclose(X.T @ thin.value.coef, [0.0, 2e4], rtol=1e-6, atol=1e-3)
    crossed = InteriorPoint().run(svm.svc(gram, y[[0, 2, 3, 1]], endless), Watch())
    assert crossed.status is Status.INFEASIBLE


def test_saddle_with_dependent_rows():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 7))
    A = np.vstack([A, A[0] + A[1], 1e-8 * A[2]])
    H = np.diag([1.0] * 6 + [0.0])
    dv, dx = rng.standard_normal(7), rng.standard_normal(6)
    right, aims = H @ dv - A.T @ dx, A @ dv
    found, pulls = Saddle(H, A).solve(right, aims)
    np.testing.assert_allclose(A @ found, aims, atol=1e-9)
    np.testing.assert_allclose(H @ found - A.T @ pulls, right, atol=1e-9)


def test_rows_of_zeros_outside_any_sum_go_to_their_bound():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((40, 5))
    F[:3] = 0.0
    signs = np.where(F[:, 0] + 0.3 * rng.standard_normal(40) > 0, 1.0, -1.0)
    box = svm.svc(FactoredGram(lambda Z: Z, F), signs, np.full(40, 0.5))
    alone = np.full(40, -1)
    problem = BoxQP(box.gram, box.linear, box.lower, box.upper, np.zeros(0), 0.0, alone)
    solution = solve(problem, DualDescent(tol=1e-6))
    assert solution.status is Status.SOLVED
    np.testing.assert_array_equal(solution.value.coef[:3], 0.5 * signs[:3])
