"""Are these the leading components? The matrix G'SG of all rows is made anew, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.certificates.base import Certificate, certify
from mercer.certificates.spectral.eigenproblem import EigenQuantities
from mercer.problems.blocks import counted, feature_pieces
from mercer.problems.blocks.questions import BlockComponents, BlockDirections

_TOL = 1e-6
_FLOOR = 1e-3  # of the largest eigenvalue: what residuals of smaller ones are measured against
_ROUNDING = 1e-12  # of the trace: an allowance, as the matrix is a sum of squares, and rounds


@certify.register
def _(problem: BlockComponents, value: BlockDirections, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    rows = problem.rows
    total, products, offset = rows.blocks.total(scatter_sums, rows.features, value.mean)
    # the mean that was given is judged, too: what is off it is scatter of the answer's making
    off = offset / max(total, np.finfo(float).tiny)
    matrix = products - total * np.outer(off, off) if problem.centred else products
    found = _measure(matrix, value, float(np.linalg.norm(off)) if problem.centred else 0.0)
    ok = (
        found.residual <= tol and found.orthonormality <= tol and found.largest_outside <= 1.0 + tol
    )
    statement = (
        f"every direction has a residual of at most {found.residual:.1e}, and no direction outside "
        f"them has more than {found.largest_outside:.3g} of the variance of the last, over all "
        "rows of the blocks"
    )
    return Certificate(bool(ok), found, tol, statement)


def _measure(matrix: Array, value: BlockDirections, off: float) -> EigenQuantities:
    V, values = value.directions, value.values
    trace = float(np.trace(matrix))
    if not len(values):
        return EigenQuantities(0.0, 0.0, 1.0, 0.0)
    top = float(values.max())
    left = np.linalg.norm(matrix @ V - V * values, axis=0)
    residual = float((left / np.maximum(values, _FLOOR * top)).max())
    spread = np.sqrt(max(trace, np.finfo(float).tiny))
    residual = max(residual, off**2 * len(V) / spread**2)
    apart = float(np.abs(V.T @ V - np.eye(len(values))).max())
    rest = matrix - V @ (V.T @ matrix)
    rest = rest - (rest @ V) @ V.T
    outside = float(np.linalg.eigvalsh((rest + rest.T) / 2)[-1]) if len(V) > len(values) else 0.0
    outside = max(outside - _ROUNDING * trace, 0.0) / float(values.min())
    return EigenQuantities(residual, apart, float(values.sum()) / trace, outside)


def scatter_sums(block: Block, features: Any, mean: Array) -> tuple[float, Array, Array]:
    """Return sums of weights, of products of features about a point, and of these features."""
    block = counted(block)
    s, m = block.counts, len(mean)
    products, offset = np.zeros((m, m)), np.zeros(m)
    for rows, F in feature_pieces(block, features):
        np.subtract(F, mean, out=F)
        offset += s[rows] @ F
        np.multiply(F, np.sqrt(s[rows])[:, None], out=F)
        products += F.T @ F
    return float(s.sum()), products, offset
