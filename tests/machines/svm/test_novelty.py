"""Novelty: the nu property, closed forms of balls, against LIBSVM."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import svm as sk
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer import EnclosingBall, OneClassSVM, ParameterError, load, save
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
XN = 2 * rng.standard_normal((50, 3))


def close(found, wanted, tol):
    wanted = np.asarray(wanted)
    atol = tol * max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tol, atol=atol)


# --- the half-space ----------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5, 0.9])
def test_against_libsvm_and_the_nu_property(nu):
    theirs = sk.OneClassSVM(gamma=0.5, nu=nu, tol=1e-8).fit(X)
    ours = OneClassSVM(Gaussian(1.0), nu=nu, tol=1e-8).fit(X)
    close(ours.decision_function(XN), theirs.decision_function(XN), 1e-5)
    close(ours.score_samples(XN), theirs.score_samples(XN), 1e-5)
    zone = ours.zones(X).zone
    assert (zone == "outside").mean() <= nu + 1e-9
    assert len(ours.support_) / len(X) >= nu - 1e-9
    assert ours.certificate_.ok


def test_with_every_row_a_support_vector_it_is_a_mean():
    machine = OneClassSVM(Gaussian(1.0), nu=1.0).fit(X)
    close(machine.score_samples(XN), Gaussian(1.0)(XN, X).sum(axis=1), 1e-9)
    assert len(machine.support_) == 200
    assert np.isfinite(machine.offset_)


def test_predictions_are_the_signs():
    machine = OneClassSVM(nu=0.1).fit(X)
    decision = machine.decision_function(XN)
    close(decision, machine.score_samples(XN) - machine.offset_, 1e-12)
    np.testing.assert_array_equal(machine.predict(XN), np.where(decision >= 0, 1, -1))
    assert machine.intercept_ == -machine.offset_
    np.testing.assert_array_equal(machine.fit_predict(X), machine.predict(X))


def test_zones_are_the_sizes_of_the_coefficients():
    machine = OneClassSVM(Gaussian(1.0), nu=0.3, tol=1e-7).fit(X)
    size = np.zeros(200)
    size[machine.support_] = machine.dual_coef_
    zone = machine.zones(X).zone
    assert (size[zone == "inside"] == 0).all()
    assert (size[zone == "outside"] == 1.0).all()
    assert size.sum() == pytest.approx(0.3 * 200)


# --- the ball ----------------------------------------------------------------------------------


def test_balls_known_in_closed_form():
    square = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.2]])
    machine = EnclosingBall(Linear(), tol=1e-9).fit(square)
    assert machine.radius_ == pytest.approx(np.sqrt(2.0))
    assert machine.center_norm_ == pytest.approx(np.sqrt(2.0))
    close(machine.dual_coef_ @ machine.support_vectors_, [1.0, 1.0], 1e-7)
    close(machine.decision_function([[1.0, 1.0], [3.0, 1.0]]), [2.0, -2.0], 1e-7)
    points = EnclosingBall("precomputed", tol=1e-9).fit(np.eye(4))
    assert points.radius_ == pytest.approx(np.sqrt(3 / 4))  # a simplex


def test_a_ball_around_one_point():
    machine = EnclosingBall(Gaussian(1.0)).fit([[1.0, 2.0]])
    assert machine.radius_ == 0
    assert machine.predict([[1.0, 2.0], [1.5, 2.0]]).tolist() == [1, -1]


def test_every_row_is_inside_the_hard_ball():
    for kernel in (Gaussian(1.0), Polynomial(2), Linear()):
        machine = EnclosingBall(kernel, tol=1e-8).fit(X)
        assert (machine.zones(X).zone != "outside").all()
        far = kernel.diag(X) - 2 * machine._expansion(X)[:, 0] + machine.center_norm_**2
        assert np.sqrt(far.max()) == pytest.approx(machine.radius_, rel=1e-6)


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
def test_share_left_outside(nu):
    machine = EnclosingBall(Polynomial(2), nu=nu, tol=1e-8).fit(X)
    assert (machine.zones(X).zone == "outside").mean() <= nu + 1e-9
    assert machine.certificate_.ok


def test_ball_and_half_space_agree_for_radial_kernels():
    """Where k(x, x) is constant, both draw the same border."""
    ball = EnclosingBall(Gaussian(1.0), nu=0.2, tol=1e-9).fit(X)
    half = OneClassSVM(Gaussian(1.0), nu=0.2, tol=1e-7).fit(X)
    close(ball.decision_function(XN) * (0.2 * 200) / 2, half.decision_function(XN), 1e-4)


def test_a_ball_needs_the_kernel_for_new_rows():
    machine = EnclosingBall("precomputed").fit(Gaussian(1.0)(X))
    with pytest.raises(ValueError, match=r"needs k\(x, x\).*pass a kernel and rows"):
        machine.predict(Gaussian(1.0)(XN, X))


@pytest.mark.parametrize(("nu", "words"), [(-0.1, "from 0 to 1"), (1.1, "from 0"), ("a", "number")])
def test_shares_that_are_none(nu, words):
    with pytest.raises(ParameterError, match=words):
        EnclosingBall(nu=nu).fit(X)


# --- weights, kinds of rows --------------------------------------------------------------------

values = st.integers(-12, 12).map(lambda i: i / 8)
quick = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MACHINES = [
    OneClassSVM(Gaussian(0.7), nu=0.3),
    OneClassSVM(Linear(), nu=0.6),
    EnclosingBall(Gaussian(0.7)),
    EnclosingBall(Linear(), nu=0.4),
]


@st.composite
def weighted_rows(draw):
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights[0] = max(1, weights[0])
    return np.array(rows), np.array(weights)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
@quick
@given(case=weighted_rows(), order=st.randoms(use_true_random=False))
def test_weights_mean_repetition_to_the_last_bit(machine, case, order):
    rows, weights = case
    index = np.repeat(np.arange(len(rows)), weights)
    order.shuffle(index)
    weighted = clone(machine).fit(rows, sample_weight=weights)
    repeated = clone(machine).fit(rows[index])
    np.testing.assert_array_equal(
        weighted.decision_function(rows), repeated.decision_function(rows)
    )


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_function_and_sparse_rows(machine):
    machine = clone(machine).set_params(tol=1e-8)
    thin, new, kernel = np.where(np.abs(X) > 0.5, X, 0.0), np.where(XN > 0, XN, 0.0), machine.kernel
    base = clone(machine).fit(thin).score_samples(new)
    by_function = clone(machine).set_params(kernel=kernel.__call__).fit(thin)
    close(by_function.score_samples(new), base, 1e-5)
    by_csr = clone(machine).fit(sparse.csr_array(thin))
    close(by_csr.score_samples(sparse.csr_array(new)), base, 1e-5)
    if isinstance(machine, OneClassSVM):
        by_matrix = clone(machine).set_params(kernel="precomputed").fit(kernel(thin))
        close(by_matrix.score_samples(kernel(new, thin)), base, 1e-5)


def test_strings():
    words = ["banana", "bandana", "ananas", "cabana", "xyzzy"]
    machine = OneClassSVM(Spectrum(1).normalized(), nu=0.3).fit(words)
    assert not hasattr(machine, "n_features_in_")
    scores = machine.score_samples(["banana", "qqq"])
    assert scores[0] > scores[1]


def test_every_row_may_be_outside_the_ball_whatever_their_number():
    for n in (6, 7, 49):  # n times 1/n rounds below one
        assert EnclosingBall(Gaussian(1.0), nu=1.0).fit(X[:n]).certificate_.ok


def test_a_large_ball_of_long_vectors_is_certified():
    rows = np.random.default_rng(0).standard_normal((1500, 60))
    machine = EnclosingBall(Polynomial(3, 1.0)).fit(rows)
    assert machine.solution_.status.ok
    assert machine.certificate_.ok


# --- outliers ------------------------------------------------------------------------------------


def test_one_long_sample_does_not_set_the_unit_of_a_half_space():
    rows = np.random.default_rng(0).standard_normal((200, 4))
    rows[3, 2] = -1e6
    machine = OneClassSVM(Polynomial(2), nu=0.1).fit(rows)
    assert machine.solution_.status.ok and machine.certificate_.ok
    assert (machine.predict(rows) < 0).mean() <= 0.1
    decision, used = machine.decision_function(rows), np.zeros(200)
    used[machine.support_] = machine.dual_coef_
    border = 1e-3 * machine.offset_
    assert decision[used < 1].min() >= -border
    assert np.abs(decision[(used > 0) & (used < 1)]).max() <= border


@pytest.mark.parametrize("size", [1e5, 1e8])
@pytest.mark.parametrize("seed", range(5))
def test_a_half_space_that_is_certified_keeps_the_nu_property(seed, size):
    """The samples lie around the origin, so that the score at the border is zero."""
    rows = np.random.default_rng(seed).standard_normal((40, 3))
    rows[seed, seed % 3] = size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = OneClassSVM(Linear(), nu=0.2).fit(rows)
    assert machine.solution_.status.ok == machine.certificate_.ok
    outside = (machine.predict(rows) < 0).mean()
    assert outside <= 0.2 or not machine.certificate_.ok
    assert f"{outside:.2%} of the samples are outside" in machine.certificate_.statement


def test_slack_outside_a_ball_does_not_set_its_unit():
    rows = 0.1 * np.random.default_rng(2).standard_normal((16, 2))
    rows[3] = 40.0
    machine = EnclosingBall(Gaussian(1.0), nu=0.3).fit(rows)
    used = np.zeros(16)
    used[machine.support_] = machine.dual_coef_
    free = (used > 1e-9) & (used < 1 / (0.3 * 16) - 1e-9)
    assert machine.certificate_.ok
    assert np.abs(machine.decision_function(rows)[free]).max() <= 1e-3 * machine.radius_**2


def test_a_ball_whose_radius_cancels_against_its_center_is_not_certified():
    """Decision values are multiples of one, the rounding of the squared norm of the center."""
    rows = np.random.default_rng(0).standard_normal((36, 4))
    rows[11, 3] = -1e3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = EnclosingBall(Polynomial(3), nu=0.3).fit(rows)
    assert not machine.certificate_.ok
    assert not machine.solution_.status.ok
    assert machine.certificate_.quantities.rounding > 1e-3


@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.3), EnclosingBall(nu=0.3)])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_only_samples_at_their_bound_are_outside(machine, tol):
    machine = clone(machine).set_params(tol=tol).fit(X)
    assert (machine.predict(X) < 0).mean() <= machine.nu


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_a_ball_around_all_samples_holds_them_to_the_tolerance(tol):
    machine = EnclosingBall(tol=tol).fit(X)
    assert machine.decision_function(X).min() >= -tol * machine.radius_**2


@pytest.mark.numerics
@pytest.mark.parametrize("offset", [2.0**14, 2.0**27, 2.0**40])
@pytest.mark.parametrize("shape", [(40, 60), (80, 5)])
def test_a_ball_goes_where_its_rows_go(shape, offset, tmp_path):
    """The offset is exact in these rows: the ball is the same, and so are distances to it."""
    rows = np.round(np.random.default_rng(1).standard_normal(shape) * 1024) / 1024
    near = EnclosingBall("linear", tol=1e-6).fit(rows)
    far = EnclosingBall("linear", tol=1e-6).fit(rows + offset)
    assert far.certificate_.ok
    assert far.radius_ == pytest.approx(near.radius_, rel=1e-5)
    close(far.score_samples(rows + offset), near.score_samples(rows), 1e-5)
    assert far.center_norm_ == pytest.approx(offset * np.sqrt(shape[1]), rel=1e-3)
    save(far, tmp_path / "ball.mercer")
    again = load(tmp_path / "ball.mercer").score_samples(rows + offset)
    np.testing.assert_array_equal(again, far.score_samples(rows + offset))


def test_rows_whose_squares_underflow_have_no_ball():
    with pytest.raises(ValueError, match="Scale the features"):
        EnclosingBall("linear").fit(X * 1e-200)
