"""Does K bend down? Looked for where it costs nothing: along the answer, and among a few points."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Gram
from mercer.gram.exact_parts import exact_block, exact_rows
from mercer.gram.storage.precomputed import PrecomputedGram
from mercer.solvers.margin.descent import BoxState

_SAMPLE = 64
_ROUNDING = {8: 1e-9, 4: 1e-6}  # of the diagonal, by bytes: matrices may be given in float32


def curvature_along(part: BoxState, size: float) -> float | None:
    """Return the curvature b'Kb / b'b along an answer, where it is below zero beyond rounding.

    A positive semidefinite K has no such direction. With one, a descent ends at a stationary point
    that need not be the optimum. `size` is the largest entry of the diagonal. An answer whose sum
    is not zero says nothing where sums are fixed: it is no difference of two answers.
    """
    problem, b = part.problem, part.b
    if sums_are_fixed([part]) and problem.totals.sum() != 0:
        return None
    squared = float(b @ b)
    if squared == 0 or float(b @ (problem.linear - part.F)) > 1e-4 * size * squared:
        return None  # by F as it was kept; sure only from the points
    used = np.flatnonzero(b)
    bend = float(b[used] @ exact_rows(problem.gram, used, b)) / squared
    return bend if bend < -_rounding(problem.gram) * size else None


def curvature_among(parts: list[BoxState], stored: bool = False) -> float | None:
    """Return the smallest eigenvalue of K among a few points, if below zero: support vectors first.

    Where sums are fixed, only on vectors that sum to zero. With `stored`, entries are read from the
    matrix that is held, to its rounding: functions of one's own are not asked again.
    """
    gram, points = parts[0].unwrapped.base, [_points(part) for part in parts]
    used = np.unique(np.concatenate(points))
    few = used[:: max(1, len(used) // _SAMPLE)][:_SAMPLE]
    if not len(few):
        return None
    if len(few) < _SAMPLE:  # so few say little about K
        n = gram.shape[0]
        few = np.union1d(few, np.arange(0, n, max(1, n // (_SAMPLE - len(few)))))
    rounding = _ROUNDING[gram.dtype.itemsize] if stored else _rounding(gram)
    slack = rounding * len(few) * largest_diagonal(gram)
    block = _stored_block(gram, few) if stored else exact_block(gram, few)
    if sums_are_fixed(parts):
        block = block - block.mean(axis=0)
        block = block - block.mean(axis=1)[:, None]
    block.flat[:: len(few) + 1] += slack
    try:
        np.linalg.cholesky(block)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(block)[0]) - slack
        return least if least < -slack else None
    return None


def sums_are_fixed(parts: list[BoxState]) -> bool:
    """Return whether every variable is in a sum, so that answers differ by vectors of sum zero."""
    groups = (part.problem.group for part in parts)
    return all(group is None or bool((group >= 0).all()) for group in groups)


def _points(part: BoxState) -> Array:
    used, index = np.flatnonzero(part.b)[: 8 * _SAMPLE], part.unwrapped.index
    return used if index is None else index[used]


def largest_diagonal(gram: Gram) -> float:
    """Return the size of K."""
    return float(np.abs(gram.diag()).max(initial=0.0))


def _stored_block(gram: Gram, few: Array) -> Array:
    return np.asarray(gram.rows(few)[:, few], dtype=np.float64)


def _rounding(gram: Gram) -> float:
    base = gram.unwrapped().base  # only a given matrix cannot be evaluated anew from points
    return _ROUNDING[np.dtype(base.dtype if isinstance(base, PrecomputedGram) else float).itemsize]
