"""Models that LIBSVM 3.37 wrote (`make_golden.py` says how) are read as it reads them."""

import json
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.files.libsvm import machine_of, read_libsvm_model, write_libsvm_model

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.model"))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def golden(request):
    told = json.loads(request.param.with_suffix(".json").read_text(encoding="utf-8"))
    return request.param, {name: np.array(values) for name, values in told.items()}


def test_there_are_golden_models():
    assert len(GOLDEN) == 12


def test_values_labels_and_probabilities_are_libsvms(golden):
    path, told = golden
    model = read_libsvm_model(path)
    size = np.abs(told["decision_values"]).max()
    values = model.decision_values(told["X"])
    np.testing.assert_allclose(values, told["decision_values"], rtol=0, atol=1e-13 * max(1, size))
    np.testing.assert_allclose(model.predict(told["X"]), told["predictions"], rtol=1e-12)
    if told["probabilities"].size:
        np.testing.assert_allclose(
            model.predict_proba(told["X"]), told["probabilities"], rtol=0, atol=1e-12
        )


def test_written_again_it_is_the_same_file(golden, tmp_path):
    path, _ = golden
    again = tmp_path / "модель 二.model"
    write_libsvm_model(read_libsvm_model(path), again)
    ours, theirs = again.read_bytes().split(b"\nSV\n"), path.read_bytes().split(b"\nSV\n")
    assert ours[0] == theirs[0]
    # support vectors have all their digits here
    for our, their in zip(ours[1].splitlines(), theirs[1].splitlines(), strict=True):
        assert our.replace(b":", b" ").split()[0] == their.replace(b":", b" ").split()[0]
        numbers = [np.array(line.replace(b":", b" ").split(), float) for line in (our, their)]
        np.testing.assert_array_equal(*numbers)


def test_the_machine_decides_alike(golden):
    path, told = golden
    model = read_libsvm_model(path)
    machine = machine_of(model, without_probabilities=True)
    X = told["X"][:, : model.n_features]
    clear = np.abs(told["decision_values"].reshape(len(X), -1)).min(axis=1) > 1e-9
    predicted = machine.predict(X)
    if model.labels is None or len(model.labels) == 2:
        found = predicted if model.svm_type.endswith("svr") else machine.decision_function(X)
        size = np.abs(told["decision_values"]).max()
        sign = -1.0 if model.labels is not None and model.labels[0] < model.labels[1] else 1.0
        np.testing.assert_allclose(sign * found, told["decision_values"], atol=1e-13 * max(1, size))
        np.testing.assert_allclose(predicted[clear], told["predictions"][clear], rtol=1e-12)
    else:  # votes that are equal are broken otherwise
        assert (predicted == told["predictions"]).mean() > 0.9
    assert machine.solution_.status is mercer.Status.UNKNOWN
    assert not machine.certificate_.ok
    assert "certify_libsvm_model" in machine.certificate_.statement


def test_the_machine_is_saved_and_loaded(golden, tmp_path):
    path, told = golden
    model = read_libsvm_model(path)
    machine = machine_of(model, without_probabilities=True)
    mercer.save(machine, tmp_path / "a.mercer")
    X = told["X"][:, : model.n_features]
    np.testing.assert_array_equal(mercer.load(tmp_path / "a.mercer").predict(X), machine.predict(X))


def test_a_machine_of_a_model_is_written_as_that_model(golden, tmp_path):
    path, told = golden
    model = read_libsvm_model(path)
    write_libsvm_model(machine_of(model, without_probabilities=True), tmp_path / "again.model")
    again = read_libsvm_model(tmp_path / "again.model")
    size = np.abs(told["decision_values"]).max()
    values = again.decision_values(told["X"])
    if model.labels is None:
        np.testing.assert_allclose(values, told["decision_values"], atol=1e-13 * max(1, size))
        return
    places = [int(np.flatnonzero(model.labels == label)[0]) for label in again.labels]
    given = told["decision_values"].reshape(len(values), -1)
    for p, (a, b) in enumerate(again.pairs):
        i, j = places[a], places[b]
        column = given[:, model.pairs.index((min(i, j), max(i, j)))]
        ours = values.reshape(len(values), -1)[:, p]
        np.testing.assert_allclose(ours, column if i < j else -column, atol=1e-13 * max(1, size))


def test_probabilities_are_not_dropped_in_silence(golden):
    path, _ = golden
    model = read_libsvm_model(path)
    with pytest.raises(ValueError, match="without_probabilities"):
        machine_of(model)
