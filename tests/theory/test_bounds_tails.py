"""Tails against exact binomial sums and draws; powers of e m / d; projections on the simplex."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from mercer.theory import (
    binomial_tail,
    chernoff_tail,
    finite_class_dimension,
    growth_bound,
    hoeffding_tail,
    least_squares_projection,
    relative_entropy,
    relative_entropy_projection,
    relative_entropy_tail,
    sauer,
)

chances = st.floats(0.01, 0.99)


# --- tails ---------------------------------------------------------------------------------------


@given(st.integers(1, 2000), chances, st.integers(0, 2000))
def test_the_binomial_sum_is_that_of_scipy(n, p, count):
    assert binomial_tail(n, p, count) == pytest.approx(stats.binom.cdf(count, n, p), abs=1e-12)
    upper = binomial_tail(n, p, count, upper=True)
    assert upper == pytest.approx(stats.binom.sf(count - 1, n, p), abs=1e-12)


@given(st.integers(1, 3000), chances, st.floats(0.01, 0.99))
def test_no_tail_is_heavier_than_its_bounds(n, p, psi):
    mu, grain = n * p, 1 + 1e-9
    low = math.ceil((1 - psi) * mu) - 1  # fewer than (1 - psi) mu
    exact = binomial_tail(n, p, low) if low >= 0 else 0.0
    sharp = relative_entropy_tail(n, p, (1 - psi) * p).value
    assert exact <= sharp * grain
    assert sharp <= chernoff_tail(n, p, psi).value * grain
    assert sharp <= hoeffding_tail(n, psi * p, two_sided=False).value * grain
    high = math.floor((1 + psi) * mu) + 1  # more than (1 + psi) mu
    above = binomial_tail(n, p, high, upper=True)
    assert above <= chernoff_tail(n, p, psi, upper=True).value * grain
    if (1 + psi) * p <= 1:
        assert above <= relative_entropy_tail(n, p, (1 + psi) * p).value * grain
    far = binomial_tail(n, p, math.ceil(mu + psi * n), upper=True)
    assert far <= hoeffding_tail(n, psi, two_sided=False).value * grain


def test_the_step_of_the_double_sampling_theorem():
    """With 8 ln 2 / eps examples a region of weight eps is hit half as often as expected, or more,
    with probability one half."""
    eps = 0.01
    m = math.ceil(8 * math.log(2) / eps)
    assert chernoff_tail(m, eps, 0.5).value <= 0.5 < chernoff_tail(m - 1, eps, 0.5).value


def test_hoeffding_holds_for_means_of_any_intervals():
    draw, n, trials = np.random.default_rng(0), 40, 20_000
    widths = draw.uniform(0.5, 2.0, n)
    # the worst case: each at one of the two ends
    means = (draw.integers(0, 2, (trials, n)) * widths).mean(axis=1)
    for epsilon in (0.1, 0.2, 0.3, 0.4):
        seen = np.mean(np.abs(means - widths.mean() / 2) >= epsilon)
        assert seen <= hoeffding_tail(n, epsilon, widths).value
    equal = hoeffding_tail(n, 0.2, np.full(n, 2.0)).value
    assert equal == pytest.approx(hoeffding_tail(n, 0.2, 2.0).value)
    assert equal == pytest.approx(2 * math.exp(-2 * n * 0.1**2))
    assert hoeffding_tail(1, 0.1).vacuous


def test_tails_that_cannot_be_asked():
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="psi"):
            chernoff_tail(10, 0.5, wrong)
    with pytest.raises(ValueError, match="spread"):
        hoeffding_tail(3, 0.1, [1.0, 2.0])
    with pytest.raises(ValueError, match="spread"):
        hoeffding_tail(3, 0.1, 0.0)
    with pytest.raises(ValueError, match="p="):
        relative_entropy_tail(3, 1.5, 0.5)
    assert relative_entropy_tail(5, 0.0, 0.5).value == 0.0
    assert chernoff_tail(5, 0.0, 0.5).vacuous


# --- growth --------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 400))
def test_the_power_is_above_the_sum_of_binomials(vc, m):
    if m < vc:
        with pytest.raises(ValueError, match="at least vc"):
            growth_bound(vc, m)
        return
    bound = growth_bound(vc, m)
    assert sauer(vc, m) <= bound.value * (1 + 1e-9)
    if vc and bound.value < 1e300:
        assert bound.value == pytest.approx((math.e * m / vc) ** vc)
    assert bound.vacuous == (vc * (1 + math.log(m / vc)) >= m * math.log(2) if vc else m == 0)


def test_growth_beyond_floats_is_told_as_a_power():
    bound = growth_bound(1000, 5000)
    assert bound.value == math.inf
    assert not bound.vacuous  # 2^5000 is larger
    assert "e^2609" in str(bound)


def test_the_dimension_of_so_many_hypotheses():
    assert [finite_class_dimension(n).value for n in (1, 2, 3, 4, 7, 8)] == [0, 1, 1, 2, 2, 3]
    assert finite_class_dimension(2**5000).value == 5000
    assert finite_class_dimension(2**5000 - 1).value == 4999
    with pytest.raises(ValueError, match="hypotheses"):
        finite_class_dimension(0)


# --- the simplex ---------------------------------------------------------------------------------

counts = st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any)


@settings(max_examples=15)
@given(counts)
def test_by_relative_entropy_nothing_but_the_sum_is_asked_for(f):
    """Both orders of the entropy, minimised numerically under the sum alone."""
    f = np.array(f, dtype=float) + 1.0
    p = relative_entropy_projection(f)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(p / f, p[0] / f[0])
    for distance in (lambda q: relative_entropy(f, q), lambda q: relative_entropy(q, f)):
        found = optimize.minimize(
            lambda z, distance=distance: distance(np.exp(z) / np.exp(z).sum()), np.zeros(len(f))
        )
        assert distance(p) <= found.fun + 1e-9
        assert distance(p) == pytest.approx(found.fun, rel=1e-5)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6))
def test_by_least_squares_the_projection_is_optimal(f):
    """f - p makes no acute angle with any corner: the condition of a projection."""
    p = least_squares_projection(f)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1.0)
    for corner in np.eye(len(f)):
        assert (np.array(f) - p) @ (corner - p) <= 1e-9
    plane = least_squares_projection(f, nonnegative=False)
    assert plane.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.diff(plane - np.array(f)), 0.0, atol=1e-12)
    if plane.min() >= 0:
        np.testing.assert_allclose(plane, p, atol=1e-12)


def test_the_figure_of_the_text():
    f = [2.0, 0.1, 0.3]
    assert least_squares_projection(f, nonnegative=False).min() < 0
    assert relative_entropy_projection(f).min() > 0
    np.testing.assert_allclose(
        relative_entropy_projection(np.multiply(1e307, f)), np.array(f) / 2.4
    )
    np.testing.assert_allclose(relative_entropy_projection([5e-324, 5e-324]), 0.5)


@pytest.mark.parametrize("wrong", [[-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], [], [[1.0]]])
def test_counts_that_are_none(wrong):
    with pytest.raises(ValueError, match="f must"):
        relative_entropy_projection(wrong)
