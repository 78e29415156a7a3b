"""Problems of autoencoders: loss, evidence lower bound, and networks with gradients in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, pi

import numpy as np
from scipy.special import expit, logsumexp

from mercer import deadline
from mercer.array_types import Array
from mercer.resources import rows_at_once

# --- autoencoder ---------------------------------------------------------------------------------
#
# Rows through a narrow layer and back: (1/n) sum_i |x_i - g(f(x_i))|^2, f and g networks.
#
# Rows are in units in which their mean is zero and the mean variance of a column is one; with the
# sum divided by the number of columns, the objective is the unexplained fraction of the variance.


@dataclass(frozen=True, eq=False)
class NetworkParameters:
    """A solution of an `Autoencoding`: all weights and biases, encoder first.

    Attributes
    ----------
    parameters : (p,) array
        W and b of each layer in turn.
    """

    parameters: Array


@dataclass(frozen=True, eq=False)
class Autoencoding:
    """The networks f and g that lose least of the rows.

    Attributes
    ----------
    X : (n, d) array
        Rows, in units in which they have mean zero and mean variance one.
    weights : (n,) array
        How often each row counts.
    layout : NetworkLayout
        The layers of f and g.
    penalty : float
        Of half the sum of the squared weights.
    held_out : (m, d) array
        Rows that are not learned from; may be none.
    held_out_weights : (m,) array
        How often each of them counts.
    """

    X: Array
    weights: Array
    layout: NetworkLayout
    penalty: float
    held_out: Array
    held_out_weights: Array

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.layout.size

    def start(self, rng: np.random.Generator) -> Array:
        """Draw parameters to start from."""
        return self.layout.start(rng)

    def penalized(self) -> Array:
        """Return 1 for parameters that the penalty counts, 0 for others."""
        return self.layout.penalized()

    def objective(self, parameters: Array) -> tuple[float, Array]:
        """Return the objective and its derivatives, in float64, block by block of rows."""
        f, g = self.layout.networks(parameters)
        counted = self.penalized() * parameters
        value, slope = 0.5 * self.penalty * float(counted @ counted), self.penalty * counted
        share = self.weights / (self.weights.sum() * self.X.shape[1])
        for block in blocks(len(self.X), self.layout):
            codes = f.values(self.X[block])
            back = g.values(codes[-1])
            wrong, counts = back[-1] - self.X[block], share[block, None]
            by_decoder, by_code = g.derivatives(back, 2.0 * counts * wrong)
            by_encoder, _ = f.derivatives(codes, by_code)
            value += float(np.sum(counts * wrong**2))
            slope += np.concatenate([by_encoder, by_decoder])
        return value, slope

    def held_out_loss(self, parameters: Array) -> float:
        """Return the loss of the held-out rows; NaN if there are none."""
        rows = self.held_out
        if not len(rows):
            return float("nan")
        f, g = self.layout.networks(parameters)
        wrong = np.concatenate(
            [
                np.mean((g(f(rows[block])) - rows[block]) ** 2, axis=1)
                for block in blocks(len(rows), self.layout)
            ]
        )
        return float(np.average(wrong, weights=self.held_out_weights))


# --- variational autoencoder ---------------------------------------------------------------------
#
# The evidence lower bound of a variational autoencoder (Kingma and Welling, 2014).
#
# z ~ N(0, I), x given z from a decoder; the encoder gives m(x) and s(x) of q(z | x) = N(m, diag
# s^2):
#
#     log p(x) >= E_q log p(x | z) - KL(q | N(0, I)),   KL = 1/2 sum (m^2 + s^2 - log s^2 - 1).
#
# The expectation is a mean over draws z = m + s e. With draws e that are fixed for a fit, the
# bound is a deterministic function of the parameters.

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
        Rows that are not learned from, and how often each counts; may be none.
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
        """Return minus the bound for each held-out row and column; NaN if there are none."""
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
    """Return log p(x | z) for each row, its derivatives by the decoder's output and by log v."""
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


# --- network -------------------------------------------------------------------------------------
#
# A network of layers in NumPy: h_0 = x, h_l = a(h_(l-1) W_l + b_l), the last layer without a.
#
# Values and derivatives in float64, from weights alone: fitted estimators and certificates use
# these, and need no library for training.

_ROWS = 4096  # of a block: more are not quicker


@dataclass(frozen=True)
class Activation:
    """A function of one number that stands between two layers.

    Attributes
    ----------
    value : callable
        The function, of an array.
    slope : callable
        Its derivative, from its *value*.
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


ACTIVATIONS = {
    "identity": Activation(lambda x: x, np.ones_like),
    "logistic": Activation(expit, lambda y: y * (1.0 - y)),
    "relu": Activation(lambda x: np.maximum(x, 0.0), lambda y: (y > 0).astype(np.float64)),
    "tanh": Activation(np.tanh, lambda y: 1.0 - y * y),
}


@dataclass(frozen=True, eq=False)
class Network:
    """Layers with their weights.

    Attributes
    ----------
    weights : tuple of (m, k) arrays
        W of each layer.
    biases : tuple of (k,) arrays
        b of each layer.
    activation : str
        Between layers: a name of `ACTIVATIONS`.

    Examples
    --------
    >>> import numpy as np
    >>> network = Network((np.eye(2), np.ones((2, 1))), (np.zeros(2), np.zeros(1)), "relu")
    >>> network(np.array([[1.0, -3.0]]))
    array([[1.]])
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str

    def __call__(self, X: Array) -> Array:
        """Return the output of the last layer."""
        return self.values(X)[-1]

    def values(self, X: Array) -> list[Array]:
        """Return the rows, and what each layer makes of them."""
        held, rule = [X], ACTIVATIONS[self.activation]
        for layer, (W, b) in enumerate(zip(self.weights, self.biases, strict=True), start=1):
            sums = held[-1] @ W + b
            held.append(sums if layer == len(self.weights) else rule.value(sums))
        return held

    def derivatives(self, values: list[Array], slopes: Array) -> tuple[Array, Array]:
        """Return derivatives by all parameters, in their order, and by the rows.

        Parameters
        ----------
        values : list of arrays
            The result of `values`.
        slopes : (n, k) array
            Derivatives of a function by the output of the last layer.
        """
        found: list[Array] = []
        rule = ACTIVATIONS[self.activation]
        for layer in reversed(range(len(self.weights))):
            found[:0] = [(values[layer].T @ slopes).ravel(), slopes.sum(axis=0)]
            slopes = slopes @ self.weights[layer].T
            if layer > 0:
                slopes = slopes * rule.slope(values[layer])
        return np.concatenate(found), slopes


# --- parameters as one vector --------------------------------------------------------------------


def parameter_count(sizes: Sequence[int]) -> int:
    """Count the parameters of layers between so many units.

    Examples
    --------
    >>> parameter_count([3, 2])
    8
    """
    return sum((m + 1) * k for m, k in pairwise(sizes))


def network_of(parameters: Array, sizes: Sequence[int], activation: str) -> Network:
    """Return the network whose parameters, W and b of each layer in turn, are a vector."""
    weights, biases, at = [], [], 0
    for m, k in pairwise(sizes):
        weights.append(parameters[at : at + m * k].reshape(m, k))
        biases.append(parameters[at + m * k : at + (m + 1) * k])
        at += (m + 1) * k
    return Network(tuple(weights), tuple(biases), activation)


def first_parameters(sizes: Sequence[int], rng: np.random.Generator) -> Array:
    """Draw a start: W uniform within sqrt(6 / (inputs + outputs)) of zero (Glorot), b zero."""
    parts = []
    for m, k in pairwise(sizes):
        bound = np.sqrt(6.0 / (m + k))
        parts += [rng.uniform(-bound, bound, m * k), np.zeros(k)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class NetworkLayout:
    """The shape of an autoencoder: units of its layers, and what stands between them.

    Attributes
    ----------
    encoder, decoder : tuple of int
        Units of the layers: (d, ..., q) and (q, ..., d); an encoder that gives means and
        log-variances ends with 2 q.
    activation : str
        Between layers: a name of `ACTIVATIONS`.
    """

    encoder: tuple[int, ...]
    decoder: tuple[int, ...]
    activation: str

    @property
    def size(self) -> int:
        """The number of weights and biases."""
        return parameter_count(self.encoder) + parameter_count(self.decoder)

    @property
    def code(self) -> int:
        """Numbers of a code."""
        return self.decoder[0]

    @property
    def narrowest(self) -> int:
        """The fewest units that every row has to pass through."""
        return min(*self.encoder, *self.decoder)

    @property
    def is_linear(self) -> bool:
        """Whether encoder and decoder are affine."""
        return self.activation == "identity" or len(self.encoder) == len(self.decoder) == 2

    def start(self, rng: np.random.Generator) -> Array:
        """Draw parameters to start from, the encoder's first."""
        return np.concatenate([first_parameters(s, rng) for s in (self.encoder, self.decoder)])

    def networks(self, parameters: Array) -> tuple[Network, Network]:
        """Return encoder and decoder with these parameters; more at the end are left alone."""
        cut = parameter_count(self.encoder)
        f = network_of(parameters[:cut], self.encoder, self.activation)
        return f, network_of(parameters[cut:], self.decoder, self.activation)

    def penalized(self) -> Array:
        """Return 1 for weights and 0 for biases: the parameters with a penalty."""
        pairs = [p for s in (self.encoder, self.decoder) for p in pairwise(s)]
        return np.concatenate([np.repeat([1.0, 0.0], [m * k, k]) for m, k in pairs])


def blocks(n: int, layout: NetworkLayout, copies: int = 1) -> Iterator[slice]:
    """Return blocks of rows whose values in all layers fit the memory budget.

    Parameters
    ----------
    n : int
        Rows.
    layout : NetworkLayout
        The layers.
    copies : int
        How often each row goes through them.
    """
    width = copies * (sum(layout.encoder) + sum(layout.decoder))
    step = rows_at_once(width, _ROWS, arrays=3)
    for first in range(0, n, step):
        deadline.check()
        yield slice(first, first + step)
