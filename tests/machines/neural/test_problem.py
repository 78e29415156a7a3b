"""Networks in NumPy: derivatives against differences, and layouts of parameters."""

import numpy as np
import pytest

from mercer.machines.neural.problem import (
    ACTIVATIONS,
    Autoencoding,
    NetworkLayout,
    VariationalAutoencoding,
    blocks,
    importance_bounds,
    log_likelihoods,
    row_bounds,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((7, 4))
S = np.array([1.0, 2.0, 1.0, 0.5, 3.0, 1.0, 1.0])
NONE = np.empty((0, 4)), np.empty(0)


def differences(function, at, step=1e-6):
    found = np.empty(len(at))
    for i in range(len(at)):
        e = np.zeros(len(at))
        e[i] = step
        found[i] = (function(at + e) - function(at - e)) / (2 * step)
    return found


def autoencoding(activation="tanh", penalty=0.3, held=NONE):
    return Autoencoding(X, S, NetworkLayout((4, 3, 2), (2, 5, 4), activation), penalty, *held)


def variational(likelihood="gaussian", activation="tanh", rows=X, draws=3, held=NONE):
    layout = NetworkLayout((4, 3, 4), (2, 5, 4), activation)
    return VariationalAutoencoding(rows, S, layout, likelihood, 0.2, draws, 1, *held)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_derivatives_of_the_reconstruction_error(activation):
    problem = autoencoding(activation)
    at = problem.start(np.random.default_rng(1)) + 0.1 * rng.standard_normal(problem.size)
    value, slope = problem.objective(at)
    f, g = problem.layout.networks(at)
    by_hand = np.average(np.mean((X - g(f(X))) ** 2, axis=1), weights=S)
    weights = np.concatenate([W.ravel() for net in (f, g) for W in net.weights])
    np.testing.assert_allclose(value, by_hand + 0.15 * weights @ weights)
    np.testing.assert_allclose(slope, differences(lambda w: problem.objective(w)[0], at), atol=1e-8)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
def test_derivatives_of_the_bound(likelihood, activation):
    rows = X if likelihood == "gaussian" else rng.random(X.shape)
    problem = variational(likelihood, activation, rows)
    at = problem.start(np.random.default_rng(1)) + 0.1 * rng.standard_normal(problem.size)
    value, slope = problem.objective(at)
    weights = problem.penalized() * at
    bounds = row_bounds(problem, at, rows, problem.noise(len(rows)))
    np.testing.assert_allclose(value, -np.average(bounds, weights=S) / 4 + 0.1 * weights @ weights)
    np.testing.assert_allclose(slope, differences(lambda w: problem.objective(w)[0], at), atol=1e-8)


def test_the_bound_against_its_definition():
    problem = variational()
    at = problem.start(np.random.default_rng(1))
    noise = rng.standard_normal((2, len(X), 2))
    f, g = problem.layout.networks(at)
    v = problem.noise_variance(at)
    logs, kl = log_likelihoods(problem, at, X, noise)
    codes = f(X)
    for i in range(len(X)):
        m, s = codes[i, :2], np.exp(0.5 * codes[i, 2:])
        np.testing.assert_allclose(kl[i], 0.5 * np.sum(m**2 + s**2 - 2 * np.log(s) - 1))
        for draw in range(2):
            wrong = X[i] - g((m + s * noise[draw, i])[None])[0]
            density = -0.5 * (wrong @ wrong / v + 4 * np.log(2 * np.pi * v))
            np.testing.assert_allclose(logs[draw, i], density)


def test_one_draw_of_importance_weights_is_the_bound_in_the_mean():
    problem = variational()
    at = problem.start(np.random.default_rng(1))
    noise = np.random.default_rng(2).standard_normal((4000, len(X), 2))
    single = [importance_bounds(problem, at, X, noise[i : i + 1]) for i in range(1000)]
    np.testing.assert_allclose(np.mean(single, axis=0), row_bounds(problem, at, X, noise), atol=0.2)
    many = importance_bounds(problem, at, X, noise)
    assert (many > row_bounds(problem, at, X, noise)).all()


def test_blocks_do_not_change_sums(monkeypatch):
    whole = autoencoding(), variational()
    at = [problem.start(np.random.default_rng(1)) for problem in whole]
    before = [p.objective(w) for p, w in zip(whole, at, strict=True)]
    monkeypatch.setattr("mercer.machines.neural.problem._ROWS", 2)
    assert len(list(blocks(7, whole[0].layout))) == 4
    for problem, w, (value, slope) in zip(whole, at, before, strict=True):
        again = problem.objective(w)
        np.testing.assert_allclose(again[0], value)
        np.testing.assert_allclose(again[1], slope, atol=1e-15)


def test_rows_held_out_are_judged_alone():
    held = X[:3], S[:3]
    problem = autoencoding(penalty=0.0, held=held)
    at = problem.start(np.random.default_rng(1))
    f, g = problem.layout.networks(at)
    wrong = np.mean((g(f(X[:3])) - X[:3]) ** 2, axis=1)
    np.testing.assert_allclose(problem.held_out_loss(at), np.average(wrong, weights=S[:3]))
    assert np.isnan(autoencoding().held_out_loss(at))
