"""Class `Tuned`: an estimator that tunes its parameters by cross-validation when it is fitted."""

from __future__ import annotations

import os
import time
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.inner_machine import InnerMachineMixin, inner_has
from mercer.machines.base.machine import Machine, all_or_nothing_search
from mercer.selection.folds import indexable
from mercer.selection.search import Search
from mercer.selection.sharing.base import fit_to
from mercer.selection.task import TuningCallback, machine_at, scorers_of
from mercer.selection.tuning import Tuning, tune


class Tuned(InnerMachineMixin, Machine, BaseEstimator):
    """Estimator that tunes its hyperparameters by cross-validation and refits to all samples.

    The interface and the scores are those of scikit-learn's `GridSearchCV`, but candidates and
    folds share computations; see `tune`.

    Parameters
    ----------
    machine : estimator
        Any estimator compatible with scikit-learn.
    grid : dict of lists, list of such dicts, Grid or None
        Values of the hyperparameters. If None, a default grid for the data.
    cv : int, splitter, iterable or "loo"
        The folds, as in scikit-learn; "loo" leaves out one row at a time (regressors are then
        judged by the mean squared error unless `scoring` says otherwise).
    scoring : str, callable, list, dict or None
        As in scikit-learn; None takes the `score` of the machine, and `ArtificialOutliers` for
        detectors of novelty without `y`.
    metric : str or None
        With several scores, the name of the one that decides.
    refit : bool
        Refit the best candidate to all samples.
    rule : str or callable
        "best", "one_standard_error", or a function of candidates and scores.
    search : Search or None
        Which points are judged on what; None judges all of them on everything.
    train_scores : bool
        Whether rows learnt from are scored, too.
    error_score : float or "raise"
        Score of a point that cannot be fitted; "raise" lets its error through.
    random_state : int, RandomState or None
        Seed of searches that draw.
    journal : path or None
        File that records finished results, to resume an interrupted fit.
    callback : callable or None
        Called with `TuningProgress`; a true return value stops with what there is.
    time_limit : float or None
        Time limit in seconds. The search then keeps the results so far.

    Attributes
    ----------
    tuning_ : Tuning
        All results.
    best_params_ : dict
        Selected hyperparameters.
    best_score_ : float
        Mean cross-validation score.
    best_index_ : int
        Index of the candidate in `cv_results_`.
    best_estimator_ : estimator
        Estimator refitted to all samples; only with `refit`.
    cv_results_ : dict
        All results, as `GridSearchCV` has them.
    scorer_ : callable or dict
        Scorer.
    n_splits_ : int
        Number of folds.
    multimetric_ : bool
        Whether there are several scores.
    refit_time_ : float
        Seconds of the last fit; only with `refit`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import Tuned
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> machine = Tuned(SVC(Gaussian(1.0)), {"kernel__scale": [0.01, 1.0, 100.0]}).fit(X, y)
    >>> machine.best_params_, machine.certificate_.ok
    ({'kernel__scale': 1.0}, True)
    >>> machine.predict([[0.0, 0.0], [3.0, 3.0]]).tolist()
    [False, True]
    """

    _fitted_name = "best_estimator_"

    def __init__(
        self,
        machine: Any,
        grid: Any = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        metric: str | None = None,
        refit: bool = True,
        rule: Any = "best",
        search: Search | None = None,
        train_scores: bool = False,
        error_score: float | str = np.nan,
        random_state: Any = 0,
        journal: str | os.PathLike[str] | None = None,
        callback: TuningCallback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.machine = machine
        self.grid = grid
        self.cv = cv
        self.scoring = scoring
        self.metric = metric
        self.refit = refit
        self.rule = rule
        self.search = search
        self.train_scores = train_scores
        self.error_score = error_score
        self.random_state = random_state
        self.journal = journal
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing_search
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Tune the hyperparameters, then refit to all samples.

        Parameters
        ----------
        X : array-like, sparse matrix, table, or list
            Rows.
        y : array-like, optional
            Targets.
        **params : dict
            `sample_weight`, how often each row counts in fits and scores; `groups`, for splitters
            that keep groups of rows together.

        Returns
        -------
        self
            The fitted machine.
        """
        if not isinstance(self.refit, bool | np.bool_):
            raise ValueError(
                f"Tuned: refit={self.refit!r} must be True or False; select the score by metric="
            )
        unknown = set(params) - {"sample_weight", "groups"}
        if unknown:
            raise TypeError(f"Tuned.fit: unknown parameter {sorted(unknown)[0]!r}")
        self._forget()
        names = ("grid", "cv", "scoring", "metric", "rule", "search", "train_scores", "error_score",
                 "random_state", "journal", "callback", "time_limit")  # fmt: skip
        options = {name: getattr(self, name) for name in names}
        self._keep(tune(self.machine, X, y, **options, **params), y)
        if self.refit:
            self._refit(X, y, params.get("sample_weight"))
        return self

    def _forget(self) -> None:
        for name in ("best_estimator_", "refit_time_"):
            self.__dict__.pop(name, None)

    def _keep(self, found: Tuning, y: Any) -> None:
        self.tuning_ = found
        self.best_params_ = found.best_params
        self.best_score_ = found.best_score
        self.best_index_ = found.best
        self.cv_results_ = found.cv_results
        self.n_splits_ = found.scores.shape[1]
        scorers = scorers_of(self.machine, self.scoring, self.cv, y)
        self.multimetric_ = len(scorers) > 1
        self.scorer_: Any = scorers if self.multimetric_ else next(iter(scorers.values()))

    def _refit(self, X: Any, y: Any, weights: Any) -> None:
        started = time.perf_counter()
        self.best_estimator_ = machine_at(self.machine, self.best_params_)
        fit_to(self.best_estimator_, indexable(X), y, weights)
        self.refit_time_ = time.perf_counter() - started

    def score(self, X: Any, y: Any = None) -> float:
        """Score the fitted estimator with the selection score.

        Parameters
        ----------
        X : array-like
            Rows.
        y : array-like, optional
            Their targets.

        Returns
        -------
        float
            The score.
        """
        machine = self._fitted("score")
        scorer: Any = self.scorer_[self.tuning_.metric] if self.multimetric_ else self.scorer_
        found = scorer(machine, X, *(() if y is None else (y,)))
        return float(found[self.tuning_.metric] if isinstance(found, dict) else found)

    @available_if(inner_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Array:
        """Score each row with the chosen machine."""
        return self._fitted("score_samples").score_samples(X)  # type: ignore[no-any-return]

    @available_if(inner_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Transform rows with the chosen machine."""
        return self._fitted("transform").transform(X)

    @available_if(inner_has("inverse_transform"))  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> Any:
        """Take transformed rows back with the chosen machine."""
        return self._fitted("inverse_transform").inverse_transform(X)

    @available_if(inner_has("get_feature_names_out"))  # type: ignore[untyped-decorator]
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` makes."""
        inner = self._fitted("get_feature_names_out")
        return inner.get_feature_names_out(input_features)  # type: ignore[no-any-return]

    @available_if(inner_has("transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then transform the same rows."""
        return self.fit(X, y, **params).transform(X)

    @available_if(inner_has("fit_predict"))  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Fit, then return the labels of the same rows."""
        inner = self.fit(X, y, **params)._fitted("fit_predict")
        return inner.labels_ if hasattr(inner, "labels_") else inner.predict(X)  # type: ignore[no-any-return]

    @property
    def labels_(self) -> Array:
        """Clusters of the rows fitted to."""
        return self._inner("labels_")  # type: ignore[no-any-return]

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self._inner("n_features_in_")  # type: ignore[no-any-return]

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns, where they have any."""
        return self._inner("feature_names_in_")  # type: ignore[no-any-return]

    def _inner(self, name: str) -> Any:
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"Tuned has no {name} before it is fitted with refit=True")
        return getattr(self.best_estimator_, name)

    def _fitted(self, what: str) -> Any:
        check_is_fitted(self)
        if "best_estimator_" not in self.__dict__:
            raise NotFittedError(
                f"Tuned was fitted with refit=False, which only tunes; {what} requires refit=True"
            )
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return "tuning_" in self.__dict__
