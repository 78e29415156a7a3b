"""Which penalty: exact leave-one-out errors of all candidates, in one pass over the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block
from mercer.problems.blocks import FeatureRows, counted, feature_pieces
from mercer.problems.ridge.ridge_path import NEGLIGIBLE
from mercer.solvers import Watch
from mercer.streaming.sums import Moments, targets_of

_TIE = 1e-6  # of the smallest error: rounding does not decide
_TINY = float(np.finfo(np.float64).tiny)


def leave_one_out(
    machine: Any, rows: FeatureRows, moments: Moments, watch: Watch
) -> tuple[Array, Array, Array]:
    """Return the best penalty of each target, the scores of all, and the candidates."""
    if moments.count < 2 and moments.total <= 1:
        raise ValueError("KernelRidge: leave-one-out needs two rows, but n_samples = 1")
    candidates = _candidates(machine, rows, moments)
    m, V = np.linalg.eigh(moments.products)
    kept = m > len(m) * np.finfo(float).eps * m.max(initial=0.0)
    m, V = m[kept], V[:, kept]
    rotated = V.T @ moments.cross
    spread = np.sqrt(moments.squares / moments.total)
    unit = np.where(spread > 0, spread, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = rows.blocks.total(
            path_errors, rows.features, moments.mean, moments.level, V, m, rotated, candidates,
            unit, moments.total if machine.bias else np.inf,
        )  # fmt: skip
    watch.tick(1, 0.0)
    errors = errors / moments.total
    errors[~np.isfinite(errors)] = np.inf
    tied = errors <= (1.0 + _TIE) * errors.min(axis=0) + NEGLIGIBLE
    best = np.argmax(np.where(tied, candidates[:, None], -np.inf), axis=0)
    return candidates[best], errors * unit * unit, candidates


def _candidates(machine: Any, rows: FeatureRows, moments: Moments) -> Array:
    if machine.penalties is not None:
        return np.asarray(machine.penalties, dtype=np.float64).ravel()
    spread = float(np.trace(moments.products)) / moments.total
    size = spread + float(moments.mean @ moments.mean)
    size = spread if machine.bias and spread > 1e-8 * size else size
    return np.logspace(-8, 4, 25) * (size if size > 0 else 1.0)


def path_errors(
    block: Block,
    features: Any,
    mean: Array,
    level: Array,
    V: Array,
    m: Array,
    rotated: Array,
    penalties: Array,
    unit: Array,
    total: float,
) -> Array:
    """Return weighted sums of squared leave-one-out errors of a block: (penalties, t).

    With P = G V and h = P^2 (1 / (m + penalty)) + 1 / total, taking one copy off row i changes its
    residual r_i to r_i / (1 - t h_i), t = min(1, s_i).
    """
    block = counted(block)
    y, s = targets_of(block) - level, block.counts
    errors = np.zeros((len(penalties), y.shape[1]))
    for rows, F in feature_pieces(block, features):
        P = (F - mean) @ V
        squares, copies = np.square(P), np.minimum(1.0, s[rows])
        for j, penalty in enumerate(penalties.tolist()):
            shrink = 1.0 / (m + penalty)
            residual = y[rows] - P @ (shrink[:, None] * rotated)
            left = np.maximum(1.0 - copies * (squares @ shrink + 1.0 / total), _TINY)
            errors[j] += s[rows] @ np.square(residual / left[:, None] / unit)
    return errors
