"""Fit the estimator of a scene and report its status."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from mercer.kernels import Kernel, ParseError, parse, resolve
from mercer.progress import heard
from mercer.solvers.base import Progress
from mercer.studio.drawing import Fitted, SceneRows
from mercer.studio.limits import RefusalError
from mercer.studio.scenes import Scene
from mercer.theory import machine_bound

Tell = Callable[[dict[str, Any]], None]
_BETWEEN = 0.15  # seconds between messages about steps
_ONE_CLASS = "all points are of one class: paint some of another one"
_TRACE = 400  # steps that are sent: more, and the curve has more points than pixels


def machine_of(scene: Scene, rows: SceneRows, time_limit: float | None = None) -> Any:
    """Make the estimator of a scene, with its kernel."""
    entry = scene.entry
    given: dict[str, Any] = dict(scene.parameters)
    if scene.kernel is not None:
        given[entry.kernel_name] = kernel_of(scene, rows)
    machine = entry.kind(**given)
    if time_limit is not None and "time_limit" in machine.get_params(deep=False):
        machine.set_params(time_limit=time_limit)
    return machine


def kernel_of(scene: Scene, rows: SceneRows) -> Kernel:
    """Read the kernel of a scene; a name alone takes its scale from the rows."""
    text = scene.kernel or "linear"
    try:
        parse(text)  # here the place of a mistake is known
        kernel: Kernel = resolve(text, rows.X) if len(rows.X) else parse(text)
        return kernel.with_params(**scene.kernel_numbers) if scene.kernel_numbers else kernel
    except ParseError as error:
        raise RefusalError(error.reason, parameter="kernel", position=error.position) from error
    except (TypeError, ValueError) as error:
        raise RefusalError(str(error), parameter="kernel") from error


class Steps:
    """Tells the page the steps of a solver, some at a time.

    Parameters
    ----------
    tell : callable
        Takes the fields of a message.
    """

    def __init__(self, tell: Tell) -> None:
        self.tell, self.untold = tell, list[list[float]]()
        self.due = time.monotonic() + _BETWEEN

    def __call__(self, progress: Progress) -> None:
        """Keep a step, and tell those kept if it is time."""
        self.untold.append([progress.iteration, progress.seconds, progress.measure])
        if time.monotonic() >= self.due:
            self.tell({"trace": self.untold[-_TRACE:]})
            self.untold = []
            self.due = time.monotonic() + _BETWEEN


def fit(scene: Scene, rows: SceneRows, tell: Tell, time_limit: float) -> Fitted:
    """Fit, telling the page how far it is."""
    machine = machine_of(scene, rows, time_limit)
    listens = "callback" in machine.get_params(deep=False)
    if listens:
        machine.set_params(callback=Steps(tell))
    if len(rows.X) == 0:
        raise RefusalError("there are no points yet: paint some, choose a preset or open a table")
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, heard(lambda text: tell({"words": text})):
        warnings.simplefilter("always")
        try:
            scene.entry.fit(machine, rows)
        except ValueError as error:
            if scene.task == "classes" and len(np.unique(rows.y[rows.y >= 0])) < 2:  # type: ignore[index,operator]
                raise RefusalError(_ONE_CLASS) from error
            raise
    if listens:
        machine.set_params(callback=None)  # files hold no functions
    said = tuple(dict.fromkeys(str(one.message) for one in caught))
    return Fitted(machine, rows, said, time.perf_counter() - begun)


def how_it_ended(fitted: Fitted) -> dict[str, Any]:
    """Return status, certificate, trace and score of a fit."""
    machine = fitted.machine
    solution = getattr(machine, "solution_", None)  # nothing is solved for a rectangle
    return {
        "machine": type(machine).__name__,
        "status": None if solution is None else status_of(solution),
        "warnings": fitted.warnings,
        "certificate": None if solution is None else certificate_of(machine),
        "trace": [] if solution is None else trace_of(solution),
        "score": score_of(fitted),
        "bounds": [] if solution is None else bounds_of(fitted),
    }


def status_of(solution: Any) -> dict[str, Any]:
    """Return why a solver ended."""
    return {
        "name": solution.status.name,
        "ok": solution.status.ok,
        "words": solution.status.value,
        "detail": solution.detail,
        "iterations": solution.iterations,
        "solver": solution.solver,
        "seconds": solution.seconds,
    }


def certificate_of(machine: Any) -> dict[str, Any]:
    """Return the certificate in words and numbers."""
    found = machine.certificate_
    numbers = asdict(found.quantities)
    return {
        "ok": bool(found.ok),
        "tol": found.tol,
        "words": found.statement,
        "numbers": [[name.replace("_", " "), value] for name, value in numbers.items()],
    }


def trace_of(solution: Any) -> list[list[float]]:
    """Return the steps of the solver, not too many of them."""
    trace = solution.trace
    if len(trace) > _TRACE:
        chosen = np.unique(np.linspace(0, len(trace) - 1, _TRACE).astype(int))
        trace = [trace[k] for k in chosen]
    return [[one.iteration, one.seconds, one.measure] for one in trace]


def score_of(fitted: Fitted) -> dict[str, Any] | None:
    """Return the accuracy or the explained fraction of the variance."""
    machine, rows = fitted.machine, fitted.rows
    if rows.y is None or len(rows.X) < 2:
        return None
    if is_classifier(machine):
        known = rows.y >= 0
        right = machine.predict(rows.X[known]) == rows.y[known]
        return {"name": "accuracy on these points", "value": float(np.mean(right))}
    if is_regressor(machine):
        return {
            "name": "R2 on these points",
            "value": machine.score(rows.X, rows.y),
        }
    return None


def bounds_of(fitted: Fitted) -> list[dict[str, Any]]:
    """Return the generalization bound, if one applies."""
    machine, rows = fitted.machine, fitted.rows
    found: list[dict[str, Any]] = []
    quantities = machine.certificate_.quantities
    share = getattr(quantities, "support_fraction", None)
    if share is not None and is_classifier(machine):
        found.append(
            {
                "words": f"the leave-one-out error is at most {100 * share:.1f} %, the fraction of "
                "points that are support vectors",
                "value": share,
                "assumes": "the same parameters for each fit",
            }
        )
    if type(machine).__name__ == "SVC" and len(machine.classes_) == 2:
        bound = machine_bound(machine, rows.X, rows.y)
        assumed = "; ".join(bound.assumptions)
        found.append({"words": bound.statement, "value": bound.value, "assumes": assumed})
    return found
