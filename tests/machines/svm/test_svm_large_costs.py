"""A finite C, however large, is a price and not the hard margin."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, FitWarning
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.solvers import Status

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
OVERLAPPING = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
SEPARABLE = np.where(X[:, 0] > 0, 1, -1)
TARGETS = X[:, 0] + 0.3 * rng.standard_normal(60)
COSTS = [1e6, 1e12, 1e13, 1e300]


def nudged(X, seed):
    """Move every entry by its last bit."""
    signs = np.random.default_rng(seed).choice([-np.inf, np.inf], X.shape)
    return np.nextafter(X, signs)


def fitted(machine, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(X, y, **options)


def least_hinge(F, y):
    """Compute the smallest sum of hinge losses by a linear programme."""
    n, d = F.shape
    rows = np.hstack([-y[:, None] * F, -y[:, None], -np.eye(n)])
    cost = np.concatenate([np.zeros(d + 1), np.ones(n)])
    bounds = [(None, None)] * (d + 1) + [(0, None)] * n
    return linprog(cost, A_ub=rows, b_ub=-np.ones(n), bounds=bounds).fun


@pytest.mark.parametrize("C", COSTS)
def test_overlapping_rows_pay_the_least_slack(C):
    machine = fitted(SVC(Linear(), C=C), OVERLAPPING)
    slack = np.maximum(0.0, 1.0 - OVERLAPPING * machine.decision_function(X)).sum()
    assert slack == pytest.approx(least_hinge(X, OVERLAPPING), rel=1e-2)
    assert machine.solution_.status in (Status.SOLVED, Status.INACCURATE)


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(2), Gaussian(1.0), Gaussian(5.0)], ids=repr
)
def test_no_finite_cost_is_called_infinite(kernel, slack, C):
    for y in (OVERLAPPING, SEPARABLE):
        machine = fitted(SVC(kernel, C=C, slack=slack), y)
        assert machine.solution_.status in (Status.SOLVED, Status.INACCURATE)
        assert machine.solution_.status.ok == machine.certificate_.ok
    assert fitted(SVC(kernel, C=C, slack=slack), SEPARABLE).solution_.status is Status.SOLVED


@pytest.mark.parametrize("C", [1e10, 1e12, 1e300])
@pytest.mark.parametrize("y", [OVERLAPPING, SEPARABLE], ids=["overlapping", "separable"])
def test_last_bits_do_not_decide_the_ending_of_a_dear_slack(y, C):
    for seed in range(20):
        machine = SVC(Linear(), C=C).fit(nudged(X, seed), y)
        assert machine.solution_.status is Status.SOLVED
        assert machine.certificate_.ok
        assert machine.certificate_.quantities.violation < 5e-4  # of 1e-3: with room


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("tube", ["l1", "l2"])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=repr)
def test_no_finite_cost_of_errors_is_called_infinite(kernel, tube, C):
    machine = fitted(SVR(kernel, C=C, tube=tube), TARGETS)
    assert machine.solution_.status in (Status.SOLVED, Status.INACCURATE)
    assert np.abs(machine.predict(X) - TARGETS).mean() < 0.5


def test_weights_that_overflow_are_large_and_not_infinite():
    machine = fitted(SVC(Linear(), C=1e300), OVERLAPPING, sample_weight=np.full(60, 1e100))
    assert machine.solution_.status in (Status.SOLVED, Status.INACCURATE)


def test_without_slack_overlapping_rows_are_infeasible():
    with pytest.warns(ConvergenceWarning, match="Use a finite C"):
        assert SVC(Linear(), C=np.inf).fit(X, OVERLAPPING).solution_.status is Status.INFEASIBLE


@pytest.mark.parametrize(("make", "y"), [(SVC, OVERLAPPING), (SVR, TARGETS)], ids=["SVC", "SVR"])
@pytest.mark.parametrize("weights", [None, np.full(len(X), 1e8)])
def test_a_weight_of_slack_that_is_bounded_is_named(make, y, weights):
    C = 3e12 if weights is None else 3e4
    machine = make(Gaussian(1.0), C=C, max_iter=5)
    with pytest.warns(FitWarning) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y, sample_weight=weights)
    told = [str(each.message) for each in caught if each.category is FitWarning]
    assert len(told) == 1
    assert told[0].startswith(f"{make.__name__}: C={C!r} weights slack by 3e+12")
    assert "the fit uses 1e+10" in told[0]
    assert "up to 3e+12 are taken as 10000000000" in machine.certificate_.statement


def test_a_weight_of_slack_within_bounds_is_used_as_it_is():
    small = 1e-3 * X  # in units of the kernel 1e12 is 1e6
    for C, Z in ((1e9, X), (1e12, small)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("error", FitWarning)
            machine = SVC(Linear(), C=C, max_iter=5).fit(Z, OVERLAPPING)
        assert "taken as" not in machine.certificate_.statement
