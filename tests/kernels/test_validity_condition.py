"""Mercer's condition: functions that break it are found, and their integrals are negative."""

import numpy as np
import pytest

from mercer.kernels import (
    FromCallable,
    Gaussian,
    Laplacian,
    NormalDensity,
    Polynomial,
    Sigmoid,
    UniformDensity,
    integral_form,
    mercer_condition,
)


def negative_distance(X, Y):
    """Return -|x - y|, which is a kernel only among functions of mean zero."""
    return -np.abs(X - Y.T)


@pytest.mark.parametrize("k", [Gaussian(0.5), Laplacian(1.0), Polynomial(3)], ids=repr)
def test_kernels_pass(k):
    found = mercer_condition(k, UniformDensity(-1.0, 1.0))
    assert found
    assert found.f is None
    assert "no function breaks" in found.statement
    for f in (lambda X: np.sin(9 * X[:, 0]), lambda X: X[:, 0] ** 3 - 0.2):
        assert integral_form(k, f, UniformDensity(-1.0, 1.0)) >= 0


@pytest.mark.parametrize("k", [Sigmoid(1.0, -1.0), FromCallable(negative_distance)], ids=range(2))
def test_the_function_that_breaks_it(k):
    found = mercer_condition(k, UniformDensity(-1.0, 1.0))
    assert not found
    assert found.value < 0

    x = (np.arange(1000)[:, None] + 0.5) / 500 - 1  # midpoints, which f has not seen
    values = found.f(x)
    wanted = values @ k(x, x) @ values / 1000**2
    assert wanted < 0
    np.testing.assert_allclose(found.value, wanted, rtol=1e-3)
    np.testing.assert_allclose(found.value, found.smallest, rtol=1e-3)


def test_on_a_sample():
    X = np.random.default_rng(0).normal(size=(30, 2))
    found = mercer_condition(Sigmoid(1.0, -1.0), X)
    np.testing.assert_allclose(found.value, found.smallest, rtol=1e-9)
    assert np.mean(found.f(X) ** 2) == pytest.approx(1.0)
    assert mercer_condition(Gaussian(1.0), X)


def test_under_a_normal_density_in_two_columns():
    assert mercer_condition(Gaussian(1.0), NormalDensity([0, 0]), n_nodes=20)
    assert not mercer_condition(Sigmoid(2.0, -1.0), NormalDensity([0, 0]), n_nodes=20)


def test_functions_that_are_not_symmetric():
    skew = FromCallable(lambda X, Y: X[:, :1] - Y[:, :1].T)
    with pytest.raises(ValueError, match="differ by up to"):
        mercer_condition(skew, UniformDensity())
    with pytest.raises(TypeError, match="must be a kernel"):
        mercer_condition("rbf", UniformDensity())


def test_values_of_the_wrong_shape():
    with pytest.raises(ValueError, match="f gave values of shape"):
        integral_form(Gaussian(1.0), lambda X: X, UniformDensity())
