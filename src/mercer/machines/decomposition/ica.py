"""Estimators `ICA` and `ProjectionPursuit`, and whitening of their rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.kernels import Linear
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.inputs import new_rows, rows_with_gaps
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import (
    ParameterError,
    check_choice,
    check_count,
    check_limits,
    check_optional_count,
    check_real,
    check_seed,
    refuse,
    seed_of,
)
from mercer.machines.base.targets import check_weights, distinct_rows
from mercer.machines.decomposition.ica_fixed_point import (
    CONTRASTS,
    FixedPointICA,
    IndependentComponents,
    Unmixing,
    non_gaussianity,
)
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.preimage import check_scores
from mercer.resources import require_memory
from mercer.rows.points import is_sparse, take
from mercer.solvers.base import Callback, Solution, Status
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve
from mercer.solvers.eigen.dense import signs_of

# --- whitening -----------------------------------------------------------------------------------
#
# White rows for directions to be sought in: the leading principal components, of variance one.

_EXACT = 1e-12  # residual of principal components, where they are iterated
_RANGE = 2.0**-900, 2.0**900  # of entries whose directions are numbers, too
_COPIES = 6  # of white rows: themselves, their directions, and values of contrasts


@dataclass(frozen=True, eq=False)
class White:
    """Rows z = (x - mean) @ whitening, of covariance I.

    Attributes
    ----------
    rows : (n, p) array
        The white rows.
    mean : (d,) array
        The mean.
    whitening : (d, p) array
        What rows less their mean are multiplied by.
    coloring : (p, d) array
        What takes white rows back.
    solution : Solution
        How the principal components were found.
    """

    rows: Array
    mean: Array
    whitening: Array
    coloring: Array
    solution: Solution


def white_rows(machine: Any, X: Points, weights: Array, count: int | None) -> White:
    """Whiten rows.

    Parameters
    ----------
    machine : estimator
        Whose `n_components`, `time_limit` and `random_state` are named in refusals.
    X : Points
        Rows of positive weight.
    weights : (n,) array
        Their weights.
    count : int or None
        How many leading principal components; None takes all that vary.
    """
    name = type(machine).__name__
    if len(weights) < 2:
        raise ValueError(
            f"{name}: rows must differ for a direction to be found, but all are equal: "
            "n_samples = 1 distinct row of positive weight"
        )
    unit = _unit(name, X)
    near = X * (1.0 / unit)
    principal = PCA(count and min(count, len(weights)), kernel=Linear(), tol=_EXACT)
    principal.fit(near, sample_weight=weights)
    rank = len(principal.solution_.value.values)
    if rank == 0:
        raise ValueError(f"{name}: rows must differ for a direction to be found; all are equal")
    if count is not None and count > rank:
        must = f"be at most {rank}, the number of directions in which the rows vary"
        refuse(machine, "n_components", machine.n_components, must)
    require_memory(8 * _COPIES * len(weights) * rank, f"{name}: white rows", "Use fewer rows.")
    axes, mean = principal.components_[:rank], principal.mean_
    share = weights / weights.sum()
    mean = mean + np.asarray(share @ (near @ axes.T) - mean @ axes.T) @ axes  # rounding of far rows
    rows = _less(near, mean, axes.T)
    # twice: what rounding of the first leaves of correlations, the second takes away
    whitening, coloring = axes.T, axes
    for _ in range(2):
        turn, back = _inverse_root((share[:, None] * rows).T @ rows)
        rows, whitening, coloring = rows @ turn, whitening @ turn, back @ coloring
    ending = principal.solution_
    return White(rows, mean * unit, whitening / unit, coloring * unit, ending)


def _unit(name: str, X: Points) -> float:
    """Return a power of two of the size of the rows."""
    values = X.data if is_sparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    if not _RANGE[0] < unit < _RANGE[1]:
        raise ValueError(
            f"{name}: X, whose largest entry is {largest:.0e}, is at the end of float64, and its "
            "directions are beyond. Scale the features"
        )
    return float(unit)


def _less(X: Points, mean: Array, columns: Array) -> Array:
    if is_sparse(X):
        return np.asarray(X @ columns - mean @ columns)
    return np.asarray((X - mean) @ columns)


def _inverse_root(covariance: Array) -> tuple[Array, Array]:
    """Return C^-1/2 and C^1/2 of the covariance along principal axes, which is all but diagonal."""
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    return inverse / scale[:, None], root * scale


# --- unmixing machine ----------------------------------------------------------------------------
#
# What ICA and projection pursuit share: the fit, the way there and back, signs.


class UnmixingMachine(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified, Machine, BaseEstimator
):
    """Base of machines that look for directions far from Gaussian."""

    n_components: int | None
    contrast: str
    n_init: int
    tol: float
    max_iter: int
    random_state: Any
    callback: Any
    time_limit: float | None

    @abstractmethod
    def _question(self, white: White, weights: Array) -> IndependentComponents:
        """Write the problem on white rows."""

    @abstractmethod
    def _space(self) -> int | None:
        """Return how many principal components are kept; None for all that vary."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
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
        X = rows_with_gaps(self, X, gaps=False, fitting=True)
        given = check_weights(self, sample_weight, X.shape[0])
        # equal rows are one: a fit cannot tell repetition from weight, nor one order from another
        merged = distinct_rows(X, np.zeros(len(given)), given)
        rows, weights = take(X, merged.first), merged.weight
        white = white_rows(self, rows, weights, self._space())
        question = self._question(white, weights)
        solver = FixedPointICA(
            float(self.tol), int(self.max_iter), int(self.n_init), seed_of(self.random_state)
        )
        limits = {"callback": self.callback, "time_limit": self.time_limit}
        solution = solve(question, solver, **limits)
        turn = self._put_in_order(solution.value.components, question)
        value = Unmixing(white.mean, turn @ white.whitening.T)
        if solution.status.ok and not white.solution.status.ok:
            solution = replace(solution, status=white.solution.status)
        self.solution_: Solution = replace(solution, value=value)
        self._keep(value, turn @ white.coloring)
        found = non_gaussianity(question.rows @ turn.T, question.share, question.contrast)
        self.non_gaussianity_ = found
        problem = replace(question, rows=rows)
        self._judgement = LazyDataCertificate(
            problem, value, partial(certify, tol=10.0 * self.tol), eager=True, rows=len(weights)
        )
        return self

    def transform(self, X: Any) -> Array:
        """Return the components of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            y = W (x - mean).
        """
        check_is_fitted(self)
        return _components_of(new_rows(self, X, False), self.mean_, self.components_)

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows that components belong to; what was left out is that of the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Components.

        Returns
        -------
        array of shape (n_samples, n_features)
            mean + A y.
        """
        check_is_fitted(self)
        scores = check_scores(self, X, len(self.components_))
        return np.asarray(scores @ self.mixing_.T + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _put_in_order(self, turn: Array, question: IndependentComponents) -> Array:
        """Give directions their order and signs."""
        Y = question.rows @ turn.T
        if question.joint:
            far = non_gaussianity(Y, question.share, question.contrast)
            order = np.argsort(-far, kind="stable")
            turn, Y = turn[order], Y[:, order]
        return np.asarray(turn * signs_of(Y)[:, None])

    def _keep(self, value: Unmixing, mixing: Array) -> None:
        self.mean_, self.components_ = value.mean, value.components
        self.mixing_ = np.ascontiguousarray(mixing.T)
        self.n_components_ = len(value.components)
        self.n_iter_ = max(1, int(self.solution_.iterations))
        self.converged_ = self.solution_.status is Status.SOLVED

    def _check_parameters(self) -> None:
        check_optional_count(self, "n_components")
        check_choice(self, "contrast", tuple(CONTRASTS))
        check_count(self, "n_init")
        check_count(self, "max_iter")
        check_real(self, "tol", above=0)
        check_seed(self)
        check_limits(self)


def _components_of(X: Points, mean: Array, components: Array) -> Array:
    if is_sparse(X):
        return np.asarray(X @ components.T - mean @ components.T)
    return np.asarray((X - mean) @ components.T)


# --- ica -----------------------------------------------------------------------------------------
#
# Independent component analysis by fixed-point iteration.


class ICA(UnmixingMachine):
    """Independent component analysis: x = mean + A y, with the y as far from Gaussian as they go.

    Sums of independent variables are closer to Gaussian than the variables themselves. So rows are
    whitened, and turned until s_i E G(y_i), summed over the components, is largest: s_i, the sign
    of E[G'(y_i) y_i - G''(y_i)], tells on which side of a Gaussian y_i is. The iteration is the
    fixed-point one of FastICA; where that goes in circles, Newton's steps take over. Components
    have mean 0 and variance 1 (weights divided by their sum). Order: the least Gaussian first (with
    "deflation": as they are found). Signs: the entry of largest magnitude in each column of
    training scores is positive.

    Parameters
    ----------
    n_components : int or None, default=None
        How many; rows are reduced to as many leading principal components first. None takes all
        directions in which the rows vary.
    algorithm : {"parallel", "deflation"}, default="parallel"
        All components at once, or one after another.
    contrast : {"logcosh", "cube", "exp"}, default="logcosh"
        G(y) = log cosh y, y^4 / 4 (kurtosis) or -exp(-y^2 / 2).
    n_init : int, default=5
        Random starts; the largest contrast is kept.
    tol : float, default=1e-8
        The largest derivative of the contrast, by an angle, that counts as none.
    max_iter : int, default=200
        Most steps from one start.
    random_state : int, RandomState or None, default=0
        Of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` at every step; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The unmixing matrix W: y = W (x - mean).
    mixing_ : array of shape (n_features, n_components)
        The mixing matrix A, the pseudo-inverse of W.
    mean_ : array of shape (n_features,)
        The mean of the rows.
    non_gaussianity_ : array of shape (n_components,)
        |E G(y) - E G(z)| of each component, z a standard Gaussian.
    n_components_ : int
        The number of components.
    n_iter_ : int
        Steps of the start that was kept; of one direction after another, the most of one.
    converged_ : bool
        Whether the tolerance was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Whiteness, and that the contrast has a local maximum here; from the rows. That the
        components are independent is not proved.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ICA
    >>> rng = np.random.default_rng(0)
    >>> sources = np.column_stack([rng.uniform(-1, 1, 1000), rng.laplace(size=1000)])
    >>> X = sources @ [[1.0, 0.5], [0.3, 1.0]]
    >>> machine = ICA().fit(X)
    >>> machine.amari_index([[1.0, 0.3], [0.5, 1.0]]) < 0.1
    True
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        algorithm: str = "parallel",
        contrast: str = "logcosh",
        n_init: int = 5,
        tol: float = 1e-8,
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.contrast = contrast
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def amari_index(self, mixing: npt.ArrayLike) -> float:
        """Return how far the components are from sources that were mixed by a known matrix.

        With P = |W A| the index is the mean, over rows and columns, of (sum / largest entry - 1) /
        (k - 1): 0 where P is a permutation times a diagonal, at most 1 (Amari, Cichocki and Yang,
        A new learning algorithm for blind signal separation, 1996).

        Parameters
        ----------
        mixing : array-like of shape (n_features, n_components)
            The true A: x = A s.

        Returns
        -------
        float
            From 0 to 1; 0 for a single component.
        """
        A = np.asarray(mixing, dtype=np.float64)
        if A.shape != self.mixing_.shape:
            raise ParameterError(
                f"ICA.amari_index: mixing has shape {A.shape}, but mixing_ has {self.mixing_.shape}"
            )
        P = np.abs(self.components_ @ A)
        k = len(P)
        if k == 1:
            return 0.0
        return float((_crosstalk(P) + _crosstalk(P.T)) / (2 * (k - 1)))

    def _space(self) -> int | None:
        return self.n_components

    def _question(self, white: White, weights: Array) -> IndependentComponents:
        k = white.rows.shape[1]
        joint = self.algorithm == "parallel"
        return IndependentComponents(white.rows, weights, k, CONTRASTS[self.contrast], joint, k)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "algorithm", ("parallel", "deflation"))


def _crosstalk(P: Array) -> Any:
    """Return the mean over rows of what there is beside the largest entry, in units of it."""
    return np.mean(P.sum(axis=1) / P.max(axis=1) - 1.0)


# --- pursuit -------------------------------------------------------------------------------------
#
# Projection pursuit: the directions along which rows look least Gaussian, one by one.


class ProjectionPursuit(UnmixingMachine):
    """Projection pursuit: directions of largest non-Gaussianity, one after another.

    The first direction has the largest |E G(y) - E G(z)| that `n_init` starts find, y being the
    rows along it with mean 0 and variance 1, z a standard Gaussian; every further one is the best
    that is uncorrelated with those before. All directions in which rows vary are looked at,
    whatever their variance. Signs: the entry of largest magnitude in each column of training scores
    is positive.

    Parameters
    ----------
    n_components : int, default=2
        How many directions.
    contrast : {"logcosh", "cube", "exp"}, default="logcosh"
        What makes a direction interesting: G(y) = log cosh y (approximates negentropy), y^4 / 4
        (a fourth of the kurtosis) or -exp(-y^2 / 2) (outliers do not count).
    n_init : int, default=5
        Random starts for each direction; the largest contrast is kept.
    tol : float, default=1e-8
        The largest derivative of the contrast, by an angle, that counts as none.
    max_iter : int, default=200
        Most steps from one start.
    random_state : int, RandomState or None, default=0
        Of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` at every step; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions W: y = W (x - mean), each of variance one.
    mixing_ : array of shape (n_features, n_components)
        Covariances of columns and components: what takes components back to rows.
    mean_ : array of shape (n_features,)
        The mean of the rows.
    non_gaussianity_ : array of shape (n_components,)
        |E G(y) - E G(z)| along each direction.
    n_components_ : int
        The number of directions.
    n_iter_ : int
        Steps of the start that was kept; of one direction after another, the most of one.
    converged_ : bool
        Whether the tolerance was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Whiteness, and that each direction is a local maximum of the contrast; from the rows.

    Examples
    --------
    Two groups hide in a direction of little variance, which principal components do not show.

    >>> import numpy as np
    >>> from mercer import ProjectionPursuit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4)) * [9.0, 5.0, 3.0, 0.2]
    >>> X[:, 3] += np.repeat([-1.0, 1.0], 150)
    >>> machine = ProjectionPursuit(1).fit(X)
    >>> np.abs(machine.components_ * X.std(axis=0)).argmax()
    np.int64(3)
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        contrast: str = "logcosh",
        n_init: int = 5,
        tol: float = 1e-8,
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components: int = n_components
        self.contrast = contrast
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def _space(self) -> int | None:
        return None

    def _question(self, white: White, weights: Array) -> IndependentComponents:
        rank = white.rows.shape[1]
        if self.n_components > rank:
            must = f"be at most {rank}, the number of directions in which the rows vary"
            refuse(self, "n_components", self.n_components, must)
        contrast = CONTRASTS[self.contrast]
        return IndependentComponents(
            white.rows, weights, int(self.n_components), contrast, False, rank
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count(self, "n_components")
