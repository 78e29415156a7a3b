"""Labels on graphs against dense solves by hand, scikit-learn's fixed points and walks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn import semi_supervised
from sklearn.datasets import make_moons

from mercer import (
    HarmonicRegressor,
    LabelPropagation,
    LabelSpreading,
    ParameterError,
    certify,
    solve,
)
from mercer.gram.build import matrix_gram
from mercer.kernels import Gaussian, Linear
from mercer.problems import GraphLabels, GraphValues
from mercer.solvers import GraphCholesky, GraphConjugateGradient

pytestmark = pytest.mark.numerics

GAMMA = 20.0
KERNEL = Gaussian((0.5 / GAMMA) ** 0.5)
X, MOON = make_moons(120, noise=0.08, random_state=1)


def some_labels(count=8, seed=0):
    y = np.full(len(X), -1)
    rows = np.random.default_rng(seed).choice(len(X), count, replace=False)
    y[rows] = MOON[rows]
    return y


Y = some_labels()


def weights():
    W = np.exp(-GAMMA * np.square(X[:, None] - X[None]).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    return W


def test_propagation_is_the_harmonic_function():
    W, known = weights(), Y >= 0
    L = np.diag(W.sum(axis=1)) - W
    targets = np.eye(2)[Y[known]]
    found = np.linalg.solve(L[~known][:, ~known], W[~known][:, known] @ targets)
    machine = LabelPropagation(KERNEL, neighbors=None).fit(X, Y)
    assert np.allclose(machine.label_distributions_[~known], found, atol=1e-10)
    assert np.array_equal(machine.label_distributions_[known], targets)
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.outside == 0
    with np.errstate(divide="ignore"):
        other = semi_supervised.LabelPropagation(gamma=GAMMA, max_iter=50_000, tol=1e-13)
        other.fit(X, Y)
    assert np.allclose(machine.label_distributions_, other.label_distributions_, atol=1e-8)
    assert np.allclose(machine.predict_proba(X + 0.01), other.predict_proba(X + 0.01), atol=1e-8)


def test_steps_are_those_of_a_walk():
    W, known = weights(), Y >= 0
    P = (W / W.sum(axis=1, keepdims=True))[~known][:, ~known]
    steps = np.linalg.solve(np.eye(len(P)) - P, np.ones(len(P)))
    machine = LabelPropagation(KERNEL, neighbors=None).fit(X, Y)
    assert np.allclose(machine.steps_[~known], steps)
    assert not machine.steps_[known].any()


@pytest.mark.parametrize("alpha", [0.2, 0.9])
def test_spreading_is_the_fixed_point(alpha):
    W = weights()
    root = 1 / np.sqrt(W.sum(axis=1))
    S = root[:, None] * W * root
    F = (1 - alpha) * np.linalg.solve(
        np.eye(len(S)) - alpha * S, np.column_stack([Y == 0, Y == 1]).astype(float)
    )
    machine = LabelSpreading(KERNEL, alpha=alpha, neighbors=None).fit(X, Y)
    assert np.allclose(machine.solution_.value.values, F, atol=1e-12)
    assert np.allclose(machine.label_distributions_, F / F.sum(axis=1, keepdims=True))
    other = semi_supervised.LabelSpreading(gamma=GAMMA, alpha=alpha, max_iter=10_000, tol=1e-14)
    other.fit(X, Y)
    assert np.allclose(machine.label_distributions_, other.label_distributions_, atol=1e-8)
    assert np.allclose(machine.predict_proba(X + 0.01), other.predict_proba(X + 0.01), atol=1e-8)
    assert machine.certificate_.ok


def test_graphs_with_few_edges_and_both_solvers_agree():
    full = LabelPropagation(KERNEL, neighbors=6, weights="kernel").fit(X, Y)
    targets = np.eye(3)[Y][:, :2] * (Y >= 0)[:, None]
    problem = GraphLabels(matrix_gram(sparse.csr_array(weights())), targets, Y >= 0, 1.0)
    for alpha in (1.0, 0.7):
        asked = replace(problem, alpha=alpha)
        one, two = solve(asked, GraphCholesky()), solve(asked, GraphConjugateGradient())
        assert one.status.ok
        assert two.status.ok
        assert np.allclose(one.value.values, two.value.values, atol=1e-8)
        assert certify(asked, one.value).ok
        assert certify(asked, two.value).ok
    assert (full.transduction_ == MOON).mean() > 0.95


def test_wrong_values_are_not_certified():
    problem = LabelPropagation(KERNEL, neighbors=None).fit(X, Y)
    value = problem.solution_.value
    gram = matrix_gram(weights())
    asked = GraphLabels(gram, np.eye(3)[Y][:, :2] * (Y >= 0)[:, None], Y >= 0, 1.0)
    assert certify(asked, value).ok
    free, label = np.flatnonzero(Y < 0)[0], np.flatnonzero(Y >= 0)[0]
    for row, word in ((free, "mean of its neighbours"), (label, "labels")):
        wrong = value.values.copy()
        wrong[row] += 1e-3
        found = certify(asked, GraphValues(wrong, value.steps))
        assert not found.ok
        assert word in found.statement
    assert not certify(asked, GraphValues(value.values, value.steps * 0.1)).ok
    assert not certify(asked, GraphValues(value.values[:-1], value.steps)).ok


def test_harmonic_numbers_lie_between_the_known_ones():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(150, 2))
    y = np.where(rng.random(150) < 0.1, rows @ [1.0, 2.0], np.nan)
    machine = HarmonicRegressor(neighbors=5).fit(rows, y)
    known = y[~np.isnan(y)]
    assert np.array_equal(machine.values_[~np.isnan(y)], known)
    assert machine.values_.min() >= known.min() - 1e-12
    assert machine.values_.max() <= known.max() + 1e-12
    assert machine.certificate_.ok
    new = machine.predict(rng.uniform(size=(20, 2)))
    assert known.min() <= new.min()
    assert new.max() <= known.max()


def test_rows_that_no_label_reaches_are_said():
    rows = np.concatenate([np.arange(10.0), np.arange(100.0, 110.0)])[:, None]
    y = np.full(20, -1)
    y[[0, 5, 9]] = 0, 1, 1
    with pytest.warns(UserWarning, match="10 of 20 rows .10, 11, 12, 13, 14, .* no label"):
        machine = LabelPropagation(neighbors=2).fit(rows, y)
    assert machine.unreached_.tolist() == list(range(10, 20))
    assert np.allclose(machine.label_distributions_[10:], [1 / 3, 2 / 3])
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.unreached == 10
    assert "10 row(s) hang together with no label" in machine.certificate_.statement
    # weights that underflow beside the degrees carry nothing, and are no edge
    with pytest.warns(UserWarning, match="no label"):
        faint = LabelPropagation(Gaussian(5.0), neighbors=None).fit(rows, y)
    assert faint.certificate_.ok
    with pytest.warns(UserWarning, match="no similarity"):
        assert np.allclose(faint.predict_proba([[1e6]]), [[1 / 3, 2 / 3]])


def test_given_graphs_dense_and_sparse_and_strings():
    path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    y = [7, -1, -1, -1, 9]
    expected = np.column_stack([[1, 0.75, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.75, 1]])
    for matrix in (path, sparse.csr_array(path), path + np.diag(np.arange(5.0))):
        machine = LabelPropagation("precomputed", neighbors=None).fit(matrix, y)
        assert np.allclose(machine.label_distributions_, expected)
    assert machine.predict(sparse.csr_array(path[:1])).tolist() == [7]
    words = ["spam spam", "spam eggs", "eggs spam", "ham ham", "ham and ham", "and ham"]
    text = LabelPropagation("spectrum(2)", neighbors=2, unlabelled="?")
    text.fit(words, ["s", "?", "?", "h", "?", "?"])
    assert text.transduction_.tolist() == ["s", "s", "s", "h", "h", "h"]


def test_marks():
    y = np.array([-1, 1, -1, 1] * 5)
    assert LabelPropagation().fit(X[:20], y).classes_.tolist() == [-1, 1]  # two classes, all known
    machine = LabelPropagation(unlabelled=0).fit(X[:20], np.array([0, 1, 2, 0] * 5))
    assert machine.classes_.tolist() == [1, 2]
    with pytest.raises(ValueError, match="no row has a label"):
        LabelPropagation().fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="one class"):
        LabelPropagation().fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        HarmonicRegressor().fit(X, np.full(len(X), np.nan))
    with pytest.raises(ValueError, match="infinity"):
        HarmonicRegressor().fit(X, np.where(Y < 0, np.nan, np.inf))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (LabelPropagation(neighbors=0), "neighbors"),
        (LabelPropagation(neighbors="many"), "neighbors='many' must be 'auto'"),
        (LabelPropagation(neighbors=120), "below the number of rows"),
        (LabelPropagation(weights="one"), "weights"),
        (LabelPropagation(unlabelled=1.5), "unlabelled"),
        (LabelSpreading(alpha=1.0), "LabelPropagation keeps labels"),
        (LabelSpreading(alpha=0.0), "alpha"),
    ],
)
def test_refusals(machine, message):
    with pytest.raises(ParameterError, match=message):
        machine.fit(X, Y)


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match="weights of a graph must not be negative"):
        LabelPropagation(Linear(), neighbors=None).fit(X, Y)
    with pytest.raises(TypeError, match="it is called neighbors"):
        LabelPropagation(n_neighbors=7)


def test_targets_that_are_all_missing_are_named():
    with pytest.raises(ValueError, match="HarmonicRegressor: y contains NaN only"):
        HarmonicRegressor().fit(np.arange(4.0)[:, None], [np.nan] * 4)
