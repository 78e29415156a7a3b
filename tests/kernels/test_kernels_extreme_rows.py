"""Kernels of rows whose squares overflow or vanish: the right value, or a sentence."""

import numpy as np
import pytest
import scipy.sparse

import mercer
from mercer import SVC, KernelRidge, Perceptron
from mercer.kernels import (
    Anova,
    Cosine,
    Gaussian,
    Linear,
    Matern,
    Polynomial,
    Tanimoto,
)

ROWS = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [2.0, 2.0]])
SIZES = (5e-324, 1e-300, 1e-200, 1e-40, 1.0, 1e40, 1e200, 1e300)
SCALE_FREE = [
    Cosine(),
    Linear().normalized(),
    Polynomial(3, 0.0).normalized(),
    (2.0 * Linear()).normalized(),
    (Linear() ** 2).normalized(),
    Anova(2).normalized(),
    Linear().on([1]).normalized(),
]


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("kernel", SCALE_FREE, ids=repr)
def test_lengths_of_rows_do_not_matter(kernel, backend):
    with mercer.config(backend=backend):
        expected = kernel(ROWS, ROWS)
        for size in SIZES:
            rows = ROWS * size
            np.testing.assert_allclose(kernel(rows, rows), expected, atol=1e-12)
            np.testing.assert_allclose(kernel(rows, ROWS), expected, atol=1e-12)
            sparse = scipy.sparse.csr_array(rows)
            np.testing.assert_allclose(kernel(sparse, sparse), expected, atol=1e-12)
            np.testing.assert_allclose(kernel.diag(rows), np.diag(expected), atol=1e-12)
        single = (ROWS * 1e-30).astype(np.float32)
        np.testing.assert_allclose(kernel(single, single), expected, atol=1e-5)


def test_rows_of_ordinary_size_are_left_alone():
    rows = np.random.default_rng(0).standard_normal((9, 3))
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(
        Cosine()(rows), rows @ rows.T / np.outer(lengths, lengths), rtol=1e-12
    )


def test_a_machine_learns_from_tiny_rows():
    X = np.random.default_rng(0).standard_normal((20, 2))
    y = (X[:, 0] > 0).astype(int)
    assert SVC(Cosine()).fit(X * 1e-200, y).score(X * 1e-200, y) > 0.9


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_tanimoto_says_which_row(size):
    with pytest.raises(ValueError, match=r"Tanimoto: the largest entry of row 1 .* multiply"):
        Tanimoto()([[1.0], [size]], [[1.0]])


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_distances_that_overflow_make_no_values(nu, backend):
    far = np.array([[1e200], [2e200]])
    with mercer.config(backend=backend):
        with pytest.raises(ValueError, match="too far apart"):
            Matern(nu, 1.0)(far, [[0.0]])
        for machine in (Perceptron(Matern(nu, 1.0)), SVC(Matern(nu, 1.0))):
            with pytest.raises(ValueError, match="kernel value not finite"):
                machine.fit(far, [0, 1])


def test_distances_that_overflow_are_far_elsewhere():
    far = np.array([[1e200], [0.0]])
    for kernel in (Gaussian(1.0), Matern(0.5, 1.0), Matern(3.3, 1.0)):
        np.testing.assert_array_equal(kernel(far), np.eye(2))


def test_degrees_beyond_reason_are_refused_by_name():
    with pytest.raises(ValueError, match="Polynomial: degree=18446744073709551616 must be at most"):
        Polynomial(2**64)
    with pytest.raises(ValueError, match="must be at most"):
        Linear() ** 2**64
    with pytest.raises(ValueError, match=r"Matern: nu=770000000\.0 must be at most 10000, or inf"):
        Matern(7.7e8)


@pytest.mark.parametrize("kernel", [Anova(2), Anova(2) ** 2, Anova(10**6)], ids=repr)
def test_no_sets_of_columns_is_the_kernel_zero(kernel):
    X = np.random.default_rng(0).standard_normal((8, 1))
    assert not kernel(X).any()
    assert not kernel.diag(X).any()
    machine = KernelRidge(kernel=kernel).fit(X, X[:, 0])
    np.testing.assert_allclose(machine.predict(X), X.mean())
