"""Boxes narrowed by their sums: the same programme, without weights that drown all others."""

import numpy as np
import pytest

from mercer.gram import FactoredGram
from mercer.machines.svm import problem
from mercer.machines.svm.primal.barrier import implied_bounds
from mercer.problems import BoxQP
from mercer.solvers import InteriorPoint, Status, Watch


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def box(lower, upper, total):
    n = len(lower)
    gram = FactoredGram(lambda Z: Z, np.ones((n, 1)))
    return BoxQP(gram, np.zeros(n), np.array(lower), np.array(upper), total=total)


@pytest.mark.parametrize(
    ("lower", "upper", "total", "ends"),
    [
        ([0.0, -1.0, -1.0], [1e12, 0.0, 0.0], 0.0, (0.0, 4.0)),
        ([-1e12, -1.0, -1.0], [1e12, 1.0, 1.0], 0.0, (-6.0, 6.0)),
        ([0.0, 0.0, 0.0], [1e12, 1.0, 1.0], 1.5, (0.0, 3.5)),
        ([0.0, -1.0, -1.0], [5.0, 0.0, 0.0], 0.0, (0.0, 5.0)),  # not wide enough to be narrowed
        ([0.0, -1.0, -1.0], [np.inf, 0.0, 0.0], 0.0, (0.0, np.inf)),  # no slack stays no slack
    ],
)
def test_the_widest_box_is_as_wide_as_all_others_can_balance(lower, upper, total, ends):
    low, high = implied_bounds(box(lower, upper, total))
    assert (low[0], high[0]) == ends
    assert np.array_equal(low[1:], lower[1:])
    assert np.array_equal(high[1:], upper[1:])


def test_sums_that_leave_nothing_shut_the_box():
    low, high = implied_bounds(box([0.0, 0.0], [1.0, 2.0], 3.0))
    assert np.array_equal(low, high)


def test_no_point_of_the_programme_is_lost(rng):
    """Whatever the others are, the bounds that are left hold what balances them, and zero."""
    for _ in range(50):
        lower, upper = -rng.random(6) * (rng.random(6) < 0.5), rng.random(6)
        upper[0] = 10.0 ** rng.uniform(0.0, 14.0)
        b = lower + rng.random(6) * (upper - lower)
        b[0] = rng.uniform(0.0, 3.0)
        low, high = implied_bounds(box(lower, upper, b.sum()))
        assert (low <= np.minimum(b, 0.0)).all()
        assert (np.maximum(b, 0.0) <= high).all()


@pytest.mark.parametrize("heavy", [1e6, 1e15])
def test_a_row_of_any_weight_is_answered_alike(rng, heavy):
    X = rng.standard_normal((500, 3))
    targets = np.sin(X @ np.ones(3)) + rng.standard_normal(500)
    gram = FactoredGram(lambda Z: Z, X)

    def answered(weight):
        C = np.where(np.arange(500) == 7, weight, 1.0)
        return InteriorPoint().run(problem.svr(gram, targets, C, 0.0), Watch())

    known, found = answered(1e4), answered(heavy)
    assert known.status is found.status is Status.SOLVED
    assert found.iterations < 60
    assert np.allclose(found.value.coef, known.value.coef, atol=1e-6)
