"""Novelty detection: one-class support vector machine, and smallest enclosing ball."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.gram import Gram, Source
from mercer.gram.centering import CenteredFeatures
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.approximate import warn_of_similarity
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import all_or_nothing, with_callbacks
from mercer.machines.base.origin import less_given
from mercer.machines.base.parameters import check_share, is_real, refuse
from mercer.machines.base.sharing import Fold, FoldPath, KnownDetector, SharedMatrix, Sharing
from mercer.machines.base.targets import check_weights
from mercer.machines.svm import problem as svm
from mercer.machines.svm.machine import MarginMachine
from mercer.machines.svm.multiclass import Zones, zones
from mercer.machines.svm.problem import BoxQP, Dual, MarginPath, PathSetting
from mercer.solvers.base import Callback

# --- novelty -------------------------------------------------------------------------------------
#
# What one-class support vector machines share: fit to rows alone, then tell common from novel.

_ZONES = ("inside", "on", "outside")


class NoveltyMachine(OutlierMixin, MarginMachine):
    """Base of machines that find a region which holds all but a few rows."""

    nu: float
    offset_: float
    _has_free_constant = False  # coefficients add up to one

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X = self._rows_alone(X)
        weights = check_weights(self, sample_weight, X.shape[0])
        rows = self._merged(X, np.zeros(X.shape[0]), weights)
        self._use_kernel(self._resolved(X, rows), X, weights, self._column_names())
        origin = self._origin(X, rows)
        gram, question = self._gram(X, rows, origin), self._question(rows.weight)
        dual = self._answer(gram, question).value
        self._expansion = less_given(gram.expand(dual.coef), origin)
        self._keep_border(question, gram, dual)
        self._keep_support(X, rows.spread(dual.coef, weights))
        warn_of_similarity(self, gram, X)
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse what cannot be fitted."""

    @abstractmethod
    def _question(self, weights: Array) -> Callable[[Gram], BoxQP]:
        """Return what is asked of the Gram of rows of these weights."""

    @abstractmethod
    def _keep_border(self, question: Callable[[Gram], BoxQP], gram: Gram, dual: Dual) -> None:
        """Keep `offset_`, the score at the border, and what belongs to it."""

    @abstractmethod
    def _border_width(self) -> float:
        """Return how far from the border a score is still on it."""

    @abstractmethod
    def score_samples(self, X: Any) -> Array:
        """Score new rows: the larger, the more common."""

    def decision_function(self, X: Any) -> Array:
        """Return the score less `offset_`: negative for novel rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The decision values.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> Array:
        """Tell common rows (1) from novel ones (-1).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            1 where the decision is zero or more, else -1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def zones(self, X: Any) -> Zones:
        """Return which rows are inside, on or outside the border.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, such as those of the fit.

        Returns
        -------
        Zones
            `zone` and `slack` of each row.
        """
        return zones(self.decision_function(X), self._border_width(), _ZONES)


# --- one class -----------------------------------------------------------------------------------
#
# Novelty detection: the half-space of feature space that holds all but a few rows.


class OneClassSVM(NoveltyMachine):
    """One-class support vector machine: score(x) = sum_i b_i k(x_i, x), novel below `offset_`.

    Minimises |w|^2 / 2 - rho nu W + sum_i s_i max(0, rho - w'phi(x_i)), W the total of the sample
    weights s. At most a share nu of the rows scores below rho = `offset_`, and at least a share nu
    are support vectors.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data as scikit-learn's
        gamma="scale" does.
    nu : float, default=0.5
        Upper bound on the share of training rows called novel, lower bound on that of support
        vectors.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    tol : float, default=1e-3
        How good the answer must be.
    criterion : {"violation", "gap"}, default="violation"
        Whether `tol` is the largest violation of the optimality conditions relative to the score at
        the border, or the duality gap relative to the objective.
    max_iter : int or None, default=None
        Largest number of steps, in the unit of the solver that runs (`solution_.solver`): pair
        steps, interior point steps, or passes over the rows. None takes max(3 10^5, 100 n) pair
        steps.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.
    warm_start : bool, default=False
        Whether `fit` starts from the last answer, if that had as many rows.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    support_ : int array of shape (n_support,)
        Rows with a nonzero coefficient: those on the border or outside.
    support_vectors_ : array of shape (n_support, n_features)
        These rows; empty for a precomputed kernel.
    dual_coef_ : array of shape (n_support,)
        Their coefficients b.
    offset_ : float
        The score at the border.
    intercept_ : float
        Its negative, the constant of the decision function.
    n_iter_ : int
        Pair steps.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVM
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> machine = OneClassSVM(Gaussian(1.0), nu=0.1).fit(X)
    >>> machine.predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
    [1, -1]
    >>> machine.certificate_.ok
    True
    """

    shares = (SharedMatrix(),)

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        nu: float = 0.5,
        *,
        approximation: Approximation | str | None = "auto",
        tol: float = 1e-3,
        criterion: str = "violation",
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.nu = nu
        self.tol = tol
        self.criterion = criterion
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback

    def score_samples(self, X: Any) -> Array:
        """Score new rows: the larger, the more common.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,)
            The scores.
        """
        return np.asarray(self._values(X)[:, 0])

    def _check_parameters(self) -> None:
        check_share(self, "nu")
        self._check_solving()

    def _question(self, weights: Array) -> Callable[[Gram], BoxQP]:
        return partial(svm.one_class, weights=weights, nu=float(self.nu))

    def _keep_border(self, question: Callable[[Gram], BoxQP], gram: Gram, dual: Dual) -> None:
        self.intercept_ = float(dual.intercept)
        self.offset_ = -self.intercept_

    def _border_width(self) -> float:
        return self.tol * abs(self.offset_)

    def sharing(self) -> Sharing | None:
        """Return how fits for several nu are solved together."""
        return self._sharing(self._path, ("nu",), nu=self.nu)

    def _path(self, fold: Fold, machines: Sequence[OneClassSVM]) -> FoldPath:
        """Write the half-space of the least nu; others scale the sum."""
        least = min(machines, key=lambda one: one.nu)
        problem = least._question(fold.weights)(fold.part)
        settings = tuple(PathSetting(total=float(m.nu) / float(least.nu)) for m in machines)

        def predictor(values: Array, offsets: Array) -> KnownDetector:
            intercept = float(offsets[0, 0])
            return KnownDetector(values[0] + intercept, -intercept)

        return FoldPath(MarginPath((problem,), settings, fold.evaluation_rows), predictor)


# --- ball ----------------------------------------------------------------------------------------
#
# The smallest ball around the rows in feature space, some of them left out if wished.


class EnclosingBall(NoveltyMachine):
    """Smallest ball in feature space around all rows, or all but a few, to detect novelty.

    Minimises R^2 + sum_i s_i max(0, |phi(x_i) - c|^2 - R^2) / (nu W), W the total of the sample
    weights s, over centers c and radii R. With nu = 0 every sample is inside, to the tolerance.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data as scikit-learn's
        gamma="scale" does.
    nu : float, default=0.0
        Upper bound on the share of rows left outside.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    tol : float, default=1e-3
        How good the answer must be.
    criterion : {"violation", "gap"}, default="violation"
        Whether `tol` is the largest violation of the optimality conditions, in units of half the
        squared radius, at most 1, or the duality gap relative to the objective.
    max_iter : int or None, default=None
        Largest number of steps, in the unit of the solver that runs (`solution_.solver`): pair
        steps, interior point steps, or passes over the rows. None takes max(3 10^5, 100 n) pair
        steps.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.
    warm_start : bool, default=False
        Whether `fit` starts from the last answer, if that had as many rows.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    radius_ : float
        R.
    center_norm_ : float
        Distance of the centre from the origin of feature space; NaN for a kernel that is positive
        semidefinite on differences only, such as -|x - y|^2, whose space has no origin.
    offset_ : float
        Minus the squared radius: the score at the border.
    support_ : int array of shape (n_support,)
        Rows with a nonzero coefficient: those on the border or outside.
    support_vectors_ : array of shape (n_support, n_features)
        These rows; empty for a precomputed kernel.
    dual_coef_ : array of shape (n_support,)
        The centre is the sum of phi(x_i) with these coefficients, which sum to 1.
    n_iter_ : int
        Pair steps.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> from mercer import EnclosingBall
    >>> machine = EnclosingBall("linear").fit([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])
    >>> round(machine.radius_, 6)
    1.0
    >>> machine.predict([[1.0, 0.9], [1.0, 1.1]]).tolist()
    [1, -1]
    """

    _has_free_constant = True  # the centre may lie anywhere
    _has_scale = False

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        nu: float = 0.0,
        *,
        approximation: Approximation | str | None = "auto",
        tol: float = 1e-3,
        criterion: str = "violation",
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.nu = nu
        self.tol = tol
        self.criterion = criterion
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback

    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of new rows from the centre, in feature space.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows. A precomputed kernel does not tell k(x, x) of new rows: it is refused here.

        Returns
        -------
        array of shape (n_samples,)
            The scores: the larger, the more common.
        """
        check_is_fitted(self)
        if isinstance(self.kernel_, Precomputed):
            raise ValueError(
                "EnclosingBall: the distance of a new row needs k(x, x), which a precomputed "
                "matrix of new rows against training rows does not hold; pass a kernel and rows"
            )
        points = new_rows(self, X, False)
        features = getattr(self._expansion, "features", None)
        if isinstance(features, CenteredFeatures):  # rows that were far from zero
            moved: Any = self._expansion
            centre = moved.weights[:, 0]
            return refuse_overflown(self, lambda: -np.square(features(points) - centre).sum(axis=1))
        expression = bind_columns(self.kernel_.expression(), self._column_names())
        own = Source(expression, points).diag()
        return refuse_overflown(
            self, lambda: -(own - 2.0 * self._expansion(points)[:, 0] + self._centre)
        )

    def _costs(self, weights: Array) -> Array:
        if self.nu == 0:
            return np.full(len(weights), np.inf)
        return np.asarray(weights / (float(self.nu) * weights.sum()))

    def _check_parameters(self) -> None:
        if not is_real(self.nu) or not 0 <= self.nu <= 1:
            refuse(self, "nu", self.nu, "be a number from 0 to 1")
        self._check_solving()

    def _question(self, weights: Array) -> Callable[[Gram], BoxQP]:
        return partial(svm.ball, C=self._costs(weights))

    def _keep_border(self, question: Callable[[Gram], BoxQP], gram: Gram, dual: Dual) -> None:
        self._centre = svm.ball_centre(question(gram), dual)
        self.radius_, self.center_norm_ = svm.ball_lengths(self._centre, dual)
        features = getattr(self._expansion, "features", None)
        if isinstance(features, CenteredFeatures):
            moved: Any = self._expansion
            centre = features.mean + moved.weights[:, 0]
            self.center_norm_ = float(np.linalg.norm(centre))
        self.offset_ = -(self.radius_**2)

    def _border_width(self) -> float:
        return self.tol * min(2.0, self.radius_**2)
