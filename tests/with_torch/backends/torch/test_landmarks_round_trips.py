"""K'S (K v - level) in one reading of K: against NumPy, and in ridge regression on landmarks."""

import numpy as np
import pytest

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

import mercer  # noqa: E402 - after the skip
from mercer.approximation import Nystrom  # noqa: E402 - after the skip
from mercer.backends.torch import backend, landmarks  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device  # noqa: E402 - after the skip
from mercer.backends.torch.landmarks import StoredRows  # noqa: E402 - after the skip
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402 - after the skip
from mercer.backends.torch.triton import special  # noqa: E402 - after the skip
from mercer.expression import Exp, SqDist  # noqa: E402 - after the skip
from mercer.kernels import Gaussian  # noqa: E402 - after the skip
from mercer.machines.ridge.normal_equations import CardEquations  # noqa: E402 - after the skip
from mercer.solvers import Status  # noqa: E402 - after the skip

rng = np.random.default_rng(0)


def padded(K):
    n, m = K.shape
    wide = -(-m // special.PADDED) * special.PADDED
    held = torch.zeros((n, wide), dtype=torch.float32)
    held[:, :m] = torch.from_numpy(K)
    return held[:, :m]


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("m", [1, 16, 250, 700, 1025])
def test_one_reading_is_two_products(n, m):
    K = rng.standard_normal((n, m)).astype(np.float32)
    v, s = (rng.random(k).astype(np.float32) for k in (m, n))
    level = 0.1 + 1e-9
    found, total = special.round_trip(padded(K), torch.from_numpy(v), torch.from_numpy(s), level)
    exact = K.astype(np.float64)
    u = s * (exact @ v - level)
    scale = np.abs(exact).T @ np.abs(u) + np.abs(exact).T @ (s * (np.abs(exact) @ v))
    assert (np.abs(found.numpy() - exact.T @ u) <= 1e-6 * scale).all()
    assert abs(float(total) - u.sum()) <= 1e-6 * (s * (np.abs(exact) @ v + level)).sum()


@pytest.mark.parametrize("m", [1, 255, 256, 257, 1000, 1100, 5000, 7000, 10000, 14000, 16384])
def test_pieces_cover_all_columns_once(m):
    shape = special.shape_of(m)
    ends = [begin + width for begin, width in shape.pieces]
    assert [begin for begin, _ in shape.pieces] == [0, *ends[:-1]]
    assert m <= ends[-1] < m + max(256, 2 * m // 3 + 1)
    assert all(width & (width - 1) == 0 for _, width in shape.pieces)
    assert 1 <= shape.warps <= 16 and shape.rows & (shape.rows - 1) == 0


@pytest.fixture
def interpreted(monkeypatch):
    """Let the CPU pass for a card whose kernels Triton's interpreter runs."""
    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    monkeypatch.setattr(backend, "is_available", lambda: True)
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 1)
    mercer.backends._try.cache_clear()
    with mercer.config(backend="torch", device="cpu"):
        yield
    mercer.backends._try.cache_clear()


def fitted(n=600, bias=True):
    X = np.random.default_rng(1).standard_normal((n, 3)) + 5.0
    y = np.sin(X[:, 0]) + 3.0
    weights = np.random.default_rng(2).integers(0, 3, n).astype(float)
    machine = mercer.KernelRidge(1e-2, kernel=Gaussian(1.0), approximation=Nystrom(40), bias=bias)
    return machine.fit(X, y, weights), machine.predict(X[:9])


@pytest.mark.parametrize("bias", [True, False])
def test_ridge_on_landmarks_reads_rows_once(interpreted, monkeypatch, bias):
    with mercer.config(backend=None, device=None):
        _, wanted = fitted(bias=bias)
    trips, both = [], StoredRows.round_trip

    def counted(self, *arguments):
        found = both(self, *arguments)
        trips.append(found is not None)
        return found

    monkeypatch.setattr(StoredRows, "round_trip", counted)
    machine, predicted = fitted(bias=bias)
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    assert len(trips) == machine.solution_.iterations and all(trips)
    np.testing.assert_allclose(predicted, wanted, atol=1e-6)


def test_values_near_the_ends_of_float32_are_multiplied_twice():
    K = padded(np.full((5, 3), 1e-20, dtype=np.float32))
    assert not landmarks._squares_are_numbers(K)
    assert landmarks._squares_are_numbers(padded(np.full((5, 3), 0.1, dtype=np.float32)))
    huge = StoredRows(padded(np.full((5, 3), 1e30, dtype=np.float32)), once=True)
    one = torch.ones((3, 1), dtype=torch.float64)
    asked = (one, torch.ones(5), torch.zeros(1, dtype=torch.float64))
    with np.errstate(all="ignore"):  # Triton's interpreter is NumPy
        assert huge.round_trip(*asked) is None  # infinite: two products scale what is between
    assert StoredRows(K).round_trip(*asked) is None


def test_a_card_without_room_for_a_row_is_asked_for_two_products(monkeypatch):
    def full(text):
        raise special.OutOfResources(1, 0, "shared memory")

    monkeypatch.setattr(special, "compiled", full)
    K = padded(np.ones((5, 3), dtype=np.float32))
    assert special.round_trip(K, torch.ones(3), torch.ones(5), 0.0) is None


def test_no_residual_follows_a_round_that_cannot_have_drifted(interpreted, monkeypatch):
    """Two rounds: the first residual tells how far products are off, the second is not needed."""
    looked, residual = [], CardEquations.residual

    def counted(self, W):
        looked.append(1)
        return residual(self, W)

    monkeypatch.setattr(CardEquations, "residual", counted)
    machine, _ = fitted()
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    few = len(looked)
    looked.clear()
    monkeypatch.setattr("mercer.machines.ridge.normal_equations._SURE", np.inf)
    machine, _ = fitted()
    assert machine.certificate_.ok and len(looked) == few + 1


def test_drift_that_is_large_is_looked_at(interpreted, monkeypatch):
    """Products that are off by a hundredth are not believed: every round ends with a residual."""
    product = CardEquations.product

    def rough(self, W):
        return product(self, W) * (1 + 1e-2 * np.sin(np.arange(len(W)))[:, None])

    monkeypatch.setattr(CardEquations, "product", rough)
    machine, _ = fitted()
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok


@pytest.mark.parametrize("m", [3, 40, 1100])
def test_exponentials_are_multiplied_as_they_are_made(m):
    """Against NumPy: K over x, K v, and the smallest x of each row."""
    x, v = 5 * rng.random((6, m)), rng.standard_normal(m)
    K = torch.from_numpy(x.copy())
    values, smallest = special.exponential_times(K, -0.7, 0.1, torch.from_numpy(v))
    wanted = np.exp(-0.7 * x + 0.1)
    np.testing.assert_allclose(K, wanted, rtol=1e-13)
    np.testing.assert_allclose(values, wanted @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(smallest, x.min(axis=1))


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_sweeps_of_one_pass_know_rows_that_are_near(monkeypatch, scale):
    """Equal rows, and rows far from the origin but close: the same as blocks looked at in full."""
    X = rng.standard_normal((60, 3))
    X[20:30] = X[:10]
    X[30:40] = X[40:50] + 1e-9
    X, Y = scale * X + 1e3 * scale, scale * X[::2] + 1e3 * scale
    expression = Exp(-0.5 / scale**2 * SqDist())
    y, v = rng.standard_normal((60, 1)), torch.from_numpy(rng.standard_normal((30, 1)))

    def change(part, values):
        return torch.from_numpy(y[part]) - values

    plain = TorchPairs(expression, X, Y, np.float64, Device("cpu"))
    once = TorchPairs(expression, X, Y, np.float64, Device("cpu"), fused=True)
    assert once._one_pass is not None and plain._one_pass is None
    monkeypatch.setattr(Device, "block_entries", lambda self: 30 * 25)
    np.testing.assert_allclose(once.sweep(v, change), plain.sweep(v, change), atol=1e-12)
    K = plain.rows(slice(0, 60))
    np.testing.assert_allclose(once.sweep(v, change), K.T @ (y - K @ v.numpy()), atol=1e-10)


def test_sweeps_of_numbers_that_are_none():
    X = rng.standard_normal((8, 2))
    X[3, 1] = np.nan
    once = TorchPairs(Exp(-0.5 * SqDist()), X, X[:3], np.float64, Device("cpu"), fused=True)
    seen = []
    with np.errstate(all="ignore"):  # Triton's interpreter is NumPy
        once.sweep(torch.ones((3, 1)).double(), lambda part, values: seen.append(values) or values)
    assert torch.isnan(seen[0][3]).all() and torch.isfinite(seen[0][:3]).all()
