"""PCA over blocks: fit and certificate."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Linear
from mercer.machines.base.parameters import check_components
from mercer.machines.blocks.features import CentredTriangle, centred_triangle, feature_rows
from mercer.machines.blocks.fit import (
    certified,
    ended,
    fit_blocks,
    refuse_options,
    remember_columns,
    watch_of,
)
from mercer.machines.blocks.problem import BlockComponents, BlockDirections, counted, feature_pieces
from mercer.machines.decomposition.components import FeatureSubspace
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.preimage import Exact, Impossible
from mercer.rows.blocks import Block, RowBlocks
from mercer.solvers.base import Status
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.eigen.certificate import EigenQuantities
from mercer.solvers.eigen.problem import Modes

# --- components ----------------------------------------------------------------------------------
#
# Are these the leading components? The matrix G'SG of all rows is made anew, block by block.

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


# --- pca -----------------------------------------------------------------------------------------
#
# Principal components over blocks: one triangle stands for all rows.

_EPS = float(np.finfo(np.float64).eps)
_LOOSE = 1e-6  # certificates are no stricter than this


@fit_blocks.register
def fit_pca(machine: PCA, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: a pass for the triangle, one for signs, one for the certificate."""
    machine._take_store()
    machine._check_parameters()
    refuse_options(machine, solver=None)
    remember_columns(machine, blocks)
    rows = feature_rows(machine, blocks)
    watch, centred = watch_of(machine), bool(machine.center)
    if not isinstance(machine.kernel_, Linear):
        refuse_options(machine, preimage="auto")
    found = blocks.total(centred_triangle, rows.features, centred)
    check_components(machine, max(found.count, found.total))
    _, sigma, Vt = np.linalg.svd(found.R, full_matrices=False)
    values, directions = _chosen(machine, found, np.square(sigma), Vt.T)
    if len(values):
        signs = signs_of_extremes(
            blocks.gather(extreme_scores, rows.features, found.mean, directions)
        )
        directions = directions * signs
    watch.tick(1, 0.0)
    k = len(values)
    solution = ended("BlockTriangle", Modes(values, np.empty((0, k))), Status.SOLVED, 1, watch)
    machine.solution_ = solution
    _keep(machine, rows.features, found, values, directions, float(np.square(sigma).sum()))
    problem = BlockComponents(rows, centred, k)
    answer = BlockDirections(values, directions, found.mean)
    certified(machine, problem, answer, tol=max(float(machine.tol), _LOOSE))


def _chosen(machine: PCA, found: CentredTriangle, values: Array, V: Array) -> tuple[Array, Array]:
    """Return the pairs that are wanted and no rounding."""
    tiny = (4 * _EPS) ** 2 * max(found.count, V.shape[0]) * found.size
    most = max(1, min(int(found.count) - (1 if machine.center else 0), V.shape[0]))
    kept = np.flatnonzero(values > tiny)[:most]
    values, V = values[kept], V[:, kept]
    wanted: Any = machine.n_components
    if wanted is None:
        return values, V
    if isinstance(wanted, Integral):
        return values[: int(wanted)], V[:, : int(wanted)]
    aim = float(wanted) * float(values.sum())
    first = int(np.searchsorted(np.cumsum(values), aim * (1 - 4 * _EPS)))
    return values[: first + 1], V[:, : first + 1]


def extreme_scores(block: Block, features: Any, mean: Array, directions: Array) -> Array:
    """Return the score of largest magnitude of each component in a block, with its sign."""
    block = counted(block)
    best = np.zeros(directions.shape[1])
    for _, F in feature_pieces(block, features):
        scores = (F - mean) @ directions
        most = scores[np.abs(scores).argmax(axis=0), range(scores.shape[1])]
        best = np.where(np.abs(most) > np.abs(best), most, best)
    return best


def signs_of_extremes(found: list[Array]) -> Array:
    """Return the signs of the largest scores: those of training rows are positive there."""
    table = np.array(found)
    most = table[np.abs(table).argmax(axis=0), range(table.shape[1])]
    return np.where(most < 0, -1.0, 1.0)


def _keep(
    machine: PCA,
    features: Any,
    found: CentredTriangle,
    values: Array,
    directions: Array,
    spread: float,
) -> None:
    rank = len(values)
    count = machine.n_components if isinstance(machine.n_components, Integral) else rank
    machine.n_components_ = max(1, int(count))
    machine.eigenvalues_ = np.zeros(machine.n_components_)
    machine.eigenvalues_[:rank] = values
    total = found.total - 1.0 if machine.center and found.total > 1 else found.total
    machine.explained_variance_ = machine.eigenvalues_ / total
    root = np.sqrt(machine.explained_variance_)
    machine._unit = root if machine.whiten else np.ones(machine.n_components_)
    whole = np.zeros((len(found.mean), machine.n_components_))
    whole[:, :rank] = directions
    machine._subspace = FeatureSubspace(features, found.mean, whole, spread)
    machine._found = float(values.sum())
    machine.__dict__.pop("dual_coef_", None)
    held: Any = machine._subspace
    machine._inverse = (
        Exact(held)
        if isinstance(machine.kernel_, Linear)
        else Impossible(
            "PCA: a fit to rows in blocks keeps no rows to find pre-images among; fit a sample "
            "that fits in memory"
        )
    )
