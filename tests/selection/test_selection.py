"""Cross-validation over one Gram, learning curves, bias and variance, description length, ROC."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics, model_selection
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, SVR, EnclosingBall, KernelRidge, OneClassSVM
from mercer.kernels import Gaussian, Linear, Precomputed, Spectrum
from mercer.selection import (
    bias_variance,
    choose_threshold,
    cross_validate,
    learning_curve,
    roc,
)
from mercer.selection.folds import folds_of

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 3))
y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(90)
c = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "in", "out")


# --- folds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "target"),
    [
        (KernelRidge(0.1, kernel=Gaussian(1.5)), y),
        (SVR(Gaussian(1.5), C=1.0, tol=1e-8), y),
        (SVC(Gaussian(1.5), C=1.0, tol=1e-8), c),
        (SVC(Linear(), C=0.5, tol=1e-8), np.arange(90) % 3),
        (make_pipeline(StandardScaler(), KernelRidge(kernel=Gaussian(1.0))), y),
    ],
)
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_scores_are_those_of_scikit_learn(machine, target, as_given):
    if as_given is sparse.csr_array and hasattr(machine, "steps"):
        machine = make_pipeline(StandardScaler(with_mean=False), KernelRidge(kernel=Gaussian(1.0)))
    rows = as_given(X)
    ours = cross_validate(machine, rows, target, cv=4)
    folds = folds_of(machine, rows, target, 4, None)
    theirs = model_selection.cross_val_score(machine, rows, target, cv=folds)
    np.testing.assert_allclose(ours.scores, theirs, rtol=1e-5, atol=1e-6)
    assert ours.mean == pytest.approx(theirs.mean(), rel=1e-5)
    assert "4 folds" in str(ours)


def test_the_kernel_is_evaluated_once():
    calls = []

    def counted(A, B):
        calls.append(A.shape[0] * B.shape[0])
        return A @ B.T

    cross_validate(KernelRidge(0.1, kernel=counted), X, y, cv=5)
    assert sum(calls) <= 2 * 90**2  # and not once more for each fold


def test_where_the_matrix_does_not_fit_folds_work_alone():
    with mercer.config(memory=100_000):
        small = cross_validate(KernelRidge(0.1, kernel=Gaussian(1.5)), X, y, cv=3)
    large = cross_validate(KernelRidge(0.1, kernel=Gaussian(1.5)), X, y, cv=3)
    np.testing.assert_allclose(small.scores, large.scores, rtol=1e-5)


def test_precomputed_matrices_strings_and_machines_that_need_more():
    kernel = Gaussian(1.5)
    by_matrix = cross_validate(SVC(Precomputed(), tol=1e-8), kernel(X), c, cv=4)
    by_kernel = cross_validate(SVC(kernel, tol=1e-8), X, c, cv=4)
    np.testing.assert_array_equal(by_matrix.scores, by_kernel.scores)
    words = ["abab", "abba", "xyxy", "xxyy", "aabb", "yxyx", "abaa", "yyxx"]
    labels = np.array([0, 0, 1, 1, 0, 1, 0, 1])
    assert cross_validate(SVC(Spectrum(2)), words, labels, cv=2).mean == 1.0
    share = cross_validate(
        EnclosingBall(kernel, nu=0.1), X, cv=3, scoring=lambda m, Z: (m.predict(Z) > 0).mean()
    )
    assert share.scores.shape == (3,)
    novelty = cross_validate(
        OneClassSVM(kernel, nu=0.1), X, cv=3, scoring=lambda m, Z: (m.predict(Z) > 0).mean()
    )
    assert 0.5 < novelty.mean <= 1


def test_what_the_machine_would_accept_is_accepted():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    machine = SVC(Gaussian(1.0).on(["a", "b"]), tol=1e-8)
    theirs = model_selection.cross_val_score(machine, table, c, cv=folds_of(machine, X, c, 3, None))
    np.testing.assert_allclose(cross_validate(machine, table, c, cv=3).scores, theirs)
    foreign = KernelDensity(kernel="tophat", bandwidth=20.0)  # a name that is no kernel here
    theirs = model_selection.cross_val_score(foreign, X, cv=folds_of(foreign, X, None, 3, None))
    np.testing.assert_allclose(cross_validate(foreign, X, cv=3).scores, theirs)
    spoilt = X.copy()
    spoilt[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 bad value.*row 7, column 1"):
        cross_validate(SVC(), spoilt, c)


def test_learning_curves_end_at_all_rows():
    machine = KernelRidge(0.1, kernel=Gaussian(1.5))
    curve = learning_curve(machine, X, y, cv=3, sizes=[10, 30, 60])
    assert curve.sizes.tolist() == [10, 30, 60]
    whole = cross_validate(machine, X, y, cv=3)
    np.testing.assert_allclose(curve.scores[-1], whole.scores, rtol=1e-6)
    assert curve.scores.mean(axis=1)[0] < curve.scores.mean(axis=1)[-1]
    one_class = learning_curve(SVC(Linear()), X, np.arange(90) < 5, cv=3, sizes=[1])
    assert np.isnan(one_class.scores).all()
    with pytest.raises(ValueError, match="61 samples are requested"):
        learning_curve(machine, X, y, cv=3, sizes=[61])
    with pytest.raises(ValueError, match="positive"):
        learning_curve(machine, X, y, sizes=[0])


# --- bias and variance -------------------------------------------------------------------------


def test_parts_of_squared_error_add_up():
    parts = bias_variance(
        KernelRidge(kernel=Gaussian(1.0)), X[:60], y[:60], X[60:], y[60:], resamples=20
    )
    assert parts.error == pytest.approx(parts.bias + parts.variance, rel=1e-12)
    assert parts.variance > 0


def test_parts_of_the_error_of_labels_add_up():
    parts = bias_variance(SVC(Gaussian(0.5)), X[:60], c[:60], X[60:], c[60:], resamples=20)
    total = parts.bias + parts.variance - 2 * parts.variance_that_helps
    assert parts.error == pytest.approx(total, rel=1e-12)


def test_flexible_machines_vary_and_stiff_ones_miss():
    stiff, flexible = (
        bias_variance(
            KernelRidge(1e-3, kernel=Gaussian(s)), X[:60], y[:60], X[60:], y[60:], resamples=30
        )
        for s in (30.0, 0.3)
    )
    assert stiff.variance < flexible.variance
    with pytest.raises(ValueError, match="resamples=1"):
        bias_variance(KernelRidge(), X, y, X, y, resamples=1)
    with pytest.raises(ValueError, match=r"resamples=2\.5"):
        bias_variance(KernelRidge(), X, y, X, y, resamples=2.5)
    rare = np.arange(60) < 2  # most resamples of ten rows lack the class
    parts = bias_variance(SVC(Linear()), X[:60], rare, X[:60], rare, resamples=5, size=0.2)
    assert 0 <= parts.error <= 1
    with pytest.raises(ValueError, match="size=0"):
        bias_variance(KernelRidge(), X, y, X, y, size=0)


# --- thresholds ----------------------------------------------------------------------------------

scores = st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=30)


@given(scores)
def test_roc_is_that_of_scikit_learn(pairs):
    labels, s = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs], dtype=float)
    if len(set(labels)) < 2:
        with pytest.raises(ValueError, match="two labels"):
            roc(labels, s)
        return
    ours = roc(labels, s)
    false, true, cuts = metrics.roc_curve(labels, s, drop_intermediate=False)
    np.testing.assert_allclose(ours.false_positive, false)
    np.testing.assert_allclose(ours.true_positive, true)
    np.testing.assert_array_equal(ours.thresholds, cuts)
    assert ours.area == pytest.approx(metrics.roc_auc_score(labels, s))


@given(scores, st.floats(0, 10), st.floats(0, 10))
def test_no_threshold_is_cheaper(pairs, alarm, miss):
    labels, s = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs], dtype=float)
    if len(set(labels)) < 2:
        return
    found = choose_threshold(labels, s, false_positive_cost=alarm, false_negative_cost=miss)

    def cost(t):
        called = s >= t
        return np.mean(alarm * (called & ~labels) + miss * (~called & labels))

    assert cost(found.value) == pytest.approx(found.cost, abs=1e-12)
    assert found.cost <= min(cost(t) for t in [-np.inf, *s, np.inf]) + 1e-12


def test_weights_count_rows():
    labels, s = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.3, 0.2, 0.4, 0.9])
    w = np.array([1, 3, 0, 2, 1])
    again = np.repeat(np.arange(5), w)
    assert roc(labels, s, w).area == pytest.approx(roc(labels[again], s[again]).area)
    assert choose_threshold(labels, s, sample_weight=w).cost == pytest.approx(
        choose_threshold(labels[again], s[again]).cost
    )
    with pytest.raises(ValueError, match="scores and"):
        roc([0, 1], [0.1])
    with pytest.raises(ValueError, match="score 1 is not"):
        roc([0, 1], [0.1, np.nan])
    with pytest.raises(ValueError, match="costs must be finite"):
        choose_threshold(labels, s, false_positive_cost=-1.0)
    with pytest.raises(ValueError, match="costs must be finite"):
        choose_threshold(labels, s, false_positive_cost=np.inf)
    assert np.isfinite(choose_threshold([0, 1], [-1.7e308, 1.7e308]).value)
    with pytest.raises(ValueError, match="sample_weight"):
        roc(labels, s, -np.ones(5))
