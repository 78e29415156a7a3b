"""Ridge regression over blocks: fit, leave-one-out choice of the penalty, and certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.base import columns_of
from mercer.gram.factored import FeatureExpansion
from mercer.kernels import Linear
from mercer.machines.blocks.features import (
    TargetMoments,
    block_triangle,
    feature_rows,
    moments_of,
    targets_of,
)
from mercer.machines.blocks.fit import (
    certified,
    ended,
    fit_blocks,
    numeric_targets,
    refuse_options,
    remember_columns,
    watch_of,
)
from mercer.machines.blocks.problem import BlockRidge, FeatureRows, counted, feature_pieces
from mercer.machines.ridge.certificate import LinearSystemQuantities, size_of, worst
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.ridge.primal import resolved
from mercer.machines.ridge.problem import NEGLIGIBLE, Coefficients
from mercer.rows.blocks import Block, RowBlocks
from mercer.solvers.base import Solution, Status, Watch
from mercer.solvers.certificate import Certificate, certify, norms

# --- ridge ---------------------------------------------------------------------------------------
#
# Does it solve the ridge equations? The residual over all rows, block by block.
#
# The same measures as for a `LinearSystem` answered in the space of the features; there are no
# coefficients of rows to compare with.

_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class NormalResidual:
    """F'S (y - F w - b) - penalty w, and what it is measured by.

    Attributes
    ----------
    residual, right, largest : (D, t) arrays
        What is left, F'S y (y less its mean where there is a bias), and the size of its terms.
    pull, pulls : (t,) arrays
        The sum of S (y - F w - b), and of its sizes.
    most : (t,) array
        The sum of S |y|.
    """

    residual: Array
    right: Array
    largest: Array
    pull: Array
    pulls: Array
    most: Array


def normal_residual(
    problem: BlockRidge, value: Coefficients, mean: Array, level: Array
) -> NormalResidual:
    """Add up the residual of all rows in a pass, about means of features and targets.

    With a bias any point will do, since the sum of S (y - F w - b) is judged apart; near the mean
    nothing cancels.
    """
    blocks, features = problem.rows.blocks, problem.rows.features
    assert value.weights is not None
    constant = value.intercept + mean @ value.weights - level
    sums = blocks.total(residual_sums, features, value.weights, constant, mean, level)
    lost, *others = sums
    return NormalResidual(lost - problem.penalties * value.weights, *others)


def middle_of(problem: BlockRidge) -> tuple[Array, Array]:
    """Return the means of features and targets where there is a bias; else zeros."""
    if not problem.bias:
        return np.zeros(problem.rows.dimension), np.zeros(len(problem.penalties))
    total, features, targets = problem.rows.blocks.total(first_sums, problem.rows.features)
    return features / total, targets / total


def first_sums(block: Block, features: Any) -> tuple[float, Array, Array]:
    """Return the sums of weights, features and targets."""
    block = counted(block)
    s, sums = block.counts, np.zeros(features.dimension)
    for rows, F in feature_pieces(block, features):
        sums += s[rows] @ F
    return float(s.sum()), sums, s @ _columns(block)


def residual_sums(
    block: Block, features: Any, weights: Array, constant: Array, mean: Array, level: Array
) -> tuple[Array, ...]:
    """Return the sums of a block, each feature of all rows anew, about their mean."""
    block = counted(block)
    s, y = block.counts[:, None], _columns(block)
    shape = weights.shape
    lost, right, largest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    pull, pulls = np.zeros(shape[1]), np.zeros(shape[1])
    for rows, F in feature_pieces(block, features):
        size = np.abs(F).T
        np.subtract(F, mean, out=F)
        left = s[rows] * ((y[rows] - level) - F @ weights - constant)
        lost += F.T @ left
        right += F.T @ (s[rows] * (y[rows] - level))
        largest += size @ np.abs(s[rows] * y[rows])
        pull += left.sum(axis=0)
        pulls += np.abs(left).sum(axis=0)
    return lost, right, largest, pull, pulls, np.abs(s * y).sum(axis=0)


def _columns(block: Block) -> Array:
    return columns_of(np.asarray(block.y, dtype=np.float64))


@certify.register
def _(problem: BlockRidge, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = normal_residual(problem, value, *middle_of(problem))
        residual = norms(found.residual)
        relative = residual / size_of(norms(found.right), norms(found.largest))
        bias = np.zeros(1)
        if problem.bias:
            bias = np.abs(found.pull) / size_of(found.pulls, found.most)
    measured = LinearSystemQuantities(worst(residual), worst(relative), worst(bias))
    ok = measured.relative_residual <= tol and measured.bias_condition <= tol
    statement = (
        "the answer solves the ridge equations exactly once their right-hand side is changed by "
        f"{measured.relative_residual:.1e} of its norm, over all rows of the blocks"
    )
    return Certificate(bool(ok), measured, tol, statement)


# --- ridge path ----------------------------------------------------------------------------------
#
# Which penalty: exact leave-one-out errors of all candidates, in one pass over the blocks.

_TIE = 1e-6  # of the smallest error: rounding does not decide
_TINY = float(np.finfo(np.float64).tiny)


def leave_one_out(
    machine: Any, rows: FeatureRows, moments: TargetMoments, watch: Watch
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


def _candidates(machine: Any, rows: FeatureRows, moments: TargetMoments) -> Array:
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


# --- ridge ---------------------------------------------------------------------------------------
#
# Kernel ridge regression over blocks: sums of products, and residuals of all rows.

_EPS = float(np.finfo(np.float64).eps)
_REFINEMENTS = 2
_ENOUGH = 1e-12  # residual over the right-hand side, from where refinement changes no digit


@fit_blocks.register
def fit_ridge(machine: KernelRidge, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: one pass of sums, one for each refinement, one for the certificate."""
    machine._check_parameters()
    refuse_options(machine, solver=None)
    dimensions, t = numeric_targets(machine, blocks)
    remember_columns(machine, blocks)
    rows = feature_rows(machine, blocks)
    machine._forget()
    machine.__dict__.pop("dual_coef_", None)
    watch = watch_of(machine)
    moments = moments_of(rows, bool(machine.bias))
    if machine._wants_path():
        penalties, scores, candidates = leave_one_out(machine, rows, moments, watch)
        machine.penalties_ = candidates
        machine.loo_scores_ = scores if dimensions == 2 else scores[:, 0]
    else:
        penalties = machine._penalties_for(t)
    problem = BlockRidge(rows, penalties, bool(machine.bias))
    solution = solve_ridge(problem, moments, watch)
    machine.solution_ = solution
    value: Coefficients = solution.value
    machine.penalty_ = penalties if dimensions == 2 else float(penalties[0])
    machine.intercept_ = value.intercept if dimensions == 2 else float(value.intercept[0])
    assert value.weights is not None
    machine._expansion = FeatureExpansion(rows.features, value.weights, value.intercept)
    if isinstance(machine.kernel_, Linear):
        machine._weights = value.weights
    certified(machine, problem, value)


def solve_ridge(problem: BlockRidge, moments: TargetMoments, watch: Watch) -> Solution:
    """Solve (G'SG + penalty) w = G'Sy from moments, and refine against the rows themselves."""
    rows, penalties = problem.rows, problem.penalties
    floor = _EPS * float(np.trace(moments.products)) / max(1, rows.dimension)
    weights, factors, status = np.zeros(moments.cross.shape), {}, Status.SOLVED
    for penalty in np.unique(penalties).tolist():
        columns = np.flatnonzero(penalties == penalty)
        factor = _factor(moments.products, penalty) if penalty > floor else None
        if factor is None:
            weights[:, columns], whole = _least_squares(rows, moments, columns, penalty)
            status = status if whole or penalty > floor else Status.SINGULAR
        else:
            factors[penalty] = factor
            right = moments.cross[:, columns]
            weights[:, columns] = linalg.cho_solve(factor, right, check_finite=False)
    passes = 1
    with watch.keeping():
        for _ in range(_REFINEMENTS if factors else 0):
            if watch.tick(passes, np.nan):
                break
            value = answer(moments, weights, problem.bias)
            left = normal_residual(problem, value, moments.mean, moments.level).residual
            passes += 1
            if _small(left, moments.cross):
                break
            for penalty, factor in factors.items():
                columns = np.flatnonzero(penalties == penalty)
                step = linalg.cho_solve(factor, left[:, columns], check_finite=False)
                weights[:, columns] += step
    value = answer(moments, weights, problem.bias)
    if not np.isfinite(weights).all():
        status = Status.NOT_FINITE
    return ended("BlockPrimal", value, status, passes, watch)


def answer(moments: TargetMoments, weights: Array, bias: bool) -> Coefficients:
    """Return weights with the biases that belong to them."""
    t = weights.shape[1]
    intercept = moments.level - moments.mean @ weights if bias else np.zeros(t)
    return Coefficients(np.empty((0, t)), np.asarray(intercept), weights.copy())


def _small(left: Array, right: Array) -> bool:
    sizes = np.linalg.norm(right, axis=0)
    return bool((np.linalg.norm(left, axis=0) <= _ENOUGH * sizes).all())


def _factor(products: Array, penalty: float) -> Any:
    """Return a Cholesky factor; None where rounding has eaten a pivot."""
    A = products.copy()
    A.flat[:: len(A) + 1] += penalty
    diagonal = A.diagonal().copy()
    info = choose_backend().cholesky(A)
    if info or (np.square(A.diagonal()) <= len(A) * _EPS * diagonal).any():
        return None
    return A.T, False


def _least_squares(
    rows: FeatureRows, moments: TargetMoments, columns: Array, penalty: float
) -> tuple[Array, bool]:
    """Solve by singular values of a triangle that stands for all rows: products square errors."""
    found = rows.blocks.total(block_triangle, rows.features, moments.mean, moments.level)
    m = rows.dimension
    E, y = found.R[:, :m], found.R[:, m:][:, columns]
    U, sigma, Vt = np.linalg.svd(E, full_matrices=False)
    squares = moments.products.diagonal() + moments.total * np.square(moments.mean)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    kept = resolved(sigma, Vt, lengths, (int(moments.count), m))
    shrink = sigma[kept] / (sigma[kept] ** 2 + penalty)
    w = Vt[kept].T @ (shrink[:, None] * (U[:, kept].T @ y))
    return np.asarray(w), len(sigma) == m and bool(kept.all())
