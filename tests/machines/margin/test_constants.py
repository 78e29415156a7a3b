"""Constant columns of any size change nothing for machines whose constant is free."""

import numpy as np
import pytest

from mercer import SVC, SVR, OneClassSVM
from mercer.kernels import Gaussian, Linear
from mercer.machines.margin.constants import without_large_constants

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=120)


def beside(constant):
    return np.column_stack([X[:, :1], np.full(120, constant), X[:, 1:]])


MACHINES = [SVC("linear", tol=1e-8), SVC("linear", slack="l2", tol=1e-8), SVR("linear", tol=1e-8)]


@pytest.mark.filterwarnings("ignore:.*differ in scale")
@pytest.mark.parametrize("constant", [1e6, -1e8, 1e12, 1e100])
@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_large_constants(machine, constant):
    y = (Y > 0) if isinstance(machine, SVC) else Y
    answer = "decision_function" if isinstance(machine, SVC) else "predict"
    expected = getattr(machine.fit(X, y), answer)(X)
    found = machine.fit(beside(constant), y)
    assert found.solution_.status.ok and found.certificate_.ok
    np.testing.assert_allclose(getattr(found, answer)(beside(constant)), expected, atol=1e-5)
    assert found.coef_[1] == 0.0


def test_rows_are_left_alone_where_nothing_is_gained():
    for kernel, rows in [
        (Linear(), X),
        (Linear(), beside(1e3)),
        (Gaussian(1.0), beside(1e8)),
        (Linear(), np.full((5, 2), 1e8)),
        (Linear(), beside(1e8)[:1]),
    ]:
        assert without_large_constants(kernel, rows) is rows
    rows = beside(1e3)
    assert OneClassSVM("linear").fit(rows).coef_[1] != 0.0  # its constant is not free
