"""Gaussian process regression against scikit-learn, closed forms, brute force and mpmath."""

import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as rivals

import mercer
from mercer import GaussianProcess, KernelRidge, Status, certify
from mercer.files.verification import verify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from mercer.problems import ProcessRegression

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=40)
Y = np.column_stack([y, X[:, 0] ** 2])
Z = rng.normal(size=(9, 3))
WEIGHTS = rng.integers(0, 4, 40).astype(float)
KERNELS = [2.0 * Gaussian(1.3), Matern(1.5, [1.0, 2.0, 0.7]) + 0.1, Linear(), Polynomial(2)]


def dense(kernel, bias, rows=X, targets=Y, noise=0.3, new=Z):
    """Return mean and covariance at new rows by explicit inverses."""
    inverse = np.linalg.inv(kernel(rows) + noise * np.eye(len(rows)))
    across, ones = kernel(new, rows), inverse.sum(axis=1)
    b = ones @ targets / ones.sum() if bias else np.zeros(targets.shape[1])
    mean = across @ inverse @ (targets - b) + b
    cov = kernel(new) - across @ inverse @ across.T
    if bias:
        left = 1 - across @ ones
        cov = cov + np.outer(left, left) / ones.sum()
    return mean, cov


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_posterior_is_the_closed_form_and_the_mean_that_of_ridge(kernel, bias):
    machine = GaussianProcess(kernel, noise=0.3, bias=bias).fit(X, Y)
    ridge = KernelRidge(0.3, kernel, bias=bias).fit(X, Y)
    assert np.array_equal(machine.predict(Z), ridge.predict(Z))
    assert np.array_equal(machine.dual_coef_, ridge.dual_coef_)
    mean, cov = dense(kernel, bias)
    found, covariance = machine.predict(Z, return_cov=True)
    assert np.allclose(found, mean, atol=1e-10)
    assert covariance.shape == (9, 9, 2)
    assert np.allclose(covariance[:, :, 1], cov, atol=1e-10)
    _, std = machine.predict(Z, return_std=True)
    assert np.allclose(std[:, 0] ** 2, cov.diagonal(), atol=1e-10)
    _, noisy = machine.predict(Z, return_std=True, include_noise=True)
    assert np.allclose(noisy**2, std**2 + 0.3)
    assert machine.certificate_.ok


PAIRS = [
    (2.0 * Gaussian(1.3), rivals.ConstantKernel(2.0) * rivals.RBF(1.3)),
    (1.0 * Gaussian([1.0, 2.0, 0.5]), rivals.ConstantKernel(1.0) * rivals.RBF([1.0, 2.0, 0.5])),
    (0.5 * Matern(2.5, 2.0), rivals.ConstantKernel(0.5) * rivals.Matern(2.0, nu=2.5)),
    (
        1.0 * RationalQuadratic(0.7, 1.5),
        rivals.ConstantKernel(1.0) * rivals.RationalQuadratic(1.5, 0.7),
    ),
]


@pytest.mark.parametrize(("kernel", "rival"), PAIRS, ids=str)
def test_against_scikit_learn(kernel, rival):
    machine = GaussianProcess(kernel, noise=0.2).fit(X, y)
    other = GaussianProcessRegressor(rival, alpha=0.2, optimizer=None).fit(X, y)
    for found, true in zip(
        machine.predict(Z, return_std=True), other.predict(Z, return_std=True), strict=True
    ):
        assert np.allclose(found, true, atol=1e-10)
    assert np.isclose(machine.log_marginal_likelihood_value_, other.log_marginal_likelihood_value_)
    value, gradient = machine.log_marginal_likelihood(X, y, eval_gradient=True)
    true, slopes = other.log_marginal_likelihood(other.kernel_.theta, eval_gradient=True)
    assert abs(value - true) < 1e-8
    # theirs is in the order of names of their own
    ours = np.sort(np.hstack([v for name, v in gradient.items() if name != "noise"]))
    assert np.allclose(ours, np.sort(slopes), atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
def test_weights_are_repetitions(bias):
    kernel = 1.0 * Gaussian(1.0)
    again = np.repeat(np.arange(40), WEIGHTS.astype(int))
    once = GaussianProcess(kernel, noise=0.2, bias=bias)
    weighted, repeated = once.fit(X, Y, WEIGHTS), GaussianProcess(kernel, noise=0.2, bias=bias)
    repeated.fit(X[again], Y[again])
    for a, b in zip(
        weighted.predict(Z, return_std=True), repeated.predict(Z, return_std=True), strict=True
    ):
        assert np.allclose(a, b, atol=1e-10)
    assert np.isclose(
        weighted.log_marginal_likelihood_value_, repeated.log_marginal_likelihood_value_
    )
    ours = weighted.log_marginal_likelihood(X, Y, WEIGHTS, eval_gradient=True)[1]
    theirs = repeated.log_marginal_likelihood(X[again], Y[again], eval_gradient=True)[1]
    assert all(np.allclose(ours[name], theirs[name], atol=1e-7) for name in theirs)
    few, many = weighted.leave_one_out(), repeated.leave_one_out()
    first = np.searchsorted(again, np.flatnonzero(WEIGHTS))
    assert np.isnan(few.mean[WEIGHTS == 0]).all()
    assert np.allclose(few.mean[WEIGHTS > 0], many.mean[first], atol=1e-9)
    assert np.allclose(few.variance[WEIGHTS > 0], many.variance[first], atol=1e-9)
    assert np.allclose(few.log_density[WEIGHTS > 0], many.log_density[first], atol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_leave_one_out_is_that_of_refits(kernel, bias):
    found = GaussianProcess(kernel, noise=0.3, bias=bias).fit(X, Y).leave_one_out()
    for i in (0, 7, 39):
        rest = np.arange(40) != i
        one = GaussianProcess(kernel, noise=0.3, bias=bias).fit(X[rest], Y[rest])
        mean, std = one.predict(X[[i]], return_std=True, include_noise=True)
        assert np.allclose(found.mean[i], mean[0], atol=1e-10)
        assert np.isclose(found.variance[i], std[0, 0] ** 2)
        density = multivariate_normal(mean[0, 0], std[0, 0] ** 2).logpdf(Y[i, 0])
        assert np.isclose(found.log_density[i, 0], density)


def test_a_fraction_of_a_row_is_left_out_whole():
    weights = np.where(np.arange(40) == 3, 0.5, 1.0)
    found = GaussianProcess(Gaussian(1.0), noise=0.3).fit(X, y, weights).leave_one_out()
    rest = np.arange(40) != 3
    one = GaussianProcess(Gaussian(1.0), noise=0.3).fit(X[rest], y[rest])
    mean, std = one.predict(X[[3]], return_std=True, include_noise=True)
    assert np.isclose(found.mean[3], mean[0])
    assert np.isclose(found.variance[3], std[0] ** 2)


def test_five_rows_in_fifty_digits():
    rows, targets, noise, scale = X[:5, :2], y[:5], 0.01, 0.8
    machine = GaussianProcess(Gaussian(scale), noise=noise).fit(rows, targets)
    new = Z[:1, :2]
    with mpmath.workdps(50):
        points = [[mpmath.mpf(v) for v in row] for row in np.vstack([rows, new]).tolist()]

        def k(a, b):
            return mpmath.exp(-sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) / 2 / s**2)

        s, v = mpmath.mpf(scale), mpmath.mpf(noise)
        C = mpmath.matrix(5, 5)
        for i in range(5):
            for j in range(5):
                C[i, j] = k(points[i], points[j]) + (v if i == j else 0)
        t = mpmath.matrix([mpmath.mpf(u) for u in targets.tolist()])
        across = mpmath.matrix([k(points[i], points[5]) for i in range(5)])
        a = mpmath.lu_solve(C, t)
        mean = (across.T * a)[0]
        variance = 1 - (across.T * mpmath.lu_solve(C, across))[0]
        likely = -((t.T * a)[0] + mpmath.log(mpmath.det(C)) + 5 * mpmath.log(2 * mpmath.pi)) / 2
    found, std = machine.predict(new, return_std=True)
    assert abs(found[0] - float(mean)) < 1e-13
    assert abs(std[0] ** 2 - float(variance)) < 1e-13
    assert abs(machine.log_marginal_likelihood_value_ - float(likely)) < 1e-12


def test_parameters_of_most_evidence():
    machine = GaussianProcess("1 * gaussian", optimize=True, starts=2).fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    assert "not proved" in machine.certificate_.statement
    best = GaussianProcess(machine.kernel_, noise=machine.noise_)
    value, slopes = best.log_marginal_likelihood(X, y, eval_gradient=True)
    assert np.isclose(value, machine.log_marginal_likelihood_value_)
    assert max(map(abs, slopes.values())) < 40 * 1e-5
    rival = GaussianProcessRegressor(
        rivals.ConstantKernel() * rivals.RBF() + rivals.WhiteKernel(), n_restarts_optimizer=2
    ).fit(X, y)
    assert value > rival.log_marginal_likelihood_value_ - 1e-4
    only = GaussianProcess(1.0 * Gaussian(1.0), optimize=["noise"]).fit(X, y)
    assert only.kernel_ == 1.0 * Gaussian(1.0)
    assert only.noise_ < 1.0


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units_of_targets_and_rows_do_not_matter(unit):
    plain = GaussianProcess("1 * gaussian", optimize=True, tol=1e-7).fit(X, y)
    other = GaussianProcess("1 * gaussian", optimize=True, tol=1e-7).fit(X / unit, unit * y)
    assert other.certificate_.ok
    assert np.isclose(other.noise_, plain.noise_ * unit**2, rtol=1e-3)
    assert np.allclose(other.predict(Z / unit) / unit, plain.predict(Z), rtol=1e-3, atol=1e-3)


def test_samples_have_the_moments_of_prior_and_posterior():
    new = np.linspace(-1, 1, 5)[:, None]
    machine = GaussianProcess(Gaussian(1.0), noise=0.1)
    prior = machine.sample_y(new, 20_000)
    assert np.allclose(np.cov(prior), Gaussian(1.0)(new), atol=0.05)
    machine.fit(X[:, :1], Y)
    mean, cov = machine.predict(new, return_cov=True)
    draws = machine.sample_y(new, 20_000, random_state=1)
    assert draws.shape == (5, 2, 20_000)
    assert np.allclose(draws.mean(axis=2), mean, atol=0.01)
    assert np.allclose(np.cov(draws[:, 1]), cov[:, :, 1], atol=0.01)
    assert np.array_equal(machine.sample_y(new, 20_000, prior=True), prior)


def test_a_singular_matrix_is_said_to_be_one():
    twice = np.vstack([X, X])
    with pytest.warns(LinAlgWarning, match="singular to working precision"):
        machine = GaussianProcess(Gaussian(1.0), noise=1e-20).fit(twice, np.tile(y, 2))
    assert machine.solution_.status is Status.SINGULAR
    assert np.allclose(machine.predict(X), y, atol=1e-6)


def test_certificate_sees_wrong_answers():
    machine = GaussianProcess(Gaussian(1.0), noise=0.1, optimize=["noise"]).fit(X, y)
    value = machine.solution_.value
    gram = mercer.gram.make_gram(machine.kernel_, X, mercer.gram.Need.MATRIX)
    problem = ProcessRegression(gram, y[:, None], machine.noise_, np.ones(40), False)
    assert certify(problem, value).ok
    assert not certify(problem, replace(value, coef=value.coef * (1 + 1e-4))).ok
    assert not certify(problem, replace(value, factor=value.factor * (1 + 1e-4))).ok
    wrong = certify(problem, replace(value, log_likelihood=value.log_likelihood + 1.0))
    assert "log-likelihood of a sample is known to" in wrong.statement


def test_a_search_that_is_cut_says_so():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        machine = GaussianProcess("1 * gaussian", optimize=True, max_iter=1).fit(X, y)
    assert machine.solution_.status is Status.ITERATION_LIMIT
    assert not machine.certificate_.ok
    machine = GaussianProcess("1 * gaussian", optimize=True, callback=lambda p: p.iteration > 1)
    with pytest.warns(ConvergenceWarning, match="callback"):
        machine.fit(X, y)
    assert machine.solution_.status is Status.STOPPED


def test_a_matrix_of_ones_own():
    kernel = Gaussian(1.0)
    machine = GaussianProcess("precomputed", noise=0.3, bias=True).fit(kernel(X), y, WEIGHTS)
    other = GaussianProcess(kernel, noise=0.3, bias=True).fit(X, y, WEIGHTS)
    across = kernel(Z, X)
    assert np.allclose(machine.predict(across), other.predict(Z))
    with pytest.raises(ValueError, match="prior_cov"):
        machine.predict(across, return_std=True)
    _, std = machine.predict(across, return_std=True, prior_cov=kernel(Z))
    assert np.allclose(std, other.predict(Z, return_std=True)[1])
    with pytest.raises(ValueError, match="prior_cov has shape"):
        machine.predict(across, return_cov=True, prior_cov=np.ones(3))
    with pytest.raises(ValueError, match="kernel of rows"):
        GaussianProcess("precomputed", optimize=True).fit(kernel(X), y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"noise": 0.0}, "noise=0.0 must be a finite number greater than 0"),
        ({"optimize": "all"}, "optimize='all' must be True, False, or a list"),
        ({"optimize": ["scale"]}, "optimize names 'scale'; what can be learnt of .* is factor"),
        ({"bounds": (2.0, 3.0)}, "bounds"),
        ({"starts": 0}, "starts=0 must be a positive integer"),
        ({"kernel": Matern(0.7), "optimize": True}, "take nu = 0.5, or one above 1"),
    ],
)
def test_refusals_name_parameter_and_remedy(options, said):
    with pytest.raises(ValueError, match=said):
        GaussianProcess(**{"kernel": 1.0 * Gaussian(1.0), **options}).fit(X, y)


def test_other_names_and_calls():
    with pytest.raises(TypeError, match="noise"):
        GaussianProcess(alpha=0.1)
    with pytest.raises(ValueError, match="ask for one of them"):
        GaussianProcess().fit(X, y).predict(Z, return_std=True, return_cov=True)


def test_a_file_holds_it_and_data_verify_it(tmp_path):
    machine = GaussianProcess("1 * laplacian", optimize=True).fit(X, y, WEIGHTS)
    mercer.save(machine, tmp_path / "process.mercer")
    again = mercer.load(tmp_path / "process.mercer")
    assert np.array_equal(again.predict(Z, return_std=True)[1], machine.predict(Z, True)[1])
    assert verify(again, X, y, WEIGHTS).ok
    assert isinstance(again.kernel_.parts[0], Laplacian)


def test_variances_are_judged_in_their_own_units():
    """A constant known to a noise of 1e10 has a variance beside which k(x, x) is rounding."""
    X = np.random.default_rng(0).normal(size=(5, 1))
    machine = GaussianProcess(Gaussian(1.0), noise=1e10, bias=True).fit(X, X[:, 0])
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok


def test_weights_that_leave_no_noise_are_seen_within_the_fit():
    """What is added to K in a row is the noise over its weight; LU may find nothing left of it."""
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 1)), 2, axis=0) + [[0.0], [1e-9]] * 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = GaussianProcess(Gaussian(1.0), noise=1e-5).fit(X, X[:, 0], np.full(10, 1e7))
    status = machine.solution_.status
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is taken back when it is read
        assert machine.certificate_.ok == (status is Status.SOLVED)


@pytest.mark.parametrize("bias", [False, True])
def test_a_likelihood_that_is_off_is_not_certified(bias):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 2)), random.normal(size=30)
    machine = GaussianProcess(Gaussian(1.0), noise=0.1, bias=bias).fit(X, y)
    value = machine.solution_.value
    asked = ProcessRegression(
        make_gram(Gaussian(1.0), X, Need.MATRIX), y[:, None], 0.1, np.ones(30), bias
    )
    assert certify(asked, value).ok
    assert not certify(asked, replace(value, log_likelihood=1.001 * value.log_likelihood)).ok
