"""The support vector classifier: soft margin with L1 slack, two classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from mercer._points import take
from mercer._types import Array, Points
from mercer.certificates import Certificate, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Kernel, resolve
from mercer.machines._base import KernelMachine, all_or_nothing
from mercer.machines._parameters import (
    check_optional_callable,
    check_optional_count,
    check_optional_positive,
    check_real,
)
from mercer.machines._weights import DistinctRows, check_weights, distinct_rows
from mercer.problems import BoxQP, Dual
from mercer.solvers import SMO, Callback, Solution, solve

_SOLVE_BELOW = 0.9  # of tol, so that the certificate, computed from the data, meets tol itself

_LARGEST = 1e300  # so that sums over bounds stay finite


class SVC(ClassifierMixin, KernelMachine):
    """Two-class classifier of largest margin: f(x) = sum_i b_i k(x_i, x) + intercept.

    Minimises |w|^2 / 2 + C sum_i s_i max(0, 1 - y_i f(x_i)) over functions with any kernel.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data as scikit-learn's
        gamma="scale" does.
    C : float, default=1.0
        Weight of the slack.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the decision function
        (LIBSVM's criterion).
    max_iter : int or None, default=None
        Largest number of pair steps; None takes max(10^7, 100 n).
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; f > 0 means the second. A tie, f = 0, goes to the first.
    kernel_ : Kernel
        The kernel used.
    support_ : int array
        Rows with a nonzero coefficient.
    dual_coef_ : array
        Their coefficients b.
    intercept_ : float
        The constant of the decision function.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, recomputed from the data in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> machine = SVC(Gaussian(1.0), C=10.0).fit(X, ["in", "out", "out", "in"])
    >>> machine.predict([[0.1], [1.5]]).tolist()
    ['in', 'out']
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        refuse_mixed_labels(self, y)
        X, y = self._training_points(X, y)
        check_classification_targets(y)
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, signs = two_classes(self, y, weights)
        distinct = self._distinct(X, signs, weights)
        # scales taken from the merged rows depend on neither copies nor order, to the last bit
        self.kernel_ = resolve(self.kernel, take(X, distinct.first), distinct.weight)
        problem = self._problem(X, signs, distinct)
        solver = SMO(tol=_SOLVE_BELOW * self.tol, max_iter=self.max_iter)
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        self.solution_: Solution = solve(problem, solver, **options)
        dual: Dual = self.solution_.value
        self.certificate_: Certificate = certify(problem, dual, self.tol)
        self._expansion = problem.gram.expand(dual.coef).plus(np.array([dual.intercept]))
        coef = distinct.spread(dual.coef, weights)
        self.support_ = np.flatnonzero(coef)
        self.dual_coef_ = coef[self.support_]
        self.intercept_ = dual.intercept
        self.n_iter_ = self.solution_.iterations
        return self

    def decision_function(self, X: Any) -> Array:
        """Evaluate f at new rows; positive values mean the second class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,)
            The values of f.
        """
        return np.asarray(self._values(X)[:, 0])

    def predict(self, X: Any) -> Array:
        """Predict labels of new rows: the second class where f > 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        second = self.decision_function(X) > 0
        return np.asarray(self.classes_[second.astype(np.intp)])

    def _problem(self, X: Points, signs: Array, distinct: DistinctRows) -> BoxQP:
        options: dict[str, Any] = {"rows": distinct.first, "names": self._column_names()}
        gram = make_gram(self.kernel_, X, Need.ROWS, **options)
        with np.errstate(over="ignore"):  # no coefficient gets as far as such a bound
            bound = np.minimum(self.C * distinct.weight, _LARGEST)
        return BoxQP.svc(gram, signs[distinct.first], bound)

    def _distinct(self, X: Points, signs: Array, weights: Array) -> DistinctRows:
        if not self._is_precomputed():
            return distinct_rows(X, signs, weights)
        kept = np.flatnonzero(weights)
        group = np.full(len(weights), -1, dtype=np.intp)
        group[kept] = np.arange(len(kept))
        return DistinctRows(kept, weights[kept], group)

    def _check_parameters(self) -> None:
        check_real(self, "C", above=0)
        check_real(self, "tol", above=0)
        check_optional_count(self, "max_iter")
        check_optional_positive(self, "time_limit")
        check_optional_callable(self, "callback")


def refuse_mixed_labels(machine: Any, y: Any) -> None:
    """Raise where NumPy would turn the label 1 into the label "1" because others are strings."""
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) == 2:
        raise ValueError(
            f"{type(machine).__name__}: y mixes strings with other labels, such as {y[0]!r}; "
            "give all labels as strings, or none"
        )


def two_classes(machine: Any, y: Array, weights: Array) -> tuple[Array, Array]:
    """Give the two labels, of rows that count, and the sign of each row."""
    classes = np.unique(y[weights > 0])
    name = type(machine).__name__
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. {name} got {len(classes)} classes; wrap it "
            "in sklearn.multiclass.OneVsRestClassifier for more."
        )
    if len(classes) < 2:
        reason = " once rows of weight zero are left out" if len(np.unique(y)) > 1 else ""
        only = classes.tolist()[0]
        raise ValueError(f"{name} needs two classes, but y has only one class, {only!r}{reason}")
    return classes, np.where(y == classes[1], 1.0, -1.0)
