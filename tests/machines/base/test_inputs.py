"""Plain arrays enter by a shorter way, and nothing else about them changes."""

import numpy as np
import pandas as pd
import pytest

from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.machines.base import inputs as reading

X = np.random.default_rng(0).normal(size=(40, 3))
LABELS = np.arange(40) % 2
TARGETS = X[:, 0]


@pytest.mark.parametrize("shape", ["plain", "Fortran", "strides", "big endian", "list", "object"])
def test_both_ways_give_the_same_fit(shape):
    rows = {
        "plain": X,
        "Fortran": np.asfortranarray(X),
        "strides": np.repeat(X, 2, axis=0)[::2],
        "big endian": X.astype(">f8"),
        "list": X.tolist(),
        "object": X.astype(object),
    }[shape]
    ours, theirs = (SVC(Gaussian(1.0)).fit(part, LABELS) for part in (X, rows))
    np.testing.assert_array_equal(ours.dual_coef_, theirs.dual_coef_)
    assert theirs.n_features_in_ == 3


def test_plain_arrays_take_the_short_way(monkeypatch):
    def long_way(*args, **kwargs):
        raise AssertionError("scikit-learn was asked")

    monkeypatch.setattr(reading, "validate_data", long_way)
    machine = KernelRidge(kernel=Gaussian(1.0)).fit(X, TARGETS)
    assert machine.predict(X).shape == (40,)
    with pytest.raises(AssertionError):
        machine.predict(X.tolist())


def test_names_of_columns_are_forgotten_and_missed():
    table = pd.DataFrame(X, columns=list("abc"))
    machine = SVC(Gaussian(1.0)).fit(table, LABELS)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        machine.predict(X)
    machine.fit(X, LABELS)
    assert not hasattr(machine, "feature_names_in_")
    with pytest.raises(ValueError, match="expecting 3 features"):
        machine.predict(X[:, :2].copy())


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (X, TARGETS[:-1], "inconsistent numbers of samples"),
        (X, np.where(TARGETS > 1, np.nan, TARGETS), "(?i)nan"),
        (X[:0], TARGETS[:0], "0 sample"),
        (X[:, :0].copy(), TARGETS, "0 feature"),
        (np.where(X > 1, np.inf, X), TARGETS, "(?i)inf"),
    ],
)
def test_refusals_stay(rows, targets, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge().fit(rows, targets)
