import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import FastICA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import CCA, PCA, SVC, FisherDiscriminant
from mercer.kernels import Gaussian
from mercer.plots import CanonicalPairsDisplay, ProjectionDisplay, ProjectionHistogramDisplay
from mercer.plots.planes import directions_of, non_gaussianity

X, Y = load_iris(return_X_y=True)


def axes():
    return Figure(layout="constrained").subplots()


def points(shown):
    return [drawn.get_offsets().data for drawn in shown.points_]


@pytest.mark.parametrize(
    "machine",
    [
        PCA(3),
        PCA(3, kernel=Gaussian(1.0)),
        FisherDiscriminant(),
        make_pipeline(StandardScaler(), PCA(3)),
        FastICA(3, random_state=0),
    ],
    ids=["linear", "kernel", "fisher", "pipeline", "ica"],
)
def test_points_are_what_transform_gives(machine):
    Z = machine.fit(X, Y).transform(X)
    shown = ProjectionDisplay.from_estimator(machine, X, Y, components=(1, 0), ax=axes())
    for label, drawn in enumerate(points(shown)):
        assert np.allclose(drawn, Z[label == Y][:, [1, 0]])
    one = ProjectionHistogramDisplay.from_estimator(machine, X, Y, component=1, bins=9, ax=axes())
    for label in range(3):
        assert np.array_equal(one.counts_[label], np.histogram(Z[label == Y, 1], one.edges_)[0])
        values, edges, _ = one.patches_[label].get_data()
        assert np.array_equal(values, one.counts_[label]) and np.array_equal(edges, one.edges_)


def test_axes_say_what_they_are():
    shown = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, ax=axes())
    assert shown.xlabel == "principal component 1 (92 % of the variance)"
    assert len(shown.points_) == 1
    fisher = FisherDiscriminant().fit(X, Y)
    assert ProjectionDisplay.from_estimator(fisher, X, ax=axes()).ylabel == (
        "discriminant direction 2"
    )


def test_a_target_is_shown_by_shades():
    shown = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, X[:, 0] + 1e-3 * np.arange(150),
                                             ax=axes())  # fmt: skip
    assert np.allclose(shown.points_[0].get_array(), X[:, 0] + 1e-3 * np.arange(150))
    assert len(shown.figure_.axes) == 2  # the scale of the colours


def test_directions_of_each_kind():
    rows = X - X.mean(axis=0)
    principal = directions_of("", X, None, "principal", 4)
    assert np.allclose(principal.scores.T @ principal.scores, np.diag(
        np.linalg.svd(rows, compute_uv=False) ** 2), atol=1e-8)  # fmt: skip
    random = directions_of("", X, None, "random", 2, random_state=3)
    assert np.allclose(random.weights.T @ random.weights, np.eye(2))
    assert np.allclose(random.scores, rows @ random.weights)
    fisher = directions_of("", X, Y, "discriminant", 2)
    Z = FisherDiscriminant().fit(X, Y).transform(X)
    assert np.allclose(fisher.scores, Z - Z.mean(axis=0), atol=1e-6)
    own = directions_of("", X, None, np.eye(4)[[2, 0]], 2)
    assert np.allclose(own.scores, rows[:, [2, 0]])


def test_pursuit_finds_the_direction_that_is_not_gaussian():
    rng = np.random.default_rng(0)
    coin = rng.choice([-1.0, 1.0], 400)
    hidden = np.column_stack([coin + 0.1 * rng.normal(size=400), rng.normal(size=(400, 4))])
    mixing = rng.normal(size=(5, 5))
    found = directions_of("", hidden @ mixing, None, "non_gaussian", 2)
    assert abs(np.corrcoef(found.scores[:, 0], coin)[0, 1]) > 0.98
    gain = non_gaussianity(found.scores)
    assert gain[0] > 10 * gain[1]
    assert np.allclose(found.scores.std(axis=0, ddof=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("directions", ["random", "principal", "discriminant", "non_gaussian"])
def test_rows_along_directions_are_drawn(directions):
    shown = ProjectionDisplay.from_directions(X, Y, directions=directions, ax=axes())
    found = directions_of("", X, Y, directions, 2)
    assert np.allclose(np.concatenate(points(shown)), found.scores)  # iris is sorted by class
    one = ProjectionHistogramDisplay.from_directions(
        sparse.csr_array(X), Y, directions=directions, ax=axes()
    )
    assert np.allclose(one.scores, found.scores[:, 0]) and one.counts_.sum() == 150


def test_the_gaussian_beside_a_histogram_has_as_many_rows():
    shown = ProjectionHistogramDisplay.from_directions(
        np.random.default_rng(0).normal(size=(5000, 2)), ax=axes()
    )
    x, y = shown.line_.get_data()
    rows = y.sum() * (x[1] - x[0]) / np.diff(shown.edges_)[0]
    assert abs(rows - 5000) < 50
    middle = (shown.edges_[1:] + shown.edges_[:-1]) / 2
    assert np.abs(np.interp(middle, x, y) - shown.counts_[0]).max() < 80


def test_pairs_of_canonical_variates():
    machine = CCA(2).fit(X[:, :2], X[:, 2:])
    shown = CanonicalPairsDisplay.from_estimator(
        machine, X[:, :2], X[:, 2:], pair=1, labels=Y, ax=axes()
    )
    expected = np.column_stack(
        [machine.transform(X[:, :2])[:, 1], machine.transform_y(X[:, 2:])[:, 1]]
    )
    assert np.allclose(np.concatenate(points(shown)), expected)
    assert np.isclose(shown.correlation, machine.correlations(X[:, :2], X[:, 2:])[1])
    with pytest.raises(ValueError, match="pair=2 is not among 0 to 1"):
        CanonicalPairsDisplay.from_estimator(machine, X[:, :2], X[:, 2:], pair=2)
    with pytest.raises(TypeError, match="needs a CCA, got PCA; ProjectionDisplay draws PCA"):
        CanonicalPairsDisplay.from_estimator(PCA(2).fit(X), X, X)


def test_projections_that_are_refused():
    with pytest.raises(
        TypeError, match="an estimator with transform, got SVC; MarginDisplay draws"
    ):
        ProjectionDisplay.from_estimator(SVC().fit(X, Y), X)
    with pytest.raises(ValueError, match="component=5 is not among 0 to 2"):
        ProjectionDisplay.from_estimator(PCA(3).fit(X), X, components=(0, 5))
    with pytest.raises(ValueError, match="has one component; ProjectionHistogramDisplay"):
        ProjectionDisplay.from_estimator(PCA(1).fit(X), X)
    with pytest.raises(ValueError, match="components must be two indices"):
        ProjectionDisplay.from_directions(X, components=(0, 1, 2))
    with pytest.raises(ValueError, match="component must be an integer"):
        ProjectionHistogramDisplay.from_directions(X, component=-1)
    with pytest.raises(ValueError, match="need labels"):
        ProjectionDisplay.from_directions(X, directions="discriminant")
    with pytest.raises(ValueError, match=r"2 directions are asked for, but there is 1 .*draws one"):
        ProjectionDisplay.from_directions(X, Y > 0, directions="discriminant")
    with pytest.raises(ValueError, match="there are no 'other' directions"):
        ProjectionDisplay.from_directions(X, directions="other")
    with pytest.raises(TypeError, match="which must be numbers"):
        ProjectionDisplay.from_directions([["a", "b"]] * 3)
    with pytest.raises(ValueError, match="fill its missing values first"):
        ProjectionDisplay.from_directions(np.array([[1.0, np.nan]] * 4))
    with pytest.raises(ValueError, match="all rows are equal"):
        ProjectionDisplay.from_directions(np.ones((5, 3)), directions="non_gaussian")
    with pytest.raises(ValueError, match="150 rows, but 3 labels"):
        ProjectionDisplay.from_directions(X, [1, 2, 3])
    with pytest.raises(ValueError, match="different values; histograms are drawn of classes"):
        ProjectionHistogramDisplay.from_directions(X, np.arange(150))
