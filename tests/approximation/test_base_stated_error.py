"""Errors that are stated of a sample say how far they may be off."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

pytestmark = pytest.mark.numerics


def test_standard_errors_are_those_of_samples() -> None:
    """Traces of many samples scatter as the standard error of one of them says."""
    X = np.random.default_rng(0).normal(size=(6000, 3))
    kernel = Nystrom(30).of(Gaussian(1.0), X)
    exact, known = kernel.left_out(X)
    found = np.array([kernel.left_out(X, seed, most=2000) for seed in range(40)])
    assert known == 0.0
    assert 0.7 < found[:, 0].std() / found[:, 1].mean() < 1.4
    assert np.abs(found[:, 0] - exact).max() < 4 * found[0, 1]


def test_a_stated_error_says_whether_it_is_known() -> None:
    """All rows leave no doubt; a sample of them does."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    kernel = Nystrom(10).of(Gaussian(1.0), X)
    assert kernel.stated_error(X[:2000]).standard_error == 0.0
    assert "+-" not in str(kernel.stated_error(X[:2000]))
    assert "+-" in str(kernel.stated_error(X.copy()))  # a sample of other rows


def test_rows_that_all_were_drawn_among_are_known():
    """The draw has found what it leaves of every row: the sum over the diagonal, once more."""
    X = np.random.default_rng(0).standard_normal((3000, 2))
    kernel = Nystrom(10).of(Gaussian(1.0), X)
    stated = kernel.stated_error(X)
    own, F = np.ones(3000), kernel.phi(X)
    assert stated.rows == 3000
    assert stated.standard_error == 0.0
    assert stated.value == pytest.approx(1.0 - np.square(F).sum() / own.sum(), abs=1e-12)
    assert pickle.loads(pickle.dumps(kernel)).stated_error(X).rows == 2000
