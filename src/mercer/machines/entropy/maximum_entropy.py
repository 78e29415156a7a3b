"""The least committed distribution with given expectations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import (
    check_choice,
    check_limits,
    check_number,
    check_optional_count,
    check_real,
    refuse,
    source_of,
)
from mercer.machines.entropy.problem import Expectations, InfeasibleError
from mercer.machines.entropy.solvers import EntropyNewton, IterativeScaling
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Callback, Solution, Solver
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

_LEAST = 1e-290  # a distance whose reciprocal, times some digits, is a number
_LIMITS = {"newton": 200, "scaling": 100_000}


class MaximumEntropy(Machine, BaseEstimator):
    """Maximum entropy distribution on finitely many points with given expectations.

    Minimizes KL(p | prior) subject to E_p[f_j] = b_j; with a uniform prior, that is the largest
    entropy. The solution is p_i = prior_i exp(l'f(x_i)) / Z. Of all distributions of this form it
    is also the one under which data with the averages b are most likely.

    This is not an estimator of rows and labels, so scikit-learn's checks do not apply: `fit`
    receives the possible points, and one number for each *feature*.

    Parameters
    ----------
    features : callable, list of callables or None, default=None
        What expectations are known of: functions of one point that give a number (one function may
        give several). None: the points are rows of features already.
    prior : array-like of shape (n_points,) or None, default=None
        Prior probabilities, up to a factor; None is uniform.
    method : {"newton", "scaling"}, default="newton"
        Newton steps on the dual, or generalized iterative scaling, which needs more steps and no
        equations.
    tol : float, default=1e-9
        Largest difference of an expectation from its target, in units of the feature.
    max_iter : int or None, default=None
        Largest number of steps; None takes 200 for Newton, 100000 for scaling.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Time limit in seconds. The fit then keeps the current solution.

    Attributes
    ----------
    probabilities_ : array of shape (n_points,)
        p.
    multipliers_ : array of shape (n_features,)
        l.
    log_partition_ : float
        ln Z, with the prior summing to one.
    entropy_ : float
        -sum p ln p, in nats.
    relative_entropy_ : float
        KL(p | prior), in nats.
    expectations_ : array of shape (n_features,)
        Expectations under p.
    at_border_ : bool
        Whether the targets are on the boundary of the feasible set. There some points have
        probability zero, and Gibbs' form holds for the others.
    points_ : array or list
        The points, a copy: rows of a table or array, or what else was given.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Relative entropy against the dual value, and the expectations, recomputed.

    Examples
    --------
    A die whose mean is 4.5 instead of 3.5:

    >>> from mercer import MaximumEntropy
    >>> die = MaximumEntropy().fit([1, 2, 3, 4, 5, 6], [4.5])
    >>> die.probabilities_.round(3).tolist()
    [0.054, 0.079, 0.114, 0.165, 0.24, 0.347]
    >>> die.certificate_.ok
    True
    """

    def __init__(
        self,
        features: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | None = None,
        *,
        prior: npt.ArrayLike | None = None,
        method: str = "newton",
        tol: float = 1e-9,
        max_iter: int | None = None,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.features = features
        self.prior = prior
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, targets: npt.ArrayLike) -> Self:
        """Find the distribution.

        Parameters
        ----------
        X : array-like of shape (n_points,) or (n_points, n_features), or sequence of any points
            The points that are possible; rows of features if `features` is None.
        targets : array-like of shape (n_features,)
            Their expectations.

        Returns
        -------
        self
            The fitted distribution.
        """
        self._check_parameters()
        points = _points(X)
        F = self._matrix(points)
        b = _numbers(np.atleast_1d(_floats(targets, "targets")), "targets")
        if b.shape != (F.shape[1],):
            raise ValueError(
                f"MaximumEntropy: targets must hold one number for each of the {F.shape[1]} "
                f"feature(s), but has shape {b.shape}"
            )
        _refuse_overflow(F, b)
        problem = Expectations(F, b, self._prior_of(len(F)))
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        try:
            self.solution_: Solution = solve(problem, self._solver(), **options)
        except InfeasibleError as error:
            message = f"MaximumEntropy: {error}. Change the targets, or add points."
            raise InfeasibleError(message, error.direction, error.margin) from error
        tol = max(1e-7, 10.0 * float(self.tol))
        self.certificate_: Certificate = certify(problem, self.solution_.value, tol)
        self.points_ = points
        self._keep(problem)
        return self

    def expectation(self, function: Callable[[Any], Any] | npt.ArrayLike) -> Any:
        """Return the expectation of any function of the points.

        Parameters
        ----------
        function : callable or array-like of shape (n_points,) or (n_points, k)
            A function of one point, or its values at the points.

        Returns
        -------
        float or array of shape (k,)
            The expectation.
        """
        check_is_fitted(self)
        values = function
        if callable(function):
            values = [function(point) for point in self.points_]
        known = _floats(values, "function")
        if known.ndim not in (1, 2) or len(known) != len(self.probabilities_):
            raise ValueError(
                f"MaximumEntropy: function must give one value, or k values, for each of the "
                f"{len(self.probabilities_)} points, but has shape {known.shape}"
            )
        found = self.probabilities_ @ known
        return float(found) if np.ndim(found) == 0 else found

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Any:
        """Draw points.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
        random_state : int, RandomState or None, default=None
            Source of random numbers.

        Returns
        -------
        array or list
            Points: rows of an array or table as an array, others as a list.
        """
        check_is_fitted(self)
        rng, p = source_of(self, random_state), self.probabilities_
        drawn = rng.choice(len(p), size=check_number(self, "n_samples", n_samples), p=p / p.sum())
        if isinstance(self.points_, np.ndarray):
            return self.points_[drawn]
        return [self.points_[i] for i in drawn]

    def _keep(self, problem: Expectations) -> None:
        value, measured = self.solution_.value, self.certificate_.quantities
        self.probabilities_, self.multipliers_ = value.probabilities, value.multipliers
        p = self.probabilities_[self.probabilities_ > 0]
        self.entropy_ = float(-(p @ np.log(p)))
        self.relative_entropy_ = float(measured.primal)
        self.expectations_ = self.probabilities_ @ problem.features
        self.log_partition_ = float(value.multipliers @ problem.targets - measured.dual)
        self.at_border_ = bool(value.direction.any())

    def _matrix(self, X: Any) -> Array:
        """Return the features at all points: (n, m)."""
        if self.features is None:
            values = X
        elif callable(self.features):
            values = [self.features(point) for point in X]
        else:
            values = [[f(point) for f in self.features] for point in X]
        try:
            F = _floats(values, "features")
        except ValueError as error:
            raise ValueError(
                f"{error}. They must give numbers, the same count at every point; if points are "
                "not rows of numbers, pass features=[function, ...]"
            ) from error
        F = F[:, None] if F.ndim == 1 else F
        if F.ndim != 2 or not F.size:
            raise ValueError(
                "MaximumEntropy: features must make a table of points and features, one of each at "
                f"least, but have shape {F.shape}"
            )
        return _numbers(F, "features")

    def _prior_of(self, n: int) -> Array:
        if self.prior is None:
            return np.full(n, 1.0 / n)
        try:
            prior = _floats(self.prior, "prior")
        except ValueError:
            refuse(self, "prior", self.prior, f"hold {n} numbers that are finite and not negative")
            raise
        if prior.shape != (n,) or not np.isfinite(prior).all() or (prior < 0).any():
            refuse(self, "prior", self.prior, f"hold {n} numbers that are finite and not negative")
        if not prior.any():
            refuse(self, "prior", self.prior, "give some point a positive probability")
        prior = prior / prior.max()  # the sum of very large numbers would overflow
        return np.asarray(prior / prior.sum())

    def _solver(self) -> Solver:
        limit = int(self.max_iter or _LIMITS[self.method])
        if self.method == "newton":
            return EntropyNewton(float(self.tol), limit)
        return IterativeScaling(float(self.tol), limit)

    def _check_parameters(self) -> None:
        check_choice(self, "method", tuple(_LIMITS))
        check_real(self, "tol", above=0)
        check_optional_count(self, "max_iter")
        check_limits(self)
        given = self.features
        if given is None or callable(given):
            return
        if not isinstance(given, list | tuple) or not given or not all(map(callable, given)):
            refuse(self, "features", given, "be None, a function, or a list of functions")


def _numbers(values: Array, name: str) -> Array:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"MaximumEntropy: {name} must be finite; entry {tuple(bad[0].tolist())} is "
            f"{values[tuple(bad[0])]}"
        )
    return values


def _floats(values: Any, name: str) -> Array:
    """Return an array of float64; raise for words, complex numbers and ragged lists."""
    try:
        found = np.asarray(values)
        if np.iscomplexobj(found):
            raise TypeError("complex numbers are not supported")
        with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite, and found
            return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"MaximumEntropy: {name} must hold real numbers: {error}") from error


def _points(X: Any) -> Any:
    """Return a copy of the points: an array for what has rows, a list of anything else."""
    if is_sparse(X):
        return to_dense(X)
    if hasattr(X, "to_numpy"):  # tables and columns: iterating over a table would give its names
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and X.ndim:
        return X.copy()
    try:
        return list(X)
    except TypeError as error:
        raise ValueError(
            f"MaximumEntropy: X must be a sequence of points, not {type(X).__name__}"
        ) from error


def _refuse_overflow(F: Array, b: Array) -> None:
    """Raise where a feature is farther from its target than float64 can say."""
    with np.errstate(over="ignore"):
        bad = np.argwhere(~np.isfinite(F - b))
    if len(bad):
        i, j = bad[0].tolist()
        raise ValueError(
            f"MaximumEntropy: feature {j} at point {i} is {F[i, j]:g}, too far from its target "
            f"{b[j]:g} for float64; divide the feature and its target by a large number"
        )
    away = np.abs(F - b).max(axis=0, initial=0.0)
    small = np.flatnonzero((away > 0) & (away < _LEAST))
    if len(small):
        j = int(small[0])
        raise ValueError(
            f"MaximumEntropy: feature {j} is within {away[j]:.1e} of its target at all points, and "
            "its multiplier beyond float64; multiply the feature and its target by a large number"
        )
