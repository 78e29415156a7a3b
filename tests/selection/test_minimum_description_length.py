"""Description length: codes against integrals, and the degree that few rows let them pick."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import chebyshev

from mercer import GaussianMixture
from mercer.selection import (
    description_length,
    gaussian_log_likelihood,
    regression_description_length,
)


def by_likelihood(y, fit, coefficients):
    return description_length(gaussian_log_likelihood(y - fit), coefficients + 1, len(y))


def fits(x, y, degrees):
    for degree in degrees:
        rows = chebyshev.chebvander(x, degree)
        yield rows @ np.linalg.lstsq(rows, y, rcond=None)[0]


def picked(length, x, y, largest):
    found = fits(x, y, range(largest + 1))
    return int(np.argmin([length(y, fit, d + 1) for d, fit in enumerate(found)]))


def share(length, truth, noise, n, largest, wanted, seeds=200):
    """Return how often the degree picked is among those wanted."""
    count = 0
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        x = draw.uniform(-1, 1, n)
        y = truth(x) + noise * draw.standard_normal(n)
        count += picked(length, x, y, largest) in wanted
    return count / seeds


LENGTHS = [by_likelihood, regression_description_length]


# --- few rows ------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("noise", [0.1, 0.3])
@pytest.mark.parametrize("n", [8, 12])
def test_few_rows_do_not_pick_the_largest_degree(length, n, noise):
    """The code of many rows picks it in over half of these samples."""
    largest = n - 2
    assert share(length, lambda x: np.sin(4 * x), noise, n, largest, {largest}) < 0.02
    assert share(length, np.zeros_like, noise, n, largest, {largest}, seeds=50) < 0.03


def test_without_the_terms_of_few_rows_the_largest_degree_is_picked():
    def many_rows(y, fit, coefficients):
        return -gaussian_log_likelihood(y - fit) + (coefficients + 1) / 2 * math.log(len(y))

    for n in (8, 12):
        assert share(many_rows, lambda x: np.sin(4 * x), 0.3, n, n - 2, {n - 2}) > 0.4


@pytest.mark.parametrize("length", LENGTHS)
def test_the_degree_is_found_as_rows_come(length):
    def cubic(x):
        return 4 * x**3 - 3 * x + 0.5

    found = [share(length, cubic, 0.2, n, 8, {3}, seeds=60) for n in (12, 40, 400)]
    assert min(found) > 0.85
    assert found[-1] > 0.95


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_the_degree_of_a_polynomial_is_recovered(length, degree):
    draw = np.random.default_rng(degree)
    x = draw.uniform(-1, 1, 400)
    y = np.polynomial.legendre.legval(x, np.ones(degree + 1)) + 0.3 * draw.standard_normal(400)
    assert picked(length, x, y, 7) == degree


# --- against integrals ---------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2])
def test_the_code_of_regression_is_an_integral_over_variance_and_prior(columns):
    """The targets less their mean are normal with variance v (I + g H): summed over v and g."""
    draw = np.random.default_rng(columns)
    n = 6
    X = draw.normal(size=(n, columns))
    y = X @ np.ones(columns) + draw.normal(size=n)
    contrasts = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    z, Z = contrasts.T @ y, contrasts.T @ X
    hat = Z @ np.linalg.solve(Z.T @ Z, Z.T)
    log_g, log_v = np.linspace(-12, 25, 400), np.linspace(-12, 25, 500)
    total = 0.0
    for t in log_g:
        inverse = np.linalg.inv(np.eye(n - 1) + np.exp(t) * hat)
        square, determinant = z @ inverse @ z, np.linalg.slogdet(inverse)[1]
        density = -(n - 1) / 2 * (log_v + math.log(2 * math.pi)) + determinant / 2
        density -= square / (2 * np.exp(log_v))
        prior = np.exp(t) / (2 * n) * (1 + np.exp(t) / n) ** -1.5
        total += prior * np.exp(density).sum()
    total *= (log_g[1] - log_g[0]) * (log_v[1] - log_v[0])
    told = total / math.sqrt(n) / ((columns + 1) * sum(1 / i for i in range(1, n + 1)))
    fit = np.column_stack([np.ones(n), X])
    fitted = fit @ np.linalg.lstsq(fit, y, rcond=None)[0]
    length = regression_description_length(y, fitted, columns + 1)
    assert length == pytest.approx(-math.log2(told), abs=2e-4)


@given(st.integers(2, 30), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_origin_and_unit_of_targets_do_not_matter(n, origin, unit):
    draw = np.random.default_rng(n)
    x, y = draw.uniform(-1, 1, n), draw.standard_normal(n)
    one, two = list(fits(x, y, [0, 1]))

    def gain(a, b):
        first = regression_description_length(a + b * y, a + b * one, 1)
        return first - regression_description_length(a + b * y, a + b * two, 2)

    assert gain(origin, unit) == pytest.approx(gain(0.0, 1.0), abs=1e-4)


@pytest.mark.parametrize("unit", [1e-150, 1e150, 1e-300])
def test_targets_of_any_size(unit):
    draw = np.random.default_rng(0)
    x, y = draw.uniform(-1, 1, 12), draw.standard_normal(12)
    plain = [regression_description_length(y, f, k + 1) for k, f in enumerate(fits(x, y, range(3)))]
    other = [
        regression_description_length(unit * y, unit * f, k + 1)
        for k, f in enumerate(fits(x, y, range(3)))
    ]
    np.testing.assert_allclose(np.diff(other), np.diff(plain), atol=1e-9)


def test_a_fit_through_all_rows_says_what_the_mean_says_and_costs_more():
    y = np.random.default_rng(0).standard_normal(6)
    mean = regression_description_length(y, np.full(6, y.mean()), 1)
    assert regression_description_length(y, y, 6) == pytest.approx(mean + math.log2(6), abs=1e-6)
    same = np.full(5, 3.0)  # nothing to tell
    lengths = [regression_description_length(same, same, k) for k in (1, 2, 5)]
    assert np.isfinite(lengths).all()
    assert np.argmin(lengths) == 0


def test_both_lengths_agree_about_many_rows():
    """Their differences between models stay apart by a few bits, while lengths grow with n."""
    for n in (200, 2000, 20000):
        draw = np.random.default_rng(n)
        x = draw.uniform(-1, 1, n)
        y = x + 0.5 * draw.standard_normal(n)
        one, four = fits(x, y, [0, 3])
        apart = by_likelihood(y, one, 1) - by_likelihood(y, four, 4)
        code = regression_description_length(y, one, 1) - regression_description_length(y, four, 4)
        assert abs(apart - code) < 6
        assert apart > 100


# --- the price of a likelihood -------------------------------------------------------------------


def test_description_length_is_half_of_bic_in_bits_and_a_term_of_few_rows():
    many = (2 * 50 + 4 * np.log(100)) / 2 / np.log(2)
    assert description_length(-50.0, 4, 100) == pytest.approx(many + 4 * 5 / 95 / np.log(2))
    assert description_length(-50.0, 0, 1) == pytest.approx(50 / np.log(2))
    assert description_length(50.0, 4, 5) == math.inf
    for bad in ((np.nan, 1, 10), (0.0, -1, 10), (0.0, 1, 0), (0.0, np.nan, 10)):
        with pytest.raises(ValueError, match="must be"):
            description_length(*bad)
    with pytest.raises(ValueError, match="finite"):
        gaussian_log_likelihood([np.nan])


def test_what_is_no_regression_is_refused():
    y = np.arange(5.0)
    with pytest.raises(ValueError, match="not a least-squares fit"):
        regression_description_length(y, y + 100, 2)
    with pytest.raises(ValueError, match="parameters=6"):
        regression_description_length(y, y, 6)
    with pytest.raises(ValueError, match=r"parameters=1\.5"):
        regression_description_length(y, y, 1.5)
    with pytest.raises(ValueError, match="equally long"):
        regression_description_length(y, y[:3], 2)
    with pytest.raises(ValueError, match="two are needed"):
        regression_description_length([1.0], [1.0], 1)


# --- mixtures ------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", ["full", "diagonal", "spherical", "shared"])
def test_the_term_of_few_rows_is_what_a_likelihood_is_too_good_by(shape):
    """One Gaussian on twelve rows of two columns, its fit judged by new rows in closed form."""
    draw, n, d = np.random.default_rng(0), 12, 2
    machine = GaussianMixture(1, covariance=shape, floor=1e-9)
    numbers = {"full": 5, "diagonal": 4, "spherical": 3, "shared": 5}[shape]
    optimism = []
    for _ in range(150):
        X = draw.standard_normal((n, d))
        fitted = machine.fit(X)
        added = fitted.description_length(X) - numbers / 2 * math.log(n) + fitted.score(X) * n
        S = np.squeeze(fitted.covariances_)
        S = S if S.ndim == 2 else S * np.eye(d)
        m = fitted.means_[0]
        expected = d * math.log(2 * math.pi) + np.linalg.slogdet(S)[1]
        expected += np.trace(np.linalg.solve(S, np.eye(d) + np.outer(m, m)))
        optimism.append(fitted.score(X) * n + n * expected / 2)
    error = np.std(optimism) / math.sqrt(len(optimism))
    assert np.mean(optimism) == pytest.approx(numbers + added, abs=4 * error)


def test_few_rows_of_one_gaussian_are_not_divided():
    """Without the term, half of such samples had the largest number of components."""
    draw = np.random.default_rng(0)
    for _ in range(3):
        machine = GaussianMixture("mdl", max_components=4, n_init=2, random_state=0)
        assert machine.fit(draw.standard_normal((40, 2))).n_components_ == 1
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    X = np.repeat(centres, 20, axis=0) + draw.standard_normal((60, 2))
    assert machine.fit(X).n_components_ == 3
