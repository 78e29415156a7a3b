"""Where the origin is changes nothing for machines whose constant is free: no column is too far."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, LogisticRegression, OneClassSVM, config
from mercer.kernels import Gaussian, Linear
from mercer.machines.base.origin import far_origin, less_origin
from mercer.solvers import Status

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=120)
EPS = np.finfo(float).eps


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
        (Linear(), X + 50.0),
        (Linear(), beside(1e2)),
        (Gaussian(1.0), beside(1e8)),
        (Linear(), np.zeros((5, 2))),
    ]:
        assert far_origin(kernel, rows, np.arange(len(rows))) is None
        assert less_origin(rows, None) is rows
    rows = beside(1e3)
    assert OneClassSVM("linear").fit(rows).coef_[1] != 0.0  # its constant is not free


@pytest.mark.parametrize("constant", [1.0, -1e3, 1e7, 1e12])
@pytest.mark.parametrize(
    "machine", [SVC("linear"), SVR("linear"), LogisticRegression(kernel="linear")], ids=str
)
def test_rows_that_are_all_the_same_leave_the_constant_alone(machine, constant):
    rows, y = np.full((120, 2), constant), Y if isinstance(machine, SVR) else (Y > 0.3).astype(int)
    expected = clone(machine).fit(np.zeros((120, 2)), y)
    found = clone(machine).fit(rows, y)
    assert found.solution_.status.ok and found.certificate_.ok
    np.testing.assert_array_equal(np.ravel(found.coef_), 0.0)
    np.testing.assert_allclose(found.intercept_, expected.intercept_)
    gap = found.certificate_.quantities.relative_gap
    assert gap <= expected.certificate_.quantities.relative_gap + 1e-12


# --- all columns, as far as float64 goes ------------------------------------------------------

GAP = 1e-9
EXACT = {"criterion": "gap", "tol": GAP}
SHIFTED = [
    SVC("linear", **EXACT),
    SVC("linear", slack="l2", **EXACT),
    SVC("linear", nu=0.3, **EXACT),
    SVR("linear", **EXACT),
    SVR("linear", tube="l2", **EXACT),
    SVR("linear", nu=0.4, criterion="gap", tol=1e-7),
    LogisticRegression(kernel="linear"),
]


def targets(machine, X):
    values = X[:, 0] - 0.5 * X[:, -1] + 0.4 * np.sin(37.0 * X[:, 1])
    return values if isinstance(machine, SVR) else (values > 0).astype(int)


def on_a_grid(X):
    """Rows that no shift up to 1e8 rounds."""
    return np.round(X * 2.0**20) / 2.0**20


def values_of(machine, X):
    found = machine.predict(X) if isinstance(machine, SVR) else machine.decision_function(X)
    return np.asarray(found)


@pytest.mark.parametrize("machine", SHIFTED, ids=str)
@pytest.mark.parametrize("shape", [(60, 3), (30, 50)], ids=str)
@settings(
    max_examples=2, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(seed=st.integers(0, 2**20), sign=st.sampled_from([-1.0, 1.0]))
def test_a_shift_of_all_columns_changes_no_weight(machine, shape, seed, sign):
    X = on_a_grid(np.random.default_rng(seed).normal(size=shape))
    y = targets(machine, X)
    try:
        plain = clone(machine).fit(X, y)
    except ValueError as error:  # the reduced hulls of one draw in a hundred meet
        assume("no margin at this nu" not in str(error))
        raise
    w, f = np.ravel(plain.coef_), values_of(plain, X)
    # half the squared distance of w is no more than the two gaps
    size = np.abs(w).max() + np.sqrt(GAP * (1 + np.square(w).sum() + 3 * len(y)))
    near = 1e-3 * size
    for shift in (1e3, 1e6, 1e8):
        moved = X + sign * shift
        found = clone(machine).fit(moved, y)
        assert found.solution_.status.ok, (shift, found.solution_)
        assert found.certificate_.ok, (shift, found.certificate_)
        np.testing.assert_allclose(np.ravel(found.coef_), w, atol=near)
        rounding = (shape[1] + 2) * EPS * shift * np.sqrt(shape[1]) * np.linalg.norm(w)
        apart = np.abs(X).sum(axis=1).max() * near + 2 * rounding
        np.testing.assert_allclose(values_of(found, moved), f, atol=2 * apart)


@pytest.mark.parametrize("shift", [1e6, 1e8])
def test_three_classes(shift):
    X = on_a_grid(RNG.normal(size=(90, 4)))
    y = np.argmax(X[:, :3] + 0.5 * RNG.normal(size=(90, 3)), axis=1)
    for scheme in ("ovo", "ovr"):
        machine = SVC("linear", multiclass=scheme, **EXACT)
        expected, found = clone(machine).fit(X, y), clone(machine).fit(X + shift, y)
        assert found.solution_.status.ok and found.certificate_.ok
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3)
        np.testing.assert_array_equal(found.predict(X + shift), expected.predict(X))


def test_what_rounding_leaves_of_values_is_said_and_judged():
    y = (Y > 0).astype(int)
    found = SVC("linear", tol=1e-3).fit(X + 1e8, y)
    assert found.solution_.status.ok and found.certificate_.ok
    assert "values are known to" in found.certificate_.statement
    assert 0 < found.certificate_.quantities.intercept_error <= 1e-3
    with pytest.warns(ConvergenceWarning, match="values are known to"):
        found = SVC("linear", tol=1e-9).fit(X + 1e8, y)
    assert found.solution_.status is Status.INACCURATE and not found.certificate_.ok


@pytest.mark.filterwarnings("ignore:.*differ in scale")
@pytest.mark.parametrize(
    "machine", [LogisticRegression(kernel="linear"), SVC("linear", criterion="gap")], ids=str
)
def test_an_objective_whose_values_are_unknown_is_not_certified(machine):
    rows, y = np.round(4 * X) / 4, (Y > 0).astype(int)
    expected = clone(machine).fit(rows, y).decision_function(rows)
    rows[:, 0] += 1e15
    with pytest.warns(ConvergenceWarning, match="values are known to"):
        found = clone(machine).fit(rows, y)
    assert np.abs(found.decision_function(rows) - expected).max() > 0.01
    assert found.solution_.status is Status.INACCURATE and not found.certificate_.ok


def test_rows_are_not_copied_past_the_memory_budget():
    X = 1e6 + np.random.default_rng(0).standard_normal((300, 4))
    assert far_origin(Linear(), X, np.arange(300)) is not None
    with config(memory=X.nbytes - 1):
        assert far_origin(Linear(), X, np.arange(300)) is None


def test_files_and_copies_of_a_machine_whose_origin_was_moved():
    far = on_a_grid(X) + 1e8
    for machine in (SVC("linear"), SVR("linear")):
        machine.fit(far, targets(machine, X))
        expected = values_of(machine, far)
        again = pickle.loads(pickle.dumps(machine))
        np.testing.assert_array_equal(values_of(again, far), expected)
        b = float(machine.intercept_)
        np.testing.assert_allclose(far @ machine.coef_ + b, expected, atol=1e-5)


def test_float32_rows_keep_their_digits():
    far = (1e6 + np.round(8 * X)).astype(np.float32)
    y = (Y > 0).astype(int)
    expected = SVC("linear", **EXACT).fit(far.astype(float) - 1e6, y)
    found = SVC("linear", **EXACT).fit(far, y)
    assert found.solution_.status.ok
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)


@pytest.mark.parametrize(("count", "weight"), [(3, 1e12), (10, 1e9), (50, 1e9)])
def test_several_rows_of_great_weight(count, weight):
    """One coefficient at its bound moves f by thousands of millions: features do not care."""
    weights = np.ones(len(X))
    weights[:count] = weight
    for machine in (SVC("linear"), SVR("linear")):
        y = (Y > 0).astype(int) if isinstance(machine, SVC) else Y
        found = machine.fit(X, y, sample_weight=weights)
        assert found.solution_.status.ok and found.certificate_.ok
