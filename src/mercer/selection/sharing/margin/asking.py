"""What is asked of a solver for points that are one path on a fold, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mercer.array_types import Array
from mercer.gram.exact_parts import Float64Copy
from mercer.machines.base.sharing import FoldPath, Sharing
from mercer.problems import MarginPath, PathDuals
from mercer.selection.running.task import Point
from mercer.selection.sharing.base import Stop, Stopped
from mercer.solvers import SMOPath, Watch
from mercer.solvers.choose import choose


@dataclass(frozen=True, eq=False)
class GridPoint:
    """A point of the grid that is answered by a path."""

    position: int
    point: Point
    machine: Any
    sharing: Sharing


@dataclass(frozen=True, eq=False)
class Asked:
    """Points that are one path on a fold.

    Attributes
    ----------
    members : sequence of GridPoint
        The points.
    fold : int
        The fold.
    scored : list of tuples
        Rows that are scored, and their targets.
    path : FoldPath or None
        The problem, and what becomes of its answer; None where no fit is possible.
    feasible : list of int
        Which settings have an answer.
    float64 : Float64Copy or None
        What makes K in float64.
    """

    members: Sequence[GridPoint]
    fold: int
    scored: Sequence[tuple[Array, tuple[Any, ...]]]
    path: FoldPath | None
    feasible: list[int]
    float64: Float64Copy | None

    def problem(self) -> MarginPath | None:
        """Return the settings that have an answer; None where no solver of paths takes them."""
        if self.path is None or not self.feasible:
            return None
        problem: MarginPath = self.path.problem
        if len(self.feasible) < len(problem.settings):
            kept = tuple(problem.settings[number] for number in self.feasible)
            problem = replace(problem, settings=kept)
        return problem if isinstance(choose(problem), SMOPath) else None


def answer(asked: Sequence[Asked], stop: Stop) -> list[PathDuals | None]:
    """Answer what is asked, all of it together; None for what no solver of paths takes."""
    found: list[PathDuals | None] = [None] * len(asked)
    alike: dict[tuple[float, Any], list[tuple[int, MarginPath]]] = {}
    for number, one in enumerate(asked):
        if (problem := one.problem()) is not None:
            key = (one.members[0].sharing.tol, one.float64)
            alike.setdefault(key, []).append((number, problem))
    for (tol, float64), some in alike.items():
        # not by `solve`: what is not solved is fitted, and that fit tells how it ended
        watch = Watch(lambda _: stop())
        solver = SMOPath(tol=tol, float64=float64)
        solutions = solver.run_all([problem for _, problem in some], watch)
        if watch.stopped or stop():
            raise Stopped
        for (number, _), solution in zip(some, solutions, strict=True):
            found[number] = solution.value
    return found
