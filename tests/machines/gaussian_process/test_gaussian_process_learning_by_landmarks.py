"""Parameters of a Gaussian process learnt with landmarks in place of the kernel."""

from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import GaussianProcess
from mercer.approximation import ApproximateKernel, Nystrom
from mercer.certificates import certify
from mercer.files.verification import verify
from mercer.kernels import Gaussian
from mercer.machines.base.approximate import ApproximationWarning
from mercer.machines.gaussian_process import regressor
from mercer.solvers import SolverError, solve


def waves(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=n)


def test_landmarks_learn_what_the_kernel_itself_does():
    X, y = waves(400)
    kernel = 1.0 * Gaussian([2.0, 2.0])
    exact = GaussianProcess(kernel, noise=0.1, optimize=True).fit(X, y)
    few = GaussianProcess(kernel, noise=0.1, optimize=True, approximation=Nystrom(150)).fit(X, y)
    assert few.solution_.status.ok and few.certificate_.ok, few.certificate_
    assert np.isclose(few.noise_, exact.noise_, rtol=1e-2)
    learnt = [m.get_params() for m in (few.kernel_.kernel, exact.kernel_)]
    assert np.allclose(learnt[0]["k1__scale"].array, learnt[1]["k1__scale"].array, rtol=2e-2)
    bound = few.certificate_.quantities.lower_bound
    assert bound <= exact.log_marginal_likelihood_value_ + 1e-6
    assert bound > exact.log_marginal_likelihood_value_ - 1.0
    assert "at least" in few.certificate_.statement


def test_landmarks_follow_a_scale_that_was_far_too_long():
    """The kernel has a small rank as it is given; landmarks are drawn for what it becomes."""
    X, y = waves(300)
    approximation = Nystrom(100)
    machine = GaussianProcess(
        1.0 * Gaussian(10.0), noise=0.1, optimize=True, approximation=approximation
    ).fit(X, y)
    assert machine.kernel_.kernel.get_params()["k1__scale"] < 3
    assert machine.score(X, y) > 0.95


def test_weights_are_repetitions_with_landmarks():
    X, y = waves(80)
    weights = np.random.default_rng(1).integers(0, 4, 80)
    often = np.repeat(np.arange(80), weights)
    make = lambda: GaussianProcess(  # noqa: E731
        Gaussian(1.0), noise=0.1, bias=True, optimize=True, approximation=Nystrom(20), tol=1e-7
    )
    found = make().fit(X, y, sample_weight=weights)
    expected = make().fit(X[often], y[often])
    assert np.isclose(found.noise_, expected.noise_, rtol=1e-4)
    assert np.allclose(found.predict(X), expected.predict(X), atol=1e-4)


def test_evidence_with_landmarks_is_the_bound():
    X, y = waves(200)
    machine = GaussianProcess(Gaussian(1.0), noise=0.1, approximation=Nystrom(30))
    value, slopes = machine.log_marginal_likelihood(X, y, eval_gradient=True)
    exact = GaussianProcess(Gaussian(1.0), noise=0.1).log_marginal_likelihood(X, y)
    assert value < exact and set(slopes) == {"scale", "noise"}


def test_random_features_do_not_learn():
    X, y = waves(50)
    machine = GaussianProcess(Gaussian(1.0), optimize=True, approximation="random_features:20")
    with pytest.raises(ValueError, match=r"approximation=.*must be None or Nystrom\(m\)"):
        machine.fit(X, y)


def test_past_the_budget_landmarks_learn():
    X, y = waves(1500)
    with mercer.config(memory="40MB"), pytest.warns(ApproximationWarning, match="landmarks"):
        machine = GaussianProcess(Gaussian(1.0), noise=0.1, optimize=True, max_iter=15).fit(X, y)
    assert isinstance(machine.kernel_, ApproximateKernel)
    assert abs(machine.noise_ - 0.01) < 0.003


def test_files(tmp_path):
    X, y = waves(60)
    machine = GaussianProcess(
        Gaussian(1.0), noise=0.1, optimize=True, approximation=Nystrom(20), max_iter=50
    ).fit(X, y)
    mercer.save(machine, tmp_path / "process.mercer")
    found = mercer.load(tmp_path / "process.mercer")
    assert np.array_equal(found.predict(X), machine.predict(X))
    assert verify(found, X, y).ok


@pytest.mark.parametrize("unit", [1e139, 1e-139])
def test_units_of_the_targets_change_nothing_that_is_learnt(unit):
    """The square of a noise is no number of float64 there."""
    X, y = waves(60)
    make = lambda: GaussianProcess(  # noqa: E731
        1.0 * Gaussian(1.0), noise=0.1, optimize=True, approximation=Nystrom(20)
    )
    found, expected = make().fit(X, unit * y), make().fit(X, y)
    assert found.solution_.status.ok and found.certificate_.ok, found.certificate_
    assert np.isclose(found.noise_, unit * expected.noise_ * unit, rtol=1e-6)
    assert np.allclose(found.predict(X) / unit, expected.predict(X), atol=1e-6)


@pytest.mark.parametrize("unit", [1e160, 1e-160, 1e300])
@pytest.mark.parametrize("approximation", [None, Nystrom(20)])
def test_units_of_the_rows_change_nothing_that_is_learnt(unit, approximation):
    """Squares of scales are no numbers of float64 there."""
    X, y = waves(60)
    make = lambda scale: GaussianProcess(  # noqa: E731
        1.0 * Gaussian([scale, scale]), noise=0.1, optimize=True, approximation=approximation
    )
    found, expected = make(unit).fit(unit * X, y), make(1.0).fit(X, y)
    assert found.solution_.status.ok and found.certificate_.ok, found.certificate_
    assert np.isclose(found.noise_, expected.noise_, rtol=1e-4)
    assert np.allclose(found.predict(unit * X), expected.predict(X), atol=1e-4)


def test_a_kernel_that_is_zero_on_the_rows_leaves_the_noise():
    y = np.random.default_rng(0).normal(size=30)
    machine = GaussianProcess("1 * linear", optimize=True, approximation=Nystrom(5))
    machine.fit(np.zeros((30, 2)), y)
    assert machine.solution_.status.ok and machine.certificate_.ok
    assert np.isclose(machine.noise_, np.mean(y**2), rtol=1e-4)


def test_a_kernel_that_overflows_on_the_rows_is_refused_as_without_landmarks():
    X, y = waves(60)
    for approximation in (None, Nystrom(20)):
        machine = GaussianProcess("1 * polynomial(5)", optimize=True, approximation=approximation)
        with pytest.raises(SolverError, match="positive definite"):
            machine.fit(1e80 * X, y)


def test_threads_change_no_bit_where_memory_is_short():
    X, y = waves(5000)
    answers = []
    for threads in (1, 3):
        with mercer.config(memory="20MB", threads=threads):
            machine = GaussianProcess(Gaussian(1.0), approximation=Nystrom(50))
            answers.append(machine.log_marginal_likelihood(X, y, eval_gradient=True))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("approximation", [None, Nystrom(20)])
def test_a_posterior_of_other_parameters_than_were_learnt_is_not_certified(
    approximation, monkeypatch
):
    X, y = waves(60)
    held = []
    judge = regressor.certify
    monkeypatch.setattr(regressor, "certify", lambda *given: held.append(given) or judge(*given))
    machine = GaussianProcess(
        1.0 * Gaussian(1.0), noise=0.1, optimize=True, approximation=approximation
    )
    assert machine.fit(X, y).certificate_.ok
    problem, value = held[0]
    noisier = replace(problem, noise=2.0 * problem.noise)
    other = replace(solve(noisier).value, logs=value.logs)
    assert not certify(noisier, other).ok  # it is the posterior of that noise, which is not learnt
    for logs in (None, value.logs[:-1], np.full_like(value.logs, np.nan), value.logs + 0.05):
        assert not certify(problem, replace(value, logs=logs)).ok
