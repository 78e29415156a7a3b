import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from sklearn.linear_model import LinearRegression

from mercer import PCA, SVC, GaussianMixture, LogisticRegression
from mercer.kernels import Gaussian
from mercer.plots import ConvergenceDisplay
from mercer.solvers import Progress

X, Y = make_moons(100, noise=0.25, random_state=0)


def axes():
    return Figure(layout="constrained").subplots()


def test_the_trace_of_a_solver_is_drawn():
    machine = LogisticRegression(kernel=Gaussian(0.5)).fit(X, Y)
    shown = ConvergenceDisplay.from_estimator(machine, ax=axes())
    trace = machine.solution_.trace
    assert shown.lines_[0].get_xdata().tolist() == [step.seconds for step in trace]
    assert shown.lines_[0].get_ydata().tolist() == [step.measure for step in trace]
    assert shown.ax_.get_yscale() == "log" and shown.ax_.get_xlabel() == "time in s"
    shown.plot(axes(), against="iterations")
    assert shown.lines_[0].get_xdata().tolist() == [step.iteration for step in trace]
    assert "NewtonRisk: solved after" in shown.text


def test_what_a_callback_collected_is_drawn():
    steps = []
    GaussianMixture(2, callback=steps.append).fit(X)
    shown = ConvergenceDisplay.from_trace(steps, goal=1e-6, name="mixture", ax=axes())
    known = [step.measure for step in steps if np.isfinite(step.measure)]
    assert len(shown.seconds) == len(known) and shown.goal_.get_ydata()[0] == 1e-6


def test_the_gap_falls_until_the_fit_is_done():
    machine = SVC(Gaussian(0.5), C=100.0, tol=1e-5)
    shown = ConvergenceDisplay.from_fit(machine, X, Y, against="iterations", ax=axes())
    gap = shown.measures["relative duality gap"]
    whole = SVC(Gaussian(0.5), C=100.0, tol=1e-5).fit(X, Y)
    assert gap[0] > 0.1 and gap[-1] < 1e-5
    assert shown.measures["violation of the optimality conditions"][-1] < 2e-5
    assert whole.certificate_.quantities.relative_gap < 1e-5
    assert (np.diff(shown.iterations) > 0).all() and (np.diff(shown.seconds) > 0).all()
    assert not hasattr(machine, "solution_")  # a copy was fitted


def test_zero_has_no_logarithm():
    steps = [Progress(k, 0.1 * k, m) for k, m in enumerate((1.0, np.inf, 0.1, 0.0))]
    shown = ConvergenceDisplay.from_trace(steps, ax=axes())
    assert np.allclose(shown.lines_[0].get_ydata(), [1.0, 0.1, np.nan], equal_nan=True)


def test_fits_without_a_way_are_refused():
    with pytest.raises(
        ValueError, match=r"Eigh kept 0 intermediate reports.* from_fit, which stops a fit"
    ):
        ConvergenceDisplay.from_estimator(PCA(2).fit(X))
    with pytest.raises(TypeError, match="needs an estimator of Mercer"):
        ConvergenceDisplay.from_estimator(LinearRegression().fit(X, Y))
    with pytest.raises(TypeError, match="PCA cannot be stopped and resumed"):
        ConvergenceDisplay.from_fit(PCA(2), X)
    steps = [Progress(k, 0.1 * k, 1.0) for k in range(3)]
    with pytest.raises(ValueError, match="against='hours'"):
        ConvergenceDisplay.from_trace(steps, against="hours")
