"""Whiten and LogShift: what they promise, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from mercer import LogShift, ParameterError, Whiten

quick = settings(max_examples=25, deadline=None)


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * 3.0 + 50.0


@quick
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), d=st.integers(1, 12))
def test_whitened_covariance_is_one(seed, n, d):
    X = rows(n, d, seed)
    machine = Whiten().fit(X)
    white = machine.transform(X)
    assert machine.rank_ == white.shape[1] == min(n - 1, d)
    assert machine.n_dropped_ == d - machine.rank_
    np.testing.assert_allclose(np.atleast_2d(np.cov(white.T)), np.eye(machine.rank_), atol=1e-10)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(machine.inverse_transform(white), X, rtol=1e-8)
    assert machine.certificate_.ok


@pytest.mark.filterwarnings("ignore:.*differ in scale:UserWarning")
@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e5])
def test_whitening_survives_columns_of_other_sizes(ratio):
    X = rows(200, 4) * [1.0, ratio, 1.0, 1.0 / ratio]
    white = Whiten().fit_transform(X)
    np.testing.assert_allclose(np.cov(white.T), np.eye(4), atol=1e-10)


def test_dependent_columns_are_dropped_and_counted():
    X = rows(50, 3)
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(50, 2.0)])
    machine = Whiten().fit(X)
    assert (machine.rank_, machine.n_dropped_) == (3, 2)
    np.testing.assert_allclose(np.cov(machine.transform(X).T), np.eye(3), atol=1e-10)
    back = Whiten(rotate_back=True).fit(X)
    white = back.transform(X)
    assert white.shape == (50, 5)
    projector = back.whitening_ @ back.coloring_
    covariance = np.cov(white.T)
    np.testing.assert_allclose(covariance @ covariance, covariance, atol=1e-9)
    assert np.trace(covariance) == pytest.approx(3)
    np.testing.assert_allclose(projector, covariance, atol=1e-9)
    np.testing.assert_allclose(back.inverse_transform(white), X, rtol=1e-9)


def test_turning_back_changes_rows_least():
    X = rows(100, 4)
    back = Whiten(rotate_back=True).fit(X)
    np.testing.assert_allclose(np.cov(back.transform(X).T), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(back.whitening_, back.whitening_.T, atol=1e-10)
    turned = Whiten().fit(X)
    centred = X - X.mean(axis=0)
    least = np.square(back.transform(X) - centred).sum()
    assert least <= np.square(turned.transform(X) - centred).sum()
    theirs = decomposition.PCA(whiten=True).fit(X)
    ours = np.abs(turned.transform(X))
    np.testing.assert_allclose(ours, np.abs(theirs.transform(X)), rtol=1e-7, atol=1e-9)


def test_whitening_weights_sparse_rows_and_equal_rows():
    X = rows(30, 3)
    weights = np.arange(30) % 3
    one = Whiten().fit(X, sample_weight=weights)
    two = Whiten().fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(one.transform(X), two.transform(X), rtol=1e-8, atol=1e-9)
    thin = np.where(X > 51, X, 0)
    csr = Whiten().fit(sparse.csr_array(thin))
    np.testing.assert_allclose(
        csr.transform(sparse.csr_array(thin)), csr.transform(thin), atol=1e-9
    )
    np.testing.assert_allclose(np.cov(csr.transform(thin).T), np.eye(3), atol=1e-9)
    flat = Whiten().fit(np.full((4, 2), 0.1))
    assert (flat.rank_, flat.n_dropped_) == (0, 2)
    assert (flat.transform(np.ones((3, 2))) == 0).all()
    np.testing.assert_allclose(flat.inverse_transform(np.zeros((1, 1))), [[0.1, 0.1]])
    assert Whiten().fit(X).get_feature_names_out().tolist() == ["whiten0", "whiten1", "whiten2"]
    with pytest.raises(ParameterError, match="rotate_back=2"):
        Whiten(rotate_back=2).fit(X)


# --- LogShift --------------------------------------------------------------------------------


def test_the_rule_for_shifts():
    X = np.column_stack([[0, 1, 3, 9], [1.0, 2, 3, 4], [-2.0, -1, 0, 7], [5.0, 5, 5, 5]])
    X = np.column_stack([X, np.zeros(4), np.full(4, -3.0)])
    assert LogShift().fit(X).shift_.tolist() == [0.5, 0.0, 2.5, 0.0, 1.0, 4.0]
    assert np.isfinite(LogShift().fit_transform(X)).all()
    tiny = np.array([[-1e16], [-1e16 + 2.0]])
    assert np.isfinite(LogShift().fit_transform(tiny)).all()


@quick
@given(seed=st.integers(0, 10_000))
def test_shifts_and_back(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    machine = LogShift().fit(X)
    logs = machine.transform(X)
    np.testing.assert_allclose(np.exp(logs) - machine.shift_, X, atol=1e-9 * np.abs(X).max())
    np.testing.assert_allclose(machine.inverse_transform(logs), X, atol=1e-9 * np.abs(X).max())
    weights = rng.integers(0, 3, 20)
    weights[0] = 1
    one = LogShift().fit(X, sample_weight=weights).shift_
    two = LogShift().fit(np.repeat(X, weights, axis=0)).shift_
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_given_shifts_and_entries_without_a_logarithm():
    X = [[0.0, 3.0], [2.0, -0.5]]
    found = LogShift([1.0, 2.0]).fit_transform(X)
    np.testing.assert_allclose(found, np.log([[1.0, 5.0], [3.0, 1.5]]))
    with pytest.raises(ValueError, match=r"row 1, column 1, x = -0\.5 and a \+ x = -0\.4"):
        LogShift(0.1).fit(X)
    machine = LogShift().fit(X)
    with pytest.raises(ValueError, match="row 0, column 0"):
        machine.transform([[-5.0, 1.0]])
    for wrong in ("best", np.nan, [[1.0]], True, None, [1.0, 2.0, 3.0]):
        with pytest.raises(ParameterError, match="shift="):
            LogShift(wrong).fit(X)
    chain = make_pipeline(LogShift(), Whiten()).fit(np.abs(rows(30, 3)))
    assert chain.get_feature_names_out().tolist() == ["whiten0", "whiten1", "whiten2"]
    assert LogShift().fit(X).get_feature_names_out().tolist() == ["x0", "x1"]


def test_log_shift_refuses_columns_wider_than_float64():
    with pytest.raises(ValueError, match=r"column 0 .* scale the column"):
        LogShift().fit([[-1e308], [1e308]])


@pytest.mark.numerics
def test_the_certificate_is_true_of_the_whitened_samples():
    X = np.random.default_rng(0).standard_normal((30, 3))
    machine = Whiten().fit(X)
    assert machine.certificate_.quantities.whiteness <= 1e-12
    with pytest.warns(ConvergenceWarning, match="the whitened training samples have mean 0"):
        machine = Whiten().fit(X + 1e12)  # whose mean is known to 1e-4
    measured = machine.certificate_.quantities.whiteness
    assert not machine.certificate_.ok
    assert measured >= 0.9 * np.abs(machine.transform(X + 1e12).mean(axis=0)).max() > 1e-6
