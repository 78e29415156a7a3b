"""Fisher's discriminant over blocks: class moments, fit, and certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.factored import FeatureExpansion
from mercer.kernels import Linear
from mercer.machines.base.parameters import refuse
from mercer.machines.base.targets import prior_of
from mercer.machines.blocks.features import feature_rows
from mercer.machines.blocks.fit import (
    certified,
    class_codes,
    ended,
    fit_blocks,
    refuse_options,
    remember_columns,
    watch_of,
)
from mercer.machines.blocks.problem import ClassCodes, FeatureRows, counted, feature_pieces
from mercer.machines.decomposition.blocks import extreme_scores, signs_of_extremes
from mercer.machines.discriminant.certificate import DiscriminantQuantities
from mercer.machines.discriminant.fisher import FisherDiscriminant, Mahalanobis, SharedGaussian
from mercer.machines.discriminant.problem import Directions
from mercer.machines.discriminant.solvers import NOT_DEFINITE, has_lost_pivots, rank_of
from mercer.rows.blocks import Block, RowBlocks
from mercer.solvers.base import Status
from mercer.solvers.certificate import Certificate, certify

# --- class moments -------------------------------------------------------------------------------
#
# Discriminant directions of rows in blocks: means of the classes, and the scatter within them.


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of the rows of each class; those of more rows are the sum.

    Attributes
    ----------
    totals : (c,) array
        Weights.
    means : (c, D) array
        Means of the features; zero for classes without rows.
    within : (D, D) array
        Scatter within classes, each by its factor.
    factors : (c,) array
        What a unit of weight counts in it.
    largest : (D,) array
        Largest magnitude of each feature.
    """

    totals: Array
    means: Array
    within: Array
    factors: Array
    largest: Array

    def __add__(self, other: ClassMoments) -> ClassMoments:
        totals = self.totals + other.totals
        share = other.totals / np.where(totals > 0, totals, 1.0)
        off = other.means - self.means
        pull = np.sqrt(self.factors * self.totals * share)[:, None] * off
        within = self.within + other.within + pull.T @ pull
        means = self.means + share[:, None] * off
        largest = np.maximum(self.largest, other.largest)
        return ClassMoments(totals, means, within, self.factors, largest)


def class_moments(block: Block, features: Any, labels: ClassCodes, factors: Array) -> ClassMoments:
    """Return the moments of a block."""
    block = counted(block)
    s, codes = block.counts, labels.codes(block.y)
    c, m = len(factors), features.dimension
    none = np.zeros((c, m))
    found = ClassMoments(np.zeros(c), none, np.zeros((m, m)), factors, np.zeros(m))
    for rows, F in feature_pieces(block, features):
        table = np.zeros((len(F), c))
        table[np.arange(len(F)), codes[rows]] = s[rows]
        totals = table.sum(axis=0)
        means = table.T @ F / np.where(totals > 0, totals, 1.0)[:, None]
        largest = np.abs(F).max(axis=0, initial=0.0)
        np.subtract(F, means[codes[rows]], out=F)
        np.multiply(F, np.sqrt(s[rows] * factors[codes[rows]])[:, None], out=F)
        found = found + ClassMoments(totals, means, F.T @ F, factors, largest)
    return found


@dataclass(frozen=True, eq=False)
class BlockDiscriminant:
    """The `count` directions of largest ratio; see `Discriminant`.

    Attributes
    ----------
    rows : FeatureRows
        Features, labels and weights.
    labels : ClassCodes
        Numbers of the classes.
    factors : (c,) array
        What a unit of weight of each class counts in the scatter within.
    shares : (c,) array
        The weights of the classes, with sum 1.
    penalty : float
        Added to the scatter within classes.
    count : int
        How many directions.
    """

    rows: FeatureRows
    labels: ClassCodes
    factors: Array
    shares: Array
    penalty: float
    count: int

    def moments(self) -> ClassMoments:
        """Add up over all rows."""
        shared = (self.rows.features, self.labels, self.factors)
        return self.rows.blocks.total(class_moments, *shared)

    def between(self, means: Array) -> Array:
        """Return sqrt(p_c) (m_c - m) as columns (D, c)."""
        return np.asarray((means - self.shares @ means).T * np.sqrt(self.shares))


# --- discriminant --------------------------------------------------------------------------------
#
# Are these the discriminant directions? Scatters of all rows are made anew, block by block.

_TOL = 1e-6
_TINY = float(np.finfo(np.float64).tiny)


@certify.register
def _(problem: BlockDiscriminant, value: Directions, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    found = problem.moments()
    B, W = problem.between(found.means), value.weights
    assert W is not None
    A = found.within.copy()
    A.flat[:: len(A) + 1] += problem.penalty
    between = B @ (B.T @ W)
    left = np.linalg.norm(between - (A @ W) * value.values, axis=0).max()
    residual = float(left / max(float(np.linalg.norm(between[:, 0])), _TINY))
    off = float(np.abs(W.T @ A @ W - np.eye(W.shape[1])).max())
    inside = float(W[:, 0] @ found.within @ W[:, 0])
    apart = float(np.square(B.T @ W[:, 0]).sum())
    measured = DiscriminantQuantities(
        residual, off, apart / inside if inside > 0 else float("inf"), _gain(problem, A, B, value)
    )
    ok = all(q <= tol for q in (residual, off, measured.gain))
    statement = (
        f"{W.shape[1]} direction(s) solve the generalised eigenproblem with relative residual "
        f"{residual:.1e}, over all rows of the blocks; along the first, classes are "
        f"{measured.ratio:.3g} times as far apart as they are wide (squared)"
    )
    return Certificate(bool(ok), measured, tol, statement)


def _gain(problem: BlockDiscriminant, A: np.ndarray, B: np.ndarray, value: Directions) -> float:
    """Return by how much the best ratios of all directions exceed those given."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return float("inf")
    white = linalg.solve_triangular(L, B, lower=True, check_finite=False)
    best = np.square(np.linalg.svd(white, compute_uv=False))[: problem.count]
    claimed = np.zeros(len(best))
    given = np.sort(value.values)[::-1][: len(best)]
    claimed[: len(given)] = given
    return float((best - claimed).max(initial=0.0) / max(float(best.max(initial=0.0)), _TINY))


# --- fisher --------------------------------------------------------------------------------------
#
# Fisher's discriminant over blocks: means of the classes and one scatter.

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
