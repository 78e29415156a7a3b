"""Fits over blocks give what fits in memory give, however rows are cut, and weights repeat rows."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import mercer
from mercer import (
    PCA,
    SVC,
    BernoulliMixture,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianMixture,
    KernelRidge,
    KMeans,
    LogisticRegression,
    MultinomialMixture,
    NaiveBayes,
    SpectralClustering,
)
from mercer.approximation import Nystrom
from mercer.blocks import ArrayBlocks
from mercer.kernels import Gaussian, Polynomial
from mercer.machines.base.approximate import ApproximationWarning

N = 240
RNG = np.random.default_rng(7)
X = np.vstack([0.7 * RNG.standard_normal((N // 3, 3)) + c for c in np.eye(3) * 2.5]) + 1.0
ORDER = RNG.permutation(N)
X = X[ORDER]
LABELS = np.array(["a", "b", "c"])[np.repeat(np.arange(3), N // 3)[ORDER]]
TWO = np.where(X[:, 0] + 0.4 * RNG.standard_normal(N) > 1.8, 1, 0)
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(N)
WEIGHTS = RNG.integers(0, 3, N).astype(float)
FEATURES = Nystrom(25).of(Gaussian(2.0), X)

# machine, targets, what is compared, and how closely
CASES = {
    "ridge": (KernelRidge(0.1, FEATURES), Y, "predict", 1e-9),
    "ridge, several targets": (
        KernelRidge([0.1, 1.0]),
        np.column_stack([Y, -Y + 1]),
        "predict",
        1e-9,
    ),
    "ridge, no bias": (KernelRidge(0.1, Polynomial(2, 1.0), bias=False), Y, "predict", 1e-8),
    "ridge, no penalty": (KernelRidge(0.0), Y, "predict", 1e-9),
    "ridge, leave-one-out": (KernelRidge("loo", FEATURES), Y, "predict", 1e-8),
    "logistic": (LogisticRegression(FEATURES, 0.1), TWO, "decision_function", 1e-6),
    "logistic, three classes": (LogisticRegression(), LABELS, "decision_function", 1e-6),
    "logistic, squares": (
        LogisticRegression(loss="squared", class_weight="balanced"),
        LABELS,
        "decision_function",
        1e-9,
    ),
    "svc": (SVC(FEATURES, 1.0, tol=1e-8), TWO, "decision_function", 1e-3),
    "svc, pairs": (SVC("linear", 1.0, tol=1e-8), LABELS, "predict", 0.0),
    "svc, rest": (
        SVC("linear", 0.5, multiclass="ovr", class_weight="balanced", tol=1e-8),
        LABELS,
        "decision_function",
        1e-3,
    ),
    "pca": (PCA(2, FEATURES, whiten=True), None, "transform", 1e-9),
    "pca, share": (PCA(0.9), None, "transform", 1e-10),
    "pca, not centred": (PCA(2, Polynomial(2, 1.0), center=False), None, "transform", 1e-9),
    "k-means": (KMeans(3), None, "transform", 1e-9),
    "k-means, kernel": (KMeans(3, FEATURES), None, "transform", 1e-9),
    "fisher": (FisherDiscriminant(FEATURES), LABELS, "decision_function", 1e-8),
    "fisher, distances": (
        FisherDiscriminant(rule="mahalanobis", weighting="classes"),
        LABELS,
        "decision_function",
        1e-8,
    ),
    "naive bayes": (NaiveBayes(), LABELS, "predict_proba", 1e-12),
    "naive bayes, counts": (NaiveBayes(kinds="count"), LABELS, "predict_proba", 1e-12),
    "naive bayes, counted values": (
        NaiveBayes(kinds="categorical"),
        LABELS,
        "predict_proba",
        1e-12,
    ),
    "gaussians": (GaussianClassifier(), LABELS, "predict_proba", 1e-10),
    "gaussians, shared": (
        GaussianClassifier(shared=True, unbiased=True, prior="uniform"),
        LABELS,
        "predict_proba",
        1e-10,
    ),
    "gaussians, diagonal": (
        GaussianClassifier("diagonal", shared=True),
        LABELS,
        "predict_proba",
        1e-10,
    ),
    "mixture": (GaussianMixture(3), None, "score_samples", 1e-8),
    "coins": (BernoulliMixture(2, binarize=1.5), None, "score_samples", 1e-8),
    "coins, tied, by BIC": (
        BernoulliMixture("bic", max_components=2, tied=True, binarize=1.5),
        None,
        "score_samples",
        1e-8,
    ),
    "words": (MultinomialMixture(2, source="documents"), None, "score_samples", 1e-8),
    "words, blended": (
        MultinomialMixture(2, tol=1e-9, max_iter=2000, random_state=3),
        None,
        "score_samples",
        1e-3,
    ),
    "spectral": (SpectralClustering(3, FEATURES), None, "transform", 1e-8),
    "spectral, plain": (
        SpectralClustering("eigengap", FEATURES, normalization="plain"),
        None,
        "transform",
        1e-8,
    ),
    "spectral, sign": (SpectralClustering(2, FEATURES, assign="sign"), None, "predict", 0.0),
}
COUNTS = np.abs(X).round()  # of words, for machines that count
case = pytest.mark.parametrize("name", CASES)


def rows_of(name):
    return COUNTS if "count" in name or "words" in name else X


def in_memory(name):
    """Fit to rows in memory; machines without weights see rows as often as they count."""
    machine, y, *_ = CASES[name]
    if not isinstance(machine, SpectralClustering):
        return fitted(machine, rows_of(name), y, sample_weight=WEIGHTS)
    return fitted(machine, np.repeat(X, WEIGHTS.astype(int), axis=0))


def fitted(machine, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # similar rows in so small a sample
        return clone(machine).fit(*args, **kwargs)


def difference(name, one, other):
    method = CASES[name][2]
    mine, theirs = (getattr(machine, method)(rows_of(name)) for machine in (one, other))
    if mine.dtype.kind in "UO":
        return float((mine != theirs).mean())
    if isinstance(one, KMeans):  # clusters have no order
        mine, theirs = np.sort(mine, axis=1), np.sort(theirs, axis=1)
    return float(np.abs(mine - theirs).max())


@case
def test_the_answer_is_that_of_a_fit_in_memory(name):
    machine, y, _, tol = CASES[name]
    apart = fitted(machine, ArrayBlocks(rows_of(name), y, WEIGHTS, rows=50))
    assert difference(name, apart, in_memory(name)) <= tol
    assert apart.solution_.status.ok and apart.certificate_.ok, apart.certificate_
    assert apart.n_features_in_ == 3


@case
def test_block_sizes_do_not_matter(name):
    machine, y, _, tol = CASES[name]
    one = fitted(machine, ArrayBlocks(rows_of(name), y, WEIGHTS, rows=37))
    weights = {} if isinstance(machine, SpectralClustering) else {"sample_weight": WEIGHTS}
    inside = None if weights else WEIGHTS
    other = fitted(machine, ArrayBlocks(rows_of(name), y, inside, rows=N), **weights)
    assert difference(name, one, other) <= tol


@case
def test_weights_are_repetition(name):
    machine, y, _, tol = CASES[name]
    again, rows = np.repeat(np.arange(N), WEIGHTS.astype(int)), rows_of(name)
    repeated = fitted(machine, ArrayBlocks(rows[again], None if y is None else y[again], rows=50))
    weighted = fitted(machine, ArrayBlocks(rows, y, WEIGHTS, rows=50))
    assert difference(name, repeated, weighted) <= max(tol, 1e-8)


@pytest.mark.parametrize("name", ["mixture", "coins", "words", "words, blended"])
def test_mixtures_go_the_same_way_step_by_step(name):
    """Extrapolated steps are as long for rows twice as for rows of weight two, in blocks or not."""
    machine, rows = clone(CASES[name][0]).set_params(max_iter=12), rows_of(name)
    again = np.repeat(np.arange(N), WEIGHTS.astype(int))
    whole = fitted(machine, rows, sample_weight=WEIGHTS)
    assert len(whole.log_likelihoods_) > 4
    for other in (
        fitted(machine, rows[again[::-1]]),
        fitted(machine, ArrayBlocks(rows, weights=WEIGHTS, rows=50)),
        fitted(machine, ArrayBlocks(rows[again], rows=50)),
        fitted(machine, ArrayBlocks(rows[RNG.permutation(again)], rows=31)),
    ):
        np.testing.assert_allclose(other.log_likelihoods_, whole.log_likelihoods_, rtol=1e-10)
        mine, theirs = (fit.certificate_.quantities for fit in (other, whole))
        assert mine.movement == pytest.approx(theirs.movement, rel=1e-3)


@pytest.mark.parametrize(
    "name",
    [
        "ridge, no penalty",
        "logistic, three classes",
        "svc, pairs",
        "pca, share",
        "k-means",
        "coins",
    ],
)
def test_sparse_and_single_rows(name):
    machine, y, _, tol = CASES[name]
    plain = fitted(machine, ArrayBlocks(X.astype("f4").astype("f8"), y, rows=50))
    held = fitted(machine, ArrayBlocks(sparse.csr_array(X.astype("f4").astype("f8")), y, rows=50))
    single = fitted(machine, ArrayBlocks(X.astype("f4"), y, rows=50))
    for other in (held, single):
        assert difference(name, plain, other) <= max(tol, 1e-9)


def test_leave_one_out_scores_are_those_in_memory():
    machine = KernelRidge("loo", FEATURES)
    apart = fitted(machine, ArrayBlocks(X, Y, WEIGHTS, rows=50))
    whole = fitted(machine, X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(apart.loo_scores_, whole.loo_scores_, rtol=1e-8)
    assert apart.penalty_ == pytest.approx(whole.penalty_)


def test_many_unknowns_take_quasi_newton_steps(monkeypatch):
    monkeypatch.setattr("mercer.machines.logistic.blocks._UNKNOWNS", 0)
    machine = LogisticRegression(FEATURES)
    apart = fitted(machine, ArrayBlocks(X, LABELS, WEIGHTS, rows=50))
    whole = fitted(machine, X, LABELS, sample_weight=WEIGHTS)
    np.testing.assert_allclose(apart.decision_function(X), whole.decision_function(X), atol=1e-4)
    assert apart.certificate_.ok


def test_rows_of_the_caller_are_not_changed():
    before = X.copy()
    fitted(PCA(2), ArrayBlocks(X, rows=N))
    fitted(KMeans(3), ArrayBlocks(X, rows=N))
    np.testing.assert_array_equal(X, before)


def test_features_are_found_where_they_are_needed():
    machine = KernelRidge(1e-3, Gaussian(2.0), approximation=Nystrom(40))
    apart = fitted(machine, ArrayBlocks(X, Y, WEIGHTS, rows=50))
    whole = fitted(machine, X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(apart.predict(X), whole.predict(X), atol=1e-6)
    assert apart.approximation_error_.value < 0.1
    with pytest.warns(ApproximationWarning, match="landmarks among"):
        KernelRidge(1e-3, "gaussian").fit(ArrayBlocks(X, Y, rows=50))


def test_mapped_arrays_past_the_budget_are_read_in_blocks(tmp_path):
    np.save(tmp_path / "X.npy", np.repeat(X, 20, axis=0))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    y = np.repeat(Y, 20)
    with mercer.config(memory=200_000), pytest.warns(UserWarning, match="block by block"):
        apart = KernelRidge(1.0).fit(mapped, y)
    np.testing.assert_allclose(apart.predict(X), KernelRidge(1.0).fit(mapped, y).predict(X))
    assert apart.solution_.solver == "BlockPrimal"
