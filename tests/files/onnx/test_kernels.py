"""Kernels as nodes: every node of the language, alone and composed; what cannot be is named."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mercer
from mercer.files import OnnxExportError, to_onnx
from mercer.files.libsvm.machines import model_of
from mercer.files.onnx import export
from mercer.files.onnx.export import run
from mercer.kernels import (
    AllSubsets,
    Anova,
    Bilinear,
    ChiSquared,
    Cosine,
    FromCallable,
    Gaussian,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Tanimoto,
    exp,
    polynomial,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
COUNTS = RNG.poisson(2.0, size=(60, 4)).astype(float)
REAL_KERNELS = [
    Gaussian(1.5),
    Gaussian([0.5, 1.0, 2.0, 4.0]),
    Laplacian(2.0),
    Laplacian([1.0, 2.0, 3.0, 4.0]),
    Matern(nu=0.5, scale=2.0),
    Matern(nu=1.5, scale=2.0),
    Matern(nu=2.5, scale=2.0),
    Matern(nu=np.inf, scale=2.0),
    RationalQuadratic(scale=1.5, alpha=0.7),
    Linear(),
    Polynomial(3, 0.5),
    Cosine(),
    AllSubsets(),
    Anova(2),
    Anova(3),
    Bilinear(np.diag([1.0, 2.0, 0.0, 0.5])),
    Gaussian(1.0) + 0.5 * Linear() + 2.0,
    Gaussian(1.0).on([0, 2]) * Laplacian(2.0).on([1, 3]),
    (Linear() + Gaussian(1.0)) ** 2,
    Polynomial(2).normalized(),
    (Gaussian(1.0) * AllSubsets()).normalized(),
    Anova(2).normalized(),
    exp(0.1 * Cosine()),
    polynomial(Gaussian(1.0), [1.0, 0.5, 0.25]),
]
COUNT_KERNELS = [Intersection(), ChiSquared(1.0), Tanimoto(), Intersection() * Gaussian(3.0)]


def parity(machine, rows):
    found = run(to_onnx(machine).SerializeToString(), {"X": rows})["prediction"]
    return np.abs(found - machine.predict(rows)).max() / np.abs(machine.predict(rows)).max()


@pytest.mark.parametrize("kernel", REAL_KERNELS, ids=repr)
def test_kernels(kernel):
    few = mercer.KernelRidge(0.5, kernel=kernel).fit(X[:20], Y[:20])  # by points
    many = mercer.KernelRidge(0.5, kernel=kernel).fit(X, Y)  # by features, where there are few
    for machine in (few, many):
        assert parity(machine, X) < 1e-12


@pytest.mark.parametrize("kernel", COUNT_KERNELS, ids=repr)
def test_kernels_of_counts(kernel):
    assert parity(mercer.KernelRidge(0.5, kernel=kernel).fit(COUNTS, Y), COUNTS) < 1e-12


def test_narrow_kernels_take_differences():
    """|x|^2 + |y|^2 - 2 x'y has no digits left for rows that are near one another."""
    far = X + 1e5 * np.sign(X)
    machine = mercer.KernelRidge(1e-3, kernel=Gaussian(0.05)).fit(far, Y)
    model = to_onnx(machine)
    assert any(node.op_type == "Scan" for node in model.graph.node)
    wide = to_onnx(mercer.KernelRidge(1e-3, kernel=Gaussian(2.0)).fit(X, Y))
    assert not any(node.op_type == "Scan" for node in wide.graph.node)


def test_sums_that_cancel_are_judged_by_their_rounding():
    """Coefficients of 10^5 add up to values of 1: no order of summing has 12 digits."""
    smooth = np.linspace(0, 1, 40)[:, None]
    machine = mercer.KernelRidge(1e-9, kernel=Gaussian(0.5)).fit(smooth, np.cos(7 * smooth[:, 0]))
    model = to_onnx(machine)
    assert (
        "prediction" in {entry.key: entry.value for entry in model.metadata_props}["mercer.parity"]
    )


def square(A, B):
    return np.square(np.asarray(A) @ np.asarray(B).T)


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (mercer.KernelRidge(0.1, kernel=Matern(nu=1.3, scale=2.0)), "Matern with nu=1.3"),
        (mercer.KernelRidge(0.1, kernel=FromCallable(square)), "function of Python"),
        (mercer.KernelRidge(0.1, kernel=Gaussian(1.0).after(np.tanh)), "tanh"),
        (mercer.NearestNeighbors(), "NearestNeighbors has no ONNX export"),
        (mercer.SpectralClustering(2), "SpectralClustering has no ONNX export"),
        (make_pipeline(FunctionTransformer(), mercer.SVC()), "FunctionTransformer"),
        (make_pipeline(StandardScaler(), "passthrough"), "passthrough"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_exported_is_named(machine, words):
    machine.fit(X, (Y > 0).astype(int))
    with pytest.raises(OnnxExportError, match=words):
        to_onnx(machine)


def test_strings_are_refused():
    machine = mercer.SVC(Spectrum(2)).fit(["abab", "baba", "cdcd", "dcdc"], [0, 0, 1, 1])
    with pytest.raises(OnnxExportError, match="sequences"):
        to_onnx(machine)


def test_machines_that_are_not_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(mercer.SVC())


def test_a_graph_that_differs_is_refused(monkeypatch, tmp_path):
    machine = mercer.KernelRidge(0.1, kernel=Gaussian(1.0)).fit(X, Y)
    made = export._made

    def spoilt(*arguments):
        model, outputs = made(*arguments)
        for tensor in model.graph.initializer:
            if tensor.data_type == 11 and len(tensor.dims) == 2 and tensor.dims[1] == 1:
                values = np.frombuffer(tensor.raw_data).copy()
                values *= 1.0 + 1e-9
                tensor.raw_data = values.tobytes()
        return model, outputs

    monkeypatch.setattr(export, "_made", spoilt)
    with pytest.raises(OnnxExportError, match="differs from the estimator"):
        to_onnx(machine, tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_rows_of_ones_own_are_compared_too():
    machine = mercer.SVR().fit(X, Y)
    model = to_onnx(machine, rows_sample=X[:5])
    told = {entry.key: entry.value for entry in model.metadata_props}["mercer.parity"]
    plain = {entry.key: entry.value for entry in to_onnx(machine).metadata_props}["mercer.parity"]
    assert int(told.split()[1]) == int(plain.split()[1]) + 5
    for wrong in (X[:, :2], X[0], np.full((1, 4), np.nan)):
        with pytest.raises(ValueError, match="rows_sample"):
            to_onnx(machine, rows_sample=wrong)


def test_libsvm_models_are_exported():
    machine = mercer.SVC().fit(X, (Y > 0).astype(int))
    found = run(to_onnx(model_of(machine)).SerializeToString(), {"X": X})
    np.testing.assert_array_equal(found["label"], machine.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*not positive semidefinite")
def test_sigmoid():
    assert parity(mercer.SVR(Sigmoid(0.1, -0.2)).fit(X, Y), X) < 1e-12
