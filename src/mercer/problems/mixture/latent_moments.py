"""What the rows tell about the parameters of a `Plane`: the sums of one expectation step.

From them come both the next estimate and, by Fisher's identity, the gradient of the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems.mixture.latent import LatentGaussian, Plane, Posterior, posteriors


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rows of the expected latent variables, with a one put beside them.

    Attributes
    ----------
    second : (d, q + 1, q + 1) array
        For each column, the sum of E[u u'], u = (z, 1), over rows where it is observed.
    first : (d, q + 1) array
        The sum of (x - mean) E[u].
    squares : (d,) array
        The sum of (x - mean)^2.
    seen : float
        The weight of all observed entries.
    log_likelihood : float
        Of the rows, each as often as it counts.
    """

    second: Array
    first: Array
    squares: Array
    seen: float
    log_likelihood: float

    def m_step(self, model: Plane, floor: float) -> Plane:
        """Return the parameters that are best for these expectations."""
        solved = self._regressed()
        left = self.squares.sum() - np.einsum("ij,ij->", solved, self.first)
        noise = max(float(left) / self.seen, floor)
        return Plane(model.mean + solved[:, -1], np.ascontiguousarray(solved[:, :-1]), noise)

    def _regressed(self) -> Array:
        """Regress the columns on the latent variables; with the least norm where these are flat."""
        try:
            return np.asarray(np.linalg.solve(self.second, self.first[:, :, None])[:, :, 0])
        except np.linalg.LinAlgError:
            inverse = np.linalg.pinv(self.second, hermitian=True)
            return np.asarray(np.einsum("ijk,ik->ij", inverse, self.first))

    def slope(self, model: Plane, floor: float, total: float) -> float:
        """Return the largest derivative of the mean log-likelihood, in standard deviations."""
        theta = np.column_stack([model.loadings, np.zeros(len(model.mean))])
        product = np.einsum("ijk,ik->ij", self.second, theta)
        width = np.sqrt(np.square(model.loadings).sum(axis=1) + model.noise)
        by_plane = np.abs((self.first - product) / model.noise).max(axis=1) * width
        misfit = self.squares.sum() - np.einsum("ij,ij->", theta, 2.0 * self.first - product)
        by_noise = 0.5 * (float(misfit) / model.noise - self.seen)
        if model.noise <= floor * (1 + 1e-12):
            by_noise = max(by_noise, 0.0)  # it can only grow
        return max(float(by_plane.max()), abs(by_noise)) / total


def moments(problem: LatentGaussian, model: Plane) -> Moments:
    """Go through all rows once."""
    d, q = model.loadings.shape
    second, first, squares = np.zeros((d, q + 1, q + 1)), np.zeros((d, q + 1)), np.zeros(d)
    seen = likelihood = 0.0
    for block in posteriors(model, problem.X):
        s = problem.weights[block.rows]
        u = np.column_stack([block.mean, np.ones(len(s))])
        first += (s[:, None] * block.centred).T @ u
        squares += s @ np.square(block.centred)
        seen += float(s @ block.observed.sum(axis=1))
        likelihood += float(s @ block.log_density)
        second += _second(block, s, u)
    return Moments(second, first, squares, seen, likelihood)


def _second(block: Posterior, s: Array, u: Array) -> Array:
    """Sum E[u u'] over the rows where each column is observed."""
    q = u.shape[1] - 1
    if len(block.covariance) == 1 and block.observed.all():
        same = (s[:, None] * u).T @ u
        same[:q, :q] += s.sum() * block.covariance[0]
        return same[None, :, :]
    outer = u[:, :, None] * u[:, None, :]
    outer[:, :q, :q] += block.covariance[block.pattern]
    flat = (s[:, None, None] * outer).reshape(len(s), -1)
    summed = block.observed.T.astype(np.float64) @ flat
    return np.asarray(summed.reshape(-1, q + 1, q + 1))
