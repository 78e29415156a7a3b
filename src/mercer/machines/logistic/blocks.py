"""Logistic regression over blocks: Newton and quasi-Newton steps, fit, and certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.gram.factored import FeatureExpansion
from mercer.machines.base.parameters import refuse
from mercer.machines.blocks.features import feature_rows, moments_of
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
from mercer.machines.logistic.certificate import SmoothRiskQuantities
from mercer.machines.logistic.logistic_regression import LogisticRegression
from mercer.machines.logistic.problem import LogLoss, Loss, SquaredLoss
from mercer.machines.ridge.problem import Coefficients
from mercer.rows.blocks import Block, RowBlocks
from mercer.solvers.base import Solution, Status, Watch
from mercer.solvers.certificate import Certificate, certify, larger

# --- problem ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockRisk:
    """Minimise sum_i s_i loss(f(x_i), y_i) + penalty / 2 |w|^2, f = w'phi + b; see `SmoothRisk`.

    Attributes
    ----------
    rows : FeatureRows
        Features, labels and weights.
    labels : ClassCodes
        Numbers of the classes.
    total : float
        The sum of all weights.
    penalty : float
        Weight of the squared norm.
    loss : Loss
        Log or squared.
    bias : bool
        Whether there is a bias b.
    """

    rows: FeatureRows
    labels: ClassCodes
    total: float
    penalty: float
    loss: Loss
    bias: bool

    @property
    def columns(self) -> int:
        """How many functions there are."""
        count = len(self.labels.classes)
        return 1 if count == 2 else count


# --- risk ----------------------------------------------------------------------------------------
#
# Is the risk smallest? A duality gap and the gradient, over all rows, block by block.
#
# The measures are those of a `SmoothRisk`. The bound needs slopes that add up to zero where there
# is a bias; a few passes move the biases there.

_RISK_TOL = 1e-6
_BALANCED = 1e-11  # of the slopes of a function: a hundredth of what is asked
_ENOUGH = 1e-9
_PASSES = 20
_TINY = float(np.finfo(np.float64).tiny)


@certify.register
def _(problem: BlockRisk, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = _RISK_TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = _measure(problem, value)
    ok = found.stationarity <= tol and found.relative_gap <= tol and found.imbalance <= _ENOUGH
    statement = (
        f"the objective is within {found.relative_gap:.1e} of the optimum, relatively; the "
        f"gradient is {found.stationarity:.1e} of what pulls on the function, over all rows of the "
        "blocks"
    )
    return Certificate(bool(ok), found, tol, statement)


def _measure(problem: BlockRisk, value: Coefficients) -> SmoothRiskQuantities:
    penalty, w = problem.penalty / problem.total, value.weights
    assert w is not None
    shift = np.zeros(problem.columns)
    first: Any = None
    for _ in range(_PASSES):
        sums = _pass(problem, w, value.intercept, shift)
        first = sums if first is None else first
        _, lost, pull, pulls, _, conjugates, bend = sums
        if not problem.bias or (np.abs(pull) <= _BALANCED * pulls).all():
            break
        step = _balancing_step(bend, pull)
        if step is None:
            break
        shift = shift + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
    risk, gradient, pull_at, pulls_at, reach, _, _ = first
    objective = risk + 0.5 * penalty * float(np.square(w).sum())
    left = penalty * w + gradient
    still = float(np.linalg.norm(left)) / reach if reach > 0 else 0.0
    imbalance = 0.0
    if problem.bias:
        still = larger(still, float((np.abs(pull_at) / np.maximum(pulls_at, 1e-300)).max()))
        imbalance = float((np.abs(pull) / np.maximum(pulls, 1e-300)).max())
    bound = -conjugates - float(np.square(lost).sum()) / (2 * penalty)
    gap = (objective - bound) / max(abs(objective), _TINY)
    gap = max(gap, 0.0) if np.isfinite(gap) else float("inf")
    still = still if np.isfinite(still) else float("inf")
    return SmoothRiskQuantities(problem.total * objective, gap, still, imbalance)


def _pass(problem: BlockRisk, w: Array, b: Array, shift: Array) -> Any:
    shared = (problem.labels, problem.loss, problem.total, w, b + shift)
    return problem.rows.blocks.total(slope_sums, problem.rows.features, *shared)


def slope_sums(
    block: Block, features: Any, labels: Any, loss: Any, total: float, w: Array, b: Array
) -> tuple[Any, ...]:
    """Return sums of a block: loss, slopes (as functions, added up, by size), conjugates, bend."""
    block = counted(block)
    codes = labels.codes(block.y)
    s = labels.weights(block.counts, codes) / total
    k = w.shape[1]
    risk = reach = conjugates = 0.0
    lost, pull, pulls, bend = np.zeros(w.shape), np.zeros(k), np.zeros(k), np.zeros((k, k))
    for rows, F in feature_pieces(block, features):
        f = F @ w + b
        slopes = loss.slopes(f, codes[rows])
        u = s[rows, None] * slopes
        risk += float(s[rows] @ loss.values(f, codes[rows]))
        lost += F.T @ u
        pull += u.sum(axis=0)
        pulls += np.abs(u).sum(axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", F, F))
        reach += float(lengths @ np.abs(u).sum(axis=1))
        conjugates += float(s[rows] @ loss.conjugates(slopes, codes[rows]))
        weight = float(s[rows].sum())
        if weight > 0:
            bend += weight * loss.curvature(f, codes[rows]).mean(s[rows])
    return risk, lost, pull, pulls, reach, conjugates, bend


def _balancing_step(bend: Array, g: Array) -> Array | None:
    """Return Newton's step for the biases; None where curvature is not a number."""
    if not (np.isfinite(bend).all() and np.isfinite(g).all()):
        return None
    sizes = np.sqrt(np.maximum(bend.diagonal(), _TINY))
    scaled = np.linalg.lstsq(bend / np.outer(sizes, sizes), g / sizes, rcond=1e-13)[0]
    return np.asarray(-scaled / sizes)


# --- newton --------------------------------------------------------------------------------------
#
# Directions of descent for risks over blocks: Newton's, or quasi-Newton where they are large.

_UNKNOWNS = 3000  # up to here second derivatives between all unknowns are held
_MEMORY = 20  # steps that quasi-Newton directions remember
_EPS = float(np.finfo(np.float64).eps)


class NewtonSystem:
    """Where to go from a point, for weights (D, k) and biases below them.

    With up to 3000 unknowns by Newton's equations. With more, as many classes have, by L-BFGS
    steps, begun with a bound of the second derivatives that is the same for all classes and
    factored once (Bohning): then a pass costs no more than the scores.

    Parameters
    ----------
    problem : BlockRisk
        What is asked.
    penalty : float
        Its penalty for weights that add up to one.
    """

    def __init__(self, problem: BlockRisk, penalty: float) -> None:
        self.problem, self.penalty = problem, penalty
        self.k, self.d = problem.columns, problem.rows.dimension
        self.exact = self.k * (self.d + 1) <= _UNKNOWNS
        self._steps: list[tuple[Array, Array]] = []
        self._bound: Any = None

    def gradient(self, slopes: Array, at: Array) -> Array:
        """Return the gradient of the objective, that of the penalty with it."""
        found = slopes.copy()
        found[:-1] += self.penalty * at[:-1]
        if not self.problem.bias:
            found[-1] = 0.0
        return found

    def direction(self, now: Any, at: Array, slope: Array) -> Array:
        """Return where to go."""
        return self._newton(now.curvature, slope) if self.exact else self._quasi(slope)

    def moved(self, before: Array, after: Array, slope: Array, slope_after: Array) -> None:
        """Remember a step, for the next direction."""
        if self.exact:
            return
        s, y = after - before, slope_after - slope
        if float((s * y).sum()) > _EPS * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self._steps = [*self._steps[1 - _MEMORY :], (s, y)]

    def _newton(self, H: Array, slope: Array) -> Array:
        k, d = self.k, self.d
        for c in range(k):
            H[c, range(d), c, range(d)] += self.penalty
        if not self.problem.bias:
            H[:, d], H[:, :, :, d] = 0.0, 0.0
            H[range(k), d, range(k), d] = 1.0
        elif k > 1 and isinstance(self.problem.loss, LogLoss):
            # all biases up alike: no probability changes, any curve will do
            H[:, d, :, d] += max(float(np.einsum("cc->", H[:, d, :, d])), _EPS) / k**2
        A, right = H.reshape(k * (d + 1), k * (d + 1)), slope.T.ravel()
        sizes = np.maximum(np.abs(A.diagonal()), np.finfo(float).tiny)
        for ridge in (0.0, 1e2, 1e6):
            B = A.copy()
            B.flat[:: len(B) + 1] += ridge * _EPS * sizes
            try:
                factor = linalg.cho_factor(B, check_finite=False, overwrite_a=True)
            except linalg.LinAlgError:
                continue
            step = -linalg.cho_solve(factor, right, check_finite=False)
            if np.isfinite(step).all():
                return np.asarray(step.reshape(k, d + 1).T)
        return -slope

    def _quasi(self, slope: Array) -> Array:
        way, memory = slope.copy(), []
        for s, y in reversed(self._steps):
            a = float((s * way).sum()) / float((s * y).sum())
            way -= a * y
            memory.append(a)
        way = self._shaped(way)
        for (s, y), a in zip(self._steps, reversed(memory), strict=True):
            way += (a - float((y * way).sum()) / float((s * y).sum())) * s
        return -way

    def _shaped(self, way: Array) -> Array:
        """Divide by a bound of the second derivatives that all classes share."""
        if self._bound is None:
            loss, rows = self.problem.loss, self.problem.rows
            found = moments_of(rows, bool(self.problem.bias), targeted=False)
            steep = loss.steepest(self.k)
            A = steep * found.products / found.total
            A.flat[:: len(A) + 1] += self.penalty
            self._bound = linalg.cho_factor(A, check_finite=False), found.mean, steep
        factor, mean, steep = self._bound
        out = np.empty_like(way)
        # biases of centred features: b' = b + mean'w, so that they do not pull on the weights
        out[:-1] = linalg.cho_solve(factor, way[:-1] - np.outer(mean, way[-1]), check_finite=False)
        out[-1] = (way[-1] / steep if self.problem.bias else 0.0) - mean @ out[:-1]
        if not self.problem.bias:
            out[-1] = 0.0
        return out


# --- logistic ------------------------------------------------------------------------------------
#
# Logistic regression over blocks: Newton steps whose sums are made block by block.

_LOSSES = {"log": LogLoss, "squared": SquaredLoss}
_LOGISTIC_TOL = 1e-10  # gradient over what pulls on the function, as for fits in memory
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
            if now.still <= _LOGISTIC_TOL:
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
