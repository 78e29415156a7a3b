"""Copies, pickle, joblib and skops keep working, for people who trust each other (E12)."""

from __future__ import annotations

import copy
import pickle
import warnings

import joblib
import numpy as np
import pytest
import skops.io
from files.fitted import MACHINES, SMALL, Made, fit, rows_for
from files.same import answers, differences
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

DATA = SMALL


@pytest.mark.parametrize("name", MACHINES)
def test_copies_answer_alike(name, tmp_path):
    machine = fit(name, DATA)
    pickled = pickle.loads(pickle.dumps(machine))
    joblib.dump(machine, tmp_path / "model.joblib")
    rows = rows_for(name, DATA)
    expected = answers(pickled, rows)
    assert not differences(expected, answers(copy.deepcopy(machine), rows), name)
    for mode in (None, "r"):
        loaded = joblib.load(tmp_path / "model.joblib", mmap_mode=mode)
        assert alike(expected, answers(loaded, rows))
    if not isinstance(MACHINES[name](DATA), Made):
        assert not differences(clone(machine), clone(pickled), name)


def alike(expected, found):
    """Return whether answers are equal up to rounding: joblib forgets that two arrays are one."""
    for name, values in expected.items():
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            assert np.allclose(values, found[name], rtol=1e-12, atol=1e-12), name
        elif isinstance(values, np.ndarray):
            assert np.array_equal(values, found[name]), name
    return expected.keys() == found.keys()


# skops 0.16 knows no members of enumerations, and no dictionaries whose keys are tuples
NOT_BY_SKOPS = {
    *("SpectralClustering graph", "LabelPropagation", "LabelSpreading", "HarmonicRegressor"),
    *("BayesDecision", "BayesDecision words"),
}


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in NOT_BY_SKOPS])
def test_skops_carries_them(name, tmp_path):
    machine = pickle.loads(pickle.dumps(fit(name, DATA)))
    skops.io.dump(machine, tmp_path / "model.skops")
    unknown = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    loaded = skops.io.load(tmp_path / "model.skops", trusted=unknown)
    rows = rows_for(name, DATA)
    assert not differences(answers(machine, rows), answers(loaded, rows), name)


def test_another_version_of_scikit_learn_warns():
    state = fit("SVC", DATA).__getstate__()
    assert "_sklearn_version" not in state or state["_sklearn_version"]
    pickled = pickle.dumps(fit("Pipeline", DATA))
    import sklearn

    version = sklearn.__version__.encode()
    older = pickled.replace(version, b"0" * len(version))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pickle.loads(older)
    assert any(issubclass(each.category, InconsistentVersionWarning) for each in said)
