"""Factors stored as triangles: against squares of NumPy, and as what landmarks are worked with."""

import pickle

import numpy as np
import pytest
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import deadline
from mercer.approximation import Nystrom
from mercer.deadline import TimeLimitError
from mercer.kernels import Gaussian
from mercer.machines.ridge import normal_equations
from mercer.resources import MemoryBudgetError
from mercer.solvers import PrimalConjugateGradient, Status

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import backend, landmarks, matrices, pairs  # noqa: E402 - after the skip
from mercer.backends.torch import factors as packed  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.factors import PackedFactor, packed_bytes, packed_cholesky, squares  # noqa: E402

HERE = Device("cpu")
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setattr(packed, "WIDTH", 16)


@pytest.fixture
def card(monkeypatch):
    """Let the CPU pass for a card without room for squares of landmarks."""
    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    monkeypatch.setattr(backend, "is_available", lambda: False)  # the interpreter is slow
    monkeypatch.setattr(backend.Torch, "keeps", lambda self, size: size < 20_000)
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 1)
    mercer.backends._try.cache_clear()
    with mercer.config(backend="torch", device="cpu"):
        yield
    mercer.backends._try.cache_clear()


def factor(A):
    def panel(part):
        return torch.from_numpy(A[part.start :, part].copy())

    return packed_cholesky(len(A), panel, HERE)


def definite(n):
    B = rng.standard_normal((n, n + 3))
    return B @ B.T / n + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 15, 16, 33, 70])
def test_triangles_solve_as_squares_do(n):
    A, right = definite(n), rng.standard_normal((n, 3))
    found, L = factor(A), np.linalg.cholesky(A)
    np.testing.assert_allclose(found.lower(), L, atol=1e-12)
    np.testing.assert_allclose(found.diagonal(), L.diagonal(), atol=1e-12)
    wanted = linalg.solve_triangular(L, right, lower=True)
    np.testing.assert_allclose(found.half_solve(right), wanted, atol=1e-11)
    wanted = linalg.solve_triangular(L.T, right)
    np.testing.assert_allclose(found.half_solve(right, transposed=True), wanted, atol=1e-11)
    np.testing.assert_allclose(
        found.solve(right[:, 0]), np.linalg.solve(A, right[:, 0]), atol=1e-11
    )
    np.testing.assert_allclose(found.inverse(), np.linalg.inv(A), atol=1e-11)
    np.testing.assert_allclose(found.inverse_diagonal(), np.linalg.inv(A).diagonal(), atol=1e-11)
    assert sum(panel.nbytes for panel in found.panels) <= packed_bytes(n)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(found)).lower(), L, atol=1e-12)


@pytest.mark.parametrize("n", [1, 16, 17, 70])
def test_squares_are_solved_with_by_panels_of_the_same_memory(n):
    A = definite(n)
    L = torch.from_numpy(np.linalg.cholesky(A)).contiguous()
    found = packed.in_panels(backend.DeviceFactor(L, HERE))
    assert isinstance(found, PackedFactor) and packed.in_panels(found) is found
    assert found.panels[0].data_ptr() == L.data_ptr()
    right = rng.standard_normal((n, 3))
    np.testing.assert_allclose(found.solve(right), np.linalg.solve(A, right), atol=1e-9)
    np.testing.assert_allclose(found.lower(), L, atol=0)
    columns = torch.from_numpy(right)
    for transposed in (True, False):
        wanted = np.linalg.solve(L.numpy().T if transposed else L.numpy(), right)
        np.testing.assert_allclose(found.half(columns, transposed=transposed), wanted, atol=1e-9)


def test_what_is_not_definite_has_no_factor():
    A = definite(40)
    A[30, 30] = -1.0
    assert factor(A) is None
    A[30, 30] = np.nan
    assert factor(A) is None


@pytest.mark.parametrize("own_mean", [True, False])
def test_sums_of_squares_are_those_of_features(own_mean):
    A, more = definite(40), rng.standard_normal((40, 7))
    L = np.linalg.cholesky(A)
    mean = L.mean(axis=0) if own_mean else rng.standard_normal(40)
    given = None if own_mean else torch.from_numpy(mean)
    G = L - mean
    wanted = np.linalg.cholesky(3.0 * G.T @ G + more @ more.T + 0.5 * np.eye(40))
    dense = backend.DeviceFactor(torch.from_numpy(L), HERE)
    for made in (factor(A), dense):
        total = squares(made, given, 3.0, HERE)
        total.add(torch.from_numpy(more))
        np.testing.assert_allclose(total.factor(0.5).lower(), wanted, atol=1e-10)


def test_sums_of_numbers_that_are_none_have_no_solution():
    for made in (factor(definite(20)), backend.DeviceFactor(torch.eye(20).double(), HERE)):
        total = squares(made, None, 1.0, HERE)
        total.add(torch.full((20, 1), torch.nan, dtype=torch.float64))
        assert np.isnan(total.factor(1.0).solve(np.ones(20))).all()


def test_points_are_mixed_before_or_after_their_products():
    """L^-1 B B' L'^-1 either way; not late where L^-1 would make too much of rounding."""
    K, B = definite(20), rng.standard_normal((20, 90))
    L = np.linalg.cholesky(K)
    made = backend.DeviceFactor(torch.from_numpy(L), HERE)
    G = np.linalg.solve(L, B)
    wanted = np.linalg.cholesky(G @ G.T + L.T @ L + 0.5 * np.eye(20))
    for late in (True, False):
        total = squares(made, torch.zeros(20).double(), 1.0, HERE)
        if late:
            blocks = iter([torch.from_numpy(B[:, :50]), torch.from_numpy(B[:, 50:])])
            assert total.add_mixed(blocks, 90, 0.5)
        else:
            total.add(torch.from_numpy(G))
        np.testing.assert_allclose(total.factor(0.5).lower(), wanted, rtol=1e-9)
    small = backend.DeviceFactor(1e-8 * torch.from_numpy(L), HERE)
    total = squares(small, torch.zeros(20).double(), 1.0, HERE)
    assert not total.add_mixed(iter([torch.from_numpy(B)]), 90, 0.5)


@pytest.mark.parametrize("bias", [True, False])
def test_factors_of_features_are_those_of_all_points(card, bias):
    """G'TG + penalty of half the points and of the landmarks, by NumPy."""
    X, Z = rng.standard_normal((80, 2)), rng.standard_normal((6, 2))
    kernel, index = Gaussian(1.0), np.sort(rng.choice(80, 40, replace=False))
    K = np.array(kernel(Z, Z))
    L = np.linalg.cholesky(K)
    made = backend.DeviceFactor(torch.from_numpy(L), HERE)
    rows = landmarks.DeviceRows(kernel.expression(), X, Z, made, HERE, False)
    share = rng.random(40) + 0.5
    found = rows(np.ones(80), np.ones((80, 1)), bias).factor(index, share, 0.3, 0.1).lower()
    F = np.linalg.solve(L, np.array(kernel(X, Z)).T).T
    mean = share @ F[index] / share.sum() if bias else np.zeros(6)
    G = F[index] - mean
    wanted = (G.T * share) @ G + 0.3 * (L - mean).T @ (L - mean) + 0.1 * np.eye(6)
    np.testing.assert_allclose(found @ found.T, wanted, rtol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_many_landmarks_are_worked_with_as_a_triangle(card, monkeypatch, bias):
    """The landmarks alone precondition, and the answer is that of the host."""
    monkeypatch.setattr(normal_equations, "_WHOLE", 10)
    monkeypatch.setattr(
        normal_equations, "_NORMAL_EQUATIONS_ROW", 1.0
    )  # as if there were 100,000 of them
    X = rng.standard_normal((1500, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1500) + 2.0
    weights = rng.integers(0, 3, 1500).astype(float)
    machine = mercer.KernelRidge(1e-1, Gaussian(1.0), approximation=Nystrom(70), bias=bias)
    with mercer.config(backend=None, device=None):
        wanted = machine.fit(X, y, weights).predict(X[:9])
    machine.set_params(solver=PrimalConjugateGradient()).fit(X, y, weights)
    assert isinstance(machine.kernel_.phi.factor, PackedFactor)
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    np.testing.assert_allclose(machine.predict(X[:9]), wanted, atol=1e-6)


def test_a_factor_that_does_not_serve_is_followed_by_one_of_more_rows(card, monkeypatch):
    monkeypatch.setattr(normal_equations, "_WHOLE", 10)
    monkeypatch.setattr(normal_equations, "_NORMAL_EQUATIONS_ROW", 1.0)
    monkeypatch.setattr("mercer.machines.ridge.normal_equations._STEPS", 3)
    X = rng.standard_normal((1500, 3))
    y = np.sin(X[:, 0])
    machine = mercer.KernelRidge(1e-3, Gaussian(1.0), approximation=Nystrom(70)).fit(X, y)
    assert machine.certificate_.ok


def test_time_limits_hold_between_panels(monkeypatch):
    ticks, made = iter(range(1000)), []
    monkeypatch.setattr("mercer.deadline.clock", lambda: float(next(ticks)))

    def panel(part):
        made.append(part)
        return torch.eye(70).double()[part.start :, part]

    with pytest.raises(TimeLimitError), deadline.within(5.0, "a fit"):
        packed_cholesky(70, panel, HERE)
    assert 1 < len(made) < 5


def test_a_card_without_room_for_a_triangle_leaves_it_to_the_host(card, monkeypatch):
    monkeypatch.setattr(pairs, "PACKED_SHARE", 0.0)
    X = rng.standard_normal((300, 3))
    machine = mercer.KernelRidge(1e-1, Gaussian(1.0), approximation=Nystrom(70)).fit(X, X[:, 0])
    assert machine.kernel_.phi.factor is None and machine.certificate_.ok


def test_a_card_that_is_full_says_so_and_the_process_goes_on(card, monkeypatch):
    def full(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(pairs, "packed_cholesky", full)
    X = rng.standard_normal((300, 3))
    machine = mercer.KernelRidge(1e-1, Gaussian(1.0), approximation=Nystrom(70))
    with pytest.raises(MemoryBudgetError, match=r"70 points needs .* on the device .* are free"):
        machine.fit(X, X[:, 0])


def test_an_answer_is_kept_where_the_time_is_over_during_a_look(card, monkeypatch):
    """The residual of all rows in float64 takes as long as many steps."""
    looked = []

    def late(self, W, level):
        looked.append(1)
        raise TimeLimitError("over")

    X = rng.standard_normal((600, 3))
    machine = mercer.KernelRidge(1e-1, Gaussian(1.0), approximation=Nystrom(70))
    wanted = machine.fit(X, np.sin(X[:, 0])).predict(X)
    monkeypatch.setattr(landmarks.DeviceLandmarkRows, "residual", late)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        machine.fit(X, np.sin(X[:, 0]))
    assert looked and machine.solution_.status is Status.TIME_LIMIT
    np.testing.assert_allclose(machine.predict(X), wanted, atol=1e-3)  # of steps in float32


# --- factors in place ---------------------------------------------------------------------------


@pytest.fixture
def small_panels(monkeypatch):
    for name, size in (("_PANEL", 16), ("_TRIANGLE", 5), ("_SOLVED", 7)):
        monkeypatch.setattr(matrices, name, size)


@pytest.mark.parametrize("n", [1, 16, 50])
def test_a_factor_in_place_is_that_of_lapack(small_panels, n):
    A = definite(n)
    held = torch.from_numpy(A.copy())
    assert matrices.factor_in_place(held) == 0
    L = linalg.cholesky(A, lower=True)
    np.testing.assert_allclose(held.numpy(), L, atol=1e-12)
    for columns in (1, 3, 20):
        right = rng.standard_normal((n, columns))
        found = matrices.solved(held, torch.from_numpy(right)).numpy()
        np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("wrong", [0, 20, 49])
def test_the_first_minor_without_a_factor_is_named(small_panels, wrong):
    A = np.eye(50)
    A[wrong, wrong] = -1.0
    assert matrices.factor_in_place(torch.from_numpy(A)) == wrong + 1
