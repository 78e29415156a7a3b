"""Naive Bayes: against counting by hand, scikit-learn, and itself in other orders and batches."""

import datetime
import math
import pickle
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import BagOfWords, MemoryBudgetError, NaiveBayes, ParameterError, certify, config

rng = np.random.default_rng(0)
N = 200
y = rng.integers(0, 3, N)
CATEGORIES = (rng.integers(0, 4, (N, 3)) + y[:, None]) % 5
COUNTS = rng.poisson(1 + y[:, None] * [1, 0, 2, 0.5])
NUMBERS = rng.normal(size=(N, 3)) + y[:, None]
BITS = (rng.random((N, 4)) < 0.2 + 0.2 * y[:, None]).astype(float)


@parametrize_with_checks(
    [
        NaiveBayes(),
        NaiveBayes("cv"),
        NaiveBayes(0.0, prior="uniform"),
        NaiveBayes(kinds="categorical"),
        NaiveBayes(kinds="gaussian", var_smoothing=1e-6),
    ]  # no list of expected failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- against others --------------------------------------------------------------------------


def test_counting_by_hand():
    X = [["viagra", 1], ["viagra", 0], ["hello", 0], ["hello", 0], ["lunch", 0]]
    label = ["spam", "spam", "ham", "ham", "ham"]
    machine = NaiveBayes(0.5).fit(X, label)
    assert machine.kinds_.tolist() == ["categorical", "binary"]
    # P(ham) = 3/5; V = 3 values of the word, 2 of the bit; an unseen word has count zero
    spam = math.log(2 / 5) + math.log((0.5 + 2) / (1.5 + 2)) + math.log((0.5 + 1) / (1 + 2))
    ham = math.log(3 / 5) + math.log((0.5 + 0) / (1.5 + 3)) + math.log((0.5 + 0) / (1 + 3))
    assert machine.decision_function([["viagra", 1]])[0] == pytest.approx(spam - ham, abs=1e-12)
    spam = math.log(2 / 5) + math.log(0.5 / 3.5)
    ham = math.log(3 / 5) + math.log(0.5 / 4.5)
    found = machine.decision_function([["never", None]])[0]
    assert found == pytest.approx(spam - ham, abs=1e-12)
    assert machine.categories_ == [["hello", "lunch", "viagra"], None]
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.normalisation < 1e-14


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0, 7.0])
@pytest.mark.parametrize("weights", [None, rng.integers(0, 4, N)])
@pytest.mark.parametrize(
    ("kind", "X", "rival"),
    [
        ("categorical", CATEGORIES, CategoricalNB),
        ("count", COUNTS, MultinomialNB),
        ("count", sparse.csr_array(COUNTS), MultinomialNB),
        ("binary", BITS, BernoulliNB),
        ("binary", sparse.csr_array(BITS), BernoulliNB),
    ],
)
def test_equals_scikit_learn(alpha, weights, kind, X, rival):
    ours = NaiveBayes(alpha, kinds=kind).fit(X, y, sample_weight=weights)
    theirs = rival(alpha=alpha).fit(X, y, sample_weight=weights)
    wanted = theirs.predict_log_proba(X)
    np.testing.assert_allclose(ours.predict_log_proba(X), wanted, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.certificate_.ok


def test_equals_scikit_learn_on_measurements():
    ours, theirs = NaiveBayes().fit(NUMBERS, y), GaussianNB(var_smoothing=0.0).fit(NUMBERS, y)
    np.testing.assert_allclose(
        ours.predict_log_proba(NUMBERS), theirs.predict_log_proba(NUMBERS), rtol=1e-9, atol=1e-11
    )
    assert ours.kinds_.tolist() == ["gaussian"] * 3
    assert ours.certificate_.ok


def table():
    frame = pd.DataFrame(NUMBERS, columns=["a", "b", "c"])
    frame["colour"] = np.array(["red", "green", "blue", "grey", "black"])[CATEGORIES[:, 0]]
    frame["grade"] = CATEGORIES[:, 1]
    frame["flag"] = BITS[:, 0] > 0
    return frame


def test_a_mixed_table_is_the_sum_of_its_parts():
    frame = table()
    machine = NaiveBayes().fit(frame, y)
    kinds = ["gaussian"] * 3 + ["categorical", "categorical", "binary"]
    assert machine.kinds_.tolist() == kinds
    codes = np.column_stack([CATEGORIES[:, :2], BITS[:, :1]]).astype(int)
    parts = CategoricalNB().fit(codes, y), GaussianNB(var_smoothing=0.0).fit(NUMBERS, y)
    joint = parts[0].predict_joint_log_proba(codes) + parts[1].predict_joint_log_proba(NUMBERS)
    joint -= parts[0].class_log_prior_
    joint -= np.logaddexp.reduce(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(machine.predict_log_proba(frame), joint, rtol=1e-9, atol=1e-10)
    for other in (pl.from_pandas(frame), frame.astype({"colour": "string", "grade": "Int64"})):
        again = NaiveBayes(kinds={"grade": "categorical"}).fit(other, y)
        np.testing.assert_allclose(again.predict_log_proba(other), joint, rtol=1e-9, atol=1e-10)
    objects = frame.to_numpy(dtype=object)
    named = {4: "categorical"}
    again = NaiveBayes(kinds=named).fit(objects, y)
    np.testing.assert_allclose(again.predict_log_proba(objects), joint, rtol=1e-9, atol=1e-10)


def test_declared_categories_count_as_values():
    frame = pd.DataFrame({"c": pd.Categorical(["a", "b", "a", "b"], categories=["a", "b", "z"])})
    label = [0, 0, 1, 1]
    machine = NaiveBayes().fit(frame, label)
    table_of_values = np.exp(machine.solution_.value.tables[:, :3])
    np.testing.assert_allclose(table_of_values, np.full((2, 3), [0.4, 0.4, 0.2]))


# --- missing entries, streams, weights ---------------------------------------------------------


def holes(frame, seed=1):
    gaps = np.random.default_rng(seed).random(frame.shape) < 0.2
    return frame.astype(object).mask(gaps, None)


def test_missing_entries_are_left_out():
    frame = holes(table())
    kinds = dict(zip(frame.columns, NaiveBayes().fit(table(), y).kinds_, strict=True))
    machine = NaiveBayes(kinds=kinds).fit(frame, y)
    scores = np.tile(np.log(np.bincount(y) / N), (N, 1))
    for name in frame.columns:  # each column on its own, on the rows that have it
        there = frame[name].notna().to_numpy()
        column = NaiveBayes(kinds=kinds[name], prior="uniform").fit(frame[[name]][there], y[there])
        scores[there] += column.predict_log_proba(frame[[name]][there])
    wanted = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    found = machine.predict_log_proba(frame)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
    nothing = pd.DataFrame([[None] * 6], columns=frame.columns)
    np.testing.assert_allclose(machine.predict_proba(nothing)[0], np.bincount(y) / N)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_streams_are_batches(size):
    frame = holes(table())
    kinds = dict(zip(frame.columns, NaiveBayes().fit(table(), y).kinds_, strict=True))
    whole = NaiveBayes(0.3, kinds=kinds).fit(frame, y)
    stream = NaiveBayes(0.3, kinds=kinds)
    for first in range(0, N, size):
        part = slice(first, first + size)
        stream.partial_fit(frame[part], y[part], classes=[0, 1, 2])
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(
        stream.predict_log_proba(frame), whole.predict_log_proba(frame), **close
    )
    assert stream.certificate_.ok


def test_a_long_stream_of_single_rows_far_from_zero():
    rows = rng.normal(size=(1500, 2)) * 1e-3 + 1e6
    label = rng.integers(0, 2, 1500)
    rows[label == 1] += 1e-3
    stream = NaiveBayes()
    for i in range(1500):
        stream.partial_fit(rows[i : i + 1], label[i : i + 1], classes=[0, 1])
    whole = NaiveBayes().fit(rows, label)
    np.testing.assert_allclose(stream._held.moments.scatter, whole._held.moments.scatter, rtol=1e-6)
    np.testing.assert_allclose(
        stream.predict_proba(rows[:50]), whole.predict_proba(rows[:50]), atol=1e-5
    )


def test_new_categories_and_a_class_not_seen_yet():
    machine = NaiveBayes()
    machine.partial_fit([["a"], ["b"]], ["x", "y"], classes=["x", "y", "z"])
    found = machine.predict_log_proba([["a"], ["c"]])
    assert np.isfinite(found).all()
    assert set(machine.predict([["a"], ["c"], [None]])) <= {"x", "y"}
    machine.partial_fit([["c"], ["c"]], ["z", "z"])
    assert machine.predict([["c"]]).tolist() == ["z"]
    assert machine.categories_ == [["a", "b", "c"]]
    whole = NaiveBayes().fit([["a"], ["b"], ["c"], ["c"]], ["x", "y", "z", "z"])
    np.testing.assert_allclose(machine.predict_proba([["a"]]), whole.predict_proba([["a"]]))


quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def mixed_rows(draw):
    n = draw(st.integers(6, 20))
    number = st.one_of(st.none(), st.integers(-8, 8).map(lambda i: i / 4))
    word = st.sampled_from(["a", "b", "c", None])
    bit = st.sampled_from([0, 1, None])
    rows = draw(st.lists(st.tuples(number, word, bit), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    labels[:2] = [0, 1]
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights[:2] = [1, 2]
    return np.array(rows, dtype=object), np.array(labels), np.array(weights)


KINDS = ["gaussian", "categorical", "binary"]


@pytest.mark.parametrize("alpha", [0.0, 0.7, "cv"])
@quick
@given(case=mixed_rows())
def test_weights_mean_repetition(alpha, case):
    X, label, weights = case
    index = np.repeat(np.arange(len(X)), weights)
    weighted = NaiveBayes(alpha, kinds=KINDS).fit(X, label, sample_weight=weights)
    repeated = NaiveBayes(alpha, kinds=KINDS).fit(X[index], label[index])
    assert weighted.alpha_ == repeated.alpha_
    close = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(
        weighted.predict_log_proba(X), repeated.predict_log_proba(X), **close
    )


@quick
@given(case=mixed_rows(), seed=st.integers(0, 9))
def test_orders_do_not_matter(case, seed):
    X, label, _ = case
    base = NaiveBayes(kinds=KINDS).fit(X, label).predict_log_proba(X)
    shuffle = np.random.default_rng(seed)
    rows, columns = shuffle.permutation(len(X)), shuffle.permutation(3)
    turned = NaiveBayes(kinds=[KINDS[j] for j in columns])
    turned.fit(X[rows][:, columns], label[rows])
    close = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(turned.predict_log_proba(X[:, columns]), base, **close)
    renamed = NaiveBayes(kinds=KINDS).fit(X, -label)
    np.testing.assert_allclose(renamed.predict_log_proba(X)[:, ::-1], base, **close)
    start = np.random.default_rng(seed).integers(1, len(X))
    stream = NaiveBayes(kinds=KINDS).partial_fit(X[:start], label[:start], classes=np.unique(label))
    stream.partial_fit(X[start:], label[start:])
    np.testing.assert_allclose(stream.predict_log_proba(X), base, **close)
    assert np.isfinite(base).all()
    np.testing.assert_allclose(np.exp(base).sum(axis=1), 1.0, atol=1e-12)


# --- decisions --------------------------------------------------------------------------------


def test_threshold_and_loss():
    two = y > 0
    machine = NaiveBayes().fit(NUMBERS, two)
    odds = machine.decision_function(NUMBERS)
    np.testing.assert_allclose(odds, np.diff(machine.predict_log_proba(NUMBERS), axis=1)[:, 0])
    for theta in (-math.inf, -2.0, 0.0, 3.0, math.inf):
        moved = NaiveBayes(threshold=theta).fit(NUMBERS, two)
        np.testing.assert_array_equal(moved.predict(NUMBERS), odds > theta)
    # a false alarm ten times as dear as a miss is the threshold log 10
    costly = NaiveBayes(loss=[[0, 1], [10, 0]]).fit(NUMBERS, two)
    np.testing.assert_array_equal(costly.predict(NUMBERS), odds > math.log(10))
    np.testing.assert_allclose(costly.decision_function(NUMBERS), odds - math.log(10))
    loss = np.array([[0, 1, 5], [2, 0, 1], [1, 1, 0]])
    three = NaiveBayes(loss=loss).fit(NUMBERS, y)
    risk = three.predict_proba(NUMBERS) @ loss.T
    np.testing.assert_array_equal(three.predict(NUMBERS), risk.argmin(axis=1))
    assert roc_auc_score(two, odds) > 0.9
    odd = NaiveBayes(loss=[[3, 0], [0, 3]]).fit(NUMBERS, two)  # being right is what costs
    np.testing.assert_array_equal(odd.predict(NUMBERS), odds < 0)


def test_priors():
    machine = NaiveBayes(prior=[0.2, 0.3, 0.5]).fit(NUMBERS, y)
    np.testing.assert_allclose(machine.prior_, [0.2, 0.3, 0.5])
    flat = NaiveBayes(prior="uniform").fit(NUMBERS, y)
    shift = machine.predict_log_proba(NUMBERS) - flat.predict_log_proba(NUMBERS)
    np.testing.assert_allclose(shift[:, 1] - shift[:, 0], math.log(1.5))


def test_smoothing_by_cross_validation():
    words = rng.poisson(0.02, (300, 400))
    label = rng.integers(0, 2, 300)
    words[label == 1, :20] += rng.poisson(0.3, ((label == 1).sum(), 20))
    machine = NaiveBayes("cv", kinds="count").fit(words, label)
    assert machine.alpha_ in machine.alphas_
    assert machine.cv_losses_.min() == machine.cv_losses_[machine.alphas_ == machine.alpha_][0]
    shuffled = np.random.default_rng(5).permutation(300)
    again = NaiveBayes("cv", kinds="count").fit(words[shuffled], label[shuffled])
    assert again.alpha_ == machine.alpha_
    few = NaiveBayes("cv", alphas=[0.5, 2.0], kinds="count").fit(words, label)
    assert few.alpha_ in (0.5, 2.0)
    assert not hasattr(machine, "partial_fit")


def test_telling_attributes():
    frame = table()
    two = y > 0
    machine = NaiveBayes().fit(frame[["colour", "flag"]], two)
    listed = machine.telling(100)
    assert [one.log_ratio for one in listed] == sorted((o.log_ratio for o in listed), reverse=True)
    one = next(o for o in listed if (o.attribute, o.value, o.label) == ("flag", 1, True))
    hits = [frame["flag"][two == c].sum() for c in (False, True)]
    sizes = [(two == c).sum() for c in (False, True)]
    shares = [(1 + h) / (2 + s) for h, s in zip(hits, sizes, strict=True)]
    assert one.log_ratio == pytest.approx(math.log(shares[1] / shares[0]))
    assert all(o.label is True for o in machine.telling(3, label=True))
    assert NaiveBayes().fit(NUMBERS, y).telling(2)[0].log_ratio > 0
    for nobody in ("nobody", [True]):
        with pytest.raises(ValueError, match="none of"):
            machine.telling(3, label=nobody)
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=r"n=.* positive integer"):
            machine.telling(wrong)
    far = NaiveBayes(var_smoothing=0.0).fit([[1e150], [1e150], [-1e150], [-1e150]], [0, 0, 1, 1])
    assert all(math.isfinite(one.log_ratio) for one in far.telling(4))


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e12])
def test_scores_stay_finite(alpha):
    X = np.array([["a", 0, 1.0], ["b", 1, 2.0], ["a", 0, 1.5]], dtype=object)
    machine = NaiveBayes(alpha).fit(X, [0, 1, 0])
    new = np.array([["a", 1, 1e308], ["zzz", 0, -1e308], [None, None, None]], dtype=object)
    found = machine.predict_log_proba(new)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(machine.predict_proba(new).sum(axis=1), 1.0, atol=1e-12)
    assert machine.certificate_.ok


def test_constant_columns_say_nothing():
    X = np.column_stack([NUMBERS, np.full(N, 5.0), np.full(N, np.nan)])
    machine = NaiveBayes(kinds="gaussian").fit(X, y)
    new = X.copy()
    new[:, 3:] = 123.0
    wanted = NaiveBayes().fit(NUMBERS, y).predict_proba(NUMBERS)
    np.testing.assert_allclose(machine.predict_proba(new), wanted, atol=1e-9)


def test_many_columns():
    X = sparse.random_array((300, 100_000), density=1e-3, format="csr", rng=rng)
    X.data[:] = 1.0
    label = rng.integers(0, 2, 300)
    machine = NaiveBayes().fit(X, label)
    found = machine.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert machine.score(X, label) > 0.95


def test_refusals():
    with pytest.raises(ValueError, match="infinity"):
        NaiveBayes().fit([[1.0, np.inf], [2.0, 0.5]], [0, 1])
    with pytest.raises(ValueError, match=r"Negative values .* column 1"):
        NaiveBayes(kinds="count").fit([[1, 2], [3, -1]], [0, 1])
    with pytest.raises(ValueError, match="'binary'"):
        NaiveBayes().partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1]).partial_fit([[0.5]], [0])
    with pytest.raises(ValueError, match="numbers only"):
        NaiveBayes(kinds="gaussian").fit([["a"], ["b"]], [0, 1])
    with pytest.raises(TypeError, match="dates"):
        NaiveBayes().fit(pd.DataFrame({"t": pd.date_range("2020", periods=2)}), [0, 1])
    with pytest.raises(ValueError, match="classes must be passed"):
        NaiveBayes().partial_fit([[0.0]], [0])
    with pytest.raises(ValueError, match="none of the classes"):
        NaiveBayes().partial_fit([[0.0]], [7], classes=[0, 1])
    with pytest.raises(ValueError, match="only one class"):
        NaiveBayes().fit(NUMBERS, np.zeros(N))
    with pytest.raises(ValueError, match="kinds names the column 'nothing'"):
        NaiveBayes(kinds={"nothing": "count"}).fit(NUMBERS, y)
    with pytest.raises(ValueError, match="overflow"):
        NaiveBayes().fit([[1e200], [-1e200], [3.0]], [0, 0, 1])
    with pytest.raises(ValueError, match="column 1 of X overflow"):  # between classes, not in them
        NaiveBayes().fit([[0.5, 1e160], [1.5, 1e160], [2.5, -1e160]], [0, 0, 1])
    with pytest.raises(ValueError, match="sample_weight add"):
        NaiveBayes().fit([["a"], ["b"]], [0, 1], sample_weight=[1e308, 1e308])
    with pytest.raises(ValueError, match="counts in X add"):
        NaiveBayes(kinds="count").fit([[1e308], [1e308]], [0, 1])
    days = [[datetime.date(2020, 1, 1)], [datetime.datetime(2020, 1, 2)]]
    with pytest.raises(TypeError, match="dates"):
        NaiveBayes().fit(np.array(days, dtype=object), [0, 1])
    with pytest.raises(ValueError, match="0 feature"):
        NaiveBayes().fit(pd.DataFrame(index=range(2)), [0, 1])
    wide = sparse.csr_array(([-1.0, 1.0], ([0, 1], [0, 1])), shape=(2, 10**6))
    with config(memory="8 MB"), pytest.raises(MemoryBudgetError, match="dense"):
        NaiveBayes().fit(wide, [0, 1])
    with pytest.raises(ValueError, match="2 columns named 'a'"):
        NaiveBayes().fit(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]), [0, 1])
    frame = table()
    with pytest.raises(ValueError, match="feature names"):
        NaiveBayes().fit(frame, y).predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": -1.0},
        {"alpha": "loo"},
        {"alpha": 1e308},
        {"alphas": [-1.0]},
        {"alphas": [[0.1, 1.0]]},
        {"alphas": 1.0},
        {"kinds": "poisson"},
        {"kinds": ["gaussian"]},
        {"threshold": math.nan},
        {"threshold": 1.0},
        {"loss": [[0, 1], [1, 0]]},
        {"loss": "much"},
        {"prior": [0.5, 0.4, 0.2]},
        {"prior": [0.5, 0.5]},
        {"var_smoothing": -1.0},
    ],
)
def test_parameters_out_of_range(wrong):
    machine = NaiveBayes(**wrong)
    with pytest.raises(ParameterError, match=f"NaiveBayes: {next(iter(wrong))}="):
        machine.fit(NUMBERS, y)
    assert not hasattr(machine, "classes_")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint8, ">f8", object, bool])
def test_types_of_numbers(dtype):
    X = CATEGORIES.astype(dtype)
    wanted = NaiveBayes(kinds="categorical").fit(X.astype(int), y).predict_proba(X.astype(int))
    found = NaiveBayes(kinds="categorical").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, wanted)


def test_extreme_integers():
    X = np.array([[-128, 2**62], [127, -(2**62)], [-128, 2**62]])
    machine = NaiveBayes(kinds="categorical").fit(X, [0, 1, 0])
    assert machine.predict(X).tolist() == [0, 1, 0]
    small = NaiveBayes(kinds="categorical").fit(X[:, :1].astype(np.int8), [0, 1, 0])
    assert small.categories_ == [[-128, 127]]
    assert NaiveBayes().fit(X[:, :1].astype(np.int8), [0, 1, 0]).kinds_.tolist() == ["categorical"]
    large = np.array([[2**64 - 1], [2**64 - 2], [2**64 - 1]], dtype=np.uint64)
    assert NaiveBayes().fit(large, [0, 1, 0]).categories_ == [[2**64 - 2, 2**64 - 1]]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([2**53, 2**53 + 1, None, 2**53], dtype="Int64"),
        pd.Series([2**53, 2**53 + 1, None, 2**53], dtype="int64[pyarrow]"),
        pd.Series([2**53, 2**53 + 1, None, 2**53], dtype=object),
        pl.Series([2**53, 2**53 + 1, None, 2**53], dtype=pl.Int64),
    ],
    ids=["nullable", "arrow", "object", "polars"],
)
def test_integers_stay_integers_beside_gaps(column):
    # float64 cannot tell these two apart, and a gap makes a column of integers no measurement
    frame = (pl if isinstance(column, pl.Series) else pd).DataFrame({"id": column})
    machine = NaiveBayes(0.01).fit(frame, [0, 1, 0, 0])
    assert machine.kinds_.tolist() == ["categorical"]
    assert machine.categories_ == [[2**53, 2**53 + 1]]
    assert machine.predict(frame).tolist() == [0, 1, 0, 0]
    gaussian = NaiveBayes(kinds="gaussian").fit(frame, [0, 1, 0, 0])
    assert gaussian.solution_.value.mean[0, 0] == 2.0**53


def test_numbers_that_are_categories():
    names = pd.DataFrame({"a": pd.Categorical([3, 7, 3, None])})
    assert NaiveBayes().fit(names, [0, 1, 0, 1]).categories_ == [[3, 7]]
    as_numbers = NaiveBayes(kinds="gaussian").fit(names, [0, 1, 0, 1])
    assert as_numbers.solution_.value.mean.ravel().tolist() == [3.0, 7.0]
    empty = pd.DataFrame({"a": pd.Categorical([None] * 4)})
    np.testing.assert_allclose(
        NaiveBayes(kinds="gaussian").fit(empty, [0, 1, 0, 1]).predict_proba(empty), 0.5
    )
    between = pd.DataFrame({"a": pd.interval_range(0, 4)})
    assert NaiveBayes().fit(between, [0, 0, 1, 1]).predict(between).tolist() == [0, 0, 1, 1]
    beyond = np.array([[10**400], [1], [10**400]], dtype=object)
    assert NaiveBayes().fit(beyond, [0, 1, 0]).predict(beyond).tolist() == [0, 1, 0]


def test_tables_of_other_libraries():
    tea = {"cup": ["x", "y", None, "x"], "heat": [1.5, None, 3.0, 4.5], "n": [3, 4, 3, 4]}
    arrow, frame = pa.table(tea), pd.DataFrame(tea)
    machine = NaiveBayes().fit(arrow, [0, 1, 0, 1])
    assert machine.feature_names_in_.tolist() == list(tea)
    assert machine.kinds_.tolist() == ["categorical", "gaussian", "categorical"]
    wanted = NaiveBayes().fit(frame, [0, 1, 0, 1]).predict_log_proba(frame)
    np.testing.assert_allclose(machine.predict_log_proba(arrow), wanted)
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(arrow.select(["heat", "cup", "n"]))
    with pytest.raises(TypeError, match="'day' of X holds dates"):
        NaiveBayes().fit(pa.table({"day": [datetime.date(2020, 1, 1)] * 2}), [0, 1])
    named = pl.DataFrame({"a": pl.Series(["u", "v", None], dtype=pl.Enum(["u", "v", "w"]))})
    assert NaiveBayes().fit(named, [0, 1, 0]).categories_ == [["u", "v", "w"]]
    money = pd.DataFrame({"a": [Decimal("1.50"), Decimal("2.25"), Decimal("7.00")]})
    assert NaiveBayes().fit(money, [0, 1, 0]).kinds_.tolist() == ["gaussian"]


def test_scales_at_the_ends_of_float64():
    X, labels = np.array([[1.0], [2.0], [5.0], [6.5]]), [0, 0, 1, 1]
    wanted = NaiveBayes().fit(X, labels).predict_log_proba(X)
    for scale in (1e-140, 1e-100, 1e140):
        found = NaiveBayes().fit(X * scale, labels)
        np.testing.assert_allclose(found.predict_log_proba(X * scale), wanted, atol=1e-9)
        assert found.certificate_.ok
    with pytest.warns(UserWarning, match="column 0 of X are so small"):
        NaiveBayes().fit(X * 1e-200, labels)
    constant = np.column_stack([np.full(4, 1e200), X[:, 0]])  # says nothing, however large it is
    found = NaiveBayes().fit(constant, labels).predict_log_proba(constant)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    stream = NaiveBayes(kinds="gaussian")  # row by row, the second class long without any
    for row, label in zip(constant, labels, strict=True):
        stream.partial_fit([row], [label], classes=[0, 1])
    np.testing.assert_allclose(stream.predict_log_proba(constant), wanted, atol=1e-9)
    light = NaiveBayes().fit(X, labels, sample_weight=np.full(4, 1e-310))
    np.testing.assert_allclose(light.predict_log_proba(X), wanted, atol=1e-9)


def test_decisions_follow_parameters_changed_after_the_fit():
    X, two = [[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1]
    with pytest.raises(ParameterError, match=r"threshold=5\.0 must be 0 beside a loss"):
        NaiveBayes(threshold=5.0, loss=[[0, 1], [1, 0]]).fit(X, two)
    machine = NaiveBayes().fit(X, two)
    assert machine.set_params(threshold=math.inf).predict(X).tolist() == [0, 0, 0, 0]
    for wrong in ({"threshold": math.nan}, {"loss": "much"}, {"loss": np.eye(3)}):
        changed = NaiveBayes().fit(X, two).set_params(**wrong)
        with pytest.raises(ParameterError, match=f"NaiveBayes: {next(iter(wrong))}="):
            changed.predict(X)
    with pytest.raises(ParameterError, match="threshold"):
        NaiveBayes().fit(NUMBERS, y).set_params(threshold=1.0).predict(NUMBERS)


def test_a_failed_batch_changes_nothing():
    machine = NaiveBayes(kinds="count").partial_fit(COUNTS, y, classes=[0, 1, 2])
    before = machine.predict_proba(COUNTS)
    with pytest.raises(ValueError, match="Negative"):
        machine.partial_fit(-COUNTS - 1, y)
    np.testing.assert_array_equal(machine.predict_proba(COUNTS), before)


def test_copies():
    machine = NaiveBayes().fit(table(), y)
    twin = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(twin.predict_proba(table()), machine.predict_proba(table()))
    assert twin.certificate_.ok
    assert not hasattr(clone(machine), "classes_")


def test_a_wrong_answer_is_not_certified():
    machine = NaiveBayes().fit(table(), y)
    problem, value = machine._asked.problem, machine.solution_.value
    assert certify(problem, value).ok
    assert not certify(problem, replace(value, tables=value.tables + 1e-6)).ok
    assert not certify(problem, replace(value, mean=value.mean + 1e-6)).ok
    assert not certify(problem, replace(value, variance=value.variance * 1.001)).ok
    assert not certify(problem, replace(value, prior=value.prior - 1e-6)).ok
    unseen = value.tables.copy()
    unseen[:, -1] += 0.1  # a value that was never seen
    assert not certify(problem, replace(value, tables=unseen)).ok


def test_what_was_never_counted_is_certified_by_its_rule():
    machine = NaiveBayes(kinds=["gaussian", "count", "count"]).partial_fit(
        [[1.0, 2, 0], [1.0, 1, 0], [2.0, 0, 0]], [0, 0, 1], classes=[0, 1, 2]
    )
    problem, value = machine._asked.problem, machine.solution_.value
    assert certify(problem, value).ok
    last = np.array([[0], [0], [1]])  # the class without rows
    words = value.words - np.array([0, 1])  # a column that no class had
    assert not certify(problem, replace(value, words=words)).ok
    assert not certify(problem, replace(value, mean=value.mean + last)).ok
    assert not certify(problem, replace(value, variance=value.variance * (1 + last))).ok
    assert not certify(problem, replace(value, variance=value.variance / (9 - 8 * last))).ok


# --- words -------------------------------------------------------------------------------------

MAIL = ["win money now", "cheap money", "lunch tomorrow", "see you at lunch", "win cheap lunch"]
SPAM = np.array([1, 1, 0, 0, 1])


@pytest.mark.parametrize("vocabulary", ["growing", "hashing"])
def test_text_goes_straight_in(vocabulary):
    pipe = make_pipeline(BagOfWords(vocabulary, n_features=1000), NaiveBayes()).fit(MAIL, SPAM)
    assert pipe.predict(["money money", "lunch with you"]).tolist() == [1, 0]
    words, stream = BagOfWords(vocabulary, n_features=1000), NaiveBayes()
    for text, label in zip(MAIL, SPAM, strict=True):
        stream.partial_fit(words.partial_fit([text]).transform([text]), [label], classes=[0, 1])
    np.testing.assert_allclose(
        stream.predict_proba(words.transform(MAIL)), pipe.predict_proba(MAIL), rtol=1e-12
    )


def test_growing_vocabulary_equals_the_vectoriser():
    theirs = CountVectorizer(ngram_range=(1, 2)).fit(MAIL)
    ours = BagOfWords(ngram_range=(1, 2), n_features=100).fit(MAIL)
    order = [theirs.vocabulary_[word] for word in ours.vocabulary_]
    found = ours.transform(MAIL).toarray()
    np.testing.assert_array_equal(
        found[:, : ours.n_words_], theirs.transform(MAIL).toarray()[:, order]
    )
    assert ours.get_feature_names_out()[: ours.n_words_].tolist() == list(ours.vocabulary_)
    # unused columns change nothing: V is the number of words, as scikit-learn has it
    rival = MultinomialNB().fit(theirs.transform(MAIL), SPAM)
    machine = NaiveBayes().fit(ours.transform(MAIL), SPAM)
    np.testing.assert_allclose(
        machine.predict_proba(ours.transform(MAIL)), rival.predict_proba(theirs.transform(MAIL))
    )


def test_a_full_vocabulary_and_bad_texts():
    words = BagOfWords(n_features=3).fit(MAIL)
    assert (words.n_words_, words.full_) == (3, True)
    assert words.transform(["lunch"]).sum() == 0
    assert BagOfWords(binary=True).fit(MAIL).transform(["win win"]).max() == 1
    for wrong in ("one text", [1, 2], [None]):
        with pytest.raises(ValueError, match="text"):
            BagOfWords().fit(wrong)
    with pytest.raises(ParameterError, match="vocabulary"):
        BagOfWords("learnt").fit(MAIL)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ngram_range": (2, 1)},
        {"ngram_range": 2},
        {"stop_words": "klingon"},
        {"analyzer": "sentence"},
        {"token_pattern": "("},
        {"strip_accents": "all"},
    ],
)
def test_bad_parameters_of_words_are_named(wrong):
    with pytest.raises(ParameterError, match=f"BagOfWords: {next(iter(wrong))}="):
        BagOfWords(**wrong).fit(MAIL)


def test_columns_that_words_have_taken_cannot_be_given_up():
    words = BagOfWords(n_features=16).fit(MAIL).set_params(n_features=2)
    for call in (words.transform, words.partial_fit):
        with pytest.raises(ParameterError, match="n_features=2 must be at least"):
            call(MAIL)
    assert words.fit(MAIL).transform(MAIL).shape == (len(MAIL), 2)


def test_words_that_no_class_had_say_nothing():
    counts = np.array([[3, 1, 0], [0, 2, 0], [1, 5, 0]])
    machine = NaiveBayes(kinds="count").fit(counts, [1, 0, 0])
    new = np.array([[1, 1, 0], [1, 1, 9]])
    found = machine.predict_log_proba(new)
    np.testing.assert_array_equal(found[0], found[1])
    narrow = NaiveBayes(kinds="count").fit(counts[:, :2], [1, 0, 0])
    np.testing.assert_array_equal(narrow.predict_log_proba(new[:, :2]), found)
