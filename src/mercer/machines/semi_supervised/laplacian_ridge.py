"""Ridge regression with a penalty along a graph of all rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_flag, check_real
from mercer.machines.regression.ridge import KernelRidge
from mercer.machines.semi_supervised.labels import known_targets, read_targets
from mercer.machines.semi_supervised.manifold import ManifoldMachine
from mercer.solvers import Callback


class LaplacianRidge(MultiOutputMixin, RegressorMixin, ManifoldMachine):
    """Laplacian regularised least squares: ridge regression that is smooth along all rows.

    Minimises sum_i (y_i - f(x_i))^2, over rows with a target, + penalty |h|^2 +
    intrinsic_penalty h'Lh, over all rows, with f = h + b. L = (D - W) / d is the Laplacian of a
    graph of all rows, d the mean degree, so that h'Lh is a mean over neighbours of squared
    differences, times the number of rows. The answer is ridge regression on the rows with a target
    in the kernel that the graph deforms. With intrinsic_penalty=0 it is `KernelRidge` on them.

    Parameters
    ----------
    penalty : float, default=1.0
        Weight of the squared norm.
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from all rows.
    intrinsic_penalty : float, default=1.0
        Weight of the differences along edges.
    neighbors : int, "auto" or None, default="auto"
        Join each row to so many nearest others; "auto" takes 10, or all others if they are fewer.
        None joins all rows to all.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    bias : bool, default=True
        Whether f has a constant b.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit is given up.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    labelled_ : int array
        The rows with a target.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        Coefficients of the kernel at all rows.
    intercept_ : float or array of shape (n_targets,)
        The bias b.
    machine_ : KernelRidge
        The machine on the rows with a target, in the deformed kernel.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The residual of the ridge equations, and of those of the deformed kernel, from the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LaplacianRidge
    >>> t = np.linspace(0, 3 * np.pi, 200)
    >>> spiral = np.column_stack([t * np.cos(t), t * np.sin(t)])
    >>> y = np.where(np.arange(200) % 40 == 0, t, np.nan)  # five targets
    >>> machine = LaplacianRidge(1e-3, intrinsic_penalty=1.0, neighbors=4).fit(spiral, y)
    >>> bool(abs(machine.predict(spiral) - t)[:161].max() < 1.0)
    True
    """

    def __init__(
        self,
        penalty: float = 1.0,
        kernel: Kernel | str | Any = "gaussian",
        *,
        intrinsic_penalty: float = 1.0,
        neighbors: int | str | None = "auto",
        weights: str = "binary",
        bias: bool = True,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.kernel = kernel
        self.intrinsic_penalty = intrinsic_penalty
        self.neighbors = neighbors
        self.weights = weights
        self.bias = bias
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows, of which some have a target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, and NaN for rows without.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        check_real(self, "penalty", above=0)
        check_flag(self, "bias")
        X, y = read_targets(self, X, y, multi_output=True)
        labelled = known_targets(self, y)
        ratio = float(self.intrinsic_penalty) / float(self.penalty)
        problem, value = self._deform(X, labelled, ratio)
        inner = KernelRidge(float(self.penalty), "precomputed", bias=bool(self.bias))
        inner.fit(value.matrix, y[labelled])
        self.dual_coef_ = np.asarray(value.transfer @ inner.dual_coef_)
        self.intercept_ = inner.intercept_
        self._keep(problem, value, inner)
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
        rows = self._values(X)  # which refuses a machine that is not fitted
        return np.asarray(self.machine_.predict(rows))
