import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn import svm
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, KernelRidge, LogisticRegression, OneClassSVM
from mercer.compat import sklearn as drop_ins
from mercer.kernels import Gaussian
from mercer.plots import MarginDisplay, TubeDisplay
from mercer.selection import Tuned

X, Y = make_moons(80, noise=0.25, random_state=0)
RNG = np.random.default_rng(0)
PLACE = RNG.uniform(0, 6, size=(60, 1))
WAVE = np.sin(PLACE[:, 0]) + 0.2 * RNG.normal(size=60)


def axes():
    return Figure(layout="constrained").subplots()


def margin(*args, **kwargs):
    return MarginDisplay.from_estimator(*args, ax=axes(), **{"grid_resolution": 120, **kwargs})


def test_lines_pass_where_f_has_their_value():
    machine = SVC(Gaussian(0.6), C=5.0).fit(X, Y)
    shown = margin(machine, X, Y)
    assert shown.lines_.levels.tolist() == [-1.0, 0.0, 1.0]
    for level, path in zip(shown.lines_.levels, shown.lines_.get_paths(), strict=True):
        assert np.abs(machine.decision_function(path.vertices) - level).max() < 5e-3


def test_rows_are_drawn_by_zone_and_class():
    machine = SVC(Gaussian(0.6), C=5.0).fit(X, Y)
    shown = margin(machine, X, Y)
    zone = machine.zones(X, Y).zone
    assert np.array_equal(shown.zone, zone)
    for name, drawn in shown.points_.items():
        for label, points in enumerate(drawn):
            assert np.array_equal(points.get_offsets(), X[(zone == name) & (label == Y)])
    assert f"{len(machine.support_)} of 80 rows are support vectors" in shown.text


def test_rows_that_are_not_those_of_the_fit_are_zoned_too():
    machine = SVC(Gaussian(0.6), C=5.0).fit(X[:50], Y[:50])
    for rows, labels in ((X, Y), (X[50:], Y[50:]), (X[::-1], Y[::-1])):
        shown = margin(machine, rows, labels, grid_resolution=10)
        assert np.array_equal(shown.zone, machine.zones(rows, labels).zone)
        own = np.array_equal(rows[: len(X)], X)
        assert ("rows are support vectors" in shown.text) == own


def test_the_border_of_a_detector():
    machine = OneClassSVM(Gaussian(0.8), nu=0.2).fit(X)
    shown = margin(machine, X)
    assert np.array_equal(shown.zone, machine.zones(X).zone)
    assert shown.lines_.levels.tolist() == [0.0]


@pytest.mark.parametrize(
    "machine",
    [
        make_pipeline(StandardScaler(), SVC(Gaussian(1.0))),
        Tuned(SVC(Gaussian(1.0)), {"C": [1.0, 10.0]}, cv=3),
        drop_ins.SVC(gamma=1.0),
        svm.SVC(gamma=1.0),
    ],
    ids=lambda machine: type(machine).__module__,
)
def test_machines_in_other_clothes(machine):
    shown = margin(machine.fit(X, Y), X, Y, grid_resolution=20)
    grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    assert np.allclose(shown.response.ravel(), machine.decision_function(grid))
    assert margin(machine, X, Y, plane="principal", grid_resolution=20).points.shape == (80, 2)


def test_margins_that_are_refused():
    iris, label = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"this SVC has 3; use DecisionRegionDisplay"):
        margin(SVC().fit(iris, label), iris, label, features=(0, 1))
    with pytest.raises(TypeError, match=r"got LogisticRegression; DecisionRegionDisplay draws"):
        margin(LogisticRegression().fit(X, Y), X, Y)
    with pytest.raises(TypeError, match=r"got SVR; TubeDisplay draws SVR"):
        margin(SVR().fit(X, X[:, 0]), X, Y)
    machine = SVC(Gaussian(0.6)).fit(X, Y)
    with pytest.raises(ValueError, match="needs labels, y="):
        margin(machine, X)
    with pytest.raises(ValueError, match=r"labels among \[0, 1\]"):
        margin(machine, X, Y + 1)


def test_the_tube_is_f_and_epsilon():
    machine = SVR(Gaussian(1.0), C=5.0, epsilon=0.2).fit(PLACE, WAVE)
    shown = TubeDisplay.from_estimator(machine, PLACE, WAVE, ax=axes())
    x, f = shown.line_.get_data()
    assert np.allclose(f, machine.predict(x[:, None]))
    edge = shown.tube_.get_paths()[0].vertices
    for value in (-0.2, 0.2):
        wanted = np.column_stack([x, f + value])
        assert all(np.abs(edge - point).sum(axis=1).min() < 1e-9 for point in wanted[::40])
    zone = machine.zones(PLACE, WAVE).zone
    for name, points in shown.points_.items():
        rows = zone == name
        assert np.array_equal(points.get_offsets(), np.column_stack([PLACE[rows, 0], WAVE[rows]]))


def test_one_column_of_several_is_shown_by_the_tube():
    rows = np.column_stack([PLACE[:, 0], RNG.normal(size=60)])
    machine = SVR(Gaussian(2.0), nu=0.4).fit(rows, WAVE)
    shown = TubeDisplay.from_estimator(machine, rows, WAVE, feature=0, ax=axes())
    there = np.column_stack([shown.x, np.full(len(shown.x), np.median(rows[:, 1]))])
    assert np.allclose(shown.prediction, machine.predict(there))
    assert shown.epsilon == machine.epsilon_
    assert "the other column at its median" in shown.text
    with pytest.raises(ValueError, match="X has 2 columns; choose one, such as feature=0"):
        TubeDisplay.from_estimator(machine, rows, WAVE)
    with pytest.raises(TypeError, match="got KernelRidge; RidgePathDisplay draws"):
        TubeDisplay.from_estimator(KernelRidge().fit(rows, WAVE), rows, WAVE)
