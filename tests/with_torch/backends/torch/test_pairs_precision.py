"""Products on a device have all bits of float32, and what these lose float64 makes good."""

import numpy as np
import pytest

import mercer
from mercer.backends import choose_backend
from mercer.kernels import Gaussian
from mercer.solvers import Status

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch.device import Device, full_float32  # noqa: E402 - after the skip
from mercer.backends.torch.matrices import DeviceMatrix, multiply  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402

rng = np.random.default_rng(0)
CPU = Device("cpu")


@pytest.fixture(autouse=True)
def on_torch():
    with mercer.config(backend="torch", device="cpu"):
        yield


@pytest.mark.parametrize("noise", [0.0, 4e-6, 3e-4])
def test_components_of_a_float32_matrix_are_certified(monkeypatch, noise):
    """The second K is as wrong as tensor cores may make it, the third one has 11 bits."""
    fill = TorchPairs._fill

    def noisy(self, K):
        fill(self, K)
        E = torch.randn(K.shape, dtype=K.dtype, generator=torch.Generator().manual_seed(0))
        K += noise * (E + E.T) / 2

    monkeypatch.setattr(TorchPairs, "_fill", noisy)
    X = rng.standard_normal((1500, 2))
    machine = mercer.PCA(4, kernel=Gaussian(1.5)).fit(X)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    with mercer.config(backend=None, device=None):
        wanted = mercer.PCA(4, kernel=Gaussian(1.5)).fit(X).eigenvalues_
    np.testing.assert_allclose(machine.eigenvalues_, wanted, rtol=1e-6)


def test_long_sums_are_carried_in_float64():
    K = torch.full((3, 20000), 0.1, dtype=torch.float32)
    found = multiply(K, np.ones((20000, 1)), CPU)
    np.testing.assert_allclose(found, 20000 * float(np.float32(0.1)), rtol=3e-6)


@pytest.mark.parametrize("asked", ["high", "highest"])
def test_what_the_user_asks_torch_for_is_left_alone(asked):
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(asked)
        with full_float32():
            assert torch.backends.cuda.matmul.fp32_precision == "ieee"
        stored = choose_backend().stored(np.eye(5, dtype=np.float32))
        assert isinstance(stored, DeviceMatrix)
        stored.product(np.ones((5, 2)))
        assert torch.get_float32_matmul_precision() == asked
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (33, 65)])
def test_exponentials_in_one_pass(dtype, shape):
    exponentials = pytest.importorskip("mercer.backends.torch.triton.special")
    x = 30.0 * torch.rand(shape, dtype=torch.float64)
    found = exponentials.exponential(x, -0.1234567890123, 0.5, dtype)
    assert found.dtype is dtype and found.shape == x.shape
    wanted = np.exp(-0.1234567890123 * x.numpy() + 0.5)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(found.numpy(), wanted, rtol=8 * eps)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_blocks_are_mirrored(dtype):
    mirrors = pytest.importorskip("mercer.backends.torch.triton.special")
    K, block = torch.zeros((150, 200), dtype=dtype), torch.rand((70, 130), dtype=dtype)
    mirrors.write_mirrored(block[:, 5:], K[10:135, 20:90])
    wanted = torch.zeros((150, 200), dtype=dtype)
    wanted[10:135, 20:90] = block[:, 5:].T
    assert bool((K == wanted).all())
