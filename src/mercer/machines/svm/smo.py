"""Box programmes on a stored K: pair steps, checked against float64 and carried on where needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.contract import StoredMatrix
from mercer.gram import DenseGram, PrecomputedGram
from mercer.gram.policy import descents_at_once
from mercer.machines.svm.descent import (
    LEVELS,
    VIOLATION,
    BoxState,
    Criterion,
    Engine,
    at_artificial_bound,
    begin,
    curvature_along,
    curvature_among,
    largest_diagonal,
    unbounded,
    with_finite_bounds,
)
from mercer.machines.svm.nu_tube import STEPS_FIRST, STEPS_FIRST_PER_VARIABLE, is_nu_tube, restart
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many
from mercer.machines.svm.refinement import converge
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_ITERATIONS_PER_ROW = 100
_LEAST_ITERATIONS = 10_000_000
# where the tolerance is relative to the margin found: a thin one may ask for any number of steps
_LEAST_ITERATIONS_OWN_SCALE = 300_000


@dataclass(frozen=True)
class SMO(Solver):
    """Second-order pair steps on a K that is stored, for one programme or many that share it.

    A K in float32 is checked: rows that decide are evaluated anew in float64 from the points, and
    the descent goes on from there where that differs.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end.
    max_iter : int or None
        Largest number of pair steps of a programme; None takes max(10^7, 100 n).
    criterion : Violation or Gap
        What `tol` speaks of: the largest violation of a pair (LIBSVM's criterion), or the relative
        duality gap. For gaps down to 10^-9 Newton steps finish.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = (BoxQP, Many)

    def _obstacle(self, problem: BoxQP | Many) -> str | None:
        """Take box programmes that have a feasible point, and share one stored Gram."""
        refused = refusal("SMO", problem)
        if refused is not None:
            return refused
        if not isinstance(programmes(problem)[0].unwrapped.base, DenseGram | PrecomputedGram):
            return (
                "SMO is for a stored Gram; use WorkingSets() or InteriorPoint(), or store a Gram "
                "of your own: PrecomputedGram(gram.dense())"
            )
        return None

    def run(self, problem: Any, watch: Watch, start: Any = None) -> Solution:
        """Move pairs until the tolerance, a limit or the callback ends it."""
        problems = programmes(problem)
        begins = starts(problem, start)
        limit = self.max_iter or limit_of(problems)
        if watch.tick(0, np.inf):  # compiled loops are done with small problems before they ask
            parts = [resting(p, b) for p, b in zip(problems, begins, strict=True)]
            return conclude(self, problem, parts, [Status.STOPPED] * len(parts), watch)
        base: Any = problems[0].unwrapped.base
        engine = StoredEngine(base.stored, watch, limit)
        parts = [begin(engine, p, b) for p, b in zip(problems, begins, strict=True)]
        ends = answer(engine, parts, self.criterion, self.tol)
        return conclude(self, problem, parts, ends, watch)


def refusal(name: str, problem: BoxQP | Many) -> str | None:
    """Return why box programmes are not ones with feasible points on one Gram."""
    problems = programmes(problem)
    if not problems:
        return "there is no programme to answer"
    base = problems[0].unwrapped.base
    if any(p.unwrapped.base is not base for p in problems):
        return "the programmes do not share a Gram: answer them one by one, with Each()"
    if any(p.group is not None and (p.group < 0).any() for p in problems):
        return f"{name} moves pairs within a sum; for variables in no sum factor the Gram"
    if any(p.infeasible() for p in problems):
        return "no point of the box has the required sums: the problem is infeasible"
    return None


def programmes(problem: BoxQP | Many) -> tuple[BoxQP, ...]:
    """See one programme as a family of one."""
    return problem.problems if isinstance(problem, Many) else (problem,)


def starts(problem: BoxQP | Many, start: Any) -> list[Array | None]:
    """Return the coefficients of an earlier answer to each programme, if there is one."""
    if start is None:
        return [None] * len(programmes(problem))
    duals = start.parts if isinstance(problem, Many) else (start,)
    return [np.asarray(dual.coef, dtype=np.float64) for dual in duals]


def limit_of(problems: tuple[BoxQP, ...]) -> int:
    """Return the pair steps that a programme gets when nobody says."""
    largest = max(len(p.linear) for p in problems)
    thin = any(p.scale is None for p in problems)
    least = _LEAST_ITERATIONS_OWN_SCALE if thin else _LEAST_ITERATIONS
    return max(least, _ITERATIONS_PER_ROW * largest)


def answer(engine: Engine, parts: list[BoxState], criterion: Criterion, tol: float) -> list[Status]:
    """Settle all parts; those of nu regression that take long begin anew from their tube."""
    limit = engine.limit
    tubes = [
        k
        for k, part in enumerate(parts)
        if part.problem.group is not None and is_nu_tube(part.problem)
    ]
    if tubes:
        largest = max(len(parts[k].b) for k in tubes)
        engine.limit = min(limit, max(STEPS_FIRST, STEPS_FIRST_PER_VARIABLE * largest))
    ends = _converge_all(engine, parts, criterion, tol)
    left = [k for k in tubes if ends[k] is Status.ITERATION_LIMIT and parts[k].steps < limit]
    for k in left:
        engine.limit = (parts[k].steps + limit) // 2  # if in vain, the other half is left
        with engine.watch.keeping():  # the part stays feasible
            restart(engine, parts[k], criterion, tol)
    engine.limit = limit
    if left:
        again = _converge_all(engine, [parts[k] for k in left], criterion, tol)
        for k, end in zip(left, again, strict=True):
            ends[k] = end
    return ends


def _converge_all(
    engine: Engine, parts: list[BoxState], criterion: Criterion, tol: float
) -> list[Status]:
    """Converge all parts; infinite bounds are stood for by ones that are raised while active."""
    problems, ends = [part.problem for part in parts], [Status.SOLVED] * len(parts)
    left = list(range(len(parts)))
    for level in range(LEVELS):
        for k in left:
            parts[k].problem = with_finite_bounds(problems[k], level)
        found = [Status.TIME_LIMIT] * len(left)
        with engine.watch.keeping():  # parts are feasible at all times
            found = converge(engine, [parts[k] for k in left], criterion, tol)
        pressed = [at_artificial_bound(parts[k].problem, problems[k], parts[k].b) for k in left]
        for k, end in zip(left, found, strict=True):
            ends[k], parts[k].problem = end, problems[k]
        left = [k for k, presses in zip(left, pressed, strict=True) if presses]
        for k in left:
            if unbounded(problems[k], parts[k].b) or (level + 1 == LEVELS and ends[k].ok):
                ends[k] = Status.INFEASIBLE
        left = [k for k in left if ends[k].ok]
        if not left:
            break
    return ends


def conclude(
    solver: Solver,
    problem: BoxQP | Many,
    parts: list[BoxState],
    ends: list[Status],
    watch: Watch,
    detail: str = "",
) -> Solution:
    """Put the answers together; the ending is the first that is not the wished one."""
    curvatures = {} if parts[0].unwrapped.base.valid else _negative_curvatures(parts, ends)
    for k in curvatures:
        ends[k] = Status.NOT_CONVEX
    wrong = [k for k, end in enumerate(ends) if not end.ok]
    status = watch.stopped or (ends[wrong[0]] if wrong else Status.SOLVED)
    seen = [detail] if detail else []
    if curvatures:
        seen.insert(0, f"a direction of curvature {min(curvatures.values()):.2g} was seen")
    if wrong and len(parts) > 1:
        seen.insert(0, f"{len(wrong)} of {len(parts)} programmes, number {wrong[0]} first")
    duals = tuple(Dual(p.b, p.problem.intercepts(p.b, p.F)) for p in parts)
    value = Duals(duals) if isinstance(problem, Many) else duals[0]
    return report(solver, value, status, sum(p.steps for p in parts), watch, "; ".join(seen))


def _negative_curvatures(parts: list[BoxState], ends: list[Status]) -> dict[int, float]:
    """Return the negative curvature that was seen in parts that think they are done."""
    done = (Status.SOLVED, Status.INACCURATE, Status.NO_MARGIN)
    finished = [k for k, end in enumerate(ends) if end in done]
    size = largest_diagonal(parts[0].unwrapped.base)
    found = {k: curvature_along(parts[k], size) for k in finished}
    curvatures = {k: curvature for k, curvature in found.items() if curvature is not None}
    if (
        finished
        and not curvatures
        and (shared := curvature_among([parts[k] for k in finished])) is not None
    ):
        return dict.fromkeys(finished, shared)
    return curvatures


def resting(problem: BoxQP, start: Array | None) -> BoxState:
    """Return the feasible point where a run that is stopped at once stands."""
    b = problem.feasible_near(np.zeros(len(problem.linear)) if start is None else start)
    return BoxState(problem, b, problem.linear - problem.gram @ b)


# --- the engine on a stored K: compiled pair steps, all parts at once ----------------------------


class StoredEngine(Engine):
    """Pair steps on a matrix.

    Parameters
    ----------
    K : StoredMatrix
        float32 or float64.
    watch : Watch
        Told the steps of all runs together.
    limit : int
        Pair steps allowed for each programme.
    """

    def __init__(self, K: StoredMatrix, watch: Watch, limit: int) -> None:
        super().__init__(watch, limit, float(np.finfo(K.dtype).eps))
        self.K = K

    def descend(self, parts: list[BoxState], tol: float) -> None:
        """Run the compiled loop on all parts together, or on as many as the memory allows."""
        if len(parts) < 2:
            self._descend(parts, tol)
            return
        count = descents_at_once(self.K, max(len(part.b) for part in parts))
        for first in range(0, len(parts), count):
            self._descend(parts[first : first + count], tol)

    def _descend(self, parts: list[BoxState], tol: float) -> None:
        before = self.steps
        parts = [part for part in parts if part.steps < self.limit]
        if not parts:
            return
        left = self.limit - max(part.steps for part in parts)
        answers = self.K.box_qps(
            [part.box() for part in parts],
            tol,
            left,
            lambda steps, violation: self.watch.tick(before + steps, violation),
        )
        for part, answer in zip(parts, answers, strict=True):
            part.b, part.F, part.violation = answer.b, answer.gradient, answer.violation
            part.error, part.steps = np.inf, part.steps + answer.iterations
        self.steps += sum(answer.iterations for answer in answers)

    def applied(self, part: BoxState, changed: Array, step: Array) -> Array:
        """Read the rows of the variables that moved; sums are in float64."""
        held = part.unwrapped
        product = self.K.combination(*part.on_base(changed, step))
        product = product if held.index is None else product[held.index]
        if held.shift is not None:
            product[changed] += held.shift[changed] * step
        return product
