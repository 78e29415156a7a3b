"""The loop of active learning: ask, be told, fit again, until a rule says that it is enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from mercer.array_types import Array
from mercer.machines.base.parameters import ParameterError, is_real
from mercer.points import as_points, is_sequence_data, row_count
from mercer.selection.active.query_rules import MarginQuery, QueryRule, query_rule
from mercer.selection.running.rows import indexable, take_rows

_CALM = 3  # fits in a row that change little: one alone may be chance


class ActiveEnding(Enum):
    """Why a run ended. The value is the sentence shown to people."""

    BUDGET = "as many labels were asked for as the budget allows"
    POOL_IS_EMPTY = "every row has a label"
    NOTHING_IN_MARGIN = "no row of the pool lies within the margin: none could be a support vector"
    CALM = "the last labels changed predictions by less than the tolerance"
    STOPPED = "the callback asked for an end"


@dataclass(frozen=True)
class ActiveRound:
    """One fit of the loop.

    Attributes
    ----------
    labels : int
        Labelled rows of the fit.
    asked : tuple of int
        Rows whose labels were new in it.
    change : float
        Share of rows whose predicted label is another than before; of a regressor, root mean
        square change of predictions over their spread. NaN for the first fit.
    """

    labels: int
    asked: tuple[int, ...]
    change: float


class ActiveLearner:
    """Learn from a pool of rows by asking for few labels.

    Parameters
    ----------
    machine : estimator
        What is fitted to the labelled rows; cloned, never changed.
    X : rows
        All rows, labelled or not: arrays, sparse rows, tables or texts, as the machine takes them.
    rule : {"margin", "entropy", "variance", "expected_change", "random"} or QueryRule
        Which row is asked about next.
    random_state : int, default=0
        Seed of random queries: of the rule "random", and before two classes are known.

    Attributes
    ----------
    machine_ : estimator or None
        Fitted to the labels so far; None before they allow it.
    labelled_ : int array
        Rows with labels, in the order in which they were told.
    labels_ : array
        Their labels.
    rounds_ : tuple of ActiveRound
        The fits so far.
    ending_ : ActiveEnding or None
        Why the last `run` ended.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.selection import ActiveLearner
    >>> X = np.linspace(0, 1, 101)[:, None]
    >>> y = (X[:, 0] > 0.37).astype(int)
    >>> learner = ActiveLearner(SVC("linear", C=1e6), X)
    >>> learner.teach([0, 100], y[[0, 100]])
    >>> learner.run(y, budget=9).name  # halves the interval with every label
    'BUDGET'
    >>> float((learner.machine_.predict(X) == y).mean())
    1.0
    """

    def __init__(
        self, machine: Any, X: Any, rule: str | QueryRule = "margin", *, random_state: int = 0
    ) -> None:
        self.machine, self.rule = machine, query_rule(rule)
        self.X = as_points(X) if is_sequence_data(X) else indexable(X)
        self.n_rows = row_count(self.X)
        self.machine_: Any = None
        self.labelled_: Array = np.empty(0, dtype=np.intp)
        self.labels_: Array = np.empty(0)
        self.rounds_: tuple[ActiveRound, ...] = ()
        self.ending_: ActiveEnding | None = None
        self._rng = np.random.RandomState(random_state)
        self._predicted: Array | None = None

    @property
    def pool(self) -> Array:
        """The rows without labels."""
        free = np.ones(self.n_rows, dtype=bool)
        free[self.labelled_] = False
        return np.flatnonzero(free)

    def query(self, count: int = 1) -> Array:
        """Return the rows to ask about next, best first; nothing is changed but random numbers.

        Parameters
        ----------
        count : int, default=1
            How many; fewer are returned where the pool has fewer.

        Returns
        -------
        int array
            Places in X.
        """
        pool = self.pool
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(f"ActiveLearner.query: count={count!r} must be a positive integer")
        count = min(int(count), len(pool))
        if self.machine_ is None or count == 0:
            return self._rng.permutation(pool)[:count]
        rows, labelled = take_rows(self.X, pool), take_rows(self.X, self.labelled_)
        return pool[self.rule.choose(self.machine_, rows, labelled, self._rng, count)]

    def teach(self, index: Any, labels: Any) -> None:
        """Tell the labels of rows, and fit again; what fails or is interrupted changes nothing.

        Parameters
        ----------
        index : array-like of int
            Rows.
        labels : array-like
            A label for each.
        """
        index, labels = np.atleast_1d(np.asarray(index)), np.atleast_1d(np.asarray(labels))
        self._check(index, labels)
        known = np.concatenate([self.labelled_, index.astype(np.intp)])
        told = labels if not len(self.labels_) else np.concatenate([self.labels_, labels])
        if is_classifier(self.machine) and len(np.unique(told)) < 2:
            self.labelled_, self.labels_ = known, told  # no machine yet: nothing to tell apart
            return
        machine = clone(self.machine).fit(take_rows(self.X, known), told)
        predicted = np.asarray(machine.predict(self.X))
        done = ActiveRound(len(known), tuple(map(int, index)), self._change(predicted))
        self.machine_, self.labelled_, self.labels_ = machine, known, told
        self.rounds_, self._predicted = (*self.rounds_, done), predicted

    def run(
        self,
        oracle: Callable[[Array], Any] | Sequence[Any] | Array,
        *,
        budget: int | None = None,
        batch: int = 1,
        stop_outside_margin: bool = False,
        tol: float | None = None,
        callback: Callable[[ActiveLearner], bool | None] | None = None,
    ) -> ActiveEnding:
        """Ask, be told and fit until a stop rule holds.

        Parameters
        ----------
        oracle : callable, or array of all labels
            Returns the labels of an array of rows.
        budget : int or None, default=None
            Largest number of labelled rows, those of before included.
        batch : int, default=1
            Rows asked about between two fits.
        stop_outside_margin : bool, default=False
            Stop once no row of the pool has |f(x)| < 1 (two classes): a row outside the margin of
            a support vector machine, if its label is as predicted, would not change it.
        tol : float or None, default=None
            Stop after three fits in a row whose `change` is at most this.
        callback : callable or None, default=None
            Called with the learner after every fit; a true return value stops.

        Returns
        -------
        ActiveEnding
            Why it ended.
        """
        self._check_run(budget, batch, tol)
        if not callable(oracle) and np.shape(oracle) != (self.n_rows,):
            raise ValueError(
                f"ActiveLearner.run: oracle must be a function, or a label for each of the "
                f"{self.n_rows} rows; got an array of shape {np.shape(oracle)}"
            )
        ask = oracle if callable(oracle) else np.asarray(oracle).__getitem__
        while True:
            ending = self._ended(budget, stop_outside_margin, tol)
            if ending is not None:
                self.ending_ = ending
                return ending
            left = batch if budget is None else min(batch, budget - len(self.labelled_))
            index = self.query(left)
            self.teach(index, ask(index))
            if callback is not None and callback(self):
                self.ending_ = ActiveEnding.STOPPED
                return self.ending_

    def _ended(self, budget: int | None, outside: bool, tol: float | None) -> ActiveEnding | None:
        pool = self.pool
        if not len(pool):
            return ActiveEnding.POOL_IS_EMPTY
        if budget is not None and len(self.labelled_) >= budget:
            return ActiveEnding.BUDGET
        if self.machine_ is None:
            return None
        if outside and self._nothing_inside(pool):
            return ActiveEnding.NOTHING_IN_MARGIN
        last = [done.change for done in self.rounds_[-_CALM:]]
        if tol is not None and len(last) == _CALM and max(last) <= tol:
            return ActiveEnding.CALM
        return None

    def _nothing_inside(self, pool: Array) -> bool:
        classes = getattr(self.machine_, "classes_", ())
        if len(classes) != 2:
            raise ParameterError(
                "ActiveLearner.run: stop_outside_margin=True needs a classifier of two classes; "
                "pass tol or budget"
            )
        return bool((MarginQuery().distances(self.machine_, take_rows(self.X, pool)) >= 1.0).all())

    def _change(self, predicted: Array) -> float:
        before = self._predicted
        if before is None:
            return float("nan")
        if is_classifier(self.machine):
            return float(np.mean(predicted != before))
        moved = float(np.sqrt(np.mean((predicted - before) ** 2)))
        spread = float(np.std(predicted))
        return moved / spread if spread > 0 else (0.0 if moved == 0 else float("inf"))

    def _check(self, index: Array, labels: Array) -> None:
        if index.ndim != 1 or index.dtype.kind not in "iu" or len(index) != len(labels):
            raise ValueError(
                f"ActiveLearner.teach: index and labels must be as many, rows as integers; got "
                f"{len(index)} of type {index.dtype} and {len(labels)}"
            )
        if len(index) and (index.min() < 0 or index.max() >= self.n_rows):
            raise ValueError(f"ActiveLearner.teach: rows are numbered 0 to {self.n_rows - 1}")
        twice = np.isin(index, self.labelled_).any() or len(np.unique(index)) < len(index)
        if twice:
            raise ValueError("ActiveLearner.teach: a row of index has a label already")

    def _check_run(self, budget: Any, batch: Any, tol: Any) -> None:
        for name, value in (("budget", budget), ("batch", batch)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= 1) and not (name == "budget" and value is None):
                raise ParameterError(
                    f"ActiveLearner.run: {name}={value!r} must be a positive integer"
                )
        if tol is not None and not (is_real(tol) and tol >= 0):
            raise ParameterError(f"ActiveLearner.run: tol={tol!r} must be None or at least zero")
