"""The smallest ball around the rows in feature space, some of them left out if wished."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.gram import Gram, Source
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.margin.novelty import NoveltyMachine
from mercer.problems import BoxQP, Dual
from mercer.problems.margin import svm
from mercer.solvers import Callback


class EnclosingBall(NoveltyMachine):
    """Smallest ball in feature space around all rows, or all but a few, to detect novelty.

    Minimises R^2 + sum_i s_i max(0, |phi(x_i) - c|^2 - R^2) / (nu W), W the total of the sample
    weights s, over centres c and radii R; with nu = 0 every row is inside.

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
        squared distance, or of half the squared radius where that is less than 1, or the duality
        gap relative to the objective.
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
        self.offset_ = -(self.radius_**2)

    def _border_width(self) -> float:
        return self.tol * min(2.0, self.radius_**2)
