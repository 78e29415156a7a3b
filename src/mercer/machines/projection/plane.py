"""The plane of probabilistic PCA in closed form, and the one way to write it down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.kernels import Linear
from mercer.machines.projection.components import moments
from mercer.machines.projection.pca import PCA
from mercer.points import is_sparse
from mercer.problems.mixture.latent import LatentGaussian, Plane, posteriors
from mercer.solvers import Solution
from mercer.solvers.spectral.signs import signs_of

_EPS = float(np.finfo(np.float64).eps)
_SMALLEST = 1e-12  # of the mean variance: less noise than this is none, and no density
_EXACT = 1e-10  # residual of eigenvectors, where they are iterated

_NOTHING = 1e-200  # the noise of rows that are all zero
_SQUARES = 1e-180, 1e250  # of the noise: here it changes with the unit of the rows to the last bit
_RANGE = 2.0**-470, 2.0**505  # of entries whose squares, and the smallest noise, are numbers


def smallest_noise(X: Points, weights: Array) -> float:
    """Return the smallest variance that the noise may have, for rows with gaps or without.

    Infinite where squares of the rows overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _smallest_noise(X, weights)


def _smallest_noise(X: Points, weights: Array) -> float:
    if is_sparse(X) or not np.isnan(X).any():
        spread = moments(X.astype(np.float64, copy=False), weights)[1]
        variance = spread / (float(weights.sum()) * X.shape[1])
    else:
        seen = ~np.isnan(X)
        count = weights @ seen
        mean = weights @ np.where(seen, X, 0.0) / count
        squares = weights @ np.where(seen, X - mean, 0.0) ** 2
        variance = float((squares / count).mean())
    values = X.data if is_sparse(X) else X
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    return float(max(_SMALLEST * variance, float(np.square(16 * _EPS * largest)))) or _NOTHING


def in_units(machine: Any, problem: LatentGaussian) -> tuple[LatentGaussian, float]:
    """Return the problem in units of its rows' largest entry, and the unit, a power of two."""
    values = problem.X.data if is_sparse(problem.X) else problem.X
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    if not _RANGE[0] < unit < _RANGE[1]:
        raise ValueError(
            f"{type(machine).__name__}: squares of X, whose largest entry is {largest:.0e}, are "
            "beyond float64, and so are the variances. Scale the features"
        )
    deadline.check()
    rows = problem.X * (1.0 / unit)
    floor = problem.floor / unit**2  # exact, where no square left the range of float64
    if not _SQUARES[0] < min(floor, problem.floor) <= max(floor, problem.floor) < _SQUARES[1]:
        floor = smallest_noise(rows, problem.weights)
    return replace(problem, X=rows, floor=floor), float(unit)


def in_rows(model: Plane, near: LatentGaussian, unit: float) -> Plane:
    """Return the plane in the units of the rows as they came."""
    seen = np.full(near.X.shape[0], near.X.shape[1])
    if not is_sparse(near.X):
        seen = seen - np.isnan(near.X).sum(axis=1)
    path = model.likelihoods
    if path is not None:
        path = path - float(near.weights @ seen) * np.log(unit)
    return Plane(model.mean * unit, model.loadings * unit, model.noise * unit**2, path)


def closed_form(problem: LatentGaussian, seed: int, **options: Any) -> Solution:
    """Return the most likely plane for rows without gaps, from their principal components."""
    n, d, q = problem.X.shape[0], problem.X.shape[1], problem.count
    found = min(q, n)
    machine = PCA(found, kernel=Linear(), tol=_EXACT, random_state=seed, **options)
    machine.fit(problem.X, sample_weight=problem.weights)
    total = float(problem.weights.sum())
    variances = machine.eigenvalues_ / total
    left = max(machine._subspace.total / total - float(variances.sum()), 0.0)
    noise = max(left / (d - q) if d > q else 0.0, problem.floor)
    loadings = np.zeros((d, q))
    loadings[:, :found] = machine.components_.T * np.sqrt(np.maximum(variances - noise, 0.0))
    return replace(machine.solution_, value=Plane(machine.mean_, loadings, noise))


def turned(model: Plane, X: Points, weights: Array) -> Plane:
    """Turn the latent space so that loadings are orthogonal, longest first, with signs of PCA."""
    U, lengths, _ = np.linalg.svd(model.loadings, full_matrices=False)
    rank = model.loadings.shape[1]
    loadings = np.zeros_like(model.loadings)
    loadings[:, : len(lengths)] = (U * lengths)[:, :rank]
    found = Plane(model.mean, loadings, model.noise, model.likelihoods)
    latent = np.vstack([block.mean for block in posteriors(found, X)])
    return replace(found, loadings=loadings * signs_of(latent))
