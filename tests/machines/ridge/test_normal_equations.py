"""Ridge by products with features: against closed forms, held or evaluated anew, many at once."""

import numpy as np
import pytest
from scipy import sparse

from mercer import KernelRidge, config
from mercer.approximation import Nystrom, RandomFeatures
from mercer.certificates import certify
from mercer.gram import FactoredGram, StreamedGram
from mercer.kernels import Gaussian, Linear
from mercer.machines.ridge import normal_equations
from mercer.problems import LinearSystem
from mercer.solvers import Primal, PrimalConjugateGradient, Status, solve
from mercer.solvers.dispatch import choose

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((700, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 5.0, X[:, 1] * X[:, 2]])
S = rng.uniform(0.1, 3.0, len(X))
PHI = Nystrom(40).of(Gaussian(1.0), X).phi
GRAM = StreamedGram(PHI, PHI, X)
EXACT = PrimalConjugateGradient(tol=1e-12)


def system(gram=GRAM, penalties=(1e-2, 1e-2), s=S, bias=True, targets=Y):
    return LinearSystem(gram, targets, np.asarray(penalties, dtype=float), s, bias)


def closed_form(F, y, s, penalty, bias):
    """Solve the normal equations with a column of ones that is not penalised."""
    A = np.column_stack([F, np.ones(len(F))]) if bias else F
    shift = np.full(A.shape[1], penalty)
    shift[F.shape[1] :] = 0.0
    w = np.linalg.solve((A.T * s) @ A + np.diag(shift), (A.T * s) @ y)
    return w[: F.shape[1]], w[-1] if bias else 0.0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sample", [60, 160, 700])
def test_closed_form(bias, sample):
    """Also where the first sample has hardly more rows than there are features."""
    solution = solve(system(bias=bias), PrimalConjugateGradient(tol=1e-11, sample=sample))
    assert solution.status is Status.SOLVED
    F = PHI(X)
    for t in range(2):
        w, b = closed_form(F, Y[:, t], S, 1e-2, bias)
        np.testing.assert_allclose(solution.value.weights[:, t], w, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(solution.value.intercept[t], b, atol=1e-7)
    certificate = certify(system(bias=bias), solution.value)
    assert certificate.ok, certificate
    assert certificate.quantities.relative_residual < 1e-9


def test_a_wrong_answer_is_not_certified():
    value = solve(system(), EXACT).value
    wrong = type(value)(value.coef, value.intercept, value.weights * (1 + 1e-4))
    assert not certify(system(), wrong).ok
    shifted = type(value)(value.coef, value.intercept + 1e-3, value.weights)
    assert not certify(system(), shifted).ok


def test_stored_streamed_and_written_out_give_one_answer(monkeypatch):
    written = solve(system(FactoredGram.of(PHI, PHI(X))), EXACT).value.weights
    used = []
    for fits, moved in [(True, np.inf), (True, 0.0), (False, 0.0)]:
        monkeypatch.setattr(normal_equations, "_fits", lambda gram, dtype, fits=fits: fits)
        monkeypatch.setattr(normal_equations, "_PRIMAL_GRADIENT_MOVED", moved)
        hold = StreamedGram.hold
        kinds = []
        monkeypatch.setattr(
            StreamedGram, "hold", lambda g, k, hold=hold, kinds=kinds: kinds.append(k) or hold(g, k)
        )
        found = solve(system(), PrimalConjugateGradient(tol=1e-11, sample=200)).value.weights
        monkeypatch.setattr(StreamedGram, "hold", hold)
        used.append(kinds)
        np.testing.assert_allclose(found, written, rtol=1e-6, atol=1e-8)
    assert used == [[np.float32], [np.float64], []]


def test_kernels_so_smooth_that_products_lose_their_digits(monkeypatch):
    """Float32 gives way to float64, and products with the inverse factor to features."""
    monkeypatch.setattr(normal_equations, "_PRIMAL_GRADIENT_MOVED", np.inf)
    phi = Nystrom(60).of(Gaussian(8.0), X).phi
    problem = system(StreamedGram(phi, phi, X), (1e-9, 1e-9))
    solution = solve(problem, PrimalConjugateGradient(sample=300))
    assert solution.status is Status.SOLVED
    assert certify(problem, solution.value).quantities.relative_residual < 1e-8


def test_many_targets_and_penalties_are_those_one_by_one():
    penalties = np.array([1e-3, 1.0])
    together = solve(system(penalties=penalties), EXACT).value
    for t, penalty in enumerate(penalties):
        alone = solve(system(penalties=[penalty], targets=Y[:, [t]]), EXACT).value
        np.testing.assert_allclose(together.weights[:, [t]], alone.weights, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(together.intercept[[t]], alone.intercept, atol=1e-8)


def test_weights_are_repetitions_and_the_order_of_rows_is_nothing():
    counts = rng.integers(1, 4, len(X))
    weighted = solve(system(s=counts.astype(float)), EXACT).value.weights
    index = rng.permutation(np.repeat(np.arange(len(X)), counts))
    repeated = LinearSystem(
        StreamedGram(PHI, PHI, X[index]), Y[index], np.full(2, 1e-2), np.ones(len(index)), True
    )
    np.testing.assert_allclose(solve(repeated, EXACT).value.weights, weighted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("size", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_hostile_scales_of_targets(size):
    solution = solve(system(targets=size * Y), PrimalConjugateGradient(sample=160))
    assert solution.status is Status.SOLVED
    assert certify(system(targets=size * Y), solution.value).ok


def test_targets_far_from_zero_and_all_weight_on_one_row():
    far = solve(system(targets=Y + 1e8), PrimalConjugateGradient(sample=160))
    near = solve(system(), EXACT)
    np.testing.assert_allclose(far.value.intercept - 1e8, near.value.intercept, atol=1e-5)
    s = np.full(len(X), 1e-12)
    s[3] = 1.0
    lone = solve(system(s=s), PrimalConjugateGradient(sample=160))
    assert certify(system(s=s), lone.value).ok
    np.testing.assert_allclose((PHI(X) @ lone.value.weights + lone.value.intercept)[3], Y[3])


def test_a_target_without_anything_to_learn():
    solution = solve(system(targets=np.ones_like(Y)), EXACT)
    np.testing.assert_allclose(solution.value.weights, 0.0, atol=1e-12)
    np.testing.assert_allclose(solution.value.intercept, 1.0)


def test_what_it_refuses_and_when_it_is_chosen():
    assert "dense features" in EXACT.refuses(system(object()))
    rows = sparse.csr_array(np.eye(5))
    thin = LinearSystem(
        FactoredGram(Linear().features(5), rows), Y[:5], np.ones(2), np.ones(5), True
    )
    assert "dense features" in EXACT.refuses(thin)
    assert "positive penalty" in EXACT.refuses(system(penalties=(0.0, 1.0)))
    assert choose(system()) == PrimalConjugateGradient()
    assert choose(system(penalties=(0.0, 1.0))) == Primal()
    assert choose(system(penalties=(1e-17, 1.0))) == Primal()
    assert choose(system(FactoredGram.of(PHI, PHI(X)))) == Primal()


def test_limits():
    few = solve(system(), PrimalConjugateGradient(tol=1e-14, max_iter=1, sample=60), warn=False)
    assert few.status is Status.ITERATION_LIMIT
    stopped = solve(
        system(), PrimalConjugateGradient(sample=60), callback=lambda p: True, warn=False
    )
    assert stopped.status is Status.STOPPED
    assert stopped.value.weights.any()


@pytest.mark.parametrize("approximation", [Nystrom(60), RandomFeatures(60)])
def test_a_machine_never_writes_features_out(approximation, monkeypatch):
    """On a budget that holds neither F nor the values at landmarks."""
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 1000)
    monkeypatch.setattr(StreamedGram, "factor", property(lambda self: pytest.fail("written out")))
    rows = rng.uniform(-2, 2, (1500, 2))
    y = np.sin(2 * rows[:, 0]) * rows[:, 1]
    kernel = approximation.of(Gaussian(1.0), rows)
    with config(memory="6MB"):
        machine = KernelRidge(1e-3, kernel).fit(rows, y)
        assert machine.score(rows, y) > 0.95
    assert machine.solution_.solver == "PrimalConjugateGradient"
    assert machine.certificate_.ok
    assert not hasattr(machine, "dual_coef_")
    F = kernel.phi(rows)
    w, b = closed_form(F, y, np.ones(len(y)), 1e-3, True)
    np.testing.assert_allclose(machine.predict(rows), F @ w + b, atol=1e-5)


@pytest.mark.parametrize("approximation", [Nystrom(30), RandomFeatures(30)])
def test_sums_over_all_rows_are_the_normal_equations(approximation, monkeypatch):
    rows, s = rng.uniform(-2, 2, (3000, 2)), rng.uniform(0.5, 2.0, 3000)
    y = (np.sin(2 * rows[:, 0]) * rows[:, 1])[:, None] + 3.0
    phi = approximation.of(Gaussian(0.5), rows).phi
    problem = LinearSystem(StreamedGram(phi, phi, rows), y, np.array([0.1]), s, True)
    monkeypatch.setattr(normal_equations, "_BLOCK", 512)
    matrix, sums = normal_equations.whole_normal_matrix(problem, s[:, None])
    F = phi(rows)
    G = F - s @ F / s.sum()
    exact = (G.T * s) @ G
    assert np.abs(matrix - exact).max() < 1e-12 * exact.max()
    np.testing.assert_allclose(sums[:, 0], F.T @ s, rtol=1e-9)
    solution = solve(problem, PrimalConjugateGradient(tol=1e-11, sample=len(rows)))
    assert solution.status is Status.SOLVED
    w, b = closed_form(F, y[:, 0], s, 0.1, True)
    np.testing.assert_allclose(solution.value.weights[:, 0], w, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(solution.value.intercept, b, atol=1e-7)
    assert certify(problem, solution.value).ok
