"""Class `Group`: candidates that share work; registration of families, refits, and scoring."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from sklearn.metrics import check_scoring, get_scorer
from sklearn.pipeline import Pipeline

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.machines.base.approximate import trying_settings, with_a_share_of_memory
from mercer.machines.base.sharing import (
    SharedMatrix,
    Sharing,
    says_how_it_shares,
    shares_of,
)
from mercer.resources import MemoryBudgetError
from mercer.selection.folds import FitRows, take_rows
from mercer.selection.task import Point, Task

# --- base ----------------------------------------------------------------------------------------
#
# What can be shared: points of a grid that need one preparation, judged fold by fold.
#
# A `Group` is points whose fits share something expensive: the matrix of one kernel, a
# factorisation. It is prepared once, with all threads; then its units (folds, or sets of folds
# that are judged together) are judged independently of one another, several at a time, each on
# one thread. What a unit gives depends on the group alone, never on which units ran before it: a
# run that is interrupted and taken up again gives the same numbers.

Stop = Callable[[], bool]
"""Asked now and then by long work: true means leave it."""


@dataclass(frozen=True)
class Judged:
    """How one point did on one fold.

    Attributes
    ----------
    test : dict of str to float
        Scores on rows that were left out, by name of the scorer.
    train : dict of str to float
        Scores on rows learnt from; empty where they were not asked for.
    fit_seconds, score_seconds : float
        Time taken; where points share work, an equal part of it.
    failure : str
        Why there is no score; empty where there is one.
    trouble : str
        Why a scorer has none though the machine was fitted; empty where all have.
    """

    test: Mapping[str, float]
    train: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    failure: str = ""
    trouble: str = ""


class Stopped(Exception):  # noqa: N818  it is no error
    """A unit was left because `stop` said so."""


class Group(ABC):
    """Points that share a preparation.

    Attributes
    ----------
    points : tuple of int
        Positions in the list of points that the groups were made for.
    units : tuple of tuples of int
        Folds that are judged together; every fold of the group is in one unit.
    size : float
        Bytes held from `prepare` to `release`, with what a unit needs beside.
    alone : bool
        Whether nothing else may be at work meanwhile, so that a unit may take all of the memory;
        there is one unit then.
    spreads : bool
        Whether a unit has use for several threads, and gives the same numbers on any count of them:
        the last one gets all, since the others will soon be idle.
    """

    points: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]
    size: float = 0.0
    alone: bool = False
    spreads: bool = False

    @property
    def kind(self) -> str:
        """Name of what is shared, for reports."""
        return type(self).__name__

    def prepare(self) -> None:
        """Make what all units share; called once, before any of them, with all threads."""
        return

    @abstractmethod
    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Judge all points on the folds of a unit; keys are (position of point, fold).

        Runs beside other units of the same group, on one thread, after `prepare`. Raises `Stopped`
        soon after `stop()` turned true.
        """

    def release(self) -> None:
        """Free what `prepare` made."""
        return


# --- share ---------------------------------------------------------------------------------------
#
# Who shares what: each family of machines makes its own groups, the rest is refitted.
#
# A family is registered for exact types: a subclass may fit in a way of its own, so it is
# refitted. Those that are registered for what machines say of themselves
# (`machines/base/sharing.py`) are asked for all machines that say so: `Sharing` before others,
# what is listed in `shares` after. Before all of them, families of `Approximation` are asked for
# machines that may have features for a kernel. Of several families for one type, the last to be
# registered is asked first; points that it leaves out go to the one before.

Family = Callable[[Task, Sequence[Point]], list[Group]]
"""Makes groups of those points it can share work for; positions are those of the points given."""

_FAMILIES: dict[type, list[Family]] = {}


def register(*kinds: type) -> Callable[[Family], Family]:
    """Make a function one that groups points of machines of these types."""

    def keep(family: Family) -> Family:
        for kind in kinds:
            _FAMILIES.setdefault(kind, []).insert(0, family)
        return family

    return keep


def groups(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points by what they share.

    Parameters
    ----------
    task : Task
        What is tuned.
    points : sequence of dict
        Settings to judge.

    Returns
    -------
    list of Group
        Every point is in exactly one of them, by its position in `points`.
    """
    made: list[Group] = []
    rest = list(range(len(points)))
    for family in _families(task.machine):
        if not rest:
            break
        found = family(task, [points[position] for position in rest])
        if len(rest) < len(points):
            found = [_Renumbered(group, rest) for group in found]
        made += found
        covered = {position for group in found for position in group.points}
        rest = [position for position in rest if position not in covered]
    return [*made, *refits(task, points, rest)]


def _families(machine: Any) -> list[Family]:
    by_contract = _FAMILIES.get(Sharing, []) if says_how_it_shares(machine) else []
    ways = [way for way in shares_of(machine) if isinstance(way, SharedMatrix)]
    listed = [family for way in shares_of(machine) for family in _FAMILIES.get(type(way), [])]
    by_features = _FAMILIES.get(Approximation, []) if by_contract or ways else []
    return [*by_features, *by_contract, *_FAMILIES.get(type(machine), []), *listed]


class _Renumbered(Group):
    """A group made for some of the points, with their positions among all of them."""

    def __init__(self, group: Group, positions: Sequence[int]) -> None:
        self.group, self.positions = group, list(positions)
        self.points = tuple(self.positions[position] for position in group.points)
        self.units, self.size, self.spreads = group.units, group.size, group.spreads

    @property
    def kind(self) -> str:
        return self.group.kind

    def prepare(self) -> None:
        self.group.prepare()

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        found = self.group.judge(unit, stop)
        return {(self.positions[k], fold): judged for (k, fold), judged in found.items()}

    def release(self) -> None:
        self.group.release()


# --- refit ---------------------------------------------------------------------------------------
#
# No sharing: any estimator, every point and fold on its own.


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

    def _rows(self) -> FitRows:
        return FitRows.of(self.task.machine_at(self.point), self.task.X)


def refits(
    task: Task,
    points: Sequence[Point],
    positions: Iterable[int],
    folds: Sequence[int] | None = None,
) -> list[Group]:
    """Return a group for each of some points that shares nothing."""
    return [Refit(task, points[position], position, folds) for position in positions]


def judge_fit(task: Task, rows_at: Callable[[], FitRows], fold: int, stop: Stop) -> Judged:
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


# --- known ---------------------------------------------------------------------------------------
#
# What scorers ask for: whether known answers are enough for them.
#
# Shared work gives values at the rows that were left out, not a fitted machine for each point. A
# scorer of scikit-learn asks a machine for `predict` or `decision_function`; stand-ins answer
# with what is known (`machines/base/sharing.py`), whatever rows they are handed.


def asks_only_for_answers(scorers: Mapping[str, Any], machine: Any) -> bool:
    """Return whether scorers are scikit-learn's own kind, which ask for answers and nothing else.

    A callable of the user may look at anything a fitted machine has, so it gets one.
    """
    kinds = {type(get_scorer("accuracy")), type(get_scorer("roc_auc"))}
    if hasattr(machine, "score"):
        kinds.add(type(check_scoring(machine)))
    return all(type(scorer) in kinds for scorer in scorers.values())


def asks_for_probabilities(scorers: Mapping[str, Any]) -> bool:
    """Return whether a scorer asks for `predict_proba`, which needs a machine that is fitted."""
    asked = (getattr(scorer, "_response_method", "predict") for scorer in scorers.values())
    return any(method == "predict_proba" for method in asked)
