"""Every machine takes a table of numbers: the same fit as on an array, and the names are kept."""

import inspect

import numpy as np
import pytest

import mercer.machines
from mercer import tune
from mercer.data import Table
from mercer.selection import choose

X = np.random.default_rng(0).normal(size=(40, 3))
LABELS = (X[:, 0] > 0).astype(int)
# machines whose rows are texts, or whose targets are expectations and not one for each row
OTHERS = {"BagOfWords", "MaximumEntropy", "JointTable", "Independence"}
OTHERS |= {"Autoencoder", "VariationalAutoencoder"}  # tested where torch is, in tests/with_torch
COUNTS = {"BernoulliMixture", "MultinomialMixture"}  # of rows that are zeros and ones, or counts


def machines():
    found = [getattr(mercer.machines, name) for name in mercer.machines.__all__]
    fits = [one for one in found if inspect.isclass(one) and hasattr(one, "fit")]
    return [one for one in fits if one.__name__ not in OTHERS]


@pytest.mark.parametrize("machine", machines())
@pytest.mark.filterwarnings("ignore")
def test_a_table_is_its_matrix_with_names(machine):
    rows = (X > 0).astype(float) if machine.__name__ in COUNTS else X
    y = X[:, :2] if machine.__name__ == "CCA" else LABELS
    table = Table.of(rows, names=["a", "b", "c"])
    ours, plain = machine().fit(table, y), machine().fit(rows, y)
    assert ours.feature_names_in_.tolist() == ["a", "b", "c"] and ours.n_features_in_ == 3
    method = next(m for m in ("predict", "transform", "labels_") if hasattr(ours, m))
    if method != "labels_":
        np.testing.assert_allclose(getattr(ours, method)(table), getattr(plain, method)(rows))
        with pytest.raises(ValueError, match="they come in another order"):
            getattr(ours, method)(table[["b", "a", "c"]])
    if machine.__name__ not in ("NaiveBayes", "BayesDecision"):  # these take words as they are
        town = table.with_column("town", ["Ulm", "Bern", "Riga", "Oslo"] * 10)
        with pytest.raises(TypeError, match=f"{machine.__name__}: column 'town' holds categories"):
            machine().fit(town, y)


def test_tuning_and_choosing_take_tables():
    table = Table.of(X, names=["a", "b", "c"])
    ours = tune(mercer.SVC(), table, LABELS, cv=3)
    np.testing.assert_array_equal(ours.scores, tune(mercer.SVC(), X, LABELS, cv=3).scores)
    tune(mercer.OneClassSVM(), table, cv=3)  # whose artificial rows have names, too
    found = choose(table, LABELS, cv=3)
    np.testing.assert_array_equal(
        found.machine.predict(table), found.machine.predict(table.to_pandas())
    )
