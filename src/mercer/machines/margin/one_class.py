"""Novelty detection: the half-space of feature space that holds all but a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machines.base.parameters import check_share
from mercer.machines.base.sharing import Fold, FoldPath, KnownDetector, SharedMatrix, Sharing
from mercer.machines.margin.novelty import NoveltyMachine
from mercer.problems import BoxQP, Dual, MarginPath, PathSetting
from mercer.problems.margin import svm
from mercer.solvers import Callback


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
