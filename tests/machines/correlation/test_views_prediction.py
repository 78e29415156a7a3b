"""One view from the other through canonical variates: least squares of full and low rank."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse

import mercer
from mercer import CCA, ParameterError
from mercer.kernels import Gaussian, Spectrum

rng = np.random.default_rng(0)
shared = rng.standard_normal((90, 2))
X = shared @ rng.standard_normal((2, 4)) + 0.7 * rng.standard_normal((90, 4)) + 3.0
Y = shared @ rng.standard_normal((2, 3)) + 0.7 * rng.standard_normal((90, 3)) - 1.0
NEW = rng.standard_normal((12, 4)) + 3.0
NEW_Y = rng.standard_normal((12, 3)) - 1.0
GOLDEN = Path(__file__).parents[2] / "files" / "golden" / "CCA.mercer"


def least_squares(A, B, new, s=None):
    s = np.ones(len(A)) if s is None else s
    a, b = np.average(A, axis=0, weights=s), np.average(B, axis=0, weights=s)
    root = np.sqrt(s)[:, None]
    return (new - a) @ np.linalg.lstsq(root * (A - a), root * (B - b), rcond=None)[0] + b


def reduced_rank(A, B, new, rank):
    """The best slopes of this rank where errors are measured by the inverse covariance of B."""
    a, b = A - A.mean(axis=0), B - B.mean(axis=0)
    half = linalg.sqrtm(b.T @ b).real
    slopes = np.linalg.lstsq(a, b, rcond=None)[0]
    _, _, Vt = np.linalg.svd(a @ slopes @ np.linalg.inv(half))
    kept = np.linalg.inv(half) @ Vt[:rank].T @ Vt[:rank] @ half
    return (new - A.mean(axis=0)) @ slopes @ kept + B.mean(axis=0)


@pytest.mark.parametrize("through", ["least_squares", "variates"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_both_views_by_regression_of_reduced_rank(rank, through):
    machine = CCA(rank).fit(X, Y)
    y, x = machine.predict(NEW, through=through), machine.predict_x(NEW_Y, through=through)
    assert_allclose(y, reduced_rank(X, Y, NEW, rank), atol=1e-9)
    assert_allclose(x, reduced_rank(Y, X, NEW_Y, rank), atol=1e-9)
    if rank == 3:
        assert_allclose(y, least_squares(X, Y, NEW), atol=1e-9)
        assert_allclose(x, least_squares(Y, X, NEW_Y), atol=1e-9)


def test_steps_by_hand_with_kernels_and_a_penalty():
    machine = CCA(2, Gaussian(2.0), Gaussian(2.0), penalty=0.05).fit(X, Y)
    u, v = machine.transform(X, Y)
    new_u, new_v = machine.transform(NEW), machine.transform_y(NEW_Y)
    straight, by_way = machine.predict(NEW), machine.predict(NEW, through="variates")
    assert_allclose(straight, least_squares(u, Y, new_u), atol=1e-8)
    assert_allclose(by_way, least_squares(v, Y, least_squares(u, v, new_u)), atol=1e-8)
    assert np.abs(straight - by_way).max() > 1e-3  # a penalty leaves them apart
    assert_allclose(machine.predict_x(NEW_Y), least_squares(v, X, new_v), atol=1e-8)
    back = least_squares(u, X, least_squares(v, u, new_v))
    assert_allclose(machine.predict_x(NEW_Y, through="variates"), back, atol=1e-8)


def test_weights_are_repetition_and_sparse_rows_stay():
    times = rng.integers(0, 3, 90)
    again = np.repeat(np.arange(90), times)
    weighted, repeated = CCA(2).fit(X, Y, times), CCA(2).fit(X[again], Y[again])
    for through in ("least_squares", "variates"):
        assert_allclose(
            weighted.predict_x(NEW_Y, through=through),
            repeated.predict_x(NEW_Y, through=through),
            atol=1e-8,
        )
    thin = CCA(2).fit(sparse.csr_array(X), Y)
    assert_allclose(thin.predict_x(NEW_Y), CCA(2).fit(X, Y).predict_x(NEW_Y), atol=1e-8)


def test_views_without_numbers_are_predicted_by_their_variates():
    K = Gaussian(2.0)(X)
    given = CCA(2, "precomputed", Gaussian(2.0), penalty=0.05).fit(K, Y)
    u, v = given.transform(K), given.transform_y(Y)
    expected = least_squares(v, u, given.transform_y(NEW_Y))
    assert_allclose(given.predict_x(NEW_Y), expected, atol=1e-8)
    assert_allclose(given.predict_x(NEW_Y, through="variates"), expected, atol=1e-8)
    words = ["ab", "abab", "ba", "bbb", "aab", "abba"]
    numbers = np.array([[2.0], [4.0], [2.0], [3.0], [3.0], [4.0]])
    machine = CCA(1, Spectrum(1), "linear", penalty=0.1).fit(words, numbers)
    assert machine.predict_x(numbers).shape == (6, 1)


def test_one_column_refusals_and_old_files():
    flat = CCA(1).fit(X, Y[:, 0])
    assert flat.predict(NEW, through="variates").shape == (12,)
    assert flat.predict_x(NEW_Y[:, 0]).shape == (12, 4)
    with pytest.raises(
        ParameterError, match="through='mean' must be 'least_squares' or 'variates'"
    ):
        flat.predict(NEW, through="mean")
    old = mercer.load(GOLDEN)
    width = old.n_features_in_
    assert len(old.predict(np.zeros((2, width)))) == 2
    with pytest.raises(ValueError, match="fit it again"):
        old.predict(np.zeros((2, width)), through="variates")
