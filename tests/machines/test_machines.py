"""The machines keep scikit-learn's protocol, and the relations that must hold between fits."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import kernel_ridge
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from mercer import (
    ICA,
    MDS,
    PCA,
    SVC,
    SVR,
    BernoulliMixture,
    EnclosingBall,
    FisherDiscriminant,
    GaussianMixture,
    GaussianProcess,
    GaussianProcessClassifier,
    HarmonicRegressor,
    KernelRidge,
    KMeans,
    LabelPropagation,
    LabelSpreading,
    LaplacianRidge,
    LaplacianSVC,
    LogShift,
    MultinomialMixture,
    MultiTaskGaussianProcess,
    OneClassSVM,
    ProbabilisticPCA,
    ProjectionPursuit,
    SpectralClustering,
    Whiten,
)
from mercer.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Spectrum,
    Subsequence,
)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """Small matrices on busy cores: threads of BLAS would mostly wait for one another."""
    with threadpool_limits(1, user_api="blas"):
        yield


def data(n=60, d=4, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    noise = 0.3 * rng.standard_normal((n, targets or 1))
    Y = np.column_stack([np.sin(X[:, 0] + t) + X[:, 1] * t for t in range(targets or 1)]) + noise
    return X, Y if targets else Y[:, 0]


def labels(X, seed=0):
    noise = 0.5 * np.random.default_rng(seed).standard_normal(len(X))
    return np.where(X[:, 0] + X[:, 1] ** 2 - 0.7 + noise > 0, "yes", "no")


X, y = data()
XN, _ = data(25, seed=7)  # new rows
Y2 = data(targets=2)[1]
c = labels(X)

# --- scikit-learn's protocol -------------------------------------------------------------------


# rows far from the origin under a polynomial are known to 1e-6 only, which ridge says
@pytest.mark.filterwarnings("ignore:KernelRidge. stopped making progress")
# one check takes the mean off a precomputed matrix, which is indefinite then, and we say so
@pytest.mark.filterwarnings("ignore:.*not positive semidefinite:UserWarning")
# and another allows a thousand steps for class weights that are 10^7 apart
@pytest.mark.filterwarnings("ignore:.*iteration limit:UserWarning")
# and a third asks for more clusters than there are different rows
@pytest.mark.filterwarnings("ignore:.*rows differ:UserWarning")
# small random tables: a component may end on a few rows, and says so
@pytest.mark.filterwarnings("ignore:.*collapsed components:UserWarning")
@pytest.mark.filterwarnings("ignore:.*condition number:UserWarning")
@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidge(penalty="loo"),
        KernelRidge(bias=False),
        KernelRidge(kernel=Gaussian(1.5)),
        KernelRidge(kernel="gaussian", penalty="loo"),
        KernelRidge(kernel=Gaussian(2.0) + 0.5 * Linear(), penalty="loo"),
        KernelRidge(kernel=Gaussian(2.0) * Polynomial(2), penalty=0.1, bias=False),
        KernelRidge(kernel=Precomputed()),
        GaussianProcess(),
        GaussianProcess("linear", bias=True),
        GaussianProcess("1 * gaussian", optimize=True, max_iter=20),
        GaussianProcess("precomputed"),
        MultiTaskGaussianProcess(),
        MultiTaskGaussianProcess("precomputed"),
        GaussianProcessClassifier(),
        GaussianProcessClassifier("1 * gaussian", optimize=True, max_iter=5, tol=0.1),
        GaussianProcessClassifier("precomputed"),
        SVC(),
        SVC(Linear()),
        SVC(Gaussian(1.0) + Linear(), C=10.0),
        SVC("precomputed"),
        SVC(slack="l2", multiclass="ovr", probability=True),
        SVC(class_weight="balanced", criterion="gap", warm_start=True),
        SVC(probability=True),
        SVR(),
        SVR(Linear(), tube="l2"),
        SVR(nu=0.3),
        SVR("precomputed"),
        OneClassSVM(),
        EnclosingBall(),
        EnclosingBall(Linear(), nu=0.1),
        BernoulliMixture(),
        BernoulliMixture(smoothing=0.0, n_init=1),
        BernoulliMixture(tied=True),
        GaussianMixture(),
        GaussianMixture(covariance="diagonal", n_init=1),
        GaussianMixture(covariance="shared", n_init=1),
        GaussianMixture(covariance="spherical", n_init=1),
        MultinomialMixture(2),
        MultinomialMixture(2, source="documents"),
        KMeans(),
        KMeans(3, Gaussian(1.5)),
        KMeans(2, Polynomial(2), init="random", refine=False),
        KMeans(3, "gaussian", init="relaxation"),
        KMeans(3, balanced=True, n_init=2),
        SpectralClustering(3),
        SpectralClustering(3, Gaussian(1.0), normalization="ratio", self_loops=False),
        SpectralClustering(3, normalization="doubly_stochastic"),
        SpectralClustering(3, Polynomial(2), normalization="plain"),
        SpectralClustering("eigengap", neighbors=4, weights="kernel"),
        PCA(2, center=False),
        PCA(2, "gaussian", center=False, whiten=True),
        FisherDiscriminant(),
        FisherDiscriminant(Gaussian(1.5)),
        FisherDiscriminant("gaussian", rule="mahalanobis"),
        FisherDiscriminant("gaussian", penalty_on="coefficients"),
        FisherDiscriminant(penalty=1e-2, weighting="classes"),
        PCA(),
        PCA(n_components=1, whiten=True),
        PCA(n_components=0.9),
        PCA(kernel=Gaussian(1.5), n_components=1),
        PCA(kernel="gaussian"),
        PCA(kernel=Polynomial(2)),
        PCA(kernel="precomputed"),
        MDS(),
        MDS(metric="cityblock"),
        MDS(metric="precomputed"),
        ProbabilisticPCA(),
        ProbabilisticPCA(method="em"),
        ProbabilisticPCA(1, method="em"),
        ICA(),
        ProjectionPursuit(1, contrast="exp"),
        LabelPropagation(),
        LabelSpreading(Gaussian(1.0), neighbors=None),
        HarmonicRegressor(),
        LaplacianRidge(0.1),
        LaplacianSVC(),
        Whiten(),
        Whiten(rotate_back=True),
        LogShift(),
    ]  # no list of expected failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_grids_reach_into_kernels():
    kernel = Gaussian(1.0) + 0.5 * Linear()
    grid = {"kernel__k1__scale": [0.5, 2.0], "penalty": [0.1, 1.0]}
    search = GridSearchCV(KernelRidge(kernel=kernel), grid, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_.get_params()["k1__scale"] in (0.5, 2.0)
    assert kernel == Gaussian(1.0) + 0.5 * Linear()
    grid = {"kernel__scale": [0.3, 1.0, 3.0], "C": [1.0, 10.0]}
    search = GridSearchCV(SVC(Gaussian(1.0)), grid, cv=3).fit(X, c)
    assert search.best_estimator_.kernel_ == Gaussian(search.best_params_["kernel__scale"])
    assert search.predict(XN).tolist() == search.best_estimator_.predict(XN).tolist()
    search = GridSearchCV(SVC(), {"kernel": ["linear", "rbf", Laplacian(2.0)]}, cv=3).fit(X, c)
    assert search.best_params_["kernel"] in ("linear", "rbf", Laplacian(2.0))


def test_set_params_makes_a_new_kernel_and_keeps_the_old():
    kernel = Gaussian(1.0)
    machine = SVC(kernel)
    assert machine.set_params(kernel__scale=3.0, C=2.0) is machine
    assert (machine.kernel, kernel, machine.C) == (Gaussian(3.0), Gaussian(1.0), 2.0)
    machine.set_params(kernel=Laplacian(1.0), kernel__scale=5.0)
    assert machine.kernel == Laplacian(5.0)
    assert machine.get_params()["kernel__scale"] == 5.0
    with pytest.raises(ValueError, match="no parameter 'nothing'"):
        machine.set_params(kernel__nothing=1.0)
    with pytest.raises(ValueError, match=r"kernel__scale cannot be set while kernel='rbf'"):
        SVC("rbf").set_params(kernel__scale=1.0)
    assert machine.kernel == Laplacian(5.0)


@pytest.mark.parametrize(
    "machine", [KernelRidge("loo", kernel=Gaussian(1.0)), SVC(Gaussian(1.0), C=3.0)]
)
def test_clone_copy_and_pickle(machine):
    fitted = clone(machine).fit(X, y if isinstance(machine, KernelRidge) else c)
    fresh = clone(fitted)
    assert fresh.get_params() == machine.get_params()
    assert not hasattr(fresh, "kernel_")
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(twin.predict(XN), fitted.predict(XN))
        assert repr(twin.certificate_) == repr(fitted.certificate_)
        assert twin.solution_.status is fitted.solution_.status


@pytest.mark.parametrize("kernel", [Precomputed(), "precomputed"])
def test_precomputed_matrices_are_split_both_ways(kernel):
    K = Gaussian(1.0)(X)
    ours = cross_val_score(KernelRidge(kernel=kernel), K, y, cv=4)
    np.testing.assert_allclose(ours, cross_val_score(KernelRidge(kernel=Gaussian(1.0)), X, y, cv=4))
    grid = {"C": [0.1, 1.0, 10.0]}
    by_matrix = GridSearchCV(SVC(kernel), grid, cv=4).fit(K, c)
    by_rows = GridSearchCV(SVC(Gaussian(1.0)), grid, cv=4).fit(X, c)
    assert by_matrix.best_params_ == by_rows.best_params_
    matrix_scores, row_scores = (s.cv_results_["mean_test_score"] for s in (by_matrix, by_rows))
    np.testing.assert_allclose(matrix_scores, row_scores)
    K_new = Gaussian(1.0)(XN, X)
    np.testing.assert_array_equal(by_matrix.predict(K_new), by_rows.predict(XN))


def test_many_classes_by_one_against_rest_and_pipelines():
    three = np.digitize(y, [-0.4, 0.4])
    wrapped = OneVsRestClassifier(make_pipeline(StandardScaler(), SVC(Gaussian(1.0), C=10.0)))
    assert wrapped.fit(X, three).score(X, three) > 0.7


# --- relations between fits ------------------------------------------------------------------

quick = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
values = st.integers(-12, 12).map(lambda i: i / 8)  # a coarse grid: duplicates are common


@st.composite
def weighted_rows(draw, least=4, most=14):
    n, d = draw(st.integers(least, most)), draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n))
    targets = draw(st.lists(st.lists(values, min_size=2, max_size=2), min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights[0], weights[1] = max(1, weights[0]), max(1, weights[1])
    return np.array(rows), np.array(targets), np.array(weights)


PENALTIES = np.logspace(-3, 2, 6)
RIDGES = [
    KernelRidge(penalty, kernel=kernel, penalties=PENALTIES, bias=bias)
    for kernel in (Linear(), Gaussian(1.0), Polynomial(2))
    for penalty in (0.5, "loo")
    for bias in (True, False)
] + [KernelRidge([0.1, 2.0], kernel=Gaussian(1.0))]


@pytest.mark.parametrize("machine", RIDGES, ids=repr)
@quick
@given(case=weighted_rows())
def test_ridge_weights_mean_repetition(machine, case):
    rows, targets, weights = case
    index = np.repeat(np.arange(len(rows)), weights)
    weighted = clone(machine).fit(rows, targets, sample_weight=weights)
    repeated = clone(machine).fit(rows[index], targets[index])
    close(weighted.predict(rows), repeated.predict(rows), 1e-7)
    close(weighted.intercept_, repeated.intercept_, 1e-7)
    if machine.penalty != "loo":
        return
    close(weighted.penalties_, repeated.penalties_, 1e-12)
    close(weighted.loo_scores_, repeated.loo_scores_, 1e-6)
    close(weighted.penalty_, repeated.penalty_, 1e-12)
    close(weighted.loo_residuals_[index], repeated.loo_residuals_, 1e-6)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("bias", [True, False])
def test_default_candidates_know_of_weights(kernel, bias):
    weights = np.arange(60) % 4
    index = np.repeat(np.arange(60), weights)
    machine = KernelRidge("loo", kernel=kernel, bias=bias)
    weighted = clone(machine).fit(X, y, sample_weight=weights)
    repeated = clone(machine).fit(X[index], y[index])
    close(weighted.penalties_, repeated.penalties_, 1e-12)
    close(weighted.loo_scores_, repeated.loo_scores_, 1e-6)
    if bias and kernel == Linear():
        shifted = clone(machine).fit(X + 100.0, y, sample_weight=weights)
        np.testing.assert_allclose(shifted.penalties_, weighted.penalties_, rtol=1e-8)


def close(found, wanted, tol):
    wanted = np.asarray(wanted)
    atol = tol * max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tol, atol=atol)


MACHINES = [
    KernelRidge(0.3, kernel=Gaussian(1.0)),
    KernelRidge("loo", kernel=Linear()),
    SVC(Gaussian(1.0), tol=1e-9),
    SVC(Gaussian(1.0), slack="l2", tol=1e-9),
    SVR(Gaussian(1.0), tol=1e-9),
    OneClassSVM(Gaussian(1.0), tol=1e-9),
    EnclosingBall(Gaussian(1.0), 0.3, tol=1e-9),
]


def target_of(machine):
    return c if isinstance(machine, SVC) else y


def decision(machine, rows):
    return getattr(machine, "decision_function", machine.predict)(rows)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_weight_zero_means_absent(machine):
    t = target_of(machine)
    weights = (np.arange(60) % 3 > 0).astype(float)
    present = weights > 0
    absent = clone(machine).fit(X[present], t[present])
    zero = clone(machine).fit(X, t, sample_weight=weights)
    close(decision(zero, XN), decision(absent, XN), 1e-10)
    if isinstance(machine, KernelRidge):
        assert (zero.dual_coef_[~present] == 0).all()
    else:
        assert not set(zero.support_) & set(np.flatnonzero(~present))


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_order_of_rows_and_columns(machine):
    t, base = target_of(machine), clone(machine).fit(X, target_of(machine))
    rows = np.random.default_rng(1).permutation(60)
    close(decision(clone(machine).fit(X[rows], t[rows]), XN), decision(base, XN), 1e-8)
    columns = [2, 0, 3, 1]
    turned = clone(machine).fit(X[:, columns], t)
    close(decision(turned, XN[:, columns]), decision(base, XN), 1e-7)


def test_flipping_labels_negates():
    flipped = np.where(c == "yes", "no", "yes")
    for kernel in (Gaussian(1.0), Linear()):
        one = SVC(kernel, tol=1e-9).fit(X, c)
        other = SVC(kernel, tol=1e-9).fit(X, flipped)
        close(other.decision_function(XN), -one.decision_function(XN), 1e-7)
    close(
        KernelRidge(kernel=Gaussian(1.0)).fit(X, -y).predict(XN),
        -KernelRidge(kernel=Gaussian(1.0)).fit(X, y).predict(XN),
        1e-12,
    )


@pytest.mark.parametrize("machine", [m for m in MACHINES if m.kernel == Gaussian(1.0)], ids=repr)
def test_kernel_function_and_matrix_agree(machine):
    t = target_of(machine)
    base = decision(clone(machine).fit(X, t), XN)
    by_function = clone(machine).set_params(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5))
    close(decision(by_function.fit(X, t), XN), base, 1e-8)
    if not isinstance(machine, EnclosingBall):  # which needs k(x, x) of new rows
        by_matrix = clone(machine).set_params(kernel=Precomputed()).fit(Gaussian(1.0)(X), t)
        close(decision(by_matrix, Gaussian(1.0)(XN, X)), base, 1e-8)
    by_text = clone(machine).set_params(kernel="gaussian(1.0)").fit(X, t)
    close(decision(by_text, XN), base, 1e-12)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_dense_and_sparse_agree(machine):
    t, thin, thin_new = target_of(machine), np.where(np.abs(X) > 0.7, X, 0), np.where(XN > 0, XN, 0)
    dense = clone(machine).fit(thin, t)
    csr = clone(machine).fit(sparse.csr_array(thin), t)
    tol = 1e-12 if isinstance(machine, KernelRidge) else 1e-8
    for fitted in (dense, csr):
        for new in (thin_new, sparse.csr_array(thin_new), sparse.csr_matrix(thin_new)):
            close(decision(fitted, new), decision(dense, thin_new), tol)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_single_and_double_precision(machine):
    t, X32, XN32 = target_of(machine), X.astype(np.float32), XN.astype(np.float32)
    double = decision(clone(machine).fit(X32.astype(float), t), XN32.astype(float))
    single = decision(clone(machine).fit(X32, t), XN32)
    assert single.dtype == np.float64
    close(single, double, 1e-4)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_rows_are_predicted_alike_alone_and_together(machine):
    fitted = clone(machine).fit(X, target_of(machine))
    alone = np.concatenate([decision(fitted, XN[i : i + 1]) for i in range(len(XN))])
    close(alone, decision(fitted, XN), 1e-12)
    if isinstance(machine, SVC):
        assert fitted.predict(XN[:1]).tolist() == fitted.predict(XN)[:1].tolist()


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_fitting_twice_gives_the_same_bits(machine):
    t = target_of(machine)
    again = clone(machine).fit(XN, t[:25])
    again.fit(X, t)
    np.testing.assert_array_equal(decision(again, XN), decision(clone(machine).fit(X, t), XN))


@pytest.mark.parametrize("machine", [m for m in MACHINES if m.kernel == Gaussian(1.0)], ids=repr)
def test_shift_and_scale(machine):
    t = target_of(machine)
    base = decision(clone(machine).fit(X, t), XN)
    shifted = clone(machine).fit(X + 64.0, t)
    close(decision(shifted, XN + 64.0), base, 1e-8)
    scaled = clone(machine).set_params(kernel__scale=4.0).fit(4 * X, t)
    close(decision(scaled, 4 * XN), base, 1e-8)


@pytest.mark.filterwarnings("ignore:.*stopped making progress")  # at 0.5
@pytest.mark.parametrize("penalty", [0.5, "loo"])
def test_shift_of_a_linear_fit_with_bias(penalty):
    options = {"penalty": penalty, "penalties": [0.01, 0.1, 1.0, 10.0, 100.0]}
    base = KernelRidge(**options).fit(X, Y2)
    shifted = KernelRidge(**options).fit(X + 1e5, Y2 + 3.0)
    close(shifted.coef_, base.coef_, 1e-8)
    close(shifted.predict(XN + 1e5), base.predict(XN) + 3.0, 1e-8)
    if penalty == "loo":
        close(shifted.loo_residuals_, base.loo_residuals_, 1e-8)


def test_weights_scale_as_the_penalty_does():
    for kernel in (Gaussian(1.0), Linear()):
        base = KernelRidge(0.5, kernel=kernel).fit(X, y).predict(XN)
        for factor in (1e-100, 1e-3, 1e100):
            scaled = KernelRidge(0.5 * factor, kernel=kernel).fit(
                X, y, sample_weight=np.full(60, factor)
            )
            close(scaled.predict(XN), base, 1e-9)


# --- against others --------------------------------------------------------------------------


def test_ridge_against_scikit_learn():
    theirs = kernel_ridge.KernelRidge(kernel="rbf", gamma=0.5, alpha=0.3).fit(X, Y2)
    ours = KernelRidge(0.3, kernel=Gaussian(1.0), bias=False).fit(X, Y2)
    close(ours.predict(XN), theirs.predict(XN), 1e-10)
    close(ours.dual_coef_, theirs.dual_coef_, 1e-9)


@pytest.mark.parametrize("weights", [None, np.arange(60) % 3 + 0.5])
@pytest.mark.parametrize("targets", [y, Y2], ids=["one", "two"])
def test_linear_ridge_three_ways(weights, targets):
    """The primal space, the matrix, and scikit-learn say the same."""
    theirs = Ridge(alpha=2.0).fit(X, targets, sample_weight=weights)
    primal = KernelRidge(2.0, kernel=Linear()).fit(X, targets, sample_weight=weights)
    matrix = KernelRidge(2.0, kernel=Precomputed()).fit(X @ X.T, targets, sample_weight=weights)
    close(primal.predict(XN), theirs.predict(XN), 1e-10)
    close(matrix.predict(XN @ X.T), theirs.predict(XN), 1e-9)
    close(primal.coef_, theirs.coef_, 1e-10)
    close(primal.intercept_, theirs.intercept_, 1e-10)
    assert primal.coef_.shape == theirs.coef_.shape
    assert np.shape(primal.intercept_) == np.shape(theirs.intercept_)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = matrix.coef_


@pytest.mark.parametrize("bias", [True, False])
def test_leave_one_out_path_against_ridge_cv(bias):
    penalties = np.logspace(-2, 2, 7)
    theirs = RidgeCV(penalties, fit_intercept=bias, store_cv_results=True, gcv_mode="eigen")
    theirs.fit(X, y)
    options = {"penalty": "loo", "penalties": penalties, "bias": bias}
    primal = KernelRidge(kernel=Linear(), **options).fit(X, y)
    matrix = KernelRidge(kernel=Precomputed(), **options).fit(X @ X.T, y)
    errors = theirs.cv_results_.mean(axis=0)
    for ours in (primal, matrix):
        close(ours.loo_scores_, errors, 1e-8)
        assert ours.penalty_ == theirs.alpha_


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Gaussian(3.0) + Linear()], ids=repr)
def test_leave_one_out_residuals_are_those_of_refits(kernel, bias):
    rows, targets = X[:25], Y2[:25]
    for penalties in (np.array([1e-4, 0.02, 1.0]), np.logspace(-5, 1, 9)):
        path = KernelRidge("loo", kernel=kernel, penalties=penalties, bias=bias).fit(rows, targets)
        refits = np.empty((25, 2))
        for i in range(25):
            rest = np.arange(25) != i
            refit = KernelRidge(path.penalty_, kernel=kernel, bias=bias).fit(
                rows[rest], targets[rest]
            )
            refits[i] = targets[i] - refit.predict(rows[i : i + 1])[0]
        np.testing.assert_allclose(path.loo_residuals_, refits, rtol=1e-8, atol=1e-8)
        assert path.certificate_.ok


def test_leave_one_out_path_is_the_grid_search_it_replaces():
    penalties = np.logspace(-3, 2, 8)
    path = KernelRidge("loo", kernel=Gaussian(1.0), penalties=penalties).fit(X[:30], y[:30])
    grid = GridSearchCV(
        KernelRidge(kernel=Gaussian(1.0)),
        {"penalty": penalties},
        cv=LeaveOneOut(),
        scoring="neg_mean_squared_error",
    ).fit(X[:30], y[:30])
    close(path.loo_scores_, -grid.cv_results_["mean_test_score"], 1e-8)
    assert path.penalty_ == grid.best_params_["penalty"]
    close(path.predict(XN), grid.predict(XN), 1e-8)


def test_each_target_has_its_own_best_penalty():
    noisy = np.column_stack([y, np.random.default_rng(5).standard_normal(60)])
    both = KernelRidge("loo", kernel=Gaussian(1.0)).fit(X, noisy)
    assert both.penalty_[0] < both.penalty_[1]
    for t in range(2):
        alone = KernelRidge("loo", kernel=Gaussian(1.0)).fit(X, noisy[:, t])
        assert isinstance(alone.penalty_, float)
        assert alone.penalty_ == pytest.approx(both.penalty_[t])
        close(alone.predict(XN), both.predict(XN)[:, t], 1e-9)
        assert alone.loo_scores_.shape == (25,)
    fixed = KernelRidge(both.penalty_, kernel=Gaussian(1.0)).fit(X, noisy)
    close(fixed.predict(XN), both.predict(XN), 1e-8)


@pytest.mark.parametrize(
    "machine", [SVC(C=3.0), KernelRidge(kernel=Gaussian(1.0)), KernelRidge()], ids=repr
)
def test_the_certificate_holds_and_the_state_is_finite(machine):
    fitted = clone(machine).fit(X, target_of(machine))
    assert fitted.certificate_.ok
    assert fitted.solution_.status.ok
    for value in vars(fitted).values():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all()


# --- other kinds of rows ---------------------------------------------------------------------

WORDS = ["banana", "bandana", "ananas", "cabana", "stone", "rock", "pebble", "boulder"]
FRUIT = np.array(["fruit"] * 4 + ["stone"] * 4)


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2).normalized(), 1.0 + Spectrum(1)])
@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series])
def test_strings(kernel, kind):
    words = kind(WORDS)
    machine = SVC(kernel, C=100.0).fit(words, FRUIT, sample_weight=np.arange(1, 9))
    assert machine.predict(words).tolist() == FRUIT.tolist()
    assert not hasattr(machine, "n_features_in_")
    np.testing.assert_array_equal(machine.predict(kind(["bananas"])), machine.predict(["bananas"]))
    again = SVC(kernel, C=100.0).fit([*WORDS, *WORDS], [*FRUIT, *FRUIT])
    close(
        again.decision_function(WORDS),
        SVC(kernel, C=200.0).fit(words, FRUIT).decision_function(words),
        1e-12,
    )


def test_tokens_and_regression_on_strings():
    sentences = [list(word) for word in WORDS]
    lengths = np.array([len(word) for word in WORDS], dtype=float)
    by_tokens = KernelRidge("loo", kernel=Spectrum(1)).fit(sentences, lengths)
    by_strings = KernelRidge("loo", kernel=Spectrum(1)).fit(WORDS, lengths)
    np.testing.assert_array_equal(by_tokens.predict([list("abc")]), by_strings.predict(["abc"]))
    score = cross_val_score(SVC(Spectrum(2)), np.array(WORDS, dtype=object), FRUIT, cv=2)
    assert np.isfinite(score).all()


def test_a_machine_moves_between_kinds_of_rows():
    machine = SVC(Spectrum(2)).fit(WORDS, FRUIT)
    machine.set_params(kernel=Gaussian(1.0)).fit(pd.DataFrame(X, columns=list("pqrs")), c)
    assert machine.n_features_in_ == 4
    machine.set_params(kernel=Spectrum(2)).fit(WORDS, FRUIT)
    assert not hasattr(machine, "n_features_in_")
    assert not hasattr(machine, "feature_names_in_")
    assert machine.predict(WORDS).tolist() == FRUIT.tolist()


@pytest.mark.parametrize("table", [pd.DataFrame, lambda d: pl.DataFrame(dict(d))])
def test_tables_and_kernels_that_speak_of_columns_by_name(table):
    columns = dict(zip(["age", "height", "b", "c"], X.T, strict=True))
    frame, names = table(columns), ["age", "height", "b", "c"]
    for kernel, numbered in [
        (Gaussian(1.0).on(["age"]), Gaussian(1.0).on([0])),
        (Linear().on(["age", "b"]), Linear().on([0, 2])),
        (
            Gaussian(1.0).on("b") * Gaussian(2.0).on("age"),
            Gaussian(1.0).on(2) * Gaussian(2.0).on(0),
        ),
        (Gaussian(1.0), Gaussian(1.0)),
    ]:
        by_name = KernelRidge(kernel=kernel).fit(frame, y)
        assert by_name.feature_names_in_.tolist() == names
        expected = KernelRidge(kernel=numbered).fit(X, y).predict(X)
        close(by_name.predict(frame), expected, 1e-12)
        classifier = SVC(kernel).fit(frame, c)
        np.testing.assert_array_equal(classifier.predict(frame), SVC(numbered).fit(X, c).predict(X))
    with pytest.raises(ValueError, match="'weight'; X has the columns age, height"):
        KernelRidge(kernel=Gaussian(1.0).on("weight")).fit(frame, y)
    with pytest.raises(ValueError, match="pass a DataFrame"):
        KernelRidge(kernel=Gaussian(1.0).on("age")).fit(X, y)
