"""Rows from several Gaussians: soft clusters and a density."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.machines.base.parameters import check_choice, check_real, refuse
from mercer.machines.mixture.gaussian_em_steps import (
    CovarianceStructure,
    Diagonal,
    Full,
    GaussianMix,
    GaussianParts,
    Shared,
    Spherical,
)
from mercer.machines.mixture.machine import MixtureMachine, drawn_parts
from mercer.resources import require_memory
from mercer.rows.points import to_dense
from mercer.solvers.base import Callback

SHAPES: dict[str, type[CovarianceStructure]] = {
    "full": Full,
    "shared": Shared,
    "diagonal": Diagonal,
    "spherical": Spherical,
}
_LARGEST = 1e151  # entries whose squares, times any sensible floor, are still numbers
_DIGITS = 1e8  # condition of a correlation matrix beyond which log-densities lose their sixth digit


class GaussianMixture(MixtureMachine):
    """A mixture of Gaussians: P(x) = sum_j w_j N(x | m_j, C_j).

    Found by expectation maximisation, several starts, each from a short k-means with k-means++
    seeds. Columns are centred and scaled first, and scaled back: where the origin lies, and in
    which units columns are, does not matter (but to spherical covariances, which compare columns).
    The likelihood of a Gaussian on a single row has no bound. So no variance falls below `floor`
    (the exact maximum under this condition), starts that lead to such a collapse are passed over if
    others do not, and what collapsed all the same is warned about and listed in `collapsed_`.

    Parameters
    ----------
    n_components : int, "bic" or "mdl", default=2
        The number of Gaussians, or the criterion by which it is chosen among 1, ...,
        `max_components`: Bayes' information criterion, or the description length. Numbers that
        lead to collapsed components are not chosen.
    covariance : {"full", "shared", "diagonal", "spherical"}, default="full"
        What covariances look like: any; one for all; no correlations; a multiple of the identity.
    floor : float, default=1e-6
        The smallest variance of a component in any direction, columns having variance one (for
        spherical covariances: the mean variance of the columns being one).
    max_components : int, default=10
        The largest number tried when it is chosen.
    n_init : int, default=3
        Starts. Each runs a dozen passes, and the best one goes on.
    tol : float, default=1e-6
        Stop when a step adds no more than this to the mean log-likelihood of the rows.
    max_iter : int, default=500
        Largest number of passes over the rows.
    random_state : int, RandomState or None, default=0
        Source of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which a fit stops with what it has; for each number of components, when that
        is chosen.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Shares w of the components.
    means_ : array of shape (n_components, n_features)
        Means.
    covariances_ : array
        Covariances: (n_components, d, d) for "full", (d, d) for "shared", (n_components, d) for
        "diagonal" and (n_components,) for "spherical".
    n_components_ : int
        The number of components.
    criteria_ : array of shape (max_components,)
        The criterion for each number, when it was chosen.
    collapsed_ : bool array of shape (n_components,)
        Components that the floor holds in directions in which the data have variance.
    log_likelihoods_ : array
        Log-likelihoods on the way, sums over rows. They never fall.
    n_iter_ : int
        Passes over the rows.
    converged_ : bool
        Whether `tol` was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The likelihood, and what another step would add, from the data. Made when first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (200, 2)), rng.normal(6, 0.5, (100, 2))])
    >>> mixture = GaussianMixture("bic").fit(X)
    >>> mixture.n_components_, sorted(mixture.weights_.round(2).tolist())
    (2, [0.33, 0.67])
    >>> mixture.certificate_.ok
    True
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        covariance: str = "full",
        floor: float = 1e-6,
        max_components: int = 10,
        n_init: int = 3,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.floor = floor
        self.max_components = max_components
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, Array]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Rows, sorted by component.
        labels : int array of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        rng, labels = drawn_parts(self, n_samples, random_state)
        k, d = self.means_.shape
        roots = np.linalg.cholesky(self._problem.shape.expanded(self._parts.covariances, k, d))
        noise = rng.standard_normal((len(labels), d))
        drawn = self._parts.means[labels] + np.einsum("nij,nj->ni", roots[labels], noise)
        return drawn * self._scale + self._origin, labels

    def _rows(self, X: Any, *, fitting: bool) -> Array:
        rows = super()._rows(X, fitting=fitting)
        needed = 8 * rows.shape[0] * rows.shape[1]
        require_memory(2 * needed, "GaussianMixture: dense rows", "Use fewer rows or columns.")
        return to_dense(rows)

    def _question(self, X: Points, weights: Array, k: int) -> GaussianMix:
        if k == 1 or not isinstance(self.n_components, str):  # once for all numbers of components
            deadline.check()  # of many rows each of these is a while
            _refuse_scale(X, spherical=self.covariance == "spherical")
            deadline.check()
            self._origin, self._scale = _units(X, weights, self.covariance == "spherical")
        deadline.check()
        Z = (X - self._origin) / self._scale
        volume = -float(np.log(self._scale).sum())
        return GaussianMix(Z, weights, k, SHAPES[self.covariance](), float(self.floor), volume)

    def _converted(self, X: Points) -> Array:
        most = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((X - self._origin) / self._scale, -most, most))

    def _free(self, problem: GaussianMix, k: int) -> tuple[int, int]:
        shape, d = problem.shape, int(self.n_features_in_)
        if isinstance(shape, Shared):
            return d, shape.free(k, d)
        return d + shape.free(1, d), 0

    def _small_sample(self, problem: GaussianMix, rows: Array) -> float:
        return float(problem.shape.small_sample(rows, int(self.n_features_in_)))

    def _keep(self, problem: GaussianMix, parts: GaussianParts) -> None:
        scale, forms = self._scale, parts.covariances
        self.weights_ = parts.shares
        self.means_ = parts.means * scale + self._origin
        if self.covariance == "spherical":
            self.covariances_ = forms * scale[0] ** 2
        elif self.covariance == "diagonal":
            self.covariances_ = forms * scale**2
        else:
            self.covariances_ = forms * np.outer(scale, scale)
        self._warn_of_condition(problem, parts)

    def _warn_of_condition(self, problem: GaussianMix, parts: GaussianParts) -> None:
        """Warn when covariances are so close to singular that log-densities lose digits."""
        if parts.covariances.ndim == 1 or self.covariance == "diagonal":
            return
        each = parts.covariances.reshape(-1, *parts.covariances.shape[-2:])
        widths = np.sqrt(np.diagonal(each, axis1=1, axis2=2))
        values = np.linalg.eigvalsh(each / (widths[:, :, None] * widths[:, None, :]))
        condition = float((values[:, -1] / np.maximum(values[:, 0], 1e-300)).max())
        if condition > _DIGITS:
            warnings.warn(
                f"GaussianMixture: a covariance has condition number {condition:.0e} even in units "
                "of its own widths; log-densities may be wrong from the "
                f"{max(1, int(15 - np.log10(condition)))}. digit on. Raise floor, drop columns "
                "that repeat others, or use covariance='diagonal'.",
                UserWarning,
                stacklevel=5,
            )

    def _remedy(self) -> str:
        return (
            f"They sit on too few rows, or on equal ones, and floor={self.floor:g} holds their "
            "variance. Use fewer components, a simpler covariance, a larger floor or n_init."
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "covariance", tuple(SHAPES))
        check_real(self, "floor", above=0)
        if self.floor < 1.0 / _LARGEST:
            refuse(self, "floor", self.floor, f"be at least {1.0 / _LARGEST:g}: variances are one")


def _refuse_scale(X: Array, *, spherical: bool) -> None:
    """Raise where squares of entries, or of differences, are no numbers of float64."""
    sizes = np.abs(X).max(axis=0)
    if sizes.max() > _LARGEST:
        raise ValueError(
            f"GaussianMixture: column {int(sizes.argmax())} of X has entries as large as "
            f"{sizes.max():.1e}, and variances beyond float64; divide it by a large number"
        )
    spread = X.max(axis=0) - X.min(axis=0)
    if spherical:  # columns are compared: only the widest must have a variance
        spread = np.where(spread == spread.max(), spread, 0.0)
    small = np.flatnonzero((spread > 0) & (spread < 1.0 / _LARGEST))
    if len(small):
        raise ValueError(
            f"GaussianMixture: column {small[0]} of X varies by {spread[small[0]]:.1e} only, and "
            "its variance is below float64; multiply it by a large number"
        )


def _units(X: Array, weights: Array, one: bool) -> tuple[Array, Array]:
    """Return the mean of the columns and their standard deviations, or one for all of them.

    Columns that are constant but for rounding keep their own unit.
    """
    share = weights / weights.sum()
    anchor = X[0]  # sums of differences lose no digits to a large mean
    mean = anchor + share @ (X - anchor)
    variance = share @ np.square(X - mean)
    noise = 4.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
    if one:
        variance = np.full_like(variance, variance.mean())
        noise = np.full_like(noise, noise.max())
    scale = np.sqrt(variance)
    return mean, np.where(scale > noise, scale, 1.0)
