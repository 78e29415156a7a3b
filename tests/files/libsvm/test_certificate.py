"""A LIBSVM model is judged from its data: what LIBSVM found at 1e-3 is certified as that."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.compat import sklearn as drop_in
from mercer.files.libsvm import certify_libsvm_model, read_libsvm_model
from mercer.files.libsvm.machines import model_of

FOLDER = Path(__file__).parent / "golden"
GIVEN = {
    "c_svc": {"C": 1.0},
    "nu_svc": {"nu": 0.3},
    "one_class": {},
    "epsilon_svr": {"C": 1.0, "epsilon": 0.1},
    "nu_svr": {"C": 1.0, "nu": 0.3},
}
VALID = ["linear", "polynomial", "rbf", "precomputed"]
GOLDEN = sorted(path for path in FOLDER.glob("*.model") if path.stem.split("-")[1] in VALID)


def data(path):
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return np.array(told["X"]), np.array(told["y"])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_what_libsvm_trained_is_certified(path):
    model = read_libsvm_model(path)
    # LIBSVM stops at violations of 1e-3: of nu_svc before it divides by the margin, here about 0.1
    tol = 2e-2 if model.svm_type == "nu_svc" else 2e-3
    judgement = certify_libsvm_model(model, *data(path), **GIVEN[model.svm_type], tol=tol)
    assert judgement.ok, str(judgement)
    quantities = judgement.certificate.quantities
    assert quantities.relative_gap < tol
    assert quantities.infeasibility < 1e-9


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_changed_model_is_not(path):
    model = read_libsvm_model(path)
    changed = replace(model, rho=model.rho + 0.3)
    quantities = [
        certify_libsvm_model(one, *data(path), **GIVEN[model.svm_type]).certificate.quantities
        for one in (model, changed)
    ]
    assert quantities[1].relative_gap > 10 * quantities[0].relative_gap


def test_c_that_is_not_given_is_the_largest_coefficient_and_that_is_said():
    path = FOLDER / "c_svc-rbf-4.model"
    judgement = certify_libsvm_model(read_libsvm_model(path), *data(path))
    assert judgement.ok
    assert "inferred as the largest coefficient" in str(judgement)


def test_costs_of_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, 3, 1)
    machine = drop_in.SVC(C=2.0, class_weight={3: 5.0}).fit(X, y)
    model = model_of(machine)
    assert certify_libsvm_model(model, X, y, C={3: 10.0, 1: 2.0}).ok
    assert not certify_libsvm_model(model, X, y, C=2.0).ok
    with pytest.raises(ValueError, match="label 1"):
        certify_libsvm_model(model, X, y, C={3: 1.0})


def test_equal_rows_share_their_coefficients():
    X = np.repeat(np.linspace(0, 5, 12), 3)[:, None]
    y = np.sin(X.ravel()) + np.tile([-0.4, 0.0, 0.4], 12)
    model = model_of(mercer.SVR(C=1.0, epsilon=0.1, tol=1e-6).fit(X, y))
    order = np.random.default_rng(0).permutation(len(y))
    judgement = certify_libsvm_model(model, X[order], y[order], C=1.0, epsilon=0.1)
    assert judgement.ok, str(judgement)


def test_eight_digits_are_enough_to_find_a_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] > 0).astype(int)
    model = model_of(mercer.SVC().fit(X, y))
    rounded = np.vectorize(lambda value: float(f"{value:.8g}"))(model.support_vectors)
    assert certify_libsvm_model(replace(model, support_vectors=rounded), X, y, C=1.0).ok
    with pytest.raises(ValueError, match="none of the rows"):
        certify_libsvm_model(model, X + 1e-3, y)


def test_refusals():
    path = FOLDER / "epsilon_svr-rbf-2.model"
    model, (X, y) = read_libsvm_model(path), data(path)
    with pytest.raises(ValueError, match="epsilon=None"):
        certify_libsvm_model(model, X, y)
    with pytest.raises(ValueError, match="nu has no meaning"):
        certify_libsvm_model(model, X, y, epsilon=0.1, nu=0.3)
    with pytest.raises(ValueError, match="y=None"):
        certify_libsvm_model(model, X, epsilon=0.1)
    with pytest.raises(ValueError, match="rows"):
        certify_libsvm_model(model, X, y[:-1], epsilon=0.1)
    classifier = read_libsvm_model(FOLDER / "c_svc-linear-2.model")
    X, y = data(FOLDER / "c_svc-linear-2.model")
    with pytest.raises(ValueError, match="label 99"):
        certify_libsvm_model(classifier, X, np.where(np.arange(len(y)) == 0, 99, y))
