"""Drop-ins for `sklearn.discriminant_analysis`, linear and quadratic."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import linalg
from scipy.special import expit, softmax
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as ScikitLinear
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as ScikitQuadratic
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import machines
from mercer.array_types import Array
from mercer.backends.factorizations import svd
from mercer.compat.sklearn.base import CheckedEstimator, WrappedMachine, check_priors, refusing
from mercer.gram import Gram
from mercer.gram.build import factor_gram
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import read_rows, refuse_large_squares, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import refuse
from mercer.machines.discriminant.problem import Discriminant
from mercer.machines.discriminant.solvers import PrimalDiscriminant
from mercer.solvers.base import Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

# --- covariances ---------------------------------------------------------------------------------
#
# Covariances of rows, and solutions with them, for the discriminants.


def shrunk(X: Array) -> Array:
    """Estimate a covariance as Ledoit and Wolf do, in units of the columns."""
    spread = X.std(axis=0)
    spread[spread == 0] = 1.0
    found = ledoit_wolf((X - X.mean(axis=0)) / spread)[0]
    return np.asarray(spread[:, None] * found * spread)


def by_estimator(estimator: Any, X: Array) -> Array:
    """Return what an estimator of the caller's finds."""
    estimator.fit(X)
    if not hasattr(estimator, "covariance_"):
        raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
    return np.asarray(estimator.covariance_, dtype=np.float64)


def solved_by_units(covariance: Array, b: Array) -> Array:
    """Solve with columns in units of their own: powers of two, so that no digit is touched."""
    own = covariance.diagonal()
    units = np.ldexp(1.0, np.frexp(np.sqrt(np.where(own > 0, own, 1.0)))[1])
    scaled = covariance / units / units[:, None]
    return np.asarray(linalg.solve(scaled, b / units, assume_a="pos") / units)


def whitening(within: Array, tol: float) -> Array:
    """Return the map to columns in which the rows within classes have covariance one.

    Columns are scaled first; directions with a standard deviation of at most `tol` are left out.
    """
    spread = within.std(axis=0)
    spread[spread == 0] = 1.0
    scaled = within / spread / np.sqrt(len(within))
    _, sigma, Vt = svd(scaled)
    kept = sigma > tol
    return np.asarray((Vt[kept] / spread).T / sigma[kept])


# --- discriminant --------------------------------------------------------------------------------
#
# Drop-in for `sklearn.discriminant_analysis.LinearDiscriminantAnalysis`.

_NO_VARIANCE = float(np.finfo(np.float64).tiny)  # variances below have lost digits
_LEAST = 1e-12  # of the scatter that shrinkage=1 would leave nothing of


class LinearDiscriminantAnalysis(Certified, CheckedEstimator, ScikitLinear):
    """`sklearn.discriminant_analysis.LinearDiscriminantAnalysis` on Mercer's solver.

    Parameters, attributes and methods are scikit-learn's; `solution_` and `certificate_` come on
    top. `solver` says which of scikit-learn's conventions to follow; directions are found in the
    same way for all. "svd" leaves out directions without scatter within classes; "lsqr" has no
    `transform`. What differs is listed in the user guide. `mercer.FisherDiscriminant` is the same
    for any kernel, with weights and sparse rows.

    Examples
    --------
    >>> from mercer.compat.sklearn import LinearDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> machine = LinearDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> machine.predict([[-0.8, -1]]).tolist()
    [1]
    """

    coef_: Array
    intercept_: Array

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        self._refuse_options()
        X, y = read_rows(self, X, y, ensure_min_samples=2)
        refuse_nonfinite(self, X)
        check_classification_targets(y)
        given = X.dtype
        X = X.astype(np.float64, copy=False)
        refuse_large_squares(self, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes)
        self._check_against(len(y), X.shape[1])
        self.priors_ = self._checked_priors(counts / len(y))
        self.means_ = np.array([X[codes == c].mean(axis=0) for c in range(len(counts))])
        self.xbar_ = self.priors_ @ self.means_
        try:
            scalings, ratios = self._directions(X, codes, counts)
            self.scalings_ = scalings
            shares = ratios / ratios.sum()
            self.explained_variance_ratio_ = shares[: self._max_components]
            self._decide()
        except np.linalg.LinAlgError:
            if self.solver != "lsqr":
                raise
            self._decide_by_least_squares()
        if np.abs(self.coef_).max(initial=0.0) < np.finfo(given).max:  # else float64 is needed
            self.coef_ = self.coef_.astype(given, copy=False)
            self.intercept_ = self.intercept_.astype(given, copy=False)
        self._n_features_out = self._max_components
        if "scalings_" in self.__dict__:
            self._n_features_out = min(self._max_components, self.scalings_.shape[1])
        return self

    transform = refusing(ScikitLinear.transform)
    decision_function = refusing(ScikitLinear.decision_function)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        decision = self.decision_function(X)
        if len(self.classes_) > 2:
            return np.asarray(softmax(decision, axis=1))
        return np.column_stack([expit(-decision), expit(decision)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def _directions(self, X: Array, codes: Array, counts: Array) -> tuple[Array, Array]:
        """Solve in whitened columns ("svd") or in the columns as they are; give W and ratios."""
        within = X - self.means_[codes]
        own = np.maximum(self.priors_, 1e-200) / counts
        covariance = (within * own[codes][:, None]).T @ within if self._wants_covariance() else None
        penalty, weights = 0.0, np.full(len(X), 1.0 / len(X))
        change = np.eye(0)
        if self.solver == "svd":
            change = whitening(within, self.tol)
            rows = (X - self.xbar_) @ change
        elif self._is_estimated():  # in columns where the estimate is the identity
            covariance = self._estimate(X, codes)
            change = self._inverse_root(covariance)
            rows, weights, penalty = X @ change, _LEAST * own[codes], 1.0
        else:
            assert covariance is not None
            self.covariance_ = covariance
            s = 0.0 if self.shrinkage in (None, "auto") else float(self.shrinkage)
            penalty = s * float(np.trace(covariance)) / len(covariance)
            if covariance.diagonal().min() + penalty < _NO_VARIANCE:
                raise self._singular()
            covariance = (1.0 - s) * covariance + penalty * np.eye(len(covariance))
            rows, weights = X, max(1.0 - s, _LEAST) * own[codes]
        self.__dict__.pop("covariance_", None)
        if covariance is not None:
            self.covariance_ = covariance
        question = partial(
            Discriminant,
            codes=codes,
            row_weights=weights,
            shares=self.priors_,
            penalty=penalty,
            count=len(counts) - 1,
        )
        W, ratios = self._solved(factor_gram(np.asarray, rows), question)
        return (change @ W if change.size else W), ratios

    def _is_estimated(self) -> bool:
        return self.covariance_estimator is not None or self.shrinkage == "auto"

    def _estimate(self, X: Array, codes: Array) -> Array:
        """Return the mean by the priors of the covariances that an estimator gives the classes."""
        estimate = shrunk
        if self.covariance_estimator is not None:
            estimate = partial(by_estimator, self.covariance_estimator)
        parts = (estimate(X[codes == c]) for c in range(len(self.priors_)))
        return np.asarray(sum(p * part for p, part in zip(self.priors_, parts, strict=True)))

    def _inverse_root(self, covariance: Array) -> Array:
        """Return A with A'CA = I for the covariance C."""
        try:
            lower = linalg.cholesky(covariance, lower=True)
        except np.linalg.LinAlgError as error:
            raise self._singular() from error
        return np.asarray(linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).T)

    def _solved(self, gram: Gram, question: Any) -> tuple[Array, Array]:
        try:
            self.solution_: Solution = solve(question(gram), PrimalDiscriminant())
        except np.linalg.LinAlgError as error:
            raise self._singular() from error
        except ValueError as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error
        value = self.solution_.value
        self._judgement = lazy_certificate(gram, question, value, certify)
        return value.weights, value.values

    def _singular(self) -> Exception:
        return np.linalg.LinAlgError(
            f"{type(self).__name__}: the covariance within classes is singular to rounding, as "
            "with a column that is constant, or a sum of others: set shrinkage between 0 and 1 "
            f"(got shrinkage={self.shrinkage!r}), leave such columns out, or use solver='svd'"
        )

    def _decide(self) -> None:
        """Write the decision in the columns of X."""
        places = (self.means_ - self.xbar_) @ self.scalings_
        coef = places @ self.scalings_.T
        with np.errstate(divide="ignore"):
            logs = np.log(self.priors_)
        if self.solver == "svd":
            intercept = logs - 0.5 * np.square(places).sum(axis=1) - coef @ self.xbar_
        else:  # here scikit-learn does not centre: all classes have one more term in common
            try:
                coef = coef + solved_by_units(self.covariance_, self.xbar_)
            except np.linalg.LinAlgError as error:
                raise self._singular() from error
            intercept = logs - 0.5 * np.einsum("cj,cj->c", self.means_, coef)
        if len(coef) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept

    def _decide_by_least_squares(self) -> None:
        """Decide with the smallest weights, as scikit-learn does, where covariance is singular."""
        for name in ("scalings_", "explained_variance_ratio_", "solution_", "_judgement"):
            self.__dict__.pop(name, None)
        warnings.warn(
            "LinearDiscriminantAnalysis: the covariance within classes is singular to rounding; "
            "solver='lsqr' takes the smallest weights, and there is no certificate. Set shrinkage, "
            "or use solver='svd'",
            linalg.LinAlgWarning,
            stacklevel=4,
        )
        coef = linalg.lstsq(self.covariance_, self.means_.T)[0].T
        with np.errstate(divide="ignore"):
            intercept = np.log(self.priors_) - 0.5 * np.einsum("cj,cj->c", self.means_, coef)
        if len(coef) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = np.asarray(coef), np.asarray(intercept)

    def _wants_covariance(self) -> bool:
        return self.solver != "svd" or bool(self.store_covariance)

    def _checked_priors(self, shares: Array) -> Array:
        if self.priors is None:
            return shares
        try:
            priors = np.asarray(self.priors, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            refuse(self, "priors", self.priors, f"hold {len(shares)} numbers, one for each class")
        if priors.shape != shares.shape:
            refuse(self, "priors", self.priors, f"hold {len(shares)} numbers, one for each class")
        if (priors < 0).any():
            raise ValueError("priors must be non-negative")
        if abs(priors.sum() - 1.0) > 1e-5:
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=4)
        return np.asarray(priors / priors.sum())

    def _check_against(self, n: int, d: int) -> None:
        classes = len(self.classes_)
        if classes < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {classes} class"
            )
        if n == classes:
            raise ValueError("The number of samples must be more than the number of classes.")
        most = min(classes - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")
        self._max_components = most if self.n_components is None else int(self.n_components)

    def _refuse_options(self) -> None:
        """Raise where options do not go together, in scikit-learn's words."""
        if self.covariance_estimator is not None and self.solver == "svd":
            raise ValueError(
                "covariance estimator is not supported with svd solver. Try another solver."
            )
        if self.covariance_estimator is not None and self.shrinkage:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two "
                "can be set."
            )
        if self.shrinkage is not None and self.solver == "svd":
            raise NotImplementedError("shrinkage not supported with 'svd' solver.")


# --- quadratic discriminant ----------------------------------------------------------------------
#
# Drop-in for `sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis`.

_LARGEST = 1e150  # entries beyond, squared and added up, leave the range of float64


class QuadraticDiscriminantAnalysis(WrappedMachine, ScikitQuadratic):
    """`sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis` with Mercer's certificate.

    Runs on `mercer.GaussianClassifier` where the covariances of the classes are the most likely
    ones and not singular. Shrunk, regularised and otherwise estimated ones, and what is refused,
    are left to scikit-learn, and then there is neither `solution_` nor `certificate_`.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Which of scikit-learn's ways, where one of them runs.
    shrinkage : float, "auto" or None, default=None
        Share of a multiple of the identity in the covariances; for "eigen".
    priors : array-like of shape (n_classes,) or None, default=None
        Probabilities of the classes; None takes their shares of the rows.
    reg_param : float, default=0.0
        Share of the identity in the covariances; for "svd".
    store_covariance : bool, default=False
        Whether `covariance_` is kept.
    tol : float, default=1e-4
        Variances up to this count as none, and the covariance as singular.
    covariance_estimator : estimator or None, default=None
        Estimates the covariances; for "eigen".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    priors_ : array of shape (n_classes,)
        Probabilities of the classes.
    means_ : array of shape (n_classes, n_features)
        Class means.
    rotations_ : list of arrays of shape (n_features, n_features)
        Principal axes of each class.
    scalings_ : list of arrays of shape (n_features,)
        Variances along them, largest first.
    covariance_ : list of arrays of shape (n_features, n_features)
        The covariances, if `store_covariance`.
    machine_ : mercer.GaussianClassifier
        The Mercer machine inside, if that ran.
    solution_ : Solution
        How the fit ended.
    certificate_ : Certificate
        Whether means and covariances are the most likely ones.

    Examples
    --------
    >>> from mercer.compat.sklearn import QuadraticDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> machine = QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> machine.predict([[-0.8, -1]]).tolist(), machine.certificate_.ok
    ([1], True)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        check_priors(self, "priors")
        for name in ("machine_", "covariance_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        others = ("shrinkage", "covariance_estimator")  # which scikit-learn has since 1.8
        if self.reg_param or any(getattr(self, name, None) is not None for name in others):
            return self._by_scikit_learn(X, y)
        rows, labels = read_rows(self, X, y)
        refuse_nonfinite(self, rows)
        check_classification_targets(labels)
        classes, counts = np.unique(labels, return_counts=True)
        if len(classes) < 2 or counts.min() <= rows.shape[1]:
            return self._by_scikit_learn(X, y)  # which says what is wrong
        machine = machines.GaussianClassifier().fit(rows, labels)
        spread = [np.linalg.eigh(covariance) for covariance in machine.covariance_]
        if machine.floored_.any() or min(values[0] for values, _ in spread) <= self.tol:
            return self._by_scikit_learn(X, y)
        self.machine_, self.classes_ = machine, machine.classes_
        self.priors_ = counts / len(labels) if self.priors is None else np.array(self.priors)
        self._check_priors()
        self.means_ = machine.means_
        # in the order of memory: a pickled copy then adds up in the same order
        self.scalings_ = [values[::-1].copy() for values, _ in spread]
        self.rotations_ = [vectors[:, ::-1].copy() for _, vectors in spread]
        if self.store_covariance:
            self.covariance_ = list(machine.covariance_)
        return self

    def _by_scikit_learn(self, X: Any, y: Any) -> Self:
        rows = read_rows(self, X, y)[0]
        refuse_nonfinite(self, rows)
        largest = float(np.abs(rows).max(initial=0.0))
        if largest > _LARGEST:
            raise ValueError(
                f"QuadraticDiscriminantAnalysis: X has entries of {largest:.1e}, whose squares "
                "overflow; scale the features, e.g. with sklearn.preprocessing.StandardScaler"
            )
        ScikitQuadratic.fit(self, X, y)
        self._check_priors()
        return self

    def _check_priors(self) -> None:
        if len(self.priors_) != len(self.classes_):
            raise ValueError(
                f"QuadraticDiscriminantAnalysis: priors has {len(self.priors_)} entries, but y has "
                f"{len(self.classes_)} classes; pass one probability for each class"
            )
