"""Best points on the edge of a grid are told of; grids of our own grow until the best is inside."""

import numpy as np
import pytest

from mercer import SVC, GaussianClassifier, KernelRidge
from mercer.kernels import Gaussian, Linear
from mercer.selection import Grid, Race, tune
from mercer.selection.grids import MOST_STEPS, edges_of, grow, widened

RNG = np.random.default_rng(0)


def judged(grid, score):
    """Return the functions that `grow` asks for, over a table of scores."""
    table = {repr(point): (score(point), point) for point in grid.points()}

    def judge(more):
        table.update({repr(point): (score(point), point) for point in more.points()})

    return table, lambda: max(table.values(), key=lambda item: item[0])[1], judge


def test_a_grid_grows_to_the_best_point():
    grid = Grid.of({"C": [0.1, 1.0, 10.0], "penalty": [1.0, 2.0, 4.0]})
    table, best, judge = judged(
        grid, lambda p: -abs(np.log10(p["C"] / 1e3)) - abs(p["penalty"] - 2)
    )
    notes = grow(grid, best, judge)
    assert best()["C"] == pytest.approx(1e3)
    assert "extended along C" in notes[0]
    assert len(notes) == 1
    assert max(point["C"] for _, point in table.values()) == pytest.approx(1e4)


def test_growth_has_a_limit_and_says_so():
    grid = Grid.of({"C": [0.1, 1.0, 10.0]})
    table, best, judge = judged(grid, lambda p: p["C"])
    notes = grow(grid, best, judge)
    assert len(table) == 3 + MOST_STEPS
    assert "largest in the grid" in notes[-1]
    assert f"after {MOST_STEPS} extensions" in notes[-1]


def test_grids_of_the_user_stay_and_are_told_of():
    X = RNG.normal(size=(60, 2))
    found = tune(
        KernelRidge(kernel=Gaussian(1.0)), X, X[:, 0], grid={"penalty": [1.0, 10.0, 100.0]}
    )
    assert len(found.points) == 3
    assert "best penalty is the smallest in the grid, 1.0" in found.notes[0]


def test_scales_of_kernels_grow_too():
    kernels = tuple(Gaussian(s) + Linear() for s in (1.0, 2.0, 4.0))
    grid = Grid.of({"kernel": kernels})
    point = {"kernel": kernels[0]}
    assert edges_of(grid, point) == [("kernel", -1)]
    longer, new = widened(grid, point, "kernel", -1)
    assert new.points() == [{"kernel": Gaussian(0.5) + Linear()}]
    assert len(longer) == 4


@pytest.mark.parametrize(
    "axis",
    [
        {"C": [1.0, 10.0]},  # two values have nothing but edges
        {"C": [1.0, 10.0, 50.0]},
        {"nu": [0.1, 0.2, 0.4]},  # bounded
        {"n_neighbors": [1, 2, 4]},
        {"class_weight": [None, "balanced"]},
        {"kernel": [Gaussian(1.0), Linear(), Gaussian(4.0)]},
    ],
)
def test_other_axes_have_no_edge(axis):
    grid = Grid.of(axis)
    assert edges_of(grid, grid.points()[0]) == []


def test_default_grids_grow_in_a_tuning():
    X = RNG.normal(size=(150, 1))
    y = (np.sin(40 * X[:, 0]) > 0).astype(int)  # far finer than the distance of typical rows
    found = tune(SVC("gaussian"), X, y, cv=3)
    assert any("extended" in note for note in found.notes)
    assert len(found.points) > 30


def test_races_keep_to_their_grid():
    X = RNG.normal(size=(60, 2))
    found = tune(SVC("gaussian"), X, (X[:, 0] > 0).astype(int), cv=4, search=Race())
    assert not any("extended" in note for note in found.notes)


def test_values_that_are_arrays_are_compared_by_identity():
    grid = Grid.of({"C": [np.ones(3), np.zeros(3)], "penalty": [1.0, 2.0, 4.0]})
    assert edges_of(grid, grid.points()[-1]) == [("penalty", 1)]
    X = RNG.normal(size=(60, 2))
    priors = {"prior": [np.array([0.5, 0.5]), np.array([0.3, 0.7])]}
    found = tune(GaussianClassifier(), X, (X[:, 0] > 0).astype(int), grid=priors, cv=3)
    assert len(found.points) == 2
