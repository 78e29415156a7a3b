"""Shared searches and projections, and every machine of the library through `tune`."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    CCA,
    PCA,
    SVC,
    FisherDiscriminant,
    KMeans,
    NearestNeighbors,
    SpectralClustering,
)
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from mercer.machines.base.sharing import SharedMatrix, Store
from mercer.selection import tune
from mercer.selection.sharing import groups
from mercer.selection.sharing.base import Refit
from mercer.selection.sharing.cut_from_largest import OneDecomposition, OneSearch, Truncated
from mercer.selection.sharing.gram import OneGram
from mercer.selection.task import make_task
from mercer.solvers import solve

FOLDS = KFold(3, shuffle=True, random_state=1)


def blobs(n=150, d=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((classes, d))[y], y


def compare(machine, X, y, grid, *, scoring=None, train=True, tol=1e-8):
    found = tune(machine, X, y, grid=grid, cv=FOLDS, scoring=scoring, train_scores=train)
    theirs = GridSearchCV(machine, grid, cv=FOLDS, scoring=scoring, return_train_score=train)
    theirs.fit(X, y)
    for part in ("test", "train") if train else ("test",):
        for k in range(theirs.n_splits_):
            name = f"split{k}_{part}_score"
            np.testing.assert_allclose(
                found.cv_results[name], theirs.cv_results_[name], rtol=tol, atol=tol
            )
    return found


def kinds(machine, X, y, grid, scoring=None):
    rest = {"sample_weight": None, "groups": None, "train_scores": False, "error_score": np.nan}
    task = make_task(machine, X, y, cv=FOLDS, scoring=scoring, **rest)
    return [type(group) for group in groups(task, list(ParameterGrid(grid)))]


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "f1_macro"])
@pytest.mark.filterwarnings("ignore:NearestNeighbors. .* negative similarity:UserWarning")
@pytest.mark.parametrize("votes", ["plain", "similarity"])
def test_all_numbers_of_neighbours_from_one_search(scoring, votes):
    X, y = blobs()
    machine, grid = NearestNeighbors(votes=votes), {"n_neighbors": [1, 2, 3, 7, 20]}
    compare(machine, X, y, grid, scoring=scoring)
    assert kinds(machine, X, y, grid) == [OneSearch]


def test_neighbours_of_several_kernels_with_weights_and_ties():
    X, y = blobs(120, 2)
    X = np.round(X)
    weights = np.random.default_rng(0).integers(1, 4, 120).astype(float)
    grid = {"kernel": [Linear(), Gaussian(1.0)], "n_neighbors": [1, 4, 9]}
    compare(NearestNeighbors(), X, y, grid)
    assert kinds(NearestNeighbors(), X, y, grid) == [OneSearch, OneSearch]
    found = tune(
        NearestNeighbors(), X, y, grid={"n_neighbors": [1, 4, 9]}, cv=FOLDS, sample_weight=weights
    )
    for point, scores in zip(found.points, found.scores, strict=True):
        for (train, test), score in zip(FOLDS.split(X), scores, strict=True):
            fitted = NearestNeighbors(**point).fit(X[train], y[train], weights[train])
            assert score == fitted.score(X[test], y[test], weights[test])


def test_more_neighbours_than_rows_fail_alone():
    X, y = blobs(60)
    with pytest.warns(FitFailedWarning, match="1000"):
        found = tune(NearestNeighbors(), X, y, grid={"n_neighbors": [1, 5, 1000]}, cv=FOLDS)
    assert np.isnan(found.scores[2]).all() and np.isfinite(found.scores[:2]).all()


def test_numbers_of_components_are_cut_from_the_largest():
    X, y = blobs(150, 6)
    machine = make_pipeline(StandardScaler(), PCA(), SVC(Gaussian(1.0)))
    grid = {"pca__n_components": [1, 2, 4], "svc__C": [0.1, 10.0]}
    compare(machine, X, y, grid)
    assert kinds(machine, X, y, grid) == [Truncated]


def test_components_of_several_kernels_with_whitening():
    X, y = blobs(120, 3)
    machine = make_pipeline(PCA(kernel=Gaussian(2.0), whiten=True), FisherDiscriminant())
    grid = {"pca__kernel__scale": [1.0, 3.0], "pca__n_components": [2, 5]}
    compare(machine, X, y, grid, train=False, tol=1e-6)
    assert kinds(machine, X, y, grid) == [Truncated, Truncated]


def test_more_components_than_there_are_fail_alone():
    X, y = blobs(60, 3)
    machine = make_pipeline(PCA(), FisherDiscriminant())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune(machine, X, y, grid={"pca__n_components": [1, 2, 70]}, cv=FOLDS)
    assert np.isfinite(found.scores[:2]).all()


def test_discriminants_share_a_matrix():
    X, y = blobs()
    grid = {"kernel__scale": [1.0, 4.0], "penalty": [1e-3, 0.1], "weighting": ["counts", "classes"]}
    machine = FisherDiscriminant(Gaussian(1.0))
    compare(machine, X, y, grid)
    compare(FisherDiscriminant(Polynomial(2)), X, y, {"penalty": [1e-3, 0.1]})
    words, labels = texts()
    machine = FisherDiscriminant(Spectrum(2))
    compare(machine, words, labels, {"penalty": [1e-3, 0.1]})
    assert kinds(machine, words, labels, {"penalty": [1e-3, 0.1]}) == [OneGram]


@pytest.mark.parametrize("kernels", [("linear", "linear"), (Gaussian(2.0), Gaussian(1.0))])
def test_numbers_of_canonical_pairs_are_cut_from_the_largest(kernels, monkeypatch):
    X, _ = blobs(90, 6)
    Y = X @ np.random.default_rng(3).standard_normal((6, 3)) + np.sin(X[:, :3])
    machine = CCA(2, *kernels, penalty=0.1)
    grid = {"n_components": [1, 2, 3]}
    compare(machine, X, Y, grid, tol=1e-6)
    assert kinds(machine, X, Y, grid) == [OneDecomposition]
    solved = []
    monkeypatch.setattr(
        "mercer.machines.correlation.cca.solve",
        lambda problem, **rest: solved.append(problem.count) or solve(problem, **rest),
    )
    tune(machine, X, Y, grid=grid, cv=FOLDS)
    assert solved == [3] * FOLDS.n_splits


class OwnDiscriminant(FisherDiscriminant):
    """One that says that inner products are all it needs."""

    shares = (SharedMatrix(),)


def test_machines_of_ones_own_share_what_they_list():
    words, labels = texts()
    grid = {"penalty": [1e-3, 0.1]}
    assert kinds(OwnDiscriminant(Spectrum(2)), words, labels, grid) == [OneGram]
    compare(OwnDiscriminant(Spectrum(2)), words, labels, grid)

    class Silent(FisherDiscriminant):
        pass

    assert kinds(Silent(Spectrum(2)), words, labels, grid) == [Refit, Refit]


def evenness(machine, X, y=None):
    """Score machines that have no score: how evenly their groups are filled."""
    labels = machine.predict(X)
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum())


def spread(machine, X, y=None):
    found = machine.transform(X)
    return float(np.square(found.toarray() if hasattr(found, "toarray") else found).mean())


def share_inside(machine, X, y=None):
    return float(np.mean(machine.predict(X) == 1))


def rings(n=90):
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 2 * np.pi, n)
    length = rng.integers(1, 4, n) + 0.1 * rng.standard_normal(n)
    return length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def kept_variance(machine, X, y=None):
    return float(np.sum(machine.explained_variance_ratio_))


# machine, grid, scorer: what a number of clusters or components leaves alone is in each grid
DECOMPOSED = [
    (KMeans(random_state=0), {"n_clusters": [2, 3, 5], "n_init": [1, 4]}, None),
    (KMeans(kernel=Gaussian(1.0), random_state=1), {"n_clusters": [4, 2, 3]}, evenness),
    (
        KMeans(kernel="gaussian", random_state=1),
        {"n_clusters": [2, 4], "init": ["random", "relaxation"]},
        evenness,
    ),
    (
        SpectralClustering(kernel=Gaussian(0.5), random_state=0),
        {"n_clusters": [2, 5, 3, "eigengap"], "n_init": [1, 5]},
        evenness,
    ),
    (
        SpectralClustering(kernel=Gaussian(0.5), normalization="ratio", random_state=0),
        {"n_clusters": [3, 2], "assign": ["kmeans", "sign"]},
        evenness,
    ),
    (
        SpectralClustering(kernel="gaussian", normalization="doubly_stochastic", random_state=0),
        {"n_clusters": [3, 2]},
        evenness,
    ),
    (SpectralClustering(neighbors=6, random_state=0), {"n_clusters": [2, 3, 6]}, evenness),
    (PCA(), {"n_components": [1, 2], "whiten": [True, False]}, spread),
    (PCA(kernel=Gaussian(1.0)), {"n_components": [1, 7, None, 0.8, 3]}, spread),
    (PCA(kernel=Gaussian(2.0)), {"n_components": [2, 5]}, kept_variance),
]


@pytest.mark.parametrize("case", range(len(DECOMPOSED)))
def test_one_decomposition_for_all_numbers(case):
    machine, grid, scoring = DECOMPOSED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some graphs fall apart
        found = compare(machine, rings(), None, grid, scoring=scoring)
    assert np.isfinite(found.scores).sum() >= 2 * FOLDS.n_splits
    assert kinds(machine, rings(), None, grid, scoring) == [OneDecomposition]


@pytest.mark.parametrize("n", [120, 900])  # LAPACK, and iterations that end at a tolerance
def test_machines_with_shared_eigenpairs_are_those_of_plain_fits(n):
    X, _ = blobs(n, 3, 5)
    for machine, name in (
        (SpectralClustering(kernel=Gaussian(1.0), random_state=0), "n_clusters"),
        (PCA(kernel=Gaussian(1.0)), "n_components"),
        (KMeans(kernel=Gaussian(1.0), random_state=0), "n_clusters"),
    ):
        store = Store()
        for count in (7, 4, 3, 2):
            shared, plain = (clone(machine).set_params(**{name: count}) for _ in range(2))
            store.leave_with(shared)
            shared.fit(X)
            plain.fit(X)
            assert set(vars(shared)) == set(vars(plain))  # the store is gone
            assert shared.certificate_.ok
            if name == "n_clusters":
                np.testing.assert_array_equal(shared.labels_, plain.labels_)
                np.testing.assert_array_equal(shared.predict(X[:50]), plain.predict(X[:50]))
            else:
                np.testing.assert_allclose(shared.transform(X), plain.transform(X), atol=1e-5)
            assert len(pickle.dumps(shared)) < 2 * len(pickle.dumps(plain))


def test_eigenpairs_are_found_once_for_each_fold_and_kernel(monkeypatch):
    X, solved = rings(), []

    def counting(problem, *args, **kwargs):
        solved.append(problem.count)
        return solve(problem, *args, **kwargs)

    monkeypatch.setattr("mercer.machines.decomposition.pca.solve", counting)
    grid = {"kernel__scale": [0.5, 2.0], "n_components": [3, 9, 1]}
    tune(PCA(kernel=Gaussian(1.0)), X, grid=grid, cv=FOLDS, scoring=spread)
    assert solved == [9] * 6
    solved.clear()
    monkeypatch.setattr("mercer.machines.clustering.graph_cut_relaxation.solved", counting)
    machine = SpectralClustering(kernel=Gaussian(1.0), random_state=0)
    tune(machine, X, grid={"n_clusters": [2, 6, 4]}, cv=FOLDS, scoring=evenness)
    assert len(solved) == 3


def test_a_number_that_cannot_be_fails_alone_and_wishes_are_heard():
    X, heard = rings(), []
    with pytest.warns(FitFailedWarning, match="1000"):
        found = tune(KMeans(random_state=0), X, grid={"n_clusters": [2, 1000, 3]}, cv=FOLDS)
    assert np.isnan(found.scores[1]).all() and np.isfinite(found.scores[[0, 2]]).all()
    machine = KMeans(random_state=0, callback=lambda progress: bool(heard.append(progress)))
    assert OneDecomposition not in kinds(machine, X, None, {"n_clusters": [2, 3]})
    tune(machine, X, grid={"n_clusters": [2, 3]}, cv=FOLDS)
    assert heard


def test_copies_of_rows_are_merged_as_a_plain_fit_merges_them():
    X = np.repeat(rings(12), 5, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more clusters than rows that differ
        compare(KMeans(random_state=0), X, None, {"n_clusters": [2, 14, 4]})


def binary():
    return blobs(classes=2)


def views():
    X, _ = blobs()
    return X, X[:, :2] @ np.ones((2, 2)) + np.random.default_rng(1).standard_normal((150, 2))


def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (90, 3)), rng.integers(0, 2, 90)


def one_column():
    X, y = table()
    return X[:, :1], y


def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(2.0, (60, 6)).astype(float), rng.integers(0, 2, 60)


def texts():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    words = np.array([["red", "blue", "green"], ["one", "two", "red"]])
    return [" ".join(rng.choice(words[label], 5)) for label in y], y


# by name: rows, a grid, and a score where the machine has none of its own
EVERY = {
    "AxisAlignedRectangle": (binary, {"positive": [0, 1]}, None),
    "BagOfWords": (texts, {"binary": [True, False]}, spread),
    "BayesDecision": (one_column, {"alpha": [0.1, 5.0]}, None),
    "BernoulliMixture": (table, {"n_components": [1, 2]}, None),
    "CCA": (views, {"penalty": [1e-3, 0.5]}, None),
    "EnclosingBall": (blobs, {"nu": [0.1, 0.5]}, share_inside),
    "FisherDiscriminant": (blobs, {"penalty": [1e-3, 1.0]}, None),
    "GaussianClassifier": (blobs, {"shared": [True, False]}, None),
    "GaussianMixture": (blobs, {"n_components": [1, 2]}, None),
    "GaussianProcess": (blobs, {"noise": [0.1, 10.0]}, None),
    "GaussianProcessClassifier": (blobs, {"kernel": [Linear(), Gaussian(1.0)]}, None),
    "ICA": (blobs, {"contrast": ["logcosh", "cube"]}, spread),
    "KMeans": (blobs, {"n_clusters": [2, 3], "random_state": [0]}, None),
    "HarmonicRegressor": (blobs, {"neighbors": [2, 5]}, None),
    "LabelPropagation": (blobs, {"neighbors": [2, 5]}, None),
    "LabelSpreading": (blobs, {"alpha": [0.2, 0.8]}, None),
    "LaplacianRidge": (blobs, {"penalty": [0.1, 10.0]}, None),
    "LaplacianSVC": (blobs, {"C": [0.1, 10.0], "kernel": [Gaussian(2.0)]}, None),
    "KernelRidge": (blobs, {"penalty": [0.1, 10.0]}, None),
    "LogShift": (counts, {"shift": [0.5, 1.0]}, spread),
    "LogisticRegression": (blobs, {"penalty": [0.1, 10.0]}, None),
    "MultiTaskGaussianProcess": (blobs, {"noise": [0.1, 10.0]}, None),
    "MultinomialMixture": (counts, {"n_components": [1, 2]}, None),
    "NaiveBayes": (table, {"alpha": [0.1, 5.0]}, None),
    "NearestMean": (blobs, {"kernel": [Linear(), Gaussian(1.0)]}, None),
    "NearestNeighbors": (blobs, {"n_neighbors": [1, 9]}, None),
    "OneClassSVM": (blobs, {"nu": [0.1, 0.5], "kernel": [Gaussian(2.0)]}, share_inside),
    "MDS": (blobs, {"n_components": [1, 3]}, spread),
    "PCA": (blobs, {"n_components": [1, 3]}, spread),
    "Perceptron": (blobs, {"answer": ["last", "averaged"]}, None),
    "ProbabilisticPCA": (blobs, {"n_components": [1, 2]}, None),
    "ProjectionPursuit": (blobs, {"n_components": [1, 2]}, spread),
    "SVC": (blobs, {"C": [0.1, 10.0], "kernel": [Gaussian(2.0)]}, None),
    "SVR": (blobs, {"C": [0.1, 10.0], "kernel": [Gaussian(2.0)], "tol": [1e-8]}, None),
    "SpectralClustering": (
        blobs,
        {"n_clusters": [2, 3], "kernel": [Gaussian(2.0)], "random_state": [0]},
        evenness,
    ),
    "Whiten": (blobs, {"rotate_back": [True, False]}, spread),
}

# fitted to expectations over a list of outcomes: there are no rows to leave out
NOT_BY_ROWS = {"MaximumEntropy"}


def machines():
    found = {name: getattr(mercer, name) for name in mercer.__all__}
    return {
        name
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and hasattr(kind, "fit")
    }


WITH_TORCH = {"Autoencoder", "VariationalAutoencoder"}  # in tests/with_torch


def test_the_list_has_every_machine():
    assert machines() - {"Tuned"} == set(EVERY) | NOT_BY_ROWS | WITH_TORCH


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_machine_can_be_tuned(name):
    rows, grid, scoring = EVERY[name]
    X, y = rows()
    # solvers of box programmes stop at a tolerance, and the order of rows is not the same
    compare(getattr(mercer, name)(), X, y, grid, scoring=scoring, train=False, tol=1e-6)
