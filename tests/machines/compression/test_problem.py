"""The norm of a difference of expansions, and what the certificate says of it."""

import numpy as np
import pytest

from mercer.certificates import certify
from mercer.gram import Source
from mercer.kernels import Gaussian
from mercer.problems import ReducedSet, Reduction

RNG = np.random.default_rng(0)
X, A = RNG.normal(size=(12, 2)), RNG.normal(size=(12, 3))
V, B = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 3))
PROBLEM = Reduction(Source(Gaussian(1.0).expression(), X), A)


def test_norms():
    found = certify(PROBLEM, ReducedSet(V, B))
    K = Gaussian(1.0)(np.concatenate([X, V]))
    C = np.concatenate([A, -B])
    errors = np.sqrt(np.einsum("ic,ij,jc->c", C, K, C))
    norms = np.sqrt(np.einsum("ic,ij,jc->c", A, Gaussian(1.0)(X), A))
    np.testing.assert_allclose(found.quantities.error, errors.max(), rtol=1e-9)
    np.testing.assert_allclose(found.quantities.relative_error, (errors / norms).max(), rtol=1e-9)
    assert not found.ok
    assert certify(PROBLEM, ReducedSet(V, B), (errors / norms).max() * 1.001).ok
    assert "5 of 12 vectors" in found.statement


def test_the_bound_on_values():
    found = certify(PROBLEM, ReducedSet(V, B)).quantities
    Z = RNG.normal(size=(200, 2))
    change = np.abs(Gaussian(1.0)(Z, X) @ A - Gaussian(1.0)(Z, V) @ B)
    assert change.max() <= found.error


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_the_same_vectors_have_no_error_but_rounding(scale):
    problem = Reduction(PROBLEM.source, A * scale)
    found = certify(problem, ReducedSet(X[::-1].copy(), A[::-1] * scale), 0.0)
    assert found.ok
    assert found.quantities.relative_error < 1e-6


def test_nothing_in_place_of_something():
    found = certify(PROBLEM, ReducedSet(X[:0], A[:0]))
    assert found.quantities.relative_error == pytest.approx(1.0)
    assert not found.ok
    assert certify(Reduction(PROBLEM.source, 0 * A), ReducedSet(X[:0], A[:0])).ok
