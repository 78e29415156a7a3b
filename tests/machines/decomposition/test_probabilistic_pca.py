"""ProbabilisticPCA against closed forms, scikit-learn, SciPy and exact arithmetic."""

import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning

from mercer import ParameterError, ProbabilisticPCA, certify, deadline
from mercer.machines.decomposition.probabilistic_pca import in_units, smallest_noise
from mercer.machines.decomposition.probabilistic_pca_em import log_densities
from mercer.problems import LatentGaussian, Plane
from mercer.solvers import LatentEM, solve

pytestmark = pytest.mark.numerics


def rows(n=120, d=5, q=2, noise=0.4, seed=0):
    rng = np.random.default_rng(seed)
    plane = rng.standard_normal((n, q)) @ rng.standard_normal((q, d)) * 1.5
    return plane + noise * rng.standard_normal((n, d)) + rng.standard_normal(d) * 3


X, Z = rows(), rows(20, seed=5)
quick = settings(max_examples=15, deadline=None)


def close(found, wanted, tol):
    wanted = np.asarray(wanted)
    scale = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol * scale)


def with_gaps(A, share=0.2, seed=0):
    A = A.copy()
    gaps = np.random.default_rng(seed).random(A.shape) < share
    gaps[:, 0] &= gaps.sum(axis=1) < A.shape[1]  # no row without any entry
    A[gaps] = np.nan
    return A


G = with_gaps(X)


def test_closed_form_is_that_of_scikit_learn():
    theirs = decomposition.PCA(2).fit(X)
    ours = ProbabilisticPCA(2).fit(X)
    factor = len(X) / (len(X) - 1)  # scikit-learn divides by n - 1, likelihood asks for n
    assert ours.noise_variance_ * factor == pytest.approx(theirs.noise_variance_, rel=1e-12)
    close(ours.get_covariance() * factor, theirs.get_covariance(), 1e-12)
    density = multivariate_normal(ours.mean_, ours.get_covariance())
    close(ours.score_samples(Z), density.logpdf(Z), 1e-10)
    assert ours.score(Z) == pytest.approx(density.logpdf(Z).mean())
    assert ours.score(X) == pytest.approx(ours.log_likelihood_)
    assert ours.certificate_.ok


def test_density_against_exact_arithmetic():
    A = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0], [2.0, 0.1, -0.7], [-1.0, 0.4, 1.1]])
    ours = ProbabilisticPCA(1).fit(A)
    mpmath.mp.dps = 40
    M = mpmath.matrix(A.tolist())
    n, d = 4, 3
    mean = [mpmath.fsum(M[i, j] for i in range(n)) / n for j in range(d)]
    S = mpmath.matrix(d, d)
    for a in range(d):
        for b in range(d):
            S[a, b] = mpmath.fsum((M[i, a] - mean[a]) * (M[i, b] - mean[b]) for i in range(n)) / n
    values, vectors = mpmath.eigsy(S)
    noise = (values[0] + values[1]) / 2
    assert ours.noise_variance_ == pytest.approx(float(noise), rel=1e-13)
    v = vectors[:, 2]
    C = noise * mpmath.eye(d) + (values[2] - noise) * v * v.T
    x = mpmath.matrix([0.2, 0.9, -0.4]) - mpmath.matrix(mean)
    exact = -(d * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(C)) + (x.T * C**-1 * x)[0]) / 2
    assert ours.score_samples([[0.2, 0.9, -0.4]])[0] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_em_finds_the_closed_form(q):
    closed = ProbabilisticPCA(q).fit(X)
    em = ProbabilisticPCA(q, method="em", tol=1e-9).fit(X)
    assert em.noise_variance_ == pytest.approx(closed.noise_variance_, rel=1e-6)
    close(em.loadings_, closed.loadings_, 1e-4)
    close(em.mean_, closed.mean_, 1e-9)
    assert em.log_likelihood_ == pytest.approx(closed.log_likelihood_, abs=1e-9)
    close(em.transform(Z), closed.transform(Z), 1e-4)
    assert em.certificate_.ok
    assert em.certificate_.quantities.shortfall < 1e-8


def test_the_posterior_is_that_of_the_joint_gaussian():
    model = ProbabilisticPCA(2).fit(X)
    W, C = model.loadings_, model.get_covariance()
    gain = W.T @ np.linalg.inv(C)
    posterior = model.posterior(Z)
    close(posterior.mean, (Z - model.mean_) @ gain.T, 1e-10)
    close(posterior.covariance, np.broadcast_to(np.eye(2) - gain @ W, (20, 2, 2)), 1e-10)
    close(model.transform(Z), posterior.mean, 1e-12)
    close(model.inverse_transform(posterior.mean), posterior.mean @ W.T + model.mean_, 1e-12)
    close(W.T @ W - np.diag(np.diag(W.T @ W)), np.zeros((2, 2)), 1e-10)
    assert np.linalg.norm(W[:, 0]) > np.linalg.norm(W[:, 1])


def test_samples_have_the_moments_of_the_model():
    model = ProbabilisticPCA(2).fit(X)
    drawn = model.sample(200_000, random_state=0)
    close(np.cov(drawn.T), model.get_covariance(), 0.02)
    close(drawn.mean(axis=0), model.mean_, 0.02)
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))
    again = ProbabilisticPCA(2).fit(drawn)
    close(again.get_covariance(), model.get_covariance(), 0.02)


# --- missing entries -------------------------------------------------------------------------


def test_missing_entries_are_integrated_out():
    model = ProbabilisticPCA(2, method="em").fit(G)
    C, found = model.get_covariance(), model.score_samples(G)
    filled, latent = model.impute(G), model.transform(G)
    for i in range(15):
        o = ~np.isnan(G[i])
        part = multivariate_normal(model.mean_[o], C[np.ix_(o, o)])
        assert found[i] == pytest.approx(part.logpdf(G[i, o]), abs=1e-9)
        gain = C[:, o] @ np.linalg.inv(C[np.ix_(o, o)])
        expected = model.mean_ + gain @ (G[i, o] - model.mean_[o])
        close(filled[i, ~o], expected[~o], 1e-9)
        close(filled[i, o], G[i, o], 1e-15)
        gain = model.loadings_[o].T @ np.linalg.inv(C[np.ix_(o, o)])
        close(latent[i], gain @ (G[i, o] - model.mean_[o]), 1e-9)
    gaps = np.isnan(G)
    by_mean = np.where(gaps, np.nanmean(G, axis=0), G)
    assert np.abs(filled - X)[gaps].mean() < 0.5 * np.abs(by_mean - X)[gaps].mean()
    assert model.certificate_.ok
    assert np.isnan(model.certificate_.quantities.shortfall)


def test_the_likelihood_never_falls_and_ends_flat():
    model = ProbabilisticPCA(2, method="em").fit(G)
    assert np.diff(model.log_likelihoods_).min() > -1e-9
    problem = LatentGaussian(G, np.ones(len(G)), 2, 1e-12)

    def height(mean, W, log_noise):
        return log_densities(Plane(mean, W, float(np.exp(log_noise))), G).mean()

    at = (model.mean_, model.loadings_, np.log(model.noise_variance_))
    h = 1e-5
    slopes = [(height(*at[:2], at[2] + h) - height(*at[:2], at[2] - h)) / (2 * h)]
    for j in range(5):
        step = h * np.eye(5)[j]
        slopes.append((height(at[0] + step, *at[1:]) - height(at[0] - step, *at[1:])) / (2 * h))
        for k in range(2):
            D = np.zeros((5, 2))
            D[j, k] = h
            slopes.append(
                (height(at[0], at[1] + D, at[2]) - height(at[0], at[1] - D, at[2])) / (2 * h)
            )
    assert np.abs(slopes).max() < 1e-5
    moved = Plane(model.mean_, 1.01 * model.loadings_, model.noise_variance_)
    assert not certify(problem, moved).ok
    steep = certify(problem, moved).quantities.slope
    h = 1e-6
    by_loading = (
        height(at[0], 1.01 * at[1] + h * (np.arange(10).reshape(5, 2) == 3), at[2])
        - height(at[0], 1.01 * at[1] - h * (np.arange(10).reshape(5, 2) == 3), at[2])
    ) / (2 * h)
    assert steep >= abs(by_loading) * np.sqrt(model.noise_variance_) * (1 - 1e-6)


def test_a_wrong_plane_is_not_certified():
    model = ProbabilisticPCA(2).fit(X)
    problem = LatentGaussian(X, np.ones(len(X)), 2, 1e-12)
    assert certify(problem, Plane(model.mean_, model.loadings_, model.noise_variance_)).ok
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    # stationary, but of the wrong directions: only the optimum tells
    noise = values[[1, 2, 4]].mean()
    wrong = vectors[:, [3, 0]] * np.sqrt(np.maximum(values[[3, 0]] - noise, 0))
    found = certify(problem, Plane(X.mean(axis=0), wrong, noise))
    assert not found.ok
    assert found.quantities.shortfall > 0.01
    falling = Plane(model.mean_, model.loadings_, model.noise_variance_, np.array([-3.0, -4.0]))
    assert not certify(problem, falling).ok


@quick
@given(seed=st.integers(0, 1000))
def test_weights_mean_repetition_and_order_nothing(seed):
    rng = np.random.default_rng(seed)
    A = with_gaps(rows(25, 4, 1, seed=seed), 0.15, seed)
    weights = rng.integers(0, 4, 25).astype(float)
    weights[:6] += 1
    index = np.repeat(np.arange(25), weights.astype(int))
    options = {"method": "em", "tol": 1e-9}
    one = ProbabilisticPCA(1, **options).fit(A, sample_weight=weights)
    two = ProbabilisticPCA(1, **options).fit(rng.permutation(A[index]))
    close(one.get_covariance(), two.get_covariance(), 1e-5)
    close(one.mean_, two.mean_, 1e-5)
    full = rows(25, 4, 1, seed=seed)
    one = ProbabilisticPCA(2).fit(full, sample_weight=weights)
    two = ProbabilisticPCA(2).fit(full[index])
    close(one.get_covariance(), two.get_covariance(), 1e-10)
    assert one.score(full, sample_weight=weights) == pytest.approx(two.score(full[index]))


def test_gaps_are_for_em_only():
    with pytest.raises(ValueError, match="contains NaN"):
        ProbabilisticPCA(2).fit(G)
    with pytest.raises(ValueError, match="contains infinity"):
        ProbabilisticPCA(2, method="em").fit(np.where(np.isnan(G), np.inf, G))
    closed = ProbabilisticPCA(2).fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        closed.transform(G)
    assert np.isfinite(closed.impute(G)).all()
    empty = np.column_stack([X, np.full(len(X), np.nan)])
    with pytest.raises(ValueError, match="column 5 of X has no entry"):
        ProbabilisticPCA(2, method="em").fit(empty)
    whole = G.copy()
    whole[0] = np.nan  # a row without entries says nothing
    model = ProbabilisticPCA(2, method="em").fit(whole)
    close(model.transform(whole)[0], np.zeros(2), 1e-12)
    assert model.score_samples(whole)[0] == 0
    close(model.impute(whole)[0], model.mean_, 1e-12)
    frame = pd.DataFrame(G, columns=list("abcde"))
    assert ProbabilisticPCA(2, method="em").fit(frame).feature_names_in_.tolist() == list("abcde")


# --- borderline and bad input ----------------------------------------------------------------


def test_sparse_rows_wide_rows_and_flat_rows():
    thin = np.where(np.abs(X) > 1, X, 0)
    dense, csr = ProbabilisticPCA(2).fit(thin), ProbabilisticPCA(2).fit(sparse.csr_array(thin))
    close(csr.transform(sparse.csr_array(thin)), dense.transform(thin), 1e-9)
    em = ProbabilisticPCA(2, method="em").fit(sparse.csr_array(thin))
    assert em.certificate_.ok
    wide = rows(10, 40, 2)
    model = ProbabilisticPCA(2).fit(wide)
    values = np.linalg.eigvalsh(np.cov(wide.T, bias=True))[::-1]
    assert model.noise_variance_ == pytest.approx(values[2:].mean(), rel=1e-8)
    density = multivariate_normal(model.mean_, model.get_covariance())
    close(model.score_samples(wide), density.logpdf(wide), 1e-8)
    for method in ("closed", "em"):
        flat = ProbabilisticPCA(1, method=method).fit(np.full((5, 3), 0.1))
        assert flat.noise_variance_ > 0
        assert np.isfinite(flat.score(np.full((5, 3), 0.1)))
        assert (flat.transform(np.full((5, 3), 0.1)) == 0).all()
    everything = ProbabilisticPCA(5).fit(X)  # as many as columns: the sample covariance
    close(everything.get_covariance(), np.cov(X.T, bias=True), 1e-8)


def test_limits_and_parameters():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        ProbabilisticPCA(2, method="em", max_iter=3).fit(G)
    with pytest.warns(ConvergenceWarning, match="callback"):
        ProbabilisticPCA(2, method="em", callback=lambda p: True).fit(G)
    for parameters, message in [
        ({"n_components": 6}, "at most the number of columns: n_features = 5"),
        ({"n_components": 0}, "positive integer"),
        ({"method": "mle"}, "'closed' or 'em'"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"random_state": -1}, "random_state=-1"),
    ]:
        with pytest.raises(ParameterError, match=message):
            ProbabilisticPCA(**parameters).fit(X)
    with pytest.raises(ValueError, match="at least 1"):
        LatentGaussian(X, np.ones(len(X)), 0, 1e-9)
    found = solve(LatentGaussian(X, np.ones(len(X)), 2, 1e-12))
    assert found.solver == "LatentEM"
    assert LatentEM().refuses(None) is not None
    one = ProbabilisticPCA(2, method="em", random_state=3).fit(G)
    two = ProbabilisticPCA(2, method="em", random_state=3).fit(G)
    np.testing.assert_array_equal(one.loadings_, two.loadings_)
    assert one.n_iter_ == two.solution_.iterations


@pytest.mark.parametrize("method", ["closed", "em"])
@pytest.mark.parametrize("scale", [1e-140, 1e-100, 1e150])
def test_scale_changes_nothing_but_the_scale(method, scale):
    found = ProbabilisticPCA(2, method=method).fit(X * scale)
    wanted = ProbabilisticPCA(2, method=method).fit(X)
    close(found.noise_variance_ / scale / scale, wanted.noise_variance_, 1e-5)
    close(found.log_likelihood_ + X.shape[1] * np.log(scale), wanted.log_likelihood_, 1e-9)
    assert found.certificate_.ok
    if method == "em":
        close(found.log_likelihoods_[-1] / len(X), found.log_likelihood_, 1e-12)


def test_scales_beyond_float64_are_refused():
    with pytest.raises(ValueError, match=r"beyond float64.*Scale the features"):
        ProbabilisticPCA(2).fit(X * 1e-170)


def test_sparse_rows_far_from_the_origin_keep_their_digits():
    rng = np.random.default_rng(0)
    A = (rng.random((300, 12)) < 0.3) * rng.normal(size=(300, 12))
    A[:, 3] = 1e6 + rng.normal(size=300)
    thin, full = ProbabilisticPCA(3).fit(sparse.csr_matrix(A)), ProbabilisticPCA(3).fit(A)
    close(thin.noise_variance_, full.noise_variance_, 1e-10)


@pytest.mark.parametrize("count", ["a", -1, 1.5, np.inf])
def test_samples_are_counted(count):
    with pytest.raises(ParameterError, match="n_samples"):
        ProbabilisticPCA(2).fit(X).sample(count)


def test_the_clock_is_looked_at_before_anything_is_solved(monkeypatch):
    # means and variances of many rows take longer than a step of the solver
    X, looks = np.ones((5 * (1 << 20) // 32, 32)), []
    monkeypatch.setattr(deadline, "check", lambda: looks.append(1))
    smallest_noise(X, np.ones(len(X)))
    assert len(looks) >= 10  # at the least one a million entries, in both passes


@pytest.mark.parametrize("scale", [1e-120, 1e-8, 1.0, 3e7, 1e120])
def test_the_smallest_noise_is_the_same_in_other_units(scale):
    X, s = scale * np.random.default_rng(0).standard_normal((20, 3)), np.ones(20)
    problem = LatentGaussian(X, s, 1, smallest_noise(X, s))
    near, unit = in_units(None, problem)
    assert near.floor == smallest_noise(X / unit, s)


def test_rows_far_beyond_the_noise_have_no_density():
    """Squares over a tiny noise are beyond float64: said by the number, not by a warning."""
    machine = ProbabilisticPCA(1, method="em", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        machine.fit(np.zeros((2, 4)))
        found = machine.score_samples(np.array([[0.0, 4e149, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    assert found[0] == -np.inf and np.isfinite(found[1])
