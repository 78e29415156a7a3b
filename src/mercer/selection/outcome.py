"""What a tuning found: every score of every point, and the point that was chosen."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from mercer.array_types import Array
from mercer.html import page
from mercer.selection.results import cv_results
from mercer.selection.rules import rule_of
from mercer.selection.running.evaluator import Evaluator

_SHOWN = 8  # rows of the table
_COMPLETE = "every point that the search asked for was judged"


class NothingJudgedError(RuntimeError):
    """It was stopped before any point had been judged on every fold."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One fit that was judged.

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
    """What a tuning found.

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
            lines.append(f"  ... {len(order)} points in all")
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
            f"rule={rule!r} gave {found!r}; it must give the position of a point, a whole number "
            f"from 0 to {len(scores) - 1}"
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
        raise kind(f"{fate}, and no point has a score on every fold.\n{_most_common(both)}")
    if nothing_left and evaluator.stopped:
        raise NothingJudgedError(
            f"{evaluator.stopped} before any point had been judged on every fold; give it more "
            "time, or a journal and go on later"
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
    text = f"no point has a score on every fold: {evaluator.metric!r} is not a number"
    least = min(len(test) for _, test in evaluator.task.splits)
    if least < 2:
        rows = "no row" if least == 0 else "one row"
        text += f". Some folds have {rows} to judge by, where scores such as R^2 or the area "
        text += "under a curve are not defined; take others, such as "
        text += "scoring='neg_mean_squared_error', or larger folds"
    return text


def _most_common(reasons: Counter[str]) -> str:
    return "\n".join(f"{count} of them: {text}" for text, count in reasons.most_common(5))


def _text(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in point.items())


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
