"""Machines say how they share: drop-ins, machines of one's own, and those that say nothing."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import solve
from mercer.compat import sklearn as drop_in
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Precomputed
from mercer.problems import BoxQP, MarginPath, PathSetting
from mercer.selection import Fold, FoldPath, KnownRegressor, Sharing, tune
from mercer.solvers import SMO

X, Y = make_classification(150, 6, n_informative=4, flip_y=0.1, random_state=3)
T = X[:, 0] * X[:, 1] + 0.3 * np.random.default_rng(0).standard_normal(150)
CV = StratifiedKFold(3, shuffle=True, random_state=0)
FOLDS = list(CV.split(X, Y))


def refitted(machine, X, y, grid, scoring=None, cv=FOLDS):
    search = GridSearchCV(machine, grid, cv=cv, scoring=scoring, refit=False).fit(X, y)
    return np.stack([search.cv_results_[f"split{k}_test_score"] for k in range(len(cv))], axis=1)


def shared(machine, X, y, grid, scoring=None, cv=FOLDS):
    points = [{name: [one] for name, one in point.items()} for point in ParameterGrid(grid)]
    found = tune(machine, X, y, grid=points, scoring=scoring, cv=cv)
    assert set(found.work) == {"Margins"}, found.work
    return found.scores


TIGHT = {"tol": 1e-7}
DROP_INS = {
    "SVC": (drop_in.SVC(gamma=0.2, **TIGHT), {"C": [0.1, 10.0], "gamma": [0.1, "auto"]}, Y),
    "SVC scale": (drop_in.SVC(**TIGHT), {"C": [0.1, 1.0, 10.0]}, Y),
    "SVC poly": (drop_in.SVC(kernel="poly", coef0=1.0, **TIGHT), {"C": [0.1, 1.0]}, Y),
    "NuSVC": (drop_in.NuSVC(gamma=0.2, **TIGHT), {"nu": [0.3, 0.6], "class_weight": [None]}, Y),
    "SVR": (drop_in.SVR(gamma=0.2, **TIGHT), {"C": [0.1, 10.0], "epsilon": [0.0, 0.2]}, T),
    "NuSVR": (drop_in.NuSVR(gamma=0.2, **TIGHT), {"C": [0.3, 10.0], "nu": [0.23, 0.71]}, T),
    "OneClassSVM": (drop_in.OneClassSVM(gamma=0.2, **TIGHT), {"nu": [0.11, 0.4]}, 2 * Y - 1),
}


@pytest.mark.parametrize("name", DROP_INS)
def test_drop_ins_share_and_score_as_fits_do(name):
    machine, grid, y = DROP_INS[name]
    scoring = {"SVR": None, "NuSVR": None}.get(name, "roc_auc")
    found = shared(machine, X, y, grid, scoring)
    np.testing.assert_allclose(found, refitted(machine, X, y, grid, scoring), atol=1e-5)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_drop_ins_vote_among_many_classes_as_fits_do(shape):
    rows, y = load_iris(return_X_y=True)
    folds = list(CV.split(rows, y))
    for ties in (False, True)[: 1 + (shape == "ovr")]:
        machine = drop_in.SVC(decision_function_shape=shape, break_ties=ties, **TIGHT)
        grid = {"C": [0.1, 10.0]}
        found = shared(machine, rows, y, grid, cv=folds)
        np.testing.assert_array_equal(found, refitted(machine, rows, y, grid, cv=folds))


def test_kernels_by_gamma_scale_are_those_of_each_fold():
    """As in scikit-learn: rows that are left out do not tell gamma anything."""
    rows = X.copy()
    rows[FOLDS[0][1]] *= 5.0
    machine, grid = drop_in.SVC(**TIGHT), {"C": [1.0, 10.0]}
    found = shared(machine, rows, Y, grid, "roc_auc")
    np.testing.assert_allclose(found, refitted(machine, rows, Y, grid, "roc_auc"), atol=1e-5)


def test_drop_ins_share_inside_pipelines():
    steps = make_pipeline(StandardScaler(), drop_in.SVC(gamma=0.2, **TIGHT))
    found = tune(steps, X, Y, grid={"svc__C": [0.1, 10.0]}, cv=FOLDS, scoring="roc_auc")
    assert set(found.work) == {"SharedSteps"}
    expected = refitted(steps, X, Y, {"svc__C": [0.1, 10.0]}, "roc_auc")
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)


@pytest.mark.parametrize(
    "machine",
    [
        drop_in.SVC(kernel=lambda A, B: A @ B.T),
        drop_in.SVC(max_iter=100_000),
        drop_in.SVC(kernel="sigmoid", gamma=0.01),
    ],
)
@pytest.mark.filterwarnings("ignore:SMO. the kernel matrix is not positive")
def test_drop_ins_that_ask_for_more_are_fitted(machine):
    found = tune(machine, X, Y, grid={"C": [1.0, 2.0]}, cv=FOLDS)
    assert set(found.work) == {"Refit"}
    np.testing.assert_array_equal(found.scores, refitted(machine, X, Y, {"C": [1.0, 2.0]}))


def test_probabilities_are_fitted_only_where_they_are_asked_for():
    machine = mercer.SVC(Gaussian(2.0), probability=True, **TIGHT)
    grid = {"C": [0.1, 10.0]}
    found = shared(machine, X, Y, grid, "roc_auc")
    np.testing.assert_allclose(found, refitted(machine, X, Y, grid, "roc_auc"), atol=1e-5)
    asked = tune(machine, X, Y, grid=grid, cv=FOLDS, scoring="neg_log_loss")
    assert "Margins" not in asked.work
    np.testing.assert_allclose(asked.scores, refitted(machine, X, Y, grid, "neg_log_loss"))


class QuantileRegressor(RegressorMixin, BaseEstimator):
    """Kernel quantile regression: |w|^2/2 + C sum_i of the pinball loss, a machine of one's own."""

    def __init__(self, kernel=None, quantile=0.5, C=1.0, tol=1e-3):
        self.kernel, self.quantile, self.C, self.tol = kernel, quantile, C, tol

    def problem(self, gram, targets, costs):
        return BoxQP(gram, targets, (self.quantile - 1) * costs, self.quantile * costs)

    def fit(self, X, y):
        gram = make_gram(self.kernel, X, Need.BOX)
        answer = solve(self.problem(gram, y, np.full(len(y), self.C)), SMO(self.tol)).value
        self.expansion_ = gram.expand(answer.coef).plus(np.array([answer.intercept]))
        return self

    def predict(self, X):
        return self.expansion_(np.asarray(X))[:, 0]

    def sharing(self):
        return Sharing(
            MarginPath, ("C",), self.path, lambda X, weights: self.kernel, tol=self.tol, cost=self.C
        )

    def path(self, fold: Fold, machines) -> FoldPath:
        problem = self.problem(fold.part, fold.targets, fold.weights)
        settings = tuple(PathSetting(bound=one.C) for one in machines)
        return FoldPath(
            MarginPath((problem,), settings, fold.evaluation_rows),
            lambda values, offsets: KnownRegressor(values[0] + offsets[0, 0]),
        )


def test_a_machine_of_ones_own_shares_by_the_contract():
    machine = QuantileRegressor(**TIGHT)
    grid = {
        "kernel": [Gaussian(1.0), Gaussian(3.0)],
        "quantile": [0.25, 0.8],
        "C": [0.113, 1.17, 11.9],
    }
    found = shared(machine, X, T, grid)
    np.testing.assert_allclose(found, refitted(machine, X, T, grid), atol=1e-5)
    fitted = QuantileRegressor(Gaussian(1.0), 0.8, 10.0).fit(X, T)
    losses = [mean_pinball_loss(T, fitted.predict(X), alpha=q) for q in (0.8, 0.2)]
    assert losses[0] < losses[1]
    above, tol = T - fitted.predict(X), 2 * fitted.tol  # rows on the surface are on either side
    assert np.mean(above < -tol) <= 0.8 <= np.mean(above <= tol)


def test_a_subclass_that_says_nothing_is_fitted():
    class Shy(QuantileRegressor):
        def predict(self, X):
            return np.zeros(len(X))

    found = tune(Shy(Gaussian(1.0)), X, T, grid={"C": [1.0, 2.0]}, cv=FOLDS)
    assert set(found.work) == {"Refit"}


def test_a_given_matrix_has_to_be_said():
    """The rows of a given matrix are sorted in both directions."""
    with pytest.raises(RuntimeError, match=r"QuantileRegressor\.sharing says precomputed=False"):
        tune(QuantileRegressor(Precomputed()), X @ X.T, T, grid={"C": [1.0, 2.0]}, cv=FOLDS)


def test_a_machine_may_decline_some_points():
    class Picky(QuantileRegressor):
        def sharing(self):
            return super().sharing() if self.C < 5 else None

    found = tune(Picky(Gaussian(1.0)), X, T, grid={"C": [1.0, 2.0, 9.0]}, cv=FOLDS)
    assert found.work == {"Margins": 6, "Refit": 3}


def test_small_targets_and_borders_are_tuned_to_the_tolerance_of_fits():
    """A tolerance of 1e-3 had been taken in units of y, however small y was."""
    machine, grid = mercer.SVR(Gaussian(1.0), epsilon=1e-4), {"C": [1e-4, 1e-2]}
    found = shared(machine, X, 1e-3 * T, grid)
    np.testing.assert_allclose(found, refitted(machine, X, 1e-3 * T, grid), atol=5e-3)
    detector, shares = mercer.OneClassSVM(0.001 * Gaussian(1.0)), {"nu": [0.05, 0.2]}
    found = shared(detector, X, 2 * Y - 1, shares, "roc_auc")
    exact = refitted(detector.set_params(tol=1e-8), X, 2 * Y - 1, shares, "roc_auc")
    np.testing.assert_allclose(found, exact, atol=5e-3)
