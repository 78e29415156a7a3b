"""Fisher's discriminant over blocks: means of the classes and one scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.blocks import Block, RowBlocks
from mercer.gram.storage.factored import FeatureExpansion
from mercer.kernels import Linear
from mercer.machines import FisherDiscriminant
from mercer.machines.base.decision import prior_of
from mercer.machines.base.parameters import refuse
from mercer.machines.classification.gaussian_rule import Mahalanobis, SharedGaussian
from mercer.problems import Directions
from mercer.problems.blocks import counted, feature_pieces
from mercer.problems.blocks.class_moments import BlockDiscriminant, ClassMoments
from mercer.problems.blocks.questions import ClassCodes
from mercer.solvers import Status
from mercer.solvers.discriminant.discriminate import NOT_DEFINITE, has_lost_pivots, rank_of
from mercer.streaming.features import feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.fits.pca import extreme_scores, signs_of_extremes
from mercer.streaming.outcome import certified, class_codes, ended, remember_columns, watch_of

_EPS = float(np.finfo(np.float64).eps)
_NOTHING = 1e-12  # of the whole variance: less within classes is none to measure a penalty by


@fit_blocks.register
def fit_fisher(machine: FisherDiscriminant, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: classes, moments, signs, and the certificate, a pass each."""
    machine._check_parameters()
    refuse_options(machine, solver=None, penalty_on="function")
    labels, totals = class_codes(machine, blocks)
    remember_columns(machine, blocks)
    machine.prior_ = prior_of(machine, totals)
    rows, watch = feature_rows(machine, blocks), watch_of(machine)
    c = len(totals)
    count = c - 1 if machine.n_components is None else int(machine.n_components)
    if count > c - 1:
        refuse(machine, "n_components", machine.n_components, f"be at most {c - 1} here")
    factors, shares = np.full(c, 1.0 / totals.sum()), totals / totals.sum()
    if machine.weighting == "classes":
        factors, shares = 1.0 / (c * totals), np.full(c, 1.0 / c)
    problem = BlockDiscriminant(rows, labels, factors, shares, 0.0, count)
    found = problem.moments()
    machine.penalty_ = float(machine.penalty) * _unit(machine, problem, found)
    problem = BlockDiscriminant(rows, labels, factors, shares, machine.penalty_, count)
    value = _directions(machine, problem, found)
    middle = shares @ found.means
    assert value.weights is not None
    extremes = blocks.gather(extreme_scores, rows.features, middle, value.weights)
    value = Directions(value.values, weights=value.weights * signs_of_extremes(extremes))
    watch.tick(1, 0.0)
    machine.solution_ = ended("BlockDiscriminant", value, Status.SOLVED, 1, watch)
    _keep(machine, problem, found, value, middle)
    certified(machine, problem, value)


def _unit(machine: Any, problem: BlockDiscriminant, found: ClassMoments) -> float:
    """Return the variance that the penalty is measured by."""
    within = float(np.trace(found.within))
    whole = within + float(np.square(problem.between(found.means)).sum())
    size = float(np.square(found.largest).sum())
    if whole <= 256 * _EPS**2 * size:
        raise ValueError(
            f"FisherDiscriminant: all rows are equal in the space of {machine.kernel_!r}, so that "
            "no direction tells the classes apart; use another kernel, or other columns"
        )
    return within if within > _NOTHING * whole else whole


def _directions(machine: Any, problem: BlockDiscriminant, found: ClassMoments) -> Directions:
    B = problem.between(found.means)
    size = float(np.linalg.norm(found.largest))
    rank = rank_of(np.linalg.svd(B, compute_uv=False), size)
    A = np.ascontiguousarray(found.within)
    A.flat[:: len(A) + 1] += problem.penalty
    diagonal = A.diagonal().copy()
    A = A.copy()
    info = choose_backend().cholesky(A)
    if info or has_lost_pivots(A, diagonal, found.largest):
        raise np.linalg.LinAlgError(f"FisherDiscriminant: {NOT_DEFINITE}")
    white = linalg.solve_triangular(A, B, lower=True, check_finite=False)
    U, sigma, _ = np.linalg.svd(white, full_matrices=False)
    kept = min(problem.count, rank)
    W = linalg.solve_triangular(A, U[:, :kept], lower=True, trans="T", check_finite=False)
    return Directions(sigma[:kept] ** 2, weights=W)


def _keep(
    machine: Any, problem: BlockDiscriminant, found: ClassMoments, value: Directions, middle: Array
) -> None:
    W = value.weights
    assert W is not None
    for name in ("dual_coef_", "_directions"):
        machine.__dict__.pop(name, None)
    if isinstance(machine.kernel_, Linear):
        machine._directions = W
    machine._origin = None
    machine._expansion = FeatureExpansion(problem.rows.features, W, -(middle @ W))
    machine.ratios_, machine.means_ = value.values, (found.means - middle) @ W
    machine._rule = SharedGaussian(machine.means_, machine.prior_)
    if machine.rule == "mahalanobis":
        shared = (problem.rows.features, problem.labels, found.means, W)
        sums = problem.rows.blocks.total(class_spreads, *shared)
        covariances = sums / found.totals[:, None, None]
        rule = Mahalanobis.of(machine.means_, covariances + machine.penalty_ * (W.T @ W))
        if rule is None:
            raise ValueError(
                "FisherDiscriminant: rule='mahalanobis' needs a positive definite covariance of "
                "each class; use a larger penalty, or rule='gaussian'"
            )
        machine._rule = rule


def class_spreads(block: Block, features: Any, labels: ClassCodes, means: Array, W: Array) -> Array:
    """Return sums of squares of projections about the class means: (c, k, k)."""
    block = counted(block)
    s, codes = block.counts, labels.codes(block.y)
    k = W.shape[1]
    found = np.zeros((len(means), k, k))
    for rows, F in feature_pieces(block, features):
        away = (F - means[codes[rows]]) @ W
        for c in np.unique(codes[rows]).tolist():
            inside = codes[rows] == c
            found[c] += (s[rows][inside, None] * away[inside]).T @ away[inside]
    return found
