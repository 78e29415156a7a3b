"""Bounds of learning theory: worked figures, limits, and failure rates by simulation."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, AxisAlignedRectangle, KernelRidge
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.theory import (
    HalfSpaces,
    Intervals,
    Rectangles,
    Sines,
    agnostic_sample_size,
    double_sampling_error,
    double_sampling_size,
    finite_class_error,
    growth,
    hoeffding,
    is_shattered,
    machine_bound,
    margin_dimension,
    margin_error,
    novikoff,
    realisable_sample_size,
    rectangle_sample_size,
    relative_entropy,
    sauer,
    vc_dimension,
    vc_error,
)

DRAWS = 10_000
probabilities = st.floats(1e-3, 0.999)


def at_most(failures, delta, draws=DRAWS):
    """Whether so many failures are in keeping with a rate of at most delta (five deviations)."""
    return failures <= delta * draws + 5 * math.sqrt(draws * delta * (1 - delta))


# --- the box ---------------------------------------------------------------------------------


@parametrize_with_checks([AxisAlignedRectangle()])
def test_scikit_learn_protocol(estimator, check):
    check(estimator)


def box_errors(rng, m, draws, dimension=2):
    """True errors of the tightest box: uniform points of the unit cube, target [0.2, 0.8]^d."""
    X = rng.uniform(size=(draws, m, dimension))
    inside = np.all((X > 0.2) & (X < 0.8), axis=2)
    low = np.where(inside[..., None], X, np.inf).min(axis=1)
    high = np.where(inside[..., None], X, -np.inf).max(axis=1)
    held = np.prod(np.maximum(high - low, 0.0), axis=1)
    return 0.6**dimension - np.where(np.isfinite(held), held, 0.0)


def test_the_machine_is_the_simulated_learner():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(30, 2))
    machine = AxisAlignedRectangle().fit(X, np.all((X > 0.2) & (X < 0.8), axis=1))
    held = np.prod(machine.high_ - machine.low_)
    np.testing.assert_allclose(0.36 - held, box_errors(np.random.default_rng(3), 30, 1)[0])
    assert machine.consistent_


@pytest.mark.parametrize(("error", "delta"), [(0.1, 0.05), (0.2, 0.2)])
def test_rectangles_fail_no_more_often_than_promised(error, delta):
    m = int(rectangle_sample_size(error, delta).value)
    errors = box_errors(np.random.default_rng(0), m, DRAWS)
    assert at_most(np.count_nonzero(errors > error), delta)


def test_the_box_without_positive_rows_is_empty():
    machine = AxisAlignedRectangle(positive="yes").fit([[0.0], [1.0], [2.0]], ["no", "no", "yes"])
    assert machine.predict([[1.0], [2.0]]).tolist() == ["no", "yes"]
    left_out = AxisAlignedRectangle(positive="yes")
    left_out.fit([[0.0], [1.0], [2.0]], ["no", "no", "yes"], sample_weight=[1, 1, 0])
    assert left_out.predict([[2.0]]).tolist() == ["no"]
    with pytest.raises(ValueError, match="'maybe' is not a label"):
        AxisAlignedRectangle(positive="maybe").fit([[0.0], [1.0]], ["no", "yes"])


def test_inconsistent_data_are_told():
    X = np.arange(5.0)[:, None]
    machine = AxisAlignedRectangle().fit(X, [0, 1, 0, 1, 0])
    assert not machine.consistent_
    assert machine.n_inside_ == 1


# --- finite classes --------------------------------------------------------------------------


def thresholds(n_hypotheses):
    return (np.arange(n_hypotheses) + 0.5) / n_hypotheses


def test_consistent_hypotheses_fail_no_more_often_than_promised():
    # thresholds on uniform points; the worst consistent one is taken every time
    N, error, delta = 50, 0.1, 0.1
    m = int(realisable_sample_size(N, error, delta).value)
    t, target = thresholds(N), 0.51
    X = np.random.default_rng(1).uniform(size=(DRAWS, m))
    below = np.where(target > X, X, 0.0).max(axis=1)
    above = np.where(target <= X, X, 1.0).min(axis=1)
    consistent = (t > below[:, None]) & (t <= above[:, None])
    worst = np.where(consistent, np.abs(t - target), 0.0).max(axis=1)
    assert at_most(np.count_nonzero(worst > error), delta)


def test_the_best_on_the_sample_is_nearly_the_best():
    N, error, delta = 20, 0.2, 0.1
    m = int(agnostic_sample_size(N, error, delta).value)
    t, noise, rng = thresholds(N), 0.2, np.random.default_rng(2)
    true = noise + (1 - 2 * noise) * np.abs(t - 0.5)
    failures, draws = 0, 2000
    for _ in range(draws):
        x = rng.uniform(size=m)
        y = (x >= 0.5) ^ (rng.uniform(size=m) < noise)
        observed = np.mean((x[:, None] >= t) != y[:, None], axis=0)
        failures += true[observed.argmin()] > true.min() + error
    assert at_most(failures, delta, draws)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_hoeffding_covers(p):
    n, delta = 100, 0.05
    observed = np.random.default_rng(0).binomial(n, p, DRAWS) / n
    failures = sum(p > hoeffding(n, delta, q).value for q in observed)
    assert at_most(failures, delta)


def test_figures_of_the_text():
    # (4 / eps) ln(4 / delta); ln(|C| / delta) / eps; (2 / eps^2) ln(2 |C| / delta)
    assert rectangle_sample_size(0.05, 0.1).value == math.ceil(80 * math.log(40))
    assert realisable_sample_size(3**5, 0.1, 0.1).value == math.ceil(10 * math.log(2430))
    assert agnostic_sample_size(3**5, 0.1, 0.1).value == math.ceil(200 * math.log(4860))
    # conjunctions over a thousand literals: more hypotheses than a float can count
    thousand = realisable_sample_size(3**1000, 0.1, 0.1).value
    assert thousand == math.ceil(10 * (1000 * math.log(3) + math.log(10)))
    assert agnostic_sample_size(3**1000, 0.1, 0.1).value > thousand


@given(st.integers(1, 10**6), st.integers(1, 10**6), probabilities, st.floats(0, 1))
def test_errors_are_never_above_one_and_say_when_they_say_nothing(N, n, delta, observed):
    for bound in (finite_class_error(N, n, delta, observed), vc_error(3, n, delta, observed)):
        assert observed <= bound.value <= 1
        assert bound.vacuous == (bound.value >= 1)
        assert str(bound)


# --- dichotomies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hypotheses", "vc"),
    [
        (Intervals(), 2),
        (Intervals(2), 4),
        (Rectangles(1), 2),
        (Rectangles(2), 4),
        (HalfSpaces(1), 2),
        (HalfSpaces(2), 3),
        (HalfSpaces(3), 4),
    ],
)
def test_dimensions_of_the_text(hypotheses, vc):
    assert vc_dimension(hypotheses, largest=vc + 1, trials=60) == vc
    for m in range(vc + 2):
        found = growth(hypotheses, m, trials=60)
        assert found <= sauer(vc, m)
        assert (found == 2**m) == (m <= vc)


def test_sines_shatter_any_number_of_points():
    assert is_shattered(Sines(), 10.0 ** -np.arange(1.0, 9.0))
    assert vc_dimension(Sines(), largest=7, trials=1) == 7
    with pytest.raises(ValueError, match="10\\^-1"):
        is_shattered(Sines(), [0.3])


def test_twenty_points_are_the_most():
    with pytest.raises(ValueError, match="at most 20"):
        is_shattered(Intervals(), np.arange(21.0))
    assert not is_shattered(Intervals(), [1.0, 1.0])  # one point twice has one label


@given(st.integers(0, 30), st.integers(0, 60))
def test_sauer_is_two_to_the_m_up_to_the_dimension(vc, m):
    assert sauer(vc, m) == sum(math.comb(m, i) for i in range(vc + 1))
    if m <= vc:
        assert sauer(vc, m) == 2**m
    elif vc:
        assert sauer(vc, m) <= (math.e * m / vc) ** vc * (1 + 1e-9)


# --- double sampling -------------------------------------------------------------------------


@pytest.mark.parametrize("vc", [1, 4, 300])
def test_double_sampling_against_exact_arithmetic(vc):
    n, delta = 2000, 0.05
    counted = mpmath.mpf(sauer(vc, 2 * n))
    bits = mpmath.log(2 * counted / delta, 2)
    assert math.isclose(
        double_sampling_error(vc, n, delta).value, min(1.0, float(2 * bits / n)), rel_tol=1e-10
    )


@given(st.integers(0, 20), st.floats(0.01, 0.5), probabilities)
def test_the_sample_size_is_the_smallest(vc, error, delta):
    m = int(double_sampling_size(vc, error, delta).value)
    assert double_sampling_error(vc, m, delta).value <= error
    assert m == 1 or double_sampling_error(vc, m - 1, delta).value > error


def test_consistent_rectangles_keep_within_double_sampling():
    error, delta = 0.2, 0.1
    m = int(double_sampling_size(4, error, delta).value)
    errors = box_errors(np.random.default_rng(5), m, 2000)
    assert at_most(np.count_nonzero(errors > error), delta, 2000)


# --- margins ---------------------------------------------------------------------------------


def test_the_dimension_of_large_margins():
    assert margin_dimension(1.0, 0.5, 100).value == 5
    assert margin_dimension(1.0, 0.5, 2).value == 3
    assert margin_dimension(1.0, 0.5, 2).vacuous
    assert not margin_dimension(1.0, 0.5, 100).vacuous
    assert margin_dimension(1e200, 1.0).vacuous
    for none in (margin_dimension(1.0, 0.0), margin_dimension(math.inf, 1.0), novikoff(1.0, 0.0)):
        assert none.vacuous
        assert none.value == math.inf


def test_a_perceptron_keeps_novikoffs_bound():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    w = np.array([1.0, -1.0, 0.5, 0.0, 2.0]) / np.linalg.norm([1.0, -1.0, 0.5, 0.0, 2.0])
    X = X[np.abs(X @ w) > 0.3]
    y = np.sign(X @ w)
    bound = novikoff(np.linalg.norm(X, axis=1).max(), np.min(y * (X @ w)))
    v, mistakes = np.zeros(5), 0
    for _ in range(200):
        for x, label in zip(X, y, strict=True):
            if label * (v @ x) <= 0:
                v, mistakes = v + label * x, mistakes + 1
    assert np.all(y * (X @ v) > 0)
    assert mistakes <= bound.value


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_margin_bound_covers_the_error_of_machines(noise):
    """Failures must be rare; in fact the bound is loose, so there are none."""
    kernel, delta = Gaussian(2.0), 0.1
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((600, 2))
        flip = rng.uniform(size=600) < noise
        y = (X[:, 0] + X[:, 1] > 0) ^ flip
        machine = SVC(kernel, C=0.1).fit(X[:300], y[:300])
        bound = machine_bound(machine, X[:300], y[:300], delta)
        assert 1 - machine.score(X[300:], y[300:]) <= bound.value
    sizes = [margin_error(np.zeros(n), 1.0, np.ones(n), delta).value for n in (10**3, 10**5, 10**7)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.01


def test_machine_bound_computes_norm_and_slack_in_feature_space():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X[:, 0] > 0
    machine = SVC(Linear(), C=1.0).fit(X, y)
    slack = np.maximum(0, 1 - np.where(y, 1, -1) * machine.decision_function(X))
    norm = np.sum(machine.coef_**2) + machine.intercept_**2
    by_hand = margin_error(slack, norm, np.sum(X**2, axis=1) + 1, 0.05)
    np.testing.assert_allclose(machine_bound(machine, X, y).value, by_hand.value, rtol=1e-6)
    as_csr = machine_bound(machine, sparse.csr_array(X), y)
    np.testing.assert_allclose(as_csr.value, by_hand.value, rtol=1e-6)
    three = SVC(Linear()).fit(X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="two classes"):
        machine_bound(three, X, y)
    with pytest.raises(ValueError, match="labels among them"):
        machine_bound(machine, X, np.full(80, "other"))
    for other in (KernelRidge(), SVC(Precomputed()).fit(X @ X.T, y)):
        with pytest.raises(TypeError, match=r"fitted mercer\.SVC"):
            machine_bound(other, X, y)


# --- relative entropy ------------------------------------------------------------------------


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=6), st.randoms())
def test_relative_entropy_is_never_negative(p, random):
    q = [x * random.uniform(0.5, 2) for x in p]
    assert relative_entropy(p, q) >= -1e-12
    assert abs(relative_entropy(p, p)) < 1e-12
    pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(p, q, strict=True)]
    terms = [a * mpmath.log(a / b) - a + b for a, b in pairs]
    assert abs(relative_entropy(p, q) - float(mpmath.fsum(terms))) < 1e-10


def test_relative_entropy_at_zeros():
    assert relative_entropy([0, 1], [0.5, 0.5]) == pytest.approx(math.log(2))
    assert relative_entropy([0.5, 0.5], [0, 1]) == math.inf
    with pytest.raises(ValueError, match="negative"):
        relative_entropy([-1.0], [1.0])


# --- what cannot be asked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: hoeffding(0, 0.1), "n=0"),
        (lambda: hoeffding(1.5, 0.1), "n=1.5"),
        (lambda: hoeffding(10, 0.0), "delta=0"),
        (lambda: hoeffding(10, 1.0), "delta=1"),
        (lambda: finite_class_error(0, 10, 0.1), "hypotheses=0"),
        (lambda: finite_class_error(math.inf, 10, 0.1), "hypotheses=inf"),
        (lambda: vc_error(3, 10, 0.1, observed=1.1), "observed=1.1"),
        (lambda: rectangle_sample_size(math.nan, 0.1), "error=nan"),
        (lambda: margin_dimension(-1.0, 0.1), "radius=-1"),
        (lambda: margin_dimension(1.0, math.nan), "margin=nan"),
        (lambda: margin_error([0.0], -1.0, [1.0], 0.1), "squared_norm=-1"),
        (lambda: margin_error([], 1.0, [], 0.1), "equally many"),
        (lambda: margin_error([math.nan], 1.0, [1.0], 0.1), "slack"),
        (lambda: margin_error([-1.0], 1.0, [1.0], 0.1), "must not be negative"),
        (lambda: margin_error([1.0], 1.0, [-1.0], 0.1), "must not be negative"),
        (lambda: margin_dimension(1.0, 0.1, dimension=-5), "dimension=-5"),
        (lambda: hoeffding(10, 0.1, observed=5.0, spread=2.0), "observed=5"),
    ],
)
def test_what_is_out_of_range_is_named(call, names):
    with pytest.raises(ValueError, match=names):
        call()


def test_one_example_promises_nothing_and_says_so():
    for bound in (
        hoeffding(1, 0.05, 0.5),
        vc_error(3, 1, 0.05),
        double_sampling_error(3, 1, 0.05),
        finite_class_error(10, 1, 0.05, 1.0),
        margin_error([0.0], 1.0, [1.0], 0.05),
    ):
        assert bound.vacuous
        assert "vacuous" in str(bound)
        assert bound.assumptions
        assert float(bound) == bound.value
