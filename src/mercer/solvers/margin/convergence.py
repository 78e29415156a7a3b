"""From a first descent to an answer that float64 confirms, by whichever criterion."""

from __future__ import annotations

import numpy as np

from mercer.solvers.base import Status
from mercer.solvers.margin.criteria import Criterion, Gap, Violation
from mercer.solvers.margin.descent import BoxState, Engine
from mercer.solvers.margin.newton import largest, newton
from mercer.solvers.margin.refine import SHARE, adopt, inaccurate_parts, refine

_RESOLVED = 50.0  # roundings of F: what a descent can resolve before its level is taken off
_NEAR_ENOUGH = 1e-2  # of the spread of F: from farther away Newton steps cycle
_FINER = 0.1  # of the violation: the next aim when the criterion is not met
_SMALLEST = 1e-14  # of the largest F that b could make: float64 resolves no less
_TOGETHER = 0.5  # of the largest aim: programmes down to here are descended with together
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
        if ends[-1].ok and part.problem.marginless(part.b, part.F):
            ends[-1] = Status.NO_MARGIN
    return ends


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
    """Return a violation that float64 just resolves."""
    return _SMALLEST * float(part.problem.gram.diag().max(initial=0.0) * np.abs(part.b).sum())


def _refined(engine: Engine, part: BoxState, criterion: Criterion, tol: float) -> Status:
    if not criterion.settled(part.problem):
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
            return Status.SOLVED
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
