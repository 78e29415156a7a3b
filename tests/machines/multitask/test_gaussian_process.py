"""Several tasks: Kronecker equals dense, nothing shared, all shared, and what is learnt."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import GaussianProcess, KernelRidge, MultiTaskGaussianProcess, Status, certify
from mercer.files.verification import verify
from mercer.kernels import Coregionalized, Gaussian, Linear, parse
from mercer.machines.multitask.gaussian_process import learnt_names, task_problem
from mercer.machines.multitask.posterior import task_evidence
from mercer.problems import TaskRegression
from mercer.solvers import KroneckerPosterior, SolverError, TaskCholesky, Watch, solve

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
W = rng.normal(size=(3, 3))
B = W @ W.T + 0.1 * np.eye(3)
Y = np.sin(X @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(30, 3))
Z = rng.normal(size=(6, 2))
GAPS = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
WEIGHTS = rng.integers(0, 3, 30).astype(float)
KERNEL = Gaussian(1.1)


def by_readings(targets, weights, noise=0.2):
    """Return the process of single readings, with the task for a column."""
    task, row = np.nonzero(~np.isnan(targets.T))
    kernel = Coregionalized(B).on([0]) * KERNEL.on([1, 2])
    machine = GaussianProcess(kernel, noise=noise)
    return machine.fit(np.column_stack([task, X[row]]), targets[row, task], weights[row])


@pytest.mark.parametrize("targets", [Y, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("weights", [np.ones(30), WEIGHTS], ids=["plain", "weighted"])
def test_structure_equals_single_readings(targets, weights):
    machine = MultiTaskGaussianProcess(KERNEL, task_covariance=B, noise=0.2)
    machine.fit(X, targets, weights)
    whole = not np.isnan(targets).any()
    assert machine.solution_.solver == ("KroneckerPosterior" if whole else "TaskCholesky")
    other = by_readings(targets, weights)
    mean, std = machine.predict(Z, return_std=True)
    for t in range(3):
        rows = np.column_stack([np.full(6, t), Z])
        for found, true in zip(
            (mean[:, t], std[:, t]), other.predict(rows, return_std=True), strict=True
        ):
            assert np.allclose(found, true, atol=1e-10)
    assert np.isclose(
        machine.log_marginal_likelihood_value_, other.log_marginal_likelihood_value_, rtol=1e-10
    )
    assert machine.certificate_.ok


def test_both_solvers_agree():
    gram = mercer.gram.make_gram(KERNEL, X, mercer.gram.Need.ROWS)
    problem = TaskRegression(gram, Y, B, 0.2, np.ones(30))
    fast = KroneckerPosterior().run(problem, Watch()).value
    slow = TaskCholesky().run(problem, Watch()).value
    assert np.allclose(fast.coef, slow.coef, atol=1e-10)
    assert np.isclose(fast.log_likelihood, slow.log_likelihood, rtol=1e-12)
    assert certify(problem, slow).ok
    with pytest.raises(SolverError, match="TaskCholesky"):
        solve(replace(problem, targets=GAPS), KroneckerPosterior())


def test_tasks_with_nothing_in_common_are_apart():
    machine = MultiTaskGaussianProcess(KERNEL, noise=0.2).fit(X, GAPS)
    for t in range(3):
        read = ~np.isnan(GAPS[:, t])
        one = GaussianProcess(KERNEL, noise=0.2).fit(X[read], GAPS[read, t])
        ridge = KernelRidge(0.2, KERNEL, bias=False).fit(X[read], GAPS[read, t])
        mean, std = machine.predict(Z, return_std=True)
        assert np.allclose(mean[:, t], ridge.predict(Z), atol=1e-10)
        assert np.allclose(std[:, t], one.predict(Z, return_std=True)[1], atol=1e-10)


def test_one_function_for_all_is_ridge_on_the_mean():
    ones = np.ones((3, 3))
    machine = MultiTaskGaussianProcess(KERNEL, task_covariance=ones, noise=0.2).fit(X, Y)
    ridge = KernelRidge(0.2 / 3, KERNEL, bias=False).fit(X, Y.mean(axis=1))
    found = machine.predict(Z)
    assert np.allclose(found, ridge.predict(Z)[:, None], atol=1e-10)


@pytest.mark.parametrize("targets", [Y, GAPS], ids=["whole", "gaps"])
def test_gradient(targets):
    machine = MultiTaskGaussianProcess(
        Gaussian([1.0, 2.0]) + 0.1, task_covariance=B, noise=0.2, optimize=True
    )
    learnt = learnt_names(machine, machine.kernel)
    problem = task_problem(machine, machine.kernel, (X, targets, 1 + WEIGHTS), B, None, learnt)
    place, step = problem.starts[0], 1e-5
    assert np.allclose(problem.tasks_at(place), B)
    _, gradient = task_evidence(problem, place)
    expected = [
        (task_evidence(problem, place + step * e)[0] - task_evidence(problem, place - step * e)[0])
        / (2 * step)
        for e in np.eye(len(place))
    ]
    assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def test_what_tasks_share_is_learnt():
    x = np.linspace(0, 6, 40)[:, None]
    truth = np.column_stack([np.sin(x[:, 0]), -2 * np.sin(x[:, 0])])
    readings = truth + 0.1 * np.random.default_rng(1).normal(size=truth.shape)
    readings[15:, 1] = np.nan
    machine = MultiTaskGaussianProcess(optimize=True, noise=0.1).fit(x, readings)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok
    assert "not proved" in machine.certificate_.statement
    learnt = machine.task_covariance_
    assert learnt[0, 1] / np.sqrt(learnt[0, 0] * learnt[1, 1]) < -0.95
    together = machine.predict(x)[15:, 1]
    alone = GaussianProcess("1 * gaussian", optimize=True, noise=0.1).fit(x[:15], readings[:15, 1])
    error, worse = (np.mean((p - truth[15:, 1]) ** 2) for p in (together, alone.predict(x[15:])))
    assert error < 0.05 * worse


def test_one_task_is_a_process():
    machine = MultiTaskGaussianProcess(KERNEL, noise=0.2).fit(X, Y[:, 0])
    other = GaussianProcess(KERNEL, noise=0.2).fit(X, Y[:, 0])
    for found, true in zip(
        machine.predict(Z, return_std=True, include_noise=True),
        other.predict(Z, return_std=True, include_noise=True),
        strict=True,
    ):
        assert found.shape == (6,)
        assert np.allclose(found, true, atol=1e-10)


def test_a_matrix_of_ones_own():
    machine = MultiTaskGaussianProcess("precomputed", task_covariance=B, noise=0.2)
    machine.fit(KERNEL(X), GAPS, WEIGHTS)
    other = MultiTaskGaussianProcess(KERNEL, task_covariance=B, noise=0.2).fit(X, GAPS, WEIGHTS)
    across = KERNEL(Z, X)
    with pytest.raises(ValueError, match="prior_var"):
        machine.predict(across, return_std=True)
    found = machine.predict(across, return_std=True, prior_var=KERNEL.diag(Z))
    assert np.allclose(found, other.predict(Z, return_std=True))


def test_certificate_sees_wrong_answers():
    for targets in (Y, GAPS):
        machine = MultiTaskGaussianProcess(KERNEL, task_covariance=B, noise=0.2).fit(X, targets)
        value = machine.solution_.value
        gram = mercer.gram.make_gram(KERNEL, X, mercer.gram.Need.ROWS)
        problem = TaskRegression(gram, targets, B, 0.2, np.ones(30))
        assert certify(problem, value).ok
        assert not certify(problem, replace(value, coef=value.coef * (1 + 1e-4))).ok
        spoilt = (
            replace(value, values=value.values * (1 + 1e-3))
            if value.factor is None
            else replace(value, factor=value.factor * (1 + 1e-3))
        )
        assert not certify(problem, spoilt).ok
        assert not certify(problem, replace(value, coef=value.coef + np.isnan(targets))).ok or (
            targets is Y
        )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.eye(2), "task_covariance=.* must be 3 by 3"),
        (np.triu(np.ones((3, 3))), "must be symmetric"),
        (np.eye(3) - 1, "positive semidefinite; its smallest eigenvalue is -2"),
        ("wide", "task_covariance='wide' must be 3 by 3"),
    ],
)
def test_refusals(given, said):
    with pytest.raises(ValueError, match=said):
        MultiTaskGaussianProcess(KERNEL, task_covariance=given).fit(X, Y)


def test_no_reading_and_wrong_names():
    with pytest.raises(ValueError, match="no reading"):
        MultiTaskGaussianProcess(KERNEL).fit(X, np.full((30, 2), np.nan))
    with pytest.raises(ValueError, match=r"what can be learnt of .* is scale, task_covariance"):
        MultiTaskGaussianProcess(KERNEL, optimize=["factor"]).fit(X, Y)


def test_a_file_holds_it_and_data_verify_it(tmp_path):
    machine = MultiTaskGaussianProcess(KERNEL, optimize=True, noise=0.1).fit(X, GAPS)
    mercer.save(machine, tmp_path / "tasks.mercer")
    again = mercer.load(tmp_path / "tasks.mercer")
    assert np.array_equal(again.predict(Z, True)[1], machine.predict(Z, True)[1])
    assert verify(again, X, GAPS).ok


# --- the kernel ----------------------------------------------------------------------------------


def test_kernel_of_tasks():
    tasks = np.array([[0.0], [2.0], [1.0], [2.0]])
    kernel = Coregionalized(B)
    assert np.allclose(kernel(tasks), B[np.ix_([0, 2, 1, 2], [0, 2, 1, 2])])
    assert np.allclose(kernel.diag(tasks), B.diagonal()[[0, 2, 1, 2]])
    assert kernel == Coregionalized(B.tolist())
    assert parse("coregionalized([[2, 1], [1, 2]])") == Coregionalized([[2, 1], [1, 2]])
    with pytest.raises(ValueError, match="an integer from 0 to 2"):
        kernel([[3.0]])
    with pytest.raises(ValueError, match="must be an integer"):
        kernel([[0.5]])
    with pytest.raises(ValueError, match=r"choose it with .on"):
        kernel([[0.0, 1.0]])
    with pytest.raises(ValueError, match="smallest eigenvalue"):
        Coregionalized([[1.0, 2.0], [2.0, 1.0]])


def test_linear_coregionalisation_is_a_sum():
    other = np.diag([1.0, 2.0, 0.5])
    kernel = Coregionalized(B).on([0]) * KERNEL.on([1, 2])
    kernel = kernel + Coregionalized(other).on([0]) * Linear().on([1, 2])
    rows = np.column_stack([np.tile([0, 1, 2], 10), X])
    task = rows[:, 0].astype(int)
    expected = B[np.ix_(task, task)] * KERNEL(X) + other[np.ix_(task, task)] * (X @ X.T)
    assert np.allclose(kernel(rows), expected)


def test_noise_over_a_weight_below_all_numbers_is_judged():
    """Variances are then bounded by nothing: the certificate says so, and does not fail."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(9, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = MultiTaskGaussianProcess(Gaussian(1.0), noise=1e-300, optimize=False)
        machine.fit(X, X[:, :1], sample_weight=1e150 * rng.random(9))
    assert not machine.certificate_.ok
