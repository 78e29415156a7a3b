"""Rows through a narrow layer and back: (1/n) sum_i |x_i - g(f(x_i))|^2, f and g networks.

Rows are in units in which their mean is zero and the mean variance of a column is one; with the sum
divided by the number of columns, the objective is the share of the variance that is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems.neural.network import NetworkLayout, blocks


@dataclass(frozen=True, eq=False)
class NetworkParameters:
    """An answer to an `Autoencoding`: all weights and biases, encoder first.

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
        Rows that are not learnt from; may be none.
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
        """Return what is lost of the rows held out; NaN where there are none."""
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
