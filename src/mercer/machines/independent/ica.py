"""Independent component analysis by fixed-point iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.machines.base.parameters import ParameterError, check_choice
from mercer.machines.independent.unmixing_machine import UnmixingMachine
from mercer.machines.independent.whitening import White
from mercer.problems import CONTRASTS, IndependentComponents
from mercer.solvers import Callback


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
