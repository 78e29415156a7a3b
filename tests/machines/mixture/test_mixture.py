"""Mixtures: against brute force, closed forms, scikit-learn and mpmath; likelihoods never fall."""

import pickle
import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pandas as pd
import pytest
from helpers.fake_clock import Ticking
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, special, stats
from sklearn import mixture
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer import (
    BernoulliMixture,
    GaussianMixture,
    MultinomialMixture,
    ParameterError,
    certify,
    config,
    deadline,
)
from mercer.machines.mixture import gaussian_mixture
from mercer.machines.mixture import machine as mixture_machine
from mercer.machines.mixture.discrete_em_steps import folded
from mercer.machines.mixture.gaussian_em_steps import Diagonal, Full, Shared, Spherical
from mercer.problems import GaussianMix, GaussianParts, TableParts, TopicMix
from mercer.solvers import EM, Status, solve

pytestmark = pytest.mark.numerics

SHAPES = {"full": Full(), "shared": Shared(), "diagonal": Diagonal(), "spherical": Spherical()}
THEIRS = {"full": "full", "shared": "tied", "diagonal": "diag", "spherical": "spherical"}
quick = settings(max_examples=15, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def blobs(n=240, d=2, k=3, seed=0):
    rng = np.random.default_rng(seed)
    turns = 0.6 * rng.standard_normal((k, d, d)) + 0.5 * np.eye(d)
    label = rng.integers(k, size=n)
    noise = np.einsum("nij,nj->ni", turns[label], rng.standard_normal((n, d)))
    return noise + 4.0 * rng.standard_normal((k, d))[label]


def tosses(n=400, k=2, d=3, seed=0):
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.1, 0.9, size=(k, d))
    return (rng.uniform(size=(n, d)) < chances[rng.integers(k, size=n)]).astype(float)


def documents(n=60, k=3, d=12, length=40, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.2), k)
    shares = rng.dirichlet(np.full(k, 0.3), n)
    return np.array([rng.multinomial(length, row) for row in shares @ topics], dtype=float)


def never_falls(values):
    fall = (values[:-1] - values[1:]) / np.maximum(np.abs(values[:-1]), 1.0)
    return fall.max(initial=0.0) <= 1e-9


# --- Gaussians: closed forms, others' formulas, brute force -------------------------------------


def test_one_gaussian_is_the_mean_and_the_covariance():
    X, w = blobs(), np.random.default_rng(1).integers(1, 4, 240)
    mean, C = np.average(X, axis=0, weights=w), np.cov(X.T, aweights=w, bias=True)
    expected = {
        "full": C[None],
        "shared": C,
        "diagonal": np.diag(C)[None],
        "spherical": [np.trace(C) / 2],
    }
    for name, covariance in expected.items():
        fitted = GaussianMixture(1, covariance=name).fit(X, sample_weight=w)
        np.testing.assert_allclose(fitted.means_[0], mean, rtol=1e-12)
        np.testing.assert_allclose(fitted.covariances_, covariance, rtol=1e-10)
        assert fitted.weights_.tolist() == [1.0]
        assert fitted.certificate_.ok


@pytest.mark.parametrize("name", SHAPES)
def test_densities_are_those_of_scipy_and_scikit_learn(name):
    X = blobs(d=3)
    ours = GaussianMixture(3, covariance=name).fit(X)
    k, d = ours.means_.shape
    theirs = mixture.GaussianMixture(k, covariance_type=THEIRS[name])
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.precisions_cholesky_ = mixture._gaussian_mixture._compute_precision_cholesky(
        ours.covariances_, THEIRS[name]
    )
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)
    full = SHAPES[name].expanded(ours.covariances_, k, d)
    parts = [
        np.log(w) + stats.multivariate_normal(m, C).logpdf(X)
        for w, m, C in zip(ours.weights_, ours.means_, full, strict=True)
    ]
    np.testing.assert_allclose(ours.score_samples(X), special.logsumexp(parts, axis=0), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)
    assert (ours.predict(X) == ours.predict_proba(X).argmax(axis=1)).all()
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-9)
    assert ours.score(X) == pytest.approx(ours.log_likelihoods_[-1] / len(X), rel=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_as_likely_as_scikit_learn_finds(name):
    X = blobs(600, d=3, seed=4)
    ours = GaussianMixture(3, covariance=name, n_init=6).fit(X)
    theirs = mixture.GaussianMixture(
        3, covariance_type=THEIRS[name], n_init=6, tol=1e-7, max_iter=500, random_state=0
    ).fit(X)
    assert ours.score(X) >= theirs.score(X) - 1e-5
    assert ours.certificate_.ok
    assert never_falls(ours.log_likelihoods_)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_the_fast_pass_is_the_exact_one(name, shift):
    X = blobs(500, d=4, k=5) / 4.0 + shift
    problem = GaussianMix(X, np.ones(500), 5, SHAPES[name], 1e-6)
    parts = problem.start(np.random.RandomState(0))
    roots = SHAPES[name].roots(parts.covariances, 5, 4)
    assert problem._quick(roots)
    fast, exact = problem.e_step(parts), problem.e_step(parts, exact=True)
    assert fast.objective == pytest.approx(exact.objective, rel=1e-12)
    one, two = problem.m_step(parts, fast.sums), problem.m_step(parts, exact.sums)
    np.testing.assert_allclose(one.means, two.means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.covariances, two.covariances, rtol=1e-8, atol=1e-10)


def test_a_shared_covariance_against_brute_force():
    """Its likelihood is bounded, so the largest of all is well defined."""
    x = np.concatenate([stats.norm.ppf(np.linspace(0.1, 0.9, 9)), [2.5, 3.0, 3.2, 4.0]])

    def loss(theta):
        share, first, second, log_width = special.expit(theta[0]), *theta[1:]
        parts = [
            np.log(p + 1e-300) - 0.5 * ((x - m) / np.exp(log_width)) ** 2 - log_width
            for p, m in ((share, first), (1 - share, second))
        ]
        return -special.logsumexp(parts, axis=0).sum() + 0.5 * len(x) * np.log(2 * np.pi)

    starts = np.random.default_rng(0).normal(scale=2.0, size=(12, 4))
    best = min(optimize.minimize(loss, start).fun for start in starts)
    ours = GaussianMixture(2, covariance="shared", n_init=20, tol=1e-10).fit(x[:, None])
    assert -ours.log_likelihoods_[-1] == pytest.approx(best, abs=1e-6)


def test_full_covariances_against_a_general_optimiser():
    X = blobs(80, seed=3)
    ours = GaussianMixture(2, tol=1e-10, n_init=10).fit(X)

    def loss(theta):
        share, means = special.expit(theta[0]), theta[1:5].reshape(2, 2)
        parts = []
        for p, m, c in zip((share, 1 - share), means, theta[5:].reshape(2, 3), strict=True):
            L = np.array([[np.exp(c[0]), 0.0], [c[1], np.exp(c[2])]])
            parts.append(np.log(p) + stats.multivariate_normal(m, L @ L.T).logpdf(X))
        return -special.logsumexp(parts, axis=0).sum()

    roots = np.linalg.cholesky(ours.covariances_)
    numbers = [[np.log(L[0, 0]), L[1, 0], np.log(L[1, 1])] for L in roots]
    logit = special.logit(ours.weights_[0])
    theta = np.concatenate([[logit], ours.means_.ravel(), np.ravel(numbers)])
    assert loss(theta) == pytest.approx(-ours.log_likelihoods_[-1], rel=1e-9)
    assert np.abs(optimize.approx_fprime(theta, loss, 1e-6)).max() < 0.05  # of 80 rows
    assert optimize.minimize(loss, theta).fun >= loss(theta) - 1e-5


# --- relations ----------------------------------------------------------------------------------

rows = st.integers(0, 10**6).map(
    lambda seed: np.random.default_rng(seed).integers(-6, 7, size=(14, 2)) / 4.0
)


@pytest.mark.filterwarnings("ignore:.*collapsed components:UserWarning")
@pytest.mark.filterwarnings("ignore:.*iteration limit:UserWarning")
@pytest.mark.parametrize("name", SHAPES)
@quick
@given(X=rows, k=st.integers(1, 4), seed=st.integers(0, 99))
def test_gaussian_likelihoods_never_fall(name, X, k, seed):
    fitted = GaussianMixture(k, covariance=name, random_state=seed, n_init=1).fit(X)
    assert never_falls(fitted.log_likelihoods_)
    assert (np.linalg.eigvalsh(SHAPES[name].expanded(fitted.covariances_, k, 2)) > 0).all()
    assert fitted.weights_.sum() == pytest.approx(1.0)
    assert fitted.certificate_.quantities.fault <= 1e-9


MACHINES = [
    (GaussianMixture(2), blobs()),
    (GaussianMixture(3, covariance="shared"), blobs()),
    (GaussianMixture(3, covariance="spherical"), blobs()),
    (GaussianMixture("bic", max_components=3, covariance="diagonal"), blobs()),
    (BernoulliMixture(2), tosses(d=6)),
    (MultinomialMixture(3), documents()),
    (MultinomialMixture(3, source="documents"), documents()),
]


@pytest.mark.parametrize(("machine", "X"), MACHINES, ids=lambda m: repr(m)[:60])
def test_weights_mean_repetition_and_order_does_not_matter(machine, X):
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, len(X))
    index = rng.permutation(np.repeat(np.arange(len(X)), w))
    weighted = clone(machine).fit(X, sample_weight=w)
    repeated = clone(machine).fit(X[index])
    np.testing.assert_array_equal(weighted.weights_, repeated.weights_)
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    total = repeated.score(X[index])
    assert weighted.score(X, sample_weight=w) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(("machine", "X"), MACHINES, ids=lambda m: repr(m)[:60])
def test_dense_sparse_tables_copies_and_pickles(machine, X):
    fitted = clone(machine).fit(X)
    for other in (sparse.csr_array(X), sparse.csc_matrix(X), pd.DataFrame(X).rename(columns=str)):
        twin = clone(machine).fit(other)
        np.testing.assert_allclose(twin.predict_proba(other), fitted.predict_proba(X), atol=1e-5)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.score_samples(X), fitted.score_samples(X))
    assert copy.certificate_ == fitted.certificate_
    assert fitted.certificate_.ok, fitted.certificate_
    assert never_falls(fitted.log_likelihoods_)
    assert fitted.fit_predict(X).tolist() == fitted.predict(X).tolist()
    again = clone(machine).fit(X)
    np.testing.assert_array_equal(again.log_likelihoods_, fitted.log_likelihoods_)


def test_threads_do_not_change_a_bit():
    X = blobs(9000, d=3, k=4)
    for machine, data in (
        (GaussianMixture(4, max_iter=20, tol=1e-3), X),
        (BernoulliMixture(3, tol=1e-3), X),
        (MultinomialMixture(3, tol=1e-2), np.round(np.abs(X))),
    ):
        with config(threads=1):
            one = clone(machine).fit(data)
        with config(threads=3):
            three = clone(machine).fit(data)
        np.testing.assert_array_equal(one.log_likelihoods_, three.log_likelihoods_)


def test_units_and_origin_do_not_matter():
    X = blobs()
    scale, shift = np.array([1e4, 1e-5]), np.array([1e6, -3.0])
    for name in ("full", "shared", "diagonal"):
        base = GaussianMixture(3, covariance=name).fit(X)
        moved = GaussianMixture(3, covariance=name).fit(X * scale + shift)
        np.testing.assert_allclose(np.sort(moved.weights_), np.sort(base.weights_), atol=1e-4)
        change = np.log(scale).sum()
        assert moved.score(X * scale + shift) == pytest.approx(base.score(X) - change, abs=1e-5)


# --- what is hard -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("X", "k"),
    [
        (np.array([[9999], [0]], dtype=np.float32), 1),
        (np.array([[9999], [0]], dtype=np.float32), 2),
        (np.full((20, 3), 7.0), 2),
        (np.arange(6.0).reshape(3, 2), 5),
        (1e8 + 1e-8 * np.random.default_rng(0).standard_normal((50, 2)), 2),
        (np.array([[1e300], [-1e300], [0.0]]) * 1e-200, 2),
        (np.r_[np.zeros((30, 1)), [[1e150]]], 2),
    ],
    ids=["two", "two-two", "equal", "more than rows", "tiny", "huge", "far"],
)
def test_degenerate_rows(name, X, k):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted = GaussianMixture(k, covariance=name).fit(X)
    d = X.shape[1]
    assert np.isfinite(fitted.score_samples(X)).all()
    least = np.linalg.eigvalsh(SHAPES[name].expanded(fitted.covariances_, k, d)).min()
    assert least > 0
    assert never_falls(fitted.log_likelihoods_)
    reported = any("collapsed components" in str(w.message) for w in seen)
    assert reported == fitted.collapsed_.any()
    assert fitted.certificate_.quantities.fault <= 1e-9


def test_a_component_on_one_row_is_reported_and_passed_over():
    X = np.r_[np.random.default_rng(0).normal(size=(60, 1)), [[50.0]]]
    with pytest.warns(UserWarning, match=r"collapsed components \(1 of 2\).*floor"):
        fitted = GaussianMixture(2, n_init=1).fit(X)
    assert fitted.collapsed_.sum() == 1
    assert fitted.certificate_.quantities.collapsed == 1
    assert "collapsed" in fitted.certificate_.statement


def test_starts_that_collapse_late_are_passed_over():
    """After a dozen passes this one is whole and ahead, and later it collapses."""
    X = np.random.default_rng(1).normal(size=(25, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = GaussianMixture(3, n_init=4).fit(X)
    assert not fitted.collapsed_.any()
    assert fitted.certificate_.ok


@pytest.mark.parametrize("criterion", ["bic", "mdl"])
@pytest.mark.parametrize("name", SHAPES)
def test_numbers_that_lead_to_a_collapse_are_not_chosen(name, criterion):
    """Ten Gaussians on twenty rows are as likely as the floor lets them be."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = GaussianMixture(criterion, covariance=name).fit(X)
    assert not fitted.collapsed_.any()
    value = fitted.bic(X) if criterion == "bic" else fitted.description_length(X)
    assert fitted.criteria_[fitted.n_components_ - 1] == pytest.approx(value)
    if name == "full" and criterion == "bic":  # the length of few rows passes them over by itself
        assert fitted.criteria_.argmin() + 1 > fitted.n_components_


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("size", [1e160, 1e200, 1e308])
def test_rows_so_far_away_that_squares_overflow(name, size):
    fitted = GaussianMixture(3, covariance=name).fit(blobs())
    rows = size * np.array([[1.0, -1.0], [0.5, 1.0], [0.0, -1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shares, density = fitted.predict_proba(rows), fitted.score_samples(rows)
    assert np.isfinite(density).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    if name != "shared":  # where all parts are equally wide they share the row
        near = fitted.predict_proba(rows / size * 1e100)
        np.testing.assert_array_equal(shares, near)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_columns_whose_variance_is_no_number_are_named(size):
    X = np.c_[blobs()[:, 0], size * blobs()[:, 1]]
    with pytest.raises(ValueError, match=r"GaussianMixture: column 1 of X .*number"):
        GaussianMixture(2).fit(X)
    if size < 1:  # one variance for all columns: the wide one counts
        assert np.isfinite(GaussianMixture(2, covariance="spherical").fit(X).score(X))
    fitted = GaussianMixture(3).fit(blobs() * 1e150)
    far = fitted.score(blobs() * 1e150) + 2 * np.log(1e150)
    assert far == pytest.approx(GaussianMixture(3).fit(blobs()).score(blobs()), abs=1e-9)


def test_a_start_that_leads_nowhere():
    """Parts far from all rows, two alike, one of no weight: numbers stay numbers."""
    X = blobs()
    problem = GaussianMix(X, np.ones(len(X)), 3, Full(), 1e-6)
    bad = GaussianParts(
        np.array([1.0, 0.0, 0.0]),
        np.array([[1e6, 0], [1e6, 0], [0, 0]]),
        np.tile(np.eye(2), (3, 1, 1)),
    )
    found = EM(max_iter=50).run(problem, _watch(), bad).value
    assert np.isfinite(found.likelihoods).all()
    assert never_falls(found.likelihoods)
    assert problem.faults(found) <= 1e-9


def _watch():
    from mercer.solvers import Watch

    return Watch()


@pytest.mark.parametrize("power", [2, 6, 10, 14])
def test_log_densities_against_mpmath(power):
    """Right to 1e-6, or a warning about the condition number."""
    rng = np.random.default_rng(power)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    X = rng.standard_normal((200, 4)) * np.logspace(0, -power / 2, 4) @ Q.T
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted = GaussianMixture(1, floor=1e-18).fit(X)
    warned = any("condition number" in str(w.message) for w in seen)
    assert warned == (power >= 10)
    mpmath.mp.dps = 60
    # the density of the covariance as it is held, in exact arithmetic
    parts, x = fitted._parts, fitted._converted(X)[:5]
    C = mpmath.matrix(parts.covariances[0].tolist())
    constant = -4 * mpmath.log(2 * mpmath.pi) / 2 - mpmath.log(mpmath.det(C)) / 2
    inverse, worst = C**-1, 0.0
    for row, found in zip(x, fitted.score_samples(X)[:5], strict=True):
        z = mpmath.matrix((row - parts.means[0]).tolist())
        exact = constant - (z.T * inverse * z)[0] / 2 + fitted._problem.log_volume
        worst = max(worst, float(abs(exact - found) / abs(exact)))
    assert warned or worst <= 1e-6


# --- the number of components, samples, endings -------------------------------------------------


@pytest.mark.parametrize("criterion", ["bic", "mdl"])
def test_the_number_of_components_is_found(criterion):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(m, 0.6, (150, 2)) for m in ([0, 0], [4, 0], [0, 5])])
    fitted = GaussianMixture(criterion, max_components=5).fit(X)
    assert fitted.n_components_ == 3
    assert fitted.criteria_.argmin() == 2
    value = fitted.bic(X) if criterion == "bic" else fitted.description_length(X)
    assert value == pytest.approx(fitted.criteria_[2], rel=1e-9)
    coins = BernoulliMixture(criterion, max_components=4).fit(tosses(800, 2, 10, seed=1))
    assert coins.n_components_ == 2
    bags = MultinomialMixture(criterion, source="documents", max_components=4)
    assert 1 <= bags.fit(documents()).n_components_ <= 4
    clone(fitted).set_params(n_components=2).fit(X)


@pytest.mark.parametrize("name", SHAPES)
def test_samples_have_the_moments_of_the_mixture(name):
    fitted = GaussianMixture(2, covariance=name).fit(blobs())
    X, labels = fitted.sample(40_000, random_state=0)
    full = SHAPES[name].expanded(fitted.covariances_, 2, 2)
    for j in range(2):
        part = X[labels == j]
        assert len(part) / len(X) == pytest.approx(fitted.weights_[j], abs=0.02)
        width = np.sqrt(np.diag(full[j]))
        assert np.abs(part.mean(axis=0) - fitted.means_[j]).max() < 0.05 * width.max()
        np.testing.assert_allclose(np.cov(part.T), full[j], atol=0.06 * full[j].max())
    again = fitted.sample(5, random_state=1)[0]
    np.testing.assert_array_equal(again, fitted.sample(5, random_state=1)[0])


def test_stopping_and_limits():
    X = np.random.default_rng(0).standard_t(4, size=(500, 3))
    with pytest.warns(ConvergenceWarning, match="callback asked"):
        fitted = GaussianMixture(5, callback=lambda p: p.iteration >= 4, n_init=1).fit(X)
    assert fitted.solution_.status is Status.STOPPED
    assert not fitted.converged_
    with pytest.warns(ConvergenceWarning, match="callback asked"):  # among the starts
        early = GaussianMixture(5, callback=lambda p: p.iteration >= 4, n_init=4).fit(X)
    assert early.n_iter_ <= 12
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        limited = GaussianMixture(5, max_iter=2, tol=1e-12).fit(X)
    assert not limited.certificate_.ok
    with pytest.warns(ConvergenceWarning, match="time limit"):
        GaussianMixture(5, time_limit=1e-9, n_init=1).fit(X)


@pytest.mark.parametrize("calls", range(1, 9))
def test_a_fit_that_is_stopped_never_says_it_is_solved(calls):
    """A callback may speak up after a leap as well as after a step."""
    left = iter(range(calls - 1))
    with pytest.warns(ConvergenceWarning, match="callback asked"):
        fitted = GaussianMixture(
            3, n_init=1, tol=1e-12, callback=lambda p: next(left, None) is None
        ).fit(blobs())
    assert fitted.solution_.status is Status.STOPPED
    assert len(fitted.solution_.trace) == calls
    assert not fitted.converged_


@pytest.mark.parametrize("most", range(1, 12))
def test_no_more_passes_than_allowed(most):
    X = np.random.default_rng(0).standard_t(4, size=(500, 3))
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        assert GaussianMixture(5, max_iter=most, tol=1e-13, n_init=1).fit(X).n_iter_ <= most


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_components": 0},
        {"n_components": "aic"},
        {"n_components": 2.5},
        {"covariance": "tied"},
        {"floor": 0.0},
        {"tol": -1.0},
        {"n_init": 0},
        {"random_state": "x"},
    ],
    ids=str,
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        GaussianMixture(**wrong).fit(blobs())


def test_a_failed_fit_changes_nothing():
    fitted = GaussianMixture(2).fit(blobs())
    before = dict(fitted.__dict__)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit([[np.nan, 1.0]])
    assert fitted.__dict__ == before


# --- certificates -------------------------------------------------------------------------------


def test_certificates_refuse_what_is_wrong_and_judge_others():
    X = blobs(500)
    problem = GaussianMix(X, np.ones(500), 3, Full(), 1e-9)
    good = solve(problem, EM(tol=1e-9, n_init=5)).value
    assert certify(problem, good).ok
    assert not certify(problem, replace(good, means=good.means + 0.1)).ok
    assert not certify(problem, replace(good, shares=good.shares * 1.01)).ok
    assert not certify(problem, replace(good, covariances=-good.covariances)).ok
    assert not certify(problem, replace(good, likelihoods=np.array([1.0, 0.5]))).ok
    theirs = mixture.GaussianMixture(3, tol=1e-9, max_iter=1000, reg_covar=0, random_state=0).fit(X)
    judged = certify(problem, GaussianParts(theirs.weights_, theirs.means_, theirs.covariances_))
    assert judged.ok
    assert judged.quantities.log_likelihood == pytest.approx(theirs.score(X), rel=1e-12)


def test_certificates_look_at_shapes_symmetry_and_conditions():
    X = blobs(500)
    problem = GaussianMix(X, np.ones(500), 3, Full(), 1e-9)
    good = solve(problem, EM(tol=1e-9, n_init=5)).value
    skew = good.covariances + np.array([[0.0, 0.3], [0.0, 0.0]])
    assert not certify(problem, replace(good, covariances=skew)).ok
    assert not certify(problem, replace(good, shares=np.ones(1))).ok
    assert not certify(problem, replace(good, covariances=good.covariances[0])).ok
    # a column that repeats another, and next to no floor: steps fall by rounding, and say so
    rng = np.random.default_rng(0)
    for seed in range(6):
        Y = rng.normal(size=(24, 4))
        Y[:, 3] = Y[:, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = GaussianMixture(5, floor=1e-11, random_state=seed).fit(Y)
            assert fitted.certificate_.ok == fitted.converged_
    heads = tosses()
    coins = BernoulliMixture(2).fit(heads)
    question, value = coins._question(heads, np.ones(len(heads)), 2), coins.solution_.value
    assert certify(question, value).ok
    assert not certify(question, replace(value, table=value.table + 0.7)).ok


def test_parameters_changed_after_the_fit_do_not_count():
    X, counts = blobs(), documents()
    gauss = GaussianMixture(3).fit(X)
    bic, length = gauss.bic(X), gauss.description_length(X)
    gauss.set_params(covariance="spherical", n_components=7)
    assert (gauss.bic(X), gauss.description_length(X)) == (bic, length)
    coins = BernoulliMixture(2).fit(counts)
    score = coins.score(counts)
    assert coins.set_params(binarize=3.0).score(counts) == score
    topics = MultinomialMixture(3).fit(counts)
    shares, drawn = topics.transform(counts), topics.sample(2, random_state=0)[0]
    topics.set_params(source="documents", document_smoothing=9.0)
    np.testing.assert_array_equal(topics.transform(counts), shares)
    np.testing.assert_array_equal(topics.sample(2, random_state=0)[0], drawn)
    with pytest.raises(ValueError, match="need source='documents'"):
        topics.bic(counts)


@pytest.mark.parametrize(
    "fitted",
    [
        GaussianMixture(2).fit(blobs()),
        BernoulliMixture(2).fit(tosses()),
        MultinomialMixture(2).fit(documents()),
        MultinomialMixture(2, source="documents").fit(documents()),
    ],
    ids=lambda m: type(m).__name__,
)
def test_how_many_to_draw(fitted):
    assert fitted.sample(0)[0].shape == (0, fitted.n_features_in_)
    for wrong in (-1, 2.5, "a", None, True):
        with pytest.raises(ParameterError, match=f"{type(fitted).__name__}: n_samples="):
            fitted.sample(wrong)
    with pytest.raises(ParameterError, match="random_state='x'"):
        fitted.sample(1, random_state="x")


def test_a_certificate_does_not_follow_the_callers_array():
    X = blobs()
    fitted = GaussianMixture(3).fit(X)
    X[:] = 0.0
    assert fitted.certificate_.ok


# --- coins --------------------------------------------------------------------------------------


def test_two_coins():
    """Each trial: one of two coins, tossed three times. The eight cells decide the parameters."""
    share, p, q = 0.3, 0.9, 0.25
    cells = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T
    heads = cells.sum(axis=1)
    chance = share * p**heads * (1 - p) ** (3 - heads)
    chance += (1 - share) * q**heads * (1 - q) ** (3 - heads)
    coins = BernoulliMixture(2, smoothing=0.0, tol=1e-13, max_iter=5000)
    coins.fit(cells, sample_weight=1000 * chance)
    order = np.argsort(-coins.means_[:, 0])
    np.testing.assert_allclose(coins.weights_[order], [share, 1 - share], atol=1e-4)
    np.testing.assert_allclose(coins.means_[order], [[p] * 3, [q] * 3], atol=1e-4)
    np.testing.assert_allclose(np.exp(coins.score_samples(cells)), chance, atol=1e-7)
    assert coins.certificate_.ok
    assert never_falls(coins.log_likelihoods_)


def test_coins_against_brute_force():
    X = tosses(60, 2, 3, seed=5)

    def loss(theta):
        share, chances = special.expit(theta[0]), special.expit(theta[1:]).reshape(2, 3)
        parts = [
            np.log(w + 1e-300) + X @ np.log(c + 1e-300) + (1 - X) @ np.log(1 - c + 1e-300)
            for w, c in ((share, chances[0]), (1 - share, chances[1]))
        ]
        return -special.logsumexp(parts, axis=0).sum()

    starts = np.random.default_rng(0).normal(size=(12, 7))
    best = min(optimize.minimize(loss, start).fun for start in starts)
    ours = BernoulliMixture(2, smoothing=0.0, n_init=30, tol=1e-11, max_iter=3000).fit(X)
    assert -ours.log_likelihoods_[-1] <= best + 1e-4


@quick
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), smoothing=st.sampled_from([0.0, 0.5]))
def test_coins_never_fall(seed, k, smoothing):
    X = np.random.default_rng(seed).integers(0, 2, size=(12, 4)).astype(float)
    with warnings.catch_warnings():
        # on a dozen random rows steps may go on for long: what must hold holds then, too
        warnings.filterwarnings("ignore", message=".*(collapsed|iteration limit)")
        fitted = BernoulliMixture(k, smoothing=smoothing, random_state=seed, n_init=1).fit(X)
    assert never_falls(fitted.log_likelihoods_)
    assert np.isfinite(fitted.score_samples(1 - X)).all()
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)


def test_one_set_of_coins_is_the_share_of_heads():
    X = tosses()
    fitted = BernoulliMixture(1, smoothing=2.0).fit(X)
    np.testing.assert_allclose(fitted.means_[0], (X.sum(axis=0) + 2.0) / (len(X) + 4.0))
    drawn, _ = fitted.sample(20_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), fitted.means_[0], atol=0.02)


def test_binary_rows_and_thresholds():
    X = tosses()
    np.testing.assert_array_equal(
        BernoulliMixture(2).fit(3 * X - 1).means_, BernoulliMixture(2, binarize=None).fit(X).means_
    )
    with pytest.raises(ValueError, match="zeros and ones only"):
        BernoulliMixture(2, binarize=None).fit(2 * X)
    with pytest.raises(ParameterError, match="at least zero for sparse"):
        BernoulliMixture(2, binarize=-1.0).fit(sparse.csr_array(X))


def test_digits_fall_into_components():
    X, y = load_digits(return_X_y=True)
    fitted = BernoulliMixture(20, binarize=7.0).fit(X)
    table = np.zeros((20, 10))
    np.add.at(table, (fitted.predict(X), y), 1)
    assert table.max(axis=1).sum() / len(X) > 0.75
    assert fitted.certificate_.ok


# --- words --------------------------------------------------------------------------------------


def test_one_topic_is_the_frequency_of_words():
    X = documents()
    for source in ("words", "documents"):
        fitted = MultinomialMixture(1, source=source, smoothing=0.5).fit(X)
        expected = (X.sum(axis=0) + 0.5) / (X.sum() + 0.5 * X.shape[1])
        np.testing.assert_allclose(fitted.components_[0], expected)
        np.testing.assert_allclose(fitted.score_samples(X), X @ np.log(expected))
        perplexity = np.exp(-(X @ np.log(expected)).sum() / X.sum())
        assert fitted.perplexity(X) == pytest.approx(perplexity)


def test_a_table_of_low_rank_is_found_again():
    """P(w, d) of rank two: relative entropy to it goes to zero."""
    rng = np.random.default_rng(0)
    topics, shares = rng.dirichlet(np.full(8, 0.3), 2), rng.dirichlet(np.ones(2), 30)
    X = 1000 * shares @ topics
    fitted = MultinomialMixture(
        2, smoothing=0.0, document_smoothing=0.0, tol=1e-12, max_iter=5000
    ).fit(X)
    found = fitted.transform(X) @ fitted.components_
    assert special.rel_entr(shares @ topics, found).sum(axis=1).max() < 1e-4
    assert fitted.certificate_.ok


def test_topics_against_brute_force():
    X = documents(6, 2, 4, 20, seed=2)

    def loss(theta):
        table = special.softmax(theta[:8].reshape(2, 4), axis=1)
        shares = special.softmax(theta[8:].reshape(6, 2), axis=1)
        prior = 0.5 * np.log(table).sum() + 0.5 * np.log(shares).sum()
        return -(X * np.log(shares @ table)).sum() - prior

    starts = np.random.default_rng(0).normal(size=(8, 20))
    best = min(optimize.minimize(loss, start).fun for start in starts)
    problem = TopicMix(sparse.csr_array(X), np.ones(6), 2, 0.5, 0.5)
    found = solve(problem, EM(tol=1e-12, max_iter=5000, n_init=20)).value
    assert -found.likelihoods[-1] == pytest.approx(best, abs=1e-4)
    assert never_falls(found.likelihoods)


def test_folding_in_finds_the_one_best_blend():
    X = documents()
    fitted = MultinomialMixture(3, document_smoothing=0.3).fit(X)
    new = documents(5, seed=9)
    for row, found in zip(new, fitted.transform(new), strict=True):

        def loss(theta, row=row):
            share = special.softmax(np.r_[theta, 0.0])
            return -row @ np.log(share @ fitted.components_) - 0.3 * np.log(share).sum()

        best = optimize.minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(found, special.softmax(np.r_[best.x, 0.0]), atol=2e-3)
    alone = np.vstack([fitted.transform(row[None]) for row in new])
    np.testing.assert_allclose(alone, fitted.transform(new), atol=1e-4)
    nothing = fitted.transform(np.zeros((1, X.shape[1])))
    np.testing.assert_allclose(nothing, 1 / 3, atol=1e-12)


def test_perplexity_of_words_held_out():
    rng = np.random.default_rng(0)
    X = documents(400, 4, 30, 60, seed=3)
    half = rng.binomial(X.astype(int), 0.5).astype(float)
    train, given_words, asked = X[:300], half[300:], (X - half)[300:]
    four = MultinomialMixture(4).fit(train)
    one = MultinomialMixture(1).fit(train)
    assert four.perplexity(asked, given_words) < 0.8 * one.perplexity(asked, given_words)
    shares = folded(sparse.csr_array(given_words), four.components_, 0.1)[0]
    by_hand = np.exp(-(asked * np.log(shares @ four.components_)).sum() / asked.sum())
    assert four.perplexity(asked, given_words) == pytest.approx(by_hand, rel=1e-9)
    bag = MultinomialMixture(4, source="documents").fit(train)
    assert four.perplexity(asked, given_words) < bag.perplexity(asked, given_words)


@quick
@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 4), source=st.sampled_from(["words", "documents"])
)
def test_topics_never_fall(seed, k, source):
    X = np.random.default_rng(seed).integers(0, 4, size=(9, 5)).astype(float)
    with warnings.catch_warnings():
        # on a dozen random rows steps may go on for long: what must hold holds then, too
        warnings.filterwarnings("ignore", message=".*(collapsed|iteration limit)")
        fitted = MultinomialMixture(k, source=source, smoothing=0.0, random_state=seed).fit(X)
    assert never_falls(fitted.log_likelihoods_)
    np.testing.assert_allclose(fitted.transform(X).sum(axis=1), 1.0, atol=1e-9)


def test_words_names_and_refusals():
    X = pd.DataFrame(documents(), columns=[f"w{i:02d}" for i in range(12)])
    fitted = MultinomialMixture(3).fit(X)
    assert fitted.get_feature_names_out().tolist() == [f"multinomialmixture{i}" for i in range(3)]
    words = fitted.top_words(2)
    assert [w[0] for w in words] == [f"w{i:02d}" for i in fitted.components_.argmax(axis=1)]
    counts, shares = fitted.sample(7, random_state=0, length=30)
    assert counts.sum(axis=1).tolist() == [30.0] * 7
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="Negative values"):
        MultinomialMixture(2).fit(-X)
    with pytest.raises(ParameterError, match="held-out words"):
        MultinomialMixture("bic").fit(X)
    with pytest.raises(ValueError, match="need source='documents'"):
        fitted.bic(X)
    with pytest.raises(ValueError, match="names has 2 entries"):
        fitted.top_words(names=["a", "b"])
    with pytest.raises(ValueError, match="no words"):
        fitted.perplexity(0 * X)


def test_table_certificates_refuse_what_is_wrong():
    X = tosses()
    fitted = BernoulliMixture(2).fit(X)
    problem = replace(fitted._problem, X=X, weights=np.ones(len(X)))
    good = fitted._parts
    assert certify(problem, good, 1e-5).ok
    assert not certify(problem, TableParts(good.shares, good.table[::-1]), 1e-5).ok
    assert not certify(problem, TableParts(good.shares, good.table - 1.0), 1e-5).ok


def test_weights_have_no_unit_where_nothing_is_smoothed():
    counts = documents()
    options = {"smoothing": 0.0, "document_smoothing": 0.0, "tol": 1e-8, "max_iter": 5000}
    one = MultinomialMixture(3, **options).fit(counts)
    small = MultinomialMixture(3, **options).fit(counts, sample_weight=np.full(60, 1e-6))
    assert small.perplexity(counts) == pytest.approx(one.perplexity(counts), rel=1e-4)
    assert small.certificate_.ok


def test_topics_without_words_are_reported():
    problem = TopicMix(sparse.csr_array(documents()), np.ones(60), 2)
    good = solve(problem).value
    empty = replace(good, proportions=np.tile([1.0, 0.0], (60, 1)))
    assert problem.collapsed(good).tolist() == [False, False]
    assert problem.collapsed(empty).tolist() == [False, True]
    assert certify(problem, empty).quantities.collapsed == 1


def test_counts_that_are_none_are_named():
    wrong = documents()
    wrong[3, 5] = -1.0
    for X in (wrong, sparse.csr_array(wrong)):
        with pytest.raises(ValueError, match=r"MultinomialMixture.* row 3, column 5"):
            MultinomialMixture(2).fit(X)
    with pytest.raises(ValueError, match=r"row 2 of X has .* words"):
        MultinomialMixture(2).fit(np.vstack([documents()[:2], np.full((1, 12), 1e307)]))
    topics = MultinomialMixture(2).fit(documents())
    with pytest.raises(ParameterError, match="count=-1"):
        topics.top_words(-1)
    with pytest.raises(ParameterError, match=r"length=-1"):
        topics.sample(1, length=-1)


def test_the_time_limit_is_looked_at_while_rows_are_put_in_units(monkeypatch):
    def late(*args, **options):
        raise AssertionError("after the time limit")

    monkeypatch.setattr(gaussian_mixture, "_units", late)
    X = np.random.default_rng(0).standard_normal((50, 2))
    monkeypatch.setattr(deadline, "clock", Ticking(1.0))
    with pytest.raises(deadline.TimeLimitError):
        GaussianMixture(2, time_limit=0.5).fit(X)


@pytest.mark.parametrize("machine", [MultinomialMixture, BernoulliMixture, GaussianMixture])
def test_the_time_limit_is_looked_at_before_rows_are_copied(monkeypatch, machine):
    """Of many rows each copy is a while, and so is a table of counts made of them."""

    def late(*args, **options):
        raise AssertionError("after the time limit")

    monkeypatch.setattr(mixture_machine, "take", late)
    X = np.random.default_rng(0).integers(0, 2, (50, 2)).astype(float)
    monkeypatch.setattr(deadline, "clock", Ticking(1.0))
    with pytest.raises(deadline.TimeLimitError):
        machine(2, time_limit=0.5).fit(X)


@pytest.mark.parametrize("far", [3.0, 1e200])
def test_a_part_of_share_zero_takes_no_row(far):
    """Not even where all others are next to nothing: its logarithm was that of 1e-300."""
    rows = np.array([[0.0], [1.0]])
    parts = GaussianParts(np.array([1.0, 0.0]), np.zeros((2, 1)), np.array([[[1e-6]], [[1.0]]]))
    density, taken = GaussianMix(rows, np.ones(2), 2, Full(), 1e-9).posterior(
        parts, np.array([[far]])
    )
    np.testing.assert_array_equal(taken, [[1.0, 0.0]])
    assert density[0] < -4e6


def test_documents_of_huge_counts_have_topics():
    """Counts of 1e292 of words that hardly any topic has."""
    words = np.eye(12)[np.random.default_rng(654111).integers(0, 12, 22)]
    weights = (np.arange(22) < 2).astype(float)
    one, huge = (
        MultinomialMixture(n_init=1, random_state=4).fit(words * size, sample_weight=weights)
        for size in (1e3, 1e292)
    )
    for machine, size in ((one, 1e3), (huge, 1e292)):
        for answer in (machine.predict_proba, machine.score_samples, machine.transform):
            assert np.isfinite(answer(words * size)).all()


def test_one_component_is_at_rest_wherever_its_mean_is():
    X = np.random.default_rng(0).standard_normal((40, 2))
    found = GaussianMixture(1, n_init=1).fit(X).certificate_.quantities
    assert found.movement <= 1e-12
