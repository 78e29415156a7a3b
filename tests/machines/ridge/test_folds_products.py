"""Rows sorted by the folds that have them: the same answers, from less of the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from mercer.kernels import Gaussian
from mercer.machines.ridge import krylov_folds
from mercer.machines.ridge.folds import FoldParts, FoldSystem, fold_order
from mercer.machines.ridge.krylov_folds import ShiftedInverse, by_subspaces
from mercer.solvers import Watch

pytestmark = pytest.mark.numerics

N = 700
SHUFFLED = KFold(5, shuffle=True, random_state=0)


def trains_of(cv, n=N):
    return [train for train, _ in cv.split(np.zeros(n))]


def sample(n=N, d=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def changes(trains, order):
    """Count the places where the next row is in other folds."""
    inside = np.array([np.isin(order, train) for train in trains])
    return int((inside[:, 1:] != inside[:, :-1]).any(axis=0).sum())


def test_rows_of_a_part_lie_side_by_side():
    trains = trains_of(SHUFFLED)
    order = fold_order(trains, None, N)
    np.testing.assert_array_equal(np.sort(order), np.arange(N))
    assert changes(trains, order) == 4 and changes(trains, np.arange(N)) > 400


def test_rows_without_weight_are_a_part():
    trains, weights = trains_of(SHUFFLED), np.ones(N)
    weights[np.random.default_rng(1).permutation(N)[:100]] = 0.0
    order = fold_order(trains, weights, N)
    counted = [train[weights[train] > 0] for train in trains]
    assert changes(counted, order) == 5
    np.testing.assert_array_equal(np.sort(order), np.arange(N))


def test_order_stays_where_it_is_good_or_cannot_be():
    for cv in (KFold(5), ShuffleSplit(8, random_state=0), RepeatedKFold(n_repeats=3)):
        trains = trains_of(cv)
        order = fold_order(trains, None, N)
        assert changes(trains, order) <= changes(trains, np.arange(N))
    np.testing.assert_array_equal(fold_order(trains_of(ShuffleSplit(8)), None, N), np.arange(N))
    np.testing.assert_array_equal(fold_order([], None, N), np.arange(N))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sorted_rows", [True, False])
def test_products_of_folds(dtype, sorted_rows):
    rng = np.random.default_rng(2)
    trains = trains_of(SHUFFLED)
    if sorted_rows:
        place = np.argsort(fold_order(trains, None, N))
        trains = [place[train] for train in trains]
    B = rng.standard_normal((N, N))
    K = (B + B.T).astype(dtype)
    inside = [np.isin(np.arange(N), train) for train in trains]
    parts = FoldParts(trains, N)
    for reads in (True, False, None):
        for writes in (True, False, None):
            blocks = [rng.standard_normal((N, k)) for k in (1, 0, 3, 2, 1)]
            for block, own in zip(blocks, inside, strict=True):
                block[(own != reads) & (reads is not None)] = 0.0
            found = parts.product(K, blocks, reads, writes)
            ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
            pairs = zip(blocks, inside, np.split(found, ends, axis=1), strict=True)
            for block, own, product in pairs:
                wanted = (own == writes) | (writes is None)
                expected = K.astype(np.float64) @ block
                atol = 1e-3 if dtype is np.float32 else 1e-11
                np.testing.assert_allclose(product[wanted], expected[wanted], rtol=0, atol=atol)


def test_searches_on_sorted_rows_are_those_on_rows_as_they_are(monkeypatch):
    monkeypatch.setattr(krylov_folds, "_FACTOR", 1e-6)
    X, y = sample()
    trains, penalties = trains_of(SHUFFLED), np.logspace(-4, 2, 9)
    order = fold_order(trains, None, N)
    place = np.argsort(order)
    used = []
    made = ShiftedInverse.__init__
    monkeypatch.setattr(ShiftedInverse, "__init__", lambda *args: (used.append(1), made(*args))[1])
    answers = {}
    for name, rows, targets, folds in (
        ("sorted", X[order], y[order], [np.sort(place[train]) for train in trains]),
        ("as is", X, y, trains),
    ):
        K = np.asarray(Gaussian(0.6)(rows, rows))
        systems = [FoldSystem.of(K, fold, targets, None, True) for fold in folds]
        answers[name], _ = by_subspaces(systems, penalties, Watch())
        assert all(answer.met.all() for answer in answers[name])
    assert len(used) >= 2
    for one, other in zip(answers["sorted"], answers["as is"], strict=True):
        np.testing.assert_allclose(one.values[place], other.values, rtol=0, atol=1e-7)
