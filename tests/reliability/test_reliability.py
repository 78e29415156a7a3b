"""Bad input, numerical adversaries and large requests: the cases of the reliability study, by id.

After every failure the machine must be exactly as before: unfitted stays unfitted, and a fitted
one keeps predicting the same. No fitted attribute may hold NaN.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import DataConversionWarning
from threadpoolctl import threadpool_limits

import mercer
from mercer import (
    SVC,
    SVR,
    EnclosingBall,
    KernelRidge,
    MemoryBudgetError,
    OneClassSVM,
    ParameterError,
    SolverError,
    Status,
    resources,
)
from mercer import resources as system
from mercer import resources as threading_of_calls
from mercer.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    Spectrum,
)
from mercer.solvers import Cholesky, CholeskyPath, ConjugateGradient

SOURCE = str(Path(mercer.__file__).parents[1])

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
y = np.sin(X[:, 0]) + X[:, 1] ** 2
c = np.where(y > 0.6, "b", "a")
XN = rng.standard_normal((7, 3))

RIDGE, PATH, CLASSIFIER = (
    KernelRidge(kernel=Gaussian(1.0)),
    KernelRidge(penalty="loo"),
    SVC(Gaussian(1.0)),
)
TUBE, NOVELTY, BALL = SVR(Gaussian(1.0)), OneClassSVM(Gaussian(1.0)), EnclosingBall(Gaussian(1.0))
BOTH = pytest.mark.parametrize(
    "machine", [RIDGE, PATH, CLASSIFIER, TUBE], ids=["ridge", "path", "svc", "svr"]
)
ALONE = pytest.mark.parametrize("machine", [NOVELTY, BALL], ids=["novelty", "ball"])
SUPPORT = (SVC, SVR, OneClassSVM, EnclosingBall)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def target_of(machine):
    return c if isinstance(machine, SVC) else y


def decision(machine, rows):
    return getattr(machine, "decision_function", machine.predict)(rows)


def refuses(machine, error, match, *args, **options):
    """Check that a fit fails with these words, and leaves the machine exactly as it was."""
    fresh = clone(machine)
    before = dict(vars(fresh))
    with pytest.raises(error, match=match) as caught:
        fresh.fit(*args, **options)
    assert vars(fresh) == before
    fitted = fit_somehow(machine)
    before, predicted = dict(vars(fitted)), predict_somehow(fitted)
    with pytest.raises(error):
        fitted.fit(*args, **options)
    assert list(vars(fitted)) == list(before)
    assert all(vars(fitted)[name] is before[name] for name in before)
    np.testing.assert_array_equal(predict_somehow(fitted), predicted)
    return str(caught.value)


def fit_somehow(machine):
    """Fit with the machine's own parameters where they are good, then put them (back) in."""
    good = clone(machine).set_params(kernel=Gaussian(1.0))
    good.set_params(**{k: v for k, v in type(machine)().get_params().items() if k != "kernel"})
    good.fit(X, target_of(machine))
    return good.set_params(**machine.get_params(deep=False))


def predict_somehow(machine):
    return decision(machine, XN)


def finite(machine):
    """Check that no fitted attribute holds NaN, nor infinity but for scores, and give it back."""
    solution = vars(machine.solution_.value)
    for name, value in {**vars(machine), **solution}.items():
        if isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f":
            assert not np.isnan(value).any(), name
            assert name in ("loo_scores_", "scores") or np.isfinite(value).all(), name
    return machine


def spoiled(value, row=3, column=1):
    rows = X.copy()
    rows[row, column] = value
    return rows


# --- A: bad input ----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("as_sparse", [False, True])
def test_a1_nan_in_x(machine, as_sparse):
    bad = sparse.csr_array(spoiled(np.nan)) if as_sparse else spoiled(np.nan)
    message = refuses(machine, ValueError, "NaN", bad, target_of(machine))
    assert "1 bad value(s), the first in row 3, column 1" in message
    assert type(machine).__name__ in message
    fitted = clone(machine).fit(X, target_of(machine))
    with pytest.raises(ValueError, match="row 2, column 0"):
        fitted.predict(spoiled(np.nan, 2, 0))


@BOTH
def test_a1_names_the_column_of_a_table(machine):
    frame = pd.DataFrame(spoiled(np.nan), columns=["p", "q", "r"])
    with pytest.raises(ValueError, match=r"row 3, column 1 \('q'\)"):
        clone(machine).fit(frame, target_of(machine))


@BOTH
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_a2_infinity_in_x(machine, value):
    both = spoiled(value)
    both[5, 2] = -value  # sums to NaN
    message = refuses(machine, ValueError, "infinity", both, target_of(machine))
    assert "2 bad value(s), the first in row 3, column 1" in message


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("machine", [RIDGE, PATH], ids=["ridge", "path"])
def test_a2_bad_targets(machine, value):
    bad = y.copy()
    bad[2] = value
    refuses(machine, ValueError, "y contains", X, bad)
    refuses(machine, ValueError, "y contains", X, np.column_stack([y, bad]))
    words = ["ab", "ba", "aa"]
    refuses(clone(machine).set_params(kernel=Spectrum(1)), ValueError, "y contains", words, bad[:3])
    refuses(machine, ValueError, "'b' in row 0 of y is not a number", X, np.array(["b"] * 40))


@BOTH
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a2_a7_bad_weights(machine, value):
    weights = np.ones(40)
    weights[4] = value
    t = target_of(machine)
    message = refuses(machine, ValueError, "sample_weight", X, t, sample_weight=weights)
    assert "entry 4" in message


@BOTH
def test_a3_kernels_that_overflow_are_refused_by_row(machine):
    huge = np.where(np.arange(40)[:, None] % 20 == 7, 1e60, X)
    t = target_of(machine)
    words = r"kernel value not finite: Polynomial.*row\(s\) of X"
    for kernel in (Polynomial(8), Polynomial(8) + Gaussian(1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the spread of columns
            message = refuses(clone(machine).set_params(kernel=kernel), ValueError, words, huge, t)
            assert "7" in message
    fitted = clone(machine).set_params(kernel=Polynomial(8)).fit(X, t)
    with pytest.raises(ValueError, match=r"not finite.*2 new row\(s\) of X \(1, 2\)"):
        fitted.predict(np.array([[1.0, 0, 0], [1e60, 1, 0], [0, 0, -1e60]]))


@BOTH
def test_a3_sigmoid_of_huge_values(machine):
    huge = X * 1e200
    sigmoid = clone(machine).set_params(kernel=Sigmoid())
    if isinstance(machine, KernelRidge) and machine.penalty == "loo":
        sigmoid.set_params(penalty=50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever is said of validity, nothing is NaN
        try:
            fitted = sigmoid.fit(huge, target_of(machine))
        except ValueError as error:
            assert "kernel value not finite" in str(error)
            assert not hasattr(sigmoid, "kernel_")
        else:
            assert np.isfinite(decision(finite(fitted), X)).all()


def test_a3_functions_that_give_nan():
    def spoils(A, B):
        K = A @ B.T
        K[A[:, 0] == X[5, 0]] = np.nan
        return K

    for machine in (RIDGE, CLASSIFIER):
        broken = clone(machine).set_params(kernel=spoils)
        refuses(broken, ValueError, "kernel value not finite.*row", X, target_of(machine))


@BOTH
@pytest.mark.parametrize("shape", [(0, 3), (40, 0)])
def test_a4_no_rows_or_columns(machine, shape):
    t = target_of(machine)[: shape[0]]
    refuses(machine, ValueError, "minimum of|0 sample|0 feature", np.empty(shape), t)


def test_a4_one_row_one_column_two_equal_rows():
    one = finite(KernelRidge(kernel=Gaussian(1.0)).fit(X[:1], y[:1]))
    np.testing.assert_allclose(one.predict(XN), y[0])
    refuses(PATH, ValueError, "n_samples = 1", X[:1], y[:1])
    refuses(CLASSIFIER, ValueError, "one class, 'a'", X[:1], ["a"])
    for machine in (RIDGE, PATH, CLASSIFIER):
        fitted = finite(clone(machine).fit(X[:, :1], target_of(machine)))
        assert np.isfinite(decision(fitted, XN[:, :1])).all()
    equal = np.ones((2, 3))
    for machine in (RIDGE, PATH):
        fitted = finite(clone(machine).fit(equal, [1.0, 3.0]))
        np.testing.assert_allclose(fitted.predict(equal), 2.0)
    undecided = finite(clone(CLASSIFIER).fit(equal, ["a", "b"]))
    assert abs(undecided.decision_function(equal)).max() < 1e-9
    assert undecided.certificate_.ok


def test_a4_one_row_of_weight_two_is_two_rows():
    fitted = finite(clone(PATH).fit(X[:1], y[:1], sample_weight=[2.0]))
    np.testing.assert_allclose(fitted.loo_residuals_, 0.0, atol=1e-12)
    refuses(PATH, ValueError, "n_samples = 1", X[:2], y[:2], sample_weight=[0.0, 1.0])


def test_a5_one_class():
    refuses(CLASSIFIER, ValueError, "only one class, 'a'", X, ["a"] * 40)
    message = refuses(
        CLASSIFIER, ValueError, "only one class", X, c, sample_weight=(c == "b") * 1.0
    )
    assert message.endswith("'b' once rows of weight zero are left out")
    refuses(CLASSIFIER, ValueError, "only one class", X, np.zeros(40), sample_weight=np.ones(40))


def test_a6_labels_come_back_as_they_were():
    sorts = [
        ["no", "yes"],
        [False, True],
        [-1, 1],
        [0, 1],
        [-1, 10**18],
        [-(2**62), 2**62],
        [0.0, 1e18],
        np.array([3, 200], dtype=np.uint8),
        np.array(["x", "longer"], dtype=object),
    ]
    for pair in sorts:
        given = np.asarray(pair)[(c == "b").astype(int)]
        predicted = clone(CLASSIFIER).fit(X, given).predict(X)
        assert predicted.dtype == given.dtype
        assert set(predicted.tolist()) == set(np.asarray(pair).tolist())
        assert (predicted == given).mean() > 0.8


def test_a6_labels_that_are_none():
    refuses(CLASSIFIER, ValueError, "[Cc]ontinuous", X, y)
    refuses(CLASSIFIER, ValueError, "1d array", X, np.column_stack([c, c]))
    refuses(CLASSIFIER, ValueError, "mixes strings", X, [1, "a"] * 20)
    refuses(CLASSIFIER, ValueError, "mixes strings|Unknown label", X, [None, "a"] * 20)
    mixed = np.array([1, "a"] * 20, dtype=object)
    refuses(CLASSIFIER, ValueError, "Unknown label", X, mixed)
    refuses(CLASSIFIER, ValueError, "NaN", X, np.where(c == "a", np.nan, 1.0))
    with pytest.warns(DataConversionWarning, match="column-vector"):
        clone(CLASSIFIER).fit(X, c[:, None])
    refuses(CLASSIFIER, ValueError, "requires y|y cannot be None", X, None)


@BOTH
def test_a7_lengths_and_weights(machine):
    t = target_of(machine)
    refuses(machine, ValueError, "inconsistent", X, t[:-1])
    refuses(machine, ValueError, "39 entries, but X has 40 rows", X, t, sample_weight=np.ones(39))
    refuses(machine, ValueError, "sample_weight must be 1D", X, t, sample_weight=np.ones((40, 1)))
    refuses(machine, ValueError, "all entries of sample_weight", X, t, sample_weight=np.zeros(40))
    refuses(machine, ValueError, "sample_weight must hold numbers", X, t, sample_weight=["a"] * 40)
    words = clone(machine).set_params(kernel=Spectrum(1))
    refuses(words, ValueError, "inconsistent", ["ab", "b", "aa"], t[:2])
    plain, twice = clone(machine).fit(X, t), clone(machine).fit(X, t, sample_weight=1.0)
    np.testing.assert_array_equal(decision(twice, XN), decision(plain, XN))


@BOTH
def test_a8_columns_at_prediction(machine):
    frame = pd.DataFrame(X, columns=["p", "q", "r"])
    fitted = clone(machine).fit(frame, target_of(machine))
    expected = decision(fitted, frame)
    for wrong, words in [
        (frame[["p", "q"]], "missing"),
        (frame.assign(s=1.0), "unseen at fit time"),
        (frame.rename(columns={"q": "Q"}), "unseen at fit time"),
        (frame[["q", "p", "r"]], "same order"),
    ]:
        with pytest.raises(ValueError, match=words):
            fitted.predict(wrong)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(decision(fitted, X), expected)
    plain = clone(machine).fit(X, target_of(machine))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        np.testing.assert_array_equal(decision(plain, frame), expected)
    with pytest.raises(ValueError, match=r"2 features, but .* is expecting 3"):
        plain.predict(X[:, :2])
    with pytest.raises(TypeError, match="fitted to rows of numbers, but X holds strings"):
        plain.predict(["a", "b"])
    np.testing.assert_array_equal(decision(fitted, frame), expected)


@BOTH
@pytest.mark.parametrize(
    "kind",
    ["float16", "float32", "int8", "uint8", "int64", "bool", ">f8", ">i4", "longdouble", "O"],
)
def test_a9_types_of_numbers(machine, kind):
    whole = np.clip(np.round(X * 50), -128, 127)
    whole = np.abs(whole) if kind == "uint8" else whole > 0 if kind == "bool" else whole
    whole[0], t = whole.max(axis=0), target_of(machine)
    given, wide = whole.astype(kind), whole.astype(kind).astype(float)
    kernel = {"kernel": Gaussian(30.0)} if machine.kernel == Gaussian(1.0) else {}
    found = clone(machine).set_params(**kernel).fit(given, t)
    wanted = clone(machine).set_params(**kernel).fit(wide, t)
    tol = 1e-4 if kind == "float32" else 1e-12
    expected = decision(wanted, wide)
    np.testing.assert_allclose(decision(found, given), expected, rtol=tol, atol=tol)


@BOTH
def test_a9_what_is_no_number(machine):
    t = target_of(machine)
    refuses(machine, ValueError, "Complex data not supported", X + 0j, t)
    words = X.astype(object)
    words[4, 2] = "tall"
    message = refuses(machine, ValueError, "'tall' in row 4, column 2 of X", words, t)
    assert "OneHotEncoder" in message
    refuses(machine, ValueError, "'b' in row 0, column 0", np.array([["b"] * 3] * 40), t)
    words[4, 2] = {"a": 1}
    refuses(machine, TypeError, "float", words, t)
    words[4, 2] = None
    refuses(machine, ValueError, "NaN.*row 4, column 2", words, t)
    wide = X.astype(np.longdouble)
    wide[1, 1] = np.longdouble("1e4000")
    if np.finfo(np.longdouble).max > 1e308:
        refuses(machine, ValueError, "infinity.*row 1, column 1", wide, t)
    refuses(machine, ValueError, "2D array", X[:, 0], t)
    refuses(machine, ValueError, "2D array|dim 3", X[:, :, None], t)
    refuses(machine, ValueError, "2D array", np.arange(40).astype(object), t)


@BOTH
def test_a10_layouts(machine):
    t = target_of(machine)
    wide = np.zeros((80, 6))
    wide[::2, ::2] = X
    unaligned = (
        np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    )
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", X)
        mapped = np.load(Path(folder) / "rows.npy", mmap_mode="r")
        layouts = {
            "fortran": np.asfortranarray(X),
            "strided": wide[::2, ::2],
            "backwards": X[::-1].copy()[::-1],
            "unaligned": unaligned,
            "mapped": mapped,
        }
        expected = decision(clone(machine).fit(X, t), XN)
        for name, rows in layouts.items():
            np.testing.assert_array_equal(rows, X)
            writeable = rows.flags.writeable
            found = decision(clone(machine).fit(rows, t), np.asfortranarray(XN))
            np.testing.assert_array_equal(found, expected, err_msg=name)
            np.testing.assert_array_equal(rows, X, err_msg=name)
            assert rows.flags.writeable == writeable
        del mapped, layouts, rows
    constant = np.broadcast_to(np.array([1.0, 2.0, 3.0]), (40, 3))  # zero strides
    copied = decision(clone(machine).fit(constant.copy(), t), XN)
    np.testing.assert_array_equal(decision(clone(machine).fit(constant, t), XN), copied)
    overlapping = np.lib.stride_tricks.as_strided(np.arange(80.0), (40, 3), (8, 8))
    scaled = clone(machine).set_params(kernel=Gaussian(20.0))
    copied = decision(clone(scaled).fit(overlapping.copy(), t), XN)
    np.testing.assert_array_equal(decision(scaled.fit(overlapping, t), XN), copied)


def sparse_kinds(rows):
    yield from (kind(rows) for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array))
    yield from (kind(rows) for kind in (sparse.csr_matrix, sparse.bsr_array, sparse.lil_array))
    wide = sparse.csr_array(rows)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield wide
    yield unsorted(rows)
    split = sparse.coo_array(rows)  # every entry in two halves
    halves = [np.tile(part, 2) for part in (split.data / 2, *split.coords)]
    yield sparse.coo_array((halves[0], tuple(halves[1:])), shape=rows.shape)
    full = sparse.csr_array(np.where(rows == 0, 5.0, rows))
    full.data[full.data == 5.0] = 0.0  # explicit zeros
    yield full


def unsorted(rows):
    csr = sparse.csr_array(rows)
    for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        csr.indices[a:b], csr.data[a:b] = csr.indices[a:b][::-1].copy(), csr.data[a:b][::-1].copy()
    csr.has_sorted_indices = False
    return csr


@BOTH
def test_a11_sparse_formats(machine):
    thin = np.where(np.abs(X) > 0.6, X, 0.0)
    thin[4] = 0.0  # an empty row
    t, tight = target_of(machine), {"tol": 1e-11} if isinstance(machine, SVC) else {}
    expected = decision(clone(machine).set_params(**tight).fit(thin, t), thin)
    for rows in sparse_kinds(thin):
        before = {name: getattr(rows, name, None) for name in ("data", "indices", "indptr")}
        copies = {name: np.copy(part) for name, part in before.items()}
        fitted = clone(machine).set_params(**tight).fit(rows, t)
        for new in (thin, rows):
            found = decision(fitted, new)
            tol = 1e-12 if isinstance(machine, KernelRidge) else 1e-9
            np.testing.assert_allclose(found, expected, rtol=tol, atol=tol, err_msg=repr(rows))
        for name, part in before.items():
            np.testing.assert_array_equal(part, copies[name], err_msg=f"{rows!r} was written to")
    bad = sparse.coo_array(thin)
    bad.data[3] = np.nan
    refuses(machine, ValueError, "NaN.*row [0-9]+, column", bad, t)


@BOTH
def test_a12_tables(machine):
    t, names = target_of(machine), ["p", "q", "r"]
    whole = np.round(X * 4)
    frame = pd.DataFrame(whole, columns=names)
    expected = decision(clone(machine).fit(whole, t), whole)
    tables = {
        "float": frame,
        "nullable": frame.astype("Float64"),
        "integers": frame.astype("Int64"),
        "arrow": frame.astype("double[pyarrow]"),
        "mixed": frame.astype({"p": "Int16", "q": "float64", "r": "int8[pyarrow]"}),
        "categories of numbers": frame.astype({"p": pd.CategoricalDtype(np.unique(whole[:, 0]))}),
        "polars": pl.DataFrame(dict(zip(names, whole.T, strict=True))),
        "pyarrow": pa.table(frame),
    }
    for name, table in tables.items():
        fitted = clone(machine).fit(table, t)
        np.testing.assert_allclose(decision(fitted, table), expected, atol=1e-12, err_msg=name)
        assert fitted.feature_names_in_.tolist() == names, name


@BOTH
def test_a12_tables_that_cannot_be_used(machine):
    t = target_of(machine)
    frame = pd.DataFrame(X, columns=["p", "q", "r"])
    twins = frame.set_axis(["p", "p", "r"], axis=1)
    for table in (twins, pa.table(list(X.T), names=["p", "p", "r"])):
        refuses(machine, ValueError, "X has 2 columns named 'p'; rename", table, t)
    missing = frame.astype("Float64")
    missing.iloc[3, 1] = pd.NA
    for table in (
        missing,
        missing.astype("double[pyarrow]"),
        pl.DataFrame(missing.to_dict("list")),
    ):
        refuses(machine, ValueError, r"NaN.*row 3, column 1 \('q'\)", table, t)
    words = frame.assign(q=pd.Categorical(["u", "v"] * 20))
    refuses(machine, ValueError, "'u' in row 0, column 1 of X is not a number", words, t)
    pola = pl.DataFrame({"p": X[:, 0], "q": ["u", "v"] * 20})
    refuses(machine, ValueError, "'u' in row 0, column 1 of X is not a number", pola, t)


@pytest.mark.parametrize(
    "machine", [KernelRidge(kernel="gaussian"), KernelRidge("loo", kernel="gaussian"), SVC()]
)
@pytest.mark.parametrize("value", [0.0, -4.0, 1e6])
def test_a13_constant_features(machine, value):
    with pytest.warns(UserWarning, match="all entries of X are equal"):
        fitted = finite(clone(machine).fit(np.full((40, 3), value), target_of(machine)))
    assert np.isfinite(decision(fitted, XN)).all()
    assert fitted.kernel_ == Gaussian(np.sqrt(0.5))  # gamma = 1
    if isinstance(machine, KernelRidge):
        np.testing.assert_allclose(fitted.predict(np.full((2, 3), value)), y.mean())


@BOTH
def test_a13_one_constant_column(machine):
    rows = X.copy()
    rows[:, 1] = 4.0
    for kernel in ("gaussian", "linear", "polynomial"):
        finite(clone(machine).set_params(kernel=kernel).fit(rows, target_of(machine)))
    zero = np.zeros((40, 3))
    fitted = finite(clone(machine).set_params(kernel="linear").fit(zero, target_of(machine)))
    assert np.ptp(decision(fitted, XN)) == 0


@pytest.mark.parametrize(
    ("machine", "bad"),
    [
        (machine, {name: value})
        for machine, names in [
            (RIDGE, {"penalty": [-1.0, np.nan, np.inf, "cv", None, True, [], [1.0, -1.0], [[1.0]]],
                     "bias": ["yes", None, 1], "solver": ["cholesky", Cholesky],
                     "time_limit": [0, -1, "1 s", np.nan], "callback": [3, "print"]}),
            (PATH, {"penalties": [[], [0.0, 1.0], [-1.0], [np.nan], "many", 1j]}),
            (CLASSIFIER, {"C": [0, -1.0, np.nan, "1", None, True, [], [[1.0]], [1.0, 0.0]],
                          "slack": ["L1", None, 1], "nu": [0, 1.5, -0.1, np.nan, "0.5", True],
                          "multiclass": ["one", None], "probability": ["yes", None],
                          "class_weight": ["even", 3, {"a": 0.0}, {"a": np.inf}, {"a": "b"}],
                          "criterion": ["kkt", None], "warm_start": [1, "no"],
                          "tol": [0, -1e-3, np.nan], "max_iter": [0, -1, 1.5, True, "10"],
                          "time_limit": [0, -2.0], "callback": [0]}),
            (TUBE, {"C": [0, np.nan], "epsilon": [-0.1, np.nan, np.inf, "a", None],
                    "tube": ["l3"], "nu": [0, 2.0]}),
            (NOVELTY, {"nu": [0, 1.1, None, "a"], "tol": [0], "criterion": ["none"]}),
            (BALL, {"nu": [-0.1, 1.1, None], "max_iter": [0]}),
        ]
        for name, values in names.items()
        for value in values
    ],
    ids=repr,
)  # fmt: skip
def test_a14_parameters(machine, bad):
    name, wrong = next(iter(bad)), clone(machine).set_params(**bad)
    far = np.empty((10**9, 0))  # refused before the data is even looked at
    with pytest.raises(ParameterError, match=rf"{type(machine).__name__}: {name}=.* must be"):
        wrong.fit(far, target_of(machine))
    refuses(wrong, ParameterError, f"{name}=", X, target_of(machine))


def test_a14_parameters_seen_beside_the_data():
    message = refuses(
        KernelRidge(kernel=Gaussian(1.0), penalty=[1.0, 2.0]), ParameterError, "penalty=", X, y
    )
    assert "one number or 1, one per target" in message
    refuses(SVC(None), TypeError, "kernel=None must be", X, c)
    refuses(SVC("gausian"), ValueError, "gausian", X, c)
    refuses(SVC(Gaussian), TypeError, r"pass a kernel: Gaussian\(\)", X, c)
    scales = SVC(Gaussian([1.0, 2.0]))
    refuses(scales, ValueError, "2 scales, one per feature, but X has 3", X, c)
    for make in (lambda: Gaussian(-1.0), lambda: Gaussian(0.0), lambda: Polynomial(-1)):
        with pytest.raises(ValueError, match="must be"):
            make()
    iterative = KernelRidge(kernel=Gaussian(1.0), solver=CholeskyPath())
    refuses(iterative, SolverError, "RidgePath problems, not LinearSystem", X, y)


@ALONE
def test_a1_to_a9_rows_without_targets(machine):
    message = refuses(machine, ValueError, "NaN", spoiled(np.nan))
    assert "1 bad value(s), the first in row 3, column 1" in message
    refuses(machine, ValueError, "infinity", sparse.csr_array(spoiled(np.inf)))
    refuses(machine, ValueError, "minimum of|0 sample", np.empty((0, 3)))
    refuses(machine, ValueError, "2D array", X[:, 0])
    refuses(machine, ValueError, "39 entries, but X has 40", X, sample_weight=np.ones(39))
    refuses(machine, ValueError, "entry 4", X, sample_weight=np.where(np.arange(40) == 4, -1.0, 1))
    refuses(machine, ValueError, "all entries of sample_weight", X, sample_weight=np.zeros(40))
    words = X.astype(object)
    words[4, 2] = "tall"
    refuses(machine, ValueError, "'tall' in row 4, column 2 of X", words)
    frame = pd.DataFrame(X, columns=["p", "q", "r"])
    fitted = clone(machine).fit(frame)
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame[["q", "p", "r"]])
    with pytest.raises(ValueError, match=r"row 2, column 0 \('p'\)"):
        fitted.predict(pd.DataFrame(spoiled(np.nan, 2, 0), columns=["p", "q", "r"]))
    one = finite(clone(machine).fit(X[:1]))
    assert np.isfinite(decision(one, XN)).all()


def test_a14_shares_that_no_answer_has():
    uneven = np.where(np.arange(40) < 4, "a", "b")
    message = refuses(SVC(nu=0.5), ValueError, "nu=0.5 is infeasible", X, uneven)
    assert "at most 0.2" in message
    refuses(SVC(C=np.ones(39)), ParameterError, "C=.*one entry for each of the 40 rows", X, c)
    refuses(SVR(nu=0.5, C=np.inf), ParameterError, "C=inf must be finite beside nu", X, y)
    with pytest.raises(ValueError, match="label 'x', but the classes of y are 'a', 'b'"):
        SVC(class_weight={"x": 2.0}).fit(X, c)


@pytest.mark.parametrize(
    "base", [RIDGE, KernelRidge(penalty="loo"), CLASSIFIER, TUBE], ids=["r", "p", "c", "t"]
)
def test_a15_precomputed_matrices(base):
    machine, t, K = clone(base).set_params(kernel=Precomputed()), target_of(base), Gaussian(1.0)(X)
    if isinstance(machine, SVC | SVR):  # what dust does to an answer, not to the way there
        machine.set_params(tol=1e-9)
    expected = decision(clone(machine).fit(K, t), Gaussian(1.0)(XN, X))
    dust = K.copy()
    dust[1, 2] += 1e-12
    np.testing.assert_allclose(
        decision(clone(machine).fit(dust, t), Gaussian(1.0)(XN, X)), expected, atol=1e-6
    )
    crooked = K.copy()
    crooked[1, 2] += 1e-3
    refuses(machine, ValueError, r"not symmetric: entries \((1, 2|2, 1)\)", crooked, t)
    spoilt = K.copy()
    spoilt[3, 3] = np.nan
    refuses(machine, ValueError, "NaN.*row 3, column 3", spoilt, t)
    refuses(machine, ValueError, "square matrix of training points", K[:, :-1], t)
    refuses(machine, (TypeError, ValueError), "[Ss]parse", sparse.csr_array(K), t)
    fitted = clone(machine).fit(K, t)
    with pytest.raises(
        ValueError, match=r"shape \(n_new, 40\), not \(40, 7\). It looks transposed"
    ):
        fitted.predict(Gaussian(1.0)(X, XN))
    with pytest.raises(ValueError, match=r"new points \(rows\) against all training"):
        fitted.predict(K[:, :39])
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(spoilt)
    np.testing.assert_array_equal(K, Gaussian(1.0)(X))


@pytest.mark.parametrize("base", [RIDGE, CLASSIFIER], ids=["ridge", "svc"])
def test_a15_weights_zero_leave_columns_of_new_matrices_alone(base):
    machine, t, K = clone(base).set_params(kernel=Precomputed()), target_of(base), Gaussian(1.0)(X)
    weights = (np.arange(40) % 4 > 0).astype(float)
    kept = np.flatnonzero(weights)
    part = clone(machine).fit(K[np.ix_(kept, kept)], t[kept])
    whole = clone(machine).fit(K, t, sample_weight=weights)
    KN = Gaussian(1.0)(XN, X)
    np.testing.assert_allclose(decision(whole, KN), decision(part, KN[:, kept]), atol=1e-9)


# --- B: numerical adversaries ----------------------------------------------------------------


def ends(machine, rows, t, seconds=10.0):
    """Check that a fit ends within some processor time, finite, and that a second is the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said is in the status
        start = time.process_time()
        first = finite_answer(clone(machine).fit(rows, t))
        assert time.process_time() - start < seconds
        second = clone(machine).fit(rows, t)
    np.testing.assert_array_equal(decision(first, rows), decision(second, rows))
    assert first.solution_.status is second.solution_.status
    return first


def finite_answer(machine):
    assert np.isfinite(machine.dual_coef_).all()
    assert np.isfinite(machine.intercept_).all()
    return machine


def polynomial(degree, gamma, offset):
    return gamma**degree * Polynomial(degree, offset=offset / gamma)


def test_b1_two_rows_far_from_the_origin():
    rows = np.array([[1.0, 99999.0], [2.0, 99999.0]])
    machine = ends(SVC(polynomial(2, 0.5, 0.0)), rows, [0, 1])
    assert machine.predict(rows).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("C", "degree", "gamma"),
    [
        (0.6652997139930452, 7, 4178.386000737241),
        (1.2346990434544882, 7, 4317.581190465473),
        (0.8156943235551155, 8, 864.1583649816441),
    ],
)
def test_b1_polynomials_of_high_degree(C, degree, gamma):
    rows, t = load_iris(return_X_y=True)
    machine = ends(SVC(polynomial(degree, gamma, 0.0), C=C), rows, t, 10.0)
    assert machine.score(rows, t) > 0.9


def test_b1_six_rows_and_nu():
    rows = np.zeros((6, 13))
    rows[:, 9] = [0.31865753, 0.59230137, 0.31778082, 0.36430137, 0.33638356, 0.31843836]
    rows[[0, 5], 2], rows[[0, 5], 5], rows[[0, 5], 6] = 0.3, 1.0, 0.625
    rows[1, [5, 6, 10, 12]] = [0.33333333, 0.61538462, 1.0, 1.0]
    rows[3, [0, 3, 4, 5, 7, 8]] = [0.66666667, 0.5, 1.0, 0.8, 1.0, 0.5625]
    rows[[2, 4], 10] = 1.0
    t = np.array([False, True, True, False, True, False])
    machine = ends(SVC(polynomial(3, 1 / 13, 10.0), nu=2 / 7, probability=True), rows, t)
    assert (machine.predict(rows) == t).all()


def test_b2_an_unscaled_polynomial():
    """Rows of very different sizes, degree 4, C = 100: LIBSVM of 2011 does not end here."""
    rows, t = load_breast_cancer(return_X_y=True)
    kernel = polynomial(4, 1 / (rows.shape[1] * rows.var()), 0.0)
    machine = ends(SVC(kernel, C=100.0), rows, t, 30.0)
    assert machine.score(rows, t) > 0.9
    assert machine.certificate_.quantities.gap >= 0
    assert np.isfinite(machine.certificate_.quantities.relative_gap)


@pytest.mark.parametrize("C", [1e12, 1e300, np.inf])
def test_b3_huge_costs(C):
    apart = X + 3.0 * np.sign(X[:, :1]) * np.array([1.0, 0.0, 0.0])
    t = X[:, 0] > 0
    machine = ends(SVC(Linear(), C=C), apart, t)
    assert machine.solution_.status is Status.SOLVED
    assert machine.score(apart, t) == 1
    hard = SVC(Linear(), C=1e5, tol=1e-6).fit(apart, t)
    np.testing.assert_allclose(machine.coef_, hard.coef_, rtol=1e-2, atol=1e-3)
    mixed = ends(SVC(Linear(), C=C, max_iter=10**6), X, np.arange(40) % 2, 20.0)
    assert mixed.solution_.status is (Status.SOLVED if np.isfinite(C) else Status.INFEASIBLE)
    assert np.isfinite(mixed.decision_function(XN)).all()


def test_b4_tiny_costs_and_wide_tubes():
    machine = finite_answer(SVC(Gaussian(1.0), C=1e-12).fit(X, c))
    assert np.ptp(machine.decision_function(XN)) < 1e-9
    assert machine.certificate_.ok
    tube = SVR(Gaussian(1.0), epsilon=1e3).fit(X, y)
    assert len(tube.support_) == 0
    assert np.ptp(tube.predict(XN)) == 0
    assert tube.certificate_.ok
    nobody = SVR(Linear(), epsilon=1e3).fit(X, y)
    np.testing.assert_array_equal(nobody.coef_, 0.0)


def test_b5_every_row_a_thousand_times():
    for machine in (SVC(Gaussian(1.0)), SVR(Gaussian(1.0)), SVC(Gaussian(1.0), slack="l2")):
        t = target_of(machine)
        weighted = clone(machine).fit(X, t, sample_weight=np.full(40, 1000.0))
        repeated = clone(machine).fit(np.repeat(X, 1000, axis=0), np.repeat(t, 1000))
        np.testing.assert_array_equal(decision(weighted, XN), decision(repeated, XN))
        assert len(repeated.support_) == 1000 * len(weighted.support_)


def test_b5_contradictory_labels_on_equal_rows():
    rows, t = np.vstack([X, X]), np.repeat(["a", "b"], 40)
    machine = finite_answer(SVC(Gaussian(1.0), C=2.0).fit(rows, t))
    np.testing.assert_allclose(np.abs(machine.dual_coef_), 2.0)  # all at their bound
    assert np.abs(machine.decision_function(rows)).max() < 1e-9


@pytest.mark.parametrize("machine", [CLASSIFIER, TUBE, NOVELTY], ids=["svc", "svr", "novelty"])
def test_b6_indefinite_kernels_end_and_say_so(machine):
    draw = np.random.default_rng(3)
    K = draw.standard_normal((40, 40))
    K = K + K.T
    for kernel, rows in ((Sigmoid(slope=1.0, offset=-1.0), X), (Precomputed(), K)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = clone(machine).set_params(kernel=kernel).fit(rows, target_of(machine))
        assert np.isfinite(decision(fitted, rows)).all()
        assert fitted.solution_.status is Status.NOT_CONVEX
        assert any("curvature -" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0)], ids=repr)
def test_b7_far_from_the_origin(kernel, kind):
    far = (1e8 + 8 * rng.standard_normal((60, 3))).astype(kind)
    K = kernel(far)
    assert K.dtype == kind
    assert (K.diagonal() == 1).all()
    np.testing.assert_array_equal(K, K.T)
    assert K.min() >= 0
    assert K.max() <= 1
    assert np.linalg.eigvalsh(K.astype(float)).min() >= -60 * np.finfo(kind).eps * 10
    near = far.astype(float) - 1e8  # exact
    np.testing.assert_allclose(K, kernel(near), atol=1e-12 if kind is np.float64 else 1e-6)


@BOTH
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_b7_machines_far_from_the_origin(machine, kind):
    scaled = clone(machine).set_params(kernel=Gaussian(8.0))
    if isinstance(machine, SVC):
        scaled.set_params(tol=1e-9)
    far = (1e8 + 8 * np.round(8 * X)).astype(kind)
    new = (1e8 + 8 * np.round(8 * XN)).astype(kind)
    shifted = finite(clone(scaled).fit(far, target_of(machine)))
    plain = clone(scaled).fit(far.astype(float) - 1e8, target_of(machine))
    expected = decision(plain, new.astype(float) - 1e8)
    tol = 1e-7 if kind is np.float64 else 1e-4
    np.testing.assert_allclose(decision(shifted, new), expected, rtol=tol, atol=tol)
    assert shifted.certificate_.ok


@BOTH
def test_b8_columns_of_all_sizes(machine):
    sizes = X * np.array([1e-150, 1.0, 1e150])
    t = target_of(machine)
    for kernel in (Gaussian(1.0), Gaussian(1e150), "gaussian", Laplacian(1e150), "laplacian"):
        with pytest.warns(UserWarning, match=r"differ in scale by a factor of 10\^30\d"):
            fitted = finite(clone(machine).set_params(kernel=kernel).fit(sizes, t))
        assert np.isfinite(decision(fitted, sizes)).all()
        K = fitted.kernel_(sizes)
        assert np.isfinite(K).all()
        assert (K.diagonal() == 1).all()


@BOTH
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_b8_denormals_and_signed_zeros(machine, kind):
    t = target_of(machine)
    zeros = np.where(np.abs(X) < 0.5, 0.0, X).astype(kind)
    minus = np.where(zeros == 0, -0.0, zeros).astype(kind)
    plus, negative = clone(machine).fit(zeros, t), clone(machine).fit(minus, t)
    np.testing.assert_array_equal(decision(plus, zeros), decision(negative, minus))
    tiny = np.where(np.abs(X) < 0.5, np.finfo(kind).smallest_subnormal, X).astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = finite(clone(machine).fit(tiny, t))
    np.testing.assert_allclose(decision(fitted, tiny), decision(plus, zeros), atol=1e-4)
    flat = np.full((40, 3), np.finfo(kind).smallest_subnormal) * (X > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        finite(clone(machine).set_params(kernel=Gaussian(1.0)).fit(flat.astype(kind), t))


@BOTH
def test_b8_huge_values(machine):
    huge = 1.7e308 * np.sign(X)
    fitted = finite(clone(machine).set_params(kernel=Gaussian(1.0)).fit(huge, target_of(machine)))
    assert np.isfinite(decision(fitted, huge)).all()


@pytest.mark.parametrize("size", [1e-300, 1e150, 1e300])
@pytest.mark.parametrize(
    "machine", [RIDGE, KernelRidge(), PATH, KernelRidge("loo", kernel=Gaussian(1.0))]
)
def test_b8_huge_and_tiny_targets(machine, size):
    plain, scaled = clone(machine).fit(X, y), finite(clone(machine).fit(X, size * y))
    np.testing.assert_allclose(scaled.predict(XN) / size, plain.predict(XN), rtol=1e-8)
    assert scaled.penalty_ == plain.penalty_
    assert scaled.certificate_.ok


DOUBLED, TWICE = np.vstack([X, X]), np.append(y, y)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 1e-300, 1e-25])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)], ids=repr)
def test_b9_no_penalty_with_duplicates(kernel, penalty, bias):
    """The answer is the limit of a vanishing penalty: least squares, and of those least norm."""
    targets = np.column_stack([TWICE, TWICE + np.repeat([0.0, 1.0], 40)])
    # features of full rank have one best fit, whatever is repeated; beside a bias, the constant
    # feature of a polynomial is one too many
    alone = kernel == Linear() or (kernel == Polynomial(2) and not bias)
    warned = nullcontext() if alone else pytest.warns(LinAlgWarning, match="least norm")
    with warned:
        fitted = finite(KernelRidge(penalty, kernel=kernel, bias=bias).fit(DOUBLED, targets))
    assert fitted.solution_.status is (Status.SOLVED if alone else Status.SINGULAR)
    with warnings.catch_warnings():  # K + 1e-10 is nearly singular: its residual says so
        warnings.filterwarnings("ignore", message="KernelRidge: stopped making progress")
        limit = KernelRidge(1e-10, kernel=kernel, bias=bias).fit(DOUBLED, targets)
    np.testing.assert_allclose(fitted.predict(X), limit.predict(X), atol=1e-4)
    np.testing.assert_allclose(fitted.predict(XN), limit.predict(XN), atol=1e-3)
    if isinstance(kernel, Gaussian):  # contradictory copies: half way, and the residual says so
        np.testing.assert_allclose(fitted.predict(X), np.column_stack([y, y + 0.5]), atol=1e-8)
        assert not fitted.certificate_.ok
        assert fitted.certificate_.quantities.residual == pytest.approx(np.sqrt(80) / 2)
    else:
        assert fitted.certificate_.ok


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_b9_weights_mean_repetition_without_penalty(kernel):
    rows, targets = np.vstack([X, X]), np.append(y, y + 1)
    weights = np.append(np.full(40, 3.0), np.ones(40))
    index = np.repeat(np.arange(80), weights.astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        weighted = KernelRidge(0.0, kernel=kernel).fit(rows, targets, sample_weight=weights)
        repeated = KernelRidge(0.0, kernel=kernel).fit(rows[index], targets[index])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)
    if kernel == Gaussian(1.0):
        np.testing.assert_allclose(weighted.predict(X), y + 0.25, atol=1e-8)


def test_b9_no_penalty_and_only_the_bias_can_fit():
    with pytest.warns(LinAlgWarning):
        fitted = finite(
            KernelRidge(0.0, kernel=Precomputed()).fit(np.zeros((4, 4)), [1.0, 2.0, 3.0, 6.0])
        )
    assert fitted.intercept_ == pytest.approx(3.0)
    ones = np.ones((4, 4))  # the constant is what the kernel has already
    with pytest.warns(LinAlgWarning):
        fitted = finite(KernelRidge(0.0, kernel=Precomputed()).fit(ones, [1.0, 2.0, 3.0, 6.0]))
    np.testing.assert_allclose(fitted.predict(ones), 3.0)


def test_b9_no_penalty_where_the_matrix_is_regular_interpolates():
    fitted = finite(KernelRidge(0.0, kernel=Gaussian(0.3)).fit(X, y))
    assert fitted.solution_.status is Status.SOLVED
    np.testing.assert_allclose(fitted.predict(X), y, atol=1e-8)
    assert fitted.certificate_.ok


def test_b9_a_penalty_for_each_target():
    targets = np.column_stack([TWICE, TWICE, TWICE])
    with pytest.warns(LinAlgWarning):
        fitted = finite(KernelRidge([0.0, 1e-300, 1.0], kernel=Gaussian(1.0)).fit(DOUBLED, targets))
    np.testing.assert_allclose(fitted.predict(X)[:, :2], np.column_stack([y, y]), atol=1e-8)
    alone = KernelRidge(1.0, kernel=Gaussian(1.0)).fit(DOUBLED, TWICE)
    np.testing.assert_allclose(fitted.predict(XN)[:, 2], alone.predict(XN))
    refuses(KernelRidge(penalty=[1.0, 1.0]), ParameterError, "3, one per target", DOUBLED, targets)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_b9_paths_with_tiny_penalties(kernel):
    usable = KernelRidge("loo", kernel=kernel, penalties=[1e-300, 1e-25, 0.1, 1.0])
    finite(usable.fit(DOUBLED, TWICE))
    assert usable.certificate_.ok
    if kernel == Linear():
        return
    hopeless = KernelRidge("loo", kernel=kernel, penalties=[1e-300])
    refuses(hopeless, SolverError, "Use larger penalties", DOUBLED, TWICE)


def test_b9_indefinite_kernels_say_so():
    K = X @ X.T - 3 * np.eye(40)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        fitted = finite(KernelRidge(0.1, kernel=Precomputed()).fit(K, y))
    assert fitted.solution_.status is Status.NOT_CONVEX
    assert fitted.certificate_.quantities.relative_residual < 1e-9


# --- C: relations (the others are in test_machines) ------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_c1_certificates_hold_for_every_form(seed):
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((50, 3))
    two, many, t = draw.integers(0, 2, 50), draw.integers(0, 4, 50), draw.standard_normal(50)
    kernel = [Gaussian(1.0), Linear(), Polynomial(2)][seed % 3]
    C = float(10 ** draw.uniform(-1, 2))
    forms = [
        (SVC(kernel, C=C), two),
        (SVC(kernel, C=C), many),
        (SVC(kernel, C=C, slack="l2", multiclass="ovr"), many),
        (SVC(Gaussian(1.0), nu=0.3), two),
        (SVR(kernel, C=C), t),
        (SVR(kernel, C=C, tube="l2"), t),
        (SVR(kernel, C=C, nu=0.4), t),
        (OneClassSVM(kernel, nu=0.3), t),
        (EnclosingBall(kernel, nu=0.2), t),
        (SVC(kernel, C=C, criterion="gap", tol=1e-6), two),
    ]
    for machine, target in forms:
        fitted = machine.fit(rows, target, sample_weight=draw.integers(1, 3, 50))
        assert fitted.solution_.status is Status.SOLVED, machine
        assert fitted.certificate_.ok, (machine, str(fitted.certificate_))


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_c6_relations_on_rows_with_ties(machine, seed):
    draw = np.random.default_rng(seed)
    rows = np.round(draw.standard_normal((30, 3)))  # many equal rows, contradictory targets
    t = draw.choice(["a", "b"], 30) if isinstance(machine, SVC) else draw.standard_normal(30)
    tight = clone(machine).set_params(**({"tol": 1e-9} if isinstance(machine, SUPPORT) else {}))
    base = decision(clone(tight).fit(rows, t), XN)
    order, columns = draw.permutation(30), draw.permutation(3)
    moved = clone(tight).fit(rows[order], t[order])
    np.testing.assert_allclose(decision(moved, XN), base, atol=1e-7)
    turned = clone(tight).fit(rows[:, columns], t)
    np.testing.assert_allclose(decision(turned, XN[:, columns]), base, atol=1e-6)
    shifted = clone(tight).fit(rows + 16.0, t)
    np.testing.assert_allclose(decision(shifted, XN + 16.0), base, atol=1e-6)
    if isinstance(machine, SVC):
        flipped = clone(tight).fit(rows, np.where(t == "a", "b", "a"))
        np.testing.assert_allclose(decision(flipped, XN), -base, atol=1e-6)


# --- D: large requests -----------------------------------------------------------------------


@pytest.mark.parametrize("machine", [CLASSIFIER, TUBE, NOVELTY, BALL], ids=repr)
def test_d1_a_fit_that_is_interrupted_changes_nothing(machine):
    def interrupt(progress):
        raise KeyboardInterrupt

    fitted = clone(machine).fit(X, target_of(machine))
    before, expected = dict(vars(fitted)), decision(fitted, XN)
    fitted.callback = before["callback"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(XN, target_of(machine)[:7])
    assert vars(fitted) == before
    np.testing.assert_array_equal(decision(fitted, XN), expected)
    fitted.callback = None
    np.testing.assert_array_equal(decision(fitted.fit(X, target_of(machine)), XN), expected)


def many_labels():
    return np.digitize(y, [0.2, 1.0])


@pytest.mark.parametrize(
    "machine", [SVC(Gaussian(1.0), probability=True), TUBE, NOVELTY, BALL], ids=repr
)
def test_d9_threads(machine):
    """Sixteen fits at once, and sixteen predictions by one machine, are those of one at a time."""
    t = many_labels() if isinstance(machine, SVC) else y
    shared = clone(machine).fit(X, t)
    expected, fits, values = decision(shared, XN), [None] * 16, [None] * 16

    def work(i):
        fits[i] = decision(clone(machine).fit(X, t), XN)
        values[i] = decision(shared, XN)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in fits + values:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("labels", [c, many_labels()], ids=["two", "three"])
def test_d13_the_number_of_threads_changes_no_bit(labels):
    rows = np.random.default_rng(0).standard_normal((900, 3))
    t = np.resize(labels, 900)
    found = []
    for threads in (1, 2, 3, 8):
        with mercer.config(threads=threads):
            machine = SVC(Gaussian(1.0), C=10.0, probability=True).fit(rows, t)
            found.append((machine.decision_function(XN), machine.predict_proba(XN)))
    for values, probabilities in found[1:]:
        np.testing.assert_array_equal(values, found[0][0])
        np.testing.assert_array_equal(probabilities, found[0][1])


LARGE = 200_000


@pytest.mark.parametrize(
    "machine",
    [
        KernelRidge("loo", kernel=Gaussian(1.0), approximation=None),
        KernelRidge(kernel=Gaussian(1.0), solver=Cholesky()),
    ],
    ids=repr,
)
def test_d5_refuses_what_does_not_fit(machine):
    rows = np.random.default_rng(0).standard_normal((LARGE, 2))
    with mercer.config(memory="8 GB"), pytest.raises(MemoryBudgetError) as caught:
        machine.fit(rows, rows[:, 0])
    message = str(caught.value)
    assert "GB" in message
    assert "200000" in message
    assert "ConjugateGradient()" in message
    assert not hasattr(machine, "kernel_")


def test_d5_what_has_few_features_fits():
    rows = np.random.default_rng(0).standard_normal((LARGE, 2))
    with mercer.config(memory="1 GB"):
        for machine in (
            KernelRidge(),
            KernelRidge(kernel=Polynomial(2)),
            KernelRidge(penalty="loo"),
        ):
            assert machine.fit(rows, rows[:, 0]).score(rows, rows[:, 0]) > 0.999


def test_d5_a_small_budget_changes_the_way_not_the_answer():
    whole = clone(RIDGE).fit(X, y).predict(XN)
    with mercer.config(memory="20 kB"):
        products = clone(RIDGE).fit(X, y)
        classifier = SVC(Gaussian(1.0), tol=1e-8).fit(X, c)
        refuse = KernelRidge("loo", kernel=Gaussian(1.0))
        with pytest.raises(
            MemoryBudgetError, match=r"needs 294 kB, but the memory budget is 20 kB"
        ):
            refuse.fit(X, y)
    assert products.solution_.solver == "ConjugateGradient"
    np.testing.assert_allclose(products.predict(XN), whole, atol=1e-6)
    expected = SVC(Gaussian(1.0), tol=1e-8).fit(X, c).decision_function(XN)
    np.testing.assert_allclose(classifier.decision_function(XN), expected, atol=1e-6)


def test_d5_the_long_way_is_taken_only_when_asked_for():
    rows = np.random.default_rng(0).standard_normal((1000, 2))
    with mercer.config(memory="4 MB"):
        machine = KernelRidge(kernel=Gaussian(1.0), solver=ConjugateGradient(rank=50)).fit(
            rows, rows[:, 0]
        )
    assert machine.certificate_.ok


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux only")
@pytest.mark.parametrize("penalty", ["'loo'"])  # one number: solved without storing K
def test_d5_under_a_limit_of_the_address_space(penalty):
    code = f"""
        import resource
        import numpy as np
        import mercer
        from mercer.kernels import Gaussian
        X = np.random.default_rng(0).standard_normal(({LARGE}, 2))
        machine = mercer.KernelRidge({penalty}, kernel=Gaussian(1.0), approximation=None)
        small = mercer.KernelRidge({penalty}, kernel=Gaussian(1.0)).fit(X[:300], X[:300, 0])
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2 * 10**9, used + 2 * 10**9))
        try:
            machine.fit(X, X[:, 0])
        except mercer.MemoryBudgetError as error:
            print("refused:", error)
        assert not hasattr(machine, "kernel_")
        again = mercer.KernelRidge({penalty}, kernel=Gaussian(1.0)).fit(X[:300], X[:300, 0])
        assert (again.predict(X[:9]) == small.predict(X[:9])).all()
    """
    environment = {**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused:")
    assert "Alternatives" in done.stdout


V2 = ("0::/outer/inner", "", "memory.max", "memory.current", "inactive_file")
V1 = ("4:memory:/outer/inner\n1:cpu:/\n0::/", "memory", "memory.limit_in_bytes",
      "memory.usage_in_bytes", "total_inactive_file")  # fmt: skip


@pytest.mark.parametrize("version", [V1, V2], ids=["1", "2"])
def test_d5_limits_of_a_container(tmp_path, monkeypatch, version):
    """The group around ours may allow less than ours does."""
    membership, tree, limit, current, files = version
    inner = tmp_path / tree / "outer" / "inner"
    inner.mkdir(parents=True)
    for group, most, used in [(inner, 10**15, 10**9), (inner.parent, 3 * 10**9, 2 * 10**9)]:
        (group / limit).write_text(f"{most}\n")
        (group / current).write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 5\n{files} 500000000\n")
    (tmp_path / "membership").write_text(membership + "\n")
    monkeypatch.setattr(system, "_CGROUP", tmp_path)
    monkeypatch.setattr(system, "_MEMBERSHIP", tmp_path / "membership")
    assert system.container_memory() == 15 * 10**8
    assert resources.available_memory() <= 15 * 10**8
    with pytest.raises(MemoryBudgetError, match="but the memory budget is"):
        exact = KernelRidge("loo", kernel=Gaussian(1.0), approximation=None)
        exact.fit(np.zeros((20_000, 1)), np.zeros(20_000))
    (inner.parent / limit).write_text("max\n")
    assert system.container_memory() > 10**14


def test_d5_quota_of_a_container(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "_CGROUP", tmp_path)
    monkeypatch.setattr(system, "_MEMBERSHIP", tmp_path / "membership")
    (tmp_path / "membership").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert resources.thread_limit() == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert system.cpu_quota() > 1000
    (tmp_path / "membership").write_text("1:cpu,cpuacct:/a\n")
    (tmp_path / "cpu" / "a").mkdir(parents=True)
    (tmp_path / "cpu" / "a" / "cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cpu" / "a" / "cpu.cfs_period_us").write_text("100000\n")
    assert system.cpu_quota() == 1


def test_work_is_shared_without_the_compiled_core(monkeypatch):
    monkeypatch.setattr(threading_of_calls, "_native", None)
    assert resources.call_threads(np.inf) == resources.thread_limit()
    assert resources.call_threads(1.0) == 1
