"""Progress: our own callback, and scikit-learn's protocol where it is there."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, OneClassSVM, Status
from mercer.kernels import Gaussian

pytest.importorskip("sklearn.callback")

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4))
c = (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(300) > 0).astype(int)


class Recorder:
    """A callback of scikit-learn's kind that counts, and may ask to stop."""

    max_propagation_depth = None

    def __init__(self, stop_after=np.inf):
        self.calls, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.calls.append(f"end {context.task_name}")
        return context.task_name == "progress" and self.count("end progress") >= self.stop_after

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def count(self, name):
        return self.calls.count(name)


@pytest.mark.parametrize(
    "machine", [SVC(Gaussian(1.0)), SVR(Gaussian(1.0)), OneClassSVM(Gaussian(1.0))], ids=repr
)
def test_every_report_is_a_subtask_of_the_fit(machine):
    seen, recorder = [], Recorder()
    machine = clone(machine).set_params(callback=seen.append).set_callbacks(recorder)
    machine.fit(X, c)
    assert recorder.calls[:2] == ["setup", "begin fit"]
    assert recorder.calls[-2:] == ["end fit", "teardown"]
    assert recorder.count("begin progress") == recorder.count("end progress") == len(seen) >= 1
    assert not [name for name in vars(machine) if "ctx" in name]


def test_a_callback_stops_the_fit():
    machine = SVC(Gaussian(1.0)).set_callbacks(Recorder(stop_after=1))
    with pytest.warns(UserWarning, match="the callback asked to stop"):
        machine.fit(X, c)
    assert machine.solution_.status is Status.STOPPED
    assert np.isfinite(machine.decision_function(X)).all()


def test_errors_tear_down_and_change_nothing():
    recorder = Recorder()
    machine = SVC(Gaussian(1.0), C=-1.0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="C="):
        machine.fit(X, c)
    assert not hasattr(machine, "kernel_")

    def fails(progress):
        raise RuntimeError("enough")

    machine.set_params(C=1.0, callback=fails)
    with pytest.raises(RuntimeError, match="enough"):
        machine.fit(X, c)
    assert recorder.calls[-1] == "teardown"
    assert not hasattr(machine, "kernel_")


def test_inside_other_estimators():
    recorder = Recorder()
    chain = make_pipeline(StandardScaler(), SVC(Gaussian(1.0)))
    chain.set_callbacks(recorder).fit(X, c)
    assert recorder.count("begin progress") >= 1
    search = GridSearchCV(SVC(Gaussian(1.0)), {"C": [0.1, 1.0]}, cv=2).set_callbacks(Recorder())
    assert search.fit(X, c).best_params_["C"] in (0.1, 1.0)


def test_our_own_callback_sees_the_violation_fall():
    seen = []
    SVC(Gaussian(0.3), C=1e4, tol=1e-6, callback=seen.append).fit(X, c)
    assert [p.iteration for p in seen] == sorted(p.iteration for p in seen)
    assert all(p.seconds >= 0 for p in seen)
    with pytest.warns(UserWarning, match="callback asked to stop"):
        stopped = SVC(Gaussian(0.3), callback=lambda progress: True).fit(X, c)
    assert stopped.solution_.status is Status.STOPPED
