"""Rows and weights whose products no number holds: refused in words, whatever LAPACK says."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.approximation import Nystrom
from mercer.kernels import Polynomial
from mercer.solvers.solve import SolverError


@pytest.mark.filterwarnings("ignore")
def test_singular_values_that_are_not_found_are_an_overflow():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * 1e4
    machine = KernelRidge(1.0, Polynomial(5), approximation=Nystrom(50))
    with pytest.raises(SolverError, match="overflowed"):
        machine.fit(X, X[:, 0], np.full(300, 1e295))
    assert not hasattr(machine, "solution_")
