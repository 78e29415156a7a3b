"""What all kernels share: values, parameters, operators, tables, refusals."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from mercer import kernels
from mercer.backends import available_backends
from mercer.kernels import (
    Bilinear,
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
    exp,
    polynomial,
)
from mercer.resources import config

X = np.random.default_rng(7).normal(size=(6, 3))
NAMES = {name: getattr(kernels, name) for name in kernels.__all__}


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def double(block):
    return 2 * block


def first(block):
    return block[:, 0]


# --- algebra as values -----------------------------------------------------------------------

A, B, C = Gaussian(2.0), Linear(), Polynomial(2)


def test_sums_and_products_flatten():
    assert (A + B) + C == A + (B + C)
    assert len((A + B + C).parts) == 3
    assert (A * B) * C == A * (B * C)
    assert 2 * (3 * A) == 6 * A
    assert (2 * A) * (3 * B) == 6 * (A * B) == A * 6 * B
    assert 2 * A == A * 2 == np.float64(2) * A == np.float32(2) * A == np.int64(2) * A
    assert A + 2 == A + Constant(2)
    assert 2 + A == Constant(2) + A
    assert sum([A, B], start=0.0) == Constant(0) + A + B


def test_kernels_are_values():
    assert Gaussian(2) == Gaussian(2.0)
    assert Gaussian(2) != Gaussian(3)
    assert Gaussian(1) != Laplacian(1)
    assert len({Gaussian(2), Gaussian(2.0), 2 * Linear(), Linear() * 2}) == 2
    assert clone(A + B) == A + B
    with pytest.raises(AttributeError):
        Gaussian(2).scale = 3


@pytest.mark.parametrize(
    "kernel",
    [
        A + B + C,
        2.5 * A,
        1.0 * A,
        1 * A * B,
        3 * (A + B),
        (A + B) * C * 2,
        (2 * A) ** 2,
        (A + B) ** 2 + 1,
        2 * A**2 * B,
        (A**2) ** 3,
        exp(A + B) * C,
        polynomial(A, [1, 0, 0.1]) + B,
        (A + B).on([0, 2]),
        A.on("age").on([0]) + B.on(["a b", "it's \\"]),
        (2 * A).normalized().on(slice(0, 6, 2)),
        (A**2).on(1) ** 2,
        A.normalized().normalized(),
        Gaussian([1, 2.5]) * Bilinear([[2, 1], [1, 2]]),
        Matern(np.inf) + Matern(0.1, [1e-17, 1e300]),
        Sigmoid(-1, -2.5) + Constant(0.1 + 0.2),
    ],
    ids=repr,
)
def test_text_reads_back(kernel):
    assert eval(repr(kernel), dict(NAMES)) == kernel
    assert kernels.parse(repr(kernel)) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(pickle.loads(pickle.dumps(kernel))) == hash(kernel)


def test_functions_print_their_names():
    assert repr(A.after(double)).endswith("double)")
    assert "<lambda>" in repr(B.scaled_by(lambda x: x))
    assert repr(B.after(np.square)).endswith("square)") or "ufunc" in repr(B.after(np.square))


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: -1 * A, ValueError, "c=-1 must be .* negative multiple"),
        (lambda: -A, ValueError, "negative multiple"),
        (lambda: A - B, ValueError, "negative multiple"),
        (lambda: np.inf * A, ValueError, "c=inf"),
        (lambda: A * np.nan, ValueError, "c=nan"),
        (lambda: 1e200 * A * 1e200, ValueError, "c=inf"),
        (lambda: A + (-1), ValueError, "value=-1"),
        (lambda: A**0, ValueError, "p=0"),
        (lambda: A**0.5, ValueError, "p=0.5 .* root"),
        (lambda: A**-1, ValueError, "p=-1"),
        (lambda: polynomial(A, [1, -1]), ValueError, "coefficients"),
        (lambda: polynomial(A, []), ValueError, "coefficients"),
        (lambda: polynomial(A, 3), ValueError, "coefficients"),
        (lambda: A + "b", TypeError, "unsupported operand"),
        (lambda: A * [1], TypeError, "multiply|unsupported"),
        (lambda: A + X, TypeError, "support"),
        (lambda: exp(2), TypeError, "a kernel is needed"),
        (lambda: A.after(3), TypeError, "after: phi=3"),
        (lambda: A.scaled_by("f"), TypeError, "scaled_by: f='f'"),
        (lambda: A.on([]), ValueError, "no column"),
        (lambda: A.on(1.5), TypeError, "column 1.5"),
        (lambda: A.on([True, 0.5]), TypeError, "column True"),
        (lambda: A.on(None), TypeError, "column None"),
        (lambda: A.on(np.array(1.5)), TypeError, "column array"),
        (lambda: A.on(slice(1, None)), ValueError, "must have an end"),
        (lambda: A.on(slice(-2, 1)), ValueError, "count forward"),
    ],
)
def test_refusals_say_why(act, error, words):
    with pytest.raises(error, match=words):
        act()


def test_psd_is_inherited():
    bad = Sigmoid()
    for k in (bad + A, bad * A, 2 * bad, bad**2, exp(bad), bad.on(0), bad.normalized(), bad + 1):
        assert not k.psd
    for k in (bad.after(double), bad.scaled_by(first), polynomial(bad, [0, 1])):
        assert not k.psd
    assert exp(A * B + C**2).on([0]).normalized().psd


# --- parameters ------------------------------------------------------------------------------


def test_parameters_by_name():
    k = 0.5 * Gaussian(2.0) + Polynomial(3).on([0, 1])
    assert k.get_params(deep=False) == {"k1": 0.5 * Gaussian(2.0), "k2": Polynomial(3).on([0, 1])}
    params = k.get_params()
    assert params["k1__factor"] == 0.5
    assert params["k1__k1__scale"] == 2.0
    assert params["k2__kernel__degree"] == 3
    assert params["k2__columns"] == (0, 1)
    assert Gaussian(2).get_params() == {"scale": 2.0}


def test_with_params_gives_a_new_kernel():
    k = 0.5 * Gaussian(2.0) + Polynomial(3).on([0, 1])
    changed = k.with_params(k1__k1__scale=7, k2__kernel__degree=1, k2__columns="age", k1__factor=2)
    assert changed == 2 * Gaussian(7) + Polynomial(1).on("age")
    assert k == 0.5 * Gaussian(2.0) + Polynomial(3).on([0, 1])
    assert k.with_params(k2=Linear(), k1=Gaussian(1), k1__scale=3) == Gaussian(3) + Linear()
    assert (A + B).with_params(k1=B + C) == B + C + B
    assert k.with_params() == k


@pytest.mark.parametrize("name", ["nope", "k3", "k1__nope", "k1__k1__scale__x", "parts", "__", ""])
def test_unknown_parameters_are_listed(name):
    k = 0.5 * Gaussian(2.0) + Linear()
    with pytest.raises(ValueError, match=r"no parameter .* it has"):
        k.with_params(**{name: 1})


def test_replaced_parameters_are_checked():
    with pytest.raises(ValueError, match="scale=-1"):
        (A + B).with_params(k1__scale=-1)


# --- values ----------------------------------------------------------------------------------


def test_matrix_of_one_and_two_blocks():
    K = A(X)
    assert K.shape == (6, 6)
    np.testing.assert_allclose(A(X, X[:2]), K[:, :2], rtol=1e-14)
    assert A(X.tolist()).shape == (6, 6)
    assert A(np.arange(6).reshape(3, 2)).dtype == np.float64


def test_blocks_must_be_equally_wide():
    with pytest.raises(ValueError, match="X has 3 features and Y has 2"):
        A(X, X[:, :2])
    with pytest.raises(ValueError, match="two-dimensional"):
        A(X[0])


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_columns_by_name(table):
    frame = table({"age": X[:, 0], "height": X[:, 1], "income": X[:, 2]})
    named, numbered = Gaussian().on(["income", "age"]) + 1, Gaussian().on([2, 0]) + 1
    np.testing.assert_array_equal(named(frame), numbered(X))
    np.testing.assert_array_equal(named(frame, frame), numbered(X, X))
    np.testing.assert_array_equal(named.diag(frame), numbered.diag(X))
    phi = Linear().on("height").features(3)
    np.testing.assert_array_equal(phi(frame), X[:, 1:2])
    with pytest.raises(ValueError, match=r"weight.*age, height, income"):
        Linear().on("weight")(frame)
    with pytest.raises(ValueError, match="no column names"):
        named(X)
    with pytest.raises(ValueError, match="different columns"):
        named(frame, frame[["income", "height", "age"]])


def test_a_table_without_names():
    np.testing.assert_array_equal(A(pd.DataFrame(X)), A(X))


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (1, [1]),
        (np.int64(1), [1]),
        (-1, [2]),
        (slice(0, 2), [0, 1]),
        (np.array([2, 0]), [2, 0]),
        (np.array([True, False, True]), [0, 2]),
        (range(2), [0, 1]),
    ],
)
def test_ways_to_choose_columns(columns, wanted):
    np.testing.assert_array_equal(Linear().on(columns)(X), Linear()(X[:, wanted]))


def test_columns_must_exist():
    with pytest.raises(ValueError, match="column 3, but X has 3 columns"):
        Linear().on(3)(X)


def test_normalized_has_a_diagonal_of_ones_and_zeros():
    Z = X.copy()
    Z[1] = 0.0
    K = Polynomial(2, 0).normalized()(Z)
    np.testing.assert_allclose(np.diagonal(K), [1, 0, 1, 1, 1, 1], rtol=1e-14)
    assert not K[1].any()
