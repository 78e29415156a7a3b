"""Ways through a grid, rules of choice, grids from data, nested cross-validation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import ParameterGrid, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    PCA,
    SVC,
    SVR,
    FisherDiscriminant,
    GaussianMixture,
    KernelRidge,
    KMeans,
    LogisticRegression,
    NaiveBayes,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    SpectralClustering,
)
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Spectrum
from mercer.selection import (
    Exhaustive,
    Halve,
    Race,
    Refine,
    Tuned,
    default_grid,
    nested_cross_validate,
    rules,
    tune,
)
from mercer.selection.grids import Grid
from mercer.selection.task import Task


class Surface:
    """An evaluator whose scores are a known function of the point, with noise by fold."""

    def __init__(self, score, folds=5, noise=0.0, n=1000, machine=None, y=None):
        fold = np.arange(n) % folds
        splits = tuple((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds))
        self.task = Task(machine or SVR(), np.zeros((n, 1)), y, splits, {})
        self.rng = np.random.default_rng(0)
        self.score, self.noise = score, noise
        self.asked, self.notes, self.sizes = [], [], []

    def evaluate(self, points, folds=None, rows=None):
        folds = list(range(len(self.task.splits)) if folds is None else folds)
        self.asked += [(point, fold, rows is None) for point in points for fold in folds]
        self.sizes.append((len(points), None if rows is None else len(rows)))
        draw = np.random.default_rng(1)
        common = {fold: draw.normal() for fold in range(len(self.task.splits))}
        own = draw.normal(size=(len(points), len(folds)))
        noise = [[common[f] for f in folds]] + own / 4
        return np.array([[self.score(p)] * len(folds) for p in points]) + self.noise * noise

    def say(self, note):
        self.notes.append(note)

    def best(self):
        whole = [p for p, _, all_rows in self.asked if all_rows]
        return max(whole, key=self.score)


def valley(point):
    return -((np.log10(point["C"]) - 0.77) ** 2) - (np.log10(point["scale"]) + 0.31) ** 2


def test_exhaustive_asks_for_every_point_once():
    surface = Surface(valley)
    Exhaustive().run(surface, Grid.of({"C": [1, 10], "scale": [0.1, 1, 2]}))
    assert len(surface.asked) == 30


def test_points_come_in_the_order_of_scikit_learn():
    boxes = [{"b": [1, 2], "a": [3, 4]}, {"c": ["x"]}]
    assert Grid.of(boxes).points() == list(ParameterGrid(boxes))
    assert len(Grid.of(boxes)) == 5


@pytest.mark.parametrize(
    "wrong", ["C", 3, {"C": 1.0}, {"C": "rbf"}, [3], {"C": []}, [], np.array(2.0)]
)
def test_a_wrong_grid_is_refused_with_a_remedy(wrong):
    with pytest.raises((TypeError, ValueError), match="grid"):
        Grid.of(wrong)


def test_refinement_halves_the_distance_to_the_top():
    grid = Grid.of({"C": [0.01, 1.0, 100.0], "scale": [0.01, 1.0, 100.0]})
    distances = []
    for rounds in (1, 2, 3, 4, 5):
        surface = Surface(valley)
        Refine(rounds).run(surface, grid)
        distances.append(-valley(surface.best()))
        assert "factor" in surface.notes[-1]
    assert distances == sorted(distances, reverse=True)
    # the step of a factor of 100 has been halved five times: at most one step off in either axis
    assert distances[-1] <= 2 * (2 / 2**5) ** 2
    assert len(surface.asked) / 5 <= 9 + 5 * 8


def test_refinement_leaves_the_ends_of_the_grid():
    surface = Surface(lambda point: -abs(np.log10(point["C"]) - 3.0))
    Refine(4).run(surface, Grid.of({"C": [0.01, 1.0, 100.0]}))
    assert surface.best()["C"] > 100.0


def test_refinement_moves_scales_of_kernels_and_whole_numbers():
    def score(point):
        return -abs(np.log(point["kernel"].scale / 3.0)) - abs(point["k"] - 7)

    surface = Surface(score)
    Refine(3).run(surface, Grid.of({"kernel": [Gaussian(1.0), Gaussian(8.0)], "k": [2, 5, 10]}))
    found = surface.best()
    assert isinstance(found["k"], int) and found["k"] == 7
    assert abs(np.log(found["kernel"].scale / 3.0)) < 0.3


def test_refinement_says_when_there_is_nothing_between():
    surface = Surface(lambda point: float(point["slack"] == "l1"))
    Refine().run(surface, Grid.of({"slack": ["l1", "l2"]}))
    assert "no axis" in surface.notes[-1] and len(surface.asked) == 10


def test_halving_ends_with_all_rows_and_the_best_point():
    points = {"C": np.logspace(-3, 3, 9).tolist(), "scale": np.logspace(-2, 2, 5).tolist()}
    surface = Surface(valley, n=5000)
    Halve(factor=3, least=100).run(surface, Grid.of(points))
    assert surface.best() == max(Grid.of(points).points(), key=valley)
    rows = [size for _, size in surface.sizes]
    assert rows[-1] is None and rows[:-1] == sorted(rows[:-1]) and rows[0] >= 100
    assert surface.sizes[-1][0] < 45
    assert "standard errors" in surface.notes[-1]


def test_halving_keeps_what_it_cannot_tell_apart():
    """All points alike but for noise of single scores: nobody is far behind."""
    surface = Surface(lambda point: 0.0, noise=1.0, n=5000)
    Halve(factor=3, least=100, margin=50.0).run(surface, Grid.of({"C": list(range(1, 10))}))
    assert surface.sizes[-1][0] == 9
    assert "no candidate was dropped" in surface.notes[-1]


def test_rows_of_halving_have_every_class():
    y = np.repeat([0, 1, 2], [900, 90, 10])
    surface = Surface(valley, n=1000, machine=SVC(), y=y)
    seen = []
    surface.evaluate = lambda points, folds=None, rows=None: (
        seen.append(rows),
        np.array([[valley(p)] * 5 for p in points]),
    )[1]
    Halve(factor=3, least=100).run(surface, Grid.of({"C": [1.0, 10.0, 100.0], "scale": [1.0]}))
    shares = np.bincount(y[seen[0]], minlength=3) / len(seen[0])
    np.testing.assert_allclose(shares, [0.9, 0.09, 0.01], atol=0.02)
    assert shares[2] > 0


def test_a_race_saves_folds_of_the_hopeless_only():
    surface = Surface(valley, folds=10, noise=0.01)
    grid = Grid.of({"C": np.logspace(-3, 3, 7).tolist(), "scale": [0.1, 0.5, 1.0]})
    Race().run(surface, grid)
    assert surface.best() == max(grid.points(), key=valley)
    assert len(surface.asked) < 0.5 * 21 * 10
    top = max(grid.points(), key=valley)
    assert sum(point == top for point, _, _ in surface.asked) == 10


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_race_drops_a_point_as_good_as_the_leader_with_probability_alpha(seed):
    """Twenty draws of equal points: more than a few losses would be above the promised level."""
    rng = np.random.default_rng(seed)
    lost = 0
    for _ in range(10):
        scores = rng.normal(size=(2, 10))
        surface = Surface(lambda point: 0.0, folds=10)
        surface.evaluate = lambda points, folds, rows=None, s=scores: s[
            [[int(p["k"])] for p in points], list(folds)
        ]
        Race(alpha=0.01).run(surface, Grid.of({"k": [0, 1]}))
        lost += "Race: 1 of 2" in surface.notes[-1]
    assert lost <= 4


def test_failed_points_leave_the_race_and_the_halving():
    def score(point):
        return np.nan if point["C"] == 1.0 else -point["C"]

    for way in (Race(), Halve(factor=2, least=10), Refine(1)):
        surface = Surface(score)
        way.run(surface, Grid.of({"C": [1.0, 2.0, 3.0, 4.0]}))
        assert any(point["C"] == 2.0 for point, _, _ in surface.asked)


def test_halving_drops_nothing_where_nothing_can_be_told():
    points = Grid.of({"C": np.logspace(-3, 3, 9).tolist()})

    def unknown(machine, X, y):  # on few rows
        return float(machine.C) if len(y) >= len(LABELS) // 5 else np.nan

    X, y = DATA, LABELS
    found = tune(SVC(Gaussian(1.0)), X, y, grid=points, search=Halve(least=20), scoring=unknown)
    assert found.best_params["C"] == 1000.0
    one = tune(
        SVC(Gaussian(1.0)), X, y, grid=points, search=Halve(least=20),
        cv=[(np.arange(40), np.arange(40, 60))],
    )  # fmt: skip
    for alone in (found, one):
        assert not np.isnan(alone.scores).any()
        assert "no candidate was dropped" in alone.notes[-1]


def test_halving_counts_those_that_cannot_be_judged():
    surface = Surface(lambda point: np.nan if point["C"] == 1.0 else 0.0)
    Halve(factor=2, least=10).run(surface, Grid.of({"C": [1.0, 2.0, 3.0]}))
    assert "1 of 3 candidates could not be evaluated" in surface.notes[-1]


def test_halving_of_single_rows_and_of_matrices():
    """Folds that lose their rows are left out; a point may say that rows are a matrix."""
    X, y = DATA[:90], LABELS[:90]
    grid = {"C": [1e-3, 1.0, 1e3], "kernel__scale": [1e-3, 1.0]}
    found = tune(SVC(Gaussian(1.0)), X, y, grid=grid, cv="loo", search=Halve(least=30))
    assert found.best_params["kernel__scale"] == 1.0
    assert not any(trial.failure for trial in found.trials)
    grid = {"kernel": ["precomputed"], "C": [0.1, 1.0, 10.0]}
    found = tune(SVC(), Gaussian(1.0)(X, X), y, grid=grid, search=Halve(least=30))
    assert not any(trial.failure for trial in found.trials)


def test_a_race_keeps_its_leader_and_needs_two_folds():
    for alpha in (0.05, 0.9):
        surface = Surface(valley, folds=10)
        Race(alpha=alpha).run(surface, Grid.of({"C": [1.0, 100.0], "scale": [1.0]}))
        assert len([1 for point, _, _ in surface.asked if point == surface.best()]) == 10
    surface = Surface(valley, folds=1)
    Race().run(surface, Grid.of({"C": [1.0, 100.0], "scale": [1.0]}))
    assert "Race: 0 of 2" in surface.notes[-1]


def test_refinement_keeps_whole_numbers_of_kernels_whole():
    kernels = [Polynomial(degree, 1.0) for degree in (1, 4, 16)]
    surface = Surface(lambda point: -abs(point["kernel"].degree - 3))
    Refine(2).run(surface, Grid.of({"kernel": kernels}))
    assert surface.best()["kernel"].degree in (2, 3, 4)


def test_rules_take_infinite_scores():
    points = [{"C": 1.0}, {"C": 10.0}, {"C": 100.0}]
    low = np.array([[-np.inf, 0.0], [-np.inf, -np.inf], [np.nan, 0.0]])
    high = np.array([[0.0, 0.0], [np.inf, np.inf], [np.inf, -np.inf]])
    for rule in (rules.best, rules.one_standard_error):
        assert rule(points, low) == 0
        assert rule(points, high) == 1


@pytest.mark.parametrize("given", [3, -1, None, 1.0, True])
def test_a_rule_must_give_a_point(given):
    with pytest.raises(ValueError, match="index of a candidate"):
        tune(SVC(), DATA, LABELS, grid={"C": [0.1, 1.0, 10.0]}, cv=2, rule=lambda *_: given)


def test_rules():
    points = [{"C": c, "kernel": Gaussian(s)} for c in (1.0, 10.0) for s in (1.0, 2.0)]
    scores = np.array([[0.90, 0.80], [0.89, 0.81], [0.94, 0.82], [0.5, np.nan]])
    assert rules.best(points, scores) == 2
    # within one error of the best: the smaller C, and of those the larger scale
    assert rules.one_standard_error(points, scores) == 1
    assert rules.rule_of("best") is rules.best
    assert rules.rule_of(lambda points, scores: 0)(points, scores) == 0
    with pytest.raises(ValueError, match="rule='most'"):
        rules.rule_of("most")
    with pytest.raises(ValueError, match="every fold"):
        rules.best(points, np.full((4, 2), np.nan))


def test_the_rule_reaches_the_machine():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}
    best = tune(SVC(Gaussian(5.0)), X, y, grid=grid)
    simple = tune(SVC(Gaussian(5.0)), X, y, grid=grid, rule="one_standard_error")
    k, j = best.best, simple.best
    assert simple.best_params["C"] <= best.best_params["C"]
    assert simple.mean[j] >= best.mean[k] - best.standard_error[k]


DATA = np.random.default_rng(0).normal(size=(60, 3))
LABELS = np.arange(60) % 3


@pytest.mark.parametrize(
    ("machine", "y", "names"),
    [
        (SVC(), LABELS, {"C", "kernel"}),
        (SVC(nu=0.2), LABELS, {"nu", "kernel"}),
        (SVC(Linear()), LABELS, {"C"}),
        (SVR(Laplacian(1.0)), DATA[:, 0], {"C", "epsilon", "kernel"}),
        (SVR(nu=0.5), DATA[:, 0], {"C", "nu", "kernel"}),
        (KernelRidge(kernel="polynomial"), DATA[:, 0], {"penalty", "kernel"}),
        (KernelRidge(kernel="gaussian", penalty="loo"), DATA[:, 0], {"kernel"}),
        (OneClassSVM(), None, {"kernel"}),
        (OneClassSVM(), LABELS, {"nu", "kernel"}),
        (LogisticRegression(), LABELS, {"penalty"}),
        (FisherDiscriminant("gaussian"), LABELS, {"penalty", "kernel"}),
        (NearestMean("gaussian"), LABELS, {"kernel"}),
        (NearestNeighbors(), LABELS, {"n_neighbors", "votes"}),
        (NaiveBayes(), LABELS, {"alpha"}),
        (PCA(), None, {"n_components"}),
        (GaussianMixture(), None, {"n_components", "covariance"}),
        (KMeans(), None, {"n_clusters"}),
        (SpectralClustering(), None, {"n_clusters"}),
        (make_pipeline(StandardScaler(), SVC()), LABELS, {"svc__C", "svc__kernel"}),
    ],
)
def test_default_grids_are_points_of_their_machine(machine, y, names):
    grid = default_grid(machine, DATA, y)
    assert set(grid.parts[0]) == names
    for point in (grid.points()[0], grid.points()[-1]):
        fitted = Task(machine, DATA, y, (), {}).machine_at(point).fit(DATA, y)
        assert fitted is not None


def test_default_scales_follow_the_data():
    scales = [k.scale for k in default_grid(SVC(), DATA, LABELS).parts[0]["kernel"]]
    larger = [k.scale for k in default_grid(SVC(), 100 * DATA + 7, LABELS).parts[0]["kernel"]]
    np.testing.assert_allclose(np.array(larger) / scales, 100.0, rtol=1e-9)
    distances = np.linalg.norm(DATA[:, None] - DATA, axis=2)
    assert min(scales) < np.median(distances[distances > 0]) < max(scales)
    costs = default_grid(SVR(), DATA, DATA[:, 0]).parts[0]["C"]
    tenfold = default_grid(SVR(), DATA, 10 * DATA[:, 0]).parts[0]["C"]
    np.testing.assert_allclose(np.array(tenfold) / costs, 10.0)


def test_composed_kernels_are_scaled_as_a_whole():
    kernel = Gaussian(2.0) + 0.5 * Laplacian(3.0)
    axis = default_grid(SVC(kernel), DATA, LABELS).parts[0]["kernel"]
    assert kernel in axis
    assert any(k == Gaussian(4.0) + 0.5 * Laplacian(6.0) for k in axis)


def test_degrees_keep_values_near_one():
    kernels = default_grid(KernelRidge(kernel="polynomial"), DATA, DATA[:, 0]).parts[0]["kernel"]
    typical = [float(np.median(kernel.diag(DATA))) for kernel in kernels]
    assert len(kernels) == 4 and max(typical) / min(typical) < 100
    assert default_grid(SVC(Polynomial(2)), DATA, LABELS).parts[0]["kernel"][0].degree == 1


def test_rare_classes_are_weighed():
    y = (np.arange(60) < 10).astype(int)
    assert default_grid(SVC(), DATA, y).parts[0]["class_weight"] == (None, "balanced")


def test_strings_have_costs_to_tune():
    words = ["abab", "abba", "baba", "cdcd", "dcdc", "ccdd"]
    assert set(default_grid(SVC(Spectrum(2)), words, [0, 0, 0, 1, 1, 1]).parts[0]) == {"C"}


def test_unknown_machines_ask_for_a_grid():
    with pytest.raises(ValueError, match="StandardScaler: there is no default grid"):
        default_grid(StandardScaler(), DATA, LABELS)


def test_nested_scores_are_those_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    tuned = Tuned(SVC(Gaussian(1.0)), {"C": [0.1, 1.0, 10.0]}, cv=3)
    outer = StratifiedKFold(4, shuffle=True, random_state=0)
    found = nested_cross_validate(tuned, X, y, cv=outer)
    np.testing.assert_allclose(found.scores, cross_val_score(tuned, X, y, cv=outer))
    assert len(found.params) == 4 and all(set(p) == {"C"} for p in found.params)
    assert found.optimism == pytest.approx(found.inner_scores.mean() - found.mean)
    assert "outer folds" in str(found)


def test_nested_folds_of_other_rows():
    X, y = DATA[:60], LABELS[:60]
    tuned = Tuned(SVC(Gaussian(1.0)), {"C": [0.1, 10.0]}, cv=3)
    given = Tuned(SVC("precomputed"), {"C": [0.1, 10.0]}, cv=3)
    plain = nested_cross_validate(tuned, X, y, cv=3).scores
    K = Gaussian(1.0)(X, X)
    np.testing.assert_array_equal(nested_cross_validate(given, K, y, cv=3).scores, plain)
    few = nested_cross_validate(tuned, sparse.coo_array(X), y, cv=3).scores
    np.testing.assert_array_equal(few, plain)
    assert len(nested_cross_validate(tuned, X[:12], y[:12], cv="loo").scores) == 12
    with pytest.raises(TypeError, match="does not choose its parameters"):
        nested_cross_validate(SVC(), X, y)


@pytest.mark.parametrize(
    "wrong",
    [Refine(0), Refine(1.5), Halve(factor=1), Halve(margin=-1.0), Race(alpha=0.0), Race(alpha=1)],
)
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ValueError, match=type(wrong).__name__):
        wrong.run(Surface(valley), Grid.of({"C": [1.0, 2.0], "scale": [1.0]}))
