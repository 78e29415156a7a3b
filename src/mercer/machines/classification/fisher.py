"""Fisher's discriminant: the directions that show classes best, and the classes themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.certificates import certify
from mercer.gram import Gram, Need, make_gram
from mercer.gram.extremes import refuse_extremes
from mercer.kernels import Kernel, Linear
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.decision import check_prior, prior_of
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
    check_weights,
    classes_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.classification.gaussian_rule import Mahalanobis, Rule, SharedGaussian
from mercer.machines.classification.penalized import PENALIZED, Penalized
from mercer.machines.projection.origin import moved, near_origin
from mercer.points import to_dense
from mercer.problems import Directions, Discriminant
from mercer.solvers import Callback, Solution, Solver, SolverError, solve
from mercer.solvers.discriminant.discriminate import row_size

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
