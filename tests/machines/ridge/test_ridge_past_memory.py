"""Ridge with the full kernel past memory: every way against one elimination, on small budgets."""

import warnings

import numpy as np
import pytest

import mercer
from mercer import KernelRidge
from mercer.certificates import certify
from mercer.gram import LazyGram, Need, make_gram
from mercer.gram.evaluated import Source
from mercer.kernels import Gaussian
from mercer.machines.ridge import choice
from mercer.machines.ridge.conjugate_gradient import LowRankPreconditioner
from mercer.problems import LinearSystem
from mercer.resources import MemoryBudgetError
from mercer.solvers import (
    Cholesky,
    ConjugateGradient,
    SketchAndProject,
    SolverError,
    Status,
    Watch,
    solve,
)
from mercer.solvers.dispatch import choose
from mercer.testing import check_solver

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.standard_normal((300, 2))
WEIGHTS = rng.integers(1, 4, 300).astype(float)
WAYS = {
    "conjugate gradient": ConjugateGradient(rank=40),
    "diagonal alone": ConjugateGradient(rank=0),
    "projections": SketchAndProject(block=60),
}


def lazy(points=X, scale=1.0):
    return LazyGram(Source(Gaussian(scale).expression(), points, np.float64, True))


def system(gram, y=Y, penalties=(0.5, 2.0), weights=WEIGHTS, bias=True):
    return LinearSystem(gram, y, np.array(penalties), weights, bias)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", WAYS)
def test_every_way_equals_cholesky(name, bias):
    problem = system(lazy(), bias=bias)
    check_solver(WAYS[name], problem)
    found = solve(problem, WAYS[name]).value
    expected = solve(system(make_gram(Gaussian(1.0), X, Need.MATRIX), bias=bias), Cholesky()).value
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-5)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-5)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("points", "y"),
    [
        (X, 1e-150 * Y),
        (X, Y + 1e8),
        (X + 1e8, Y),
        (np.repeat(X[:100], 3, axis=0), Y),
        (np.zeros((300, 1)), Y),
        (X, np.ones((300, 2))),
    ],
    ids=["tiny", "offset", "far rows", "repeated rows", "equal rows", "constant"],
)
def test_solved_is_certified_at_hostile_scales(name, points, y):
    problem = system(lazy(points), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(problem, WAYS[name])
    assert solution.status is not Status.SOLVED or certify(problem, solution.value).ok


@pytest.mark.parametrize("name", WAYS)
def test_uneven_weights_and_one_row(name):
    weights = np.full(300, 1e-6)
    weights[7] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(system(lazy(), weights=weights), WAYS[name])
    problem = system(lazy(), weights=weights)
    assert solution.status is not Status.SOLVED or certify(problem, solution.value).ok
    check_solver(WAYS[name], system(lazy(X[:1]), Y[:1], weights=np.ones(1)))


def test_the_preconditioner_is_the_inverse_of_its_matrix():
    gram, shift = make_gram(Gaussian(1.0), X, Need.MATRIX), 0.1 + rng.random(300)
    rough = mercer.gram.pivoted_cholesky(gram, 30)
    P = rough.factor @ rough.factor.T + np.diag(shift)
    found = LowRankPreconditioner.of(gram, rough, shift)(np.eye(300))
    np.testing.assert_allclose(found @ P, np.eye(300), atol=1e-8)


def test_small_budgets_change_the_way_not_the_answer():
    expected = KernelRidge(0.5, kernel=Gaussian(1.0)).fit(X, Y).predict(X[:9])
    for solver in (None, SketchAndProject()):
        with mercer.config(memory="300 kB"):
            machine = KernelRidge(0.5, kernel=Gaussian(1.0), solver=solver).fit(X, Y)
        assert machine.certificate_.ok
        np.testing.assert_allclose(machine.predict(X[:9]), expected, atol=1e-5)


@pytest.mark.parametrize("name", WAYS)
def test_limits(name):
    hard = system(lazy(), penalties=(1e-6, 1e-6))
    solver = WAYS[name]
    assert solver.run(hard, Watch(lambda progress: True)).status is Status.STOPPED
    late = solver.run(hard, Watch(time_limit=1e-9))
    assert late.status is Status.TIME_LIMIT
    assert np.isfinite(late.value.coef).all()
    with pytest.raises(SolverError, match="positive penalty"):
        solve(system(lazy(), penalties=(0.0, 0.0)), solver)


def test_the_choice_follows_memory_and_time(monkeypatch):
    monkeypatch.setattr(choice, "_SMALL", 0)
    problem = system(lazy())
    assert isinstance(choose(problem), ConjugateGradient)
    with mercer.config(memory="100 kB"):
        assert isinstance(choose(problem), SketchAndProject)
    monkeypatch.setattr(choice, "_LONGEST", 0.0)
    with pytest.raises(MemoryBudgetError, match="hours here"):
        choose(problem)
    monkeypatch.setattr(choice, "_PRODUCTS", 1e12)
    with mercer.deadline.within(60.0, "test"):
        assert isinstance(choose(problem), SketchAndProject)


def test_options_from_before_warn_and_are_forgotten():
    with pytest.warns(FutureWarning, match="ConjugateGradient: block has no effect"):
        assert ConjugateGradient(block=50) == ConjugateGradient()
    with pytest.warns(FutureWarning, match="SketchAndProject: (rank|accelerate) has no effect"):
        assert SketchAndProject(rank=20, accelerate=True) == SketchAndProject()
