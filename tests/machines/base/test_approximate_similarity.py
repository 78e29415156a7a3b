"""Kernels that take all rows for different, or for alike, are warned of; others are not."""

import warnings

import numpy as np
import pytest

from mercer import SVC, SVR, FitWarning, KernelRidge, LogisticRegression, OneClassSVM
from mercer.kernels import Gaussian, Linear, Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = (X[:, 0] > 0).astype(int)
MACHINES = [SVC, SVR, KernelRidge, LogisticRegression, OneClassSVM]


@pytest.mark.parametrize("kind", MACHINES)
def test_rows_that_are_all_different(kind):
    with pytest.warns(FitWarning, match=f"{kind.__name__}: the kernel matrix is nearly the ident"):
        kind(kernel=Gaussian(0.01)).fit(X, Y)


@pytest.mark.parametrize("kind", MACHINES)
def test_rows_that_are_all_alike(kind):
    with pytest.warns(FitWarning, match="nearly constant.*smaller scale"):
        kind(kernel=Gaussian(1e6)).fit(X, Y)


def test_columns_of_different_size_are_named():
    raw = X * [1.0, 1.0, 1.0, 1e4]
    with pytest.warns(FitWarning, match=r"differs by a factor of 1e\+04: scale them"):
        SVC(Gaussian(1.0)).fit(raw, Y)


def test_a_weak_kernel_with_all_rows_in_use():
    wide = RNG.normal(size=(200, 12))
    with pytest.warns(FitWarning, match="of the rows are support vectors"):
        SVC(Gaussian(1.2)).fit(wide, wide[:, 0] > 0)


@pytest.mark.parametrize("kernel", ["gaussian", "linear", Linear(), Polynomial(3), Gaussian(1.0)])
def test_ordinary_fits_are_silent(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC(kernel).fit(X, Y)
        SVC(kernel).fit(X[:30] * 1e3, Y[:30])  # too few rows to say


def test_the_answer_is_certified_all_the_same():
    with pytest.warns(FitWarning):
        machine = SVC(Gaussian(0.01)).fit(X, Y)
    assert machine.certificate_.ok
