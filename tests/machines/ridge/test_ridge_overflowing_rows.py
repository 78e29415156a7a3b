"""Rows and weights whose products no number holds: refused in words, whatever LAPACK says."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.approximation import Nystrom
from mercer.kernels import Polynomial
from mercer.solvers.dispatch import SolverError

pytestmark = pytest.mark.numerics


@pytest.mark.filterwarnings("ignore")
def test_singular_values_that_are_not_found_are_an_overflow():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * 1e4
    machine = KernelRidge(1.0, Polynomial(5), approximation=Nystrom(50))
    with pytest.raises(SolverError, match="overflowed"):
        machine.fit(X, X[:, 0], np.full(300, 1e295))
    assert not hasattr(machine, "solution_")


@pytest.mark.parametrize("weight", [1e9, 1e150])
def test_a_path_of_penalties_whose_squares_overflow_says_so(weight):
    rng = np.random.default_rng(0)
    X = 1e150 * rng.standard_normal((3, 3))[rng.integers(0, 3, 7)]
    machine = KernelRidge("loo", kernel="linear", bias=False)
    with pytest.raises(SolverError, match="overflowed"):
        machine.fit(X, rng.standard_normal(7), weight * rng.random(7))
    assert not hasattr(machine, "solution_")


def test_a_path_of_penalties_of_long_rows_is_that_of_short_ones():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    penalties = np.logspace(-3, 3, 7)
    short = KernelRidge("loo", kernel="linear", penalties=penalties).fit(X, y)
    long = KernelRidge("loo", kernel="linear", penalties=penalties * 2.0**800)
    long.fit(X * 2.0**400, y)
    np.testing.assert_allclose(long.predict(X * 2.0**400), short.predict(X), rtol=1e-9)
    assert long.certificate_.ok
