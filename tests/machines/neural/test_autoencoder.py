"""Autoencoders where torch is not: refusals, certificates, answers from stored weights."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from files.golden import path_of, told
from scipy.linalg import subspace_angles

import mercer
from mercer import Autoencoder, ParameterError, ProbabilisticPCA, Status, VariationalAutoencoder
from mercer.certificates import certify
from mercer.machines.neural import autoencoder as network_machine
from mercer.machines.neural.problem import (
    Autoencoding,
    NetworkLayout,
    NetworkParameters,
    VariationalAutoencoding,
)
from mercer.solvers import NetworkLBFGS, Solution, SolverError, solve

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 5)) + 0.3 * rng.standard_normal(
    (200, 5)
)
X -= X.mean(axis=0)
X /= np.sqrt(np.mean(X**2))
ONES, NONE = np.ones(len(X)), (np.empty((0, 5)), np.empty(0))
BOTH = pytest.mark.parametrize("kind", [Autoencoder, VariationalAutoencoder])


def flat(*parts):
    return np.concatenate([np.ravel(part) for part in parts])


def principal(rows, q=2):
    """Return the parameters of the linear autoencoder that is principal components."""
    U = np.linalg.svd(rows, full_matrices=False)[2][:q].T
    d = rows.shape[1]
    return flat(U, np.zeros(q), U.T, np.zeros(d))


def probabilistic(rows, q=2):
    """Return the parameters of the linear variational autoencoder that is probabilistic PCA."""
    model = ProbabilisticPCA(q).fit(rows)
    W, v = model.loadings_, model.noise_variance_
    M = np.diag(W.T @ W) + v  # diagonal: columns of W are orthogonal
    encoder = np.hstack([W / M, np.zeros(W.shape)])
    noise = np.log(v - 1e-6)
    return model, flat(encoder, np.zeros(q), np.log(v / M), W.T, np.zeros(len(W)), noise)


@BOTH
def test_without_torch_a_fit_says_how_to_get_it(kind, monkeypatch):
    monkeypatch.setattr(network_machine, "has_torch", lambda: False)
    machine = kind()
    before = dict(vars(machine))
    with pytest.raises(ImportError, match=rf'{kind.__name__}: .*pip install "mercer\[torch\]"'):
        machine.fit(X)
    assert vars(machine) == before
    with pytest.raises(ParameterError, match="n_components=0 must"):  # what is wrong comes first
        kind(0).fit(X)


def test_without_torch_the_solver_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("mercer.machines.neural.training.has_torch", lambda: False)
    problem = Autoencoding(X, ONES, NetworkLayout((5, 2), (2, 5), "identity"), 0.0, *NONE)
    with pytest.raises(SolverError, match=r"pip install"):
        solve(problem)
    assert isinstance(NetworkLBFGS().refuses(3), str)


@BOTH
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"encoder_sizes": 5}, r"encoder_sizes=5 must be numbers of units, such as \(64, 32\)"),
        ({"encoder_sizes": (5, 0)}, "encoder_sizes"),
        ({"decoder_sizes": (2.5,)}, "decoder_sizes"),
        ({"activation": "sine"}, "activation='sine' must be 'identity' or"),
        ({"penalty": -1.0}, "penalty"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"early_stopping": 1}, "early_stopping"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"patience": 0}, "patience"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"random_state": -1}, "random_state"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_wrong_parameters_are_refused(kind, parameters, said):
    with pytest.raises(ParameterError, match=said):
        kind(**parameters).fit(X)


# --- certificates ---------------------------------------------------------------------------------


def test_principal_components_are_certified_as_the_best_linear_autoencoder():
    problem = Autoencoding(X, ONES, NetworkLayout((5, 2), (2, 5), "tanh"), 0.0, *NONE)
    found = certify(problem, NetworkParameters(principal(X)), 1e-10)
    assert found.ok and abs(found.quantities.shortfall) < 1e-12
    values = np.linalg.svd(X, compute_uv=False) ** 2
    np.testing.assert_allclose(found.quantities.loss, values[2:].sum() / values.sum())
    assert "above that of principal components" in found.statement


def test_a_saddle_is_not_certified():
    # second and third components: no slope, but not the best
    U = np.linalg.svd(X, full_matrices=False)[2][1:3].T
    problem = Autoencoding(X, ONES, NetworkLayout((5, 2), (2, 5), "identity"), 0.0, *NONE)
    saddle = NetworkParameters(flat(U, np.zeros(2), U.T, np.zeros(5)))
    found = certify(problem, saddle, 1e-6)
    assert found.quantities.gradient < 1e-12 and not found.ok
    moved = NetworkParameters(principal(X) * 1.001)
    assert not certify(problem, moved, 1e-6).ok


def test_a_nonlinear_network_is_at_rest_and_no_more_is_said():
    # a network of zeros gives the mean, where nothing moves it
    problem = Autoencoding(X, ONES, NetworkLayout((5, 3, 2), (2, 3, 5), "tanh"), 0.0, *NONE)
    found = certify(problem, NetworkParameters(np.zeros(problem.size)))
    assert found.ok and np.isnan(found.quantities.shortfall)
    assert "a stationary point, not a minimum" in found.statement
    np.testing.assert_allclose(found.quantities.loss, 1.0)
    assert found.quantities.linear_loss < 0.2  # principal components do better, and it says so


@pytest.mark.parametrize("wrong", [np.zeros(3), np.full(27, np.nan)])
def test_weights_that_are_none_are_not_certified(wrong):
    problem = Autoencoding(X, ONES, NetworkLayout((5, 2), (2, 5), "tanh"), 0.0, *NONE)
    assert not certify(problem, NetworkParameters(wrong)).ok
    layout = NetworkLayout((5, 4), (2, 5), "tanh")
    bound = VariationalAutoencoding(X, ONES, layout, "gaussian", 0.0, 1, 0, *NONE)
    assert not certify(bound, NetworkParameters(wrong)).ok


def test_probabilistic_components_are_the_best_linear_variational_autoencoder():
    model, at = probabilistic(X)
    layout = NetworkLayout((5, 4), (2, 5), "tanh")
    held = X[:50], ONES[:50]
    problem = VariationalAutoencoding(X, ONES, layout, "gaussian", 0.0, 400, 0, *held)
    found = certify(problem, NetworkParameters(at), 0.02)
    assert found.ok, found  # the slope is that of 400 draws
    assert abs(found.quantities.fresh_bound - model.score(X)) < 0.02
    assert abs(found.quantities.held_out_bound - model.score(X[:50])) < 0.05
    assert 0 < found.quantities.held_out_error < 0.5
    spoilt = at.copy()
    spoilt[-1] += 0.5
    assert not certify(problem, NetworkParameters(spoilt), 0.02).ok


# --- machines around weights that were found without torch ----------------------------------------


def fitted(kind, rows, monkeypatch, q=2, **parameters):
    """Fit with weights that are known in closed form in the place of training."""

    def known(problem, solver, **options):
        at = principal(problem.X, q) if kind is Autoencoder else probabilistic(problem.X, q)[1]
        return Solution(NetworkParameters(at), Status.STOPPED, 1, 0.0, type(solver).__name__)

    monkeypatch.setattr(network_machine, "has_torch", lambda: True)
    monkeypatch.setattr(network_machine, "solve", known)
    return kind(q, encoder_sizes=(), **parameters).fit(rows)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-150, 0.0), (1e6, 1e8), (3.0, -7.0)])
def test_units_come_and_go(scale, shift, monkeypatch):
    rows = X * scale + shift
    machine = fitted(Autoencoder, rows, monkeypatch)
    assert machine.certificate_.ok
    U = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:2].T
    assert subspace_angles(machine.decoder_.weights[-1].T, U).max() < 1e-6
    wanted = (rows - rows.mean(axis=0)) @ U @ U.T + rows.mean(axis=0)
    np.testing.assert_allclose(
        machine.reconstruct(rows), wanted, atol=1e-7 * scale + 1e-15 * abs(shift)
    )
    np.testing.assert_allclose(
        machine.decode(machine.transform(rows)), machine.reconstruct(rows), rtol=1e-12
    )


def test_constant_rows_are_their_mean(monkeypatch):
    machine = fitted(Autoencoder, np.full((6, 3), 0.5), monkeypatch, q=1)
    np.testing.assert_allclose(machine.reconstruct(np.full((2, 3), 0.5)), 0.5)


def test_densities_are_those_of_probabilistic_components(monkeypatch):
    rows = 3.0 * X + 2.0
    machine, model = (
        fitted(VariationalAutoencoder, rows, monkeypatch),
        ProbabilisticPCA(2).fit(rows),
    )
    # the encoder is the posterior, so that every draw has the same weight
    np.testing.assert_allclose(machine.score_samples(rows, draws=2), model.score_samples(rows))
    np.testing.assert_allclose(machine.score(rows), model.score(rows))
    np.testing.assert_allclose(machine.elbo(rows, 3000).mean(), model.score(rows), atol=0.05)
    np.testing.assert_allclose(machine.noise_variance_, model.noise_variance_)
    np.testing.assert_allclose(machine.transform(rows), model.transform(rows), atol=1e-10)
    ours, theirs = machine.posterior(rows[:3]), model.posterior(rows[:3])
    np.testing.assert_allclose(ours.covariance, theirs.covariance, atol=1e-12)


def test_samples_have_the_moments_of_the_rows(monkeypatch):
    rows = X + 1.0
    for kind in (Autoencoder, VariationalAutoencoder):
        machine = fitted(kind, rows, monkeypatch)
        drawn = machine.sample(20000, random_state=0)
        np.testing.assert_allclose(drawn.mean(axis=0), 1.0, atol=0.05)
        np.testing.assert_array_equal(machine.sample(3, 7), machine.sample(3, 7))
        assert machine.sample(0).shape == (0, 5)
        with pytest.raises(ParameterError, match="n_samples"):
            machine.sample(-1)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(rows.T, bias=True), atol=0.1)
    exact = machine.sample(5, 1, noise=False)
    assert np.linalg.matrix_rank(exact - exact.mean(axis=0), tol=1e-8) <= 2


def test_weights_are_repetitions_and_rows_may_be_sparse(monkeypatch):
    from scipy import sparse

    counts = rng.integers(0, 3, len(X))
    one = fitted(Autoencoder, X, monkeypatch)
    again = fitted(Autoencoder, sparse.csr_array(X), monkeypatch)
    np.testing.assert_allclose(again.transform(X), one.transform(sparse.csr_array(X)))
    machine = Autoencoder(2, encoder_sizes=()).fit(X, sample_weight=counts)
    twin = Autoencoder(2, encoder_sizes=()).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_array_equal(machine.mean_, twin.mean_)
    assert machine.unit_ == twin.unit_


def test_early_stopping_needs_rows_to_hold_out(monkeypatch):
    with pytest.raises(ParameterError, match="early_stopping=True must be False: there are 1"):
        fitted(Autoencoder, np.ones((4, 3)), monkeypatch, early_stopping=True)
    machine = fitted(Autoencoder, X, monkeypatch, early_stopping=True, validation_fraction=0.2)
    assert machine.certificate_.quantities.held_out_loss > 0


def test_pixels_lie_between_zero_and_one(monkeypatch):
    with pytest.raises(ParameterError, match="rows lie between 0 and 1: X has entries from"):
        fitted(VariationalAutoencoder, X, monkeypatch, likelihood="bernoulli")


def test_memory_is_asked_for_first(monkeypatch):
    with (
        mercer.config(memory="10 kB"),
        pytest.raises(mercer.MemoryBudgetError, match="batch_size"),
    ):
        fitted(Autoencoder, X, monkeypatch)


@BOTH
def test_copies_and_files_answer_alike(kind, monkeypatch, tmp_path):
    machine = fitted(kind, X, monkeypatch)
    mercer.save(machine, tmp_path / "model.mercer")
    for twin in (pickle.loads(pickle.dumps(machine)), mercer.load(tmp_path / "model.mercer")):
        np.testing.assert_array_equal(twin.transform(X), machine.transform(X))
        np.testing.assert_array_equal(twin.sample(4, 0), machine.sample(4, 0))
        assert repr(twin.certificate_) == repr(machine.certificate_)


@BOTH
def test_files_with_other_layers_are_refused(kind, monkeypatch, tmp_path):
    machine = fitted(kind, X, monkeypatch)
    machine._layout = NetworkLayout((5, 3, 2), (2, 5), "identity")
    with pytest.raises(mercer.ModelFormatError, match="layers"):  # saving reads what it wrote
        mercer.save(machine, tmp_path / "model.mercer")


@pytest.mark.parametrize("name", ["Autoencoder", "VariationalAutoencoder"])
def test_files_written_with_torch_are_read_without(name):
    machine = mercer.load(path_of(name, "mercer"))
    rows = np.load(path_of(name, "npz"))["rows"]
    kept = np.load(path_of(name, "npz"))
    found = told(machine, rows)
    assert "transform" in found
    for question in found:
        np.testing.assert_allclose(found[question], kept[question], rtol=1e-12, err_msg=question)
    assert machine.certificate_.ok and Path(path_of(name, "mercer")).stat().st_size < 50_000


def test_unfitted_machines_say_so():
    with pytest.raises(AttributeError, match="before it is fitted"):
        _ = Autoencoder().encoder_
    from sklearn.exceptions import NotFittedError

    for call in (Autoencoder().sample, VariationalAutoencoder().sample):
        with pytest.raises(NotFittedError):
            call(1)
