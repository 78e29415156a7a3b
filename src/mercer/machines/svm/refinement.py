"""From a first descent to an answer that float64 confirms, by whichever criterion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram.accurate_products import exact_rows, exact_rows_of_several
from mercer.machines.svm.active_set_newton import largest, newton
from mercer.machines.svm.descent import BoxState, Criterion, Engine, Gap, Violation
from mercer.machines.svm.problem import median
from mercer.solvers.base import Status

_RESOLVED = 50.0  # roundings of F: what a descent can resolve before its level is taken off
_NEAR_ENOUGH = 1e-2  # of the spread of F: from farther away Newton steps cycle
_FINER = 0.1  # of the violation: the next aim when the criterion is not met
_SMALLEST = 1e-14  # of the largest F that b could make: float64 resolves no less
_TOGETHER = 0.5  # of the largest aim: programmes down to here are descended with together
_COMPARED = 1e6  # operations by other formulas, where float64 hardly resolves the aim
_ROUNDS = 24
_TRIES = 4


def converge(
    engine: Engine, parts: list[BoxState], criterion: Criterion, tol: float
) -> list[Status]:
    """Descend with all parts together, then check, refine and finish those that need it."""
    if not all(np.isfinite(part.F).all() for part in parts):
        return [Status.NOT_FINITE] * len(parts)
    aim = min(criterion.first(part.problem, part.F, tol) for part in parts)
    for part in parts:
        part.aim = aim
    resolved = _RESOLVED * engine.rounding
    resolved *= max(float(np.abs(part.F).max(initial=0.0)) for part in parts)
    unknown = [part for part in parts if part.problem.scale is None]
    resolved = max([resolved, *map(_smallest, unknown)])
    engine.descend(parts, max(SHARE * aim, resolved))
    if isinstance(criterion, Violation):
        _to_own_scale(engine, unknown, criterion, tol, resolved)
    if engine.watch.stopped:
        return [_ending(engine, part) for part in parts]
    sound = [part for part in parts if not _failed(engine, part)]
    wrong = {id(part) for part in inaccurate_parts(engine, sound)}
    ends = []
    for part in parts:
        if _failed(engine, part):
            ends.append(_ending(engine, part))
        elif isinstance(criterion, Gap):
            ends.append(_finish(engine, part, criterion, tol))
        elif id(part) in wrong or part.violation > part.aim:
            ends.append(_refined(engine, part, criterion, tol))
        else:
            ends.append(Status.SOLVED)
    return [_with_margin(part, status) for part, status in zip(parts, ends, strict=True)]


def _with_margin(part: BoxState, status: Status) -> Status:
    """Return the status, less than solved where the margin is zero or hidden by rounding."""
    if not status.ok:
        return status
    if part.problem.marginless(part.b, part.F):
        return Status.NO_MARGIN
    return Status.INACCURATE if part.problem.margin_is_hidden(part.b, part.F) else status


def _to_own_scale(
    engine: Engine, parts: list[BoxState], criterion: Violation, tol: float, resolved: float
) -> None:
    """Descend on where the answer, now that there is one, says that less is allowed.

    Programmes that are allowed about as much go together.
    """
    left = parts
    while left and not engine.watch.stopped:
        for part in left:
            part.aim = _lower(part, criterion, tol)
        left = [
            part
            for part in left
            if part.violation > part.aim >= resolved
            and not engine.is_spent(part)
            and not part.problem.marginless(part.b, part.F)
        ]
        within = max(_TOGETHER * max((part.aim for part in left), default=0.0), resolved)
        moved = [part for part in left if part.violation > within]
        engine.descend(moved, within)
        stuck = {id(part) for part in moved if part.violation > within}
        left = [part for part in left if id(part) not in stuck]


def _lower(part: BoxState, criterion: Criterion, tol: float) -> float:
    """Return the violation to aim at: what the answer allows, or less where it has no margin."""
    allowed = criterion.allowed(part.problem, part.b, part.F, tol)
    return allowed if allowed > 0 else _FINER * min(part.aim, max(part.violation, 0.0))


def _smallest(part: BoxState) -> float:
    """Return a violation that float64 just resolves, at a feature vector of median length."""
    lengths = np.sqrt(np.abs(part.problem.gram.diag()))
    return _SMALLEST * median(lengths) * float(lengths @ np.abs(part.b))


def _refined(engine: Engine, part: BoxState, criterion: Criterion, tol: float) -> Status:
    if not criterion.is_known_before(part.problem):
        return _finish(engine, part, criterion, tol)
    done = refine(engine, part, part.aim).confirmed
    return Status.SOLVED if done else _ending(engine, part)


def _finish(engine: Engine, part: BoxState, criterion: Criterion, tol: float) -> Status:
    """Lower the violation until the criterion is met, by Newton steps once they are safe."""
    spread = max(float(np.ptp(part.F)), np.finfo(float).tiny)
    tries, aim, smallest = _TRIES, part.aim, _smallest(part)
    for _ in range(_ROUNDS):
        if part.problem.marginless(part.b, part.F):
            break
        state = refine(engine, part, aim)
        problem, rows = part.problem, state.rows
        allowed = criterion.allowed(problem, part.b, part.F, tol)
        if criterion.measure(problem, part.b, part.F) <= allowed:
            return _lowered(engine, part, criterion, rows, allowed)
        if not state.confirmed or engine.watch.stopped or aim < smallest:
            break
        near = part.violation <= _NEAR_ENOUGH * spread
        if near and tries and 0 < np.count_nonzero(part.free()) <= largest():
            few, tries = problem.among(rows, part.b), tries - 1
            found = newton(few, part.b[rows], part.F[rows], criterion, 0.5 * allowed)
            moved = 0.0 if found is None else adopt(engine, part, rows, found.b, found.F)
            if found is not None and found.reached:
                # the objective that a gap is relative to is another one after a long step
                met = criterion.measure(problem, part.b, part.F) <= criterion.allowed(
                    problem, part.b, part.F, tol
                )
                if isinstance(criterion, Gap) and met and moved < 0.25 * state.width:
                    return Status.SOLVED  # no other row has come near enough to decide
                continue
        aim = _FINER * min(aim, max(part.violation, np.finfo(float).tiny))
        if isinstance(criterion, Violation):
            aim = SHARE * allowed if allowed > 0 else aim
            if aim < smallest:
                break
    return _ending(engine, part)


def _lowered(
    engine: Engine, part: BoxState, criterion: Criterion, rows: Array, allowed: float
) -> Status:
    """Lower a violation below what is allowed until rounding cannot undo it, if steps do that.

    The certificate adds up K b in another order. Where float64 hardly resolves what is allowed, a
    violation that is just met by one sum is not by another.
    """
    if isinstance(criterion, Gap) or allowed >= _smallest(part):
        return Status.SOLVED
    least = (part.violation, part.b, part.F.copy())
    for _ in range(_TRIES):
        noise = _noise(part, rows)
        if part.violation + noise <= allowed or noise >= allowed or engine.watch.stopped:
            break
        rows = refine(engine, part, _FINER * (allowed - noise)).rows
        if part.violation < least[0]:
            least = (part.violation, part.b, part.F.copy())
    part.violation, part.b, part.F = least
    return Status.SOLVED


def _noise(part: BoxState, rows: Array) -> float:
    """Return what rounding of sums may add to a violation, as other formulas for K b show it.

    F may be off by that at both ends of a pair.
    """
    seen = part.problem.product_error(part.b, part.problem.linear - part.F, _COMPARED)
    return 2.0 * float(seen[0][rows].max(initial=0.0)) if seen is not None else 0.0


def _failed(engine: Engine, part: BoxState) -> bool:
    unknown = not np.isfinite(part.violation) and part.violation != -np.inf
    return unknown or (part.violation > part.aim and engine.is_spent(part))


def _ending(engine: Engine, part: BoxState) -> Status:
    if engine.watch.stopped:
        return engine.watch.stopped
    if not np.isfinite(part.violation):
        return Status.SOLVED if part.violation == -np.inf else Status.NOT_FINITE
    if part.problem.marginless(part.b, part.F):
        return Status.NO_MARGIN
    return Status.ITERATION_LIMIT if engine.is_spent(part) else Status.INACCURATE


# --- truth in float64: is F what the stored K says, and if not, descend again from where it is ---
#
# A K stored in float32 moves the problem: the error of F grows with the coefficients. So after a
# descent a sample of the rows that decide is evaluated anew from the points. If it differs, all
# rows that could decide are, and pair steps go on from there. The error of what they add is as
# small as the step they add, so a few rounds end at the optimum of the exact problem.

SHARE = 0.9  # of the tolerance: what a first descent aims at, so that small errors are allowed
_AGAIN = 0.7  # of the tolerance: what later descents aim at
_FASTEST = 0.02  # of the violation: what one round may ask of float32
_NEGLIGIBLE = 0.05  # of the tolerance: an error of F that needs no repair
_WIDTH = 100.0  # of the tolerance: how near to deciding rows are looked at if no error is known
_SAMPLE = 128  # of each part
_PARTS = 12  # looked at together, those with the largest coefficients first
_UNSEEN = 10.0  # times the largest error by size that was seen: what other parts may have
_REFINEMENTS = 12
EXACT = 1e-10  # relative rounding of K below which F is as good as its coefficients are small
DOUBLE = 1e-11  # relative error of float64 entries, with room for cancelling distances
_TINY = np.finfo(float).tiny
_SNAPPED = 2e-12  # of the sum of |b|: a variable that near a bound is put there by a descent


@dataclass(frozen=True)
class Refined:
    """How a refinement ended.

    Attributes
    ----------
    confirmed : bool
        Whether the violation is small enough with F in float64.
    rows : int array
        Where F was evaluated in float64.
    width : float
        By how much F of any other row would have to change for that row to decide.
    """

    confirmed: bool
    rows: Array
    width: float


def inaccurate_parts(engine: Engine, parts: list[BoxState]) -> list[BoxState]:
    """Return the parts whose F is wrong by more than a small share of their aim, by a sample.

    The error is in proportion to the coefficients. Parts are looked at in the order of their size,
    until the largest error by size that was seen, and more, is bearable for those that remain.
    """
    if not parts:
        return []
    sizes = [_size(part) for part in parts]
    if engine.rounding < EXACT:
        largest = float(np.abs(parts[0].unwrapped.base.diag()).max(initial=0.0))
        allowed = _NEGLIGIBLE * min(part.aim for part in parts)
        shifts = [_largest_shift(part) for part in parts]
        if all(
            (DOUBLE * largest + _SNAPPED * shift) * size <= allowed
            for shift, size in zip(shifts, sizes, strict=True)
        ):
            for part in parts:
                part.error = 0.0
            return []
    order, worst = np.argsort(sizes)[::-1], 0.0
    for first in range(0, len(parts), _PARTS):
        batch = [parts[k] for k in order[first : first + _PARTS]]
        _look_at_samples(batch)
        worst = max([worst, *(part.error / max(_size(part), _TINY) for part in batch)])
        for k in order[first + _PARTS :]:
            parts[k].error = _UNSEEN * worst * sizes[k]
        if all(parts[k].error <= _bearable(parts[k]) for k in order[first + _PARTS :]):
            break
    return [part for part in parts if not part.error <= _bearable(part)]


def _size(part: BoxState) -> float:
    return float(np.abs(part.b).sum())


def _look_at_samples(parts: list[BoxState]) -> None:
    """Compare F of a sample of each part with float64."""
    looked_at = []
    for part in parts:
        rows = np.union1d(_sample(part, _SAMPLE), _snapped(part, _NEGLIGIBLE * part.aim))
        if _snapping(part) > _bearable(part):  # of a margin so thin; any row may be astray
            rows = np.arange(len(part.b))
        looked_at.append(rows)
    products = exact_rows_of_several(
        [(part.problem.gram, rows, part.b) for part, rows in zip(parts, looked_at, strict=True)]
    )
    for part, rows, product in zip(parts, looked_at, products, strict=True):
        note_error(part, rows, product)


def note_error(part: BoxState, rows: Array, products: Array) -> Array:
    """Return F on some rows from their K b in float64; note how far off the one kept is."""
    true = part.problem.linear[rows] - products
    part.error = float(np.abs(true - part.F[rows]).max(initial=0.0))
    return np.asarray(true)


def _bearable(part: BoxState) -> float:
    return max(_NEGLIGIBLE * part.aim, (part.aim - part.violation) / 3)


def _sample(part: BoxState, count: int) -> Array:
    """Return the rows nearest to deciding, and free ones evenly spaced: always the same."""
    problem, free = part.problem, np.flatnonzero(part.free())
    rising, falling = problem.rising(part.b, part.F), problem.falling(part.b, part.F)
    third = min(len(part.b), max(1, count // 3))
    top = np.argpartition(-rising, third - 1)[:third]
    bottom = np.argpartition(falling, third - 1)[:third]
    return np.unique(np.concatenate([top, bottom, free[:: max(1, 3 * len(free) // count)]]))


def _largest_shift(part: BoxState) -> float:
    shift = part.unwrapped.shift
    return 0.0 if shift is None else float(shift.max(initial=0.0))


def _snapped(part: BoxState, allowed: float) -> Array:
    """Return the variables whose own F would move by more than `allowed` were they off their bound.

    Squared slack of a row that hardly counts shifts its diagonal so far that a coefficient below
    the rounding of sums of b is a slack of its own. A descent takes it for zero, and F as it was.
    """
    shift = part.unwrapped.shift
    if shift is None:
        return np.zeros(0, dtype=np.int64)
    near = _SNAPPED * float(np.abs(part.b).sum())
    return np.flatnonzero((shift * near > allowed) & ~part.free())


def _release(engine: Engine, part: BoxState, tol: float) -> None:
    """Take those variables to the lowest point of their own parabola.

    So short a step moves no F but their own, and the sums of b by less than their rounding.
    """
    rows = _snapped(part, _NEGLIGIBLE * tol)
    if not len(rows):
        return
    problem, near = part.problem, _SNAPPED * float(np.abs(part.b).sum())
    level = problem.spread(problem.offsets(part.b, part.F))
    up = np.maximum(problem.rising(part.b, part.F) - level, 0.0)[rows]
    down = np.minimum(problem.falling(part.b, part.F) - level, 0.0)[rows]
    step = (up + down) / problem.gram.diag()[rows]
    few = (step != 0) & (np.abs(step) <= near)
    rows, step = rows[few], step[few]
    part.F, part.b = part.F - engine.applied(part, rows, step), part.b.copy()
    part.b[rows] = np.clip(part.b[rows] + step, problem.lower[rows], problem.upper[rows])
    part.violation = problem.violation(part.b, part.F)


def refine(engine: Engine, part: BoxState, tol: float) -> Refined:
    """Go on from the exact gradient until its violation is at most `tol`, or nothing helps."""
    known, least = np.isfinite(part.error), max(10 * tol, _snapping(part))
    width = max(10 * part.error, least) if known else max(_WIDTH * tol, least)
    last, stuck = np.inf, 0
    rows, seen = np.zeros(0, dtype=np.int64), 0.0
    for _ in range(_REFINEMENTS):
        rows, seen = part.near(width), width
        sure = _look(part, rows) <= width / 2
        _release(engine, part, tol)
        width = max(5 * part.error, least)
        if part.violation <= tol and sure:
            return Refined(True, rows, seen)
        stuck = stuck + 1 if part.violation > 0.5 * last else 0
        if stuck > 2 or engine.is_spent(part):
            break
        if engine.watch.tick(engine.steps, part.violation):
            break
        last = part.violation
        _go_on(engine, part, rows, max(_AGAIN * tol, _FASTEST * part.violation))
    return Refined(False, rows, seen)


def _snapping(part: BoxState) -> float:
    """Return how far off F may be after a descent that put variables on their bounds."""
    largest = float(np.abs(part.unwrapped.base.diag()).max(initial=0.0))
    return 2 * _SNAPPED * largest * float(np.abs(part.b).sum())


def _look(part: BoxState, rows: Array) -> float:
    """Evaluate F on some rows in float64; return and note the largest correction."""
    part.F[rows] = note_error(part, rows, exact_rows(part.problem.gram, rows, part.b))
    part.violation = part.problem.violation(part.b, part.F)
    return part.error


def _go_on(engine: Engine, part: BoxState, rows: Array, tol: float) -> None:
    """Move the given rows only, from their exact gradient.

    The multiplier is taken off F: float32 then resolves the small rest of it.
    """
    level = part.problem.spread(part.problem.offsets(part.b, part.F))[rows]
    few = BoxState(part.problem.among(rows, part.b), part.b[rows], part.F[rows] - level)
    few.steps, few.rounds = part.steps, part.rounds
    engine.descend([few], tol)
    part.steps, part.rounds = few.steps, few.rounds
    adopt(engine, part, rows, few.b, few.F + level)


def adopt(engine: Engine, part: BoxState, rows: Array, b: Array, F: Array) -> float:
    """Take over new values of some variables, and their gradient; correct that of the others.

    Returns the largest correction of the others.
    """
    step = b - part.b[rows]
    moved = np.flatnonzero(step)
    change = engine.applied(part, rows[moved], step[moved])
    part.F, part.b = part.F - change, part.b.copy()
    part.b[rows], part.F[rows] = b, F
    part.violation = part.problem.violation(part.b, part.F)
    change[rows] = 0.0
    return float(np.abs(change).max(initial=0.0))
