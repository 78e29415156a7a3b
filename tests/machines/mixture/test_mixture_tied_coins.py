"""Coins of one chance each: two coins tossed three times are three numbers."""

import itertools

import numpy as np
import pytest
from scipy import optimize, sparse

from mercer import BernoulliMixture, ParameterError, certify
from mercer.problems import TableParts, TiedBernoulliMix

TRIPLETS = np.array(list(itertools.product([0.0, 1.0], repeat=3)))  # all eight outcomes
HEADS = TRIPLETS.sum(axis=1)
TIGHT = {"smoothing": 0.0, "tied": True, "tol": 1e-15, "max_iter": 20_000}


def chances(share, p, q):
    """P(x) = share p^h (1 - p)^(3 - h) + (1 - share) q^h (1 - q)^(3 - h) of the eight outcomes."""
    both = [c**HEADS * (1 - c) ** (3 - HEADS) for c in (p, q)]
    return share * both[0] + (1 - share) * both[1]


def three_numbers(machine):
    p, q = machine.coins_
    order = np.argsort(machine.coins_)
    return np.array([machine.weights_[order[1]], max(p, q), min(p, q)])


def by_moments(counts):
    """Solve for the three numbers: factorial moments of h are sums of two powers (Prony)."""
    share = counts / counts.sum()
    m1, m2, m3 = (
        share @ moment
        for moment in (HEADS / 3, HEADS * (HEADS - 1) / 6, HEADS * (HEADS - 1) * (HEADS - 2) / 6)
    )
    total, product = np.linalg.solve([[m1, -1.0], [m2, -m1]], [m2, m3])
    q, p = np.sort(np.roots([1.0, -total, product]).real)
    return np.array([(m1 - q) / (p - q), p, q])


@pytest.mark.parametrize("truth", [(0.3, 0.9, 0.2), (0.5, 0.7, 0.4), (0.8, 0.6, 0.05)])
def test_exact_frequencies_give_back_the_three_numbers(truth):
    machine = BernoulliMixture(2, **TIGHT).fit(TRIPLETS, sample_weight=1e4 * chances(*truth))
    np.testing.assert_allclose(three_numbers(machine), truth, atol=2e-4)
    np.testing.assert_allclose(np.exp(machine.score_samples(TRIPLETS)), chances(*truth), atol=1e-6)
    assert machine.certificate_.ok


def test_counts_of_tosses_give_the_closed_form_and_the_largest_likelihood():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(3000, chances(0.3, 0.9, 0.2)).astype(float)
    machine = BernoulliMixture(2, **TIGHT).fit(TRIPLETS, sample_weight=counts)
    np.testing.assert_allclose(three_numbers(machine), by_moments(counts), atol=1e-4)

    def loss(numbers):
        return -counts @ np.log(chances(*numbers))

    found = machine.score(TRIPLETS, sample_weight=counts) * counts.sum()
    axis = np.linspace(0.025, 0.975, 20)
    start = min(itertools.product(axis, axis, axis), key=loss)
    best = optimize.minimize(loss, start, bounds=[(1e-6, 1 - 1e-6)] * 3, options={"ftol": 1e-15})
    assert found >= -best.fun - 1e-6


def test_steps_are_those_of_the_text():
    # w_i = P(coin 1 | x_i); lambda = mean w_i; p = sum_i w_i h_i / (3 sum_i w_i)
    X = np.vstack([TRIPLETS, TRIPLETS[[0, 7, 7]]])
    h, (share, p, q) = X.sum(axis=1), (0.6, 0.7, 0.4)
    one = share * p**h * (1 - p) ** (3 - h)
    two = (1 - share) * q**h * (1 - q) ** (3 - h)
    w = one / (one + two)
    problem = TiedBernoulliMix(X, np.ones(len(X)), 2)
    parts = TableParts(np.array([share, 1 - share]), np.repeat([[p], [q]], 3, axis=1))
    after = problem.m_step(parts, problem.e_step(parts).sums)
    np.testing.assert_allclose(after.shares[0], w.mean(), rtol=1e-12)
    expected = [w @ h / (3 * w.sum()), (1 - w) @ h / (3 * (1 - w).sum())]
    np.testing.assert_allclose(
        after.table, np.repeat(np.array(expected)[:, None], 3, 1), rtol=1e-12
    )


def test_one_coin_is_the_share_of_heads_and_smoothing_is_of_the_coin():
    X = TRIPLETS[[0, 1, 3, 7, 7]]
    machine = BernoulliMixture(1, tied=True, smoothing=2.0).fit(sparse.csr_array(X))
    assert machine.coins_[0] == pytest.approx((X.sum() + 2) / (X.size + 4))
    assert machine.bic(X) == pytest.approx(np.log(5) - 2 * machine.score_samples(X).sum())


def test_unequal_columns_are_no_answer():
    problem = TiedBernoulliMix(TRIPLETS, np.ones(8), 1, 0.0)
    half = TableParts(np.ones(1), np.full((1, 3), 0.5))
    assert certify(problem, half).ok
    assert not certify(problem, TableParts(np.ones(1), np.array([[0.5, 0.5, 0.51]]))).ok


def test_a_flag_is_refused_in_words():
    with pytest.raises(ParameterError, match="tied='yes'"):
        BernoulliMixture(2, tied="yes").fit(TRIPLETS)
    fitted = BernoulliMixture(2, tied=True).fit(TRIPLETS)
    assert not hasattr(fitted.set_params(tied=False).fit(TRIPLETS), "coins_")
