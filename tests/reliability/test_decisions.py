"""Nothing is left to rounding: a change of a few units in the last place changes no status.

Another processor sums in another order, which changes results by as much. In every case the exact
solution is on an edge: a rank, a zero, a tie.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import cross_decomposition

from mercer.blocks import ArrayBlocks
from mercer.compat import sklearn as compat
from mercer.gram import PrecomputedGram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.machines import FisherDiscriminant, KernelRidge, LogisticRegression
from mercer.problems import DeformedKernel, Discriminant
from mercer.solvers import CholeskyDiscriminant, ConjugateGradient, Status, solve

pytestmark = pytest.mark.numerics

SEEDS = range(20)
P = Precomputed()


def moved(A, seed, symmetric=False):
    """Change entries by up to two units in the last place; the first seed changes nothing."""
    units = np.random.default_rng(seed).integers(-2, 3, A.shape)
    if symmetric:
        units = np.triu(units) + np.triu(units, 1).T
    return A if seed == 0 else A + units * np.spacing(np.abs(A))


def outcome(fit):
    """Return the status and the kind of result, or the exception and its message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            solution = fit()
        except Exception as error:
            return type(error), str(error)
    solution = getattr(solution, "solution_", solution)
    values = getattr(solution.value, "values", None)
    return solution.status, type(solution.value), None if values is None else values.shape


def the_only(fit):
    """Return the outcome that all perturbations share."""
    found = {outcome(lambda seed=seed: fit(seed)) for seed in SEEDS}
    assert len(found) == 1, found
    return found.pop()


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def alternating(n, classes=2):
    return np.arange(n) % classes


def waves(n):
    return np.sin(1.7 * np.arange(n))


# --- definiteness ------------------------------------------------------------------------------

A = random(30, 30) + random(30, 30).T
DISTANCES = np.abs(random(30, 1) - random(30))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", [1e-8, 0.1, 5.0])
@pytest.mark.parametrize(
    "K", [A, -(DISTANCES + DISTANCES.T), np.round(3 * random(30, 2) @ random(30, 2).T)]
)
def test_fisher_solves_indefinite_problems(K, penalty, classes):
    labels = alternating(30, classes)
    machine = FisherDiscriminant(P, penalty=penalty)
    status, _, shape = the_only(lambda seed: machine.fit(moved(K, seed, True), labels))
    assert status is Status.NOT_CONVEX
    assert shape == (classes - 1,)


def discriminant(K, penalty):
    n = len(K)
    labels = alternating(n)
    shares = np.bincount(labels) / n
    return Discriminant(PrecomputedGram(K), labels, np.full(n, 1 / n), shares, penalty, 1)


def test_directions_of_the_nearest_matrix_are_those_of_features():
    """K+ is F F' here; new rows are compared by K itself."""
    U = np.linalg.qr(random(40, 40))[0]
    eigenvalues = np.concatenate([np.linspace(1, 3, 6), -np.linspace(0.5, 2, 6), np.zeros(28)])
    K, F = (U * eigenvalues) @ U.T, U[:, :6] * np.sqrt(eigenvalues[:6])
    K = (K + K.T) / 2
    found = solve(discriminant(K, 1e-3), CholeskyDiscriminant(), warn=False)
    true = solve(discriminant(F @ F.T, 1e-3), warn=False)
    assert found.status is Status.NOT_CONVEX
    assert_allclose(found.value.values, true.value.values, rtol=1e-9)
    assert_allclose(np.abs(K @ found.value.coef), np.abs(F @ (F.T @ true.value.coef)), atol=1e-9)


@pytest.mark.parametrize("penalty", [1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13])
def test_fisher_says_that_rounding_swallows_a_penalty(penalty):
    """Not whether a factor happens to exist, of K of low rank and far from zero."""
    F = random(30, 2) + 3
    error, message = the_only(lambda seed: solve(discriminant(moved(F @ F.T, seed, True), penalty)))
    assert error is np.linalg.LinAlgError
    assert "use a larger penalty" in message


@pytest.mark.parametrize("scale", [1e6, 1e10])
def test_conjugate_gradients_do_not_take_rounding_for_negative_curvature(scale):
    F = random(30, 3)
    K = scale * F @ F.T
    machine = KernelRidge(1e-9, P, solver=ConjugateGradient(rank=0, max_iter=100))
    for seed in SEEDS:
        assert outcome(lambda seed=seed: machine.fit(moved(K, seed, True), waves(30)))[0] in (
            Status.INACCURATE,  # both: not as accurate as asked
            Status.ITERATION_LIMIT,
        )


def test_conjugate_gradients_see_negative_curvature():
    machine = KernelRidge(1e-9, P, solver=ConjugateGradient(rank=0))
    found = the_only(lambda seed: machine.fit(moved(A, seed, True), waves(30)))
    assert found[0] is Status.NOT_CONVEX


@pytest.mark.parametrize("scale", [1e17, 1e20])
def test_a_deformed_kernel_beside_which_the_identity_is_lost(scale):
    X = random(12, 2)
    K = scale * Gaussian(1.0)(X)
    W = np.exp(-np.square(X[:, None] - X[None]).sum(-1))
    np.fill_diagonal(W, 0.0)

    def fit(seed):
        gram = PrecomputedGram(moved(K, seed, True))
        return solve(DeformedKernel(gram, W, 1.0, np.arange(4)))

    assert the_only(fit)[0] is Status.SINGULAR


# --- rank --------------------------------------------------------------------------------------


def dependent(n, offset):
    X = random(n, 3) + offset * np.array([1.3, 0.7, 1.0])
    X[:, 2] = X[:, :2] @ [0.6, -1.1]
    return X


def with_a_constant(n, constant):
    X = random(n, 3)
    X[:, 2] = constant
    return X


EDGES = [(dependent, n, offset) for n in (6, 50, 500) for offset in (0, 30, 1e3, 1e5)]
CONSTANTS = (0.1, 1.7, 333.3, 1e4 / 3, 1e6 / 3)
EDGES += [(with_a_constant, n, constant) for n in (6, 50, 500) for constant in CONSTANTS]


@pytest.mark.parametrize(("make", "n", "size"), EDGES)
def test_dependent_columns_without_a_penalty(make, n, size):
    X = make(n, size)
    ridge = KernelRidge(0.0)
    assert the_only(lambda seed: ridge.fit(moved(X, seed), waves(n)))[0] is Status.SINGULAR
    logistic = LogisticRegression(Linear(), penalty=0.0)
    error, message = the_only(lambda seed: logistic.fit(moved(X, seed), alternating(n)))
    assert error is ValueError
    assert "have rank 3" in message
    fisher = FisherDiscriminant(penalty=0.0)
    error, message = the_only(lambda seed: fisher.fit(moved(X, seed), alternating(n)))
    assert error is np.linalg.LinAlgError
    assert "not positive definite" in message


@pytest.mark.parametrize(("make", "n", "size"), [edge for edge in EDGES if edge[1] > 6])
def test_dependent_columns_over_blocks(make, n, size):
    X = make(n, size)

    def fit(machine, y):
        return lambda seed: machine.fit(ArrayBlocks(moved(X, seed), y, rows=n // 4))

    assert the_only(fit(KernelRidge(0.0), waves(n)))[0] is Status.SINGULAR
    found = the_only(fit(FisherDiscriminant(penalty=0.0), alternating(n)))
    assert found[0] is np.linalg.LinAlgError


def test_small_columns_next_to_large_ones_count():
    X = random(50, 3) * [1.0, 1e-4, 1e2] + [0.0, 0.0, 1e6]
    machine = KernelRidge(0.0)
    assert the_only(lambda seed: machine.fit(moved(X, seed), waves(50)))[0] is Status.SOLVED


@pytest.mark.parametrize("offset", [0.0, 5.1, 300.0])
def test_a_class_without_a_covariance(offset):
    n, labels = 60, alternating(60, 3)
    X = random(n, 2) + offset
    X[labels == 1] = random(n, 1)[labels == 1] * [1.0, 0.7] + offset  # on a line
    machine = FisherDiscriminant(penalty=0.0, rule="mahalanobis")
    error, message = the_only(lambda seed: machine.fit(moved(X, seed), labels))
    assert error is ValueError
    assert "covariance of each class" in message
    blocks = the_only(lambda seed: machine.fit(ArrayBlocks(moved(X, seed), labels, rows=20)))
    assert blocks[0] is ValueError


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear()])
def test_classes_of_equal_means(kernel):
    X = random(40, 3) + 2
    both, labels = np.vstack([X, X[::-1]]), np.repeat([0, 1], 40)
    machine = FisherDiscriminant(kernel)
    error, message = the_only(lambda seed: machine.fit(moved(both, seed), labels))
    assert issubclass(error, ValueError)
    assert "equal means" in message


# --- ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [530, 741, 0, 1])
@pytest.mark.parametrize("count", [1, 2])
def test_perfect_correlations_have_the_scores_of_scikit_learn(draw, count):
    chance = np.random.RandomState(draw)
    X, Y = chance.randn(4, 3), chance.randn(4, 2)
    theirs = cross_decomposition.CCA(count).fit_transform(X, Y)
    for seed in SEEDS:
        ours = compat.CCA(count).fit_transform(moved(X, seed), moved(Y, seed + 100))
        for found, true in zip(ours, theirs, strict=True):
            assert_allclose(found, true, atol=1e-6)


def test_some_perfect_correlations_among_others():
    X = random(30, 4)
    Y = np.column_stack([X[:, 0] + 2 * X[:, 2], X[:, 1] - X[:, 3], waves(30)])
    plain, scaled = compat.CCA(3), compat.CCA(3)
    for seed in SEEDS:
        found = plain.fit_transform(moved(X, seed), moved(Y, seed + 100))
        again = scaled.fit_transform(3 * X, Y)
        for one, other in zip(found, again, strict=True):
            assert_allclose(one, other, atol=1e-6)
