"""Kernel ridge regression: exact, with the whole path of penalties judged by leave-one-out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, make_gram
from mercer.gram.base import RKHSFunction
from mercer.gram.build import refuse_overflow
from mercer.gram.factored import FeatureExpansion
from mercer.gram.policy import LARGEST_UNASKED
from mercer.kernels import Kernel, Linear
from mercer.machines.base.approximate import warn_of_similarity
from mercer.machines.base.certificate import (
    Certified,
    certificate_in_time,
    lazy_certificate,
    not_convex,
)
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.origin import about_origin, constant_as_given
from mercer.machines.base.parameters import check_flag, check_limits, is_real, refuse
from mercer.machines.base.sharing import SharedMatrix
from mercer.machines.base.targets import check_weights
from mercer.machines.ridge.problem import LinearSystem, PathValue, RidgePath
from mercer.solvers.base import Callback, Solution, Solver
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

_LOST = 1e280  # penalty over weight: a coefficient is a residual over it, and has no digits left


class KernelRidge(Certified, MultiOutputMixin, RegressorMixin, KernelMachine):
    """Ridge regression, linear or with any kernel: least squares with a squared-norm penalty.

    Minimises sum_i s_i (y_i - f(x_i))^2 + penalty |f|^2 over f = sum_i a_i k(x_i, .) + b. The
    bias b is not penalised. For a kernel with fewer features than there are rows (linear,
    low-degree polynomial) the work is done in the space of the features.

    Parameters
    ----------
    penalty : float, array of shape (n_targets,) or "loo", default=1.0
        Weight of the squared norm, for all targets or each; "loo" picks, for each target, the
        member of `penalties` with the smallest exact leave-one-out error.
    kernel : Kernel, str or callable, default="linear"
        What similarity is; text such as "gaussian(2) + linear" is parsed, "gaussian" alone takes
        its scale from the data (see `mercer.kernels.resolve`).
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    penalties : array-like or None, default=None
        Candidates for penalty="loo". None takes 25 values from 1e-8 to 1e4 times the mean of
        k(x, x), less the mean of all k(x_i, x_j) when there is a bias.
    bias : bool, default=True
        Whether f has a constant b.
    solver : Solver or None, default=None
        How the equations are solved; None chooses by the kernel, the number of rows and memory.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iterative fit stops with what it has.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        The coefficients a of the function, f = sum_i a_i k(x_i, .) + b, which solve
        (K + penalty S^-1) a + b = y as well as `certificate_.quantities.dual_residual` says. There
        are none where many rows are fitted by features that are never all written out
        (`approximation`): the answer is then weights of the features alone.
    intercept_ : float or array of shape (n_targets,)
        The bias b.
    penalty_ : float or array of shape (n_targets,)
        The penalty used.
    penalties_ : array of shape (n_penalties,)
        With penalty="loo": the candidates.
    loo_scores_ : array of shape (n_penalties,) or (n_penalties, n_targets)
        With penalty="loo": their mean squared leave-one-out errors; infinite for candidates that
        were not reached, or that are too small for the matrix to be factored.
    loo_residuals_ : array of shape (n_samples,) or (n_samples, n_targets)
        With penalty="loo": y_i - f_{-i}(x_i), the error at each row of the fit without that row
        (without one copy of it, where weights are above one; zero for rows of weight zero).
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Weights of the columns; only for the linear kernel in the primal space.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The residual of the equations, recomputed from the data in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X).ravel()
    >>> machine = KernelRidge(kernel=Gaussian(1.0), penalty="loo").fit(X, y)
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 1e-3)
    True
    >>> machine.certificate_.ok
    True
    """

    shares = (SharedMatrix(),)

    exact_rows = LARGEST_UNASKED

    def __init__(
        self,
        penalty: float | npt.ArrayLike | str = 1.0,
        kernel: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
        penalties: npt.ArrayLike | None = None,
        bias: bool = True,
        solver: Solver | None = None,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.kernel = kernel
        self.approximation = approximation
        self.penalties = penalties
        self.bias = bias
        self.solver: Any = solver  # checked when `fit` starts, as all parameters are
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = self._training_points(X, y, multi_output=True, y_numeric=True)
        weights = check_weights(self, sample_weight, len(y))
        targets = y.reshape(len(y), -1)
        names = self._column_names()
        self._use_kernel(kernel_of(self.kernel, X, weights, names), X, weights, names)
        rows = np.flatnonzero(weights)
        self._check_against(targets, weights[rows])
        gram = self._gram(X, rows)
        self._forget()
        solution, penalty = self._solve(gram, targets[rows], weights[rows])
        self.solution_: Solution = solution
        self.penalty_ = penalty if y.ndim == 2 else float(penalty[0])
        self._keep(gram, rows, solution.value, y)
        warn_of_similarity(self, gram, X)
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Predicted targets.
        """
        values = self._values(X)
        return values if np.ndim(self.intercept_) else values[:, 0]

    @property
    def coef_(self) -> Array:
        """Weights of the columns, for the linear kernel."""
        weights = getattr(self, "_weights", None)
        if weights is None:
            raise AttributeError("coef_ exists after a fit with the linear kernel in primal space")
        return np.asarray(weights.T if np.ndim(self.intercept_) else weights[:, 0])

    def _gram(self, X: Points, rows: Array) -> Gram:
        # without a penalty the rank decides, which rounding of the columns as given hides
        ranked = not self._wants_path() and not np.all(self.penalty)
        near = about_origin(self.kernel_, X, rows) if self.bias and not ranked else None
        if near is not None:
            refuse_overflow(near, self.kernel_, rows)
            return near
        options: dict[str, Any] = {"rows": rows, "names": self._column_names()}
        if self._wants_path():  # K, its band, and the rotation between them
            return make_gram(self.kernel_, X, Need.MATRIX, copies=3, **options)
        return make_gram(self.kernel_, X, Need.PRODUCTS, copies=2, **options)

    def _solve(self, gram: Gram, targets: Array, weights: Array) -> tuple[Solution, Array]:
        """Return the solution and the penalty of each target, and promise the certificate."""
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        if not self._wants_path():
            penalty = self._penalties_for(targets.shape[1])
            system = partial(
                LinearSystem,
                targets=targets,
                penalties=penalty,
                row_weights=weights,
                bias=self.bias,
            )
            solution = not_convex(solve(system(gram), self.solver, **options), gram)
            self._judge(gram, system, solution)
            return solution, penalty
        candidates = self._candidates(gram, weights)
        path = partial(
            RidgePath,
            targets=targets,
            row_weights=weights,
            penalties=candidates,
            bias=self.bias,
        )
        solution = not_convex(solve(path(gram), self.solver, **options), gram)
        self.penalties_ = candidates
        self._judge(gram, path, solution)
        return solution, candidates[solution.value.best]

    def _judge(self, gram: Gram, question: Callable[[Gram], Any], solution: Solution) -> None:
        """Certify at once; where a factor of K must first show that it is a kernel's, when read."""
        judge = certificate_in_time if gram.valid else lazy_certificate
        self._judgement = judge(gram, question, solution.value, certify)

    def _forget(self) -> None:
        """Drop attributes that an earlier fit with other parameters may have left."""
        left = ("penalties_", "loo_scores_", "loo_residuals_", "dual_coef_", "_weights")
        for name in left:
            self.__dict__.pop(name, None)

    def _keep(self, gram: Gram, rows: Array, value: Any, y: Array) -> None:
        f = RKHSFunction(gram, value.coef, value.weights)
        self._expansion = f.expand().plus(value.intercept)
        constant = value.intercept
        if isinstance(self.kernel_, Linear) and isinstance(self._expansion, FeatureExpansion):
            self._weights = self._expansion.weights
            constant = constant_as_given(gram, self._weights, constant)
        if len(value.coef):
            self.dual_coef_ = _scatter(value.coef, rows, y.shape)
        self.intercept_ = constant if y.ndim == 2 else float(constant[0])
        if isinstance(value, PathValue):
            self.loo_scores_ = value.scores if y.ndim == 2 else value.scores[:, 0]
            self.loo_residuals_ = _scatter(value.residuals, rows, y.shape)

    def _wants_path(self) -> bool:
        return isinstance(self.penalty, str)

    def _candidates(self, gram: Gram, weights: Array) -> Array:
        if self.penalties is not None:
            return np.asarray(self.penalties, dtype=np.float64).ravel()
        share = weights / weights.sum()
        size = float(share @ gram.diag())
        if self.bias:  # which takes up the mean: where the origin lies must not matter
            spread = size - float(share @ (gram @ share))
            size = spread if spread > 1e-8 * size else size
        return np.logspace(-8, 4, 25) * (size if size > 0 else 1.0)

    def _penalties_for(self, n_targets: int) -> Array:
        penalty = np.asarray(self.penalty, dtype=np.float64)
        if penalty.ndim and penalty.shape != (n_targets,):
            refuse(self, "penalty", self.penalty, f"be one number or {n_targets}, one per target")
        return np.broadcast_to(penalty, (n_targets,)).copy()

    def _check_parameters(self) -> None:
        check_flag(self, "bias")
        check_limits(self)
        if self.solver is not None and not isinstance(self.solver, Solver):
            refuse(self, "solver", self.solver, "be None or a solver such as Cholesky()")
        if isinstance(self.penalty, str):
            if self.penalty != "loo":
                refuse(self, "penalty", self.penalty, "be a number, an array, or 'loo'")
            self._check_candidates()
        elif not _nonnegative(self.penalty):
            refuse(self, "penalty", self.penalty, "be finite and not negative, or 'loo'")

    def _check_against(self, targets: Array, weights: Array) -> None:
        """Refuse what only shows beside the data, before the matrix is made."""
        if not self._wants_path():
            largest = float(self._penalties_for(targets.shape[1]).max())
            with np.errstate(over="ignore"):
                lost = largest / float(weights.max(initial=0.0)) > _LOST
            if lost:
                raise ValueError(
                    f"KernelRidge: sample_weight is {weights.max():.0e} at most beside a penalty "
                    f"of {largest:.0e}, and numbers end between them; multiply the weights by a "
                    "large number, or take a smaller penalty"
                )
        elif len(weights) == 1 and weights[0] <= 1:
            raise ValueError("KernelRidge: leave-one-out needs two rows, but n_samples = 1")

    def _check_candidates(self) -> None:
        if self.penalties is None:
            return
        if not _nonnegative(self.penalties) or not (np.asarray(self.penalties) > 0).all():
            refuse(self, "penalties", self.penalties, "be a non-empty list of positive numbers")


def _nonnegative(value: Any) -> bool:
    """Return whether a value is a number, or a list of them, finite and not below zero."""
    if is_real(value):
        return bool(np.isfinite(float(value)) and value >= 0)
    if isinstance(value, bool):
        return False
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    if array.ndim != 1 or array.size == 0:
        return False
    return bool(np.isfinite(array).all() and (array >= 0).all())


def _scatter(values: Array, rows: Array, shape: tuple[int, ...]) -> Array:
    """Put values of the rows that were used back among all rows."""
    full = np.zeros((shape[0], values.shape[1]))
    full[rows] = values
    return full.reshape(shape)
