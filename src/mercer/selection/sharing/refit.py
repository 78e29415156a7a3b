"""No sharing: any estimator, every point and fold on its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from typing import Any

from sklearn.pipeline import Pipeline

from mercer.array_types import Array
from mercer.machines.base.approximate import with_a_share_of_memory
from mercer.machines.base.similarity import trying_settings
from mercer.resources import MemoryBudgetError
from mercer.selection.running.rows import Rows, take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped


class Refit(Group):
    """One point, fitted anew for each fold.

    Parameters
    ----------
    task : Task
        What is tuned.
    point : dict
        The setting.
    position : int
        Where it is in the list of points.
    folds : sequence of int or None
        Folds to judge; all by default.
    alone : bool
        Whether nothing else is at work meanwhile: one fold that needs more than its share of the
        memory.
    """

    def __init__(
        self,
        task: Task,
        point: Point,
        position: int,
        folds: Sequence[int] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self.task, self.point, self.alone = task, point, alone
        self.points = (position,)
        self.units = tuple((fold,) for fold in (folds or range(len(task.splits))))

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Fit and score one fold."""
        (fold,) = self.units[unit]
        tried = trying_settings() if self.point else nullcontext()
        with tried, nullcontext() if self.alone else with_a_share_of_memory():
            judged = judge_fit(self.task, self._rows, fold, stop)
        if not self.alone and judged.failure.startswith(MemoryBudgetError.__name__):
            raise MemoryBudgetError(judged.failure)  # alone it may have more
        return {(self.points[0], fold): judged}

    def _rows(self) -> Rows:
        return Rows.of(self.task.machine_at(self.point), self.task.X)


def refits(
    task: Task,
    points: Sequence[Point],
    positions: Iterable[int],
    folds: Sequence[int] | None = None,
) -> list[Group]:
    """Return a group for each of some points that shares nothing."""
    return [Refit(task, points[position], position, folds) for position in positions]


def judge_fit(task: Task, rows_at: Callable[[], Rows], fold: int, stop: Stop) -> Judged:
    """Fit a new machine to the rows of a fold and score it; what cannot be fitted says why."""
    if stop():
        raise Stopped
    train, test = task.splits[fold]
    started = time.perf_counter()
    try:
        rows = rows_at()
        machine, learnt = rows.machine, rows.train(train)
        _fit(machine, learnt, task, train, stop)
    except Exception as error:
        return failed(task, error, started)
    fitted = time.perf_counter()
    found, trouble = scored(task, machine, rows.test(test, train), _targets(task, test), test)
    ended = time.perf_counter()
    seen: dict[str, float] = {}
    if task.train_scores:
        seen, more = scored(task, machine, learnt, _targets(task, train), train)
        trouble = trouble or more
    return Judged(found, seen, fitted - started, ended - fitted, trouble=trouble)


def failed(task: Task, error: Exception, started: float) -> Judged:
    """Return what a fit that raised is worth, or raise again where that is asked for."""
    if isinstance(error, Stopped) or task.error_score == "raise":
        raise error
    seconds = time.perf_counter() - started
    return Judged({}, fit_seconds=seconds, failure=f"{type(error).__name__}: {error}")


def score(
    task: Task, machine: Any, X: Any, y: tuple[Any, ...], index: Array | None = None
) -> dict[str, float]:
    """Score a stand-in; ValueError where a scorer fails, which a fitted machine tells better."""
    try:
        found, trouble = scored(task, machine, X, y, index)
    except Stopped:
        raise
    except Exception as error:
        raise ValueError(str(error)) from error
    if trouble:
        raise ValueError(trouble)
    return found


def scored(
    task: Task, machine: Any, X: Any, y: tuple[Any, ...], index: Array | None = None
) -> tuple[dict[str, float], str]:
    """Score a fitted machine.

    Parameters
    ----------
    task : Task
        What is tuned.
    machine : estimator
        Fitted, or a stand-in.
    X, y : object, tuple
        Rows, and their targets if there are any.
    index : int array, optional
        Which rows of the task these are: they count as often as their weights say.

    Returns
    -------
    found : dict of str to float
        Scores by name.
    trouble : str
        Why one is missing; empty where none is.
    """
    found: dict[str, float] = {}
    trouble = ""
    weights = None if task.weights is None or index is None else task.weights[index]
    for name, scorer in task.scorers.items():
        weighed = weights is not None and _takes_weights(scorer)
        try:
            value = scorer(machine, X, *y, **({"sample_weight": weights} if weighed else {}))
            found.update(_numbers(name, value))
        except Exception as error:
            if isinstance(error, Stopped) or task.error_score == "raise":
                raise
            trouble = trouble or f"{type(error).__name__}: {error}"
    return found, trouble


def _takes_weights(scorer: Any) -> bool:
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return callable(scorer) and "sample_weight" in signature(scorer).parameters


def _numbers(name: str, value: Any) -> dict[str, float]:
    """Return what a scorer said as numbers by name; a scorer of one's own may give several."""
    if isinstance(value, Mapping):
        return {str(inner): float(number) for inner, number in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str | bytes) or not isinstance(value, int | float):
        raise ValueError(f"scoring {name!r} must give a number, got {value!r} ({type(value)})")
    return {name: float(value)}


def _targets(task: Task, index: Array) -> tuple[Any, ...]:
    return () if task.y is None else (take_rows(task.y, index),)


def _fit(machine: Any, X: Any, task: Task, train: Array, stop: Stop) -> None:
    y = None if task.y is None else take_rows(task.y, train)
    with listening(machine, stop):
        fit_to(machine, X, y, None if task.weights is None else task.weights[train])


def fit_to(machine: Any, X: Any, y: Any, weights: Any) -> None:
    """Fit with targets and weights where there are any; of a pipeline the last step is weighted."""
    given = {} if weights is None else {_name_of_weights(machine): weights}
    machine.fit(X, *(() if y is None else (y,)), **given)


def _name_of_weights(machine: Any) -> str:
    if isinstance(machine, Pipeline):
        name, last = machine.steps[-1]
        return f"{name}__{_name_of_weights(last)}"
    return "sample_weight"


@contextmanager
def listening(machine: Any, stop: Stop) -> Iterator[None]:
    """Let machines of this library hear `stop` through their callbacks while they are fitted."""
    given = {
        name: value
        for name, value in machine.get_params().items()
        if (name == "callback" or name.endswith("__callback"))
        and type(_owner(machine, name)).__module__.startswith("mercer.")
    }

    def ears(own: Any) -> Any:
        def listen(progress: Any) -> bool:
            if stop():
                raise Stopped
            return bool(own is not None and own(progress))

        return listen

    machine.set_params(**{name: ears(own) for name, own in given.items()})
    yield
    machine.set_params(**given)


def _owner(machine: Any, name: str) -> Any:
    outer = name.rpartition("__")[0]
    return machine.get_params()[outer] if outer else machine
