"""Models of earlier releases are read, and predict as they did (E5)."""

from __future__ import annotations

import numpy as np
import pytest
from files.fitted import Data, rows_for
from files.golden import FOLDER, NAMES, WITH_TORCH, path_of, told

import mercer

DATA = Data(12, 3, 3)


@pytest.mark.parametrize("name", NAMES)
def test_golden_files_predict_as_ever(name):
    machine = mercer.load(path_of(name, "mercer"))
    found = told(machine, rows_for(name, DATA))
    with np.load(path_of(name, "npz"), allow_pickle=False) as expected:
        assert set(expected) == set(found)
        for question in expected:
            if expected[question].dtype.kind == "f":
                assert np.allclose(found[question], expected[question], rtol=1e-12, atol=1e-12)
            else:
                assert np.array_equal(found[question], expected[question])


def test_golden_files_are_all_looked_at():
    held = {path.name for path in FOLDER.iterdir()}
    names = (*NAMES, *WITH_TORCH)  # the latter in tests/machines/neural
    assert held == {path_of(name, ending).name for name in names for ending in ("mercer", "npz")}
