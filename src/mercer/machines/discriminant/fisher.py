"""Estimator `FisherDiscriminant`, its penalties, and rules that assign classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, make_gram
from mercer.gram.base import RKHSFunction
from mercer.gram.build import factor_gram, refuse_extremes
from mercer.kernels import Kernel, Linear
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.parameters import (
    check_choice,
    check_limits,
    check_optional_count,
    check_real,
    refuse,
)
from mercer.machines.base.sharing import SharedMatrix
from mercer.machines.base.targets import (
    check_prior,
    check_weights,
    classes_of,
    prior_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.decomposition.components import moved, near_origin
from mercer.machines.discriminant.problem import Directions, Discriminant
from mercer.machines.discriminant.solvers import row_size
from mercer.rows.points import to_dense
from mercer.solvers.base import Callback, Solution, Solver
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import SolverError, solve

# --- gaussian rule -------------------------------------------------------------------------------
#
# From places of rows in a space of few directions to classes: the rules of discriminants.

# Of the pooled variance, which is 1 along discriminant directions, or of the largest: a class this
# narrow has no covariance. Places z = w'x are rounded to eps |z|, which leaves variances about
# eps |z| of a class that is flat, for entries of its covariance are products of one spread with
# another: eps at the origin, 2e-13 at 1000 standard deviations from there.
_FLAT = 1e-12
_FARTHEST = float(np.finfo(np.float64).max) / 4  # differences of such squares are numbers


class Rule(ABC):
    """Scores of classes, largest for the best; probabilities are their softmax."""

    @abstractmethod
    def scores(self, Z: Array) -> Array:
        """Score places Z (n, k): (n, classes)."""

    def log_probabilities(self, Z: Array) -> Array:
        """Return the logarithms of the probabilities of the classes."""
        return np.asarray(log_softmax(self.scores(Z), axis=1))


@dataclass(frozen=True, eq=False)
class SharedGaussian(Rule):
    """Gaussians of one spherical covariance: score log prior - |z - m_c|^2 / 2 variance.

    The part |z|^2 that all classes share is left out, so scores are linear in z.

    Attributes
    ----------
    means : (classes, k) array
        Places of the class means.
    priors : (classes,) array
        Probabilities of the classes before z is seen.
    variance : float
        Of every class in every direction.
    """

    means: Array
    priors: Array
    variance: float = 1.0

    def scores(self, Z: Array) -> Array:
        """Score places."""
        own = 0.5 * np.square(self.means).sum(axis=1)
        with np.errstate(divide="ignore"):  # a prior of zero excludes the class
            return np.asarray((Z @ self.means.T - own) / self.variance + np.log(self.priors))


@dataclass(frozen=True, eq=False)
class Mahalanobis(Rule):
    """The nearest class mean, in units of the covariance of each class: -d_c(z)^2 / 2.

    Attributes
    ----------
    means : (classes, k) array
        Places of the class means.
    factors : (classes, k, k) array
        Inverse Cholesky factors of the covariances.
    """

    means: Array
    factors: Array

    @classmethod
    def of(cls, means: Array, covariances: Array) -> Mahalanobis | None:
        """Factor the covariances; return None if one of them is flat to rounding."""
        if not np.isfinite(covariances).all():
            return None
        variances = np.linalg.eigvalsh(covariances)
        if (variances[:, 0] <= _FLAT * np.maximum(variances[:, -1], 1.0)).any():
            return None
        factors = np.linalg.inv(np.linalg.cholesky(covariances))
        return cls(means, factors) if np.isfinite(factors).all() else None

    def scores(self, Z: Array) -> Array:
        """Score places."""
        away = Z[:, None, :] - self.means
        with np.errstate(over="ignore"):  # so far from all classes that none is the nearest
            squared = np.square(np.einsum("cij,ncj->nci", self.factors, away)).sum(-1)
        return np.asarray(-0.5 * np.minimum(squared, _FARTHEST))


# --- penalized -----------------------------------------------------------------------------------
#
# What the penalty of Fisher's discriminant is on: the function, or its coefficients.
#
# With w = sum_i a_i phi(x_i), the penalty on the function is w'w = a'K a. The one on the
# coefficients is a'a, and the same problem again with the rows of K for features: its Gram matrix
# is K K.

_RANGE = 1e70  # of kernel values and their inverses: fourth powers of them are numbers


class Penalized(Protocol):
    """Where a penalised discriminant lives, and how its answer becomes functions of the kernel.

    Attributes
    ----------
    is_of_the_function : bool
        Whether the penalty depends on the directions alone, and not on where the origin is.
    copies : int
        Matrices of the size of K that a fit holds.
    """

    is_of_the_function: ClassVar[bool]
    copies: ClassVar[int]

    def asked_on(self) -> Gram:
        """Return the Gram on which the problem is written."""

    def functions(self, value: Directions) -> RKHSFunction:
        """Return the directions as functions of the kernel."""

    def lengths(self, value: Directions, functions: RKHSFunction, f: Array) -> Array:
        """Return what the penalty is on, of all pairs of directions: W'W or A'A."""

    def question(self, asked: Discriminant) -> Callable[[Gram], Discriminant]:
        """Return the problem as a function of K, without the data."""


@dataclass(frozen=True, eq=False)
class FunctionPenalty:
    """The penalty w'w: it depends on the directions alone.

    Attributes
    ----------
    gram : Gram
        K.
    weights : (n,) array
        How often each row counts.
    """

    gram: Gram
    weights: Array
    is_of_the_function: ClassVar[bool] = True
    copies: ClassVar[int] = 2

    def asked_on(self) -> Gram:
        """Return K."""
        return self.gram

    def functions(self, value: Directions) -> RKHSFunction:
        """Return the directions as they are."""
        return RKHSFunction(self.gram, value.coef, value.weights)

    def lengths(self, value: Directions, functions: RKHSFunction, f: Array) -> Array:
        """Return W'W."""
        if functions.weights is not None:
            return np.asarray(functions.weights.T @ functions.weights)
        assert value.coef is not None
        return np.asarray(value.coef.T @ f)

    def question(self, asked: Discriminant) -> Callable[[Gram], Discriminant]:
        """Write the problem on another Gram of the same points."""
        return partial(_on, asked=replace(asked, gram=None))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class CoefficientPenalty:
    """The penalty sum_i a_i^2 / s_i, s_i how often a row counts: two copies share a coefficient.

    Attributes
    ----------
    gram : Gram
        K.
    weights : (n,) array
        How often each row counts.
    """

    gram: Gram
    weights: Array
    is_of_the_function: ClassVar[bool] = False
    copies: ClassVar[int] = 4

    def asked_on(self) -> Gram:
        """Return the Gram of the features k(x_i, .) sqrt(s_i)."""
        held = kernel_features(self.gram, self.weights)
        largest = float(np.abs(held.factor).max(initial=0.0))
        if not 1.0 / _RANGE <= largest <= _RANGE:
            raise ValueError(
                f"FisherDiscriminant: kernel values are as {'large' if largest > 1 else 'small'} "
                f"as {largest:.0e}, and penalty_on='coefficients' takes fourth powers of them; "
                "scale the features, or the kernel"
            )
        return held

    def functions(self, value: Directions) -> RKHSFunction:
        """Return sum_i a_i k(x_i, .)."""
        return RKHSFunction(self.gram, self._scaled(value) * np.sqrt(self.weights)[:, None])

    def lengths(self, value: Directions, functions: RKHSFunction, f: Array) -> Array:
        """Return A'A, with the weights."""
        scaled = self._scaled(value)
        return np.asarray(scaled.T @ scaled)

    def question(self, asked: Discriminant) -> Callable[[Gram], Discriminant]:
        """Write the problem on the features that another K has."""
        return partial(
            _on_features,
            asked=replace(asked, gram=None),  # type: ignore[arg-type]
            weights=self.weights,
        )

    def _scaled(self, value: Directions) -> Array:
        if value.weights is not None:
            return value.weights
        assert value.coef is not None
        held = kernel_features(self.gram, self.weights)
        return np.asarray(held.factor.T @ value.coef)


PENALIZED: dict[str, type[FunctionPenalty | CoefficientPenalty]] = {
    "function": FunctionPenalty,
    "coefficients": CoefficientPenalty,
}


def kernel_features(gram: Gram, weights: Array) -> Gram:
    """Return the Gram whose features are the rows of K, each entry times the root of a weight."""
    return factor_gram(_unknown, gram.dense() * np.sqrt(weights))


def _unknown(X: Points) -> Any:
    raise NotImplementedError("new rows go through the kernel itself")


def _on(gram: Gram, asked: Discriminant) -> Discriminant:
    return replace(asked, gram=gram)


def _on_features(gram: Gram, asked: Discriminant, weights: Array) -> Discriminant:
    return replace(asked, gram=kernel_features(gram, weights))


# --- fisher --------------------------------------------------------------------------------------
#
# Fisher's discriminant: the directions that show classes best, and the classes themselves.

_ROWS_AT_ONCE = 1024  # centred in the cache: fresh memory costs more than the work
_NOTHING = 1e-12  # share of the variance: below, rows do not leave the mean of their class


class FisherDiscriminant(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Certified, KernelMachine
):
    """Fisher discriminant: directions that keep classes apart, and a classifier there.

    Maximises w'S_B w / w'(S_W + beta I) w in the space of any kernel, S_B the scatter of the class
    means and S_W the scatter of the rows around the mean of their class; `penalty_on` puts beta on
    the coefficients instead. There are at most
    classes - 1 such directions, each orthogonal to the others in the metric S_W + beta I. With the
    linear kernel and a small penalty this is linear discriminant analysis, which is Bayes' rule
    for Gaussian classes of equal covariance.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        What similarity is; "gaussian" takes its scale from the data.
    n_components : int or None, default=None
        How many directions; None for all, classes - 1 unless class means depend on each other.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    penalty : float, default=1e-4
        beta in units of the mean squared distance of rows from the mean of their class (the trace
        of S_W), so that the scale of the kernel does not matter. Zero is possible for kernels with
        fewer features than rows, where no direction has zero scatter.
    penalty_on : {"function", "coefficients"}, default="function"
        What beta is the penalty of: the squared length w'w = a'K a of the direction
        w = sum_i a_i phi(x_i), or its coefficients, a'a. The latter adds beta I to the scatter
        of the rows of K, and has the trace of that for its unit; weights s of the rows make it
        sum_i a_i^2 / s_i.
    weighting : {"counts", "classes"}, default="counts"
        Whether every row counts alike in S_W and S_B, or every class.
    rule : {"gaussian", "mahalanobis"}, default="gaussian"
        How projected rows are classified: by Gaussians of the shared covariance
        W'(S_W + beta I)W = I and the priors, or by the nearest class mean in units of the
        covariance of each class, W'(S_c + beta I)W.
    prior : "uniform", array-like of shape (n_classes,) or None, default=None
        Probabilities of the classes for rule="gaussian"; None takes their shares of the rows.
    solver : Solver or None, default=None
        How the directions are found; None chooses by the kernel.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`. A direct answer has no half way to stop at.
    time_limit : float or None, default=None
        Accepted by every machine; direct answers do not stop half way.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    penalty_ : float
        The penalty beta itself.
    ratios_ : array of shape (n_components,)
        w'S_B w / w'(S_W + beta I) w of each direction, largest first.
    means_ : array of shape (n_classes, n_components)
        Projected class means.
    prior_ : array of shape (n_classes,)
        Probabilities of the classes before a row is seen.
    dual_coef_ : array of shape (n_samples, n_components)
        Coefficients of the directions over the training rows; for kernels without a small feature
        map, and with penalty_on="coefficients".
    scalings_ : array of shape (n_features, n_components)
        The directions themselves; for the linear kernel with fewer columns than rows and the
        penalty on the function.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Residual of the generalised eigenproblem, orthogonality, and whether better directions were
        left out, computed from the data in float64 when first read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import FisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = FisherDiscriminant().fit(X, y)
    >>> machine.transform(X).shape
    (150, 2)
    >>> round(machine.score(X, y), 2)
    0.98
    >>> machine.certificate_.ok
    True
    """

    shares = (SharedMatrix(),)

    def __init__(
        self,
        kernel: Kernel | str | Any = "linear",
        n_components: int | None = None,
        *,
        approximation: Approximation | str | None = "auto",
        penalty: float = 1e-4,
        penalty_on: str = "function",
        weighting: str = "counts",
        rule: str = "gaussian",
        prior: npt.ArrayLike | str | None = None,
        solver: Solver | None = None,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.n_components = n_components
        self.penalty = penalty
        self.penalty_on = penalty_on
        self.weighting = weighting
        self.rule = rule
        self.prior: Any = prior
        self.solver: Any = solver  # checked when `fit` starts, as all parameters are
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
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
        refuse_targets(y)
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        rows = np.flatnonzero(weights)
        totals = np.bincount(codes[rows], weights[rows], len(self.classes_))
        self.prior_ = prior_of(self, totals)
        names = self._column_names()
        self._use_kernel(kernel_of(self.kernel, X, weights, names), X, weights, names)
        self._origin, form = None, PENALIZED[self.penalty_on]
        if form.is_of_the_function:  # moved rows have other coefficients
            X, self._origin = near_origin(self.kernel_, X, rows, weights)
        gram = make_gram(
            self.kernel_, X, Need.MATRIX, rows=rows, names=self._column_names(), copies=form.copies
        )
        refuse_extremes(type(self).__name__, gram, self.kernel_, rows, small=True)
        penalized: Penalized = form(gram, weights[rows])
        asked = self._question(penalized.asked_on(), codes[rows], weights[rows], totals)
        self.solution_: Solution = self._solved(asked)
        self._keep(asked, gram, penalized, rows, len(y))
        return self

    def transform(self, X: Any) -> Array:
        """Project rows on the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Places of the rows; the mean of the training rows (of the class means, for
            weighting="classes") is at zero.
        """
        return self._values(X)

    def decision_function(self, X: Any) -> Array:
        """Score classes: logarithms of their probabilities up to a constant of the row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of the second less that of the first.
        """
        Z = self._values(X)  # also says if there was no fit
        scores = self._rule.scores(Z)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        Z = self._values(X)
        return self._rule.log_probabilities(Z)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `classes_`; `predict` gives the largest.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> Array:
        """Predict labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The label of largest probability, the first of equals.
        """
        Z = self._values(X)  # by scores: probabilities may be equal where scores are not
        return np.asarray(self.classes_[self._rule.scores(Z).argmax(axis=1)])

    @property
    def scalings_(self) -> Array:
        """The directions themselves, for the linear kernel."""
        value = self.__dict__.get("_directions")
        if value is None:
            raise AttributeError(
                "scalings_ exists after a fit with the linear kernel to more rows than columns, "
                "with penalty_on='function'"
            )
        return np.asarray(value)

    @property
    def _n_features_out(self) -> int:
        return len(self.ratios_)

    def _question(self, gram: Gram, codes: Array, weights: Array, totals: Array) -> Discriminant:
        """State the problem: weights of rows and classes, and the penalty in units of scatter."""
        row_weights, shares = self._weighting(weights, codes, totals)
        count = len(totals) - 1 if self.n_components is None else int(self.n_components)
        if count > len(totals) - 1:
            refuse(self, "n_components", self.n_components, f"be at most {len(totals) - 1} here")
        asked = Discriminant(gram, codes, row_weights, shares, 0.0, count)
        within, whole = _variances(asked)
        if whole <= _rounding(asked):
            raise ValueError(
                f"{type(self).__name__}: all rows are equal in the space of {self.kernel_!r}, so "
                "that no direction tells the classes apart; use another kernel, or other columns"
            )
        unit = within if within > _NOTHING * whole else whole
        self.penalty_ = float(self.penalty) * unit
        return replace(asked, penalty=self.penalty_)

    def _weighting(self, weights: Array, codes: Array, totals: Array) -> tuple[Array, Array]:
        """Return the weights of rows within classes, and those of the classes."""
        if self.weighting == "counts":
            return weights / totals.sum(), totals / totals.sum()
        classes = len(totals)
        return weights / (classes * totals[codes]), np.full(classes, 1.0 / classes)

    def _solved(self, asked: Discriminant) -> Solution:
        try:
            return solve(asked, self.solver, callback=self.callback, time_limit=self.time_limit)
        except (np.linalg.LinAlgError, ValueError, SolverError) as error:
            raise type(error)(f"{type(self).__name__}: {error}") from error

    def _keep(
        self, asked: Discriminant, gram: Gram, penalized: Penalized, rows: Array, n: int
    ) -> None:
        value: Directions = self.solution_.value
        for name in ("dual_coef_", "_directions"):  # of an earlier fit with another kernel
            self.__dict__.pop(name, None)
        functions = penalized.functions(value)
        f = functions.at_points()
        if functions.weights is not None:
            if isinstance(self.kernel_, Linear):
                self._directions = functions.weights
        else:
            assert functions.coef is not None
            self.dual_coef_ = np.zeros((n, len(value.values)))
            self.dual_coef_[rows] = functions.coef
        means = asked.averages.T @ f
        middle = asked.shares @ means
        self._expansion = moved(functions.expand().plus(-middle), self._origin)
        self.ratios_, self.means_ = value.values, means - middle
        lengths = penalized.lengths(value, functions, f)
        self._rule = self._made_rule(asked, f - means[asked.codes], lengths)
        self._judgement = lazy_certificate(
            gram,
            penalized.question(asked),
            value,
            certify,
            asked.row_weights,
            asked.penalty,
            eager=not penalized.is_of_the_function,
        )

    def _made_rule(self, asked: Discriminant, away: Array, lengths: Array) -> Rule:
        if self.rule == "gaussian":
            return SharedGaussian(self.means_, self.prior_)
        averages = asked.averages
        covariances = np.einsum("nc,ni,nj->cij", averages, away, away, optimize=True)
        rule = Mahalanobis.of(self.means_, covariances + self.penalty_ * lengths)
        if rule is None:
            raise ValueError(
                f"{type(self).__name__}: rule='mahalanobis' measures distances in units of the "
                "covariance of each class, and that of some class is not positive definite: the "
                "class has one row, equal rows, or a kernel that is not positive semidefinite; use "
                f"a penalty above {self.penalty!r}, rule='gaussian', or another kernel"
            )
        return rule

    def _check_parameters(self) -> None:
        check_real(self, "penalty", least=0.0)
        check_optional_count(self, "n_components")
        check_choice(self, "penalty_on", tuple(PENALIZED))
        check_choice(self, "weighting", ("counts", "classes"))
        check_choice(self, "rule", ("gaussian", "mahalanobis"))
        check_limits(self)
        if self.solver is not None and not isinstance(self.solver, Solver):
            refuse(self, "solver", self.solver, "be None or a solver")
        check_prior(self)
        if self.prior is not None and self.rule == "mahalanobis":
            refuse(self, "prior", self.prior, "be None with rule='mahalanobis', which has none")


def _variances(asked: Discriminant) -> tuple[float, float]:
    """Return the traces of S_W and S_W + S_B: mean squared distances from means."""
    gram, q, averages = asked.gram, asked.row_weights, asked.averages
    mass = averages.T @ np.ones(len(q)) * np.bincount(asked.codes, q)
    if gram.factor is not None:
        means = np.asarray(averages.T @ gram.factor)
        within = _scatter(gram.factor, asked, means)
        apart = np.square(means - asked.shares @ means).sum(axis=1)
        return within, within + float(asked.shares @ apart)
    inner = averages.T @ np.asarray(gram @ averages)
    within = max(0.0, float(q @ gram.diag()) - float(mass @ np.diagonal(inner)))
    apart = np.diagonal(inner) - asked.shares @ inner @ asked.shares
    return within, within + max(0.0, float(asked.shares @ apart))


def _rounding(asked: Discriminant) -> float:
    """Return the variance that rounding alone leaves: of features squared, of products not."""
    eps, size = float(np.finfo(float).eps), row_size(asked)
    return 16 * size * (eps if asked.gram.factor is None else 16 * eps**2)


def _scatter(F: Any, asked: Discriminant, means: Array) -> float:
    """Return the mean squared distance of features from class means, some rows at a time."""
    total = 0.0
    for first in range(0, F.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        away = to_dense(F[part]) - means[asked.codes[part]]
        total += float(asked.row_weights[part] @ np.einsum("ij,ij->i", away, away))
    return total
