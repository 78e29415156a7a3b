"""Bounds of learning theory: worked figures, limits, and what cannot be asked."""

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

probabilities = st.floats(1e-3, 0.999)


# --- the box ---------------------------------------------------------------------------------


@parametrize_with_checks([AxisAlignedRectangle()])
def test_scikit_learn_protocol(estimator, check):
    check(estimator)


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


@pytest.mark.sampled(3)
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


def test_points_that_are_no_numbers():
    with pytest.raises(ValueError, match="finite"):
        is_shattered(Rectangles(2), [[0.0, np.nan]])
    with pytest.raises(ValueError, match="10\\^-1"):
        is_shattered(Sines(), [-0.1])
    for search in (vc_dimension, lambda h, **o: growth(h, 2, **o)):
        with pytest.raises(ValueError, match="trials=0"):
            search(Intervals(), trials=0)


def test_sines_shatter_any_number_of_points():
    assert is_shattered(Sines(), 10.0 ** -np.arange(1.0, 9.0))
    assert vc_dimension(Sines(), largest=7, trials=1) == 7
    with pytest.raises(ValueError, match="10\\^-1"):
        is_shattered(Sines(), [0.3])


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1.0, 1e9])
def test_units_and_origin_do_not_matter_to_half_spaces(unit):
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert is_shattered(HalfSpaces(2), unit * corners)
    assert is_shattered(HalfSpaces(2), unit * (corners + 1e5) * [1.0, 1e-6])
    assert not is_shattered(HalfSpaces(2), unit * np.vstack([corners, [[1.0, 1.0]]]))


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


@pytest.mark.slow
def test_large_dimensions_need_little_memory():
    n = 10**12
    value = double_sampling_error(10**9, n, 0.05).value
    entropy = -(x := 10**9 / (2 * n)) * math.log2(x) - (1 - x) * math.log2(1 - x)
    assert 0.99 < value / (2 * 2 * entropy) <= 1  # log2 of the sum is nearly m H(vc / m)
    half, m = 5000, 10_000  # the sum of the first half of all binomials
    counted = float(mpmath.log(2 * mpmath.mpf(sauer(half, 2 * m)) / 0.05, 2))
    assert math.isclose(double_sampling_error(half, m, 0.05).value, min(1, 2 * counted / m))
    for vc, m in ((15, 30), (40, 50), (2000, 1900), (1100, 1000)):
        expected = min(1.0, 2 * float(mpmath.log(40 * mpmath.mpf(sauer(vc, 2 * m)), 2)) / m)
        assert math.isclose(double_sampling_error(vc, m, 0.05).value, expected, rel_tol=1e-9)
        deviation = math.sqrt(8 / 10**6 * float(mpmath.log(80 * mpmath.mpf(sauer(vc, 2 * 10**6)))))
        assert math.isclose(vc_error(vc, 10**6, 0.05).value, deviation, rel_tol=1e-9)


@given(st.integers(0, 20), st.floats(0.01, 0.5), probabilities)
def test_the_sample_size_is_the_smallest(vc, error, delta):
    m = int(double_sampling_size(vc, error, delta).value)
    assert double_sampling_error(vc, m, delta).value <= error
    assert m == 1 or double_sampling_error(vc, m - 1, delta).value > error


# --- margins ---------------------------------------------------------------------------------


def test_the_dimension_of_large_margins():
    assert margin_dimension(1.0, 0.5, 100).value == 5
    assert margin_dimension(1.0, 0.5, 2).value == 3
    assert margin_dimension(1.0, 0.5, 2).vacuous
    assert not margin_dimension(1.0, 0.5, 100).vacuous
    assert margin_dimension(1e200, 1.0).vacuous
    # a triangle of equal sides in the unit circle has all labels with the margin 3/4
    assert margin_dimension(1.0, 0.75, 2).value == 3
    assert margin_dimension(1.0, 1 / math.sqrt(3), 7).value == 4  # a tetrahedron in its sphere
    assert novikoff(1.0, 0.75).value == 1  # here parts of a mistake do not count
    assert novikoff(1.0, 0.1).value == 100
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
    with pytest.raises(ValueError, match="y their labels"):
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
    assert relative_entropy([1e300], [1e-300]) == pytest.approx(1e300 * (600 * math.log(10) - 1))
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
        (lambda: margin_error([], 1.0, [], 0.1), "equally long"),
        (lambda: margin_error([math.nan], 1.0, [1.0], 0.1), "slack"),
        (lambda: margin_error([-1.0], 1.0, [1.0], 0.1), "must not be negative"),
        (lambda: margin_error([1.0], 1.0, [-1.0], 0.1), "must not be negative"),
        (lambda: margin_dimension(1.0, 0.1, dimension=-5), "dimension=-5"),
        (lambda: hoeffding(10, 0.1, observed=5.0, spread=2.0), "observed=5"),
        (lambda: hoeffding("5", 0.1), "n='5'"),
        (lambda: hoeffding(10**400, 0.1), "n has 401 digits"),
        (lambda: hoeffding(10, None), "delta=None"),
        (lambda: hoeffding(10, 0.1, observed="a"), "observed='a'"),
        (lambda: realisable_sample_size("a", 0.1, 0.1), "hypotheses='a'"),
        (lambda: novikoff("a", 1.0), "radius='a'"),
        (lambda: margin_error([0.0], None, [1.0], 0.1), "squared_norm=None"),
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
