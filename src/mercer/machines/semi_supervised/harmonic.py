"""A number for each row, known for some: the harmonic function of a graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.semi_supervised.diffusion import GraphDiffusion
from mercer.machines.semi_supervised.labels import known_targets, read_targets
from mercer.solvers import Callback


class HarmonicRegressor(RegressorMixin, GraphDiffusion):
    """The harmonic function of a graph: each unknown value is the mean of its neighbours'.

    Of all functions on the graph with the known values it has the least sum of
    w_ij (f_i - f_j)^2; no value is below the smallest or above the largest known one.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data. `Precomputed()` takes a
        symmetric affinity matrix, dense or sparse.
    neighbors : int, "auto" or None, default="auto"
        Join each row to so many nearest others; "auto" takes 10, or all others if they are fewer.
        None joins all rows to all.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iterative fit stops with what it has.

    Attributes
    ----------
    values_ : array of shape (n_samples,)
        The value of each training row.
    steps_ : array of shape (n_samples,)
        How many steps a walk along the edges is expected to take until it meets a known value.
    unreached_ : int array
        Rows that hang together with no known value; they get the mean of those.
    kernel_ : Kernel
        The kernel used.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The equations, a bound of the error of every value, and the maximum principle; from the
        graph.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import HarmonicRegressor
    >>> X = np.arange(5.0)[:, None]
    >>> path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    >>> y = [0.0, np.nan, np.nan, np.nan, 8.0]
    >>> HarmonicRegressor("precomputed", neighbors=None).fit(path, y).values_.round(9)
    array([0., 2., 4., 6., 8.])
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.neighbors = neighbors
        self.weights = weights
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows, of which some have a target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; for a precomputed kernel the affinity matrix itself; strings for string kernels.
        y : array-like of shape (n_samples,)
            Targets, and NaN for rows without.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = read_targets(self, X, y)
        labelled = known_targets(self, y)
        targets = np.where(labelled, y, 0.0)[:, None]
        self.values_ = self._diffuse(X, targets, labelled, 1.0)[:, 0]
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel their affinities to the training rows.

        Returns
        -------
        array of shape (n_samples,)
            The weighted mean of the values of the training rows that a row is joined to.
        """
        return self._new_values(X)[:, 0]
