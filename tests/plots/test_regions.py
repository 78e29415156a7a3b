import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, SVC, GaussianClassifier, KernelRidge, KMeans, OneClassSVM
from mercer.data import Table
from mercer.fitting import fit
from mercer.kernels import Gaussian
from mercer.plots import DecisionRegionDisplay


def draw(*args, **kwargs):
    ax = Figure(layout="constrained").subplots()
    options = {"grid_resolution": 60, **kwargs}
    return DecisionRegionDisplay.from_estimator(*args, ax=ax, **options)


def vertices(contours):
    return np.concatenate([path.vertices for path in contours.get_paths()])


def blobs(d=2, classes=3, n=90):
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + 2.5 * np.eye(classes, d)[y], np.array(list("abc"))[y]


def test_the_border_passes_where_the_decision_is_zero():
    X, y = make_moons(80, noise=0.2, random_state=0)
    machine = SVC(Gaussian(0.6), C=5.0).fit(X, y)
    shown = draw(machine, X, y, grid_resolution=150)
    grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    assert np.allclose(shown.response.ravel(), machine.decision_function(grid))
    (border,) = shown.boundary_
    assert np.abs(machine.decision_function(vertices(border))).max() < 2e-3
    for place, points in enumerate(shown.points_):
        assert np.array_equal(points.get_offsets(), X[y == place])


def test_regions_are_those_of_predict_for_many_classes():
    X, y = blobs()
    machine = GaussianClassifier().fit(X, y)
    shown = draw(machine, X, y)
    grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    winner = np.argmax(shown.leads, axis=0).ravel()
    assert np.array_equal(machine.classes_[winner], machine.predict(grid))
    assert len(shown.surface_) == 3
    legend = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert legend == ["a", "b", "c"]


def test_other_columns_are_held_at_their_median():
    X, y = blobs(d=4)
    machine = GaussianClassifier().fit(X, y)
    shown = draw(machine, X, y, features=(3, 1), grid_resolution=10)
    rows = np.tile(np.median(X, axis=0), (100, 1))
    rows[:, 3], rows[:, 1] = shown.xx0.ravel(), shown.xx1.ravel()
    winner = np.argmax(shown.leads, axis=0).ravel()
    assert np.array_equal(machine.classes_[winner], machine.predict(rows))
    assert shown.xlabel == "column 3" and "other 2 columns at their median" in shown.text
    given = draw(machine, X, y, features=(3, 1), held={0: 2.5}, grid_resolution=10)
    rows[:, 0] = 2.5
    winner = np.argmax(given.leads, axis=0).ravel()
    assert np.array_equal(machine.classes_[winner], machine.predict(rows))


@pytest.mark.parametrize("plane", ["principal", "discriminant", "array"])
def test_a_plane_of_directions_goes_through_the_mean(plane):
    X, y = blobs(d=5)
    W = np.random.default_rng(1).normal(size=(2, 5)) if plane == "array" else plane
    machine = GaussianClassifier().fit(X, y)
    shown = draw(machine, X, y, plane=W, grid_resolution=12)
    # rows of the plane have the coordinates of the grid, and those of X are projections
    if plane == "principal":
        W = PCA(2).fit(X).components_
        assert np.allclose(shown.points, (X - X.mean(axis=0)) @ W.T)
    elif plane == "array":
        assert np.allclose(shown.points, (X - X.mean(axis=0)) @ W.T)
    if plane != "discriminant":
        grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
        rows = X.mean(axis=0) + grid @ np.linalg.pinv(W.T)
        winner = np.argmax(shown.leads, axis=0).ravel()
        assert np.array_equal(machine.classes_[winner], machine.predict(rows))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_keep_their_names(frame):
    X, y = blobs(d=3)
    table = frame(dict(zip(["u", "v", "w"], X.T, strict=True)))
    machine = make_pipeline(StandardScaler(), SVC(Gaussian(1.0))).fit(table, y)
    shown = draw(machine, table, y, features=("w", 0))
    assert (shown.xlabel, shown.ylabel) == ("w", "u")
    assert shown.text.startswith("StandardScaler(), SVC(kernel=Gaussian(scale=1.0))")
    assert draw(machine, table, y, plane="principal").points.shape == (90, 2)


def test_tables_of_this_library_and_models_of_them():
    rng = np.random.default_rng(0)
    height, weight = rng.normal(170, 10, 90), rng.normal(70, 12, 90)
    height[3] = np.nan
    colour = rng.choice(["red", "blue"], 90, p=[0.7, 0.3])
    grown = np.where(np.nan_to_num(height, nan=170) + weight > 240, "yes", "no")
    table = Table.of({"height": height, "colour": colour, "weight": weight, "grown": grown})
    model = fit(table, target="grown", machine=SVC(Gaussian(2.0)))
    rows = table.drop("grown")
    shown = draw(model, rows, grown, features=("height", "weight"), grid_resolution=20)
    at = {"height": shown.xx0.ravel(), "colour": np.repeat("red", 400), "weight": shown.xx1.ravel()}
    called = model.classes[1] == model.predict(Table.of(at))
    assert np.array_equal(shown.response.ravel() > 0, called)
    assert shown.xlabel == "height" and "the other column at its most frequent value" in shown.text
    assert draw(model, rows, grown, plane="principal").points.shape == (90, 2)


def test_columns_of_words_are_held_at_the_most_frequent():
    table = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [0.0, 1, 0, 1], "c": ["x", "y", "y", None]})

    class Rule:
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def predict(self, X):
            assert list(X.columns) == ["a", "b", "c"] and set(X["c"]) <= {"x", "y", None}
            return (np.asarray(X["a"]) > 2).astype(int)

        def __sklearn_is_fitted__(self):
            return True

        def __sklearn_tags__(self):
            return KNeighborsClassifier().__sklearn_tags__()

    shown = draw(Rule(), table, [0, 0, 1, 1], features=("a", "b"))
    assert np.array_equal(shown.response > 0, shown.xx0 > 2)
    with pytest.raises(TypeError, match=r"'c' holds .* not numbers"):
        draw(Rule(), table, features=("a", "c"))


def test_detectors_clusterings_and_other_libraries():
    X, y = blobs()
    detector = OneClassSVM(Gaussian(1.0), nu=0.1).fit(X)
    assert draw(detector, X).classes.tolist() == [-1, 1]
    clusters = KMeans(3).fit(X)
    shown = draw(clusters, X)
    grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    assert np.array_equal(np.argmax(shown.leads, axis=0).ravel(), clusters.predict(grid))
    assert len(shown.ax_.get_legend().get_texts()) == 3
    neighbours = draw(KNeighborsClassifier().fit(X, y), X, y, response_method="predict")
    assert neighbours.response.max() == 1.0


def test_a_response_that_contradicts_predict_is_not_drawn():
    X, y = make_moons(60, noise=0.2, random_state=0)

    class Shifted(SVC):
        def predict(self, X):
            return (self.decision_function(X) > 0.5).astype(int)

    shown = draw(Shifted(Gaussian(0.6)).fit(X, y), X, y)
    assert set(np.unique(shown.response)) == {-1.0, 1.0}


def test_refusals():
    X, y = blobs(d=4)
    machine = GaussianClassifier().fit(X, y)
    with pytest.raises(NotFittedError, match="DecisionRegionDisplay: this SVC is not fitted"):
        draw(SVC(), X, y)
    with pytest.raises(TypeError, match="got KernelRidge; RidgePathDisplay draws KernelRidge"):
        draw(KernelRidge().fit(X, X[:, 0]), X, y)
    with pytest.raises(TypeError, match="got PCA; ProjectionDisplay draws PCA"):
        draw(PCA().fit(X), X)
    with pytest.raises(TypeError, match="needs a fitted estimator, got SVC"):
        draw(SVC, X, y)
    with pytest.raises(ValueError, match="X has 4 columns; choose two"):
        draw(machine, X, y)
    with pytest.raises(ValueError, match="unknown feature 4; they go from 0 to 3"):
        draw(machine, X, y, features=(0, 4))
    with pytest.raises(ValueError, match="unknown feature 'z'; columns are 'a', 'b', 'c', 'd'"):
        draw(machine, pd.DataFrame(X, columns=list("abcd")), y, features=("a", "z"))
    with pytest.raises(ValueError, match="two different columns"):
        draw(machine, X, y, features=(1, 1))
    with pytest.raises(ValueError, match="features= or plane=, not both"):
        draw(machine, X, y, features=(0, 1), plane="principal")
    with pytest.raises(ValueError, match="no 'third' directions; take one of random, principal"):
        draw(machine, X, y, plane="third")
    with pytest.raises(ValueError, match="a row of 4 values"):
        draw(machine, X, y, features=(0, 1), held=[1.0, 2.0])
    with pytest.raises(ValueError, match="90 rows, but 3 labels"):
        draw(machine, X, [1, 2, 3], features=(0, 1))
    with pytest.raises(ValueError, match="grid_resolution=1 must be"):
        draw(machine, X, y, features=(0, 1), grid_resolution=1)
    with pytest.raises(ValueError, match="response_method='score' must be 'auto' or one of"):
        draw(machine, X, y, features=(0, 1), response_method="score")
