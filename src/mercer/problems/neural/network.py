"""A network of layers in NumPy: h_0 = x, h_l = a(h_(l-1) W_l + b_l), the last layer without a.

Values and derivatives in float64, from weights alone: fitted machines and certificates use these,
and need no library for training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit

from mercer import deadline
from mercer.array_types import Array
from mercer.resources import rows_at_once

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
        """Return what the last layer gives."""
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
            What `values` returned.
        slopes : (n, k) array
            Derivatives of a function by what the last layer gave.
        """
        found: list[Array] = []
        rule = ACTIVATIONS[self.activation]
        for layer in reversed(range(len(self.weights))):
            found[:0] = [(values[layer].T @ slopes).ravel(), slopes.sum(axis=0)]
            slopes = slopes @ self.weights[layer].T
            if layer > 0:
                slopes = slopes * rule.slope(values[layer])
        return np.concatenate(found), slopes


# --- all parameters in one vector ----------------------------------------------------------------


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
        """Return 1 for weights and 0 for biases: what a penalty counts."""
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
