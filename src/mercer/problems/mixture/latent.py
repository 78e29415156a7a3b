"""Rows as a plane plus noise: x = mean + W z + e, z ~ N(0, I), e ~ N(0, noise I).

Missing entries (NaN) are integrated out: a row speaks through the entries that it has. With its
observed part o and M = W_o'W_o + noise I, the latent z has the mean M^-1 W_o'(x_o - mean_o) and the
covariance noise M^-1, and x_o' C_o^-1 x_o is the smallest |x_o - W_o z|^2 / noise + |z|^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.points import row_count, take, to_dense

_ENTRIES = 1 << 20  # of a block of rows, and of the squares of their latent variables


@dataclass(frozen=True, eq=False)
class Plane:
    """An answer to a `LatentGaussian`.

    Attributes
    ----------
    mean : (d,) array
        The mean.
    loadings : (d, q) array
        W.
    noise : float
        Variance of the noise.
    likelihoods : (t,) array or None
        The log-likelihood on the way there, if an iteration led to it.
    """

    mean: Array
    loadings: Array
    noise: float
    likelihoods: Array | None = None


@dataclass(frozen=True, eq=False)
class LatentGaussian:
    """The mean, loadings and noise under which rows are most likely.

    Attributes
    ----------
    X : Points
        Rows; NaN where an entry is missing.
    weights : (n,) array
        How often each row counts.
    count : int
        The number of latent variables.
    floor : float
        The smallest variance of the noise.
    """

    X: Points
    weights: Array
    count: int
    floor: float

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"LatentGaussian: count={self.count} must be at least 1")


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a block of rows says about its latent variables.

    Attributes
    ----------
    rows : slice
        Which rows.
    centred : (m, d) array
        The rows less the mean; zero where missing.
    observed : (m, d) bool array
        Where they are not missing.
    mean : (m, q) array
        Posterior means.
    covariance : (p, q, q) array
        Posterior covariances, one for each pattern of missing entries.
    pattern : (m,) int array
        The pattern of each row.
    log_density : (m,) array
        Log-density of what was observed.
    """

    rows: slice
    centred: Array
    observed: Array
    mean: Array
    covariance: Array
    pattern: Array
    log_density: Array


def posteriors(model: Plane, X: Points) -> Iterator[Posterior]:
    """Go through rows in blocks.

    Parameters
    ----------
    model : Plane
        The model.
    X : Points
        Rows, dense or sparse; NaN where missing.
    """
    d, q = model.loadings.shape
    step = max(1, _ENTRIES // (d + (q + 1) ** 2))
    for first in range(0, row_count(X), step):
        deadline.check()
        rows = slice(first, first + step)
        yield _posterior(model, rows, to_dense(take(X, rows)))


def log_densities(model: Plane, X: Points) -> Array:
    """Return the log-density of what is observed of each row: (n,)."""
    found = [block.log_density for block in posteriors(model, X)]
    return np.concatenate(found) if found else np.zeros(0)


def _posterior(model: Plane, rows: slice, X: Array) -> Posterior:
    W, q = model.loadings, model.loadings.shape[1]
    observed = ~np.isnan(X)
    centred = np.where(observed, X - model.mean, 0.0)
    patterns, pattern = _patterns(observed)
    squares = (W[:, :, None] * W[:, None, :]).reshape(len(W), q * q)
    inverse, volume = _inverted((patterns @ squares).reshape(-1, q, q), model.noise)
    pulled = centred @ W
    if len(patterns) == 1:
        mean = pulled @ inverse[0]
    else:
        mean = np.einsum("ij,ijk->ik", pulled, inverse[pattern])
    left = np.where(observed, centred - mean @ W.T, 0.0)
    with np.errstate(over="ignore"):  # a row so far off has a density of zero
        misfit = np.square(left).sum(axis=1) / model.noise + np.square(mean).sum(axis=1)
    seen = patterns.sum(axis=1)
    volume += (seen - q) * np.log(model.noise)
    constant = (seen * np.log(2.0 * np.pi) + volume)[pattern]
    density = -0.5 * (misfit + constant)
    return Posterior(rows, centred, observed, mean, model.noise * inverse, pattern, density)


def _inverted(products: Array, noise: float) -> tuple[Array, Array]:
    """Return (W_o'W_o + noise I)^-1 and the logarithm of the determinant, for each pattern."""
    M = products + noise * np.eye(products.shape[1])
    try:
        return np.linalg.inv(M), np.asarray(np.linalg.slogdet(M)[1])
    except np.linalg.LinAlgError:  # the noise is lost beside the products
        values, vectors = np.linalg.eigh(products)
        values = np.maximum(values, 0.0) + noise
        inverse = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
        return inverse, np.asarray(np.log(values).sum(axis=1))


def _patterns(observed: Array) -> tuple[Array, Array]:
    """Return the distinct rows of a mask as floats, and which of them each row is."""
    if observed.all():
        return np.ones((1, observed.shape[1])), np.zeros(len(observed), dtype=np.intp)
    packed = np.packbits(observed, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return observed[first].astype(np.float64), pattern
