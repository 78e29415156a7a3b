import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.plots import ResidualsDisplay, RidgePathDisplay

X, Y = (part[:120] for part in load_diabetes(return_X_y=True))


def axes():
    return Figure(layout="constrained").subplots()


def test_coefficients_are_those_of_a_fit_at_each_penalty():
    machine = KernelRidge(0.1).fit(X, Y)
    penalties = np.geomspace(1e-3, 10, 7)
    shown = RidgePathDisplay.from_estimator(machine, X, Y, penalties=penalties, ax=axes())
    for place, penalty in enumerate(penalties):
        alone = KernelRidge(penalty).fit(X, Y).coef_
        drawn = [line.get_ydata()[place] for line in shown.lines_]
        assert np.abs(drawn - alone).max() < 1e-8 * np.abs(alone).max()
    assert shown.mark_.get_xdata()[0] == 0.1
    assert np.allclose(shown.lines_[0].get_xdata(), penalties)


def test_names_of_columns_and_pipelines():
    table = pd.DataFrame(X, columns=[f"c{k}" for k in range(10)])
    machine = make_pipeline(StandardScaler(), KernelRidge("loo")).fit(table, Y)
    shown = RidgePathDisplay.from_estimator(machine, table, Y, ax=axes())
    assert shown.names == tuple(table.columns)
    low, high = shown.penalties[[0, -1]]
    tried = machine[-1].penalties_
    assert np.allclose([low, high], [tried.min(), tried.max()])
    scaled = StandardScaler().fit_transform(table)
    alone = KernelRidge(shown.penalties[30]).fit(scaled, Y).coef_
    assert np.abs(shown.values[30] - alone).max() < 1e-8 * np.abs(alone).max()


def test_coefficients_where_columns_are_more_than_rows():
    rows = np.random.default_rng(0).normal(size=(20, 30))
    shown = RidgePathDisplay.from_estimator(
        KernelRidge(1.0).fit(rows, Y[:20]), rows, Y[:20], penalties=[0.1, 1.0], ax=axes()
    )
    centred, target = rows - rows.mean(axis=0), Y[:20] - Y[:20].mean()
    for place, penalty in enumerate((0.1, 1.0)):
        expected = np.linalg.solve(centred.T @ centred + penalty * np.eye(30), centred.T @ target)
        assert np.allclose(shown.values[place], expected, rtol=1e-8)
    assert len(shown.lines_) == 30 and len(shown.ax_.get_legend().get_texts()) == 11


def test_errors_are_the_exact_leave_one_out_ones():
    penalties = np.array([10.0, 0.1, 1.0])
    machine = KernelRidge("loo", kernel=Gaussian(0.2), penalties=penalties).fit(X[:40], Y[:40])
    shown = RidgePathDisplay.from_estimator(machine, ax=axes())
    assert shown.penalties.tolist() == [0.1, 1.0, 10.0]
    for penalty, error in zip(*shown.lines_[0].get_data(), strict=True):
        left_out = [
            Y[i]
            - KernelRidge(penalty, kernel=Gaussian(0.2))
            .fit(np.delete(X[:40], i, 0), np.delete(Y[:40], i))
            .predict(X[i : i + 1])[0]
            for i in range(40)
        ]
        assert np.isclose(error, np.mean(np.square(left_out)), rtol=1e-8)


def test_paths_that_are_refused():
    with pytest.raises(TypeError, match="needs a KernelRidge, got SVC; MarginDisplay draws"):
        RidgePathDisplay.from_estimator(SVC().fit(X, Y > 150))
    machine = KernelRidge(0.1).fit(X, Y)
    with pytest.raises(ValueError, match="require a fit with penalty='loo'"):
        RidgePathDisplay.from_estimator(machine)
    with pytest.raises(ValueError, match="needs the rows of the fit"):
        RidgePathDisplay.from_estimator(machine, kind="coefficients")
    with pytest.raises(ValueError, match="penalties must be positive"):
        RidgePathDisplay.from_estimator(machine, X, Y, penalties=[0.0, 1.0])
    with pytest.raises(ValueError, match="kind='both' must be"):
        RidgePathDisplay.from_estimator(machine, X, Y, kind="both")
    curved = KernelRidge(0.1, kernel=Gaussian(0.2)).fit(X, Y)
    with pytest.raises(ValueError, match=r"this is Gaussian\(scale=0.2\); use kind='error'"):
        RidgePathDisplay.from_estimator(curved, X, Y, kind="coefficients")
    two = KernelRidge(0.1).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="several targets; fit it to one"):
        RidgePathDisplay.from_estimator(two, X, Y)


def test_residuals_are_observed_less_predicted():
    machine = KernelRidge(0.1).fit(X, Y)
    shown = ResidualsDisplay.from_estimator(machine, X, Y, ax=axes())
    f = machine.predict(X)
    assert np.allclose(shown.points_.get_offsets(), np.column_stack([f, Y - f]))
    assert f"{root_mean_squared_error(Y, f):.4g}" in shown.text
    assert f"R² {r2_score(Y, f):.3f}" in shown.text
    shown.plot(axes(), kind="observed")
    assert np.allclose(shown.points_.get_offsets(), np.column_stack([f, Y]))


def test_residuals_that_are_refused():
    with pytest.raises(TypeError, match="needs a regression, got SVC"):
        ResidualsDisplay.from_estimator(SVC().fit(X, Y > 150), X, Y)
    with pytest.raises(ValueError, match=r"shape \(3,\) and y_pred of shape \(2,\)"):
        ResidualsDisplay.from_predictions([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="kind='other'"):
        ResidualsDisplay.from_predictions([1.0, 2], [1.0, 2], kind="other")
