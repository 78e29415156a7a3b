"""Every machine that is exported says in onnxruntime what it says here, near the border too."""

import numpy as np
import onnx
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer.compat import sklearn as drop_in
from mercer.files import to_onnx
from mercer.files.onnx.export import border_rows, border_values, run
from mercer.kernels import Gaussian, Linear, Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
UNSCALED = X * [1.0, 100.0, 1e4, 1e-3] + [0.0, 30.0, -5e4, 1e-2]
TWO = (X[:, 0] + 0.3 * RNG.normal(size=150) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.2 * X[:, 1], [-0.5, 0.5])
REAL = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=150)
BOTH = np.column_stack([REAL, X[:, 1] ** 2])

CLASSIFIERS = {
    "SVC": mercer.SVC(),
    "SVC l2": mercer.SVC(slack="l2"),
    "SVC nu": mercer.SVC(nu=0.4),
    "SVC ovr": mercer.SVC(multiclass="ovr"),
    "SVC linear": mercer.SVC("linear"),
    "SVC polynomial": mercer.SVC(0.3 * Polynomial(3, 0.7)),
    "SVC probability": mercer.SVC(probability=True),
    "SVC ovr probability": mercer.SVC(multiclass="ovr", probability=True),
    "LogisticRegression": mercer.LogisticRegression(),
    "LogisticRegression kernel": mercer.LogisticRegression(Gaussian(2.0)),
    "LogisticRegression tanh": mercer.LogisticRegression(loss="tanh"),
    "LogisticRegression squared": mercer.LogisticRegression(loss="squared"),
    "FisherDiscriminant": mercer.FisherDiscriminant(),
    "FisherDiscriminant kernel": mercer.FisherDiscriminant(kernel=Gaussian(2.0), penalty=0.1),
    "FisherDiscriminant mahalanobis": mercer.FisherDiscriminant(
        kernel=Gaussian(2.0), penalty=0.1, rule="mahalanobis"
    ),
    "NearestMean": mercer.NearestMean(),
    "NearestMean kernel": mercer.NearestMean(Gaussian(2.0)),
    "GaussianClassifier": mercer.GaussianClassifier(),
    "GaussianClassifier shared": mercer.GaussianClassifier(shared=True),
    "GaussianClassifier diagonal": mercer.GaussianClassifier(covariance="diagonal"),
    "NaiveBayes": mercer.NaiveBayes(),
    "drop-in SVC": drop_in.SVC(),
    "drop-in SVC ovo": drop_in.SVC(decision_function_shape="ovo"),
    "drop-in SVC poly": drop_in.SVC(kernel="poly"),
    "drop-in SVC sigmoid": drop_in.SVC(kernel="sigmoid", gamma=0.01),
    "drop-in NuSVC": drop_in.NuSVC(nu=0.3, break_ties=True),
    "drop-in LinearSVC": drop_in.LinearSVC(),
    "drop-in LogisticRegression": drop_in.LogisticRegression(),
    "drop-in QDA": drop_in.QuadraticDiscriminantAnalysis(),
    "scaled SVC": make_pipeline(StandardScaler(), mercer.SVC()),
    "ranged SVC": make_pipeline(MinMaxScaler(clip=True), mercer.SVC("linear")),
    "PCA SVC": make_pipeline(StandardScaler(), mercer.PCA(n_components=2), mercer.SVC()),
    "white SVC": make_pipeline(mercer.Whiten(), mercer.SVC()),
    "logarithms SVC": make_pipeline(mercer.LogShift(), StandardScaler(), mercer.SVC()),
    "searched SVC": GridSearchCV(mercer.SVC(), {"C": [0.1, 1.0]}, cv=2),
}
OTHERS = {
    "SVR": (mercer.SVR(), REAL),
    "SVR nu": (mercer.SVR(nu=0.5), REAL),
    "drop-in SVR": (drop_in.SVR(), REAL),
    "KernelRidge": (mercer.KernelRidge(0.1, kernel=Gaussian(2.0)), REAL),
    "KernelRidge linear": (mercer.KernelRidge(0.1), REAL),
    "KernelRidge many": (mercer.KernelRidge(0.1, kernel=Gaussian(2.0)), BOTH),
    "OneClassSVM": (mercer.OneClassSVM(nu=0.1), None),
    "OneClassSVM polynomial": (mercer.OneClassSVM(Polynomial(2), nu=0.1), None),
    "drop-in OneClassSVM": (drop_in.OneClassSVM(nu=0.1), None),
    "EnclosingBall": (mercer.EnclosingBall(nu=0.1), None),
    "drop-in LinearSVR": (drop_in.LinearSVR(), REAL),
    "drop-in KernelRidge": (drop_in.KernelRidge(kernel="rbf"), REAL),
    "drop-in KernelRidge many": (drop_in.KernelRidge(kernel="poly"), BOTH),
    "drop-in KernelPCA": (drop_in.KernelPCA(n_components=2, kernel="rbf"), None),
    "drop-in KMeans": (drop_in.KMeans(n_clusters=3, random_state=0), None),
    "PCA": (mercer.PCA(n_components=2), None),
    "PCA one": (mercer.PCA(n_components=1, whiten=True), None),
    "PCA kernel": (mercer.PCA(n_components=2, kernel=Gaussian(2.0), whiten=True), None),
    "CCA": (mercer.CCA(n_components=2), BOTH),
    "CCA kernel": (mercer.CCA(n_components=2, kernel_x=Gaussian(2.0)), BOTH),
    "Whiten": (mercer.Whiten(), None),
    "ICA": (mercer.ICA(2), None),
    "ProjectionPursuit": (mercer.ProjectionPursuit(1), None),
    "KMeans": (mercer.KMeans(3), None),
    "KMeans kernel": (mercer.KMeans(3, kernel=Gaussian(2.0)), None),
    "GaussianMixture": (mercer.GaussianMixture(3), None),
    "GaussianMixture diagonal": (mercer.GaussianMixture(2, covariance="diagonal"), None),
    "GaussianMixture one": (mercer.GaussianMixture(1), None),
    "scaled KernelRidge": (make_pipeline(StandardScaler(), mercer.KernelRidge(0.1)), REAL),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*not positive semidefinite"),
]


def answers(model, rows):
    return run(model.SerializeToString(), {"X": np.ascontiguousarray(rows)})


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, classes):
    machine = CLASSIFIERS[name].fit(X, TWO if classes == 2 else THREE)
    model = to_onnx(machine)
    found = answers(model, X)
    np.testing.assert_array_equal(found["label"], machine.predict(X))
    if name != "drop-in QDA" or classes == 2:
        expected = machine.decision_function(X)
        size = np.abs(expected).max()
        np.testing.assert_allclose(found["decision"], expected, rtol=0, atol=1e-12 * size)
    if hasattr(machine, "predict_proba"):
        shares = machine.predict_proba(X)
        np.testing.assert_allclose(found["probabilities"], shares, rtol=0, atol=1e-12)
    assert ("probabilities" in found) == hasattr(machine, "predict_proba")


@pytest.mark.parametrize("name", OTHERS)
def test_other_machines(name):
    machine, y = OTHERS[name]
    machine.fit(X, y)
    found = answers(to_onnx(machine), X)
    methods = {
        "prediction": machine.predict if hasattr(machine, "predict") else None,
        "label": getattr(machine, "predict", None),
        "decision": getattr(machine, "decision_function", None),
        "transformed": getattr(machine, "transform", None),
        "probabilities": getattr(machine, "predict_proba", None),
        "log_density": getattr(machine, "score_samples", None),
        "squared_distances": lambda Z: machine.transform(Z) ** 2,
    }
    assert found
    for output, values in found.items():
        expected = methods[output](X)
        assert values.shape == expected.shape
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["SVC", "SVC probability", "LogisticRegression kernel"])
def test_ten_thousand_points_near_the_border(name):
    machine = make_pipeline(StandardScaler(), CLASSIFIERS[name]).fit(UNSCALED, THREE)
    model = to_onnx(machine)
    rng = np.random.default_rng(1)
    near = border_rows(machine, UNSCALED, rng, count=600)
    spread = UNSCALED.std(axis=0) * 10.0 ** rng.uniform(-8, -1, size=(10_000, 1))
    rows = near[rng.integers(len(near), size=10_000)] + spread * rng.normal(size=(10_000, 4))
    found, expected = answers(model, rows), machine.decision_function(rows)
    values = border_values(machine[-1], machine[:-1].transform(rows))
    off = np.abs(values).min(axis=1) > 1e-9 * np.abs(values).max()
    assert off.mean() > 0.9
    np.testing.assert_array_equal(found["label"][off], machine.predict(rows)[off])
    size = np.abs(expected).max()
    np.testing.assert_allclose(found["decision"][off], expected[off], rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["aye", "nö", "vielleicht"]),
        np.array(["aye", "nö", "vielleicht"], dtype=object),
        np.array([-5, 7, 1000]),
        np.array([1.0, 2.0, 4.0]),
        np.array([3, 200, 5], dtype=np.uint8),
    ],
    ids=str,
)
def test_labels_of_many_types(labels):
    y = labels[THREE]
    machine = mercer.SVC().fit(X, y)
    found = answers(to_onnx(machine), X)["label"]
    expected = machine.predict(X)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == {"U": "O", "u": "i"}.get(expected.dtype.kind, expected.dtype.kind)


def test_truth_values_as_labels():
    machine = mercer.SVC().fit(X, TWO > 0)
    found = answers(to_onnx(machine), X)["label"]
    assert found.dtype == bool
    np.testing.assert_array_equal(found, machine.predict(X))


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_any_number_of_rows(rows):
    for machine in (mercer.SVC(probability=True).fit(X, THREE), mercer.KMeans(2).fit(X)):
        found = answers(to_onnx(machine), X[:rows])
        assert all(len(values) == rows for values in found.values())


def test_rows_that_were_float32():
    rows = X.astype(np.float32)
    for machine, y in (
        (mercer.SVC(), THREE),
        (mercer.KernelRidge(0.1, kernel=Gaussian([0.3, 1.0, 3.0, 0.7])), REAL),
        (make_pipeline(MinMaxScaler(), mercer.PCA(n_components=2), mercer.KernelRidge(0.1)), REAL),
    ):
        machine.fit(rows, y)
        found = next(iter(answers(to_onnx(machine), rows.astype(np.float64)).values()))
        expected = machine.predict(rows.astype(np.float64))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_rows_that_were_sparse():
    rows = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    machine = mercer.SVC().fit(rows, THREE)
    found = answers(to_onnx(machine), rows.toarray())
    np.testing.assert_array_equal(found["label"], machine.predict(rows))


def test_a_precomputed_kernel_takes_rows_of_the_matrix():
    K = Gaussian(2.0)(X, X)
    for machine in (mercer.SVC("precomputed"), drop_in.SVC(kernel="precomputed")):
        machine.fit(K, THREE)
        found = answers(to_onnx(machine), K)
        np.testing.assert_array_equal(found["label"], machine.predict(K))


def test_one_column_and_one_support_vector():
    """onnxruntime moves scalars beside a product into an attribute that is a float32."""
    x = X[:, :1] * np.pi
    for machine in (
        make_pipeline(StandardScaler(), mercer.KernelRidge(0.1)),
        make_pipeline(MinMaxScaler(), mercer.KernelRidge(0.1, kernel=Gaussian(0.7))),
        mercer.KernelRidge(0.1, kernel=0.123456789 * Linear()),
        make_pipeline(StandardScaler(), mercer.PCA(n_components=1, whiten=True)),
    ):
        machine.fit(x, REAL)
        to_onnx(machine)
    machine = mercer.KernelRidge(1e-3, kernel=0.1 * Gaussian(1 / 3)).fit([[0.3], [0.3]], [1.0, 2.0])
    to_onnx(machine)


def test_the_file_is_whole_and_stands_alone(tmp_path):
    path = tmp_path / "модель.onnx"
    machine = mercer.SVC().fit(X, THREE)
    model = to_onnx(machine, path)
    read = onnx.load(str(path))
    onnx.checker.check_model(read, full_check=True)
    assert read.SerializeToString() == model.SerializeToString()
    assert [entry.domain for entry in read.opset_import] == [""]
    assert (read.opset_import[0].version, read.ir_version) == (17, 8)
    assert not any(tensor.external_data for tensor in read.graph.initializer)
    assert len(list(tmp_path.iterdir())) == 1
    said = {entry.key: entry.value for entry in read.metadata_props}
    assert said["mercer.machine"] == "SVC"
    assert "decision" in said["mercer.parity"]
    assert path.stat().st_size < 4 * machine.support_vectors_.nbytes
