"""Rows and Gaussians: sufficient statistics of rows, and likelihoods."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.bayes.problem import LOG_ZERO, Scatter, Spread
from mercer.resources import require_memory

_FAR = 1e140  # standard deviations; beyond, squares overflow, and all is said
_BLOCK = 1 << 19  # entries of a block of rows
_SMALL = 1e-145  # deviations below have squares that lose digits, and then vanish


def scatter_of(machine: Any, X: Array, codes: Array, weights: Array, k: int, full: bool) -> Scatter:
    """Return weight, mean and scatter of each class."""
    d = X.shape[1]
    name = type(machine).__name__
    if full:
        require_memory(
            8 * 4 * k * d * d,
            f"{name}: {k} covariances of {d} columns",
            "covariance='diagonal', or fewer columns",
        )
    mean = np.zeros((k, d))
    scatter = np.zeros((k, d, d) if full else (k, d))
    total = np.bincount(codes, weights, minlength=k)
    with np.errstate(over="ignore", invalid="ignore"):
        for c in np.flatnonzero(total):
            mine = np.flatnonzero((codes == c) & (weights > 0))
            rows, w = X[mine], weights[mine] / total[c]
            mean[c] = w @ rows
            rows = rows - mean[c]
            slip = w @ rows  # what rounding left of the mean
            mean[c] += slip
            rows -= slip
            if full:
                rows *= np.sqrt(w)[:, None]
            scatter[c] = total[c] * (rows.T @ rows if full else w @ rows**2)
    return Scatter(total, mean, scatter)


def check_range(machine: Any, held: Scatter) -> None:
    """Raise for totals and squares beyond float64; warn of columns whose squares underflow."""
    name = type(machine).__name__
    with np.errstate(over="ignore"):
        total = held.weight.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name}: sample_weight adds up to more than float64 holds; scale it down")
    every = held.total()
    scatter = every.scatter[0] if every.scatter.ndim == 2 else np.diagonal(every.scatter[0])
    if not np.isfinite(every.scatter).all():
        column = np.append(np.flatnonzero(~np.isfinite(scatter)), 0)[0]
        raise ValueError(f"{name}: the squares of column {column} of X overflow; scale that column")
    warn_of_small(machine, np.arange(len(scatter)), every.mean[0], scatter, total)


def warn_of_small(
    machine: Any, columns: Array, mean: Array, scatter: Array, weight: Array | float
) -> None:
    """Warn of numbers so small that their squares underflow: their columns would have no effect."""
    small = (scatter <= _SMALL**2 * weight) & (mean != 0) & (np.abs(mean) < _SMALL)
    if small.any():
        warnings.warn(
            f"{type(machine).__name__}: the numbers in column {columns[small][0]} of X are so "
            f"small (below {_SMALL:g}) that their squares lose digits or vanish, and the column "
            "may say little or nothing; scale that column",
            UserWarning,
            stacklevel=2,
        )


def axes(spread: Spread, c: int) -> Array:
    """Return a square root of a covariance, (d, d), or of its diagonal, (d,)."""
    m = min(c, len(spread.values) - 1)
    if spread.vectors is None:
        return np.asarray(np.sqrt(spread.values[m]) * spread.scale)
    return np.asarray(spread.scale[:, None] * spread.vectors[m] * np.sqrt(spread.values[m]))


def planes(spread: Spread, prior: Array) -> tuple[Array, Array, Array]:
    """Return normals w and offsets b of a shared covariance, and the center z of (x - z)'w + b."""
    share = prior / prior.sum()
    centre = share @ spread.mean
    steps = (spread.mean - centre) / spread.scale
    if spread.vectors is None:
        white = steps / spread.values[0]
    else:
        white = (steps @ spread.vectors[0] / spread.values[0]) @ spread.vectors[0].T
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(prior), LOG_ZERO)
    return white / spread.scale, logs - 0.5 * (steps * white).sum(axis=1), centre


def scores(machine: Any, X: Array, spread: Spread, prior: Array) -> Array:
    """Return log P(c) + log N(x; c) for every row and class, up to what all classes share."""
    k = len(prior)
    if len(spread.values) < k:  # one covariance for all: the quadratic part is common
        normals, offsets, centre = planes(spread, prior)
        with np.errstate(over="ignore", invalid="ignore"):
            out = (X - centre) @ normals.T + offsets
    else:
        out = _quadratic(X, spread)
        with np.errstate(divide="ignore"):
            out += np.maximum(np.log(prior), LOG_ZERO)
    bad = np.flatnonzero(~np.isfinite(out).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{type(machine).__name__}: the scores of {len(bad)} row(s) of X overflow, the first "
            f"in row {bad[0]}; scale the columns"
        )
    if not prior.all():  # a class of no probability stays far below the others, whatever X says
        out[:, prior == 0] = out[:, prior > 0].max(axis=1, keepdims=True) + LOG_ZERO
    return out


def _quadratic(X: Array, spread: Spread) -> Array:
    k, d = spread.mean.shape
    out = np.empty((len(X), k))
    half = 1.0 / np.sqrt(spread.values) / spread.scale  # rows times this are white
    if spread.vectors is not None:
        width = 1.0 / np.sqrt(spread.values)
        half = spread.vectors * width[:, None, :] / spread.scale[:, None]
    volume = np.log(spread.values).sum(axis=1) + 2 * np.log(spread.scale).sum()
    step = max(1, _BLOCK // d)
    for first in range(0, len(X), step):
        part = slice(first, first + step)
        for c in range(k):
            with np.errstate(over="ignore", invalid="ignore"):
                z = X[part] - spread.mean[c]
                z = z * half[c] if half.ndim == 2 else z @ half[c]
                squares = np.einsum("ij,ij->i", z, z)
            if not np.isfinite(squares).all():
                z = np.clip(np.nan_to_num(z, nan=_FAR), -_FAR, _FAR)
                squares = np.einsum("ij,ij->i", z, z)
            out[part, c] = -0.5 * (squares + volume[c])
    return np.asarray(out - 0.5 * d * np.log(2 * np.pi))
