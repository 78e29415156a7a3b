"""Rows of bytes: found where they are, refused where they are not, and exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("mercer._native")

from mercer import _native
from mercer.backends.native.backend import Native
from mercer.expression import AbsDist, Columns, Dot, Exp, SqDist
from mercer.resources import config

GAUSSIAN = Exp(-0.02 * SqDist())


def bind(X, Y=None, expression=None, dtype=np.float32):
    return Native().pairs(SqDist() if expression is None else expression, X, Y, dtype)


def byte_leaves(X, Y=None, expression=None, dtype=np.float32):
    return bind(X, Y, expression, dtype)._core.native.byte_leaves


HERE = byte_leaves(np.ones((64, 32))) == 1
needs_bytes = pytest.mark.skipif(not HERE, reason="this machine has no AVX-512 VNNI")
WAYS = [(name, vnni) for name in _native.instruction_sets() for vnni in "10"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=WAYS, ids="-vnni".join)
def way(request, monkeypatch):
    """Run on each instruction set, with and without products of bytes."""
    monkeypatch.setenv("MERCER_ISA", request.param[0])
    monkeypatch.setenv("MERCER_VNNI", request.param[1])


def squared_distances(U, V):
    U, V = U.astype(np.int64), V.astype(np.int64)
    return (U * U).sum(1)[:, None] + (V * V).sum(1) - 2 * U @ V.T


# --- exact -----------------------------------------------------------------------------------


@needs_bytes
@pytest.mark.parametrize("features", [17, 20, 63, 180, 784, 1025, 8195])
def test_whole_numbers_are_exact(rng, features):
    U, V = rng.integers(0, 256, (203, features)), rng.integers(0, 256, (391, features))
    both = U.astype(np.float32), V.astype(np.float32)
    assert byte_leaves(*both) == 1
    distances, products = squared_distances(U, V), U @ V.T
    np.testing.assert_array_equal(bind(*both).dense(), distances.astype(np.float32))
    np.testing.assert_array_equal(bind(*both, Dot()).dense(), products.astype(np.float32))


@needs_bytes
def test_widest_rows_do_not_overflow():
    U = np.zeros((64, 32768), dtype=np.float32)
    U[1::4], U[2::4], U[3::4] = 255, 128, 127
    assert byte_leaves(U) == 1
    exact = squared_distances(U, U)
    np.testing.assert_array_equal(bind(U).dense(), exact.astype(np.float32))
    U64 = U.astype(np.int64)
    np.testing.assert_array_equal(bind(U, None, Dot()).dense(), (U64 @ U64.T).astype(np.float32))
    assert byte_leaves(np.ones((64, 32769))) == 0


@needs_bytes
@pytest.mark.parametrize("expression", [SqDist(), Dot(), GAUSSIAN])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_more_accurate_than_float32(rng, monkeypatch, expression, kind):
    levels = rng.integers(0, 256, (700, 784)) * (rng.random((700, 784)) < 0.2)
    X = (levels / 255).astype(kind)
    truth = bind(X, None, expression, np.float64).dense()
    errors = []
    for vnni in "10":
        monkeypatch.setenv("MERCER_VNNI", vnni)
        errors.append(np.abs(bind(X, None, expression).dense() - truth).max())
    assert errors[0] < errors[1]


# --- all verbs -------------------------------------------------------------------------------


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("features", [33, 784])
def test_verbs(rng, features):
    X = (rng.integers(0, 256, (700, features)) / 255).astype(np.float32)
    V = rng.standard_normal((700, 5))
    gamma = 1 / features
    pairs = bind(X, None, Exp(-gamma * SqDist()))
    exact = np.exp(-gamma * squared_distances(np.rint(X * 255), np.rint(X * 255)) / 255**2)
    K = pairs.dense()
    np.testing.assert_allclose(K, exact, rtol=3e-6)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1)
    np.testing.assert_allclose(pairs.matmul(V), exact @ V, atol=1e-3)
    np.testing.assert_allclose(pairs.matmul(V[:, 0]), exact @ V[:, 0], atol=1e-3)
    np.testing.assert_allclose(pairs.rows(slice(190, 395)), exact[190:395], rtol=3e-6)
    np.testing.assert_allclose(pairs.rows([699, 3, 3, 200]), exact[[699, 3, 3, 200]], rtol=3e-6)
    cross = bind(X[:100], X[100:], Exp(-gamma * SqDist())).dense()
    np.testing.assert_allclose(cross, exact[:100, 100:], rtol=3e-6)


@pytest.mark.usefixtures("way")
def test_beside_other_leaves(rng):
    X = np.hstack([rng.integers(0, 2, (300, 40)), rng.standard_normal((300, 30))])
    bits, rest = Columns(tuple(range(40))), Columns(tuple(range(40, 70)))
    both = Exp(-0.1 * SqDist(steps=(bits,))) * SqDist(steps=(rest,)) + Dot(steps=(bits,))
    expected = bind(X, None, both, np.float64).dense()
    np.testing.assert_allclose(bind(X, None, both).dense(), expected, rtol=1e-5)


@needs_bytes
def test_each_leaf_decides_for_itself(rng):
    X = np.hstack([rng.integers(0, 2, (300, 40)), rng.standard_normal((300, 30))])
    bits, rest = Columns(tuple(range(40))), Columns(tuple(range(40, 70)))
    assert byte_leaves(X, None, SqDist(steps=(bits,)) * SqDist(steps=(rest,))) == 1
    assert byte_leaves(X, None, SqDist(steps=(bits,)) + Dot(steps=(bits,))) == 2
    assert byte_leaves(X) == 0


def test_threads_do_not_change_results(rng):
    X = rng.integers(0, 256, (5000, 40)).astype(np.float32)
    answers = []
    for threads in (1, 2):
        with config(threads=threads):
            answers.append(bind(X[:, :36], None, GAUSSIAN).rows(slice(0, 500)))
    np.testing.assert_array_equal(*answers)


def test_points_may_change_after_binding(rng):
    X = rng.integers(0, 256, (100, 40)).astype(np.float32)
    pairs = bind(X)
    before = pairs.dense()
    X[:] = 0
    np.testing.assert_array_equal(pairs.dense(), before)


# --- where bytes are found -------------------------------------------------------------------


def images(rng, rows=300, features=50):
    return rng.integers(0, 256, (rows, features)) * (rng.random((rows, features)) < 0.3)


FOUND = {
    "raw": lambda B: B,
    "255th": lambda B: B / 255,
    "256th": lambda B: B / 256,
    "inverse": lambda B: B * np.float32(1 / 255),
    "even levels": lambda B: B // 2 * 2 / 255,
    "bits": lambda B: B > 100,
    "scaled bits": lambda B: (B > 100) / np.sqrt(180),
    "counts": lambda B: B % 7,
    "large": lambda B: B * 1e9,
    "small": lambda B: B * 1e-9,
    "minus zero": lambda B: np.where(B == 0, -0.0, B),
    "zero rows first": lambda B: np.where(np.arange(len(B))[:, None] < 200, 0, B) / 255,
}


@needs_bytes
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", FOUND)
def test_found(rng, name, kind):
    X = FOUND[name](images(rng)).astype(kind)
    for expression in (SqDist(), Dot()):
        assert byte_leaves(X, None, expression) == 1
        assert byte_leaves(X[:100], X[100:], expression) == 1
        truth = bind(X, None, expression, np.float64).dense()
        np.testing.assert_allclose(bind(X, None, expression).dense(), truth, rtol=5e-7)


@needs_bytes
def test_two_sides_share_the_finer_step(rng):
    X, Y = images(rng) // 15 * 10 / 255, images(rng) // 15 * 15 / 255
    assert byte_leaves(X, Y) == 1
    truth = bind(X, Y, None, np.float64).dense()
    np.testing.assert_allclose(bind(X, Y).dense(), truth, rtol=5e-7)
    assert byte_leaves(X, images(rng) / 256) == 0
    assert byte_leaves(images(rng) / 255, 2 * images(rng) / 255) == 0


@needs_bytes
# fixed draws: now and then a step is missed (the next test has one), which costs time, not digits
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    levels=st.integers(1, 255),
    step=st.floats(1e-12, 1e9),
    seed=st.integers(0, 1000),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_any_step_is_found(levels, step, seed, kind):
    U = np.random.default_rng(seed).integers(0, levels + 1, (70, 18))
    X = (U * step).astype(kind)
    if not U.any():
        return
    assert byte_leaves(X) == 1
    truth = bind(X, None, None, np.float64).dense()
    # float32 inputs are off their levels by up to 2^-24 of the largest, in both rows
    slack = 0 if kind == np.float64 else 1e-6 * levels * step * np.sqrt(18 * truth)
    assert (np.abs(bind(X).dense() - truth) <= 3e-7 * truth + slack).all()


def test_a_step_that_is_missed_costs_no_digits():
    X = np.random.default_rng(0).integers(0, 160, (70, 18)) * 635692931.8125
    truth = bind(X, None, None, np.float64).dense()
    assert (np.abs(bind(X).dense() - truth) <= 1e-6 * truth).all()


# --- where they are not ----------------------------------------------------------------------


def spoilt(value):
    def spoil(X):
        X = X / 255
        X[-1, -1] = value
        return X

    return spoil


REFUSED = {
    "negative": spoilt(-1 / 255),
    "NaN": spoilt(np.nan),
    "infinity": spoilt(np.inf),
    "minus infinity": spoilt(-np.inf),
    "level 256": spoilt(256 / 255),
    "between levels": spoilt(100.5 / 255),
    "beside a level": spoilt(100 / 255 * (1 + 1e-6)),
    "huge": spoilt(1e30),
    "tiny": spoilt(1e-30),
    "another value of a level": spoilt(np.float32(100 / 255) * (1 + 2.0**-23)),
    "shifted": lambda X: X / 255 + 0.1,
    "far away": lambda X: X / 255 + 1e6,
    "centred": lambda X: X - 128,
    "too large": lambda X: X * 1e15,
    "too small": lambda X: X * 1e-20,
    "zeros": lambda X: 0 * X,
    "roots": np.sqrt,
    "few features": lambda X: X[:, :16],
    "few rows": lambda X: X[:63],
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(rng, name, kind):
    X = images(rng).astype(np.float64)
    X[0, :3] = 1, 100, 255
    X = REFUSED[name](X).astype(kind)
    assert byte_leaves(X) == 0
    usual = images(rng)[:, : X.shape[1]].astype(kind) / 255
    assert byte_leaves(usual, X) == byte_leaves(X, usual) == (HERE and name == "zeros")
    with np.errstate(all="ignore"):
        truth = bind(X, None, GAUSSIAN, np.float64).dense()
        np.testing.assert_allclose(bind(X, None, GAUSSIAN).dense(), truth, atol=1e-5)


def test_refused_in_the_last_of_many_rows(rng):
    X = images(rng, 9000, 20).astype(np.float32)
    assert byte_leaves(X) == HERE
    X[-1, -1] = 0.3
    with config(threads=2):
        assert byte_leaves(X) == 0


def test_only_dot_products_and_distances_in_float32(rng):
    X = images(rng).astype(np.float32)
    assert byte_leaves(X, dtype=np.float64) == 0
    assert byte_leaves(X, None, AbsDist()) == 0


def test_switched_off(rng, monkeypatch):
    X = images(rng).astype(np.float32)
    for name in _native.instruction_sets():
        monkeypatch.setenv("MERCER_ISA", name)
        assert byte_leaves(X) == (HERE and name == "avx512")
    monkeypatch.delenv("MERCER_ISA")
    monkeypatch.setenv("MERCER_VNNI", "0")
    assert byte_leaves(X) == 0


def test_doubles_a_little_off_the_grid_are_not_taken_for_bytes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (80, 40)).astype(np.float64)
    X[0], X[1] = 255.0, 254.0
    X[X == 255.0] *= 1 + 1e-7
    X[X == 254.0] *= 1 - 1e-7
    found = Native().pairs(SqDist(), X, None, np.float32).dense()[0, 1]
    assert found == pytest.approx(((X[0] - X[1]) ** 2).sum(), rel=1e-5)
