"""Kernel ridge regression over blocks: sums of products, and residuals of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.blocks import RowBlocks
from mercer.certificates.blocks.ridge import normal_residual
from mercer.gram.storage.factored import FeatureExpansion
from mercer.kernels import Linear
from mercer.machines import KernelRidge
from mercer.problems import Coefficients
from mercer.problems.blocks import BlockRidge, FeatureRows
from mercer.solvers import Solution, Status, Watch
from mercer.solvers.ridge.design import resolved
from mercer.streaming.features import feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.fits.ridge_path import leave_one_out
from mercer.streaming.outcome import certified, ended, numeric_targets, remember_columns, watch_of
from mercer.streaming.sums import Moments, block_triangle, moments_of

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


def solve_ridge(problem: BlockRidge, moments: Moments, watch: Watch) -> Solution:
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


def answer(moments: Moments, weights: Array, bias: bool) -> Coefficients:
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
    rows: FeatureRows, moments: Moments, columns: Array, penalty: float
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
