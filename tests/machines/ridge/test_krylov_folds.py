"""Ridge regression in subspaces: all penalties and folds at once equal dense solutions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from mercer.kernels import Gaussian, Laplacian
from mercer.machines.ridge import krylov_folds
from mercer.machines.ridge.folds import FoldSystem
from mercer.machines.ridge.krylov_folds import KrylovSubspace, ShiftedInverse, by_subspaces
from mercer.solvers import Status, Watch

pytestmark = pytest.mark.numerics

N = 700
PENALTIES = np.logspace(-4, 2, 13)


@pytest.fixture(autouse=True)
def nothing_is_cheaper(monkeypatch):
    """Few rows make cheap factors; here subspaces have to go on."""
    monkeypatch.setattr(krylov_folds, "_FACTOR", 1e-6)


def sample(n=N, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n) + 5.0


def weights_of(kind, n=N):
    s = np.random.default_rng(2).uniform(0.1, 2.0, n)
    s[30:60] = 0.0
    return s if kind else None


def folds_of(kind, n=N):
    rng = np.random.default_rng(4)
    if kind == "equal":
        return [train for train, _ in KFold(5, shuffle=True, random_state=0).split(np.zeros(n))]
    if kind == "unequal":
        return [rng.permutation(n)[:m] for m in (520, 600, 690)]
    return [rng.permutation(n)[:250], np.arange(n)]  # most rows left out, none


def dense(system, y, s, penalty):
    """Values at all rows by a solver that knows nothing of subspaces."""
    rows, K = system.rows, system.K
    s = np.ones(len(K)) if s is None else s
    C = K[np.ix_(rows, rows)] + penalty * np.diag(1 / s[rows])
    if system.along is None:
        return K[:, rows] @ np.linalg.solve(C, y[rows])
    m = len(rows)
    bordered = np.block([[C, np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    solved = np.linalg.solve(bordered, np.append(y[rows], 0.0))
    return K[:, rows] @ solved[:-1] + solved[-1]


def compare(systems, answers, y, s, penalties, atol=1e-6):
    for system, answer in zip(systems, answers, strict=True):
        for k in np.flatnonzero(answer.met):
            expected = dense(system, y, s, penalties[k])
            np.testing.assert_allclose(answer.values[:, k], expected, rtol=0, atol=atol)


@pytest.mark.sampled(5)
# narrow, between, smooth, nearly singular
@pytest.mark.parametrize("scale", [0.1, 0.7, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", ["equal", "unequal"])
def test_subspaces_give_dense_solutions(scale, bias, weighted, kind):
    X, y = sample()
    s, K = weights_of(weighted), Gaussian(scale)(X)
    systems = [FoldSystem.of(K, train, y, s, bias) for train in folds_of(kind)]
    answers = by_subspaces(systems, PENALTIES, Watch())[0]
    assert all(answer.met.all() for answer in answers)
    compare(systems, answers, y, s, PENALTIES)


@pytest.mark.parametrize("bias", [True, False])
def test_folds_of_few_rows(bias):
    X, y = sample()
    systems = [FoldSystem.of(Laplacian(1.0)(X), rows, y, None, bias) for rows in folds_of("few")]
    answers = by_subspaces(systems, PENALTIES, Watch())[0]
    assert all(answer.met[PENALTIES >= 0.1].all() for answer in answers)
    compare(systems, answers, y, None, PENALTIES)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_units_of_the_kernel_do_not_matter(factor):
    X, y = sample()
    K, penalties = factor * Gaussian(0.7)(X), factor * PENALTIES
    systems = [FoldSystem.of(K, train, y, None, True) for train in folds_of("equal")]
    answers = by_subspaces(systems, penalties, Watch())[0]
    assert all(answer.met.all() for answer in answers)
    compare(systems, answers, y, None, penalties)


@pytest.mark.parametrize(("least", "most"), [(-7, -4), (-9, 0)])
def test_penalties_beyond_float32_and_beyond_one_inverse(monkeypatch, least, most):
    X, y = sample(600)
    kinds = []

    class Noted(ShiftedInverse):
        def __init__(self, systems, shift, dtype):
            kinds.append(dtype)
            super().__init__(systems, shift, dtype)

    monkeypatch.setattr(krylov_folds, "ShiftedInverse", Noted)
    penalties, K = np.logspace(least, most, 25), Gaussian(0.7)(X)
    systems = [FoldSystem.of(K, train, y, None, False) for train in folds_of("equal", 600)]
    answers = by_subspaces(systems, penalties, Watch())[0]
    assert np.float64 in kinds
    assert np.mean([answer.met for answer in answers]) > 0.5
    # what residuals of 1e-9 can hide at such penalties
    compare(systems, answers, y, None, penalties, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_vectors_stay_orthogonal_whatever_the_last_bits(monkeypatch, seed):
    """Errors that each vector multiplied made the small matrices of the subspace indefinite."""
    chains = []

    class Noted(KrylovSubspace):
        def __init__(self, *given):
            super().__init__(*given)
            chains.append(self)

    monkeypatch.setattr(krylov_folds, "KrylovSubspace", Noted)
    X, y = sample(600)
    X = np.nextafter(X, np.random.default_rng(seed).choice([-np.inf, np.inf], X.shape))
    K, penalties = Gaussian(0.7)(X), np.logspace(-7, -4, 25)
    systems = [FoldSystem.of(K, train, y, None, False) for train in folds_of("equal", 600)]
    answers = by_subspaces(systems, penalties, Watch())[0]
    assert all(answer.met.all() for answer in answers)
    for chain in chains:
        basis = np.hstack([chain._V[:, : chain.size], chain._Z[:, : chain.width]])
        assert chain.width > 100
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), rtol=0, atol=1e-12)


def test_a_kernel_that_is_none_is_not_met():
    X, y = sample()
    K = Gaussian(0.7)(X) - 0.01 * np.eye(N)
    systems = [FoldSystem.of(K, train, y, None, True) for train in folds_of("equal")]
    answers = by_subspaces(systems, PENALTIES, Watch())[0]
    compare(systems, answers, y, None, PENALTIES)
    assert all(answer.met[PENALTIES > 1].all() for answer in answers)


def test_equal_rows_and_constant_kernels():
    X, y = sample()
    X = np.repeat(X[: N // 2], 2, axis=0)
    for K in (Gaussian(0.5)(X), np.ones((N, N)), np.eye(N)):
        systems = [FoldSystem.of(K, train, y, None, False) for train in folds_of("equal")]
        answers = by_subspaces(systems, PENALTIES, Watch())[0]
        assert all(answer.met.all() for answer in answers)
        compare(systems, answers, y, None, PENALTIES)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pole_inverts_every_fold(bias, dtype):
    X, y = sample(300)
    s, K = weights_of(True, 300), Gaussian(1.0)(X)
    systems = [FoldSystem.of(K, train, y, s, bias) for train in folds_of("equal", 300)]
    rng = np.random.default_rng(5)
    blocks = [system.project(rng.standard_normal((len(system.rows), 2))) for system in systems]
    unit = (s * K.diagonal()).max()
    solved = ShiftedInverse(systems, 0.1, dtype).solve(blocks)
    for system, block, found in zip(systems, blocks, solved, strict=True):
        again = (system.operate(system.values(found)) + 0.1 * found) / unit
        np.testing.assert_allclose(again, block, atol=1e-2 if dtype is np.float32 else 1e-9)


def test_residuals_in_the_subspace_are_those_of_the_equations(monkeypatch):
    X, y = sample()
    system = FoldSystem.of(Gaussian(0.7)(X), np.arange(600), y, None, True)
    chain = KrylovSubspace(system, PENALTIES, 60)
    for _ in range(20):
        chain.extend(system.values(chain.vector()[:, None])[:, 0])
    noted = chain.left.copy()
    chosen = np.arange(len(PENALTIES))
    np.testing.assert_allclose(np.linalg.norm(chain.residuals(chosen), axis=0), noted, rtol=1e-6)
    W = chain.fresh(system.project(np.random.default_rng(0).standard_normal((600, 4))))
    chain.widen(W, system.values(W))
    chain.residuals(chosen)
    told, seen = chain.left.copy(), []
    chain.enough = np.full(len(PENALTIES), 1e9)  # so that all are solved for, and none refined
    sizes = FoldSystem.sizes
    monkeypatch.setattr(
        FoldSystem, "sizes", lambda self, left: seen.append(sizes(self, left)) or seen[-1]
    )
    chain.fits(Watch())
    np.testing.assert_allclose(seen[0], told, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("asked", [1, 30, 75])
def test_the_search_can_be_left(asked):
    X, y = sample()
    systems = [FoldSystem.of(Gaussian(0.7)(X), np.arange(600), y, None, True)]
    watch = Watch(callback=lambda progress: progress.iteration >= asked)
    answers, passes = by_subspaces(systems, PENALTIES, watch)
    assert watch.stopped is Status.STOPPED and passes == asked
    assert not answers[0].met.all()
    compare(systems, answers, y, None, PENALTIES)  # what is said to be met is
