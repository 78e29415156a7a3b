"""Are these the leading eigenvectors of the normalised affinity? The small matrix is made anew.

Degrees, the matrix of features and the means of the clusters are added up over all rows again, from
the rows and the stored answer alone. That the eigenvalues outside are smaller is computed from the
whole small matrix, not probed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.certificates.base import Certificate, certify
from mercer.certificates.spectral.eigenproblem import EigenQuantities
from mercer.problems.blocks import counted, feature_pieces
from mercer.problems.blocks.cut import BlockCut, CutAnswer, Places, divided_products

_TOL = 1e-5
_FLOOR = 1e-3  # of the largest eigenvalue: what residuals of smaller ones are measured against
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class CutQuantities(EigenQuantities):
    """Measures of eigenpairs and clusters of rows in blocks.

    Attributes
    ----------
    degree_error : float
        How far the stored sum of features, which degrees come from, is from that of all rows.
    centre_error : float
        Largest distance of a centre from the mean of the rows nearest to it, over the root of the
        mean squared length of all places; 0 where clusters are not made by means.
    without_degree : int
        Rows that no similarity reaches, by the features: they were left out.
    """

    degree_error: float = 0.0
    centre_error: float = 0.0
    without_degree: int = 0


@certify.register
def _(problem: BlockCut, value: CutAnswer, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    blocks, features = problem.rows.blocks, problem.rows.features
    z, W, sums, squares = blocks.total(placed_sums, value.places, value.centres)
    size = float(np.linalg.norm(z))
    off = float(np.linalg.norm(value.places.weights[:, -1] - z)) / max(size, _TINY)
    products, faint = blocks.total(divided_products, features, z if problem.divided else None)
    found = _measure(products, value.places, problem)
    apart = 0.0
    if value.centres is not None:
        means = sums / np.maximum(W, _TINY)[:, None]
        apart = np.linalg.norm((means - value.centres)[W > 0], axis=1).max(initial=0.0)
        apart = float(apart) / max(np.sqrt(squares / max(float(W.sum()), _TINY)), _TINY)
    measured = CutQuantities(*found, off if problem.divided else 0.0, apart, faint)
    ok = (
        max(measured.residual, measured.orthonormality, measured.degree_error) <= tol
        and measured.centre_error <= tol
        and measured.largest_outside <= 1.0 + tol
    )
    statement = (
        f"{len(value.places.values)} eigenpairs with residual {measured.residual:.1e}, no other is "
        f"larger than {measured.largest_outside:.3g} of the last, and centres are the means of "
        f"their rows within {measured.centre_error:.1e}, over all rows of the blocks"
    )
    if faint:
        statement += f"; {faint} rows that no landmark reaches are in no cut"
    return Certificate(bool(ok), measured, tol, statement)


def _measure(
    M: Array, places: Places, problem: BlockCut
) -> tuple[float, float, float, float, float]:
    """Return residual, orthonormality, trace, largest outside: in the space of the rows."""
    there = places.values != 0
    values = places.values[there]
    W = places.weights[:, :-1][:, there] / values
    top = float(np.abs(values).max(initial=_TINY))
    image = M @ W
    left = image - W * values
    # |G x|^2 = x'Mx for vectors G x over the rows
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", left, M @ left), 0.0))
    residual = float((lengths / np.maximum(np.abs(values), _FLOOR * top)).max(initial=0.0))
    apart = float(np.abs(W.T @ image - np.eye(len(values))).max(initial=0.0))
    Q = np.linalg.qr(W)[0]
    rest = M - Q @ (Q.T @ M)
    rest = rest - (rest @ Q) @ Q.T
    outside = float(np.linalg.eigvalsh((rest + rest.T) / 2)[-1]) if len(M) > len(values) else 0.0
    trace = float(np.trace(M))
    outside = max(outside - 1e-12 * trace, 0.0) / float(values.min(initial=top))
    if len(values) < problem.wanted:  # nothing but rounding may be left
        outside = 0.0 if outside <= np.sqrt(np.finfo(np.float64).eps) else np.inf
    return residual, apart, float(values.sum()) / max(trace, _TINY), outside, outside


def placed_sums(
    block: Block, places: Places, centres: Array | None
) -> tuple[Array, Array, Array, float]:
    """Return the sum of features, and weights and sums of the places nearest to each centre."""
    block = counted(block)
    s, k = block.counts, places.dimension
    c = 1 if centres is None else len(centres)
    z, W, sums, squares = np.zeros(places.features.dimension), np.zeros(c), np.zeros((c, k)), 0.0
    for rows, F in feature_pieces(block, places.features):
        w = s[rows]
        z += w @ F
        if centres is None:
            continue
        at = places.of(F @ places.weights)
        nearest = (np.square(centres).sum(axis=1) - 2.0 * at @ centres.T).argmin(axis=1)
        table = np.zeros((len(at), c))
        table[np.arange(len(at)), nearest] = w
        W += table.sum(axis=0)
        sums += table.T @ at
        squares += float(w @ np.einsum("ij,ij->i", at, at))
    return z, W, sums, squares
