"""A number of folds means shuffled ones; ordered rows in unshuffled folds are told of."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from mercer import SVC, SVR
from mercer.kernels import Gaussian
from mercer.selection import choose, cross_validate, tune
from mercer.selection.folds import folds_of, note_on_order

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(-3, 3, size=(90, 1)), axis=0)
Y = np.sin(2 * X[:, 0])


def test_regression_folds_are_those_of_a_shuffled_kfold():
    expected = list(KFold(5, shuffle=True, random_state=0).split(X))
    for (train, test), (left, right) in zip(folds_of(SVR(), X, Y, 5, None), expected, strict=True):
        assert np.array_equal(train, left)
        assert np.array_equal(test, right)


def test_classes_have_equal_shares():
    labels = np.repeat([0, 1, 2], [60, 20, 10])
    for _, test in folds_of(SVC(), X, labels, 5, None):
        assert np.bincount(labels[test]).tolist() == [12, 4, 2]


def test_the_seed_decides():
    first, again, other = (folds_of(SVR(), X, Y, 3, None, seed) for seed in (0, 0, 1))
    assert np.array_equal(first[0][1], again[0][1])
    assert not np.array_equal(first[0][1], other[0][1])
    generator = folds_of(SVR(), X, Y, 3, None, np.random.default_rng(0))
    assert len(generator) == 3


def test_groups_stay_together():
    groups = np.repeat(np.arange(18), 5)
    for labels, machine in ((Y, SVR()), (np.arange(90) % 2, SVC())):
        for train, test in folds_of(machine, X, labels, 3, groups):
            assert not set(groups[train]) & set(groups[test])


def test_ordered_rows_are_no_trap():
    machine = SVR(Gaussian(0.3), C=10.0, epsilon=0.01)
    assert tune(machine, X, Y, grid={"C": [10.0]}).best_score > 0.99
    assert cross_validate(machine, X, Y).mean > 0.99


def test_the_user_is_told_when_order_matters():
    found = tune(SVR(Gaussian(0.3)), X, Y, grid={"C": [10.0]}, cv=KFold(5))
    assert any("look ordered" in note for note in found.notes)
    labels = (X[:, 0] > 0).astype(int)
    folds = folds_of(SVC(), X, labels, KFold(3), None)
    assert "shuffle=True" in note_on_order(folds, labels)


@pytest.mark.parametrize("cv", [5, KFold(5, shuffle=True, random_state=0), StratifiedKFold(5)])
def test_nothing_is_said_of_rows_in_no_order(cv):
    order = RNG.permutation(90)
    labels = (X[order, 0] > 0).astype(int)
    found = tune(SVC(Gaussian(1.0)), X[order], labels, grid={"C": [1.0]}, cv=cv)
    assert not any("look ordered" in note for note in found.notes)


def test_choose_and_tune_have_the_same_folds():
    labels = (X[:, 0] ** 2 > 2).astype(int)
    found = choose(X, labels, cv=3, random_state=4)
    one = found.contenders[found.chosen]
    assert one.tuning.scores.shape[1] == 3
