"""Canonical correlation: brute force, closed forms, explicit features, scikit-learn, bad input."""

import importlib
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import linalg, sparse
from sklearn import cross_decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import CCA, certify
from mercer.approximation import Nystrom
from mercer.gram import Need, centered, make_gram
from mercer.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Spectrum
from mercer.machines import ParameterError
from mercer.problems import CanonicalPairs, Correlation, Lengths, Norm, Squared
from mercer.solvers import (
    CholeskyCorrelation,
    EighCorrelation,
    IterativeCorrelation,
    QRCorrelation,
    SolverError,
    solve,
)

pytestmark = pytest.mark.numerics

FORMS = {"squared": Squared(), "norm": Norm(), "lengths": Lengths()}


def views(n=80, p=4, q=3, seed=0, noise=0.7):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 2))
    X = shared @ rng.standard_normal((2, p)) + noise * rng.standard_normal((n, p))
    Y = shared @ rng.standard_normal((2, q)) + noise * rng.standard_normal((n, q))
    return X, Y


X, Y = views()
XN, YN = views(30, seed=5)


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def brute(Kx, Ky, etas, form, count):
    """Whiten with dense square roots of the penalised variances; take singular values."""

    def half(K, eta):
        M = {
            "squared": lambda: (K + eta * np.eye(len(K))) @ (K + eta * np.eye(len(K))),
            "norm": lambda: K @ K + eta * K,
            "lengths": lambda: K @ K + eta**2 * np.eye(len(K)),
        }[form]()
        s, U = np.linalg.eigh(M)
        kept = s > 1e-11 * s.max()
        return U[:, kept] / np.sqrt(s[kept]) @ U[:, kept].T

    Kx, Ky = centred(Kx), centred(Ky)
    return np.linalg.svd(half(Kx, etas[0]) @ Kx @ Ky @ half(Ky, etas[1]), compute_uv=False)[:count]


# --- correlations against independent sources ---------------------------------------------------


def test_linear_equals_singular_values_of_the_whitened_cross_covariance():
    machine = CCA(n_components=3).fit(X, Y)
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    wx, wy = (np.linalg.inv(linalg.sqrtm(Z.T @ Z)) for Z in (A, B))
    expected = np.linalg.svd(wx @ A.T @ B @ wy, compute_uv=False)
    assert_allclose(machine.correlations_, expected, atol=1e-12)
    cosines = np.cos(linalg.subspace_angles(A, B))
    assert_allclose(machine.correlations_, np.sort(cosines)[::-1], atol=1e-7)
    assert_allclose(machine.correlations(X, Y), machine.correlations_, atol=1e-12)
    assert (machine.rank_x_, machine.rank_y_) == (4, 3)
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.residual < 1e-12


def test_linear_equals_scikit_learn():
    machine = CCA(n_components=2).fit(X, Y)
    theirs = cross_decomposition.CCA(2, max_iter=10000, tol=1e-14).fit(X, Y)
    for ours, other in zip(machine.transform(XN, YN), theirs.transform(XN, YN), strict=True):
        for a, b in zip(ours.T, other.T, strict=True):
            assert abs(np.corrcoef(a, b)[0, 1]) > 1 - 1e-9
    u, v = theirs.transform(X, Y)
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(u.T, v.T, strict=True)]
    assert_allclose(machine.correlations_, expected, atol=1e-9)


def test_generalised_eigenproblem_by_scipy():
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    zero = np.zeros((4, 3))
    left = np.block([[np.zeros((4, 4)), A.T @ B], [B.T @ A, np.zeros((3, 3))]])
    ridge = [0.1 * np.trace(Z.T @ Z) * np.eye(Z.shape[1]) for Z in (A, B)]
    right = np.block([[A.T @ A + ridge[0], zero], [zero.T, B.T @ B + ridge[1]]])
    expected = linalg.eigh(left, right, eigvals_only=True)[::-1][:3]
    machine = CCA(n_components=3, penalty=0.1, form="norm").fit(X, Y)
    assert_allclose(machine.correlations_, expected, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", [0.3, (0.01, 0.2)])
def test_kernel_forms_equal_brute_force(form, penalty):
    kx, ky = Gaussian(2.0), Polynomial(2)
    machine = CCA(kernel_x=kx, kernel_y=ky, n_components=3, penalty=penalty, form=form).fit(X, Y)
    Kx, Ky = kx(X), ky(Y)
    pair = np.broadcast_to(penalty, 2)
    etas = [p * np.trace(centred(K)) for p, K in zip(pair, (Kx, Ky), strict=True)]
    assert_allclose(machine.correlations_, brute(Kx, Ky, etas, form, 3), atol=1e-8)
    assert machine.penalty_ == tuple(pair)
    assert machine.certificate_.ok, machine.certificate_


@pytest.mark.parametrize("form", FORMS)
def test_identical_views_have_a_closed_form(form):
    K = centred(Gaussian(1.5)(X))
    s, eta = np.linalg.eigvalsh(K)[::-1][:3], 0.05 * np.trace(K)
    expected = {
        "squared": (s / (s + eta)) ** 2,
        "norm": s / (s + eta),
        "lengths": s**2 / (s**2 + eta**2),
    }
    machine = CCA(
        kernel_x=Gaussian(1.5), kernel_y=Gaussian(1.5), n_components=3, penalty=0.05, form=form
    ).fit(X, X)
    assert_allclose(machine.correlations_, expected[form], atol=1e-12)


def test_closed_form_in_many_digits():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 50
    rng = np.random.default_rng(3)
    A, B = rng.integers(-5, 6, size=(9, 2)), rng.integers(-5, 6, size=(9, 2))

    def exact_centred(Z):
        M = mpmath.matrix(Z.tolist())
        means = [sum(M[i, j] for i in range(9)) / 9 for j in range(2)]
        return mpmath.matrix([[M[i, j] - means[j] for j in range(2)] for i in range(9)])

    P, Q = exact_centred(A), exact_centred(B)
    product = mpmath.inverse(P.T * P) * (P.T * Q) * mpmath.inverse(Q.T * Q) * (Q.T * P)
    trace, det = product[0, 0] + product[1, 1], mpmath.det(product)
    root = mpmath.sqrt(trace**2 / 4 - det)
    expected = [float(mpmath.sqrt(trace / 2 + sign * root)) for sign in (1, -1)]
    machine = CCA().fit(A.astype(float), B.astype(float))
    assert_allclose(machine.correlations_, expected, rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [25, 80])  # fewer rows than features, and more
def test_polynomial_kernel_equals_explicit_features(form, n):
    kernel, options = Polynomial(3), {"penalty": 0.02, "form": form, "n_components": 2}
    phi, psi = kernel.features(4), kernel.features(3)
    dual = CCA(kernel_x=kernel, kernel_y=kernel, **options).fit(X[:n], Y[:n])
    primal = CCA(**options).fit(phi(X[:n]), psi(Y[:n]))
    assert_allclose(dual.correlations_, primal.correlations_, atol=1e-8)
    for data, mapped in [((X[:n], Y[:n]), None), ((XN, YN), None)]:
        ours = dual.transform(*data)
        other = primal.transform(phi(data[0]), psi(data[1]))
        for a, b in zip(ours, other, strict=True):
            assert_allclose(a, b, atol=1e-8 * max(1.0, np.abs(b).max()))
        del mapped


def test_variates_have_unit_variance_and_are_uncorrelated():
    machine = CCA(n_components=3).fit(X, Y)
    u, v = machine.transform(X, Y)
    for z in (u, v):
        assert_allclose(z.mean(axis=0), 0, atol=1e-12)
        assert_allclose(z.T @ z / len(z), np.eye(3), atol=1e-10)
    assert_allclose(u.T @ v / len(u), np.diag(machine.correlations_), atol=1e-10)
    assert_allclose(machine.transform_y(Y), v)
    assert_allclose(machine.transform(X), u)
    assert (u[np.abs(u).argmax(axis=0), np.arange(3)] > 0).all()


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Gaussian(3.0)])
def test_shifted_views(kernel):
    # a polynomial of shifted rows is another polynomial, so that one is shifted in feature space
    shift = kernel.features(4) if isinstance(kernel, Polynomial) else None
    A, AN = (X, XN) if shift is None else (shift(X), shift(XN))
    used = kernel if shift is None else Linear()
    plain = CCA(kernel_x=used, n_components=2, penalty=0.01).fit(A, Y)
    moved = CCA(kernel_x=used, n_components=2, penalty=0.01).fit(A + 1000.0, Y - 500.0)
    assert_allclose(moved.correlations_, plain.correlations_, atol=1e-8)
    for a, b in zip(moved.transform(AN + 1000.0, YN - 500.0), plain.transform(AN, YN), strict=True):
        assert_allclose(a, b, atol=1e-6)


# --- solvers agree, certificates judge ----------------------------------------------------------


def kernel_problem(n=150, count=3, form=None, share=0.01):
    A, B = views(n, seed=1)
    grams = [centered(make_gram(Gaussian(2.0), Z, Need.MATRIX)) for Z in (A, B)]
    etas = tuple(share * float(g.diag().sum()) for g in grams)
    return Correlation(*grams, count, etas, form or Squared())


@pytest.mark.parametrize("solver", [CholeskyCorrelation(), IterativeCorrelation()])
def test_solvers_agree(solver):
    problem = kernel_problem()
    expected, found = solve(problem, EighCorrelation()).value, solve(problem, solver).value
    assert_allclose(found.values, expected.values, atol=1e-9)
    assert_allclose(found.coef_x, expected.coef_x, atol=1e-5 * np.abs(expected.coef_x).max())
    assert certify(problem, found).ok
    assert found.bound < 1e-6


def test_a_kernel_beside_few_features():
    A, B = views(700, seed=2)
    machine = CCA(kernel_x=Gaussian(2.0), penalty=0.01).fit(A, B)
    assert machine.solution_.solver == "CholeskyCorrelation"
    turned = CCA(kernel_x="linear", kernel_y=Gaussian(2.0), penalty=0.01).fit(B, A)
    assert_allclose(machine.correlations_, turned.correlations_, atol=1e-12)
    etas = [0.01 * np.trace(centred(K)) for K in (Gaussian(2.0)(A), B @ B.T)]
    assert_allclose(
        machine.correlations_, brute(Gaussian(2.0)(A), B @ B.T, etas, "squared", 2), atol=1e-8
    )
    assert machine.certificate_.ok and turned.certificate_.ok
    assert (machine.rank_x_, machine.rank_y_) == (None, 3)


def test_larger_problem_by_cholesky_and_lanczos():
    A, B = views(800, seed=4)
    machine = CCA(kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), n_components=4, penalty=0.02).fit(
        A, B
    )
    assert machine.solution_.solver == "CholeskyCorrelation"
    assert machine.certificate_.ok
    K = [centred(Gaussian(2.0)(Z)) for Z in (A, B)]
    H = [k @ np.linalg.inv(k + 0.02 * np.trace(k) * np.eye(800)) for k in K]
    expected = np.linalg.svd(H[0] @ H[1], compute_uv=False)[:4]
    assert_allclose(machine.correlations_, expected, atol=1e-10)


def test_a_rank_means_as_many_landmarks_for_one_version():
    A, B = views(300, seed=4)
    kernels = {"kernel_x": Gaussian(2.0), "kernel_y": Gaussian(2.0), "penalty": 0.02}
    with pytest.warns(FutureWarning, match=r"CCA: rank is deprecated.*Nystrom\(100\)"):
        low = CCA(**kernels, rank=100).fit(A, B)
    meant = CCA(**kernels, approximation=Nystrom(100)).fit(A, B)
    assert_allclose(low.correlations_, meant.correlations_, atol=1e-12)
    assert_allclose(low.transform(A), meant.transform(A), atol=1e-9)
    assert low.certificate_.ok
    assert 0 < np.abs(low.correlations_ - CCA(**kernels).fit(A, B).correlations_).max() < 1e-2
    kernels.pop("penalty")
    with pytest.warns(FutureWarning):
        assert CCA(**kernels, rank=20).fit(A, B).penalty_ == (0.01, 0.01)
    assert CCA(**kernels, approximation=Nystrom(20)).fit(A, B).penalty_ == (0, 0)
    with pytest.warns(FutureWarning):
        exact = CCA(kernel_x=Precomputed(), rank=100).fit(Gaussian(2.0)(A), B)
    assert exact.solution_.solver == "CholeskyCorrelation"
    assert exact.weights_y_.shape == (B.shape[1], 2)


@pytest.mark.parametrize(("n", "solver"), [(50, "EighCorrelation"), (140, "CholeskyCorrelation")])
def test_a_factor_serves_from_a_hundred_rows(n, solver):
    machine = CCA(kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), penalty=0.05).fit(*views(n))
    assert machine.solution_.solver == solver and machine.certificate_.ok
    assert (machine.rank_x_ is None) == (n == 140)


def test_a_tiny_penalty_takes_the_eigenvectors():
    machine = CCA(kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), penalty=1e-11).fit(*views(100))
    assert machine.solution_.solver == "EighCorrelation"
    assert (machine.correlations_ <= 1 + 1e-8).all()
    with pytest.raises(SolverError, match="EighCorrelation"):
        solve(kernel_problem(share=1e-11), CholeskyCorrelation())
    with pytest.raises(SolverError, match="Squared"):
        solve(kernel_problem(form=Norm()), CholeskyCorrelation())
    with pytest.raises(SolverError, match="features"):
        solve(kernel_problem(), QRCorrelation())
    with pytest.raises(SolverError, match="landmarks"):
        solve(kernel_problem(form=Norm()), IterativeCorrelation())


def test_certificate_finds_what_is_wrong():
    problem = kernel_problem()
    good = solve(problem).value
    second = CanonicalPairs(good.values[1:], good.coef_x[:, 1:], good.coef_y[:, 1:])
    missed = certify(Correlation(*problem_parts(problem, 2)), second)
    assert not missed.ok and missed.quantities.gain > 1e-3
    boast = CanonicalPairs(np.minimum(good.values + 0.01, 1), good.coef_x, good.coef_y)
    assert certify(problem, boast).quantities.correlation_error > 1e-3
    scaled = CanonicalPairs(good.values, 2 * good.coef_x, good.coef_y)
    assert certify(problem, scaled).quantities.normalisation > 1
    noise = np.random.default_rng(0).standard_normal(good.coef_x.shape)
    off = CanonicalPairs(good.values, good.coef_x + 0.05 * np.std(good.coef_x) * noise, good.coef_y)
    judged = certify(problem, off)
    assert not judged.ok and judged.quantities.residual > 1e-6


def problem_parts(problem, count):
    return problem.gram_x, problem.gram_y, count, problem.penalties, problem.form


def test_certificate_judges_scikit_learn():
    theirs = cross_decomposition.CCA(2, scale=False, max_iter=10000, tol=1e-14).fit(X, Y)
    u, v = theirs.transform(X, Y)
    grams = [centered(make_gram(Linear(), Z, Need.MATRIX)) for Z in (X, Y)]

    def coefficients(Z, scores):
        Z = Z - Z.mean(axis=0)
        w = np.linalg.lstsq(Z, scores / np.linalg.norm(scores, axis=0), rcond=None)[0]
        return np.linalg.lstsq(Z.T, w, rcond=None)[0]

    rho = [np.corrcoef(a, b)[0, 1] for a, b in zip(u.T, v.T, strict=True)]
    value = CanonicalPairs(np.array(rho), coefficients(X, u), coefficients(Y, v))
    assert certify(Correlation(*grams, 2), value).ok


# --- kinds of input -----------------------------------------------------------------------------


def test_sparse_equals_dense():
    rng = np.random.default_rng(0)
    A = sparse.random_array((90, 12), density=0.3, rng=rng, format="csr")
    B = sparse.random_array((90, 8), density=0.3, rng=rng, format="csr")
    for options in ({}, {"penalty": 0.05}, {"kernel_x": Gaussian(1.0), "penalty": 0.05}):
        dense = CCA(**options).fit(A.toarray(), B.toarray())
        thin = CCA(**options).fit(A, B)
        assert_allclose(thin.correlations_, dense.correlations_, atol=1e-10)
        for a, b in zip(
            thin.transform(A, B), dense.transform(A.toarray(), B.toarray()), strict=True
        ):
            assert_allclose(a, b, atol=1e-7)
        assert_allclose(thin.predict(A), dense.predict(A.toarray()), atol=1e-7)
        assert thin.certificate_.ok


def test_many_sparse_rows_are_never_written_out(monkeypatch):
    from mercer.machines.correlation import views as _views

    auto = importlib.import_module("mercer.machines.correlation.solvers")

    rng = np.random.default_rng(0)
    A = sparse.random_array((120, 40), density=0.2, rng=rng, format="csr")
    B = sparse.random_array((120, 30), density=0.2, rng=rng, format="csr")
    expected = CCA(penalty=0.02).fit(A, B)
    monkeypatch.setattr(_views, "WRITTEN_OUT", 0)
    for most, solver in [(8000, "CholeskyCorrelation"), (0, "IterativeCorrelation")]:
        monkeypatch.setattr(auto, "MOST", most)
        machine = CCA(penalty=0.02).fit(A, B)
        assert machine.solution_.solver == solver
        assert_allclose(machine.correlations_, expected.correlations_, atol=1e-9)
        assert_allclose(machine.transform(A), expected.transform(A), atol=1e-6)
        assert machine.certificate_.ok
        assert_allclose(machine.weights_x_, expected.weights_x_, atol=1e-6)
        weights = rng.integers(1, 3, size=120)
        weighted = CCA(penalty=0.02).fit(A, B, weights)
        repeated = CCA(penalty=0.02).fit(
            A[np.repeat(range(120), weights)], B[np.repeat(range(120), weights)]
        )
        assert_allclose(weighted.correlations_, repeated.correlations_, atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(2), Linear()])
def test_precomputed_and_callable_equal_the_kernel(kernel):
    options = {"penalty": 0.03, "n_components": 2}
    machine = CCA(kernel_x=kernel, kernel_y=kernel, **options).fit(X, Y)
    given = CCA(kernel_x=Precomputed(), kernel_y="precomputed", **options).fit(kernel(X), kernel(Y))
    called = CCA(kernel_x=kernel.__call__, kernel_y=kernel, **options).fit(X, Y)
    assert_allclose(given.correlations_, machine.correlations_, atol=1e-10)
    assert_allclose(called.correlations_, machine.correlations_, atol=1e-10)
    u, v = machine.transform(XN, YN)
    for a, b in zip(given.transform(kernel(XN, X), kernel(YN, Y)), (u, v), strict=True):
        assert_allclose(a, b, atol=1e-7)
    assert_allclose(called.transform(XN), u, atol=1e-7)
    assert given.certificate_.ok and called.certificate_.ok


def test_strings_against_numbers():
    words = ["spam", "ham", "eggs", "spamspam", "hamegg", "eggspam", "hamham", "meg"]
    counts = np.array([[w.count("am"), w.count("eg"), len(w)] for w in words], dtype=float)
    machine = CCA(kernel_x=Spectrum(2), penalty=0.1, n_components=1).fit(words, counts)
    assert machine.score(words, counts) > 0.9
    assert machine.transform(words).shape == (8, 1)
    turned = CCA(kernel_x="linear", kernel_y=Spectrum(2), penalty=0.1, n_components=1).fit(
        counts, words
    )
    assert_allclose(turned.correlations_, machine.correlations_, atol=1e-12)
    with pytest.raises(ValueError, match="fitted to y with strings"):
        turned.transform_y(counts)


def test_names_of_columns():
    table = pd.DataFrame(X, columns=list("abcd"))
    other = pd.DataFrame(Y, columns=["u", "v", "w"])
    machine = CCA(kernel_x=Linear().on(["a", "b"]), kernel_y=Linear().on(["u", "w"])).fit(
        table, other
    )
    expected = CCA().fit(X[:, :2], Y[:, [0, 2]])
    assert_allclose(machine.correlations_, expected.correlations_, atol=1e-10)
    assert machine.get_feature_names_out().tolist() == ["cca0", "cca1"]
    shown = machine.set_output(transform="pandas").transform(table)
    assert shown.columns.tolist() == ["cca0", "cca1"]


def test_prediction_is_least_squares_through_the_directions():
    machine = CCA(n_components=3).fit(X, Y)
    slopes = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0]
    expected = (XN - X.mean(axis=0)) @ slopes + Y.mean(axis=0)
    assert_allclose(machine.predict(XN), expected, atol=1e-10)  # all directions: ordinary
    one = CCA(n_components=1).fit(X, Y[:, 0])
    slopes = np.linalg.lstsq(X - X.mean(axis=0), Y[:, 0] - Y[:, 0].mean(), rcond=None)[0]
    assert_allclose(one.predict(XN), (XN - X.mean(axis=0)) @ slopes + Y[:, 0].mean(), atol=1e-10)
    curved = CCA(kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), penalty=0.05).fit(X, Y)
    u = curved.transform(X)
    slopes = np.linalg.lstsq(u, Y - Y.mean(axis=0), rcond=None)[0]
    assert_allclose(curved.predict(XN), curved.transform(XN) @ slopes + Y.mean(axis=0), atol=1e-8)
    given = CCA(kernel_x=Gaussian(2.0), kernel_y="precomputed", penalty=0.05).fit(
        X, Gaussian(2.0)(Y)
    )
    slopes = np.linalg.lstsq(u, curved.transform_y(Y), rcond=None)[0]
    assert_allclose(given.predict(XN), curved.transform(XN) @ slopes, atol=1e-7)


def test_score_and_grids():
    machine = CCA(kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), n_components=1, penalty=0.1)
    assert 0 < cross_val_score(machine, X, Y).mean() < 1
    grid = GridSearchCV(machine, {"kernel_x__scale": [0.5, 3.0], "penalty": [0.01, 0.3]}, cv=3)
    grid.fit(X, Y)
    assert grid.best_estimator_.kernel_x_.scale in (0.5, 3.0)
    assert machine.kernel_y.scale == 2.0
    with pytest.raises(ValueError, match="kernel_y__scale cannot be set"):
        CCA().set_params(kernel_y__scale=2.0)


def test_penalty_by_folds():
    A, B = views(120, 6, 5, seed=8, noise=1.5)
    machine = CCA(
        kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), penalty="cv", cv=3, n_components=1
    ).fit(A, B)
    assert machine.cv_scores_.shape == (3, 9)
    best = machine.cv_scores_.mean(axis=0).argmax()
    assert machine.penalty_ == machine.penalties_[best]
    # the same numbers as fitting each fold by itself
    again = clone(machine).set_params(penalty=machine.penalty_)
    assert_allclose(cross_val_score(again, A, B, cv=3), machine.cv_scores_[:, best], atol=1e-6)
    pairs = CCA(penalty="cv", penalties=[(0.1, 0.2), 0.5], n_components=1).fit(A, B)
    assert pairs.penalty_ in [(0.1, 0.2), (0.5, 0.5)]
    refitted = machine.set_params(penalty=0.1).fit(A, B)
    assert not hasattr(refitted, "cv_scores_")


# --- relations between fits ---------------------------------------------------------------------


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.sampled_from(["linear", "kernel", "few"]))
def test_weights_mean_repetition(seed, kind):
    rng = np.random.default_rng(seed)
    A, B = views(25 if kind != "few" else 6, 3, 2, seed=seed)
    weights = rng.integers(0, 4, size=len(A))
    weights[:3] = 1
    kernels = () if kind == "linear" else (Gaussian(1.5), Polynomial(2))
    options = {"penalty": 0.0 if kind == "linear" else 0.05}
    weighted = CCA(1, *kernels, **options).fit(A, B, sample_weight=weights)
    repeated = CCA(1, *kernels, **options).fit(np.repeat(A, weights, 0), np.repeat(B, weights, 0))
    assert_allclose(weighted.correlations_, repeated.correlations_, atol=1e-9)
    assert_allclose(weighted.transform(A), repeated.transform(A), atol=1e-6)
    assert_allclose(weighted.predict(A), repeated.predict(A), atol=1e-6)
    assert weighted.certificate_.ok
    assert weighted.dual_coef_x_[weights == 0].any() == False  # noqa: E712


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6))
def test_order_of_rows_and_scale_of_kernels_change_nothing(seed):
    A, B = views(30, 3, 3, seed=seed)
    order = np.random.default_rng(seed).permutation(30)
    plain = CCA(kernel_x=Gaussian(2.0), kernel_y=Gaussian(2.0), penalty=0.02).fit(A, B)
    mixed = CCA(kernel_x=Gaussian(2.0), kernel_y=7.0 * Gaussian(2.0), penalty=0.02).fit(
        A[order], B[order]
    )
    assert_allclose(plain.correlations_, mixed.correlations_, atol=1e-10)
    assert_allclose(np.abs(plain.transform(A)), np.abs(mixed.transform(A)), atol=1e-6)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10**6),
    st.integers(2, 12),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([0.0, 1e-12, 1e-3, 10.0]),
    st.sampled_from(["plain", "rank one", "constant", "equal", "huge", "copies"]),
)
def test_correlations_stay_between_zero_and_one(seed, n, p, q, penalty, kind):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    if kind == "rank one":
        A = np.outer(A[:, 0], np.arange(1.0, p + 1))
    elif kind == "constant":
        A = np.full((n, p), 3.3)
    elif kind == "equal":
        B = A.copy()
    elif kind == "huge":
        A = A * 1e8 + 1e10
    elif kind == "copies":
        A, B = A[[0] * n], B[[0] * n]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = CCA(penalty=penalty, n_components=2).fit(A, B)
    assert ((machine.correlations_ >= 0) & (machine.correlations_ <= 1 + 1e-8)).all()
    assert np.isfinite(machine.transform(A)).all()
    assert machine.rank_x_ <= min(n - 1, p)
    assert {"rank one": 1, "constant": 0, "copies": 0}.get(kind, machine.rank_x_) >= machine.rank_x_


# --- bad input ----------------------------------------------------------------------------------


def test_more_features_than_rows():
    A, B = views(20, 30, 25)
    with pytest.warns(UserWarning, match="19 correlation.* are 1 whatever the data"):
        trivial = CCA(penalty=0.0).fit(A, B)
    assert_allclose(trivial.correlations_, 1.0, atol=1e-10)
    assert (trivial.rank_x_, trivial.rank_y_) == (19, 19)
    penalised = CCA().fit(A, B)  # "auto" takes a penalty here
    assert penalised.penalty_ == (0.01, 0.01)
    assert (penalised.correlations_ < 1).all()
    assert CCA().fit(X, Y).penalty_ == (0.0, 0.0)


def test_a_constant_view():
    with pytest.warns(UserWarning, match="only 0 direction"):
        machine = CCA().fit(np.full((20, 3), 0.1), Y[:20])
    assert not machine.correlations_.any()
    assert machine.rank_x_ == 0
    assert not machine.transform(np.full((4, 3), 0.1)).any()
    assert machine.score(np.full((20, 3), 0.1), Y[:20]) == 0
    assert machine.certificate_.ok
    for kernel in (Gaussian(1.0), Polynomial(2)):
        with pytest.warns(UserWarning, match="only 0 direction"):
            machine = CCA(kernel_x=kernel, penalty=0.1).fit(np.full((20, 3), 0.1), Y[:20])
        assert not machine.correlations_.any()
    with pytest.warns(UserWarning, match="only 0 direction"):
        many = CCA(kernel_x=Gaussian(1.0), kernel_y=Gaussian(1.0)).fit(
            np.full((700, 2), 0.1), views(700)[1]
        )
    assert not many.correlations_.any() and many.certificate_.ok


def test_a_view_of_rank_one():
    line = np.outer(X[:, 0], [1.0, -2.0, 0.5])
    with pytest.warns(UserWarning, match="only 1 direction"):
        machine = CCA().fit(line, Y)
    assert machine.rank_x_ == 1
    assert machine.correlations_[1] == 0 < machine.correlations_[0] <= 1
    assert not machine.transform(line)[:, 1].any()
    alone = CCA(n_components=1).fit(X[:, :1], Y)
    assert_allclose(machine.correlations_[0], alone.correlations_[0], atol=1e-12)


def test_identical_views():
    machine = CCA(n_components=4).fit(X, X)
    assert_allclose(machine.correlations_, 1.0, atol=1e-12)
    assert (machine.correlations_ <= 1).all()
    assert_allclose(machine.predict(XN), XN, atol=1e-9)


def test_no_penalty_is_refused_for_kernels():
    for kernel in (Gaussian(1.0), Cosine() ** 2 * Gaussian(1.0)):
        with pytest.raises(ValueError, match=r"penalty=0 for view y.*is 1 whatever the data"):
            CCA(kernel_x="linear", kernel_y=kernel, penalty=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="penalty=0 for view x"):
        CCA(kernel_x="precomputed", penalty=(0, 0.1)).fit(Gaussian(1.0)(X), Y)
    low = CCA(kernel_x="precomputed", penalty=0.0).fit(X @ X.T, Y)  # of few directions
    assert_allclose(low.correlations_, CCA().fit(X, Y).correlations_, atol=1e-9)
    assert CCA(kernel_x=Polynomial(2), penalty=0.0).fit(X, Y).rank_x_ == 14


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": None}, "n_components=None"),
        ({"penalty": -1.0}, "penalty=-1.0"),
        ({"penalty": "best"}, "penalty='best'"),
        ({"penalty": (1.0, 2.0, 3.0)}, "pair"),
        ({"penalty": "cv", "penalties": [0.0]}, "positive"),
        ({"penalties": []}, "penalties"),
        ({"form": "cubed"}, "form='cubed'"),
        ({"rank": 0}, "rank=0"),
        ({"cv": 1}, "cv=1"),
        ({"penalty": "cv", "cv": 100}, "at most the number of rows"),
        ({"time_limit": -1}, "time_limit"),
    ],
)
def test_parameters_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        CCA(**options).fit(X, Y)


def test_views_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CCA().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        CCA().fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        CCA().fit(X, np.where(Y > 1, np.nan, Y))
    with pytest.raises(ValueError, match="n_samples = 1"):
        CCA().fit(X, Y, sample_weight=np.eye(80)[0])
    machine = CCA().fit(X, Y)
    with pytest.raises(ValueError, match="fitted to y with 3 column"):
        machine.transform_y(Y[:, :2])
    with pytest.raises(AttributeError, match="weights_x_"):
        _ = CCA(kernel_x=Gaussian(1.0)).fit(X, Y).weights_x_
    assert machine.weights_x_.shape == (4, 2)
    with pytest.raises(ValueError, match="same rows"):
        Correlation(make_gram(Linear(), X, Need.MATRIX), make_gram(Linear(), X[:9], Need.MATRIX), 1)


def test_fits_change_all_or_nothing_and_travel():
    machine = CCA(kernel_x=Gaussian(2.0), n_components=1, penalty=0.1).fit(X, Y)
    before = machine.correlations_

    def stop(progress):
        raise KeyboardInterrupt

    machine.set_params(callback=stop, penalty="cv")
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, Y)
    assert machine.correlations_ is before and machine.penalty_ == (0.1, 0.1)
    machine.set_params(callback=None, penalty=0.1)
    again = pickle.loads(pickle.dumps(machine))
    assert_allclose(again.transform(XN), machine.transform(XN))
    assert again.certificate_.ok


# --- far origins, scales of columns, sizes of weights ---------------------------------------------


@pytest.mark.filterwarnings("ignore:.*stopped making progress")  # one cannot be certified
def test_a_far_origin_costs_nothing():
    rng = np.random.default_rng(0)
    t = rng.normal(size=(60, 2))
    A, B = np.hstack([t, rng.normal(size=(60, 98))]), t + 0.5 * rng.normal(size=(60, 2))
    base = CCA().fit(A, B)
    for far in (1e7, 1e8):
        moved = CCA().fit(A + far, B)
        assert_allclose(moved.correlations_, base.correlations_, atol=1e-6)
        assert_allclose(moved.transform(A[:9] + far), base.transform(A[:9]), atol=1e-6)
        assert moved.certificate_.ok
    turned = CCA().fit(B, A + 1e7)
    assert_allclose(turned.correlations_, base.correlations_, atol=1e-7)
    # a matrix in which nothing is left of the rows is not certified
    with (
        pytest.warns(UserWarning, match="only 0 direction"),
        pytest.warns(ConvergenceWarning, match="nothing can be said"),
    ):
        lost = CCA(kernel_x="precomputed").fit((A + 1e9) @ (A + 1e9).T, B)
    assert not lost.certificate_.ok and "nothing can be said" in lost.certificate_.statement


def test_scales_of_columns_do_not_matter_without_a_penalty():
    rng = np.random.default_rng(0)
    scales = np.array([1e4, 1.0, 1e-3])
    A, B = views(100, 3, 3, seed=3)
    mixed = A @ rng.normal(size=(3, 3))
    base, scaled = CCA().fit(mixed, B), CCA().fit(mixed * scales, B)
    assert_allclose(scaled.correlations_, base.correlations_, atol=1e-12)
    assert_allclose(scaled.transform(mixed * scales), base.transform(mixed), atol=1e-10)
    assert scaled.certificate_.ok
    constant = np.hstack([mixed * scales, np.full((100, 1), 1e5)])
    assert_allclose(CCA().fit(constant, B).correlations_, base.correlations_, atol=1e-10)
    # columns that are no more than nearly dependent, and a tiny penalty
    close = np.hstack([mixed, mixed @ [[1.0], [1.0], [1.0]] + 1e-5 * rng.normal(size=(100, 1))])
    for penalty in (0.0, 1e-15):
        machine = CCA(penalty=penalty).fit(close, B)
        assert machine.certificate_.ok
        assert_allclose(machine.correlations(close, B), machine.correlations_, atol=1e-4)


def test_the_size_of_weights_does_not_matter():
    for kernels in ((), (Gaussian(2.0), Gaussian(2.0))):
        base = CCA(2, *kernels).fit(X, Y)
        for weight in (1e-12, 1e9):
            machine = CCA(2, *kernels).fit(X, Y, sample_weight=np.full(80, weight))
            assert_allclose(machine.correlations_, base.correlations_, atol=1e-9)
            assert_allclose(machine.transform(XN), base.transform(XN), atol=1e-6)
            assert machine.certificate_.ok


def test_names_of_the_second_view_are_compared():
    other = pd.DataFrame(Y, columns=["u", "v", "w"])
    machine = CCA().fit(X, other)
    for call in (machine.transform_y, lambda y: machine.score(X, y)):
        with pytest.raises(ValueError, match="same order: u, v, w; but these are w, v, u"):
            call(other[["w", "v", "u"]])


def test_odd_parameters():
    pair = CCA(penalty=np.array([0.1, 0.2])).fit(X, Y)
    assert pair.penalty_ == (0.1, 0.2)
    with pytest.raises(ParameterError, match=r"penalty=1e.308"):
        CCA(penalty=1e308).fit(X, Y)
    for seed in (-1, "a"):
        with pytest.raises(ParameterError, match="random_state"):
            CCA(random_state=seed).fit(X, Y)
    with pytest.warns(UserWarning, match="whatever the data"):
        CCA(kernel_x=Gaussian(1.0), kernel_y=Gaussian(1.0), penalty=1e-300).fit(X, Y)


# --- scikit-learn's protocol --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*direction.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*whatever the data.*:UserWarning")
@parametrize_with_checks(
    [
        CCA(n_components=1),
        CCA(),
        CCA(kernel_x=Gaussian(1.5), n_components=1),
        CCA(kernel_x=Gaussian(1.5), kernel_y=Gaussian(1.5), penalty=0.1),
        CCA(kernel_x="polynomial", kernel_y="gaussian", form="norm", n_components=1, penalty=0.05),
        CCA(kernel_x=Gaussian(1.5), approximation=Nystrom(20), n_components=1),
        CCA(kernel_x=Precomputed(), n_components=1, penalty=0.1),
    ]
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("penalty", [1e150, 1e200, 1e300])
def test_weights_whose_squares_vanish_are_still_compared(penalty):
    X = np.random.default_rng(0).standard_normal((20, 2))
    machine = CCA(kernel_x=Gaussian(1.0), penalty=penalty).fit(X, X[:, ::-1] + 1)
    assert np.isfinite(machine.certificate_.quantities.normalisation)


def test_more_components_than_memory_has_room_for_are_refused() -> None:
    """Before anything of their number squared is allocated, or LAPACK is asked."""
    X = np.random.default_rng(0).normal(size=(9, 3))
    with pytest.raises(MemoryError, match="n_components=1000000"):
        CCA(n_components=10**6).fit(X, X[:, :2])


def test_a_penalty_whose_square_is_not_finite():
    """Pairs tend to those of the greatest covariance, at lengths of one over the penalty."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 1))
    Y = X + rng.standard_normal((30, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = CCA(1, penalty=1e300, form="lengths", kernel_x=Gaussian(0.7)).fit(X, Y)
    assert np.isfinite(machine.dual_coef_x_).all()


@pytest.mark.numerics
def test_rounding_that_moves_the_penalty_is_said():
    """One sample counts 1e12 times: rounding of its entry is much of the trace."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 2)), rng.standard_normal((12, 2))
    weights = np.where(np.arange(12) == 0, 1e12, 1.0)
    with pytest.warns(ConvergenceWarning, match="nothing can be said"):
        machine = CCA(1, kernel_x=Laplacian(0.9), penalty=0.02).fit(X, Y, sample_weight=weights)
    assert not machine.certificate_.ok
    assert CCA(1, kernel_x=Laplacian(0.9), penalty=0.02).fit(X, Y).certificate_.ok
