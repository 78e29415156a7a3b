"""Krylov spaces of tensors: the same pairs as those of NumPy's own decomposition."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.contract import Operator  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device, DeviceArrays  # noqa: E402
from mercer.gram import CenteredGram, DenseGram  # noqa: E402
from mercer.gram.evaluated import Source  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402
from mercer.solvers import Status  # noqa: E402
from mercer.solvers.eigen import block_lanczos  # noqa: E402
from mercer.solvers.eigen.block_lanczos import largest_pairs  # noqa: E402

THERE = DeviceArrays(Device("cpu"))


def spectrum(values, n=400, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    full = np.zeros(n)
    full[: len(values)] = values
    return (Q * full) @ Q.T, Q


def operator(A):
    there = torch.from_numpy(A)
    return Operator(lambda V: there @ V, THERE)


CASES = {
    "falling": 0.8 ** np.arange(200),
    "few": np.array([3.0, 2.0, 1.0]),  # the space closes: directions are lost
    "copies": np.repeat([2.0, 1.0], [20, 30]),
    "signs": np.concatenate([0.9 ** np.arange(40), -(0.9 ** np.arange(1, 40))]),
    "nothing": np.zeros(1),
}


@pytest.mark.parametrize("name", CASES)
def test_pairs_are_those_of_a_decomposition(name):
    A, _ = spectrum(CASES[name])
    wanted = np.linalg.eigvalsh(A)[::-1][:6]
    found = largest_pairs(operator(A), len(A), 6, tol=1e-9)
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.values, wanted, atol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-10)
    assert np.abs(A @ found.vectors - found.vectors * found.values).max() < 1e-8


def test_known_pairs_are_left_out_and_spaces_are_cut_back(monkeypatch):
    monkeypatch.setattr(
        block_lanczos, "_longest", lambda n, count, width, outside: count + 4 * width
    )
    A, Q = spectrum(1.0 / np.arange(1, 301))
    found = largest_pairs(operator(A), len(A), 5, tol=1e-8, known=Q[:, :3])
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.values, 1.0 / np.arange(4, 9), atol=1e-8)


def test_numbers_that_are_none_end_the_search():
    A, _ = spectrum(0.8 ** np.arange(200))
    A[3, 5] = A[5, 3] = np.nan
    assert largest_pairs(operator(A), len(A), 4, tol=1e-8).status is Status.NOT_FINITE


def test_products_are_centred_where_they_are_made():
    X, V = np.random.default_rng(0).standard_normal((2, 50, 3))
    base = DenseGram(Source(Gaussian(1.0).expression(), X, np.float64, True))
    weights = np.random.default_rng(1).random(50)
    gram, there = CenteredGram(base, weights), torch.from_numpy(base.dense().copy())
    base.stored.operator = lambda: Operator(lambda V: there @ V, THERE)
    found = gram.operator()
    assert torch.is_tensor(found.apply(THERE.put(V)))
    np.testing.assert_allclose(found.here().apply(V), gram @ V, atol=1e-12)
