"""Logistic regression over blocks: Newton steps whose sums are made block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block, RowBlocks
from mercer.gram.storage.factored import FeatureExpansion
from mercer.machines import LogisticRegression
from mercer.machines.base.parameters import refuse
from mercer.problems import Coefficients, LogLoss, SquaredLoss
from mercer.problems.blocks import BlockRisk, counted, feature_pieces
from mercer.solvers import Solution, Status, Watch
from mercer.streaming.features import feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.fits.newton import NewtonSystem
from mercer.streaming.outcome import certified, class_codes, ended, remember_columns, watch_of

_LOSSES = {"log": LogLoss, "squared": SquaredLoss}
_TOL = 1e-10  # gradient over what pulls on the function, as for fits in memory
_NEAR = 1e-7  # the same, from where steps that gain nothing are the end
_MAX_STEPS = 1000  # most of them without second derivatives
_SHORTEST = 2.0**-30


@fit_blocks.register
def fit_logistic(machine: LogisticRegression, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: a pass for each Newton step, and those of the certificate."""
    machine._check_parameters()
    refuse_options(machine, solver=None)
    if machine.loss not in _LOSSES:
        refuse(machine, "loss", machine.loss, "be 'log' or 'squared' on rows in blocks")
    if machine.penalty == 0:
        refuse(machine, "penalty", 0, "be positive on rows in blocks; 1e-6 changes little")
    codes, totals = class_codes(machine, blocks)
    remember_columns(machine, blocks)
    rows = feature_rows(machine, blocks)
    total = float(totals @ codes.factors)
    loss = _LOSSES[machine.loss]()
    problem = BlockRisk(rows, codes, total, float(machine.penalty), loss, bool(machine.bias))
    solution = solve_risk(problem, watch_of(machine))
    value: Coefficients = solution.value
    assert value.weights is not None
    machine.solution_ = solution
    machine.__dict__.pop("_walk", None)
    machine.__dict__.pop("dual_coef_", None)
    machine._weights, machine.intercept_ = value.weights, value.intercept
    machine._expansion = FeatureExpansion(rows.features, value.weights, value.intercept)
    machine._seen = total
    certified(machine, problem, value)


@dataclass(frozen=True, eq=False)
class RiskSums:
    """Risk, slopes and curvature of some rows, of weights that add up to one over all rows.

    Attributes
    ----------
    risk : float
        Weighted loss.
    gradient : (D + 1, k) array
        By weights and, in the last row, biases.
    reach : float
        The sum of the sizes of what the gradient is the sum of.
    pulls : (k,) array
        The same for the biases.
    curvature : array
        Second derivatives; a scalar zero where they are not asked for.
    """

    risk: float
    gradient: Array
    reach: float
    pulls: Array
    curvature: Any

    def __add__(self, other: RiskSums) -> RiskSums:
        return RiskSums(
            self.risk + other.risk,
            self.gradient + other.gradient,
            self.reach + other.reach,
            self.pulls + other.pulls,
            self.curvature + other.curvature,
        )


def risk_sums(
    block: Block, features: Any, labels: Any, loss: Any, total: float, at: Array, curved: bool
) -> RiskSums:
    """Return the sums of a block at weights and biases `at`, (D + 1, k)."""
    block = counted(block)
    d, k = at.shape[0] - 1, at.shape[1]
    codes = labels.codes(block.y)
    s = labels.weights(block.counts, codes) / total
    H = np.zeros((k, d + 1, k, d + 1)) if curved else 0.0
    found = RiskSums(0.0, np.zeros((d + 1, k)), 0.0, np.zeros(k), H)
    for rows, F in feature_pieces(block, features):
        f = F @ at[:d] + at[d]
        values, slopes = loss.both(f, codes[rows])
        u = s[rows, None] * slopes
        gradient = np.concatenate([F.T @ u, u.sum(axis=0)[None]])
        sizes = np.abs(u)
        lengths = np.sqrt(np.einsum("ij,ij->i", F, F))
        H = 0.0
        if curved:
            H = _curvature(F, s[rows], loss.curvature(f, codes[rows]), k)
        found = found + RiskSums(
            float(s[rows] @ values), gradient, float(lengths @ sizes.sum(axis=1)),
            sizes.sum(axis=0), H,
        )  # fmt: skip
    return found


def _curvature(F: Array, s: Array, bend: Any, k: int) -> Array:
    d = F.shape[1]
    H = np.zeros((k, d + 1, k, d + 1))
    for c in range(k):
        for e in range(c + 1):
            curvature = bend.between(c, e)
            if curvature is None:
                continue
            h = s * curvature
            H[c, :d, e, :d] = F.T @ (h[:, None] * F) if c != e else _symmetric(F, h)
            H[c, d, e, :d] = H[c, :d, e, d] = h @ F
            H[c, d, e, d] = h.sum()
            if c != e:
                H[e, :, c, :] = H[c, :, e, :].T
    return H


def _symmetric(F: Array, h: Array) -> Array:
    E = np.sqrt(np.maximum(h, 0.0))[:, None] * F
    return np.asarray(E.T @ E)  # of one array with itself: half the work


@dataclass(frozen=True, eq=False)
class RiskPoint:
    """Where a descent stands: weights and biases, sums, gradient, objective, relative gradient."""

    at: Array
    sums: RiskSums
    slope: Array
    objective: float
    still: float


def point_of(problem: BlockRisk, system: NewtonSystem, at: Array) -> RiskPoint:
    """Add up over all rows."""
    rows = problem.rows
    shared = (problem.labels, problem.loss, problem.total, at, system.exact)
    sums = rows.blocks.total(risk_sums, rows.features, *shared)
    objective = sums.risk + 0.5 * system.penalty * float(np.square(at[:-1]).sum())
    slope = system.gradient(sums.gradient, at)
    return RiskPoint(at, sums, slope, objective, _stillness(problem, sums, slope))


def solve_risk(problem: BlockRisk, watch: Watch) -> Solution:
    """Take Newton's steps from zero; a step that does not gain is halved."""
    rows, k = problem.rows, problem.columns
    system = NewtonSystem(problem, problem.penalty / problem.total)
    now = point_of(problem, system, np.zeros((rows.dimension + 1, k)))
    steps, status = 0, Status.ITERATION_LIMIT
    with watch.keeping():
        while steps < _MAX_STEPS and not watch.tick(steps, now.still):
            if now.still <= _TOL:
                status = Status.SOLVED
                break
            found, length = _searched(problem, system, now)
            steps += 1
            gained = now.objective - found.objective
            if length < _SHORTEST or (gained <= 1e-15 * abs(now.objective) and now.still <= _NEAR):
                now = min(now, found, key=lambda point: point.still)
                status = Status.SOLVED if now.still <= _NEAR else Status.INACCURATE
                break
            system.moved(now.at, found.at, now.slope, found.slope)
            now = found
    status = watch.stopped or status
    w, b = now.at[:-1].copy(), now.at[-1].copy()
    if k > 1 and isinstance(problem.loss, LogLoss):
        b -= b.mean()  # what is common to all, the logistic loss never sees
    if not np.isfinite(w).all():
        status = Status.NOT_FINITE
    return ended("BlockNewton", Coefficients(np.empty((0, k)), b, w), status, steps, watch)


def _searched(problem: BlockRisk, system: NewtonSystem, now: RiskPoint) -> tuple[RiskPoint, float]:
    """Go along the direction, half as far until the objective does not rise; and how far."""
    way, length = system.direction(now.sums, now.at, now.slope), 1.0
    while True:
        found = point_of(problem, system, now.at + length * way)
        if found.objective <= now.objective or length < _SHORTEST:
            return found, length
        length *= 0.5


def _stillness(problem: BlockRisk, found: RiskSums, slope: Array) -> float:
    """Return the gradient relative to what pulls on function and biases."""
    still = float(np.linalg.norm(slope[:-1])) / max(found.reach, 1e-300)
    if problem.bias:
        still = max(still, float((np.abs(slope[-1]) / np.maximum(found.pulls, 1e-300)).max()))
    return still if np.isfinite(still) else float("inf")
