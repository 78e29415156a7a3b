"""The evidence lower bound of a variational autoencoder (Kingma and Welling, 2014).

z ~ N(0, I), x given z from a decoder; the encoder gives m(x) and s(x) of q(z | x) = N(m, diag s^2):

    log p(x) >= E_q log p(x | z) - KL(q | N(0, I)),   KL = 1/2 sum (m^2 + s^2 - log s^2 - 1).

The expectation is a mean over draws z = m + s e. With draws e that are fixed for a fit, the bound
is a function of the parameters, with derivatives that anybody can compute again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np
from scipy.special import expit, logsumexp

from mercer.array_types import Array
from mercer.problems.neural.network import NetworkLayout, blocks

NOISE_FLOOR = 1e-6  # of the mean variance of a column: where the decoder is exact, p(x | z) is not


@dataclass(frozen=True, eq=False)
class VariationalAutoencoding:
    """The networks of the largest evidence lower bound.

    Attributes
    ----------
    X : (n, d) array
        Rows: of mean zero and mean variance one, or between 0 and 1 for Bernoulli pixels.
    weights : (n,) array
        How often each row counts.
    layout : NetworkLayout
        The layers; the encoder gives means, then log-variances.
    likelihood : str
        "gaussian", with one noise variance for all columns, the last parameter; or "bernoulli".
    penalty : float
        Of half the sum of the squared weights.
    draws : int
        Draws of e for each row.
    seed : int
        Of the draws.
    held_out, held_out_weights : arrays
        Rows that are not learnt from, and how often each counts; may be none.
    """

    X: Array
    weights: Array
    layout: NetworkLayout
    likelihood: str
    penalty: float
    draws: int
    seed: int
    held_out: Array
    held_out_weights: Array

    @property
    def size(self) -> int:
        """The number of parameters: those of the layers, and the logarithm of the noise."""
        return self.layout.size + 1

    def start(self, rng: np.random.Generator) -> Array:
        """Draw parameters to start from; the logarithm of the noise variance is 0."""
        return np.append(self.layout.start(rng), 0.0)

    def penalized(self) -> Array:
        """Return 1 for parameters that the penalty counts, 0 for others."""
        return np.append(self.layout.penalized(), 0.0)

    def noise_variance(self, parameters: Array) -> float:
        """Return the variance of the noise, in the units of the rows."""
        return float(NOISE_FLOOR + np.exp(parameters[-1]))

    def noise(self, rows: int, stream: int = 0) -> Array:
        """Return the draws e, (draws, rows, q): other streams are other draws."""
        rng = np.random.default_rng([self.seed, stream])
        return rng.standard_normal((self.draws, rows, self.layout.code))

    def objective(self, parameters: Array) -> tuple[float, Array]:
        """Return minus the bound for each row and column, with its derivatives, in float64."""
        counted = self.penalized() * parameters
        value, slope = 0.5 * self.penalty * float(counted @ counted), self.penalty * counted
        share = self.weights / (self.weights.sum() * self.X.shape[1])
        noise = self.noise(len(self.X))
        for block in blocks(len(self.X), self.layout, copies=self.draws):
            drawn = noise[:, block]
            added, slopes = self._block(parameters, self.X[block], share[block], drawn)
            value, slope = value + added, slope + slopes
        return value, slope

    def _block(
        self, parameters: Array, X: Array, share: Array, noise: Array
    ) -> tuple[float, Array]:
        f, g = self.layout.networks(parameters)
        q = self.layout.code
        codes = f.values(X)
        m, r = codes[-1][:, :q], codes[-1][:, q:]
        s = np.exp(0.5 * r)
        back = g.values((m + s * noise).reshape(-1, q))
        each = np.tile(share / self.draws, self.draws)
        shown = np.tile(X, (self.draws, 1))
        logs, slopes, by_noise = likelihoods(self, parameters, shown, back[-1])
        by_decoder, by_z = g.derivatives(back, -each[:, None] * slopes)
        by_z = by_z.reshape(noise.shape)
        by_m = by_z.sum(axis=0) + share[:, None] * m
        by_r = 0.5 * s * (by_z * noise).sum(axis=0) + 0.5 * share[:, None] * (s * s - 1.0)
        by_encoder, _ = f.derivatives(codes, np.hstack([by_m, by_r]))
        value = float(share @ divergence(m, r) - each @ logs)
        return value, np.concatenate([by_encoder, by_decoder, [-each @ by_noise]])

    def held_out_loss(self, parameters: Array) -> float:
        """Return minus the bound for each row held out and column; NaN where there are none."""
        if not len(self.held_out):
            return float("nan")
        bounds = row_bounds(self, parameters, self.held_out, self.noise(len(self.held_out), 1))
        mean = float(np.average(bounds, weights=self.held_out_weights))
        return -mean / int(self.X.shape[1])


def divergence(m: Array, r: Array) -> Array:
    """Return KL(N(m, diag e^r) | N(0, I)) for each row."""
    return np.asarray(0.5 * np.sum(m * m + np.exp(r) - r - 1.0, axis=1))


def likelihoods(
    problem: VariationalAutoencoding, parameters: Array, X: Array, decoded: Array
) -> tuple[Array, Array, Array]:
    """Return log p(x | z) for each row, its derivatives by what was decoded and by log v."""
    if problem.likelihood == "bernoulli":
        logs = np.sum(X * decoded - np.logaddexp(0.0, decoded), axis=1)  # of log-odds
        return logs, X - expit(decoded), np.zeros(len(X))
    v = problem.noise_variance(parameters)
    wrong = X - decoded
    squares, d = np.sum(wrong**2, axis=1), X.shape[1]
    logs = -0.5 * (squares / v + d * log(2.0 * pi * v))
    by_v = 0.5 * (squares / v - d) / v
    return logs, wrong / v, by_v * (v - NOISE_FLOOR)


def row_bounds(
    problem: VariationalAutoencoding, parameters: Array, X: Array, noise: Array
) -> Array:
    """Return the evidence lower bound of each row, a mean over draws."""
    logs, kl = log_likelihoods(problem, parameters, X, noise)
    return np.asarray(logs.mean(axis=0) - kl)


def log_likelihoods(
    problem: VariationalAutoencoding, parameters: Array, X: Array, noise: Array
) -> tuple[Array, Array]:
    """Return log p(x | z) for each draw and row, and the divergence of each row."""
    f, g = problem.layout.networks(parameters)
    q = problem.layout.code
    codes = f(X)
    m, r = codes[:, :q], codes[:, q:]
    logs = np.empty(noise.shape[:2])
    for draw, e in enumerate(noise):
        decoded = g(m + np.exp(0.5 * r) * e)
        logs[draw] = likelihoods(problem, parameters, X, decoded)[0]
    return logs, divergence(m, r)


def importance_bounds(
    problem: VariationalAutoencoding, parameters: Array, X: Array, noise: Array
) -> Array:
    """Return log of the mean over draws of p(x, z) / q(z | x): it rises with the draws."""
    f, _ = problem.layout.networks(parameters)
    q = problem.layout.code
    codes = f(X)
    m, r = codes[:, :q], codes[:, q:]
    logs, _ = log_likelihoods(problem, parameters, X, noise)
    z = m + np.exp(0.5 * r) * noise
    ratio = 0.5 * np.sum(noise**2 + r - z**2, axis=2)  # log N(z; 0, I) - log q(z | x)
    return np.asarray(logsumexp(logs + ratio, axis=0) - log(len(noise)))
