"""LIBSVM reads what we write, and we what it writes: all types, all kernels. See libsvm_oracle."""

import numpy as np
import pytest
from helpers.libsvm_oracle import KERNELS, TYPES, found, options, sample

from mercer.compat import sklearn as drop_in
from mercer.files.libsvm import (
    certify_libsvm_model,
    machine_of,
    read_libsvm_model,
    write_libsvm_model,
)

LIBSVM = found()
pytestmark = pytest.mark.skipif(LIBSVM is None, reason="MERCER_LIBSVM names no LIBSVM library")
CASES = [
    (kind, kernel, classes)
    for kind in TYPES
    for kernel in KERNELS
    for classes in ((2, 3, 5) if kind.endswith("svc") else (2,))
]
DROP_INS = {
    "c_svc": drop_in.SVC,
    "nu_svc": drop_in.NuSVC,
    "one_class": drop_in.OneClassSVM,
    "epsilon_svr": drop_in.SVR,
    "nu_svr": drop_in.NuSVR,
}


def close(found, expected, model):
    """Compare to 1e-12 of the values, or to the rounding of the sums that they are."""
    given = model.kernel_type == "precomputed"
    V = model.support_vectors
    largest = 1.0 if given else float(np.abs(model.kernel(V, V)).max())
    sums = largest * float(np.abs(model.dual_coef).sum(axis=0).max())
    size = max(1.0, float(np.abs(expected).max()), 1e-3 * sums)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize(("kind", "kernel", "classes"), CASES)
def test_both_ways(kind, kernel, classes, tmp_path):
    X, y = sample(kind, kernel, classes)
    path, again = tmp_path / "их модель.model", tmp_path / "notre modèle 模型.model"
    LIBSVM.train(X, y, kind, kernel, path, probability=1, **options(kernel))
    given = {"classes": classes, "precomputed": kernel == "precomputed"}
    values, labels, shares = LIBSVM.predict(path, X, probability=not kind.endswith("r"), **given)
    model = read_libsvm_model(path)
    close(model.decision_values(X), values, model)
    close(model.predict(X), labels, model)
    if model.prob_b is not None or model.density_marks is not None:
        close(model.predict_proba(X), shares, model)
    write_libsvm_model(model, again)
    read_again = LIBSVM.predict(again, X, probability=not kind.endswith("r"), **given)
    np.testing.assert_array_equal(read_again[0], values)
    np.testing.assert_array_equal(read_again[2], shares, model)
    write_libsvm_model(machine_of(model, without_probabilities=True), again)
    ours = LIBSVM.predict(again, X, **given)[0]
    close(np.sort(np.abs(ours), axis=None), np.sort(np.abs(values), axis=None), model)


@pytest.mark.filterwarnings("ignore:.*not positive semidefinite")  # sigmoid
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "kernel", "classes"), CASES)
def test_drop_ins_are_read_by_libsvm(kind, kernel, classes, tmp_path):
    X, y = sample(kind, kernel, classes, seed=1)
    own = {"polynomial": "poly"}.get(kernel, kernel)
    numbers = {"gamma": 0.3, "coef0": 0.5, **options(kernel)}
    shape = {"decision_function_shape": "ovo"} if kind.endswith("svc") else {}
    share = 0.95 if (kind, kernel) == ("nu_svc", "linear") else 0.3  # there is no margin at 0.3
    nu = {"nu": share} if "nu" in kind or kind == "one_class" else {}
    machine = DROP_INS[kind](kernel=own, **numbers, **shape, **nu).fit(X, y)
    path = tmp_path / "ours.model"
    write_libsvm_model(machine, path)
    given = {"classes": classes, "precomputed": kernel == "precomputed"}
    values, labels, _ = LIBSVM.predict(path, X, **given)
    model = read_libsvm_model(path)
    if kind.endswith("svr"):
        close(machine.predict(X), values, model)
        return
    found = machine.decision_function(X)
    close(-found if kind.endswith("svc") and classes == 2 else found, values, model)
    clear = np.abs(values.reshape(len(X), -1)).min(axis=1) > 1e-9
    np.testing.assert_array_equal(machine.predict(X)[clear], labels[clear])


@pytest.mark.parametrize("kind", TYPES)
def test_what_libsvm_trains_is_certified_at_its_tolerance(kind, tmp_path):
    X, y = sample(kind, "rbf", 2)
    LIBSVM.train(X, y, kind, "rbf", tmp_path / "a.model", eps=1e-5)
    given = {
        "c_svc": {"C": 1.0},
        "nu_svc": {"nu": 0.3},
        "epsilon_svr": {"C": 1.0, "epsilon": 0.1},
        "nu_svr": {"C": 1.0, "nu": 0.3},
        "one_class": {"nu": 0.3},
    }
    model = read_libsvm_model(tmp_path / "a.model")
    judgement = certify_libsvm_model(model, X, y, **given[kind])
    assert judgement.ok
    assert 0 <= judgement.certificate.quantities.relative_gap < 1e-3
