"""A mixture of Gaussians with a constant added to variances, as scikit-learn fits it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class GaussianComponents:
    """An answer to `RegularizedMixture`.

    Attributes
    ----------
    weights : (k,) array
        Shares of the components.
    means : (k, d) array
        Means.
    covariances : (k, d, d) array
        Covariances, written out.
    precisions : (k, d, d) array
        Their inverses, as they are stored beside them.
    """

    weights: Array
    means: Array
    covariances: Array
    precisions: Array


@dataclass(frozen=True, eq=False)
class RegularizedMixture:
    """Rows, and the form of the covariances that explain them.

    Attributes
    ----------
    X : (n, d) array
        Rows.
    form : str
        "full", "tied", "diag" or "spherical".
    added : float
        What is added to each variance.
    """

    X: Array
    form: str
    added: float

    def log_densities(self, value: GaussianComponents) -> Array:
        """Return log w_j + log N(x_i | m_j, C_j): (n, k)."""
        n, d = self.X.shape
        found = np.empty((n, len(value.weights)))
        for j, (mean, covariance) in enumerate(zip(value.means, value.covariances, strict=True)):
            root = np.linalg.cholesky(covariance)
            white = np.linalg.solve(root, (self.X - mean).T)
            log_volume = 2 * np.log(np.diag(root)).sum()
            found[:, j] = -0.5 * (np.square(white).sum(axis=0) + log_volume + d * np.log(2 * np.pi))
        with np.errstate(divide="ignore"):  # a component of no weight
            return np.asarray(found + np.log(value.weights))

    def mean_log_likelihood(self, value: GaussianComponents) -> float:
        """Return the mean of log P(x) over the rows."""
        return float(np.mean(logsumexp(self.log_densities(value), axis=1)))

    def step(self, value: GaussianComponents) -> GaussianComponents:
        """Return where a step of expectation maximisation leads."""
        joint = self.log_densities(value)
        chances = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        total = chances.sum(axis=0) + 10 * np.finfo(np.float64).eps  # as scikit-learn has it
        means = chances.T @ self.X / total[:, None]
        scatter = np.array([self._scatter(*one) for one in zip(chances.T, means, strict=True)])
        covariances = self._of_form(scatter, total) + self.added * np.eye(self.X.shape[1])
        return GaussianComponents(
            total / total.sum(), means, covariances, np.linalg.inv(covariances)
        )

    def _scatter(self, chances: Array, mean: Array) -> Array:
        left = self.X - mean
        return np.asarray((chances[:, None] * left).T @ left)

    def _of_form(self, scatter: Array, total: Array) -> Array:
        """Return the most likely covariances of this form."""
        if self.form == "tied":
            return np.repeat(scatter.sum(axis=0)[None] / total.sum(), len(scatter), axis=0)
        covariances = scatter / total[:, None, None]
        if self.form == "full":
            return np.asarray(covariances)
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        if self.form == "spherical":
            variances = np.repeat(variances.mean(axis=1, keepdims=True), self.X.shape[1], axis=1)
        return np.asarray(variances[:, :, None] * np.eye(self.X.shape[1]))
