import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from mercer import SVC
from mercer.kernels import Gaussian, Laplacian
from mercer.plots import TuningDisplay
from mercer.selection import Tuned, tune

X, Y = make_moons(80, noise=0.25, random_state=0)
GRID = {"C": [10.0, 0.1, 1.0], "kernel__scale": [0.3, 1.0]}
MACHINE = SVC(Gaussian(1.0))


def axes():
    return Figure(layout="constrained").subplots()


def test_cells_are_the_scores_of_their_settings():
    found = tune(MACHINE, X, Y, grid=GRID, cv=3)
    shown = TuningDisplay.from_tuning(found, params=("kernel__scale", "C"), ax=axes())
    cells = np.asarray(shown.image_.get_array()).reshape(3, 2)
    for point, mean in zip(found.points, found.mean, strict=True):
        place = (
            sorted(GRID["C"]).index(point["C"]),
            GRID["kernel__scale"].index(point["kernel__scale"]),
        )
        assert cells[place] == mean
    assert [t.get_text() for t in shown.ax_.get_yticklabels()] == ["0.1", "1", "10"]
    best = shown.best_.get_data()
    chosen = found.best_params
    assert shown.values[0][int(best[0][0])] == chosen["kernel__scale"]
    assert shown.values[1][int(best[1][0])] == chosen["C"]
    assert shown.ax_.get_xlabel() == "kernel__scale"


def test_settings_within_a_standard_error_are_marked():
    found = tune(MACHINE, X, Y, grid=GRID, cv=3)
    shown = TuningDisplay.from_tuning(found, ax=axes())
    least = found.best_score - found.standard_error[found.best]
    assert len(shown.near_.get_xdata()) == np.count_nonzero(found.mean >= least)


def test_a_fitted_search_of_either_library():
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    ours = TuningDisplay.from_estimator(Tuned(MACHINE, GRID, cv=folds).fit(X, Y), ax=axes())
    search = GridSearchCV(MACHINE, GRID, cv=folds).fit(X, Y)
    theirs = TuningDisplay.from_estimator(search, ax=axes())
    assert np.allclose(ours.scores, theirs.scores, atol=0.02)
    assert np.nanmax(theirs.scores) == search.best_score_
    assert theirs.text.startswith("SVC(")


def test_of_further_parameters_the_best_is_shown():
    grid = {"kernel": [Gaussian(0.3), Laplacian(1.0)], "C": [0.1, 1.0], "slack": ["l1", "l2"]}
    found = tune(SVC(), X, Y, grid=grid, cv=3)
    with pytest.raises(ValueError, match="C, kernel, slack were varied; choose two of them"):
        TuningDisplay.from_tuning(found)
    shown = TuningDisplay.from_tuning(found, params=("C", "slack"), ax=axes())
    assert "the best of kernel" in shown.text
    for i, slack in enumerate(shown.values[1]):
        for j, cost in enumerate(shown.values[0]):
            same = [
                mean
                for point, mean in zip(found.points, found.mean, strict=True)
                if (point["C"], point["slack"]) == (cost, slack)
            ]
            assert shown.scores[i, j] == max(same) or (i, j) == shown.best
    names = TuningDisplay.from_tuning(found, params=("C", "kernel"), ax=axes())
    assert names.ax_.get_yticklabels()[0].get_text() == "Gaussian(scal..."


def test_one_parameter_is_a_curve():
    found = tune(MACHINE, X, Y, grid={"C": [10.0, 0.1, 1.0]}, cv=3)
    shown = TuningDisplay.from_tuning(found, ax=axes())
    x, y = shown.image_.lines[0].get_data()
    order = np.argsort([point["C"] for point in found.points])
    assert x.tolist() == [0.1, 1.0, 10.0] and np.allclose(y, found.mean[order])
    assert shown.ax_.get_xscale() == "log"
    words = tune(MACHINE, X, Y, grid={"slack": ["l1", "l2"]}, cv=3)
    ticks = TuningDisplay.from_tuning(words, ax=axes()).ax_.get_xticklabels()
    assert [text.get_text() for text in ticks] == ["l1", "l2"]


def test_cells_that_were_not_judged_are_empty():
    grid = [{"C": [0.1, 1.0], "kernel__scale": [1.0]}, {"C": [1.0], "kernel__scale": [0.3, 3.0]}]
    found = tune(MACHINE, X, Y, grid=grid, cv=3)
    shown = TuningDisplay.from_tuning(found, params=("kernel__scale", "C"), ax=axes())
    assert np.isnan(shown.scores).tolist() == [[True, False, True], [False, False, False]]
    assert shown.image_.get_array().mask.sum() == 2


def test_tunings_that_are_refused():
    found = tune(MACHINE, X, Y, grid=GRID, cv=3)
    with pytest.raises(ValueError, match="must be one or two of C, kernel__scale"):
        TuningDisplay.from_tuning(found, params=("C", "gamma"))
    with pytest.raises(TypeError, match="from_estimator takes a fitted Tuned"):
        TuningDisplay.from_tuning(MACHINE)
    with pytest.raises(TypeError, match="a fitted Tuned or GridSearchCV, got SVC"):
        TuningDisplay.from_estimator(MACHINE.fit(X, Y))
