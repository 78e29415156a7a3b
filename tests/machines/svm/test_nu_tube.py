"""nu regression that pair steps on its own form do not end: begun anew from the tube of its sum."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import NuSVR

from mercer import SVR, Status
from mercer.gram import PrecomputedGram
from mercer.kernels import Gaussian, Polynomial
from mercer.machines.svm import problem, smo
from mercer.machines.svm.nu_tube import is_nu_tube

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (60, 2))
y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(60)
GRAM = PrecomputedGram(Gaussian(1.0)(X, X))


@pytest.fixture
def soon(monkeypatch):
    """Begin anew after a few pair steps."""
    monkeypatch.setattr(smo, "STEPS_FIRST", 20)
    monkeypatch.setattr(smo, "STEPS_FIRST_PER_VARIABLE", 0)


def test_only_nu_regression_has_a_tube():
    signs, C = np.where(y > 0, 1.0, -1.0), rng.uniform(1, 2, 60)
    assert is_nu_tube(problem.nu_svr(GRAM, y, C, 0.5))
    others = (
        problem.nu_svc(GRAM, signs, C, 0.3),
        problem.svr(GRAM, y, C, 0.1),
        problem.one_class(GRAM, C, 0.5),
    )
    assert not any(map(is_nu_tube, others))


@pytest.mark.parametrize("criterion", ["violation", "gap"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
@pytest.mark.usefixtures("soon")
def test_the_tube_is_the_one_that_another_solver_finds(C, nu, criterion):
    machine = SVR(Gaussian(1.0), C, nu=nu, tol=1e-6, criterion=criterion).fit(X, y)
    theirs = NuSVR(gamma=0.5, C=C, nu=nu, tol=1e-9).fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    found, expected = machine.predict(X), theirs.predict(X)
    # where all coefficients are at a bound, the constant is anywhere in a range
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=2e-3)


@pytest.mark.parametrize("weights", [rng.integers(0, 3, 60), 10.0 ** rng.uniform(-2, 2, 60)])
@pytest.mark.usefixtures("soon")
def test_weights_count_in_the_sum(weights):
    machine = SVR(Gaussian(1.0), 10.0, nu=0.4, tol=1e-6).fit(X, y, sample_weight=weights)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok


def test_nearly_singular_programmes_are_solved_within_their_limit():
    # 10^7 pair steps on the nu form were not enough for either
    small = SVR(Gaussian(1.0), nu=0.5).fit(X, 1e-8 * y)
    dear = SVR(Polynomial(3, 0.0), 1.0, nu=0.1).fit(np.c_[X, X[::-1]], 1e-8 * y)
    for machine in (small, dear):
        assert machine.solution_.status is Status.SOLVED
        assert machine.solution_.iterations < 1_000_000
        assert machine.certificate_.ok


@pytest.mark.usefixtures("soon")
def test_steps_are_bounded_in_all():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        machine = SVR(Gaussian(4.0), 1e6, nu=0.5, max_iter=300).fit(X, y)
    assert machine.solution_.iterations <= 300
