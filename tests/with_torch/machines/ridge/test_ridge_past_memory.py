"""Ridge with the full kernel past memory on tensors: what is applied there, and what travels."""

import numpy as np
import pytest

import mercer
from mercer.gram import LazyGram, pivoted_cholesky
from mercer.gram.evaluated import Source
from mercer.kernels import Gaussian
from mercer.machines.ridge.conjugate_gradient import LowRankPreconditioner
from mercer.problems import LinearSystem
from mercer.solvers import ConjugateGradient, Status, solve

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import device as device_arrays  # noqa: E402 - after the skip

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3))
SHIFT = rng.random(300) + 0.1


def lazy():
    return LazyGram(Source(Gaussian(1.0).expression(), X, np.float64, True))


@pytest.fixture(params=["cpu", "cpu,cpu"])
def device(request):
    with mercer.config(backend="torch", device=request.param):
        yield request.param


@pytest.mark.parametrize("rank", [0, 40])
@pytest.mark.parametrize("large", [True, False])
def test_the_preconditioner_is_that_of_the_host(device, monkeypatch, rank, large):
    if large:  # W in float32
        monkeypatch.setattr("mercer.machines.ridge.conjugate_gradient._LARGE", 0)
    V = rng.standard_normal((300, 2))
    with mercer.config(backend=None, device=None):
        rough = pivoted_cholesky(lazy(), rank)
        wanted = LowRankPreconditioner.of(lazy(), rough, SHIFT)(V)
    made = LowRankPreconditioner.of(lazy(), rough, SHIFT)
    np.testing.assert_allclose(made(V), wanted, rtol=1e-4 if large else 1e-9, atol=1e-5)
    if device == "cpu" and rank:
        assert torch.is_tensor(made.low)


def test_without_room_it_is_held_on_the_host(monkeypatch):
    monkeypatch.setattr(device_arrays.DeviceArrays, "has_room", lambda self, size: False)
    V = rng.standard_normal((300, 2))
    rough = pivoted_cholesky(lazy(), 40)
    wanted = LowRankPreconditioner.of(lazy(), rough, SHIFT)(V)
    with mercer.config(backend="torch", device="cpu"):
        made = LowRankPreconditioner.of(lazy(), rough, SHIFT)
    assert isinstance(made.low, np.ndarray)
    np.testing.assert_allclose(made(V), wanted, atol=1e-9)


def test_steps_bring_vectors_alone(monkeypatch):
    """Applied to residuals (n, 2), with no W on its way."""
    y = np.sin(X[:, :1])
    problem = LinearSystem(lazy(), y, np.array([0.1]), np.ones(300), True)
    with mercer.config(backend=None, device=None):
        wanted = solve(problem, ConjugateGradient(rank=40)).value
    brought = []

    def measured(tensor, bring=device_arrays.to_host):
        brought.append(tensor.numel())
        return bring(tensor)

    monkeypatch.setattr(device_arrays, "to_host", measured)
    with mercer.config(backend="torch", device="cpu"):
        problem = LinearSystem(lazy(), y, np.array([0.1]), np.ones(300), True)
        found = solve(problem, ConjugateGradient(rank=40))
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.value.coef, wanted.coef, atol=1e-7)
    assert len(brought) >= found.iterations
    assert max(brought) <= max(2 * 300, 40 * 40)
