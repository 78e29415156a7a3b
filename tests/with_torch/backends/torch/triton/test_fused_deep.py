"""Rows of many features: products by the library of the card, here by the processor's."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="make test-torch")
pytest.importorskip("triton", reason="without Triton, plain torch runs")

from mercer.backends.reference.backend import Reference  # noqa: E402 - after the skips
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.backends.torch.triton import fused, launch  # noqa: E402
from mercer.backends.torch.triton import fused as deep  # noqa: E402
from mercer.backends.torch.triton.source import HELD, LeafLayout  # noqa: E402
from mercer.expression import AbsDist, Dot, Exp, SqDist  # noqa: E402

rng = np.random.default_rng(0)
CPU = Device("cpu")
X, Y = 0.1 * rng.standard_normal((40, 300)), 0.1 * rng.standard_normal((75, 300))
X[3] = X[7]
FORMULAS = [Exp(-0.5 * SqDist()), (0.5 * Dot() + 1.0) ** 3, SqDist()]


@pytest.fixture
def everything_is_deep(monkeypatch):
    def refused(*_):
        raise AssertionError("a kernel was compiled")

    def is_product(leaves):
        return len(leaves) == 1 and leaves[0].way is LeafLayout.PRODUCTS and leaves[0].depth > HELD

    monkeypatch.setattr(fused, "is_deep", is_product)
    monkeypatch.setattr(launch, "compiled", refused)
    monkeypatch.setattr(deep, "_WIDTH", 32)


@pytest.mark.parametrize("expression", FORMULAS, ids=["Gaussian", "polynomial", "distances"])
def test_values_and_products_are_those_of_the_reference(everything_is_deep, expression):
    pairs = TorchPairs(expression, X, Y, np.float32, CPU, fused=True)
    assert pairs._fused is not None and pairs._fused.deep is not None
    K, V = Reference().pairs(expression, X, Y, np.float64).dense(), rng.standard_normal((75, 3))
    size = np.abs(K).max()
    np.testing.assert_allclose(pairs.dense(), K, rtol=0, atol=3e-6 * size)
    np.testing.assert_allclose(pairs.matmul(V), K @ V, rtol=0, atol=1e-4 * size)
    np.testing.assert_array_equal(pairs.nearest().numpy(), K.argmin(axis=1))
    turned = pairs.transposed()
    np.testing.assert_allclose(turned.dense(), K.T, rtol=0, atol=3e-6 * size)


def test_a_stored_matrix_is_symmetric_and_equal_rows_have_no_distance(everything_is_deep):
    K = TorchPairs(FORMULAS[0], X, None, np.float32, CPU, fused=True).stored().dense()
    np.testing.assert_array_equal(K, K.T)
    assert K[3, 7] == 1.0 and (np.diagonal(K) == 1.0).all()
    wanted = Reference().pairs(FORMULAS[0], X, None, np.float64).dense()
    np.testing.assert_allclose(K, wanted, rtol=0, atol=3e-6)


@pytest.mark.parametrize("expression", [Exp(-0.01 * AbsDist()), FORMULAS[0] + 0.1 * Dot()])
def test_what_is_no_single_product_is_not_deep(expression):
    pairs = TorchPairs(expression, X, Y, np.float32, CPU, fused=True)
    assert pairs._fused is not None and pairs._fused.deep is None
