"""Support vector classifier over blocks: screening, fit, and certificate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.factored import FeatureExpansion
from mercer.machines.base.parameters import is_real, refuse
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
from mercer.machines.blocks.problem import BlockDuals, BlockMargin, PartRows, feature_pieces
from mercer.machines.ridge.problem import Coefficients
from mercer.machines.svm.blocks_interior_point import (
    Ended,
    NearRows,
    SeparatingPlane,
    class_sums,
    decided,
    feature_sums,
    middle_of_boxes,
    multipliers_of,
    near_blocks,
    rounded_sums,
    sampled,
    slack_of,
    solve_by_interior_point,
    total_slack,
)
from mercer.machines.svm.multiclass import scheme_of
from mercer.machines.svm.primal.barrier import GapGoal, LinearRows, RowBlock, barrier
from mercer.machines.svm.primal.interior_point import SmoothPoint, descend_rounded
from mercer.machines.svm.primal.screening import FeatureProgramme
from mercer.machines.svm.svc import SVC
from mercer.resources import rows_at_once
from mercer.rows.blocks import Block, Kept, Largest, RowBlocks
from mercer.solvers.base import Status, Watch
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.linear_algebra import factor_spd

# --- margin --------------------------------------------------------------------------------------
#
# How far from the largest margin? The duality gap over all rows, block by block.
#
# Multipliers within their box, those of the heavier class scaled so that they balance, bound the
# objective from below; weights and bias bound it from above. As |w|^2 / 2 is strongly convex, a
# gap also bounds how far w is from the optimal one: |w - w*|^2 / 2 is at most the gap.

_TOL = 1e-3
_MARGIN_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class BlockMarginQuantities:
    """Measures of a support vector machine over blocks; of several parts, the worst.

    Attributes
    ----------
    primal, dual : float
        Upper and lower bound on the optimal value, added up over the parts.
    gap, relative_gap : float
        Largest difference of the two, and relative to the objective of its part.
    distance : float
        Bound on how far f is from the optimal one at any row, before the bias, in units of the
        margin: sqrt(2 gap) times the length of the longest feature vector.
    infeasibility : float
        Largest distance of a multiplier from its box, over its width.
    squared_norm, margin : float
        Largest |w|^2, and 1 / |w| of that part.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    distance: float
    infeasibility: float
    squared_norm: float
    margin: float


@certify.register
def _(problem: BlockMargin, value: BlockDuals, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):
        found = _worst([_measure(problem, value, part) for part in range(len(value.intercept))])
    ok = found.relative_gap <= tol and found.infeasibility <= 1e-9
    statement = (
        f"the objective is within {found.relative_gap:.1e} of the optimum, relatively, over all "
        f"rows of the blocks, so that no value of w'phi is off by more than {found.distance:.1e}"
    )
    return Certificate(bool(ok), found, tol, statement)


def _measure(problem: BlockMargin, value: BlockDuals, part: int) -> BlockMarginQuantities:
    w, b = value.weights[:, part], float(value.intercept[part])
    shared = (problem.rows.features, problem.part(part), w, b)
    _, sums = problem.rows.blocks.step(value.multipliers[part], margin_sums, *shared)
    slack, up, down, v_up, v_down, outside, longest = sums
    # scaled down, multipliers of the heavier class stay in their box
    most = max(up, down, _MARGIN_TINY)
    v = (
        min(1.0, down / max(up, _MARGIN_TINY)) * v_up
        + min(1.0, up / max(down, _MARGIN_TINY)) * v_down
    )
    dual = 2.0 * min(up, down) - 0.5 * float(v @ v) if most > 0 else 0.0
    squared = float(w @ w)
    primal = 0.5 * squared + slack
    gap = primal - dual
    gap = max(gap, 0.0) if np.isfinite(gap) else float("inf")
    relative = gap / max(abs(primal), abs(dual), _MARGIN_TINY) if gap > 0 else 0.0
    with np.errstate(divide="ignore"):
        margin = float(1.0 / np.sqrt(squared)) if squared > 0 else float("inf")
    distance = float(np.sqrt(2.0 * gap)) * longest.value
    return BlockMarginQuantities(
        primal, dual, gap, relative, distance, outside.value, squared, margin
    )


def _worst(found: list[BlockMarginQuantities]) -> BlockMarginQuantities:
    def most(name: str) -> float:
        return max(float(getattr(one, name)) for one in found)

    return BlockMarginQuantities(
        sum(one.primal for one in found),
        sum(one.dual for one in found),
        most("gap"),
        most("relative_gap"),
        most("distance"),
        most("infeasibility"),
        most("squared_norm"),
        min(one.margin for one in found),
    )


def margin_sums(
    block: Block, kept: Array, features: Any, part: Any, w: Array, b: float
) -> tuple[Array, tuple[Any, ...]]:
    """Return sums of a block: slack, multipliers of both classes and their functions, lengths."""
    block, y, cost = part.of(block)
    a = np.clip(kept, 0.0, cost)
    outside = float((np.abs(kept - a) / np.maximum(cost, _MARGIN_TINY)).max(initial=0.0))
    slack, longest = 0.0, 0.0
    up, down = np.zeros(len(w)), np.zeros(len(w))
    positive = y > 0
    for rows, F in feature_pieces(block, features):
        slack += float(cost[rows] @ np.maximum(1.0 - y[rows] * (F @ w + b), 0.0))
        up += (a[rows] * positive[rows]) @ F
        down -= (a[rows] * ~positive[rows]) @ F
        longest = max(longest, float(np.einsum("ij,ij->i", F, F).max(initial=0.0)))
    sums = (
        slack, float(a[positive].sum()), float(a[~positive].sum()), up, down,
        Largest(outside), Largest(float(np.sqrt(longest))),
    )  # fmt: skip
    return kept, sums


# --- screened margin -----------------------------------------------------------------------------
#
# Support vector machines over blocks: few passes, whose number does not grow with the rows.
#
# A sample says about where the answer lies. Newton's steps on the hinge loss with a rounded
# corner, over all rows, say it ever better while the rounding narrows: second derivatives come
# from the rows near their corner, whose share of the loss hardly depends on how many rows there
# are. Then the few rows that are left near a corner are brought here and solved for exactly, all
# others being at a bound of their multiplier; one more pass measures the duality gap of all rows,
# and rounds go on until it is small. Where that fails, the interior point method takes all rows.

_FEW = 20_000  # rows that are brought here, ...
_PER_UNKNOWN = 20  # ... or so many for each feature
_COPIES = 6  # of their features: as they come, together, and in the solver
_SHARE = 0.25  # of the budget, for those
_WIDE = 4.0  # the first rounding of a sample, in units of the margin: every row feels it
_NARROWER = 0.25  # the rounding of a sample, from one descent to the next; its errors are large
_NARROWER_ALL = 0.05  # the same over all rows, of whose errors few are left
_OF_ERROR = 0.5  # of the standard error of a sample: rounding that is narrow enough for it
_BAND = 2.0  # times the rounding: within that a row counts as near its corner
_SCREENED_MARGIN_ENOUGH = 0.05  # of what rounding does to the objective: what a step must promise
_BLUR = 0.1  # of C_i d: about what rounding over d adds to the loss of a row that feels it
_UNSEEN = 0.02  # of that bound: second derivatives that say nothing of longer steps
_NEWTON = 30  # steps at one width; mostly one to three
_SLOW = 0.5  # of what the step before promised: more says that rounding is too narrow to go on
_HALVINGS = 12  # of a step
_ROUNDS = 12  # of screening, before all rows are taken
_GAINS = 0.5  # of a gap: what a round with all rows must leave at most, to be worth another
_WARM = 0.7  # of the band times C: where the central path is joined
_FINE = 1e-12  # relative gap to which the rows near a corner are solved
_SCREENED_MARGIN_TINY = float(np.finfo(np.float64).tiny)


def solve_part(problem: BlockMargin, number: int, tol: float, most: int, watch: Watch) -> Ended:
    """Solve one two-class question to a relative duality gap.

    Parameters
    ----------
    problem : BlockMargin
        The rows, and the questions.
    number : int
        Which of them.
    tol : float
        Relative duality gap to reach.
    most : int
        Steps at most: Newton's and those of the interior point method.
    watch : Watch
        The clock.
    """
    search = PlaneSearch(problem, problem.part(number), tol, most, watch)
    found = search.run()
    if found is not None:
        return found
    # many rows on their corner, or digits that features lack
    longer = []
    with watch.keeping(lambda: search.best is not None):
        left = max(1, most - search.steps)
        longer.append(solve_by_interior_point(problem, number, tol, left, watch))
    if not longer:  # the time was over
        return search.ended()
    found = replace(longer[0], steps=longer[0].steps + search.steps)
    # neither may have come to its end: the nearer one counts
    nearer = search.best is not None and search.best[2] < found.gap
    return search.ended(found.status, found.steps) if nearer else found


@dataclass
class PlaneSearch:
    """The state of a search for one plane.

    Attributes
    ----------
    problem, part, tol, most, watch : BlockMargin, PartRows, float, int, Watch
        As `solve_part` takes them.
    steps : int
        Done so far.
    best : tuple or None
        Plane, multipliers with the blocks, and their relative duality gap.
    """

    problem: BlockMargin
    part: PartRows
    tol: float
    most: int
    watch: Watch
    steps: int = 0
    best: tuple[SeparatingPlane, Kept, float] | None = None
    room: int = field(init=False)

    def __post_init__(self) -> None:
        D = self.problem.rows.dimension
        few = max(_FEW, _PER_UNKNOWN * D)
        self.room = rows_at_once(D + 1, few, arrays=_COPIES, share=_SHARE)

    def run(self) -> Ended | None:
        """Return the answer; None where another method must find it."""
        blocks = self.problem.rows.blocks
        up, down, n_up, n_down = blocks.total(class_sums, self.part)
        if self.room < 2 * (self.problem.rows.dimension + 1):
            return None
        balance = np.array([min(1.0, down / up), min(1.0, up / down)])
        kept = blocks.start(middle_of_boxes, self.part, balance)
        with self.watch.keeping(lambda: self.best is not None), np.errstate(all="ignore"):
            if n_up + n_down <= self.room:
                width = self._brought(self._middle(), np.inf, kept)
            else:
                shares = np.array([min(1.0, 0.5 * self.room / n) for n in (n_up, n_down)])
                at, width = self._guessed(shares)
                width = self._narrowed(at, width, kept)
            if width is None and not self._over:
                return None
        return self.ended() if self.best is not None else None

    def ended(self, otherwise: Status = Status.ITERATION_LIMIT, steps: int = 0) -> Ended:
        """Return the best that was found; where it is short of the goal, how that came about."""
        assert self.best is not None
        at, kept, gap = self.best
        status = Status.SOLVED if gap <= self.tol else otherwise
        steps = max(steps, self.steps)
        return Ended(at.w, at.offset, kept, gap, steps, self.watch.stopped or status)

    @property
    def _over(self) -> bool:
        return self.watch.stopped is not None or self.steps >= self.most

    def _tick(self, measure: float) -> bool:
        self.steps += 1
        return self.watch.tick(self.steps, measure) or self._over

    def _middle(self) -> SeparatingPlane:
        """Return the zero function about the mean of the features."""
        rows = self.problem.rows
        total, sums = rows.blocks.total(feature_sums, self.part, rows.features)
        return SeparatingPlane(rows.features, sums / total, np.zeros(rows.dimension), 0.0)

    # --- a sample ---------------------------------------------------------------------------------

    def _guessed(self, shares: Array) -> tuple[SeparatingPlane, float]:
        """Return a plane found on a sample, and the width of rounding that its errors allow."""
        rows = self.problem.rows
        parts = rows.blocks.gather(sampled, self.part, shares, rows.features)
        F, y, cost = (np.concatenate(part) for part in zip(*parts, strict=True))
        centre = F.mean(axis=0)
        P = programme_of(F - centre, y, cost)
        at = SmoothPoint(np.zeros(rows.dimension + 1), P.linear)
        width, end = _WIDE, _OF_ERROR * float(np.sqrt((rows.dimension + 1) / len(y)))
        while True:
            found = descend_rounded(P, at, width, lambda measure: self.watch.late)
            if not found.ok:
                width /= _NARROWER
                break
            at = found
            if width <= end:
                break
            width = max(_NARROWER * width, end)
        v = at.v
        return SeparatingPlane(rows.features, centre, v[:-1], float(v[-1])), min(width, _WIDE)

    # --- rounding over all rows -------------------------------------------------------------------

    def _narrowed(self, at: SeparatingPlane, width: float, kept: Kept) -> float | None:
        """Narrow the rounding until few rows feel it, then solve for those."""
        while True:
            found = self._newton(at, width, kept)
            if found is None or self._over:
                return None
            at, kept, near = found
            if near <= self.room:
                return self._brought(at, _BAND * width, kept)
            width *= max(_NARROWER_ALL, 0.5 * self.room / near)

    def _newton(
        self, at: SeparatingPlane, width: float, kept: Kept
    ) -> tuple[SeparatingPlane, Kept, int] | None:
        """Descend over all rows to about the lowest point of the rounded objective."""
        blocks, band = self.problem.rows.blocks, _BAND * width
        kept, sums = blocks.step(kept, rounded_sums, self.part, at, width, band)
        before = np.inf
        for _ in range(_NEWTON):
            value, pull, H, bound, bent, near = sums
            value += 0.5 * float(at.w @ at.w)
            self._note(at, kept, np.inf)
            gradient = np.append(at.w, 0.0) - pull
            # features that no row near a corner has: the bend of a parabola above the loss
            diagonal = H.diagonal()
            H.flat[:: len(H) + 1] += np.where(diagonal < _UNSEEN * bound, bound, 0.0)
            H.flat[: -1 : len(H) + 1] += 1.0
            if not H[-1, -1] > 0 or not np.isfinite(value):
                return None  # no row near its corner: nothing holds the offset
            step = factor_spd(H)(-gradient)
            promised = -0.5 * float(gradient @ step)
            stop = self._tick(promised / max(abs(value), _SCREENED_MARGIN_TINY))
            enough = promised <= max(
                _SCREENED_MARGIN_ENOUGH * _BLUR * width * bent, 1e-12 * abs(value)
            )
            if enough or stop or (near <= self.room and promised > _SLOW * before):
                return at, kept, near
            before = promised
            length, slope = 1.0, -2.0 * promised
            for _ in range(_HALVINGS):
                there = at.moved(step, length)
                after, sums = blocks.step(kept, rounded_sums, self.part, there, width, band)
                reached = sums[0] + 0.5 * float(there.w @ there.w)
                if reached <= value + 1e-4 * length * slope:
                    at, kept = there, after
                    break
                now = float((np.append(there.w, 0.0) - sums[1]) @ step)
                length *= float(np.clip(slope / (slope - now), 0.1, 0.5)) if now > 0 else 0.5
            else:
                return None
        return at, kept, near

    def _note(self, at: SeparatingPlane, kept: Kept, gap: float) -> None:
        if self.best is None or gap <= self.best[2]:
            self.best = (at, kept, gap)

    # --- the rows near a corner -------------------------------------------------------------------

    def _brought(self, at: SeparatingPlane, band: float, kept: Kept) -> float | None:
        """Solve for the rows near a corner until the gap over all rows is small."""
        blocks, others = self.problem.rows.blocks, np.empty((len(at.w) + 1, 0))
        near, held = self._near(at, others, band), kept
        best: (
            tuple[float, SeparatingPlane, SeparatingPlane, dict[int, tuple[Array, Array]]] | None
        ) = None
        for _ in range(_ROUNDS):
            found = None if near is None else self._solved(at, near, band)
            if near is None or found is None:
                break
            there, b, dual = found
            then = self._near(there, at.unknowns[:, None], band)
            slack = blocks.total(slack_of, self.part, there) if then is None else total_slack(then)
            primal = 0.5 * float(there.w @ there.w) + slack
            gap = (primal - dual) / max(abs(primal), abs(dual), _SCREENED_MARGIN_TINY)
            stop = self._tick(gap)
            gains = best is None or gap < _GAINS * best[0]
            if best is None or gap < best[0]:
                best = (gap, there, at, multipliers_of(near, b))
            if gap <= self.tol or self.best is None or stop:
                kept, _ = blocks.step(kept, decided, self.part, at, multipliers_of(near, b))
                self._note(there, kept, max(gap, 0.0))
                if gap <= self.tol or stop:
                    return gap
            if np.isinf(band) and not gains:
                break  # all rows are here: nothing is left to join
            if then is not None and primal < 0.5 * float(at.w @ at.w) + total_slack(near):
                at, near, others = there, then, at.unknowns[:, None]
            else:  # rows that the new plane has on the other side of their corner join
                others, near = self._joined(at, others, there, band)
        if best is not None and (self.best is None or best[0] < self.best[2]):
            gap, there, at, multipliers = best
            kept, _ = blocks.step(held, decided, self.part, at, multipliers)
            self._note(there, kept, max(gap, 0.0))
        return None

    def _near(self, at: SeparatingPlane, others: Array, band: float) -> list[NearRows] | None:
        blocks = self.problem.rows.blocks
        asked = (self.part, at, others, band, self.room, 2 * self.room)
        found = blocks.total(near_blocks, *asked).parts
        return None if found is None else list(found)

    def _joined(
        self, at: SeparatingPlane, others: Array, there: SeparatingPlane, band: float
    ) -> tuple[Array, list[NearRows] | None]:
        """Let rows join that lie between two planes; where they are too many, half of the way."""
        step = there.unknowns - at.unknowns
        for _ in range(_HALVINGS):
            more = np.column_stack([others, at.unknowns + step])
            near = self._near(at, more, band)
            if near is not None:
                return more, near
            step = 0.5 * step
        return others, None

    def _solved(
        self, at: SeparatingPlane, near: list[NearRows], band: float
    ) -> tuple[SeparatingPlane, Array, float] | None:
        """Return the plane, b = y a of the near rows, and the dual objective of all rows."""
        F = np.concatenate([one.F for one in near])
        y = np.concatenate([one.y for one in near])
        cost = np.concatenate([one.cost for one in near])
        pull = np.sum([one.pull for one in near], axis=0)
        level = sum(one.level for one in near)
        if not len(y):
            return None
        P = programme_of(F, y, cost)
        part = RowBlock(
            P.rows, P.linear, P.lower, P.upper, P.shift, P.epsilon,
            np.diag(np.append(np.ones(F.shape[1]), 0.0)), pull,
        )  # fmt: skip
        top = float(cost.max())
        size = top * float(np.square(cost / top).sum() / (cost / top).sum())
        mu = size * (1.0 if np.isinf(band) else _WARM * band)
        answer = barrier(part, np.append(at.w, at.b), mu, size, GapGoal(_FINE), self._ticked)
        if not answer.near:
            return None
        b = y * np.clip(y * answer.b, 0.0, cost)
        total = pull + P.rows.rmatvec(b)
        w = total[:-1]
        dual = level + float(y @ b) - 0.5 * float(w @ w)
        dual -= abs(float(total[-1]))  # sums that do not balance, each by a margin
        there = SeparatingPlane(at.features, at.centre, answer.v[:-1], float(answer.v[-1]))
        return there, b, dual

    def _ticked(self, measure: float) -> bool:
        return self._over or self.watch.late


def programme_of(F: Array, y: Array, cost: Array) -> FeatureProgramme:
    """Return the programme of rows in memory: b = y a between 0 and y C."""
    group, D = np.zeros(len(y), dtype=np.int8), F.shape[1]
    rows = LinearRows(np.ascontiguousarray(F), None, group, 1, np.zeros(D))
    none, signed = np.zeros(len(y)), y * cost
    lower, upper = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
    return FeatureProgramme(rows, np.asarray(y, dtype=np.float64), lower, upper, none, none,
                            np.zeros(1))  # fmt: skip


# --- svc -----------------------------------------------------------------------------------------
#
# Support vector classifiers over blocks.

_GAP = 1e-8  # relative duality gap to aim at: the last digits cost a step or two
_SVC_ENOUGH = 1e-6  # the same, where rounding ends the way: as good as what is asked elsewhere
_MAX_STEPS = 100
_OF_ROWS = ("_n_rows", "support_", "support_vectors_", "dual_coef_", "n_support_", "_support_codes")


@fit_blocks.register
def fit_svc(machine: SVC, blocks: RowBlocks) -> None:
    """Fit to rows in blocks by an interior point method; what belongs to single rows stays there.

    `tol` bounds the relative duality gap, whichever the criterion.
    """
    machine._check_parameters()
    refuse_options(machine, nu=None, slack="l1", probability=False, warm_start=False)
    if not is_real(machine.C) or not np.isfinite(machine.C):
        refuse(machine, "C", machine.C, "be a finite number on rows in blocks")
    codes, totals = class_codes(machine, blocks)
    remember_columns(machine, blocks)
    rows = feature_rows(machine, blocks)
    ends = np.concatenate([[0], np.cumsum(np.ceil(totals))]).astype(np.int64)
    scheme = scheme_of(machine.multiclass, ends)
    signs = np.nan_to_num(scheme.signs(np.arange(len(machine.classes_))))
    problem = BlockMargin(rows, codes, signs, float(np.asarray(machine.C)))
    watch, tol = watch_of(machine), min(_GAP, machine.tol)
    most = _MAX_STEPS if machine.max_iter is None else int(machine.max_iter)
    found = []
    for part in range(signs.shape[1]):
        found.append(solve_part(problem, part, tol, most, watch))
        if watch.stopped and part + 1 < signs.shape[1]:
            raise_unfinished(machine, part + 1, signs.shape[1], watch.stopped)
    weights = np.column_stack([one.w for one in found])
    offsets = np.array([one.b for one in found])
    value = Coefficients(np.empty((0, len(found))), offsets, weights)
    ends_well = [
        one.status if one.gap > min(_SVC_ENOUGH, machine.tol) else Status.SOLVED for one in found
    ]
    worst = watch.stopped or next((one for one in ends_well if not one.ok), Status.SOLVED)
    steps = sum(one.steps for one in found)
    machine.solution_ = ended("BlockInteriorPoint", value, worst, steps, watch)
    machine.n_iter_ = max(1, steps)
    for name in _OF_ROWS:
        machine.__dict__.pop(name, None)
    machine._scheme, machine._calibration = scheme, None
    machine._expansion = FeatureExpansion(rows.features, weights, offsets)
    machine.intercept_ = float(offsets[0]) if len(found) == 1 else offsets
    answer = BlockDuals(weights, offsets, tuple(one.multipliers for one in found))
    certified(machine, problem, answer, tol=min(machine.tol, 1e-3))


def raise_unfinished(machine: SVC, done: int, parts: int, status: Status) -> None:
    """Say that some two-class questions have no answer yet."""
    raise RuntimeError(
        f"SVC: {status.value}: {done} of {parts} two-class questions were answered; nothing was "
        "changed"
    )
