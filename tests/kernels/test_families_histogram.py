"""Kernels of histograms and sets, against scikit-learn and set arithmetic."""

import numpy as np
import pytest
from sklearn.metrics import pairwise

from mercer.backends import available_backends
from mercer.kernels import ChiSquared, Intersection, Tanimoto
from mercer.resources import config

RNG = np.random.default_rng(3)
X, Y = RNG.poisson(1.5, size=(12, 8)) * 1.0, RNG.poisson(1.5, size=(7, 8)) * 1.0


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


@pytest.mark.parametrize("scale", [0.5, 1.0, 20.0])
def test_chi_squared(scale):
    wanted = pairwise.chi2_kernel(X, Y, gamma=1 / scale)
    np.testing.assert_allclose(ChiSquared(scale)(X, Y), wanted, rtol=1e-12)


def test_intersection():
    wanted = np.minimum(X[:, None], Y[None]).sum(axis=2)
    np.testing.assert_allclose(Intersection()(X, Y), wanted, rtol=1e-14)


def test_tanimoto_is_intersection_over_union_of_sets():
    A, B = X > 1, Y > 1
    wanted = [[(a & b).sum() / max((a | b).sum(), 1) for b in B] for a in A]
    np.testing.assert_allclose(Tanimoto()(A, B), wanted, rtol=1e-14)


def test_tanimoto_of_zero_rows():
    Z = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert Tanimoto()(Z).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert Tanimoto().diag(Z).tolist() == [1, 1, 1]


def test_tanimoto_is_positive_semidefinite_on_real_rows():
    Z = RNG.normal(size=(60, 2))
    assert np.linalg.eigvalsh(Tanimoto()(Z))[0] > -1e-12


@pytest.mark.parametrize("kernel", [ChiSquared(), Intersection()])
def test_negative_rows_are_refused(kernel):
    with pytest.raises(ValueError, match="nonnegative"):
        kernel([[1.0, -1.0]])


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, [1.0, 2.0]])
def test_scale_is_positive(scale):
    with pytest.raises(ValueError, match="ChiSquared: scale"):
        ChiSquared(scale)
