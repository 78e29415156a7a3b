"""From an interior solution to a vertex, dual coordinate descent, and the fallback."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.box_programs import FeatureBox
from mercer.gram import FactoredGram, exact
from mercer.gram.policy import STORED_UNSEEN
from mercer.machines.svm.descent import VIOLATION, Criterion, begin, filled
from mercer.machines.svm.primal.barrier import BarrierAnswer, RowBlock, Saddle
from mercer.machines.svm.primal.screening import FeatureProgramme, Piece
from mercer.machines.svm.problem import BoxQP, Dual
from mercer.machines.svm.smo import StoredEngine, answer
from mercer.resources import within_budget
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- feature box ---------------------------------------------------------------------------------
#
# A programme in the space of features, written for the compiled descent on single variables.


def feature_box(P: FeatureProgramme, b: Array, offsets: Array) -> FeatureBox:
    """Write the programme, from b and the multipliers of its sums."""
    return FeatureBox(
        P.linear,
        P.lower,
        P.upper,
        P.rows.group,
        P.totals,
        b,
        offsets,
        P.shift if P.shift.any() else None,
        P.epsilon if P.epsilon.any() else None,
    )


# --- crossover -----------------------------------------------------------------------------------
#
# From a point inside the box to a vertex-like answer: bounds assigned, free variables solved.
#
# An interior point method ends a little inside every bound. Here each row is told to be at a
# bound, at zero, on a curved piece, or free; the free ones are then solved for exactly, all
# others being what they are.

_ROUNDS = 20
_NARROW = 128  # unknowns up to which a round costs next to nothing
_MORE_ROUNDS = 200
_REPEATS = 12  # of a solution with what is left over
_AT_CORNER = 1e-8  # of the largest residual
_SHORTEST = 1e-6  # step along a direction that leads to other pieces
_CANCELLED = 1e-8  # of what a row does to its own residual


@dataclass(frozen=True, eq=False)
class Vertex:
    """An answer with bounds assigned exactly.

    Attributes
    ----------
    b : (n,) array
        All variables.
    v : (m,) array
        Weights and offsets.
    """

    b: Array
    v: Array


def crossover(
    P: FeatureProgramme,
    part: RowBlock,
    near: Array,
    piece: Piece,
    answer: BarrierAnswer,
    residual_tol: float,
) -> Vertex:
    """Assign the bounds of the rows `near`, keep the pieces of all others.

    Parameters
    ----------
    P : Programme
        All rows.
    part : Part
        What was solved.
    near : (m,) int array
        Its rows.
    piece : Piece
        Where all others stand.
    answer : BarrierAnswer
        Where the solver ended.
    told : float
        A residual that the solver can tell from none.
    """
    local = FeatureProgramme(
        part.rows, part.linear, part.lower, part.upper, part.shift, part.epsilon, P.totals
    )
    v, inside = answer.v, np.clip(answer.b, part.lower, part.upper)
    active_set = _ActiveSet(local, part, v, inside, residual_tol)
    for _ in range(_ROUNDS if len(v) > _NARROW else _MORE_ROUNDS):
        active_set.solve()
        if active_set.least <= active_set.enough or not active_set.exchange():
            break
    return assembled(P, near, piece, *active_set.best)


class _ActiveSet:
    """Which rows are free, changed one at a time until all are where their residuals put them."""

    def __init__(
        self, local: FeatureProgramme, part: RowBlock, v: Array, inside: Array, residual_tol: float
    ) -> None:
        self.local, self.part, self.v = local, part, v
        t = local.residuals(v)
        self.at = local.duals_at(t)
        self.residual_size = _residual_size(part, t, inside)
        rounding = 4 * np.finfo(float).eps * part.rows.length() ** 2 * float(np.abs(inside).sum())
        self.enough = max(1e-12 * self.residual_size, rounding)
        self.width = _widths(part, inside, self.residual_size)
        self.bottom, self.top = _room(part, inside)
        resolution = min(self.residual_size, np.sqrt(residual_tol * self.residual_size))
        with np.errstate(invalid="ignore"):
            distance = self.at.distance_to_corner / resolution
            undecided = np.abs(inside - self.at.b) / self.width > distance
        self.free = undecided & (part.shift == 0) & (part.lower < part.upper)
        b = np.where(self.free, inside, self.at.b)
        self.b = np.where(np.isfinite(b), b, inside)
        self.best, self.least = (v, self.b), _error(local, part, v, self.b, self.free)
        error = _error(local, part, v, inside, part.lower < part.upper)
        if error < self.least:
            self.best, self.least = (v, inside), error

    def solve(self) -> None:
        """Solve for the free rows, the others being where they are."""
        before = self.v
        solved, curved = _solve_free(self.local, self.part, before, self.b, self.free)
        self.v, b = solved.v, solved.b
        self.excess = np.where(
            self.free, np.maximum(self.bottom - b, b - self.top) / self.width, -np.inf
        )
        b = np.where(self.free, np.clip(b, self.bottom, self.top), b)
        self.at = self.local.duals_at(self.local.residuals(self.v))
        bent = (self.part.shift > 0) & ~self.free
        left = bent & ~(curved & self.at.curved)
        self.turned = bool((bent & (curved != self.at.curved)).any())
        if self.turned and not self.free.any():
            self.v = self._shortened(before, self.v)
            self.at = self.local.duals_at(self.local.residuals(self.v))
            left, self.turned = bent, bool((self.v != before).any())
        self.b = np.where(left, self.at.b, b)
        error = _error(self.local, self.part, self.v, self.b, self.free)
        if error < self.least:
            self.best, self.least = (self.v, self.b), error

    def _shortened(self, v: Array, aim: Array) -> Array:
        """Go from v towards the aim for as long as the primal objective falls."""
        value, step = self._value(v), 1.0
        while step > _SHORTEST:
            if self._value(v + step * (aim - v)) < value:
                return v + step * (aim - v)
            step *= 0.25
        return v

    def _value(self, v: Array) -> float:
        part, t = self.part, self.local.residuals(v)
        b = self.local.duals_at(t).b
        loss = t * b - part.epsilon * np.abs(b) - 0.5 * part.shift * b * b
        return float(0.5 * v @ part.matrix @ v - part.pulled @ v + loss.sum())

    def exchange(self) -> bool:
        """Let one row be free, or bound; one at a time: one too many makes others leave too."""
        at, free, b = self.at, self.free, self.b
        if self.turned:
            return True  # rows went to another piece: the next step knows
        if self.excess.max(initial=0.0) > 0:
            free[int(np.argmax(self.excess))] = False
            return True
        wrong = np.where(~free & ~at.curved & (at.b != b), at.distance_to_corner, 0.0)
        # rows that depend on other free ones do not reach their corner
        off_corner = np.where(free & np.isfinite(at.b), at.distance_to_corner, 0.0)
        if off_corner.max(initial=0.0) > max(1e-9 * self.residual_size, wrong.max(initial=0.0)):
            k = int(np.argmax(off_corner))
            self.b = b.copy()
            free[k], self.b[k] = False, at.b[k]
            return True
        if wrong.any():
            free[int(np.argmax(wrong))] = True
            return True
        return False


def _residual_size(part: RowBlock, t: Array, b: Array) -> float:
    """Return the size of residuals; where all vanish, what rounding leaves of those that cancel."""
    rounding = _CANCELLED * part.rows.length() ** 2 * float(np.abs(b).sum())
    sizes = np.abs(part.linear).max(initial=0.0), np.abs(t).max(initial=0.0), rounding
    return float(max(sizes)) or 1.0


def _error(local: FeatureProgramme, part: RowBlock, v: Array, b: Array, free: Array) -> float:
    """Return the largest residual wrong for where its row is, or that v and b disagree by."""
    at = local.duals_at(local.residuals(v))
    off = np.where(
        free, at.distance_to_corner, np.where((at.b != b) & ~at.curved, at.distance_to_corner, 0.0)
    )
    off[part.lower == part.upper] = 0.0
    unbalanced = part.matrix @ v - part.pulled - part.rows.rmatvec(b)
    weights = unbalanced[: len(v) - part.rows.offsets]
    return max(float(off.max(initial=0.0)), part.rows.length() * float(np.linalg.norm(weights)))


def assembled(P: FeatureProgramme, near: Array, piece: Piece, v: Array, b: Array) -> Vertex:
    """Put the rows `near` and all others together; where these are all there are, repair sums."""
    every = piece.b.copy()
    if len(near) < len(every):
        moved = P.duals_at(P.residuals(v)).b if piece.curved.any() else every
        every = np.where(piece.curved, moved, every)
    every[near] = b
    return Vertex(with_sums(P, every) if P.outside is None else every, v)


def with_sums(P: FeatureProgramme, b: Array) -> Array:
    """Take what rounding left of the sums from free variables, bounds being kept."""
    inside = np.flatnonzero((b > P.lower) & (b < P.upper))
    room = np.minimum(b[inside] - P.lower[inside], P.upper[inside] - b[inside])
    room = np.where(np.isfinite(room), room, np.abs(b[inside]))
    room = np.where(P.epsilon[inside] > 0, np.minimum(room, np.abs(b[inside])), room)
    for g, total in enumerate(P.totals):
        of_group = P.rows.group[inside] == g
        m, share = inside[of_group], room[of_group]
        every = len(P.totals) == 1 and P.rows.group.min(initial=0) == 0
        for _ in range(3):
            missing = float(total - (b.sum() if every else b[P.rows.group == g].sum()))
            if not missing or not share.sum() > abs(missing):
                break
            b[m] += missing * (share / share.sum())
    return b


def _room(part: RowBlock, b: Array) -> tuple[Array, Array]:
    """Return the box of each row, cut at zero on the side that b is on."""
    split = (part.epsilon > 0) & (part.lower < 0) & (part.upper > 0)
    bottom = np.where(split & (b > 0), 0.0, part.lower)
    return bottom, np.where(split & (b <= 0), 0.0, part.upper)


def _widths(part: RowBlock, b: Array, residual_size: float) -> Array:
    width = part.upper - part.lower
    cancelled = _CANCELLED * residual_size / part.rows.length() ** 2
    coef_size = max(float(np.abs(b).max(initial=0.0)), cancelled)
    return np.maximum(np.where(np.isfinite(width), width, coef_size), np.finfo(float).tiny)


def _solve_free(
    local: FeatureProgramme, part: RowBlock, v: Array, b: Array, free: Array
) -> tuple[Vertex, Array]:
    """Solve M v = g + A'b with t at its corner on free rows; repeated against rounding."""
    which, t = np.flatnonzero(free), local.residuals(v)
    at = local.duals_at(t)
    curved = at.curved & ~free
    inverse = np.where(curved, 1.0 / np.where(curved, part.shift, 1.0), 0.0)
    # rows at the corner resist as soon as it is passed: without them steps overshoot
    stiff = curved | (
        ~free & (part.shift > 0) & (at.distance_to_corner <= _AT_CORNER * np.abs(t).max(initial=0))
    )
    resist = np.where(stiff, 1.0 / np.where(stiff, part.shift, 1.0), 0.0)
    matrix = part.matrix + part.rows.gram(resist) if stiff.any() else part.matrix
    if part.rows.offsets:
        fixed = part.rows.sums((free | stiff).astype(np.float64)) == 0  # nothing moves them
        fixed &= part.matrix.diagonal()[-part.rows.offsets :] == 0
        matrix = matrix + np.diag(np.append(np.zeros(len(v) - len(fixed)), fixed))
    rows, corner = part.rows.take(which).dense(), _corners(part, which, t)
    saddle = Saddle(matrix, rows)
    b = np.where(curved, at.b, b)
    least = np.inf
    for _ in range(_REPEATS):
        off = corner - t[which]
        unbalanced = part.matrix @ v - part.pulled - part.rows.rmatvec(b)
        left = float(np.linalg.norm(unbalanced) + np.linalg.norm(off))
        if not left < 0.5 * least:
            break
        least = left
        dv, dx = saddle.solve(-unbalanced, -off)
        v, t = v + dv, local.residuals(v + dv)
        b = b - inverse * part.rows.matvec(dv)  # not from t, whose rounding the inverse multiplies
        b[which] += dx
    return Vertex(b, v), curved


def _corners(part: RowBlock, which: Array, t: Array) -> Array:
    """Return the residual at which each free row rests: epsilon, signed by the side it is on."""
    epsilon = part.epsilon[which]
    split = (part.lower[which] < 0) & (part.upper[which] > 0)
    one_sided = np.where(part.upper[which] > 0, epsilon, -epsilon)
    return np.where(split, np.where(t[which] > 0, epsilon, -epsilon), one_sided)


# --- linear answer -------------------------------------------------------------------------------
#
# The ends of solvers in the space of features: what they take, what they hand back, how good.
#
# Whatever a solver found, the answer is inside its box and has its sums; and what is said of it
# is measured on all rows, from the features.

_ROUNDING = 1e-12  # of a sum
_NOTHING = 1e-13  # of the linear terms: all that b could do to F; and of its box
_NEAR_TOL = 1e-2  # of the tolerance: rounding that needs a second look


def linear_refusal(name: str, problem: BoxQP) -> str | None:
    """Return why a box programme is not one in the space of features."""
    if not isinstance(problem.unwrapped.base, FactoredGram):
        return (
            f"{name} needs a kernel with an explicit finite feature map (Linear, low-degree "
            "Polynomial); use solver=SMO()"
        )
    if problem.infeasible():
        return "no point of the box has the required sums: the problem is infeasible"
    return None


def admissible(problem: BoxQP, P: FeatureProgramme, b: Array) -> Array:
    """Return b inside its box and with its sums, moved as little as that takes."""
    shut = replace(problem, lower=P.lower, upper=P.upper)  # what cannot move does not
    b = np.clip(np.nan_to_num(b, posinf=0.0, neginf=0.0), P.lower, P.upper)
    weight = np.maximum(len(b) * P.rows.longest() ** 2 + P.shift, np.finfo(float).tiny)
    answering = float(np.abs(P.linear).max(initial=0.0)) / weight
    # of the box, too: where features are tiny, b does nothing to F wherever in its box it is
    nothing = np.abs(b) <= _NOTHING * np.minimum(answering, P.upper - P.lower)
    b = with_sums(P, np.where(nothing, np.clip(0.0, P.lower, P.upper), b))
    if _misses_sums(shut, b):
        b = _filled(shut, b, exact_gradient(problem, P, b))
    return _with_idle(problem, P, np.clip(shut.feasible_near(b), P.lower, P.upper))


def _misses_sums(problem: BoxQP, b: Array) -> bool:
    """Return whether sums are off by more than rounding."""
    groups = zip(problem.members(), problem.totals, strict=True)
    return any(
        abs(total - b[m].sum()) > _ROUNDING * (np.abs(b[m]).sum() + abs(total))
        for m, total in groups
    )


def _filled(problem: BoxQP, b: Array, F: Array) -> Array:
    """Repair sums by few variables, those most willing."""
    b = b.copy()
    rising, falling = problem.rising(b, F), problem.falling(b, F)
    for m, total in zip(problem.members(), problem.totals, strict=True):
        missing = float(total - b[m].sum())
        lower = np.maximum(problem.lower[m], b[m] - abs(missing))
        upper = np.minimum(problem.upper[m], b[m] + abs(missing))
        b[m] = filled(b[m], (rising if missing > 0 else falling)[m], lower, upper, float(total))
    return b


def _with_idle(problem: BoxQP, P: FeatureProgramme, b: Array) -> Array:
    """Set the rows that were left out where their own shift holds them."""
    shift = problem.shift
    if shift is None or not (idle := shift > P.shift).any():
        return b
    F = exact_gradient(problem, P, b)
    others = np.flatnonzero(~idle)
    offsets = problem.among(others, b).offsets(b[others], F[others])
    t = (F - problem.spread(offsets))[idle]
    past = np.sign(t) * np.maximum(np.abs(t) - problem.epsilons[idle], 0.0)
    b = b.copy()
    b[idle] = np.clip(past / shift[idle], problem.lower[idle], problem.upper[idle])
    b[others] = problem.among(others, b).feasible_near(b[others])
    return b


def exact_gradient(problem: BoxQP, P: FeatureProgramme, b: Array) -> Any:
    """Return F = p - K b from the features, nothing else being trusted."""
    rows, shift = P.rows, problem.shift
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        F = problem.linear - rows.values(rows.features.rmatvec(b))
        return F if shift is None else F - shift * b


def meets(
    criterion: Criterion, problem: BoxQP, P: FeatureProgramme, b: Array, F: Array, tol: float
) -> Status:
    """Judge an answer by the criterion, F being exact; where rounding could matter, twice."""
    if not (np.isfinite(F).all() and np.isfinite(b).all()):
        return Status.NOT_FINITE
    gradients = [F]
    if rounding_of(P, b) > _NEAR_TOL * tol:
        gradients.append(problem.linear - exact(problem.gram) @ b)  # in another order
    met = all(
        criterion.measure(problem, b, each) <= criterion.allowed(problem, b, each, tol)
        for each in gradients
    )
    return Status.SOLVED if met else Status.INACCURATE


def fallen_short(status: Status, problem: BoxQP, b: Array, F: Array) -> Status:
    """Return the ending, with the reason where an answer is good for nothing: no margin."""
    if status not in (Status.SOLVED, Status.INACCURATE):
        return status
    if problem.marginless(b, F):
        return Status.NO_MARGIN
    return Status.INACCURATE if problem.margin_is_hidden(b, F) else status


def rounding_of(P: FeatureProgramme, b: Array) -> float:
    """Estimate what gradients made of sums of this size are known to: one rounding of all terms.

    It decides what is tried, and when an answer is looked at twice; certificates have their own.
    """
    return float(np.finfo(float).eps * P.rows.length() ** 2 * np.abs(b).sum())


# --- dual descent --------------------------------------------------------------------------------
#
# Box programmes whose Gram is factored, one variable at a time: for features too many to square.
#
# Text has tens of thousands of columns, of which a row fills a hundred: F'F cannot be formed, but
# a step on one variable costs only the row of it. The compiled descent (`Features.descend`) keeps
# the sums by multipliers; here its answer is made feasible, judged in float64 on all rows, and
# carried on with a smaller tolerance where it fell short.

_DUAL_DESCENT_EPOCHS = 1000
_FIRST = 0.5  # of the tolerance
_SHARPER = 0.25
_NO_PULL = 1e-6  # of the length of the rows: a margin thinner than that is none


@dataclass(frozen=True)
class DualDescent(Solver):
    """Coordinate descent in random order with shrinking; repeatable.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end.
    max_iter : int or None
        Largest number of passes over the variables; None takes 1000.
    criterion : Violation or Gap
        What `tol` speaks of: the largest violation of a pair, or the relative duality gap.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = BoxQP

    def _obstacle(self, problem: BoxQP) -> str | None:
        """Take box programmes with a factored Gram that have a feasible point."""
        return linear_refusal("DualDescent", problem)

    def run(self, problem: BoxQP, watch: Watch, start: Any = None) -> Solution:
        """Descend, repair the sums, judge; go on while that helps."""
        P = FeatureProgramme.of(problem)
        rows = choose_backend().features(P.rows.factor, P.rows.index)
        n = len(problem.linear)
        b = problem.feasible_near(np.zeros(n) if start is None else start.coef)
        offsets = np.zeros(len(P.totals))
        F, epochs, most = exact_gradient(problem, P, b), 0, self.max_iter or _DUAL_DESCENT_EPOCHS
        within, status = _FIRST * self.criterion.first(problem, F, self.tol), Status.INACCURATE
        if watch.tick(0, np.inf):
            return self._report(problem, b, F, watch.stopped or Status.STOPPED, 0, watch)
        for _ in range(_ROUNDS):
            box = feature_box(P, b, offsets)
            found = rows.descend(box, within, most - epochs, watch.tick)
            epochs, offsets = epochs + found.epochs, found.offsets
            b = admissible(problem, P, found.b)
            F = exact_gradient(problem, P, b)
            status = meets(self.criterion, problem, P, b, F, self.tol)
            if status.ok or status is Status.NOT_FINITE or watch.stopped:
                break
            if epochs >= most:
                status = Status.INFEASIBLE if _contradictory(P, b) else Status.ITERATION_LIMIT
                break
            allowed = self.criterion.allowed(problem, b, F, self.tol)
            within *= _SHARPER
            if self.criterion is VIOLATION and allowed > 0:
                within = min(within, _FIRST * allowed)
        status = status if status.ok or not watch.stopped else watch.stopped
        return self._report(problem, b, F, status, epochs, watch)

    def _report(
        self, problem: BoxQP, b: Array, F: Array, status: Status, epochs: int, watch: Watch
    ) -> Solution:
        status = fallen_short(status, problem, b, F)
        return report(self, Dual(b, problem.intercepts(b, F)), status, epochs, watch)


def _contradictory(P: FeatureProgramme, b: Array) -> bool:
    """Return whether b, grown without bound, points where nothing pulls back but all is gained."""
    if not (np.isinf(P.upper - P.lower) & (P.shift == 0)).any():
        return False
    pull = float(np.linalg.norm(P.rows.rmatvec(b))) / P.rows.length()
    gain = float(P.linear @ b - P.epsilon @ np.abs(b))
    return gain > 0 and pull <= _NO_PULL * float(np.abs(b).sum())


# --- fallback ------------------------------------------------------------------------------------
#
# When the interior point method falls short: descents that go on from where it ended.
#
# Pair steps on K itself where that is small, steps on single variables in the space of the
# features where it is not. Neither is fast here: both go on while something is gained, until
# about a second's work is done.

_ENTRIES = 1e9  # of K or of the features that steps may read: about a second
_STEPS = 1_000_000  # on a K of few rows, where a step takes longer than to read it
_FEWEST = 10  # passes over the features, however many those are
_FALLBACK_EPOCHS = 300


def fall_back(
    problem: BoxQP,
    P: FeatureProgramme,
    b: Array,
    criterion: Criterion,
    tol: float,
    watch: Watch,
    most: int | None = None,
) -> tuple[Array, int]:
    """Return a better b if one is found, and its pair steps or passes, `most` of them allowed.

    The b given must be inside its box and have its sums.
    """
    if _can_store(problem):
        base = problem.unwrapped.base
        steps = int(min(_STEPS, _ENTRIES / base.shape[0]))
        engine = StoredEngine(choose_backend().stored(base.dense()), watch, most or steps)
        part = begin(engine, problem, b)
        answer(engine, [part], criterion, tol)
        return part.b, part.steps
    F = problem.linear - problem.gram @ b
    offsets = np.atleast_1d(np.asarray(problem.offsets(b, F)))
    within = 0.5 * criterion.first(problem, F, tol)
    rows = choose_backend().features(P.rows.factor, P.rows.index)
    epochs = int(min(_FALLBACK_EPOCHS, max(_FEWEST, _ENTRIES / (len(b) * P.rows.width))))
    found = rows.descend(feature_box(P, b, offsets), within, most or epochs, watch.tick)
    return found.b, found.epochs


def _can_store(problem: BoxQP) -> bool:
    """Return whether K is small, fits the budget, and is written well within the time left."""
    base = problem.unwrapped.base
    points, width = base.shape[0], base.factor.shape[1]
    alone = problem.group is not None and bool((problem.group < 0).any())
    if alone or max(len(problem.linear), points) > STORED_UNSEEN:
        return False
    left = deadline.seconds_left()
    in_time = left is None or points**2 * width < left * _ENTRIES
    # K, and room for the copies that are made of parts of it
    return in_time and within_budget(2 * 8 * points * points)
