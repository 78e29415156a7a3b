"""No optimum is certified where the kernel matrix is not shown to be positive semidefinite."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import certify
from mercer.expression import Dot, Expression
from mercer.gram import (
    CenteredGram,
    Need,
    PartGram,
    PrecomputedGram,
    ScaledGram,
    ShiftedGram,
    SparseGram,
    definite,
    definiteness,
    make_gram,
)
from mercer.kernels import (
    FromCallable,
    FromFeatures,
    Gaussian,
    Intersection,
    Kernel,
    Linear,
    Precomputed,
    Sigmoid,
    Spectrum,
    Subsequence,
    exp,
)
from mercer.kernels.algebra import is_proven
from mercer.machines import (
    CCA,
    PCA,
    SVC,
    SVR,
    EnclosingBall,
    FisherDiscriminant,
    KernelRidge,
    KMeans,
    LogisticRegression,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    Perceptron,
    SpectralClustering,
)
from mercer.machines.svm import problem as svm
from mercer.problems import Correlation, KernelCombination, Separation
from mercer.solvers import Status, solve

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
n = 50
A = rng.standard_normal((n, n))
A = (A + A.T) / 2
X = rng.standard_normal((n, 4))
y = (X[:, 0] + 0.3 * rng.standard_normal(n) > 0).astype(int)
three = np.arange(n) % 3
t = X[:, 0] + 0.1 * rng.standard_normal(n)
VALID = Gaussian(1.5)(X)
P = Precomputed()

MACHINES = {
    "SVC": (SVC, y),
    "SVC by its gap": (lambda k: SVC(k, criterion="gap"), y),
    "SVC of three classes": (SVC, three),
    "SVR": (SVR, t),
    "OneClassSVM": (OneClassSVM, None),
    "EnclosingBall": (EnclosingBall, None),
    "KernelRidge": (lambda k: KernelRidge(1.0, kernel=k), t),
    "KernelRidge, hidden": (lambda k: KernelRidge(100.0, kernel=k), t),
    "KernelRidge, loo": (lambda k: KernelRidge("loo", kernel=k), t),
    "LogisticRegression": (LogisticRegression, y),
    "LogisticRegression, tanh": (lambda k: LogisticRegression(k, loss="tanh"), y),
    "FisherDiscriminant": (lambda k: FisherDiscriminant(k, penalty=5.0), y),
    "KMeans": (lambda k: KMeans(3, k), None),
    "NearestMean": (NearestMean, y),
    "NearestNeighbors": (lambda k: NearestNeighbors(kernel=k), y),
    "Perceptron": (lambda k: Perceptron(k, max_epochs=20), y),
}
OPTIMISERS = [name for name in MACHINES if name.startswith(("SV", "One", "Encl", "Kern", "Log"))]


def fitted(name, kernel, rows):
    make, targets = MACHINES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = make(kernel)
        return machine.fit(rows) if targets is None else machine.fit(rows, targets)


# --- machines --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_an_indefinite_matrix_is_not_certified(name):
    machine = fitted(name, P, A)
    found = machine.certificate_
    assert not found.ok
    assert "not positive semidefinite" in found.statement
    assert "optimum" not in found.statement
    assert "-" not in found.statement.split("within")[-1] or "within" not in found.statement


@pytest.mark.parametrize("name", [name for name in MACHINES if name != "Perceptron"])
def test_the_status_says_that_the_kernel_is_none(name):
    assert fitted(name, P, A).solution_.status is Status.NOT_CONVEX


@pytest.mark.parametrize(
    "kernels", [(Sigmoid(0.5, -1.0), Linear()), (Linear(), Sigmoid(0.5, -1.0))]
)
def test_an_indefinite_view_is_said_to_be_one(kernels):
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        machine = CCA(2, *kernels).fit(X, X[:, ::-1] + rng.standard_normal(X.shape))
    assert machine.solution_.status is Status.NOT_CONVEX
    assert np.isinf(machine.certificate_.quantities.indefiniteness)


def test_a_perceptron_that_ends_is_not_solved_without_lengths():
    K = np.outer(2 * y - 1, 2 * y - 1) - 1e-3 * np.diag(np.arange(n) % 2)  # apart, and no kernel
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        machine = Perceptron(P, max_epochs=100).fit(K, y)
    assert machine.solution_.status is Status.NOT_CONVEX


def test_what_a_solver_of_equations_cannot_see_is_warned_about():
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        machine = KernelRidge(100.0, kernel=P).fit(A, t)
    assert machine.certificate_.quantities.relative_residual < 1e-6


@pytest.mark.parametrize("name", ["SVC", "SVR", "LogisticRegression", "KernelRidge"])
@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(1.0, -1.0), FromCallable(lambda X, Y: -(X @ Y.T)), Gaussian() + Sigmoid(3.0, -2.0)],
    ids=["sigmoid", "function", "sum"],
)
def test_other_ways_to_an_indefinite_kernel(name, kernel):
    assert not fitted(name, kernel, X).certificate_.ok


@pytest.mark.parametrize("name", [name for name in MACHINES if name != "Perceptron"])
def test_a_valid_matrix_is_certified(name):
    assert fitted(name, P, VALID).certificate_.ok


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize(
    "matrix",
    [
        VALID.astype(np.float32),
        VALID.astype(np.float32).astype(np.float64),
        VALID - VALID.mean(axis=0) - VALID.mean(axis=1)[:, None] + VALID.mean(),
        X @ X.T,
        1e-150 * VALID,
    ],
    ids=["float32", "rounded to float32", "centred", "of rank four", "tiny"],
)
def test_rounding_is_no_reason_against_a_kernel(name, matrix):
    machine = fitted(name, P, matrix)
    q = machine.certificate_.quantities
    assert q.indefiniteness < 1e-5 * np.abs(matrix).max()
    assert "positive semidefinite" not in machine.certificate_.statement


@pytest.mark.parametrize("seed", range(20))
def test_one_negative_eigenvalue_is_enough(seed):
    """However small beside the others, if vectors of sum zero see it: only these matter."""
    draw = np.random.default_rng(seed)
    U = np.linalg.qr(draw.standard_normal((30, 30)))[0]
    values = np.append(draw.uniform(0.1, 1, 29), -(10.0 ** draw.uniform(-4, 0)))
    K = (U * values) @ U.T
    K, H = (K + K.T) / 2, np.eye(30) - 1 / 30
    matters = np.linalg.eigvalsh(H @ K @ H)[0] < -1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = SVC(P, C=10.0).fit(K, np.arange(30) % 2).certificate_
        ridge = KernelRidge(1.0, kernel=P).fit(K, draw.standard_normal(30)).certificate_
    assert found.ok is not matters
    assert not ridge.ok, "of ridge coefficients no sum is fixed"


# what the certificate refuses, the ending must not call solved
@pytest.mark.filterwarnings("ignore:Perceptron. .*not certified")
def test_perceptron_without_lengths_has_no_bound():
    signs = np.where(y == 1, 1.0, -1.0)
    K = np.outer(signs, signs)
    assert Perceptron(P).fit(K, y).certificate_.ok
    K[0, 0] = -0.5
    found = Perceptron(P).fit(K, y).certificate_
    assert not found.ok
    assert found.quantities.bound == np.inf


@pytest.mark.filterwarnings("ignore:CCA. .*not certified")
def test_correlations_of_an_indefinite_view_are_no_cosines():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = CCA(kernel_x=P, kernel_y=P, n_components=1, penalty=0.5).fit(VALID, X @ X.T)
        bad = CCA(kernel_x=P, kernel_y=P, n_components=1, penalty=0.5).fit(VALID, A + 4 * np.eye(n))
    assert good.certificate_.ok
    assert not bad.certificate_.ok
    assert "positive semidefinite" in bad.certificate_.statement


def test_eigenpairs_of_an_indefinite_matrix_explain_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = PCA(2, kernel=P).fit(A).certificate_
        graph = SpectralClustering(3, kernel=P).fit(np.abs(A)).certificate_
    assert found.ok, "they are eigenpairs"
    assert "explain" not in found.statement
    assert "explain" not in graph.statement
    assert "explain" in PCA(2, kernel=Gaussian(1.0)).fit(X).certificate_.statement


def test_kernels_that_are_conditionally_definite_have_an_optimum():
    """Answers of one sum differ by vectors of sum zero, on which -|x - y|^2 is a kernel."""
    distances = -np.square(X[:, None] - X[None]).sum(-1)
    problem = svm.svc(PrecomputedGram(distances), np.where(y == 1, 1.0, -1.0), np.full(n, 2.0))
    same = svm.svc(PrecomputedGram(2 * X @ X.T), np.where(y == 1, 1.0, -1.0), np.full(n, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = solve(problem).value
    found = certify(problem, value)
    assert found.ok
    assert found.quantities.primal == pytest.approx(
        certify(same, solve(same).value).quantities.primal, 1e-3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not KernelRidge(kernel=P).fit(distances, t).certificate_.ok, "ridge has no such sum"


def test_a_combination_needs_kernels():
    signs = np.where(y == 1, 1.0, -1.0)

    def question(gram):
        return svm.svc(gram, signs, np.full(n, 2.0))

    good = KernelCombination(tuple(map(PrecomputedGram, (VALID, X @ X.T))), np.ones(2), question)
    value = solve(good).value
    assert certify(good, value).ok
    bad = KernelCombination(tuple(map(PrecomputedGram, (VALID, A))), np.ones(2), question)
    assert not certify(bad, value).ok
    assert "positive semidefinite" in certify(bad, value).statement


def test_the_shift_is_counted_in_the_gap():
    K = X @ X.T
    problem = svm.svc(PrecomputedGram(K), np.where(y == 1, 1.0, -1.0), np.full(n, 2.0))
    value = solve(problem).value
    off = K - 1e-6 * np.eye(n)
    moved = svm.svc(PrecomputedGram(off), np.where(y == 1, 1.0, -1.0), np.full(n, 2.0))
    plain, wider = certify(problem, value).quantities, certify(moved, value).quantities
    assert wider.indefiniteness == pytest.approx(1e-6, rel=1e-3)
    assert wider.gap >= plain.gap + 0.5e-6 * value.coef @ value.coef
    assert np.isfinite(wider.gap)


# --- the test itself --------------------------------------------------------------------------


def test_wrappers_are_looked_through():
    assert definiteness(ShiftedGram(PrecomputedGram(A), 100.0)).seen < 0, "of K itself"
    assert definiteness(PartGram(PrecomputedGram(VALID), np.arange(5))).shown
    assert not definiteness(ScaledGram(PrecomputedGram(A), np.ones(n))).shown
    assert definiteness(CenteredGram(PrecomputedGram(VALID))).shown
    gram = make_gram(Gaussian(1.0), X, Need.MATRIX)
    repeated = PartGram(ShiftedGram(gram, 1.0), np.array([0, 0, 1]))
    assert definiteness(repeated) == definite.BY_CONSTRUCTION


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
@pytest.mark.parametrize("size", [40, 350])
def test_units_do_not_matter(scale, size):
    draw = np.random.default_rng(1)
    F = draw.standard_normal((size, 10))
    K = F @ F.T
    good = definiteness(PrecomputedGram(scale * K))
    assert good.shown
    assert good.shift <= 1e-9 * scale * K.max()
    K[0, 0] -= 2 * K[0, 0]
    bad = definiteness(PrecomputedGram(scale * K))
    assert not bad.shown
    assert bad.seen < 0


@pytest.mark.parametrize("size", [40, 350])
@pytest.mark.parametrize("negative", [1e-3, 1e-5])
def test_small_negative_eigenvalues_are_found(size, negative):
    U = np.linalg.qr(np.random.default_rng(2).standard_normal((size, size)))[0]
    values = np.linspace(0.5, 1.5, size)
    values[size // 2] = -negative * np.sqrt(size)
    K = (U * values) @ U.T
    assert not definiteness(PrecomputedGram((K + K.T) / 2)).shown
    values[size // 2] = 0.0
    K = (U * values) @ U.T
    assert definiteness(PrecomputedGram((K + K.T) / 2)).shown


@pytest.mark.filterwarnings("ignore:SVC. .*not certified")
def test_what_is_too_large_is_not_shown(monkeypatch):
    monkeypatch.setattr(definite, "PROVEN_ROWS", 30)
    found = definiteness(PrecomputedGram(VALID))
    assert not found.shown
    assert found.seen == 0
    assert "30 rows" in found.obstacle
    assert definiteness(PrecomputedGram(A)).seen < 0, "a few products show it"
    machine = SVC(P).fit(VALID, y)
    assert not machine.certificate_.ok
    assert "optimum" not in machine.certificate_.statement
    assert KernelRidge(kernel=P).fit(VALID, t).certificate_.ok, "equations are equations"
    function = make_gram(FromCallable(lambda X, Y: X @ Y.T), X, Need.PRODUCTS)
    assert not definiteness(function).shown


def test_memory_is_not_exceeded_for_a_proof():
    gram = PrecomputedGram(VALID)
    with mercer.config(memory="20 kB"):
        assert not definiteness(gram).shown
    assert definiteness(gram).shown


def test_sparse_matrices_and_overflow():
    from scipy import sparse

    assert definiteness(SparseGram(sparse.eye_array(20, format="csr"))).shown
    assert not definiteness(SparseGram(-sparse.eye_array(20, format="csr"))).shown
    huge = make_gram(FromCallable(lambda X, Y: X @ Y.T), X, Need.PRODUCTS)
    assert definiteness(huge).shown


@dataclass(frozen=True)
class Own(Kernel):
    """A formula of the user's own, which is no kernel."""

    def expression(self) -> Expression:
        return -1.0 * Dot()


def test_only_theorems_are_proof():
    proven = [Gaussian(), 2 * Linear() + 1, exp(Linear()), Spectrum(2), Subsequence(2)]
    proven += [Gaussian().on([0]).normalized() ** 2, Intersection(), FromFeatures(np.square)]
    assert all(map(is_proven, proven))
    believed = [Own(), Sigmoid(), FromCallable(np.dot), Own() + Gaussian(), P]
    assert not any(map(is_proven, believed))
    assert Own().psd, "so its author lets it say"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not SVC(Own()).fit(X, y).certificate_.ok


def test_kernels_with_a_theorem_cost_nothing(monkeypatch):
    def refuse(*_):
        raise AssertionError("there is nothing to look at")

    monkeypatch.setattr(definite, "_matrix", refuse)
    monkeypatch.setattr(definite, "_extremes", refuse)
    assert SVC(Gaussian(1.0)).fit(X, y).certificate_.ok
    words = ["aab", "aba", "bbb", "bab", "abb", "aaa"]
    assert SVC(Spectrum(2)).fit(words, [0, 0, 1, 1, 1, 0]).certificate_.ok
    problem = Separation(make_gram(Linear(), X, Need.PRODUCTS), (X[:, 0] > 0).astype(int), 2, True)
    assert certify(problem, solve(problem).value).ok
    views = [CenteredGram(make_gram(Gaussian(1.0), X, Need.MATRIX)) for _ in range(2)]
    problem = Correlation(*views, 1, (0.5, 0.5))
    assert certify(problem, solve(problem).value).ok
