"""Drop-in for `sklearn.linear_model.LogisticRegression`."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.linear_model import LogisticRegression as ScikitLogisticRegression
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import WrappedMachine
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.logistic.newton import NewtonRisk

_STEPS = 100  # scikit-learn's default
_SMOOTH = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")


class LogisticRegression(WrappedMachine, ScikitLogisticRegression):
    """`sklearn.linear_model.LogisticRegression` on Mercer's solver: Newton's method, certified.

    Runs on Mercer with the l2 penalty and a finite C, whichever `solver` but "liblinear", which
    punishes the constant as well. What is left, the l1 and elastic-net penalties, none,
    "liblinear", warm starts, limits of fewer than 100 steps and callbacks of scikit-learn, runs on
    scikit-learn's solvers, and then there is neither `solution_` nor `certificate_`. What differs
    is listed in the user guide.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, default="deprecated"
        Deprecated by scikit-learn: use `l1_ratio` and C.
    C : float, default=1.0
        Weight of the loss beside the penalty.
    l1_ratio : float, default=0.0
        Share of the l1 penalty.
    dual : bool, default=False
        Of "liblinear".
    tol : float, default=1e-4
        Of scikit-learn's solvers; Newton's steps go on to the tolerance of the certificate.
    fit_intercept : bool, default=True
        Whether there is a constant.
    intercept_scaling : float, default=1
        Of "liblinear".
    class_weight : dict, "balanced" or None, default=None
        Weight of the rows of each class.
    random_state : int, RandomState or None, default=None
        Of "liblinear", "sag" and "saga" where those run.
    solver : {"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}, default="lbfgs"
        Which of scikit-learn's solvers, where one of them runs.
    max_iter : int, default=100
        Largest number of steps of scikit-learn's solvers; from 100 on, Mercer's limit is 200 or
        this, if it is larger.
    verbose : int, default=0
        Of scikit-learn's solvers.
    warm_start : bool, default=False
        Whether scikit-learn's solver starts from the last answer.
    n_jobs : None
        Deprecated by scikit-learn.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the columns.
    intercept_ : array of shape (1,) or (n_classes,)
        The constants.
    n_iter_ : int32 array of shape (1,)
        Steps.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.LogisticRegression
        The Mercer machine inside, if that ran.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The duality gap, from the data in float64.

    Examples
    --------
    >>> from mercer.compat.sklearn import LogisticRegression
    >>> machine = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> machine.predict([[0.4], [2.6]]).tolist()
    [0, 1]
    >>> machine.certificate_.ok
    True
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self.__dict__.pop("machine_", None)
        self._validate_params()
        if not self._is_ours():
            return self._by_scikit_learn(X, y, sample_weight)
        if self.n_jobs is not None:
            warnings.warn(_NO_JOBS.format(self.n_jobs), FutureWarning, stacklevel=3)
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
        options["accept_large_sparse"] = self.solver not in ("sag", "saga")
        rows, labels = validate_data(self, X, y, accept_sparse="csr", **options)
        check_classification_targets(labels)
        classes = np.unique(labels)
        weights = self._weights(rows, labels, classes, sample_weight)
        if len(classes) < 2 or not _all_count(labels, classes, weights):
            return self._by_scikit_learn(X, y, sample_weight)
        machine = InnerLogisticRegression(
            penalty=1.0 / float(self.C),
            bias=bool(self.fit_intercept),
            solver=NewtonRisk(max_iter=max(NewtonRisk.max_iter, int(self.max_iter))),
        )
        self.machine_ = machine.fit(rows, labels, weights)
        self.classes_ = machine.classes_
        self.coef_ = np.ascontiguousarray(machine.coef_, dtype=rows.dtype)
        self.intercept_ = np.array(machine.intercept_, dtype=rows.dtype)
        self.n_iter_ = np.array([machine.solution_.iterations], dtype=np.int32)
        return self

    def _is_ours(self) -> bool:
        """Return whether the parameters describe what Mercer's machine solves."""
        smooth = self.penalty == "deprecated" and self.l1_ratio == 0 and np.isfinite(self.C)
        plain = self.solver in _SMOOTH and not self.dual and not self.warm_start
        watched = bool(getattr(self, "_skl_callbacks", ()))
        elsewhere = sklearn.get_config()["array_api_dispatch"]
        enough = self.max_iter >= _STEPS  # fewer: what that solver has found by then is meant
        return bool(smooth and plain and enough and not watched and not elsewhere)

    def _by_scikit_learn(self, X: Any, y: Any, sample_weight: Any) -> Self:
        with warnings.catch_warnings():
            # SciPy warns of single steps; how the solver ended scikit-learn says in its own words
            warnings.filterwarnings("ignore", "(?i).*line search", RuntimeWarning)
            try:
                ScikitLogisticRegression.fit(self, X, y, sample_weight)
            except ValueError as error:
                if "under-/overflow" not in str(error):
                    raise
                raise ValueError(_NO_NUMBERS.format(self.solver)) from error
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            raise ValueError(_NO_NUMBERS.format(self.solver))
        return self

    def _weights(self, X: Any, y: Array, classes: Array, sample_weight: Any) -> Array:
        """Return what each row counts, its class included."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
        if self.class_weight is not None:
            options = {"classes": classes, "y": y, "sample_weight": weights}
            by_class = compute_class_weight(self.class_weight, **options)
            weights = weights * by_class[np.searchsorted(classes, y)]
        return np.asarray(weights)


class InnerLogisticRegression(machines.LogisticRegression):
    """A machine whose solver is not the user's choice: SOLVED asks for its certificate."""

    _solver_is_given = False


_NO_JOBS = (
    "'n_jobs' has no effect since 1.8 and will be removed in 1.10. You provided 'n_jobs={}', "
    "please leave it unspecified."
)

_NO_NUMBERS = (
    "LogisticRegression: solver={!r} of scikit-learn ran into numbers that overflow or are none. "
    "Scale X, take a finite C, and let sample_weight leave rows of every class."
)


def _all_count(y: Array, classes: Array, weights: Array) -> bool:
    """Return whether every class has rows that count, and no row less than nothing."""
    totals = np.bincount(np.searchsorted(classes, y), weights, minlength=len(classes))
    return bool((weights >= 0).all() and (totals > 0).all())
