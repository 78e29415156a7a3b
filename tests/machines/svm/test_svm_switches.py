"""SOLVED is said only where the certificate agrees, on both sides of every switch."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, EnclosingBall, OneClassSVM, Status
from mercer.gram import build, policy
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines.svm import choice, subset_descent

pytestmark = pytest.mark.numerics

N = 60  # where the switches are put
SWITCHES = {
    "none": [],
    "float32": [(policy, "FLOAT64_ROWS")],
    "seen first": [(build, "STORED_UNSEEN")],
    "not stored": [(build, "LARGEST_STORED"), (subset_descent, "LARGEST_STORED")],
    "float32, not stored": [(policy, "FLOAT64_ROWS"), (build, "LARGEST_STORED")],
    "features": [(build, "NARROW_ROWS")],
}
MACHINES = [
    SVC(C=10.0),
    SVC(C=10.0, slack="l2"),
    SVC(C=1e5),
    SVC(C=1e-4, multiclass="ovr"),
    SVC(nu=0.2),
    SVR(C=10.0),
    SVR(C=10.0, tube="l2"),
    SVR(C=1e4, epsilon=0.01),
    SVR(nu=0.4),
    OneClassSVM(nu=0.15),
    EnclosingBall(),
    EnclosingBall(nu=0.2),
]


def data(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 3)) + 1.0
    return X, np.arange(n) % 3, X[:, 0] + 0.3 * rng.standard_normal(n)


def fitted(machine, X, codes, targets):
    given = {SVC: (codes,), SVR: (targets,)}.get(type(machine), ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return clone(machine).fit(X, *given)
        except ValueError as error:
            assert "no margin" in str(error)
            return None


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Gaussian(2.0)], ids=repr)
@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_solved_implies_a_certificate(machine, switch, kernel, monkeypatch):
    for where, name in SWITCHES[switch]:
        monkeypatch.setattr(where, name, N)
    for n in (N - 1, N + 1):
        found = fitted(clone(machine).set_params(kernel=kernel), *data(n))
        if found is None:
            continue
        before = found.solution_.status  # reading the certificate may take it back
        assert before is not Status.SOLVED or found.certificate_.ok, found.certificate_
        assert found.solution_.status is before


def test_dual_descent_is_certified(monkeypatch):
    monkeypatch.setattr(build, "NARROW_ROWS", N)
    monkeypatch.setattr(choice, "SQUARED", 1)
    for machine in MACHINES:
        found = fitted(clone(machine).set_params(kernel=Linear()), *data(2 * N))
        if found is not None and found.solution_.status is Status.SOLVED:
            assert found.certificate_.ok, machine


def test_the_switches_are_crossed(monkeypatch):
    solvers = set()
    for switch, places in SWITCHES.items():
        with monkeypatch.context() as patched:
            for where, name in places:
                patched.setattr(where, name, N)
            for n in (N - 1, 2 * N):
                for kernel in (Linear(), Gaussian(2.0)):
                    found = fitted(OneClassSVM(kernel), *data(n))
                    solvers.add((switch, found.solution_.solver))
    assert ("features", "InteriorPoint") in solvers and ("features", "SMO") in solvers
    assert ("not stored", "WorkingSets") in solvers and ("not stored", "SMO") in solvers
    assert ("seen first", "WorkingSets") in solvers


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["outlier", "offset", "equal rows", "constant column", "scale"])
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_hostile_samples_are_certified_or_said_to_be_inaccurate(machine, kind, seed):
    rng = np.random.default_rng(seed)
    X, codes, targets = data(30)
    size = 10.0 ** rng.integers(3, 9)
    if kind == "outlier":
        X[3, 2] = -size
    X = {
        "outlier": X,
        "offset": X + size,
        "equal rows": X[rng.integers(0, 10, 30)],
        "constant column": np.column_stack([X, np.full(30, size)]),
        "scale": X * size,
    }[kind]
    kernel = [Linear(), Polynomial(2), Gaussian(2.0)][seed % 3]
    found = fitted(clone(machine).set_params(kernel=kernel), X, codes, targets)
    if found is None or found.solution_.status is not Status.SOLVED:
        return
    assert found.certificate_.ok
    if isinstance(machine, OneClassSVM | EnclosingBall):
        # a ball around all samples has them inside to the tolerance
        known = 0.0 if machine.nu else found.tol * min(2.0, found.radius_**2)
        outside = found.decision_function(X) < -known
        assert outside.mean() <= machine.nu + 1.0 / 30


@pytest.mark.parametrize(("C", "solver"), [(1.0, "SMO"), (1e4, "Each")])
def test_many_small_pairs_of_a_linear_kernel_share_a_stored_matrix(C, solver):
    rng = np.random.default_rng(0)
    codes = np.arange(1200) % 10
    X = rng.standard_normal((1200, 4)) + 2.0 * rng.standard_normal((10, 4))[codes]
    found = SVC(Linear(), C=C).fit(X, codes)
    assert found.solution_.solver.startswith(solver)
    assert found.solution_.status is Status.SOLVED and found.certificate_.ok


def test_programmes_on_most_of_the_rows_keep_their_features():
    X, codes, _ = data(1200)
    assert SVC(Linear(), C=1.0).fit(X, codes).solution_.solver.startswith("Each")
