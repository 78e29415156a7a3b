"""Drop-ins for `sklearn.svm`: LinearSVC and LinearSVR, with a regularized intercept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import sklearn.svm
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm._base import _get_liblinear_solver_type
from sklearn.svm._classes import _validate_dual_parameter
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.compat.sklearn.base import CheckedEstimator, Rows, masked_weights
from mercer.gram import Gram, Need, make_gram
from mercer.gram.build import refuse_extremes
from mercer.gram.policy import FLOAT64_ROWS, stored_dtype
from mercer.kernels import Linear
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_real
from mercer.machines.base.targets import (
    class_weights,
    classes_of,
    distinct_rows,
    refuse_mixed_labels,
)
from mercer.machines.svm import problem as svm
from mercer.machines.svm.multiclass import parts_of
from mercer.machines.svm.path import Each
from mercer.machines.svm.primal.crossover import DualDescent
from mercer.machines.svm.primal.interior_point import InteriorPoint
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many
from mercer.rows.points import as_points, is_sparse, take, to_dense
from mercer.solvers.base import Solution, Solver, Status
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import choose, solve

# --- origin --------------------------------------------------------------------------------------
#
# Linear machines through the origin: the constant, if any, is a weight like the others.
#
# LIBLINEAR gives every row one more column and punishes its weight with the rest, so the dual has
# a box and no equality. Solvers on features take that as it is. For those on a kernel matrix,
# which move pairs, a row of zeros is added to the others. Its coefficient may be anything and
# changes nothing but the sum of all, so the equality always holds and its multiplier is zero.

_PASSES = 1000  # LIBLINEAR's default; a smaller limit was asked for
_SOLVE_BELOW = 0.9  # of tol, so that the certificate, computed from the data, meets tol itself


@dataclass(frozen=True, eq=False)
class OriginProgramme:
    """One function to be found.

    Attributes
    ----------
    write : callable
        Returns the programme for a Gram, targets and costs of the slack.
    targets, costs : (n,) array
        What f should be, and what missing it costs, for each row.
    reach : float
        No sum of coefficients is beyond it.
    """

    write: Callable[[Gram, Array, Array], BoxQP]
    targets: Array
    costs: Array
    reach: float

    def problem(self, gram: Gram) -> BoxQP:
        """Write the programme with an equality; the last row of the Gram is the row of zeros."""
        written = self.write(gram, np.append(self.targets, 0.0), np.append(self.costs, np.inf))
        lower, upper, epsilons = written.lower.copy(), written.upper.copy(), written.epsilons.copy()
        lower[-1], upper[-1], epsilons[-1] = -self.reach, self.reach, 0.0
        return replace(written, lower=lower, upper=upper, epsilon=epsilons)


@dataclass(frozen=True, eq=False)
class OriginQPs:
    """All functions, asked of one Gram."""

    parts: tuple[OriginProgramme, ...]

    def __call__(self, gram: Gram) -> BoxQP | Many:
        """Return one programme, or several that share the Gram."""
        return _together([part.problem(gram) for part in self.parts])

    def without_equality(self, gram: Gram) -> BoxQP | Many:
        """Return the same for solvers that need no row of zeros."""
        return _together([_freed(part.problem(gram)) for part in self.parts])

    def answered(self, value: Dual | Duals) -> Dual | Duals:
        """Return the answer with the row of zeros taking up what the others leave of the sum."""
        duals = [_balanced(dual.coef) for dual in parts_of(value)]
        return duals[0] if len(duals) == 1 else Duals(tuple(duals))


class OriginMachine(Certified, CheckedEstimator):
    """A machine that ends in programmes without an equality."""

    tol: float
    fit_intercept: bool
    intercept_scaling: float
    max_iter: int

    def _weigh(
        self, X: Points, rows: Array, parts: tuple[OriginProgramme, ...]
    ) -> tuple[Array, Array]:
        """Return the weights (parts, features) and constants (parts,) of the functions."""
        scaling = float(self.intercept_scaling) if self.fit_intercept else 0.0
        padded = with_origin(X, rows, scaling)
        gram, question = _gram(type(self).__name__, padded), OriginQPs(parts)
        problem = question(gram) if gram.factor is None else question.without_equality(gram)
        with warnings.catch_warnings():  # told below, in LIBLINEAR's words
            warnings.filterwarnings("ignore", ".*the iteration limit", ConvergenceWarning)
            solution = solve(problem, self._solver(choose(problem)))
        if solution.status is Status.ITERATION_LIMIT:
            message = "Liblinear failed to converge, increase the number of iterations."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self._keep_answer(gram, question, solution)
        coefs = np.column_stack([dual.coef for dual in parts_of(solution.value)])
        weights = np.asarray(padded.T @ coefs).T
        if not self.fit_intercept:
            return weights, np.zeros(len(parts))
        return np.ascontiguousarray(weights[:, :-1]), scaling * weights[:, -1]

    def _solver(self, solver: Solver) -> Any:
        """Return the solver with tolerance and limit; pair steps are no passes over the rows."""
        if isinstance(solver, Each):
            return Each(self._solver(solver.solver))
        wishes: dict[str, Any] = {"tol": _SOLVE_BELOW * self.tol}
        if self.max_iter < _PASSES and isinstance(solver, InteriorPoint | DualDescent):
            wishes["max_iter"] = max(1, int(self.max_iter))
        return replace(solver, **wishes)  # type: ignore[type-var]

    def _keep_answer(self, gram: Gram, question: OriginQPs, solution: Solution) -> None:
        self.solution_ = solution
        self.n_iter_ = max(1, int(solution.iterations))
        judge = partial(certify, tol=float(self.tol))
        self._judgement = lazy_certificate(gram, question, question.answered(solution.value), judge)


def with_origin(X: Points, rows: Array, scaling: float) -> Points:
    """Take rows, add a column of `scaling`, if that is not zero, and then a row of zeros."""
    n, d = len(rows), X.shape[1]
    wide = d + (scaling != 0)
    if is_sparse(X):
        column = sparse.csr_array(np.full((n, 1), scaling))
        taken = sparse.hstack([take(X, rows), column]) if scaling else take(X, rows)
        return as_points(sparse.vstack([taken, sparse.csr_array((1, wide))], format="csr"))
    padded = np.zeros((n + 1, wide))
    for i in range(0, n, 4096):  # so that no second copy of X is made
        padded[i : min(n, i + 4096), :d] = X[rows[i : i + 4096]]
    padded[:n, d:] = scaling
    return padded


def _gram(owner: str, padded: Points) -> Gram:
    """Hold few rows by their features, if those are fewer: any C is one to solvers on these."""
    n = padded.shape[0]
    need = Need.PRODUCTS if n <= FLOAT64_ROWS else Need.BOX
    gram = make_gram(Linear(), padded, need, dtype=stored_dtype(n))
    return refuse_extremes(owner, gram, Linear())


def _together(problems: list[BoxQP]) -> BoxQP | Many:
    return problems[0] if len(problems) == 1 else Many(tuple(problems))


def _freed(problem: BoxQP) -> BoxQP:
    """Take the equality away, and what the last row may do."""
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[-1] = upper[-1] = 0.0
    alone = np.full(len(lower), -1)
    return replace(problem, lower=lower, upper=upper, total=np.zeros(0), group=alone)


def _balanced(coef: Array) -> Dual:
    """Let the last coefficient make the sum zero; the function is through the origin."""
    return Dual(np.append(coef[:-1], -coef[:-1].sum()), 0.0)


# --- linear svc ----------------------------------------------------------------------------------
#
# Drop-in for `sklearn.svm.LinearSVC`.

_LINEAR_SVC_LOSSES = {"hinge": svm.svc, "squared_hinge": svm.svc_l2}
_REACH = {"hinge": 1.0, "squared_hinge": 2.0}  # times the sum of the costs; see `_part`


class LinearSVC(OriginMachine, sklearn.svm.LinearSVC):
    """`sklearn.svm.LinearSVC` on Mercer's solvers: linear classification.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top. The constant is punished like a weight, as LIBLINEAR does. `dual` and `verbose` are
    accepted: the solver decides by itself. From `max_iter=1000` on the solver's own limit holds.
    `penalty="l1"` and `multi_class="crammer_singer"` run on scikit-learn's LIBLINEAR, without a
    certificate; elsewhere nothing is random.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import LinearSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> LinearSVC().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]]).tolist()
    [1]
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
            How often each row counts: a factor on its C; rows of negative weight are left out.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        refuse_mixed_labels(self, y)
        points, labels = Rows().training(self, X, y)
        check_classification_targets(labels)
        weights = masked_weights(self, sample_weight, len(labels))
        options = self.loss, self.penalty, self.multi_class
        dual = _validate_dual_parameter(self.dual, *options, points)
        _get_liblinear_solver_type(self.multi_class, self.penalty, self.loss, dual)
        if self.penalty == "l1" or self.multi_class == "crammer_singer":  # these are no box QPs
            for name in ("solution_", "_judgement"):  # there are none, not those of an earlier fit
                self.__dict__.pop(name, None)
            fitted: Self = super().fit(X, y, weights)
            return fitted
        self.classes_, codes = classes_of(self, labels, weights)
        rows = distinct_rows(points, codes, weights)
        labels, costs = codes[rows.first], float(self.C) * rows.weight
        totals = np.bincount(labels, rows.weight)
        found = class_weights(self, self.class_weight, self.classes_, totals)
        factors = np.ones(len(self.classes_)) if found is None else found
        if len(self.classes_) == 2:
            parts = [self._part(labels == 1, costs * factors[labels])]
        else:
            single = [labels == c for c in range(len(self.classes_))]
            parts = [
                self._part(mine, np.where(mine, factor, 1.0) * costs)
                for mine, factor in zip(single, factors, strict=True)
            ]
        self.coef_, constants = self._weigh(points, rows.first, tuple(parts))
        self.intercept_ = constants if self.fit_intercept else 0.0
        return self

    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision at new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for `classes_[1]`; else one per class.
        """
        check_is_fitted(self)
        values = to_dense(Rows().new(self, X) @ self.coef_.T) + self.intercept_
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def _part(self, mine: Array, costs: Array) -> OriginProgramme:
        # a coefficient is at most its cost; squared, twice its cost times a slack, and the squares
        # of slacks cost no more than those of f = 0, which are 1: their sum is below twice the sum
        signs = np.where(mine, 1.0, -1.0)
        return OriginProgramme(
            _LINEAR_SVC_LOSSES[self.loss], signs, costs, _REACH[self.loss] * float(costs.sum())
        )


# --- linear svr ----------------------------------------------------------------------------------
#
# Drop-in for `sklearn.svm.LinearSVR`.

_LINEAR_SVR_LOSSES = {"epsilon_insensitive": svm.svr, "squared_epsilon_insensitive": svm.svr_l2}


class LinearSVR(OriginMachine, sklearn.svm.LinearSVR):
    """`sklearn.svm.LinearSVR` on Mercer's solvers: linear regression with a tube.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top. The constant is punished like a weight, as LIBLINEAR does. `dual` and `verbose` are
    accepted: the solver decides by itself. From `max_iter=1000` on the solver's own limit holds.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import LinearSVR
    >>> X = np.arange(10.0)[:, None]
    >>> machine = LinearSVR(C=100.0).fit(X, 2.0 * X.ravel() + 1.0)
    >>> machine.coef_.round(2).tolist(), machine.intercept_.round(2).tolist()
    ([2.0], [1.0])
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: a factor on its C; rows of negative weight are left out.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        check_real(self, "epsilon", least=0)
        X, y = Rows().training(self, X, y, y_numeric=True)
        y = y.astype(np.float64)
        weights = masked_weights(self, sample_weight, len(y))
        rows = distinct_rows(X, y, weights)
        targets, costs = y[rows.first], float(self.C) * rows.weight
        # coefficients are at most their costs; squared, twice a cost times an error, and errors
        # cost no more than those of f = 0
        reach = 1.0 + float(costs.sum())
        if self.loss == "squared_epsilon_insensitive":
            reach = 1.0 + 2.0 * float(np.sqrt(costs.sum()) * np.sqrt(costs @ targets**2))
        write = partial(_LINEAR_SVR_LOSSES[self.loss], eps=float(self.epsilon))
        coef, constants = self._weigh(
            X, rows.first, (OriginProgramme(write, targets, costs, reach),)
        )
        self.coef_ = coef[0]
        self.intercept_ = constants if self.fit_intercept else 0.0
        return self

    def _decision_function(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(Rows().new(self, X) @ self.coef_ + self.intercept_)
