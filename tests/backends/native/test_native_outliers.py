"""Distances next to rows far away from all others: tiles keep the digits of the others."""

import numpy as np
import pytest

from mercer.backends.native.neighbor_search import neighbours
from mercer.backends.native.pairs import NativePairs
from mercer.expression import AbsDist, Dot, Exp, SqDist

pytestmark = pytest.mark.numerics


def rows(n, d, outlier, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[3, 1] = outlier
    return X


@pytest.mark.parametrize(("dtype", "allowed"), [(np.float64, 4e-16), (np.float32, 4e-7)])
@pytest.mark.parametrize("outlier", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("shape", [(200, 3), (200, 16), (200, 17), (1500, 40), (50, 200)])
def test_kernel_values(shape, outlier, dtype, allowed):
    X = rows(*shape, outlier)
    some = np.arange(0, shape[0], 7)
    wide = X[some].astype(np.longdouble)
    square = ((wide[:, None] - wide) ** 2).sum(axis=2)
    K = NativePairs(Exp((-0.5 / shape[1]) * SqDist()), X, None, dtype).dense()[np.ix_(some, some)]
    np.testing.assert_allclose(K, np.exp(-square / (2 * shape[1])).astype(float), atol=allowed)


@pytest.mark.parametrize("outlier", [1e8, 1e12])
def test_absolute_distances(outlier):
    X = rows(100, 5, outlier)
    others = np.delete(np.arange(100), 3)
    wide = X[others].astype(np.longdouble)
    wanted = np.abs(wide[:, None] - wide).sum(axis=2).astype(float)
    found = NativePairs(AbsDist(), X, None, np.float64).dense()[np.ix_(others, others)]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("outlier", [1.0, 1e3, 1e8, 1e14])
@pytest.mark.parametrize("shape", [(300, 3), (300, 20), (2000, 30)])
def test_float32_guesses_lose_no_neighbor(shape, outlier, count):
    """The bound of their rounding is about the same origin as the tiles, whichever that is."""
    X = rows(*shape, outlier)
    X[10 : 10 + count, 0] += outlier
    index, _ = neighbours(Dot(), X, None, 3)
    some = np.append(np.arange(0, shape[0], 23), [3, 10])
    for i in some:
        square = ((X - X[i]) ** 2).sum(axis=1)
        square[i] = np.inf
        assert (square[index[i]] <= np.sort(square)[:3] * (1 + 1e-12)).all()
