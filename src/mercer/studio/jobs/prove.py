"""`prove`: the gap between primal and dual, and the violation, as they fall.

The same fit is stopped after 1, 2, 3, 5, ... steps, and each solution is verified from the points
alone: its certificate holds the primal and the dual value, the duality gap, and the largest
violation of the optimality conditions.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from mercer.solvers.base import Status
from mercer.studio.drawing import Fitted, SceneRows
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell, bounds_of, certificate_of, machine_of, status_of
from mercer.studio.limits import RefusalError
from mercer.studio.scenes import Scene, rows_of

_GROWTH = 1.6  # steps of a fit by those of the one before
_MOST = 10_000_000  # steps
_NUMBERS = ("primal", "dual", "gap", "violation")


def prove_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Record the duality gap and the violation of a fit down to its tolerance."""
    scene = bench.scene(request)
    if not scene.entry.proves:
        raise RefusalError(
            f"{scene.entry.name} has a direct solver: it has no duality gap to follow"
        )
    rows = rows_of(scene, bench.table, bench.limits)
    steps: list[dict[str, Any]] = []
    most, machine, begun = 1, None, time.perf_counter()
    while machine is None or _goes_on(machine, most, begun, bench):
        machine = _fitted(scene, rows, most)
        steps.append(_step(machine))
        tell({"step": steps[-1]})
        most = max(most + 1, int(_GROWTH * most))
    return {
        "steps": steps,
        "certificate": certificate_of(machine),
        "status": status_of(machine.solution_),
        "bounds": bounds_of(Fitted(machine, rows)),
    }


def _goes_on(machine: Any, most: int, begun: float, bench: Bench) -> bool:
    late = time.perf_counter() - begun > bench.limits.long_seconds
    stopped = machine.solution_.status is Status.ITERATION_LIMIT
    return stopped and most < _MOST and not late


def _fitted(scene: Scene, rows: SceneRows, most: int) -> Any:
    machine = machine_of(scene, rows).set_params(max_iter=most)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping early is intended
        return scene.entry.fit(machine, rows)


def _step(machine: Any) -> dict[str, Any]:
    quantities = machine.certificate_.quantities
    found = {name: getattr(quantities, name, None) for name in _NUMBERS}
    solution = machine.solution_
    return {"iterations": solution.iterations, "seconds": solution.seconds, **found}
