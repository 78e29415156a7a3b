"""Gaussian process classification against scikit-learn, logistic regression and quadrature."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Rival
from sklearn.gaussian_process import kernels as rivals

import mercer
from mercer import GaussianProcessClassifier, LogisticRegression, Status, certify
from mercer.files.verification import verify
from mercer.kernels import Gaussian, Linear, exp
from mercer.machines.gaussian_process.classifier import averaged_sigmoid
from mercer.problems import ProcessClassification

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 2))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=50) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.4, 0.6])
Z = rng.normal(size=(9, 2))
WEIGHTS = rng.integers(0, 4, 50).astype(float)
KERNEL, THEIRS = 3.0 * Gaussian(0.8), rivals.ConstantKernel(3.0) * rivals.RBF(0.8)


def test_two_classes_against_scikit_learn():
    machine, rival = GaussianProcessClassifier(KERNEL).fit(X, y), Rival(THEIRS, optimizer=None)
    rival.fit(X, y)
    for found, true in zip(
        machine.latent_mean_and_variance(Z), rival.latent_mean_and_variance(Z), strict=True
    ):
        assert np.allclose(found, true, atol=1e-8)
    value, gradient = machine.log_marginal_likelihood(X, y, eval_gradient=True)
    true, slopes = rival.log_marginal_likelihood(rival.kernel_.theta, eval_gradient=True)
    assert abs(value - true) < 1e-8
    assert np.isclose(value, machine.log_marginal_likelihood_value_)
    assert np.allclose(list(gradient.values()), slopes, atol=1e-8)
    # theirs is a sum of five error functions
    assert np.allclose(machine.predict_proba(Z), rival.predict_proba(Z), atol=1e-3)
    assert np.array_equal(machine.predict(Z), rival.predict(Z))
    assert machine.certificate_.ok
    assert "not proved" in machine.certificate_.statement


def test_more_classes_are_asked_against_the_rest():
    machine = GaussianProcessClassifier(KERNEL).fit(X, THREE)
    rival = Rival(THEIRS, optimizer=None).fit(X, THREE)
    found = machine.predict_proba(Z)
    assert np.allclose(found, rival.predict_proba(Z), atol=1e-3)
    assert np.allclose(found.sum(axis=1), 1.0)
    mean, variance = machine.latent_mean_and_variance(Z)
    for c in range(3):
        one = GaussianProcessClassifier(KERNEL).fit(X, THREE == c)
        expected = one.latent_mean_and_variance(Z)
        assert np.allclose((mean[:, c], variance[:, c]), expected, atol=1e-9)
    # the mean over the questions is scikit-learn's
    assert np.isclose(
        machine.log_marginal_likelihood_value_ / 3, rival.log_marginal_likelihood_value_
    )


@pytest.mark.parametrize("kernel", [KERNEL, Linear()], ids=str)
def test_the_mode_is_logistic_regression(kernel):
    machine = GaussianProcessClassifier(kernel).fit(X, y, WEIGHTS)
    other = LogisticRegression(kernel, 1.0, bias=False).fit(X, y, WEIGHTS)
    mean, _ = machine.latent_mean_and_variance(Z)
    assert np.allclose(mean, other.decision_function(Z), atol=1e-6)
    assert machine.certificate_.ok


def test_weights_are_repetitions():
    again = np.repeat(np.arange(50), WEIGHTS.astype(int))
    weighted = GaussianProcessClassifier(KERNEL).fit(X, THREE, WEIGHTS)
    repeated = GaussianProcessClassifier(KERNEL).fit(X[again], THREE[again])
    assert np.allclose(weighted.predict_proba(Z), repeated.predict_proba(Z), atol=1e-9)
    ours = weighted.log_marginal_likelihood(X, THREE, WEIGHTS, eval_gradient=True)
    theirs = repeated.log_marginal_likelihood(X[again], THREE[again], eval_gradient=True)
    assert np.isclose(ours[0], theirs[0])
    assert np.allclose(list(ours[1].values()), list(theirs[1].values()), atol=1e-6)


def test_gradient_of_the_evidence():
    kernel = 2.0 * Gaussian([0.8, 1.5]) + 0.3 * Linear()
    names = ["k1__factor", "k1__k1__scale", "k2__factor"]

    def evidence(logs):
        factor, *scales, other = np.exp(logs)
        moved = kernel.with_params(k1__factor=factor, k1__k1__scale=scales, k2__factor=other)
        return GaussianProcessClassifier(moved).log_marginal_likelihood(X, THREE, WEIGHTS)

    logs, step = np.log([2.0, 0.8, 1.5, 0.3]), 1e-5
    machine = GaussianProcessClassifier(kernel)
    _, found = machine.log_marginal_likelihood(X, THREE, WEIGHTS, eval_gradient=True)
    expected = [
        (evidence(logs + step * e) - evidence(logs - step * e)) / (2 * step) for e in np.eye(4)
    ]
    assert np.allclose(np.hstack([found[name] for name in names]), expected, atol=1e-6)


def test_five_rows_in_fifty_digits():
    rows, signs = X[:5], np.where(y[:5] == "yes", 1, -1)
    machine = GaussianProcessClassifier(Gaussian(0.8)).fit(rows, signs)
    with mpmath.workdps(50):
        K = mpmath.matrix(Gaussian(0.8)(rows).tolist())
        f = mpmath.matrix(5, 1)
        for _ in range(60):  # Newton's method on f = K g(f)
            p = [1 / (1 + mpmath.exp(-v)) for v in f]
            W = mpmath.diag([q * (1 - q) for q in p])
            g = mpmath.matrix([(1 + s) / 2 - q for s, q in zip(signs.tolist(), p, strict=True)])
            f = mpmath.lu_solve(mpmath.eye(5) + K * W, K * (W * f + g))
        p = [1 / (1 + mpmath.exp(-v)) for v in f]
        W = mpmath.diag([q * (1 - q) for q in p])
        a = mpmath.lu_solve(K, f)
        likely = sum(
            -mpmath.log(1 + mpmath.exp(-int(s) * v)) for s, v in zip(signs, f, strict=True)
        )
        likely -= (a.T * f)[0] / 2 + mpmath.log(mpmath.det(mpmath.eye(5) + K * W)) / 2
        variance = (mpmath.eye(5) + K * W) ** -1 * K
    mean, spread = machine.latent_mean_and_variance(rows)
    assert np.allclose(mean, [float(v) for v in f], atol=1e-12)
    assert np.allclose(spread, [float(variance[i, i]) for i in range(5)], atol=1e-12)
    assert abs(machine.log_marginal_likelihood_value_ - float(likely)) < 1e-12


@pytest.mark.parametrize("variance", [0.0, 1e-12, 0.1, 0.999, 1.0, 5.0, 1e3, 1e8])
def test_probabilities_are_averages(variance):
    means = [-7.0, 0.3, 30.0]
    found = averaged_sigmoid(np.array(means), np.full(3, variance))
    for mean, value in zip(means, found.tolist(), strict=True):
        spread = variance**0.5
        near = {-mean / spread + shift / spread for shift in (-40, 0, 40)} if spread > 1 else set()
        ends = sorted({-12.0, -3.0, 0.0, 3.0, 12.0} | {p for p in near if abs(p) < 12})
        true = mpmath.quad(
            lambda z, m=mean, s=spread: mpmath.npdf(z) / (1 + mpmath.exp(-(m + s * z))), ends
        )
        assert abs(value - float(true)) < 1e-12


def test_parameters_of_most_evidence():
    machine = GaussianProcessClassifier("1 * gaussian", optimize=True).fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    best = GaussianProcessClassifier(machine.kernel_)
    value, slopes = best.log_marginal_likelihood(X, y, eval_gradient=True)
    assert max(map(abs, slopes.values())) < 50 * 1e-5
    rival = Rival(rivals.ConstantKernel() * rivals.RBF()).fit(X, y)
    assert value > rival.log_marginal_likelihood_value_ - 1e-4
    far = machine.predict_proba([[100.0, 100.0]])
    assert np.allclose(far, 0.5)


def test_certificate_sees_wrong_answers():
    machine = GaussianProcessClassifier(KERNEL).fit(X, y)
    value = machine.solution_.value
    gram = mercer.gram.make_gram(KERNEL, X, mercer.gram.Need.ROWS)
    problem = ProcessClassification(gram, np.where(y == "yes", 1.0, -1.0)[:, None], np.ones(50))
    assert certify(problem, value).ok
    assert not certify(problem, replace(value, coef=value.coef * (1 + 1e-4))).ok
    assert not certify(problem, replace(value, factors=value.factors * (1 + 1e-4))).ok
    assert not certify(problem, replace(value, roots=value.roots * (1 + 1e-4))).ok
    assert not certify(problem, replace(value, log_likelihood=value.log_likelihood + 1.0)).ok


def test_a_matrix_of_ones_own():
    machine = GaussianProcessClassifier("precomputed").fit(KERNEL(X), y, WEIGHTS)
    other = GaussianProcessClassifier(KERNEL).fit(X, y, WEIGHTS)
    across, prior = KERNEL(Z, X), KERNEL.diag(Z)
    assert np.array_equal(machine.predict(across), other.predict(Z))
    with pytest.raises(ValueError, match="pass prior_var"):
        machine.latent_mean_and_variance(across)
    mean = other.latent_mean_and_variance(Z)[0]
    assert np.allclose(machine.predict_proba(across)[:, 1], 1 / (1 + np.exp(-mean)))
    found = machine.latent_mean_and_variance(across, prior_var=prior)
    assert np.allclose(found, other.latent_mean_and_variance(Z))
    assert np.allclose(machine.predict_proba(across, prior_var=prior), other.predict_proba(Z))
    assert np.allclose(machine.predict_log_proba(across, prior), other.predict_log_proba(Z))
    with pytest.raises(ValueError, match="prior_var has shape"):
        machine.latent_mean_and_variance(across, prior_var=[1.0])


def test_classes_of_a_matrix_are_the_most_probable():
    machine = GaussianProcessClassifier("precomputed").fit(KERNEL(X), THREE)
    p = machine.predict_proba(KERNEL(Z, X))
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(KERNEL(Z, X)))


def test_a_file_holds_it_and_data_verify_it(tmp_path):
    machine = GaussianProcessClassifier("1 * gaussian", optimize=True).fit(X, THREE, WEIGHTS)
    mercer.save(machine, tmp_path / "process.mercer")
    again = mercer.load(tmp_path / "process.mercer")
    assert np.array_equal(again.predict_proba(Z), machine.predict_proba(Z))
    assert verify(again, X, THREE, WEIGHTS).ok


def test_refusals():
    with pytest.raises(ValueError, match="optimize names 'noise'"):
        GaussianProcessClassifier(KERNEL, optimize=["noise"]).fit(X, y)
    with pytest.raises(TypeError, match="optimize=True"):
        GaussianProcessClassifier(optimizer=None)
    with pytest.raises(ValueError, match="no parameter to learn"):
        GaussianProcessClassifier(Linear(), optimize=True).fit(X, y)


def test_steps_are_limited_also_without_a_search():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(ConvergenceWarning):
        machine = GaussianProcessClassifier(Gaussian(1.0), max_iter=1).fit(X, np.arange(40) % 3)
    assert machine.n_iter_ <= 3 and machine.solution_.status is not Status.SOLVED


def test_variances_that_overflow_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 3))
    machine = GaussianProcessClassifier(exp(Linear())).fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match="overflows on"):
        machine.predict_proba(100 * X)
