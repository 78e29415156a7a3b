"""Intervals against closed forms, other libraries, and how often they hold the truth."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from mercer.fitting.evaluation import area_interval, bootstrap, wilson

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (9, 10), (450, 1000)])
def test_wilson_is_that_of_statsmodels(successes, n):
    theirs = proportion_confint(successes, n, method="wilson")
    np.testing.assert_allclose(wilson(successes, n), theirs, atol=1e-12)


def test_no_rows_prove_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def delong_by_pairs(positive, score):
    """Return area and variance by the definition: all pairs."""
    above = (score[positive][:, None] > score[~positive]) + 0.5 * (
        score[positive][:, None] == score[~positive]
    )
    rows, columns = above.mean(axis=1), above.mean(axis=0)
    variance = rows.var(ddof=1) / len(rows) + columns.var(ddof=1) / len(columns)
    return above.mean(), variance


def test_the_area_has_delongs_variance():
    positive = RNG.random(80) < 0.4
    score = np.round(RNG.normal(size=80) + positive, 1)  # with ties
    area, low, high, method = area_interval(positive.astype(int), score)
    expected, variance = delong_by_pairs(positive, score)
    assert method == "DeLong"
    assert area == pytest.approx(expected) == pytest.approx(roc_auc_score(positive, score))
    width = math.log(high / (1 - high)) - math.log(low / (1 - low))
    error = math.sqrt(variance) / (area * (1 - area))
    assert width == pytest.approx(2 * 1.959964 * error, rel=1e-5)


def test_the_area_of_many_classes_is_the_mean_against_the_rest():
    codes = RNG.integers(0, 3, 90)
    scores = RNG.normal(size=(90, 3)) + np.eye(3)[codes]
    expected = np.mean([roc_auc_score(codes == k, scores[:, k]) for k in range(3)])
    area, low, high, _ = area_interval(codes, scores)
    assert area == pytest.approx(expected)
    assert low < area < high


def test_complete_separation_is_not_certainty():
    area, low, high, _ = area_interval(np.array([0] * 6 + [1] * 4), np.arange(10.0))
    assert (area, high) == (1.0, 1.0)
    assert low < 0.6
    assert math.isnan(area_interval(np.zeros(4, dtype=int), np.arange(4.0))[0])


def test_the_bootstrap_holds_the_mean_about_as_often_as_it_says():
    held = 0
    for seed in range(60):
        rows = np.random.default_rng(seed).exponential(size=(80, 1))
        low, high = bootstrap(rows, lambda sums: sums[:, 0] / 80, seed)
        held += low < 1.0 < high
    assert held >= 50
    same = [bootstrap(rows, lambda sums: sums[:, 0] / 80, 3) for _ in range(2)]
    assert same[0] == same[1]
