"""Function `tune`: cross-validated search, its outcome `Tuning`, and `cv_results_`."""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.ma import MaskedArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import check_random_state

from mercer.array_types import Array
from mercer.html import page
from mercer.machines.base.parameters import is_real
from mercer.progress import shown
from mercer.rows.dask.cluster import client_around, running_client
from mercer.rows.foreign import reading_arrays
from mercer.selection.artificial_outliers import NOTE, ArtificialOutliers
from mercer.selection.evaluator import Evaluator
from mercer.selection.folds import note_on_order
from mercer.selection.grids import Grid, default_grid, grow
from mercer.selection.identity import digest
from mercer.selection.journal import Journal
from mercer.selection.rules import rule_of
from mercer.selection.search import Exhaustive, Search
from mercer.selection.sharing import Stopped
from mercer.selection.task import Task, TuningCallback, make_task, metric_of

# --- tuning --------------------------------------------------------------------------------------
#
# Parameters by cross-validated score: every point of a grid, sharing what can be shared.


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
    """Tune hyperparameters by cross-validation, sharing computations between candidates.

    Scores equal those of scikit-learn's `GridSearchCV` on the same folds. For Mercer's estimators,
    each kernel matrix is computed once and shared by all folds, solvers start from the solution of
    the adjacent candidate, and one factorization serves all penalties. Steps before the last of a
    pipeline are fitted once per parameter setting. Folds and candidates run in parallel, with one
    thread each.

    Parameters
    ----------
    machine : estimator
        Any estimator compatible with scikit-learn.
    X : array-like, sparse matrix, table, or list
        Samples; the square matrix for a precomputed kernel; strings for string kernels.
    y : array-like, optional
        Targets.
    grid : dict of lists, list of such dicts, Grid or None
        Values of the hyperparameters, as in `GridSearchCV`. `kernel__scale` is a parameter of the
        kernel. If None, a default grid for the data.
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
        "best", "one_standard_error" (the simplest candidate within one standard error), or a
        function of candidates and scores.
    sample_weight : array-like, optional
        Sample weights of fits and of scores that support them.
    groups : array-like, optional
        For splitters that keep groups of rows together.
    train_scores : bool
        Whether rows learnt from are scored, too.
    error_score : float or "raise"
        Score of a point that cannot be fitted; "raise" lets its error through.
    random_state : int, RandomState or None
        Seed of searches that draw.
    journal : path or None
        File that records finished results. The same call resumes an interrupted run with the same
        result.
    callback : callable or None
        Called with `TuningProgress`; a true return value stops with what there is.
    time_limit : float or None
        Time limit in seconds. The search then keeps the results so far.
    client : distributed.Client or None
        A Dask cluster: points that share a matrix or factorisation are one task on it. None
        takes that of `mercer.distributed.on_cluster` around the call, and else judges them here.

    Returns
    -------
    Tuning
        All scores and the selected candidate.

    Notes
    -----
    If candidates share a kernel matrix, the scale of kernels specified by name ("gaussian") is
    chosen from all samples, including held-out ones; otherwise from the training samples. Pass a
    kernel object to fix the scale.

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
        raise ValueError(f"time_limit={time_limit!r} must be positive (seconds), or None")
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
            f"journal: {name} cannot be identified by its content ({error}); use "
            "named functions and classes, or no journal"
        ) from error


# --- outcome -------------------------------------------------------------------------------------
#
# What a tuning found: every score of every point, and the point that was chosen.

_SHOWN = 8  # rows of the table
_COMPLETE = "all candidates were evaluated"


class NothingJudgedError(RuntimeError):
    """It was stopped before any point had been judged on every fold."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One evaluated fit.

    Attributes
    ----------
    params : dict
        The point.
    fold : int
        Which rows were left out.
    rows : int or None
        To how many rows everything was restricted; None means all.
    test, train : dict of str to float
        Scores on the rows left out, and on those learnt from where that was asked for.
    fit_seconds, score_seconds : float
        Time taken; where points share work, an equal part of it.
    failure : str
        Why there is no score; empty where there is one.
    """

    params: Mapping[str, Any]
    fold: int
    rows: int | None
    test: Mapping[str, float]
    train: Mapping[str, float]
    fit_seconds: float
    score_seconds: float
    failure: str


@dataclass(frozen=True, eq=False)
class Tuning:
    """Result of a search.

    Attributes
    ----------
    points : tuple of dict
        Settings of parameters, in the order in which they were asked for.
    scores : (points, folds) array
        By the metric, the larger the better; NaN where there is none.
    mean : (points,) array
        Mean of the scores; NaN where one is missing.
    standard_error : (points,) array
        How uncertain the mean is: the standard deviation over the folds by the square root of
        their number. A rough guide, since folds share rows.
    best : int
        Position of the chosen point.
    best_params : dict
        The chosen point.
    best_score : float
        Its mean.
    metric : str
        Name of the score that was chosen by.
    cv_results : dict
        All of it as `GridSearchCV.cv_results_` has it.
    trials : tuple of Trial
        Every fit that was judged, those on some of the rows included.
    complete : bool
        Whether nothing was stopped.
    status : str
        Why it ended, in words.
    notes : tuple of str
        What the search says about how sure the choice is.
    work : dict of str to int
        How many fits each kind of shared work judged; "Refit" shares nothing. Fits that were read
        from a journal are not counted.
    seconds : float
        Time taken.
    """

    points: tuple[Mapping[str, Any], ...]
    scores: Array
    best: int
    metric: str
    cv_results: Mapping[str, Any]
    trials: tuple[Trial, ...]
    complete: bool
    status: str
    notes: tuple[str, ...]
    work: Mapping[str, int]
    seconds: float

    @property
    def mean(self) -> Array:
        """Mean of the scores of each point."""
        with np.errstate(invalid="ignore"):  # scores may be infinite
            return np.asarray(self.scores.mean(axis=1))

    @property
    def standard_error(self) -> Array:
        """How uncertain each mean is."""
        folds = self.scores.shape[1]
        if folds < 2:
            return np.full(len(self.scores), np.nan)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.scores.std(axis=1, ddof=1) / np.sqrt(folds))

    @property
    def best_params(self) -> dict[str, Any]:
        """The chosen point."""
        return dict(self.points[self.best])

    @property
    def best_score(self) -> float:
        """Mean score of the chosen point."""
        return float(self.mean[self.best])

    def __str__(self) -> str:
        mean, error = self.mean, self.standard_error
        order = np.argsort(-np.where(np.isnan(mean), -np.inf, mean), kind="stable")
        lines = [
            f"{'>' if k == self.best else ' '} {mean[k]:10.4g} +- {error[k]:<8.2g} {_text(point)}"
            for k, point in ((int(k), self.points[k]) for k in order[:_SHOWN])
        ]
        if self.best not in order[:_SHOWN]:
            k = self.best
            lines.append(f"> {mean[k]:10.4g} +- {error[k]:<8.2g} {_text(self.points[k])}")
        if len(order) > _SHOWN:
            lines.append(f"  ... {len(order)} points in total")
        folds = self.scores.shape[1]
        head = f"{self.metric}, {len(order)} points, {folds} folds, {self.seconds:.2f} s"
        return "\n".join([head, *lines, *self.notes, self.status])

    def _repr_html_(self) -> str:
        mean, error = self.mean, self.standard_error
        order = np.argsort(-np.where(np.isnan(mean), -np.inf, mean), kind="stable")[:_SHOWN]
        rows = {f"{mean[k]:.4g} +- {error[k]:.2g}": _text(self.points[k]) for k in map(int, order)}
        said = " ".join([*self.notes, self.status])
        folds = self.scores.shape[1]
        title = f"{self.metric}: {self.best_score:.4g} with {_text(self.points[self.best])}"
        return page(title, rows, f"{len(mean)} points, {folds} folds. {said}")


def outcome(evaluator: Evaluator, rule: Any, seconds: float) -> Tuning:
    """Put everything that was judged together, and choose."""
    scores = evaluator.scores()
    _tell_failures(evaluator, nothing_left=bool(np.isnan(scores).any(axis=1).all()))
    return Tuning(
        points=tuple(evaluator.points),
        scores=scores,
        best=_chosen(rule, evaluator, scores),
        metric=evaluator.metric,
        cv_results=cv_results(evaluator),
        trials=_trials(evaluator),
        complete=not evaluator.stopped,
        status=f"stopped: {evaluator.stopped}" if evaluator.stopped else _COMPLETE,
        notes=tuple(evaluator.notes),
        work=dict(evaluator.work),
        seconds=seconds,
    )


def _chosen(rule: Any, evaluator: Evaluator, scores: Array) -> int:
    """Ask the rule; one of the user's own may take points that lack scores."""
    if isinstance(rule, str) and np.isnan(scores).any(axis=1).all():
        raise ValueError(_why_no_scores(evaluator))
    found = rule_of(rule)(evaluator.points, scores)
    whole = isinstance(found, int | np.integer) and not isinstance(found, bool)
    if not whole or not 0 <= found < len(scores):
        raise ValueError(
            f"rule={rule!r} returned {found!r}; it must return the index of a candidate, an "
            f"integer from 0 to {len(scores) - 1}"
        )
    return int(found)


def _trials(evaluator: Evaluator) -> tuple[Trial, ...]:
    return tuple(
        Trial(
            evaluator.points[place],
            fold,
            evaluator.sizes.get(subset),
            judged.test,
            judged.train,
            judged.fit_seconds,
            judged.score_seconds,
            judged.failure,
        )
        for (subset, place, fold), judged in sorted(evaluator.table.items(), key=lambda e: e[0])
    )


def _tell_failures(evaluator: Evaluator, nothing_left: bool) -> None:
    """Warn of fits and scorers that failed; raise if no point is left to choose."""
    judged, task = evaluator.table.values(), evaluator.task
    failures = Counter(one.failure for one in judged if one.failure)
    troubles = Counter(one.trouble for one in judged if one.trouble)
    name = type(task.machine).__name__
    name += "" if task.weights is None else " with sample_weight"
    both, failed = failures + troubles, failures.total()
    if both and (nothing_left or failed == len(judged)):
        kind = TypeError if all(text.startswith("TypeError") for text in both) else ValueError
        fate = f"{failed} of {len(judged)} fits of {name} failed"
        if not failed:
            fate = f"{troubles.total()} of {len(judged)} fits of {name} could not be scored"
        raise kind(f"{fate}, and no candidate has a score on every fold.\n{_most_common(both)}")
    if nothing_left and evaluator.stopped:
        raise NothingJudgedError(
            f"{evaluator.stopped} before any candidate was evaluated on all folds; increase "
            "the time limit, or resume later from a journal"
        )
    fate = f"failed; scores are set to {task.error_score}. error_score='raise' shows where.\n"
    if failures:
        text = f"{failed} of {len(judged)} fits of {name} {fate}{_most_common(failures)}"
        warnings.warn(text, FitFailedWarning, stacklevel=5)
    if troubles:
        text = f"scoring {troubles.total()} of {len(judged)} fits {fate}{_most_common(troubles)}"
        warnings.warn(text, UserWarning, stacklevel=5)


def _why_no_scores(evaluator: Evaluator) -> str:
    """Return where scores are missing though nothing failed."""
    text = f"no candidate has a score on every fold: {evaluator.metric!r} is not a number"
    least = min(len(test) for _, test in evaluator.task.splits)
    if least < 2:
        rows = "no row" if least == 0 else "one row"
        text += f". Some folds have {rows} to evaluate, for which scores such as R^2 or the area "
        text += "under a curve are undefined; use others, such as "
        text += "scoring='neg_mean_squared_error', or larger folds"
    return text


def _most_common(reasons: Counter[str]) -> str:
    return "\n".join(f"{count} of them: {text}" for text, count in reasons.most_common(5))


def _text(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in point.items())


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- results -------------------------------------------------------------------------------------
#
# Results as scikit-learn's `cv_results_` has them.


def cv_results(evaluator: Evaluator) -> dict[str, Any]:
    """Return a dict of columns, a row for each point."""
    found: dict[str, Any] = {}
    for name, times in (("fit", _times(evaluator, "fit")), ("score", _times(evaluator, "score"))):
        with warnings.catch_warnings():  # points without any fold have no time
            warnings.simplefilter("ignore", RuntimeWarning)
            found[f"mean_{name}_time"] = np.nanmean(times, axis=1)
            found[f"std_{name}_time"] = np.nanstd(times, axis=1)
    found.update(_columns(evaluator))
    found["params"] = [dict(point) for point in evaluator.points]
    for metric in evaluator.names():
        found.update(_scores(evaluator, metric, "test"))
        if evaluator.task.train_scores:
            found.update(_scores(evaluator, metric, "train"))
    return found


def _times(evaluator: Evaluator, which: str) -> Array:
    found = np.full((len(evaluator.points), len(evaluator.task.splits)), np.nan)
    for (subset, place, fold), judged in evaluator.table.items():
        if not subset:
            found[place, fold] = getattr(judged, f"{which}_seconds")
    return found


def _scores(evaluator: Evaluator, metric: str, part: str) -> dict[str, Any]:
    scores = evaluator.scores(metric, train=part == "train")
    found: dict[str, Any] = {
        f"split{fold}_{part}_{metric}": scores[:, fold] for fold in range(scores.shape[1])
    }
    with np.errstate(invalid="ignore"):  # scores may be infinite
        found[f"mean_{part}_{metric}"] = scores.mean(axis=1)
        found[f"std_{part}_{metric}"] = scores.std(axis=1)
    if part == "test":
        found[f"rank_test_{metric}"] = ranks(found[f"mean_test_{metric}"])
    return found


def ranks(means: Array) -> Array:
    """Return 1 to the highest mean, equal ranks to equal means, the last one to those without."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1
    return rankdata(-np.nan_to_num(means, nan=worst), method="min").astype(np.int32)


def _columns(evaluator: Evaluator) -> dict[str, Any]:
    """Return a masked column for each parameter: points that do not set it are masked."""
    names = sorted({name for point in evaluator.points for name in point})
    return {f"param_{name}": _column(evaluator, name) for name in names}


def _column(evaluator: Evaluator, name: str) -> Any:
    tried = {k: point[name] for k, point in enumerate(evaluator.points) if name in point}
    numbers = all(isinstance(value, bool | int | float | np.number) for value in tried.values())
    dtype = np.array(list(tried.values())).dtype if numbers else object
    column = MaskedArray(np.empty(len(evaluator.points), dtype=dtype), mask=True)
    for k, value in tried.items():
        column[k] = value
    return column
