"""What LIBSVM's files can hold is written to the last bit; the rest is refused by name."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import mercer
from mercer.compat import sklearn as drop_in
from mercer.data import read
from mercer.files.libsvm import (
    machine_of,
    read_libsvm_model,
    write_libsvm_data,
    write_libsvm_model,
)
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 3))
TWO = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, 4, -2)
MANY = np.digitize(X[:, 0], [-0.5, 0.4]) * 3 - 2
REAL = np.sin(X[:, 0])
KERNELS = [
    Linear(),
    Gaussian(1.3),
    Polynomial(3, 0.5),
    0.4 * Polynomial(2, 1.0),
    2.5 * Gaussian(0.8),
    Sigmoid(0.05, -0.1),
]


def round_trip(machine, path, **options):
    write_libsvm_model(machine, path, **options)
    return read_libsvm_model(path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_and_machines(kernel, tmp_path):
    path = tmp_path / "a.model"
    for machine, y in [
        (mercer.SVC(kernel), TWO),
        (mercer.SVC(kernel, slack="l2"), TWO),
        (mercer.SVR(kernel), REAL),
        (mercer.SVR(kernel, nu=0.4), REAL),
        (mercer.OneClassSVM(kernel, nu=0.2), None),
    ]:
        machine.fit(X, y)
        model = round_trip(machine, path)
        expected = machine.predict(X) if y is REAL else machine.decision_function(X)
        size = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(model.decision_values(X), expected, rtol=0, atol=1e-12 * size)
        if y is TWO:
            np.testing.assert_array_equal(model.predict(X), machine.predict(X))


@pytest.mark.parametrize("rows", [X, sparse.csr_array(np.where(np.abs(X) < 0.7, 0.0, X))])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.3)], ids=repr)
def test_many_classes(kernel, rows, tmp_path):
    machine = mercer.SVC(kernel).fit(rows, MANY)
    model = round_trip(machine, tmp_path / "a.model")
    values = -model.decision_values(rows)  # positive for the later class, as ours are
    np.testing.assert_allclose(values, machine._values(rows), rtol=0, atol=1e-12)
    assert model.counts.tolist() == machine.n_support_.tolist()
    other = drop_in.SVC(kernel=kernel, decision_function_shape="ovo").fit(rows, MANY)
    model = round_trip(other, tmp_path / "b.model")
    np.testing.assert_allclose(
        model.decision_values(rows), other.decision_function(rows), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(rows), other.predict(rows))


def test_numbers_are_exact(tmp_path):
    machine = drop_in.SVC(kernel="rbf", gamma=0.1).fit(X, TWO)
    model = round_trip(machine, tmp_path / "a.model")
    assert model.gamma == 0.1
    np.testing.assert_array_equal(model.dual_coef.T, machine._dual_coef_)
    np.testing.assert_array_equal(model.support_vectors, machine.support_vectors_)
    np.testing.assert_array_equal(model.rho, -machine._intercept_)


def test_rows_of_float32(tmp_path):
    machine = mercer.SVC().fit(X.astype(np.float32), TWO)
    model = round_trip(machine, tmp_path / "a.model")
    ours, theirs = (np.unique(one.support_vectors_, axis=0) for one in (machine, machine_of(model)))
    np.testing.assert_array_equal(ours, theirs)
    rows = X.astype(np.float32).astype(float)
    np.testing.assert_allclose(
        model.decision_values(rows), machine.decision_function(rows), rtol=0, atol=1e-12
    )


def test_precomputed(tmp_path):
    K = Gaussian(1.0)(X, X)
    for machine in (mercer.SVC("precomputed"), drop_in.SVC(kernel="precomputed")):
        machine.fit(K, MANY)
        model = round_trip(machine, tmp_path / "a.model")
        assert sorted(model.support_vectors.tolist()) == sorted(machine.support_ + 1)
        np.testing.assert_array_equal(
            model.predict(K), drop_in.SVC(kernel="precomputed").fit(K, MANY).predict(K)
        )


@pytest.mark.parametrize(
    ("machine", "y", "words"),
    [
        (mercer.SVC(Laplacian(1.0)), TWO, "Laplacian"),
        (mercer.SVC(Gaussian([1.0, 2.0, 3.0])), TWO, "Gaussian"),
        (mercer.SVC(Linear() + Gaussian(1.0)), TWO, "precomputed"),
        (mercer.SVC(Linear().on([0, 1])), TWO, "precomputed"),
        (mercer.SVC(Sigmoid(-0.1)), TWO, "slope"),
        (mercer.SVC(multiclass="ovr"), MANY, "multiclass='ovo'"),
        (mercer.SVC(), np.where(TWO > 0, "a", "b"), "number them"),
        (mercer.SVC(), np.where(TWO > 0, 2**40, 0), "32-bit"),
        (mercer.SVC(probability=True), TWO, "without_probabilities"),
        (drop_in.SVC(kernel=lambda A, B: np.asarray(A) @ np.asarray(B).T), TWO, "function"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_refusals(machine, y, words, tmp_path):
    machine.fit(X, y)
    with pytest.raises(ValueError, match=words):
        write_libsvm_model(machine, tmp_path / "a.model")
    assert not list(tmp_path.iterdir())


def test_other_machines_are_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match="KernelRidge cannot be stored"):
        write_libsvm_model(mercer.KernelRidge(0.1).fit(X, REAL), tmp_path / "a.model")
    with pytest.raises(ValueError, match="not fitted"):
        write_libsvm_model(mercer.SVC(), tmp_path / "a.model")


def test_labels_that_are_whole_numbers_in_other_types(tmp_path):
    for y in (TWO.astype(float), TWO > 0, TWO.astype(np.int8)):
        machine = mercer.SVC(probability=True).fit(X, y)
        model = round_trip(machine, tmp_path / "a.model", without_probabilities=True)
        np.testing.assert_array_equal(model.predict(X), machine.predict(X))


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.model"
    path.write_text("before")
    with pytest.raises(ValueError):
        write_libsvm_model(mercer.SVC(Laplacian(1.0)).fit(X, TWO), path)
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


# --- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.array, sparse.csr_array, sparse.csc_array])
def test_data_comes_back_to_the_last_bit(make, tmp_path):
    rows = np.where(RNG.random((40, 6)) < 0.5, 0.0, RNG.normal(size=(40, 6)))
    path = tmp_path / "строки.txt"
    write_libsvm_data(make(rows), RNG.normal(size=40), path)
    found, _ = load_svmlight_file(str(path), n_features=6)
    np.testing.assert_array_equal(found.toarray(), rows)
    write_libsvm_data(make(rows), MANY[:40], path)
    np.testing.assert_array_equal(load_svmlight_file(str(path))[1], MANY[:40])
    table = read(path, format="libsvm")
    np.testing.assert_array_equal(np.asarray(table.drop("target")), rows)


def test_precomputed_data(tmp_path):
    write_libsvm_data([[1.0, 0.0], [0.0, 2.0]], [1, -1], tmp_path / "K.txt", precomputed=True)
    text = (tmp_path / "K.txt").read_text()
    assert text == "1 0:1 1:1 2:0 \n-1 0:2 1:0 2:2 \n"


def test_data_that_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(ValueError, match="number the labels"):
        write_libsvm_data([[1.0]], ["a"], path)
    with pytest.raises(ValueError, match="shape"):
        write_libsvm_data([[1.0]], [1, 2], path)
    with pytest.raises(ValueError, match="NaN"):
        write_libsvm_data([[np.nan]], [1], path)
    with pytest.raises(ValueError, match="strings"):
        write_libsvm_data(["abc"], [1], path)
    assert not list(tmp_path.iterdir())
    write_libsvm_data([[1.0]], None, path)
    assert path.read_text() == "0 1:1 \n"


@pytest.mark.parametrize("machine", [mercer.SVC("linear"), mercer.SVR("linear")], ids=str)
def test_columns_so_far_that_products_of_rows_cancel_are_refused(machine, tmp_path):
    y = TWO if isinstance(machine, mercer.SVC) else REAL
    machine.fit(X + 1e3, y)
    values = machine_of(round_trip(machine, tmp_path / "near")).predict(X + 1e3)
    np.testing.assert_allclose(values, machine.predict(X + 1e3), atol=1e-3)
    with pytest.raises(ValueError, match="far from zero"):
        write_libsvm_model(machine.fit(X + 1e8, y), tmp_path / "far")
    assert not (tmp_path / "far").exists()


def test_a_linear_machine_without_support_vectors_is_written(tmp_path):
    machine = mercer.SVR("linear", epsilon=10.0).fit(X, REAL)
    assert len(round_trip(machine, tmp_path / "flat").dual_coef) == 0
