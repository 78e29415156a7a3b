"""From a first descent to an answer that float64 confirms, by whichever criterion."""

from __future__ import annotations

import numpy as np

from mercer.solvers.base import Status
from mercer.solvers.criteria import Criterion, Gap
from mercer.solvers.descent import Engine, Part
from mercer.solvers.newton import largest, newton
from mercer.solvers.refine import SHARE, adopt, astray, refine

_RESOLVED = 50.0  # roundings of F: what a descent can resolve before its level is taken off
_NEAR_ENOUGH = 1e-2  # of the spread of F: from farther away Newton steps cycle
_FINER = 0.1  # of the violation: the next aim when the criterion is not met
_SMALLEST = 1e-14  # of the largest F that b could make: float64 resolves no less
_ROUNDS = 24
_TRIES = 4


def settle(engine: Engine, parts: list[Part], criterion: Criterion, tol: float) -> list[Status]:
    """Descend with all parts together, then check, refine and finish those that need it."""
    aims = [criterion.first(part.F, tol) for part in parts]
    aim = min(aims)
    size = max(float(np.abs(part.F).max(initial=0.0)) for part in parts)
    engine.descend(parts, max(SHARE * aim, _RESOLVED * engine.rounding * size))
    if engine.watch.stopped:
        return [_ending(engine, part) for part in parts]
    sound = [part for part in parts if not _failed(engine, part, aim)]
    wrong = {id(part) for part in astray(engine, sound, aim)}
    ends = []
    for part in parts:
        if _failed(engine, part, aim):
            ends.append(_ending(engine, part))
        elif isinstance(criterion, Gap):
            ends.append(_finish(engine, part, criterion, tol, aim))
        elif id(part) in wrong or part.violation > aim:
            done = refine(engine, part, aim).confirmed
            ends.append(Status.SOLVED if done else _ending(engine, part))
        else:
            ends.append(Status.SOLVED)
    return ends


def _finish(engine: Engine, part: Part, criterion: Criterion, tol: float, aim: float) -> Status:
    """Lower the violation until the criterion is met, by Newton steps once they are safe."""
    spread = max(float(np.ptp(part.F)), np.finfo(float).tiny)
    smallest = _SMALLEST * float(part.problem.gram.diag().max(initial=0.0) * np.abs(part.b).sum())
    tries = _TRIES
    for _ in range(_ROUNDS):
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
                if moved < 0.25 * state.width:
                    return Status.SOLVED  # no other row has come near enough to decide
                continue
        aim = _FINER * min(aim, max(part.violation, np.finfo(float).tiny))
    return _ending(engine, part)


def _failed(engine: Engine, part: Part, aim: float) -> bool:
    unknown = not np.isfinite(part.violation) and part.violation != -np.inf
    return unknown or (part.violation > aim and part.steps >= engine.limit)


def _ending(engine: Engine, part: Part) -> Status:
    if engine.watch.stopped:
        return engine.watch.stopped
    if not np.isfinite(part.violation):
        return Status.SOLVED if part.violation == -np.inf else Status.NOT_FINITE
    return Status.ITERATION_LIMIT if part.steps >= engine.limit else Status.INACCURATE
