"""PCA against explicit features, scikit-learn, and the relations that define it."""

import pickle
import warnings
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
import pandas as pd
import pytest
from helpers.fake_clock import Ticking
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import mercer
from mercer import PCA, KernelRidge, MemoryBudgetError, ParameterError, deadline
from mercer.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
)
from mercer.machines.decomposition.preimage import preimage_weight
from mercer.solvers import Eigh, Lanczos, Status

pytestmark = pytest.mark.numerics


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def rows(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.standard_normal(d)


X, Z = rows(), rows(25, seed=7)
quick = settings(max_examples=25, deadline=None)


def close(found, wanted, tol):
    wanted = np.asarray(wanted)
    scale = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol * scale)


def same_up_to_sign(found, wanted, tol):
    signs = np.sign((found * wanted).sum(axis=0))
    close(found * signs, wanted, tol)


def polynomial_features(A, degree, offset):
    """Write out (x'y + offset)^degree: weighted monomials of the rows with sqrt(offset) added."""
    A = np.column_stack([A, np.full(len(A), np.sqrt(offset))])
    columns = []
    for powers in combinations_with_replacement(range(A.shape[1]), degree):
        counts = [powers.count(i) for i in set(powers)]
        weight = factorial(degree) / prod(factorial(c) for c in counts)
        columns.append(np.sqrt(weight) * A[:, powers].prod(axis=1))
    return np.column_stack(columns)


# --- against explicit features ---------------------------------------------------------------


@pytest.mark.parametrize(("degree", "offset"), [(1, 0.0), (2, 1.0), (2, 0.0), (3, 0.5)])
@pytest.mark.parametrize("way", ["kernel", "matrix", "function"])
def test_polynomial_kernels_equal_explicit_features(degree, offset, way):
    F, FZ = (polynomial_features(A, degree, offset) for A in (X, Z))
    mean = F.mean(axis=0)
    _, s, V = np.linalg.svd(F - mean, full_matrices=False)
    kernel = Polynomial(degree, offset)
    k, train, new = 5 if degree > 1 else 4, X, Z
    if way == "matrix":
        train, new = kernel(X), kernel(Z, X)
        machine = PCA(k, kernel=Precomputed()).fit(train)
    elif way == "function":
        machine = PCA(k, kernel=lambda A, B: (A @ B.T + offset) ** degree).fit(X)
    else:
        machine = PCA(k, kernel=kernel).fit(X)
    unit = s[0]
    same_up_to_sign(machine.transform(train) / unit, (F - mean) @ V[:k].T / unit, 1e-8)
    same_up_to_sign(machine.transform(new) / unit, (FZ - mean) @ V[:k].T / unit, 1e-8)
    close(machine.eigenvalues_, s[:k] ** 2, 1e-10)
    close(machine.explained_variance_ratio_, (s**2 / (s**2).sum())[:k], 1e-10)
    if way != "matrix":
        for A, FA in ((X, F), (Z, FZ)):
            left = (FA - mean) - (FA - mean) @ V[:k].T @ V[:k]
            close(machine.squared_distance(A) / unit**2, (left**2).sum(axis=1) / unit**2, 1e-8)
    assert machine.certificate_.ok


@pytest.mark.parametrize("shape", [(60, 4), (20, 50), (30, 30)])
@pytest.mark.parametrize("whiten", [False, True])
def test_linear_pca_is_that_of_scikit_learn(shape, whiten):
    A, B = rows(*shape) + 100.0, rows(10, shape[1], seed=3) + 100.0
    k = 3
    theirs = decomposition.PCA(k, whiten=whiten, svd_solver="full").fit(A)
    ours = PCA(n_components=k, whiten=whiten).fit(A)
    same_up_to_sign(ours.transform(A), theirs.transform(A), 1e-9)
    same_up_to_sign(ours.transform(B), theirs.transform(B), 1e-9)
    same_up_to_sign(ours.components_.T, theirs.components_.T, 1e-9)
    close(ours.mean_, theirs.mean_, 1e-13)
    close(ours.explained_variance_, theirs.explained_variance_, 1e-10)
    close(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, 1e-10)
    back = theirs.inverse_transform(theirs.transform(B))
    close(ours.inverse_transform(ours.transform(B)), back, 1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_kernel_pca_is_that_of_scikit_learn(kernel):
    theirs = decomposition.KernelPCA(6, kernel=kernel, gamma=0.3, degree=2).fit(X)
    chosen = {"rbf": Gaussian(np.sqrt(0.5 / 0.3)), "cosine": mercer.kernels.Cosine()}
    ours = PCA(6, kernel=chosen.get(kernel, 0.09 * Polynomial(2, 1 / 0.3))).fit(X)
    close(ours.eigenvalues_, theirs.eigenvalues_, 1e-9)
    close(ours.fit_transform(X), theirs.fit_transform(X), 1e-8)  # the signs are the same rule
    close(ours.transform(Z), theirs.transform(Z), 1e-8)


def test_faces_by_the_small_side_equal_the_big_side():
    A = np.random.default_rng(0).standard_normal((20, 300)) ** 3 + 5.0
    ours = PCA(n_components=7).fit(A)
    covariance = np.cov(A.T)
    values, vectors = np.linalg.eigh(covariance)
    close(ours.explained_variance_, values[::-1][:7], 1e-9)
    same_up_to_sign(ours.components_.T, vectors[:, ::-1][:, :7], 1e-8)
    close(covariance @ ours.components_.T, ours.components_.T * ours.explained_variance_, 1e-8)


# --- what the components are -----------------------------------------------------------------

KERNELS = [Linear(), Gaussian(2.0), Polynomial(2), Laplacian(3.0), Gaussian(1.0) + Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_scores_are_centred_and_decorrelated(kernel):
    machine = PCA(4, kernel=kernel).fit(X)
    T = machine.fit_transform(X)
    close(T.mean(axis=0) / np.abs(T).max(), np.zeros(4), 1e-12)
    unit = machine.explained_variance_[0]
    close(np.cov(T.T) / unit, np.diag(machine.explained_variance_) / unit, 1e-12)
    close(machine.transform(X), T, 1e-10)
    assert (T[np.abs(T).argmax(axis=0), range(4)] > 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_whitened_scores_have_covariance_one(kernel):
    machine = PCA(4, kernel=kernel, whiten=True)
    T = machine.fit_transform(X)
    close(np.cov(T.T), np.eye(4), 1e-10)
    close(np.cov(machine.transform(X).T), np.eye(4), 1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_variance_and_reconstruction_are_two_views_of_one_thing(kernel):
    """The variance kept and the squared distance left add up to the total, for any number."""
    total = None
    for k in (1, 3, 4):
        machine = PCA(k, kernel=kernel).fit(X)
        kept = machine.eigenvalues_.sum()
        left = machine.squared_distance(X).sum()
        total = kept + left if total is None else total
        assert kept + left == pytest.approx(total, rel=1e-10)
        ratio = machine.explained_variance_ratio_.sum()
        assert ratio == pytest.approx(kept / total, rel=1e-10)
    assert (machine.squared_distance(np.vstack([X, Z])) >= 0).all()


def test_no_other_plane_is_nearer():
    machine = PCA(n_components=2).fit(X)
    best = machine.squared_distance(X).sum()
    centred = X - X.mean(axis=0)
    for seed in range(20):
        Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 2)))[0]
        assert ((centred - centred @ Q @ Q.T) ** 2).sum() >= best


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_share_of_the_variance_picks_the_number(kernel):
    full = PCA(kernel=kernel).fit(X)
    cumulated = np.cumsum(full.explained_variance_ratio_)
    assert cumulated[-1] == pytest.approx(1.0, abs=1e-9)
    for share in (0.3, 0.8, 0.99):
        machine = PCA(share, kernel=kernel).fit(X)
        assert machine.n_components_ == int(np.searchsorted(cumulated, share)) + 1
        close(machine.eigenvalues_, full.eigenvalues_[: machine.n_components_], 1e-10)


def test_a_share_is_reached_by_doubling():
    A = rows(700, 12) / np.arange(1, 13)
    machine = PCA(0.9, kernel=Gaussian(2.5)).fit(A)
    K = Gaussian(2.5)(A)
    H = np.eye(700) - 1 / 700
    values = np.linalg.eigvalsh(H @ K @ H)[::-1]
    expected = int(np.searchsorted(np.cumsum(values), 0.9 * values.sum())) + 1
    assert machine.n_components_ == expected > 32
    close(machine.eigenvalues_, values[:expected], 1e-6)


# --- same answers by other ways --------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(2), Linear()], ids=repr)
def test_solvers_storage_and_kinds_of_rows_agree(kernel):
    A = rows(150, 4)
    base = PCA(3, kernel=kernel).fit(A)
    wanted = base.transform(Z)
    for solver in (Eigh(), Lanczos(tol=1e-12)):
        close(PCA(3, kernel=kernel, solver=solver).fit(A).transform(Z), wanted, 1e-8)
    by_matrix = PCA(3, kernel="precomputed").fit(kernel(A))
    close(by_matrix.transform(kernel(Z, A)), wanted, 1e-8)
    close(by_matrix.explained_variance_ratio_, base.explained_variance_ratio_, 1e-10)
    thin, thin_new = np.where(np.abs(A) > 0.8, A, 0), np.where(Z > 0, Z, 0)
    dense = PCA(3, kernel=kernel).fit(thin)
    csr = PCA(3, kernel=kernel).fit(sparse.csr_array(thin))
    close(csr.transform(sparse.csr_matrix(thin_new)), dense.transform(thin_new), 1e-9)
    close(csr.transform(thin_new), dense.transform(thin_new), 1e-9)
    close(csr.squared_distance(sparse.csr_array(thin_new)), dense.squared_distance(thin_new), 1e-9)
    alone = np.vstack([base.transform(z[None, :]) for z in Z])
    close(alone, wanted, 1e-12)


def test_sparse_rows_are_never_filled_in():
    A = sparse.random_array((900, 30_000), density=0.001, rng=0, format="csr")
    with mercer.config(memory=120_000_000):  # dense rows would take 216 MB
        machine = PCA(n_components=3, tol=1e-8).fit(A)
        scores = machine.transform(A)
    assert machine.certificate_.ok
    H = np.eye(900) - 1 / 900
    close(machine.eigenvalues_, np.linalg.eigvalsh(H @ (A @ A.T).toarray() @ H)[:-4:-1], 1e-7)
    close(machine.fit_transform(A), scores, 1e-6)


@st.composite
def weighted(draw):
    n = draw(st.integers(6, 14))
    seed = draw(st.integers(0, 10_000))
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    weights[:4] = np.maximum(weights[:4], 1)
    return np.random.default_rng(seed).standard_normal((n, 3)) * [3.0, 1.5, 0.5], weights


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0)], ids=repr)
@quick
@given(case=weighted())
def test_weights_mean_repetition(kernel, case):
    A, weights = case
    one = PCA(2, kernel=kernel)
    scores = one.fit_transform(A, sample_weight=weights)
    index = np.repeat(np.arange(len(A)), weights.astype(int))
    two = PCA(2, kernel=kernel).fit(A[index])
    close(one.eigenvalues_, two.eigenvalues_, 1e-9)
    close(one.explained_variance_, two.explained_variance_, 1e-9)
    close(one.explained_variance_ratio_, two.explained_variance_ratio_, 1e-9)
    gap = np.diff(-one.eigenvalues_).min() / one.eigenvalues_[0]
    same_up_to_sign(scores, two.transform(A), 1e-8 / gap)
    close(one.squared_distance(A), two.squared_distance(A), 1e-8 / gap)
    close(one.transform(A), scores, 1e-8)
    if np.ptp(weights) > 0:
        close(
            PCA(2, kernel=kernel).fit(A, sample_weight=7 * weights).eigenvalues_,
            7 * one.eigenvalues_,
            1e-9,
        )


@quick
@given(seed=st.integers(0, 10_000), shift=st.floats(-1e4, 1e4), k=st.integers(1, 3))
def test_order_shift_and_turn_change_nothing(seed, shift, k):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 3)) * [3.0, 1.5, 0.5]
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    order = rng.permutation(12)
    for kernel in (Linear(), Gaussian(2.0)):
        base = PCA(k, kernel=kernel).fit_transform(A)
        other = PCA(k, kernel=kernel).fit_transform(((A @ turn) + shift)[order])
        found = np.linalg.norm(other, axis=1)  # whatever the signs
        close(found, np.linalg.norm(base, axis=1)[order], 1e-6)


def test_new_points_are_centred_by_the_training_mean():
    machine = PCA(3, kernel=Gaussian(2.0)).fit(X)
    assert np.abs(machine.transform(Z).mean(axis=0)).max() > 1e-3
    close(machine.transform(Z)[:5], machine.transform(Z[:5]), 1e-12)


# --- bad and borderline input ----------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Linear(), Gaussian(2.0), Polynomial(2), Precomputed()], ids=repr
)
@pytest.mark.parametrize("whiten", [False, True])
def test_components_beyond_the_rank_are_exactly_zero(kernel, whiten):
    low = np.random.default_rng(0).standard_normal((12, 1)) @ [[1.0, 2.0, -1.0]] + 3.0
    given = kernel == Precomputed()
    train = Linear()(low) if given else low
    machine = PCA(12, kernel=kernel, whiten=whiten)
    T = machine.fit_transform(train)
    assert T.shape == (12, 12)
    assert np.isfinite(T).all()
    zero = machine.eigenvalues_ == 0
    assert zero[-1]
    if kernel in (Linear(), Precomputed()):
        assert zero[1:].all()
    again = machine.transform(train)
    assert (T[:, zero] == 0).all()
    assert (again[:, zero] == 0).all()
    # transform divides K v, which has n eps lambda_1 of rounding in each of its n sums, by
    # sqrt(lambda_j), and whitening once more by sqrt(lambda_j / (n - 1))
    values = machine.eigenvalues_[~zero]
    n, root = len(train), np.sqrt(values)
    rounding = 4 * n * np.finfo(float).eps * values[0] / root
    if whiten:
        rounding *= np.sqrt(n - 1) / root
    assert (np.abs(again - T)[:, ~zero] <= rounding * max(1.0, np.abs(T).max())).all()
    assert machine.certificate_.ok


@pytest.mark.parametrize("value", [0.0, 0.1, 1e5 + 0.1])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("wanted", [None, 2, 0.5])
def test_rows_that_are_all_equal(value, kernel, wanted):
    A = np.full((6, 3), value)
    machine = PCA(wanted, kernel=kernel)
    T = machine.fit_transform(A)
    assert (T == 0).all()
    assert (machine.transform(A + 1.0) == 0).all()
    assert (machine.explained_variance_ratio_ == 0).all()
    assert machine.certificate_.ok


def test_few_distinct_rows_among_many():
    A = rows(3, 2)[np.random.default_rng(0).integers(0, 3, 1500)]
    machine = PCA(10, kernel=Gaussian(1.0))
    T = machine.fit_transform(A)
    assert (machine.eigenvalues_ > 0).tolist() == [True] * 2 + [False] * 8
    assert (T[:, 2:] == 0).all()
    close(machine.transform(A), T, 1e-5)  # iterated, to tol
    assert machine.certificate_.ok


def test_rounding_of_single_precision_matrices_is_not_a_component():
    K = Linear()(X.astype(np.float32))
    assert K.dtype == np.float32
    machine = PCA(kernel=Precomputed()).fit(K)
    assert machine.n_components_ == 4
    close(machine.eigenvalues_, PCA().fit(X).eigenvalues_, 1e-5)


def test_one_row_and_constant_columns():
    assert PCA().fit_transform([[1.0, 2.0]]).tolist() == [[0.0]]
    A = np.column_stack([X, np.full(60, 7.0)])
    close(PCA().fit_transform(A), PCA().fit_transform(X), 1e-10)
    assert PCA().fit(A).n_components_ == 4
    with pytest.warns(UserWarning, match="all entries of X are equal"):
        PCA(1, kernel="gaussian").fit(np.ones((4, 2)))


def test_a_far_origin_costs_nothing_for_the_linear_kernel():
    for shape in ((60, 4), (20, 50)):
        A = rows(*shape)
        close(
            PCA(n_components=3).fit_transform(A + 1e6), PCA(n_components=3).fit_transform(A), 1e-8
        )


@pytest.mark.parametrize("solver", [Eigh(), Lanczos(tol=1e-12, random_state=3)], ids=repr)
@pytest.mark.parametrize("threads", [1, 2])
def test_repeated_eigenvalues_give_one_subspace(solver, threads):
    angle = 2 * np.pi * np.arange(120) / 120
    polygon = np.column_stack([np.cos(angle), np.sin(angle)])
    with mercer.config(threads=threads):
        T = PCA(4, kernel=Gaussian(1.0), solver=solver).fit_transform(polygon)
    U = T / np.linalg.norm(T, axis=0)
    H = np.eye(120) - 1 / 120
    vectors = np.linalg.eigh(H @ Gaussian(1.0)(polygon) @ H)[1][:, -4:]
    assert np.linalg.norm(U @ U.T - vectors @ vectors.T, 2) < 1e-8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a positive integer"),
        ({"n_components": 1.5}, "share of the variance between 0 and 1"),
        ({"n_components": 1.0}, "share of the variance between 0 and 1"),
        ({"n_components": True}, "n_components=True must"),
        ({"n_components": "mle"}, "n_components='mle' must"),
        ({"n_components": 61}, "at most the number of rows: n_samples = 60"),
        ({"whiten": 1}, "whiten=1 must be True or False"),
        ({"preimage": "best"}, "'fixed_point' or 'learned'"),
        ({"tol": 0.0}, "tol=0.0 must"),
        ({"solver": "arpack"}, "solver such as Lanczos"),
        ({"random_state": "x"}, "random_state='x' must"),
        ({"callback": 3}, "callback=3 must"),
        ({"time_limit": -1}, "time_limit=-1 must"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ParameterError, match=message):
        PCA(**parameters).fit(X)


def test_a_failed_fit_leaves_the_machine_as_it_was():
    machine = PCA(n_components=2).fit(X)
    before = machine.transform(Z)
    with pytest.raises(ValueError, match="row 3, column 1"):
        machine.fit(np.where(np.arange(240).reshape(60, 4) == 13, np.nan, X))
    np.testing.assert_array_equal(machine.transform(Z), before)
    with pytest.raises(NotFittedError):
        PCA().transform(X)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = PCA(kernel=Gaussian(1.0)).fit(X).components_
    with pytest.raises(ValueError, match=r"k\(z, z\)"):
        PCA(2, kernel=Precomputed()).fit(Linear()(X)).squared_distance(Linear()(Z, X))
    with pytest.raises(ValueError, match="not finite"):
        PCA(2, kernel=Polynomial(8)).fit(X).transform(np.full((1, 4), 1e60))


def test_many_rows_are_refused_before_memory_is_taken():
    A = np.zeros((200_000, 2))
    A[:, 0] = np.arange(200_000)
    with mercer.config(memory=8_000_000_000), pytest.raises(MemoryBudgetError, match="200000"):
        PCA(5, kernel=Gaussian(1.0), approximation=None).fit(A)
    with mercer.config(memory=8_000_000_000), pytest.raises(MemoryBudgetError, match="200000"):
        PCA(kernel=Gaussian(1.0), approximation=None).fit(A)
    assert PCA(n_components=1).fit(A).n_components_ == 1  # features are few


def test_a_callback_stops_the_iteration():
    A = rows(1200, 6)
    seen = []
    with pytest.warns(ConvergenceWarning, match="callback"):
        PCA(5, kernel=Gaussian(1.0), tol=1e-14, callback=lambda p: seen.append(p) or True).fit(A)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0), Polynomial(2)], ids=repr)
def test_what_becomes_of_the_callers_rows_does_not_matter(kernel, kind):
    A = kind(X)
    machine = PCA(2, kernel=kernel).fit(A)
    expected = PCA(2, kernel=kernel).fit(kind(X)).transform(Z)
    A *= -3.0
    close(machine.transform(Z), expected, 1e-12)
    assert machine.certificate_.ok


def test_copies_names_pipelines_and_strings():
    frame = pd.DataFrame(X, columns=list("abcd"))
    machine = PCA(2, kernel=Gaussian(2.0)).set_output(transform="pandas")
    out = machine.fit_transform(frame)
    assert out.columns.tolist() == ["pca0", "pca1"]
    close(machine.transform(frame), out, 1e-10)
    twin = pickle.loads(pickle.dumps(machine))
    close(twin.transform(frame), out, 1e-10)
    assert repr(twin.certificate_) == repr(machine.certificate_)
    by_name = PCA(2, kernel=Gaussian(2.0).on(["a", "b"])).fit(frame)
    close(by_name.transform(frame), PCA(2, kernel=Gaussian(2.0)).fit_transform(X[:, :2]), 1e-10)
    words = ["banana", "bandana", "ananas", "stone", "rock", "pebble"]
    strings = PCA(2, kernel=Spectrum(2)).fit(words)
    close(strings.transform(words), strings.fit_transform(words), 1e-10)
    with pytest.raises(ValueError, match="sequences have no pre-images"):
        strings.inverse_transform(np.zeros((1, 2)))
    fitted = make_pipeline(PCA(3, kernel=Gaussian(2.0)), KernelRidge()).fit(X, X[:, 0])
    assert np.isfinite(fitted.predict(Z)).all()
    assert clone(machine).get_params() == machine.get_params()


def test_large_fits_are_as_accurate_as_asked():
    A = rows(1500, 6)
    machine = PCA(5, kernel=Gaussian(4.0)).fit(A)
    K = rbf_kernel(A, gamma=1 / 32)
    H = np.eye(1500) - 1 / 1500
    values = np.linalg.eigvalsh(H @ K @ H)[::-1][:5]
    close(machine.eigenvalues_, values, 1e-6)
    assert machine.certificate_.ok
    T = machine.fit_transform(A)
    close(machine.transform(A), T, 1e-4)
    again = PCA(5, kernel=Gaussian(4.0), random_state=np.random.RandomState(1)).fit_transform(A)
    close(again, T, 1e-4)


# --- pre-images ------------------------------------------------------------------------------

SMOOTH = [
    Gaussian(2.0),
    Gaussian([2.0, 1.0, 3.0, 2.0]),
    3.0 * Gaussian(2.0),
    RationalQuadratic(1.5, 2.0),
    Matern(2.5, 3.0),
    Matern(np.inf, 2.0),
    Gaussian(1.5) + 0.5 * RationalQuadratic(1.0, 3.0) + 1.0,
]


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_pulls_are_slopes(kernel):
    pull = preimage_weight(kernel)
    x, y, h = np.array([[0.3, -0.2, 0.5, 0.1]]), np.zeros((1, 4)), 1e-5
    slopes = []
    for j in range(4):
        step = h * np.eye(4)[j]
        slopes.append((kernel(x + step, y) - kernel(x - step, y))[0, 0] / (2 * h))
    scales = np.asarray(getattr(kernel, "scale", 1.0)) if kernel == SMOOTH[1] else np.ones(4)
    direction = -x[0] / scales**2 * pull(x, y)[0, 0]
    cosine = direction @ slopes / np.linalg.norm(direction) / np.linalg.norm(slopes)
    assert cosine == pytest.approx(1.0, abs=1e-7)
    if isinstance(kernel, type(SMOOTH[-1])) and kernel == SMOOTH[-1]:  # factors count in sums
        close(direction, slopes, 1e-7)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_fixed_points_come_nearer_than_the_rows_themselves(kernel):
    machine = PCA(6, kernel=kernel).fit(X)
    found = machine.preimages(machine.transform(X))
    assert found.converged.all()
    # the row is one candidate: its image is as far from its projection as from the subspace
    assert (found.squared_distance <= machine.squared_distance(X) + 1e-9).mean() > 0.95
    close(machine.inverse_transform(machine.transform(X)), found.points, 1e-12)
    recomputed = np.square(machine.transform(found.points) - machine.transform(X)).sum(axis=1)
    close(recomputed + machine.squared_distance(found.points), found.squared_distance, 1e-8)


def test_all_components_bring_rows_back():
    machine = PCA(kernel=Gaussian(2.0)).fit(X)
    close(machine.inverse_transform(machine.transform(X)), X, 1e-5)
    whitened = PCA(kernel=Gaussian(2.0), whiten=True).fit(X)
    close(whitened.inverse_transform(whitened.transform(X)), X, 1e-5)
    exact = PCA(whiten=True).fit(X)
    close(exact.inverse_transform(exact.transform(Z)), Z, 1e-10)
    assert machine.preimages(np.zeros((0, machine.n_components_))).points.shape == (0, 4)


def test_learned_pre_images():
    machine = PCA(8, kernel=Polynomial(2)).fit(X)  # no kernel of a distance: learned
    back = machine.inverse_transform(machine.transform(X))
    assert np.abs(back - X).mean() < 0.1 * np.abs(X - X.mean(axis=0)).mean()
    learned = PCA(20, kernel=Gaussian(2.0), preimage="learned").fit(X)
    assert np.abs(learned.inverse_transform(learned.transform(X)) - X).mean() < 0.3
    with pytest.raises(ValueError, match="preimage='learned'"):
        PCA(3, kernel=Polynomial(2), preimage="fixed_point").fit(X).inverse_transform(
            np.zeros((1, 3))
        )
    with pytest.raises(ValueError, match="precomputed"):
        PCA(3, kernel=Precomputed()).fit(Linear()(X)).inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="2 columns, but there are 3"):
        PCA(n_components=3).fit(X).inverse_transform(np.zeros((1, 2)))
    assert preimage_weight(Laplacian(1.0)) is None
    assert preimage_weight(Sigmoid()) is None


def test_pre_images_take_the_noise_off_digits():
    digits = load_digits().data / 16.0
    rng = np.random.default_rng(0)
    clean = digits[1000:1080]
    noisy = clean + 0.25 * rng.standard_normal(clean.shape)
    kernel = PCA(60, kernel=Gaussian(2.0)).fit(digits[:600])
    linear = PCA(n_components=20).fit(digits[:600])
    error = {
        "noisy": np.square(noisy - clean).mean(),
        "linear": np.square(linear.inverse_transform(linear.transform(noisy)) - clean).mean(),
        "kernel": np.square(kernel.inverse_transform(kernel.transform(noisy)) - clean).mean(),
    }
    assert error["kernel"] < error["linear"] < error["noisy"]


# --- scales, weights and matrices at the edge --------------------------------------------------


def test_uneven_weights_give_the_scores_of_transform():
    rng = np.random.default_rng(0)
    A, weights = rng.normal(size=(1200, 5)), rng.exponential(size=1200) ** 3
    machine = PCA(kernel=Gaussian(2.0), n_components=3)
    np.testing.assert_array_equal(machine.fit_transform(A, None, weights), machine.transform(A))


@pytest.mark.parametrize("A", [rows(700, 5), rows(30, 50)])
@pytest.mark.parametrize("scale", [1e-140, 1e100, 1e150])
def test_scale_changes_nothing_but_the_scale(A, scale):
    found, wanted = PCA(n_components=3).fit(A * scale), PCA(n_components=3).fit(A)
    close(found.explained_variance_ / scale / scale, wanted.explained_variance_, 1e-10)
    assert found.certificate_.ok


def test_a_given_matrix_with_a_zero_diagonal_is_put_in_units_too():
    """Minus distances: all that is large lies off the diagonal."""
    K = -np.abs(X[:30, :1] - X[:30, 0])
    found, wanted = (PCA(2, kernel=Precomputed()).fit(s * K) for s in (1e300, 1.0))
    close(found.explained_variance_ / 1e300, wanted.explained_variance_, 1e-10)
    assert found.certificate_.ok == wanted.certificate_.ok


def test_weights_of_any_size_are_certified():
    A = rows(700, 5)
    for weight in (1e-300, 1e300):
        machine = PCA(kernel=Gaussian(2.0), n_components=3).fit(
            A, sample_weight=np.full(700, weight)
        )
        assert machine.certificate_.ok and machine.certificate_.quantities.residual > 0


@pytest.mark.parametrize("A", [X, rows(10, 20), sparse.csr_matrix(X)])
def test_underflow_is_refused_by_name(A):
    with pytest.raises(ValueError, match=r"PCA: Linear\(\) underflows.*Scale the features"):
        PCA(n_components=2).fit(A * 1e-170)


@pytest.mark.parametrize(("n", "d"), [(700, 30), (60, 200)])
def test_sparse_rows_far_from_the_origin_keep_their_digits(n, d):
    rng = np.random.default_rng(0)
    A = (rng.random((n, d)) < 0.3) * rng.normal(size=(n, d))
    A[:, 3] = 1e6 + rng.normal(size=n)
    weights = rng.integers(1, 4, n)
    thin = PCA(n_components=3).fit(sparse.csr_matrix(A), sample_weight=weights)
    full = PCA(n_components=3).fit(A, sample_weight=weights)
    close(thin.explained_variance_ratio_, full.explained_variance_ratio_, 1e-11)
    close(thin.squared_distance(sparse.csr_matrix(A)), full.squared_distance(A), 1e-9)
    close(thin.mean_, full.mean_, 1e-12)
    assert thin.certificate_.ok


def test_a_far_polynomial_kernel_is_solved_as_certified():
    A = np.random.default_rng(0).normal(3, 1, (1200, 40))
    machine = PCA(kernel=Polynomial(3), n_components=5).fit(A)
    assert machine.solution_.status.ok and machine.certificate_.ok


def test_matrices_that_are_not_positive_are_named():
    with pytest.warns(UserWarning, match="negative eigenvalues.*is_valid"):
        nothing = PCA(kernel="precomputed", n_components=3).fit(-np.eye(50))
    assert not nothing.eigenvalues_.any() and "not valid" in nothing.certificate_.statement
    B = np.random.default_rng(0).normal(size=(50, 50))
    for wanted, share in ((None, 1.0), (0.5, 0.5)):
        with pytest.warns(UserWarning, match="negative eigenvalues"):
            machine = PCA(kernel="precomputed", n_components=wanted).fit(B + B.T)
        total = machine.explained_variance_ratio_.sum()
        assert share - 1e-9 <= total <= min(1 + 1e-12, share + 0.1)
    with pytest.warns(UserWarning, match="negative eigenvalues"):
        assert (
            PCA(3, kernel="precomputed").fit(B + B.T).explained_variance_ratio_.sum() <= 1 + 1e-12
        )


def test_a_share_stops_at_the_time_limit_once(monkeypatch):
    monkeypatch.setattr(deadline, "clock", Ticking(1e-8))  # past the limit, never past the grace
    A = np.random.default_rng(0).normal(size=(1500, 8))
    with pytest.warns(ConvergenceWarning, match="time limit") as seen:
        PCA(kernel=Gaussian(1.0), n_components=0.99, time_limit=1e-9).fit(A)
    assert len(seen) == 1


def test_a_share_may_be_any_float():
    assert (
        PCA(n_components=np.float32(0.9)).fit(X).n_components_
        == PCA(n_components=0.9).fit(X).n_components_
    )


def test_over_budget_names_what_pca_takes():
    with mercer.config(memory="20MB"), pytest.raises(MemoryBudgetError) as seen:
        PCA(kernel=Gaussian(1.0), approximation=None).fit(rows(1200))
    assert "n_components=10" in str(seen.value) and "Conjugate" not in str(seen.value)


@pytest.mark.parametrize(
    "kernel", [RationalQuadratic(1.0, 1e-160), Matern(1.5, 1e200), Matern(2.5, 1e160) + Gaussian()]
)
def test_a_scale_whose_square_is_no_number_is_no_raw_error(kernel):
    X = np.random.default_rng(0).standard_normal((12, 2))
    machine = PCA(2, kernel=kernel).fit(X)
    assert np.isfinite(machine.inverse_transform(machine.transform(X))).all()


def test_eigenvalues_at_the_end_of_the_range_are_judged_within_the_fit():
    rng = np.random.default_rng(962802)
    X = np.repeat(rng.standard_normal((1, 2)), 60, axis=0) + 1e-12 * rng.standard_normal((60, 2))
    machine = PCA(kernel=Polynomial(4, 1.0), approximation=None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        machine.fit(X, sample_weight=1e-300 * rng.random(60))
    assert machine.certificate_.ok or machine.solution_.status is Status.INACCURATE
    assert machine.certificate_.ok or any(issubclass(w.category, ConvergenceWarning) for w in said)


@pytest.mark.numerics
@pytest.mark.parametrize("offset", [2.0**20, 2.0**30, 2.0**40])
@pytest.mark.parametrize("shape", [(30, 4), (8, 12)])
def test_an_offset_costs_no_digits(shape, offset):
    """A mean is known to a rounding of itself; no variance sees what it leaves."""
    rows = np.round(np.random.default_rng(0).standard_normal(shape) * 1024) / 1024
    near, far = PCA(3).fit(rows), PCA(3).fit(rows + offset)
    np.testing.assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-12)
    rounding = 4.0 * np.finfo(float).eps * offset * np.sqrt(shape[1])
    np.testing.assert_allclose(
        np.abs(far.transform(rows + offset)), np.abs(near.transform(rows)), atol=rounding
    )
