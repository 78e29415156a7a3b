import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mercer
from mercer import PCA, SVC, BayesDecision, GaussianClassifier, KernelRidge, plots
from mercer.compat import sklearn as drop_ins
from mercer.kernels import Gaussian
from mercer.plots import base
from mercer.selection import Tuned

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), np.arange(30) % 2


def axes():
    return Figure(layout="constrained").subplots()


def test_the_display_that_suits_exists_for_machines_that_exist():
    known = {*dir(mercer), *dir(drop_ins), "GridSearchCV"}
    assert set(base._SUITS) <= known
    assert set(base._SUITS.values()) <= set(plots.__all__)


@pytest.mark.parametrize(
    ("machine", "display"),
    [
        (GaussianClassifier(), "DecisionRegionDisplay"),
        (LinearSVC(), "DecisionRegionDisplay"),
        (StandardScaler(), "ProjectionDisplay"),
    ],
)
def test_a_wrong_machine_hears_which_display_suits(machine, display):
    name = type(machine).__name__
    with pytest.raises(TypeError, match=f"got {name}; {display} draws {name}"):
        plots.TubeDisplay.from_estimator(machine.fit(X, Y), X, Y)


def test_machines_are_described_by_what_was_chosen():
    assert base.described(SVC("linear", C=2.0, time_limit=9.0)) == "SVC(kernel='linear', C=2)"
    machine = SVC("gaussian", C=np.ones(30)).fit(X, Y)
    scale = machine.kernel_.scale
    assert base.described(machine) == f"SVC(kernel=Gaussian(scale={scale:.4g}), C=30 values)"
    inside = make_pipeline(StandardScaler(), KernelRidge("loo"))
    assert base.described(inside) == "StandardScaler(), KernelRidge(penalty='loo')"
    tuned = Tuned(SVC(Gaussian(1.0)), {"C": [3.0]}, cv=2).fit(X, Y)
    assert base.described(tuned) == "SVC(kernel=Gaussian(scale=1.0), C=3)"
    assert base.described(tuned.machine) == "SVC(kernel=Gaussian(scale=1.0))"
    assert base.described(Tuned(PCA(2))) == "Tuned(machine=PCA(n_components=2))"
    assert base.described(object()) == "object"
    assert base.described(BayesDecision()) == "BayesDecision()"


def test_rows_and_machines_inside_others():
    scaler, machine = StandardScaler(), SVC(Gaussian(1.0))
    outer = Tuned(make_pipeline(scaler, machine), {"svc__C": [1.0]}, cv=2).fit(X, Y)
    assert base.inner_machine(outer) is outer.best_estimator_[-1]
    assert np.allclose(base.inner_rows(outer, X), StandardScaler().fit_transform(X))


def test_names_are_drawn_as_they_are():
    """Between two dollars Matplotlib would read a formula, and stumble over this one."""
    hostile = [r"$\frac$", "<b>$$"]
    table = pd.DataFrame(X, columns=hostile)
    labels = np.array(hostile)[Y]
    machine = SVC(Gaussian(1.0)).fit(table, labels)
    shown = [
        plots.DecisionRegionDisplay.from_estimator(machine, table, labels, ax=axes()),
        plots.MarginDisplay.from_estimator(machine, table, labels, ax=axes()),
        plots.ProjectionDisplay.from_directions(X, labels, ax=axes()),
        plots.ProjectionHistogramDisplay.from_directions(X, labels, ax=axes()),
        plots.KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, labels, ax=axes()),
        plots.ConfusionMatrixDisplay.from_estimator(machine, table, labels, ax=axes()),
        plots.RidgePathDisplay.from_estimator(
            KernelRidge(1.0).fit(table, Y), table, Y, penalties=[0.1, 1.0], ax=axes()
        ),
    ]
    for display in shown:
        display.figure_.canvas.draw()
    assert shown[0].ax_.get_xlabel() == r"\$\frac\$"  # escaped, so drawn as it is
