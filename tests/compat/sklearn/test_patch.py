"""patch() swaps classes in unchanged programs, and unpatch() leaves no trace."""

import importlib
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer.compat.sklearn as ours
from mercer.compat.sklearn.patch import MODULES

X, y = load_iris(return_X_y=True)
CLASSES = [name for name in ours.__all__ if name not in ("patch", "unpatch")]


@pytest.fixture
def patched():
    ours.patch(verbose=False)
    yield
    ours.unpatch()


def held():
    return {n: getattr(importlib.import_module(home), n) for n, home in MODULES.items()}


def test_every_class_has_its_place():
    assert set(MODULES) == set(CLASSES), (
        "list each drop-in in MODULES of src/mercer/compat/sklearn/patch.py, and in __all__"
    )


def test_all_are_swapped_and_all_come_back():
    before = held()
    ours.patch(verbose=False)
    ours.patch(verbose=False)  # twice is once
    assert held() == {name: getattr(ours, name) for name in MODULES}
    ours.unpatch()
    assert held() == before
    ours.unpatch()
    assert held() == before
    assert all(kind.__module__.startswith("sklearn") for kind in before.values())


def test_some_are_swapped(capsys):
    theirs = sklearn.svm.SVR
    ours.patch("SVC")
    assert sklearn.svm.SVC is ours.SVC
    assert sklearn.svm.SVR is theirs
    ours.patch(["SVC", "SVR"])
    ours.unpatch("SVC")
    assert sklearn.svm.SVC is not ours.SVC
    assert sklearn.svm.SVR is ours.SVR
    ours.unpatch()
    assert sklearn.svm.SVR is theirs
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "mercer: sklearn.svm.SVC runs on mercer.compat.sklearn.SVC",
        "mercer: sklearn.svm.SVR runs on mercer.compat.sklearn.SVR",
    ]
    with pytest.raises(ValueError, match="names has 'Lasso', must be among BernoulliNB, CCA"):
        ours.patch("Lasso")


def test_what_scikit_learn_imported_meanwhile_comes_back(patched):
    module = importlib.import_module("sklearn.svm")
    module.Copied = module.SVC  # as a module of scikit-learn that is imported now would do
    try:
        ours.unpatch()
        assert module.Copied is module.SVC is not ours.SVC
    finally:
        del module.Copied


def test_scikit_learn_takes_them_for_its_own(patched):
    assert is_classifier(sklearn.svm.SVC())
    assert is_regressor(sklearn.svm.SVR())
    assert is_clusterer(importlib.import_module("sklearn.cluster").SpectralClustering())
    machine = sklearn.svm.SVC(C=3.0).fit(X, y)
    assert isinstance(machine, sklearn.svm.SVC)
    assert clone(machine).get_params() == machine.get_params()
    twin = pickle.loads(pickle.dumps(machine))
    assert type(twin) is ours.SVC
    np.testing.assert_array_equal(twin.predict(X), machine.predict(X))


def test_pickles_of_scikit_learn_stay_its_own(patched):
    theirs = importlib.import_module("sklearn.svm._classes").SVC().fit(X, y)
    twin = pickle.loads(pickle.dumps(theirs))
    assert type(twin).__module__ == "sklearn.svm._classes"


@pytest.mark.parametrize("jobs", [None, 2])
def test_searches_and_processes(patched, jobs):
    chain = make_pipeline(StandardScaler(), sklearn.svm.SVC())
    with joblib.parallel_config("loky"):
        search = GridSearchCV(chain, {"svc__C": [0.1, 1.0]}, cv=3, n_jobs=jobs).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_estimator_[-1].certificate_.ok


SCRIPT = """
import sys
from sklearn.datasets import load_iris
from sklearn.svm import SVC
print(SVC.__module__.split(".")[0], sys.argv[1:], __name__, __file__ == sys.argv[0])
print(SVC().fit(*load_iris(return_X_y=True)).certificate_.ok)
import beside
"""


@pytest.mark.slow
def test_programs_run_unchanged(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("print('found')")
    command = [sys.executable, "-m", "mercer.compat.sklearn"]
    done = subprocess.run(
        [*command, str(script), "--quiet", "3"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "mercer ['--quiet', '3'] __main__ True",
        "True",
        "found",
    ]
    assert len(done.stderr.splitlines()) == len(MODULES)
    quiet = subprocess.run(
        [*command, "--quiet", "-m", "program"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert quiet.stdout.splitlines()[0] == "mercer [] __main__ True"
    assert quiet.stderr == ""
    wrong = subprocess.run(command, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert "usage: python -m mercer.compat.sklearn" in wrong.stderr
