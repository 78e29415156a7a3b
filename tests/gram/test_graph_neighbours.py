"""Nearest neighbours in feature space, against brute force and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from mercer import config
from mercer.backends import available_backends, choose_backend
from mercer.backends.lowering import lower
from mercer.backends.native.neighbor_search import PairedRows, compared_once, is_bounded, tile_error
from mercer.backends.neighbor_order import closeness
from mercer.expression import (
    AbsDist,
    Constant,
    Dot,
    Exp,
    Opaque,
    RowProduct,
    SelfValue,
    SqDist,
    Sqrt,
    Tanh,
)
from mercer.gram import Source
from mercer.gram.graph import neighbours as of_source
from mercer.kernels import (
    AllSubsets,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    exp,
)
from mercer.testing.backend import check_neighbours

BACKENDS = available_backends()


def neighbours(expression, X, count, Y=None):
    if Y is None:
        return of_source(Source(expression, X), count)
    return of_source(Source(expression, Y), count, X)


def brute_force(kernel, X, Y, count):
    """Sort all of k(x, x) + k(y, y) - 2 k(x, y)."""
    columns = X if Y is None else Y
    own = np.diagonal(kernel(X, X))
    other = np.diagonal(kernel(columns, columns))
    squared = own[:, None] + other[None, :] - 2 * kernel(X, columns)
    if Y is None:
        np.fill_diagonal(squared, np.inf)
    index = np.argsort(squared, axis=1, kind="stable")[:, :count]
    return index, np.take_along_axis(squared, index, axis=1)


KERNELS = [
    Linear(),
    3.0 * Linear() + 1.0,
    Gaussian(2.0),
    Gaussian([1.0, 2.0, 0.5, 3.0]),
    Laplacian(2.0),
    Matern(nu=0.5, scale=2.0),
    Matern(nu=1.5, scale=2.0),
    Matern(nu=0.8, scale=2.0),
    RationalQuadratic(scale=2.0),
    Polynomial(3),
    Gaussian(2.0) + Gaussian(0.5),
    Gaussian(2.0) * Polynomial(2),
    Gaussian(2.0).on([0, 1]) + Linear().on([2, 3]),
    Polynomial(2).normalized(),
]


@pytest.mark.parametrize("name", BACKENDS)
def test_conformance(name):
    with config(backend=name):
        check_neighbours(choose_backend())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", BACKENDS)
def test_equals_brute_force(kernel, name):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((150, 4)), rng.standard_normal((230, 4))
    with config(backend=name):
        for columns in (None, Y):
            index, squared = neighbours(kernel.expression(), X, 7, columns)
            expected, distances = brute_force(kernel, X, columns, 7)
            np.testing.assert_array_equal(index, expected)
            np.testing.assert_allclose(squared, distances, atol=1e-12 * distances.max())


@pytest.mark.parametrize("n, d, count", [(1000, 30, 15), (700, 3, 1), (500, 200, 40)])
def test_equals_scikit_learn(n, d, count):
    X = np.random.default_rng(1).standard_normal((n, d))
    index, squared = neighbours(Linear().expression(), X, count)
    distances, expected = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(X).kneighbors()
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(np.sqrt(squared), distances, rtol=1e-10)


def test_far_points_do_not_tie_where_a_gaussian_underflows():
    X = np.array([[0.0], [100.0], [300.0], [250.0]])
    index, squared = neighbours(Gaussian(1.0).expression(), X, 3)
    np.testing.assert_array_equal(index, [[1, 3, 2], [0, 3, 2], [3, 1, 0], [2, 1, 0]])
    np.testing.assert_array_equal(squared, 2.0)


def test_close_points_keep_their_digits():
    rng = np.random.default_rng(2)
    X = 1e6 + 1e-4 * rng.standard_normal((400, 25))
    X[200:] += 1e3  # two far groups: the mean is near neither
    index, _ = neighbours(Linear().expression(), X, 5)
    squared = ((X[:, None] - X[None]) ** 2).sum(-1)
    np.fill_diagonal(squared, np.inf)
    np.testing.assert_array_equal(index, np.argsort(squared, axis=1, kind="stable")[:, :5])


def test_duplicates_and_self():
    X = np.repeat(np.arange(3.0)[:, None], 3, axis=0)
    index, squared = neighbours(Linear().expression(), X, 2)
    np.testing.assert_array_equal(index[3:6], [[4, 5], [3, 5], [3, 4]])
    np.testing.assert_array_equal(squared, 0.0)
    index, squared = neighbours(Linear().expression(), X, 1, X)  # given as Y, a row finds itself
    np.testing.assert_array_equal(index.ravel(), np.repeat([0, 3, 6], 3))


@pytest.mark.parametrize("density", [0.05, 0.6])
def test_sparse_rows_equal_dense_rows(density):
    X = sparse.random_array((300, 50), density=density, format="csr", rng=0)
    for kernel in (Linear(), Gaussian(1.0), Polynomial(2)):
        index, squared = neighbours(kernel.expression(), X, 5)
        expected, distances = neighbours(kernel.expression(), X.toarray(), 5)
        np.testing.assert_allclose(squared, distances, atol=1e-12)
        assert (index == expected).mean() > 0.95  # empty rows are all equally near


def test_opaque_kernels_and_float32_rows():
    X = np.random.default_rng(3).standard_normal((90, 4)).astype(np.float32)
    opaque = Opaque(lambda a, b: np.asarray(a, float) @ np.asarray(b, float).T)
    index, squared = neighbours(opaque, X, 4)
    expected, distances = neighbours(Dot(), X, 4)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(squared, distances, atol=1e-5)
    words = np.array(["kernel", "kernels", "colonel", "spam", "ham"], dtype=object)
    overlap = Opaque(lambda a, b: np.array([[float(len(set(x) & set(y))) for y in b] for x in a]))
    assert neighbours(overlap, words, 1)[0][:, 0].tolist() == [1, 0, 0, 4, 3]


@pytest.mark.parametrize("count", [0, 5, 100])
def test_refuses_more_neighbours_than_there_are(count):
    with pytest.raises(ValueError, match="1 to 4"):
        neighbours(Dot(), np.zeros((5, 2)), count)


@pytest.mark.parametrize("name", BACKENDS)
def test_overflow_is_named(name):
    X = np.array([[1e200], [1.0], [2.0]])
    with config(backend=name), pytest.raises(ValueError, match=r"not finite.*\(0, 1, 2\)"):
        neighbours((Dot() + 1.0) ** 3, X, 2)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 40))
def test_whole_numbers_with_many_ties(seed, n, d):
    X = np.random.default_rng(seed).integers(0, 3, (n, d)).astype(float)
    count = min(n - 1, 7)
    index, squared = neighbours(Gaussian(3.0).expression(), X, count)
    all_squared = ((X[:, None] - X[None]) ** 2).sum(-1)
    np.fill_diagonal(all_squared, np.inf)
    np.testing.assert_array_equal(index, np.argsort(all_squared, axis=1, kind="stable")[:, :count])
    assert (np.diff(squared, axis=1) >= 0).all()


def test_which_orders_are_recognised():
    s = SqDist()
    falling = [
        Exp(-1.0 * s),
        Exp(-2.0 * Sqrt(s)) + 1.0,
        (1.0 + 0.5 * s) ** -2.0,
        Exp(-1.0 * s) * Exp(-0.5 * s),
        -1.0 * s,
        -1.0 * s + 3.0,
    ]
    assert all(closeness(e).key == s for e in falling)
    assert closeness(Exp(-1.0 * AbsDist())).key == AbsDist()
    unknown = [s, Exp(s), Tanh(s), Exp(-1.0 * s) - Exp(-2.0 * s), (s - 1.0) ** -2.0, Constant(1.0)]
    assert not any(closeness(e).key == s for e in unknown)


def test_threads_do_not_change_the_answer():
    X = np.random.default_rng(5).standard_normal((2500, 20))
    for kernel in (Gaussian(3.0), Polynomial(2)):
        found = []
        for threads in (1, 2, 3):
            with config(threads=threads):
                found.append(neighbours(kernel.expression(), X, 12))
        for index, squared in found[1:]:
            np.testing.assert_array_equal(index, found[0][0])
            np.testing.assert_array_equal(squared, found[0][1])


def test_no_rows():
    index, squared = neighbours(Dot(), np.zeros((0, 3)), 2, np.zeros((4, 3)))
    assert index.shape == squared.shape == (0, 2)


# --- keys guessed in float32, decided in float64 ---------------------------------------------

COMPOSED = [
    Polynomial(2),
    Gaussian(3.0) + 0.5 * Polynomial(2),
    Gaussian(3.0).on(range(8)) + Polynomial(3).on(range(8, 20)),
    Gaussian(4.0) * Linear() + 2.0,
    Gaussian(4.0).on([0, 1]) * Gaussian(2.0).on([2, 3]) + 0.1 * Linear(),
    Polynomial(2).normalized(),
]


def rows_of(kind, n=1300, d=20):
    draw = np.random.default_rng(7)
    X = draw.standard_normal((n, d))
    if kind == "whole numbers":
        return np.round(X)
    if kind == "copies":
        return np.repeat(X[: n // 4], 4, axis=0)
    if kind == "one far":
        X[-1] *= 1e4
    return X


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["plain", "whole numbers", "copies", "one far"])
@pytest.mark.parametrize("kernel", COMPOSED, ids=repr)
def test_guesses_do_not_change_the_answer(kernel, kind):
    X, Y = rows_of(kind)[:700], rows_of(kind)
    key = closeness(kernel.expression()).key
    every = np.broadcast_to(np.arange(len(Y)), (len(X), len(Y)))
    keys = PairedRows.of(lower(key), X, Y).at(every, np.arange(len(X)))
    np.testing.assert_allclose(keys, reference_keys(kernel, X, Y), atol=1e-12 * keys.max())
    index, _ = neighbours(kernel.expression(), X, 9, Y)
    expected = np.argsort(keys, axis=1, kind="stable")[:, :9]
    found, best = (np.take_along_axis(keys, each, axis=1) for each in (index, expected))
    rounding = 1e-13 * np.abs(keys).max(axis=1, keepdims=True)
    assert (np.abs(found - best) <= rounding).all()
    told_apart = np.diff(np.sort(keys, axis=1)[:, :10], axis=1).min(axis=1) > rounding[:, 0]
    np.testing.assert_array_equal(index[told_apart], expected[told_apart])
    if kind in ("copies", "whole numbers") and kernel in COMPOSED[:3]:
        np.testing.assert_array_equal(index, expected)  # ties are ties, to the last digit
    among, _ = neighbours(kernel.expression(), Y, 8)
    for i, row in enumerate(expected[told_apart][:, :9]):
        other = row[row != np.flatnonzero(told_apart)[i]][:8]
        np.testing.assert_array_equal(among[np.flatnonzero(told_apart)[i]], other)


def reference_keys(kernel, X, Y):
    return kernel.diag(X)[:, None] + kernel.diag(Y)[None, :] - 2 * kernel(X, Y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("apart", [1e-5, 1e-2, 1e-1])
@pytest.mark.parametrize("kernel", COMPOSED, ids=repr)
def test_rows_that_float32_can_hardly_tell_apart(kernel, apart):
    X = 3.0 + apart * rows_of("plain")
    key = closeness(kernel.expression()).key
    index, squared = neighbours(kernel.expression(), X, 5)
    every = np.broadcast_to(np.arange(len(X)), (len(X), len(X)))
    keys = PairedRows.of(lower(key), X, X).at(every, np.arange(len(X)))
    np.fill_diagonal(keys, np.inf)
    best = np.sort(keys, axis=1)[:, :5]
    largest = kernel.diag(X).max()
    assert np.abs(np.take_along_axis(keys, index, axis=1) - best).max() <= 1e-14 * largest
    np.testing.assert_allclose(squared, np.maximum(best, 0), atol=1e-14 * largest)


_s, _p = SqDist(), Dot()
_cosine = _p * RowProduct(SelfValue(_p, -0.5))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            (0.3 * _p + 1.0) ** 3,
            Exp(-0.3 * _s) + 0.5 * (_p + 1.0) ** 2,
            Exp(-2.0 * _s) * _p - 3.0 * _s,
            (1.0 + 0.5 * _s) ** -2.0 + _p,
            _cosine**2 + Exp(_cosine),
            Tanh(0.1 * _p - 1.0) + _s * _p + 7.0,
            Exp(0.05 * _p) * Exp(-0.1 * _s),
        ]
    ),
    st.integers(0, 10**6),
    st.sampled_from([3, 16, 17, 60]),
    st.sampled_from([0.0, 1.0, 30.0]),
    st.sampled_from([1e-3, 1.0, 4.0]),
)
def test_float32_tiles_keep_their_bound(expression, seed, d, shift, scale):
    draw = np.random.default_rng(seed)
    X, Y = (shift + scale * draw.standard_normal((m, d)) for m in (70, 90))
    if seed % 3 == 0:  # levels of a step
        X, Y = (np.abs(np.round(Z)).astype(np.float32) * np.float32(0.3) for Z in (X, Y))
    every = np.broadcast_to(np.arange(90), (70, 90))
    with np.errstate(all="ignore"):
        exact = PairedRows.of(lower(expression), X, Y).at(every, np.arange(len(X)))
        for form in (expression, compared_once(expression)):
            assert is_bounded(lower(form))
            tile = choose_backend().pairs(form, X, Y, np.float32).rows(slice(0, 70))
            bound = tile_error(lower(form), X, Y)[:, None]
            sure = np.isfinite(np.broadcast_to(bound, tile.shape))
            assert (np.abs(tile - exact) <= bound)[sure].all()


def test_what_has_no_bound():
    for e in (Sqrt(SqDist()), AbsDist(), Opaque(lambda a, b: a @ b.T), (Dot() + 1.0) ** 0.3):
        assert not is_bounded(lower(e))


def test_levels_of_a_rounded_step():
    """Tiles take whole levels for the rows; what that rounds away may decide between columns."""
    draw = np.random.default_rng(0)
    for start, step in ((248, 0.0024599913), (216, 0.0036058957), (200, 0.003)):
        levels = draw.choice([start, start + 1, start + 2], size=(900, 17))
        X = (levels * step).astype(np.float32).astype(np.float64)
        squared = sum((x[:, None] - x[None, :]) ** 2 for x in X.T)
        np.fill_diagonal(squared, np.inf)
        index, found = neighbours(Linear().expression(), X, 5)
        best = np.sort(squared, axis=1)[:, :5]
        np.testing.assert_allclose(found, best, rtol=1e-12)
        np.testing.assert_allclose(np.take_along_axis(squared, index, axis=1), best, rtol=1e-12)


def test_new_points_far_longer_than_all_others_lose_no_digits():
    """k(z, z) is the same in all distances of z: 1e56 beside differences of 1e19."""
    rng = np.random.default_rng(454335)
    X = rng.standard_normal((8, 7))
    Z = 3 * X[:4] + 1
    kernel = exp(Linear()) * AllSubsets()
    index, squared = of_source(Source(kernel.expression(), X), 2, Z)
    key = kernel.diag(X) - 2 * kernel(Z, X)
    np.testing.assert_array_equal(index, np.argsort(key, axis=1)[:, :2])
    assert (squared > 0).all()
