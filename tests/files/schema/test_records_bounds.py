"""Places in a model file are among what they point at, and the table says among how many."""

import numpy as np
import pytest
from files.fitted import TINY

import mercer
from mercer.compat import sklearn as compat
from mercer.files.schema import RECORDS
from mercer.files.schema.records import bounds_of, machine, record, sizes_said
from mercer.kernels import Gaussian

X, y = TINY.X, TINY.y


def test_every_bound_is_a_size_that_the_record_says():
    for made in RECORDS.values():
        said = set().union(*map(sizes_said, made.types.values()))
        for name, kind in made.types.items():
            assert bounds_of(kind) <= said, f"{made.name}.{name}"


@pytest.mark.parametrize("text", ["a: i8[s]<n", "a: tuple(i8[s]<n)", "a: i8[n]<m\nb: f8[n]"])
def test_a_bound_that_no_field_says_is_an_error_of_the_table(text):
    class Fitted:
        pass

    for describe in (record, machine):
        with pytest.raises(ValueError, match=r"a: .* no field gives their number"):
            describe(Fitted, text)
    assert "Fitted" not in RECORDS


MACHINES = {
    "SVC": lambda: mercer.SVC(Gaussian(1.0)).fit(X, y),
    "SVC three": lambda: mercer.SVC(Gaussian(1.0)).fit(X, TINY.three),
    "SVC nu": lambda: mercer.SVC(Gaussian(1.0), nu=0.3).fit(X, y),
    "SVC precomputed": lambda: mercer.SVC("precomputed").fit(TINY.K, y),
    "SVR": lambda: mercer.SVR(Gaussian(1.0)).fit(X, TINY.targets),
    "OneClassSVM": lambda: mercer.OneClassSVM(Gaussian(1.0)).fit(X),
    "EnclosingBall": lambda: mercer.EnclosingBall(Gaussian(1.0)).fit(X),
    "compat.SVC": lambda: compat.SVC().fit(X, y),
    "compat.SVR": lambda: compat.SVR().fit(X, TINY.targets),
    "compat.OneClassSVM": lambda: compat.OneClassSVM().fit(X),
}


@pytest.mark.parametrize("name", MACHINES)
def test_support_vectors_are_rows_of_the_fit(name, tmp_path):
    machine = MACHINES[name]()
    for place in (len(X), 10**8, -1):
        machine.support_ = machine.support_.copy()
        machine.support_[-1] = place
        with pytest.raises(mercer.ModelFormatError, match="support_"):
            mercer.save(machine, tmp_path / "model.mercer")
    machine.support_[-1] = len(X) - 1
    mercer.save(machine, tmp_path / "model.mercer")
    mercer.load(tmp_path / "model.mercer")


def test_rows_without_weight_count_as_rows(tmp_path):
    machine = mercer.SVC(Gaussian(1.0)).fit(X, y, np.r_[np.zeros(3), np.ones(len(X) - 3)])
    assert machine.support_.max() >= len(X) - 3
    mercer.save(machine, tmp_path / "model.mercer")
    assert np.array_equal(mercer.load(tmp_path / "model.mercer").support_, machine.support_)


FUNCTIONS = (mercer.LogisticRegression, mercer.GaussianProcessClassifier, compat.LinearSVC)


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("labels", [y, TINY.three], ids=["two", "three"])
def test_classes_are_as_many_as_functions_tell_apart(kind, labels, tmp_path):
    fitted = kind().fit(X, labels)
    fitted.classes_ = np.arange(5)
    with pytest.raises(mercer.ModelFormatError, match="5 classes do not have"):
        mercer.save(fitted, tmp_path / "model.mercer")
