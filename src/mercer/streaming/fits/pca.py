"""Principal components over blocks: one triangle stands for all rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block, RowBlocks
from mercer.kernels import Linear
from mercer.machines import PCA
from mercer.machines.base.parameters import check_components
from mercer.machines.projection.inversion import Exact, Impossible
from mercer.machines.projection.subspace import FeatureSubspace
from mercer.problems import Modes
from mercer.problems.blocks import counted, feature_pieces
from mercer.problems.blocks.questions import BlockComponents, BlockDirections
from mercer.solvers import Status
from mercer.streaming.features import feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.outcome import certified, ended, remember_columns, watch_of
from mercer.streaming.sums import CentredTriangle, centred_triangle

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
    wanted = machine.n_components
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
