"""Tuning on a cluster: the scores of a search on one machine, one task for each shared matrix."""

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

pytest.importorskip("distributed", reason="Dask is not installed")

from mercer import SVC, KernelRidge, tune
from mercer.kernels import Gaussian

X = np.random.default_rng(0).standard_normal((80, 2))
Y = (X**2).sum(axis=1)
GRID = {"kernel__scale": [0.3, 1.0, 3.0]}


@pytest.mark.parametrize(
    ("machine", "y", "grid"),
    [
        (SVC(Gaussian(1.0)), Y > 1.5, {"C": [0.1, 1.0, 10.0], **GRID}),
        (KernelRidge(1.0, Gaussian(1.0)), Y, {"penalty": [0.01, 1.0], **GRID}),
    ],
)
def test_scores_are_those_of_one_machine(client, machine, y, grid):
    here = tune(machine, X, y, grid=grid)
    there = tune(machine, X, y, grid=grid, client=client)
    assert there.best_params == here.best_params
    assert np.allclose(there.scores, here.scores, atol=1e-9)
    assert there.work == here.work


def test_a_point_that_cannot_be_fitted_and_a_limit(client):
    with pytest.warns(FitFailedWarning, match="5 of 10 fits"):
        found = tune(SVC(Gaussian(1.0)), X, Y > 1.5, grid={"C": [-1.0, 1.0]}, client=client)
    assert found.best_params == {"C": 1.0}
    with pytest.raises(TypeError, match=r"must be a distributed\.Client"):
        tune(SVC(), X, Y > 1.5, client="tcp://127.0.0.1:8786")


def test_a_journal_is_taken_up(client, tmp_path):
    options = {"grid": {"C": [0.1, 1.0], **GRID}, "journal": tmp_path / "journal"}
    first = tune(SVC(Gaussian(1.0)), X, Y > 1.5, client=client, **options)
    again = tune(SVC(Gaussian(1.0)), X, Y > 1.5, **options)
    assert np.array_equal(first.scores, again.scores)
