"""Judge a fitted machine for its report: by other rows, or by fits without each fold."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from mercer.array_types import Array
from mercer.fitting import Evaluation
from mercer.fitting.evaluating import Decider, cross_answers, evaluate
from mercer.fitting.importance import permutation_importance
from mercer.report.subject import sampled, take
from mercer.selection import Choice

_CROSS_ROWS = 2000  # of a machine that is judged by refitting it: five fits in a second or two


@dataclass(frozen=True)
class Judged:
    """A machine that is judged for a report."""

    estimator: Any
    machine: Any
    task: str
    classes: tuple[Any, ...]

    @property
    def decider(self) -> Decider:
        """How its answers are read."""
        return Decider(self.task, self.classes, None)

    def by_test(self, X: Any, y: Any, trained: Array | None) -> Evaluation:
        """Judge by other rows."""
        truth = np.asarray(y)
        answers = self.decider.answers(self.estimator, X, truth)
        index = np.arange(len(truth))
        shuffled = self._importance(X, truth, "other rows")
        return self._evaluate(answers, "test table", index, trained, None, shuffled)

    def by_folds(self, rows: Any, truth: Array, choice: Choice | None) -> Evaluation:
        """Judge by fits without each fold, of a sample where there are many rows."""
        index = sampled(len(truth), _CROSS_ROWS)
        some, y = take(rows, index), truth[index]
        shuffled = self._importance(some, y, "rows of the fit itself, for want of others")
        if self._takes_a_matrix() or self._too_few(y):
            answers = self.decider.answers(self.estimator, rows, truth)
            return self._evaluate(answers, "training", np.arange(len(truth)), truth, choice)
        answers = cross_answers(self.estimator, Rows(some), y, self.decider, 0)
        return self._evaluate(answers, "cross-validated", index, y, choice, shuffled)

    def _importance(self, X: Any, truth: Array, where: str) -> tuple[Any, str]:
        """Shuffle the columns of rows that are plain numbers."""
        named = hasattr(self.estimator, "feature_names_in_")
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub" or named:
            return (), ""
        score = accuracy_score if self.task == "classification" else r2_score
        blocks = {f"x{k}": [k] for k in range(X.shape[1])}
        found, note = permutation_importance(self.estimator, X, blocks, score, truth, 0)
        return found, f"{note}, {where}."

    def _evaluate(
        self,
        answers: Any,
        kind: str,
        rows: Array,
        trained: Array | None,
        choice: Choice | None,
        importance: tuple[Any, str] = ((), ""),
    ) -> Evaluation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes that are not there: the figures say so
            return evaluate(
                answers, kind=kind, rows=rows, decider=self.decider,
                train_target=answers.truth if trained is None else trained, choice=choice,
                scoring=None, seed=0, importance=importance,
            )  # fmt: skip

    def _takes_a_matrix(self) -> bool:
        return bool(getattr(self.machine, "_is_precomputed", bool)())

    def _too_few(self, y: Array) -> bool:
        if self.task == "regression":
            return len(y) < 10
        return int(np.unique(y, return_counts=True)[1].min()) < 2


@dataclass(frozen=True)
class Rows:
    """Rows in any form, with the verb of tables."""

    data: Any

    def rows(self, index: Array) -> Any:
        """Return some of them."""
        return take(self.data, index)
