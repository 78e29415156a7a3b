"""Parameters by cross-validated score: every point of a grid, sharing what can be shared."""

from __future__ import annotations

import os
import time
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from mercer.distributed.client import client_around, running_client
from mercer.foreign_arrays import reading_arrays
from mercer.machines.base.parameters import is_real
from mercer.progress import shown
from mercer.selection.default_grids import default_grid
from mercer.selection.edges import grow
from mercer.selection.grids import Grid
from mercer.selection.judging.artificial_outliers import NOTE, ArtificialOutliers
from mercer.selection.outcome import Tuning, outcome
from mercer.selection.rules import rule_of
from mercer.selection.running.evaluator import Evaluator
from mercer.selection.running.folds import note_on_order
from mercer.selection.running.identity import digest
from mercer.selection.running.journal import Journal
from mercer.selection.running.progress import TuningCallback
from mercer.selection.running.task import Task
from mercer.selection.running.task_setup import make_task, metric_of
from mercer.selection.search import Exhaustive, Search
from mercer.selection.sharing import Stopped


@reading_arrays
def tune(
    machine: Any,
    X: Any,
    y: Any = None,
    *,
    grid: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    metric: str | None = None,
    search: Search | None = None,
    rule: Any = "best",
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    train_scores: bool = False,
    error_score: float | str = np.nan,
    random_state: Any = 0,
    journal: str | os.PathLike[str] | None = None,
    callback: TuningCallback | None = None,
    time_limit: float | None = None,
    client: Any = None,
) -> Tuning:
    """Judge settings of parameters on rows that were left out, sharing what their fits share.

    Scores are those of scikit-learn's `GridSearchCV` on the same folds. For machines of this
    library the kernel is evaluated once for each of its settings, folds choose rows and columns of
    that matrix, solvers start from the answer of the neighbouring point, and one factorisation
    serves all penalties; steps before the last of a pipeline are fitted once for each of their
    settings. Folds and settings are spread over the cores, one thread each.

    Parameters
    ----------
    machine : estimator
        Any of scikit-learn's kind.
    X : array-like, sparse matrix, table, or list
        Rows; the square matrix for a precomputed kernel; strings for string kernels.
    y : array-like, optional
        Targets.
    grid : dict of lists, list of such dicts, Grid or None
        Values to try by name of the parameter, as in `GridSearchCV`; `kernel__scale` reaches into
        the kernel. None makes a grid that suits the data.
    cv : int, splitter, iterable or "loo"
        The folds, as in scikit-learn; "loo" leaves out one row at a time (regressors are then
        judged by the mean squared error unless `scoring` says otherwise).
    scoring : str, callable, list, dict or None
        As in scikit-learn; None takes the `score` of the machine, and `ArtificialOutliers` for
        detectors of novelty without `y`.
    metric : str or None
        With several scores, the name of the one that decides.
    search : Search or None
        Which points are judged on what; None judges all of them on everything.
    rule : str or callable
        "best", "one_standard_error" (the simplest that is as good within its error), or a function
        of the points and their scores.
    sample_weight : array-like, optional
        How often each row counts: in fits, and in scores that can be weighted.
    groups : array-like, optional
        For splitters that keep groups of rows together.
    train_scores : bool
        Whether rows learnt from are scored, too.
    error_score : float or "raise"
        Score of a point that cannot be fitted; "raise" lets its error through.
    random_state : int, RandomState or None
        Seed of searches that draw.
    journal : path or None
        A file that remembers what is finished: the same call takes up what an earlier one, that
        was cut short, had left. The result is that of a run without a break.
    callback : callable or None
        Called with `TuningProgress`; a true return value stops with what there is.
    time_limit : float or None
        Seconds after which to stop with what there is.
    client : distributed.Client or None
        A Dask cluster: points that share a matrix or factorisation are one task on it. None
        takes that of `mercer.distributed.on_cluster` around the call, and else judges them here.

    Returns
    -------
    Tuning
        All scores, and the point that was chosen.

    Notes
    -----
    Where points share a matrix, kernels given by name ("gaussian") take their scale from all rows,
    those of test folds included; where they are refitted, from the rows learnt from. Pass a kernel
    object to fix it beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import tune
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> grid = {"C": [0.1, 1.0, 10.0], "kernel__scale": [0.01, 1.0, 100.0]}
    >>> found = tune(SVC(Gaussian(1.0)), X, y, grid=grid)
    >>> found.best_params["kernel__scale"], found.best_score > 0.9
    (1.0, True)
    """
    started = time.perf_counter()
    rule_of(rule)
    way = Exhaustive() if search is None else search
    if not isinstance(way, Search):
        raise TypeError(f"search={search!r} must be a Search, such as Exhaustive(), or None")
    if time_limit is not None and not (is_real(time_limit) and time_limit > 0):
        raise ValueError(f"time_limit={time_limit!r} must be a positive number of seconds, or None")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback={callback!r} must be a function of TuningProgress, or None")
    task = make_task(
        clone(machine, safe=False), X, y, cv=cv, scoring=scoring, sample_weight=sample_weight,
        groups=groups, train_scores=train_scores, error_score=error_score,
        random_state=random_state,
    )  # fmt: skip
    boxes = default_grid(machine, task.X, task.y) if grid is None else Grid.of(grid)
    evaluator = Evaluator(
        task,
        metric_of(task, metric, scoring),
        _generator(random_state),
        callback=callback,
        time_limit=time_limit,
        started=started,
        client=client_around() if client is None else running_client(client),
    )
    with shown("tune", solvers=False):
        if journal is None:
            _search(way, evaluator, boxes, grows=grid is None)
        else:
            with Journal(journal, _fingerprints(task, scoring, boxes, way, random_state)) as kept:
                evaluator.journal = kept
                _search(way, evaluator, boxes, grows=grid is None)
    if hasattr(cv, "split") and (note := note_on_order(task.splits, task.y)):
        evaluator.say(note)
    if any(isinstance(scorer, ArtificialOutliers) for scorer in task.scorers.values()):
        evaluator.say(NOTE)
    return outcome(evaluator, rule, time.perf_counter() - started)


def _search(way: Search, evaluator: Evaluator, grid: Grid, grows: bool) -> None:
    """Judge the grid, and what lies beyond its edges where the grid is ours and the best is there.

    Other ways than the exhaustive one leave points out by comparing them with those of the first
    grid, so that they end with it.
    """
    try:
        way.run(evaluator, grid)
        if isinstance(way, Exhaustive):
            judge = partial(way.run, evaluator) if grows else None
            for note in grow(grid, evaluator.best, judge):
                evaluator.say(note)
    except Stopped:
        if not evaluator.stopped:  # not this tuning, but one around it, is to end
            raise


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def _fingerprints(
    task: Task, scoring: Any, grid: Grid, way: Search, random_state: Any
) -> dict[str, str]:
    parts = {
        "the machine": task.machine,
        "the rows": task.X,
        "the targets": task.y,
        "the weights": task.weights,
        "the folds": task.splits,
        "the scoring": scoring,
        "the grid": grid.parts,
        "the search": (type(way).__qualname__, vars(way)),
        "the options": (task.train_scores, task.error_score, random_state),
        "the version": version("mercer"),
    }
    return {name: _fingerprint(name, part) for name, part in parts.items()}


def _fingerprint(name: str, part: Any) -> str:
    try:
        return digest(part)
    except (TypeError, AttributeError, RecursionError, ValueError) as error:
        raise ValueError(
            f"journal: {name} cannot be told apart from others by what is in it ({error}); use "
            "named functions and classes, or no journal"
        ) from error
