"""Gaussian classes: against scikit-learn's discriminants, closed forms and many digits."""

import math
import pickle
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    FisherDiscriminant,
    GaussianClassifier,
    MemoryBudgetError,
    ParameterError,
    certify,
    config,
)

X, y = load_iris(return_X_y=True)
FORMS = ["full", "diagonal", "spherical"]


@parametrize_with_checks(
    [
        GaussianClassifier(),
        GaussianClassifier(shared=True),
        GaussianClassifier("diagonal", unbiased=True, prior="uniform"),
        GaussianClassifier("diagonal", shared=True),
        GaussianClassifier("spherical"),
        GaussianClassifier("spherical", shared=True),
    ]  # no list of expected failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- against others ------------------------------------------------------------------------------


@pytest.mark.parametrize("loader", [load_iris, load_wine])
@pytest.mark.parametrize("prior", [None, [0.2, 0.5, 0.3]])
def test_equals_the_discriminants_of_scikit_learn(loader, prior):
    rows, label = loader(return_X_y=True)
    quadratic = QuadraticDiscriminantAnalysis(priors=prior).fit(rows, label)
    ours = GaussianClassifier(prior=prior).fit(rows, label)
    np.testing.assert_allclose(ours.predict_proba(rows), quadratic.predict_proba(rows), atol=1e-9)
    assert ours.certificate_.ok
    # theirs weighs covariances by the priors it is given; the likelihood has them by their counts
    linear = LinearDiscriminantAnalysis("lsqr").fit(rows, label)
    ours = GaussianClassifier(shared=True).fit(rows, label)
    np.testing.assert_allclose(ours.predict_proba(rows), linear.predict_proba(rows), atol=1e-8)
    np.testing.assert_allclose(
        np.diff(ours.coef_, axis=0), np.diff(linear.coef_, axis=0), rtol=1e-6
    )
    scores = rows @ ours.coef_.T + ours.intercept_
    scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(scores, ours.predict_log_proba(rows), atol=1e-8)


def test_two_classes_give_one_hyperplane():
    two = y < 2
    ours = GaussianClassifier(shared=True).fit(X[two], y[two])
    theirs = LinearDiscriminantAnalysis("lsqr").fit(X[two], y[two])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)
    found = X[two] @ ours.coef_[0] + ours.intercept_[0]
    np.testing.assert_allclose(ours.decision_function(X[two]), found, rtol=1e-8)
    # with equal priors the border passes through the middle between the means
    middle = GaussianClassifier(shared=True, prior="uniform").fit(X[two], y[two])
    assert abs(middle.decision_function([middle.means_.mean(axis=0)])[0]) < 1e-9
    with pytest.raises(AttributeError, match="shared=True"):
        _ = GaussianClassifier().fit(X, y).coef_


def test_the_hyperplane_is_fishers():
    two = y > 0
    ours = GaussianClassifier(shared=True).fit(X[two], y[two]).coef_[0]
    fisher = FisherDiscriminant("linear", penalty=1e-10).fit(X[two], y[two])
    along = fisher.transform(np.eye(4)) - fisher.transform(np.zeros((1, 4)))
    cosine = along[:, 0] @ ours / np.linalg.norm(along) / np.linalg.norm(ours)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-6)


def test_diagonal_is_naive_bayes():
    ours = GaussianClassifier("diagonal").fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shared", [False, True])
def test_closed_forms(form, shared):
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    machine = GaussianClassifier(form, shared=shared).fit(X, y, sample_weight=weights)
    found = []
    for c in range(3):
        rows, w = X[y == c], weights[y == c]
        mean = w @ rows / w.sum()
        np.testing.assert_allclose(machine.means_[c], mean)
        found.append((w[:, None] * (rows - mean)).T @ (rows - mean))
    totals = machine.class_count_
    wanted = (
        np.array(found).sum(0)[None] / totals.sum() if shared else found / totals[:, None, None]
    )
    covariance = machine.covariance_ if not shared else machine.covariance_[None]
    if form == "diagonal":
        wanted = np.array([np.diag(one) for one in wanted])
    if form == "spherical":
        wanted = np.array([np.trace(one) / 4 for one in wanted])
    np.testing.assert_allclose(covariance, wanted, rtol=1e-10, atol=1e-12)
    assert machine.certificate_.ok
    assert not machine.floored_.any()


@pytest.mark.parametrize("form", FORMS)
def test_densities(form):
    machine = GaussianClassifier(form, prior=[0.2, 0.3, 0.5]).fit(X, y)
    logs = np.empty((len(X), 3))
    for c in range(3):
        covariance = machine.covariance_[c]
        if covariance.ndim < 2:
            covariance = np.diag(np.broadcast_to(covariance, 4))
        normal = stats.multivariate_normal(machine.means_[c], covariance)
        logs[:, c] = normal.logpdf(X) + math.log([0.2, 0.3, 0.5][c])
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    np.testing.assert_allclose(machine.predict_log_proba(X), logs, rtol=1e-8, atol=1e-9)


def test_ill_conditioned_covariances_against_many_digits():
    rng = np.random.default_rng(0)
    n = 60
    base = rng.normal(size=(n, 3))
    # units sixteen orders apart, and two columns that differ in the fourth digit
    rows = np.column_stack([base[:, 0] * 1e8, base[:, 0] + 1e-4 * base[:, 1], base[:, 2] * 1e-8])
    label = (rng.random(n) < 0.5).astype(int)
    rows[label == 1] += [1e8, 1.0001, 1e-8]
    machine = GaussianClassifier().fit(rows, label)
    found = machine.decision_function(rows)
    wanted = odds_with_many_digits(rows, label)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert machine.certificate_.ok


def odds_with_many_digits(rows, label):
    with mpmath.workdps(60):
        scores = []
        for c in (0, 1):
            mine = [mpmath.matrix(row.tolist()) for row in rows[label == c]]
            mean = sum(mine[1:], mine[0]) / len(mine)
            scatter = mpmath.matrix(3, 3)
            for row in mine:
                scatter += (row - mean) * (row - mean).T
            scatter /= len(mine)
            inverse, volume = scatter**-1, mpmath.log(mpmath.det(scatter))
            steps = [mpmath.matrix(row.tolist()) - mean for row in rows]
            prior = mpmath.log(mpmath.mpf(len(mine)) / len(rows))
            scores.append([prior - ((s.T * inverse * s)[0] + volume) / 2 for s in steps])
        return np.array([float(b - a) for a, b in zip(*scores, strict=True)])


# --- streams, weights, units --------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 11])
def test_streams_are_batches(form, size):
    whole = GaussianClassifier(form).fit(X, y)
    stream = GaussianClassifier(form)
    for first in range(0, len(X), size):
        part = slice(first, first + size)
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2])
        assert np.isfinite(stream.predict_log_proba(X[:2])).all()
    np.testing.assert_allclose(stream.covariance_, whole.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(stream.predict_proba(X), whole.predict_proba(X), atol=1e-9)


def test_a_class_without_rows_is_never_predicted():
    machine = GaussianClassifier().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    far = np.vstack([X, X * 1e6])
    assert set(machine.predict(far)) <= {0, 1}
    assert np.isfinite(machine.predict_log_proba(far)).all()
    asked = GaussianClassifier(prior="uniform").partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert (asked.predict_proba(X)[:, 2] > 0).any()


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-8, 8), st.integers(-8, 8), st.integers(0, 1), st.integers(0, 3)),
        min_size=6,
        max_size=20,
    ),
    st.sampled_from(FORMS),
    st.booleans(),
)
def test_weights_mean_repetition(case, form, shared):
    case = [(0, 1, 0, 2), (3, 0, 1, 1), (1, 5, 1, 2), (2, -4, 0, 1), *case]
    rows, label = np.array([c[:2] for c in case]) / 4, np.array([c[2] for c in case])
    weights = np.array([c[3] for c in case])
    index = np.repeat(np.arange(len(rows)), weights)
    weighted = GaussianClassifier(form, shared=shared, floor=1e-6)
    weighted.fit(rows, label, sample_weight=weights)
    repeated = GaussianClassifier(form, shared=shared, floor=1e-6).fit(rows[index], label[index])
    np.testing.assert_allclose(
        weighted.predict_proba(rows), repeated.predict_proba(rows), atol=1e-6
    )
    turned = GaussianClassifier(form, shared=shared, floor=1e-6).fit(
        rows[index][:, ::-1], -label[index]
    )
    np.testing.assert_allclose(
        turned.predict_proba(rows[:, ::-1])[:, ::-1], repeated.predict_proba(rows), atol=1e-6
    )


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_units_do_not_matter(form):
    units = np.array([1e-9, 1.0, 1e9, 1e3])
    base = GaussianClassifier(form).fit(X, y)
    scaled = GaussianClassifier(form).fit(X * units, y)
    np.testing.assert_allclose(scaled.predict_proba(X * units), base.predict_proba(X), atol=1e-9)
    moved = GaussianClassifier(form).fit(X + 1e5, y)
    np.testing.assert_allclose(moved.predict_proba(X + 1e5), base.predict_proba(X), atol=1e-5)


# --- the floor -----------------------------------------------------------------------------------


def test_floor_is_kept_and_reported():
    rows = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 7.0)])  # two flat directions
    machine = GaussianClassifier(floor=1e-6).fit(rows, y)
    assert machine.floored_.tolist() == [2, 2, 2]
    assert machine.certificate_.ok
    assert "6 variances were raised" in machine.certificate_.statement
    assert machine.solution_.detail == "6 variances raised to the floor"
    assert machine.score(rows, y) > 0.95
    other = rows.copy()
    other[:, 5] = -50.0  # a constant column says nothing, whatever comes later
    np.testing.assert_allclose(machine.predict_proba(other), machine.predict_proba(rows), atol=1e-6)
    few = GaussianClassifier().fit(
        rows[[0, 1, 60, 61]], y[[0, 1, 60, 61]]
    )  # fewer rows than columns
    assert np.isfinite(few.predict_log_proba(rows)).all()
    alone = GaussianClassifier(unbiased=True).fit([[0.0], [1.0]], [0, 1])  # one row each
    assert alone.predict([[0.1], [0.8]]).tolist() == [0, 1]


def test_a_wrong_answer_is_not_certified():
    for machine in (GaussianClassifier().fit(X, y), GaussianClassifier("diagonal").fit(X, y)):
        problem, value = machine._asked.problem, machine.solution_.value
        assert certify(problem, value).ok
        assert not certify(problem, replace(value, values=value.values * 1.001)).ok
        assert not certify(problem, replace(value, mean=value.mean + 1e-3)).ok
        wide = value.values.copy()
        wide[:, -1] *= 1e16  # ill-conditioned, which is no excuse
        assert not certify(problem, replace(value, values=wide)).ok
        other = replace(value, scale=2 * value.scale, values=value.values / 4)  # the same in units
        assert certify(problem, other).ok


def test_answers_below_the_floor_or_off_the_mean_are_not_certified():
    rows = np.column_stack([X, X[:, 0]])
    for floor in (1e-9, 1e-15):
        machine = GaussianClassifier(floor=floor).fit(rows, y)
        problem, value = machine._asked.problem, machine.solution_.value
        assert machine.certificate_.ok
        low = np.where(value.values <= floor * 1.001, floor / 1e5, value.values)
        assert not certify(problem, replace(value, values=low)).ok
        assert not certify(problem, replace(value, values=3 * value.values)).ok
    narrow = np.array([0, 1, 2, 1e6, 1e6 + 1, 1e6 + 2])[:, None]  # thin classes far apart
    machine = GaussianClassifier().fit(narrow, [0, 0, 0, 1, 1, 1])
    problem, value = machine._asked.problem, machine.solution_.value
    assert machine.certificate_.ok
    assert not certify(problem, replace(value, mean=value.mean + 0.1)).ok
    skew = np.linalg.inv(np.linalg.cholesky(problem.sample()[0])).transpose(0, 2, 1)
    twisted = replace(value, values=np.ones_like(value.values), vectors=skew)
    assert not certify(problem, twisted).ok


def test_sampling_returns_the_model():
    machine = GaussianClassifier(prior=[0.5, 0.3, 0.2]).fit(X, y)
    rows, label = machine.sample(60_000, random_state=0)
    again = GaussianClassifier().fit(rows, label)
    np.testing.assert_allclose(again.prior_, machine.prior_, atol=0.01)
    np.testing.assert_allclose(again.means_, machine.means_, atol=0.02)
    np.testing.assert_allclose(again.covariance_, machine.covariance_, atol=0.02)
    np.testing.assert_array_equal(
        machine.sample(5, random_state=1)[0], machine.sample(5, random_state=1)[0]
    )
    named = GaussianClassifier("spherical", shared=True).fit(X, np.array(["a", "b", "c"])[y])
    assert set(named.sample(50, random_state=0)[1]) <= {"a", "b", "c"}


# --- bad input -----------------------------------------------------------------------------------


def test_loss_and_refusals():
    loss = np.array([[0, 1, 9], [1, 0, 1], [1, 1, 0]])
    machine = GaussianClassifier(loss=loss).fit(X, y)
    risk = machine.predict_proba(X) @ loss.T
    np.testing.assert_array_equal(machine.predict(X), risk.argmin(axis=1))
    with pytest.raises(ValueError, match="row 3, column 1"):
        GaussianClassifier().fit(np.where(np.arange(600).reshape(150, 4) == 13, np.nan, X), y)
    with pytest.raises(ValueError, match="overflow"):
        GaussianClassifier().fit([[1e200], [-1e200], [0.0]], [0, 0, 1])
    with pytest.raises(ValueError, match="only one class"):
        GaussianClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="'b' in row 1, column 0 of X is not a number"):
        GaussianClassifier().fit(np.array([[1.0], ["b"]], dtype=object), [0, 1])
    for wrong in (0, 2.5):
        with pytest.raises((ValueError, TypeError), match="n_samples="):
            machine.sample(wrong)
    with config(memory="100 MB"), pytest.raises(MemoryBudgetError, match="diagonal"):
        GaussianClassifier().fit(np.zeros((2, 3000)), [0, 1])
    assert np.isfinite(GaussianClassifier().fit(X, y).predict_log_proba(X * 1e200)).all()
    with pytest.raises(ValueError, match="column 1 of X overflow"):  # between classes, not in them
        GaussianClassifier().fit([[1.0, 1e160], [2.0, 1e160], [1.0, -1e160]], [0, 0, 1])
    with pytest.raises(ValueError, match="sample_weight adds"):
        GaussianClassifier().fit(X, y, sample_weight=np.full(len(X), 1e307))


@pytest.mark.parametrize("form", FORMS)
def test_scales_at_the_ends_of_float64(form):
    wanted = GaussianClassifier(form).fit(X, y).predict_log_proba(X)
    for scale in (1e-140, 1e140):
        machine = GaussianClassifier(form).fit(X * scale, y)
        np.testing.assert_allclose(machine.predict_log_proba(X * scale), wanted, atol=1e-8)
        assert machine.certificate_.ok
    with pytest.warns(UserWarning, match="column 0 of X are so small"):
        GaussianClassifier(form).fit(X * 1e-200, y)
    light = GaussianClassifier(form).fit(X, y, sample_weight=np.full(len(X), 1e-310))
    np.testing.assert_allclose(light.predict_log_proba(X), wanted, atol=1e-8)
    if form != "spherical":  # a constant column says nothing, however large it is
        rows = np.column_stack([X, np.full(len(X), 1e140)])
        found = GaussianClassifier(form).fit(rows, y).predict_log_proba(rows)
        np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_a_stream_keeps_its_form():
    rows, labels = X[50:, :2], y[50:] - 1  # as many classes as columns: shapes would even fit
    for first, later in (("diagonal", "full"), ("full", "spherical")):
        stream = GaussianClassifier(first).partial_fit(rows, labels, classes=[0, 1])
        before = stream.predict_proba(rows)
        stream.set_params(covariance=later)
        with pytest.raises(ParameterError, match=r"covariance=.* during a stream"):
            stream.partial_fit(rows, labels)
        np.testing.assert_array_equal(stream.predict_proba(rows), before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"covariance": "tied"},
        {"shared": "yes"},
        {"floor": 0.0},
        {"prior": [1.0]},
        {"loss": [[0, 1], [1, 0]]},
        {"unbiased": 1.5},
    ],
)
def test_parameters_out_of_range(wrong):
    with pytest.raises(ParameterError, match=f"GaussianClassifier: {next(iter(wrong))}="):
        GaussianClassifier(**wrong).fit(X, y)


def test_copies():
    machine = GaussianClassifier().fit(X, y)
    twin = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(twin.predict_proba(X), machine.predict_proba(X))


def test_unbiased_covariances():
    machine = GaussianClassifier(unbiased=True).fit(X, y)
    np.testing.assert_allclose(machine.covariance_[1], np.cov(X[y == 1].T), rtol=1e-10)
    shared = GaussianClassifier(unbiased=True, shared=True).fit(X, y)
    within = sum(np.cov(X[y == c].T) * (np.sum(y == c) - 1) for c in range(3))
    np.testing.assert_allclose(shared.covariance_, within / (len(y) - 3), rtol=1e-10)


def test_a_floor_that_nothing_can_be_divided_by_is_refused():
    with pytest.raises(ValueError, match="floor=5e-324 must be at least 1e-290"):
        GaussianClassifier(floor=5e-324).fit(np.ones((4, 2)), [0, 1, 0, 1])
