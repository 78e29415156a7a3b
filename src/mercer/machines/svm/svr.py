"""Support vector regression: a tube around the function, L1 and L2 slack outside it, nu form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.backends.box_programs import Form
from mercer.kernels import Kernel
from mercer.machines.base.approximate import warn_of_similarity
from mercer.machines.base.machine import all_or_nothing, with_callbacks
from mercer.machines.base.parameters import check_choice, check_optional_share, check_real, refuse
from mercer.machines.base.sharing import Fold, FoldPath, KnownRegressor, SharedMatrix, Sharing
from mercer.machines.base.targets import check_weights
from mercer.machines.svm import problem as svm
from mercer.machines.svm.machine import (
    MarginMachine,
    amounts_of,
    bounded_costs,
    check_cost,
    costs_of,
    refuse_squared_beside_nu,
    warn_unused_beside_nu,
)
from mercer.machines.svm.multiclass import Zones, zones
from mercer.machines.svm.problem import Dual, MarginPath, PathSetting
from mercer.solvers.base import Callback

_ZONES = ("inside", "on", "outside")


class SVR(RegressorMixin, MarginMachine):
    """Support vector regression: f(x) = sum_i b_i k(x_i, x) + intercept, blind below epsilon.

    Minimises |w|^2 / 2 + C sum_i s_i max(0, |y_i - f(x_i)| - epsilon) over functions with any
    kernel, s_i being the sample weights.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data as scikit-learn's
        gamma="scale" does.
    C : float or array of shape (n_samples,), default=1.0
        Weight of the errors beyond the tube, of all rows or of each. Infinity allows none.
    epsilon : float, default=0.1
        Half the width of the tube, in units of y.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    tube : {"l1", "l2"}, default="l1"
        Whether errors beyond the tube count as they are or squared; with nu, as they are.
    nu : float or None, default=None
        In place of epsilon, which has no effect beside it: upper bound on the share of rows outside
        the tube and lower bound on that of support vectors.
    tol : float, default=1e-3
        How good the answer must be.
    criterion : {"violation", "gap"}, default="violation"
        Whether `tol` is the largest violation of the optimality conditions, in units of y
        (LIBSVM's criterion) or of the range of y where that is less than 1, or the duality gap
        relative to the objective.
    max_iter : int or None, default=None
        Largest number of steps, in the unit of the solver that runs (`solution_.solver`): pair
        steps, interior point steps, or passes over the rows. None takes max(10^7, 100 n) pair
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
    epsilon_ : float
        Half the width of the tube.
    support_ : int array of shape (n_support,)
        Rows with a nonzero coefficient: those on the tube or outside.
    support_vectors_ : array of shape (n_support, n_features)
        These rows; empty for a precomputed kernel.
    dual_coef_ : array of shape (n_support,)
        Their coefficients b.
    intercept_ : float
        The constant of f.
    coef_ : array of shape (n_features,)
        Weights of the columns; only for the linear kernel.
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
    >>> from mercer import SVR
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> machine = SVR(Gaussian(1.0), C=10.0, epsilon=0.05).fit(X, np.sin(X).ravel())
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 0.06)
    True
    >>> machine.certificate_.ok
    True
    """

    shares = (SharedMatrix(),)

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        C: float | npt.ArrayLike = 1.0,
        epsilon: float = 0.1,
        *,
        approximation: Approximation | str | None = "auto",
        tube: str = "l1",
        nu: float | None = None,
        tol: float = 1e-3,
        criterion: str = "violation",
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.C = C
        self.epsilon = epsilon
        self.tube = tube
        self.nu = nu
        self.tol = tol
        self.criterion = criterion
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = self._training_points(X, y, y_numeric=True)
        weights = check_weights(self, sample_weight, len(y))
        rows = self._merged(X, y, weights)
        self._use_kernel(self._resolved(X, rows), X, weights, self._column_names())
        costs = costs_of(self, rows, weights)
        origin = self._origin(X, rows)
        gram = self._gram(X, rows, origin)
        question = self._question(y[rows.first], costs, self.epsilon)
        bounded = "" if self.nu is not None else bounded_costs(self, gram, costs)
        solution = self._answer(gram, question, bounded)
        dual = self._function(solution.value)
        constant = np.array([float(dual.intercept)])
        constant = self._keep_function(gram.expand(dual.coef), constant, origin)
        self.intercept_ = float(constant[0])
        self._keep_support(X, rows.spread(dual.coef, amounts_of(self, weights)))
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
        array of shape (n_samples,)
            The values of f.
        """
        return np.asarray(self._values(X)[:, 0])

    def zones(self, X: Any, y: Any) -> Zones:
        """Return which rows are inside, on or outside the tube.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, such as those of the fit.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        Zones
            `zone` and `slack` of each row.
        """
        room = self.epsilon_ - np.abs(np.asarray(y, dtype=np.float64) - self.predict(X))
        return zones(room, self.tol, _ZONES)

    def _form(self, n: int) -> Form | None:
        """Return what the tube is like; that of nu regression may be written anew."""
        if self.nu is not None:
            return None
        return Form(n, tube=bool(np.any(self.epsilon)), shifted=self.tube == "l2")

    def _variables_of_a_row(self) -> int:
        """With nu, each row is above the tube and below it."""
        return 1 if self.nu is None else 2

    def sharing(self) -> Sharing | None:
        """Return how fits for several C, and tubes or nu, are solved together."""
        if self.nu is None:
            return self._sharing(self._path, ("C", "epsilon"), self.C)
        return self._sharing(self._path, ("C", "epsilon", "nu"), self.C, self.nu)

    def _path(self, fold: Fold, machines: Sequence[SVR]) -> FoldPath:
        """Write the tube with C = 1 and epsilon = 1, or the least nu, and the factors of others."""
        least = min(machines, key=lambda one: one.nu or 0.0)
        problem = least._question(fold.targets, fold.weights, 1.0)(fold.part)
        settings = tuple(one._path_setting(least) for one in machines)
        return FoldPath(
            MarginPath((problem,), settings, fold.evaluation_rows),
            # the constant is the middle of the two multipliers of the nu form
            lambda values, offsets: KnownRegressor(values[0] + offsets[0].mean()),
        )

    def _path_setting(self, least: SVR) -> PathSetting:
        """Scale the bounds or the diagonal, and epsilon or the sums."""
        C: Any = self.C
        C = float(C)
        if self.nu is not None and least.nu is not None:
            return PathSetting(bound=C, total=C * float(self.nu) / float(least.nu))
        if self.tube == "l1":
            return PathSetting(bound=C, epsilon=float(self.epsilon))
        return PathSetting(shift=1 / C, epsilon=float(self.epsilon))

    def _question(self, targets: Array, costs: Array, epsilon: float) -> Any:
        """Return what writes the problem on a Gram."""
        if self.nu is not None:
            return partial(svm.nu_svr, targets=targets, C=costs, nu=float(self.nu))
        write = {"l1": svm.svr, "l2": svm.svr_l2}[self.tube]
        return partial(write, targets=targets, C=costs, eps=float(epsilon))

    def _function(self, value: Dual) -> Dual:
        """Return coefficients and constant of f, and note the width of its tube."""
        if self.nu is None:
            self.epsilon_ = float(self.epsilon)
            return value
        dual, self.epsilon_ = svm.nu_svr_tube(value)
        return dual

    def _check_parameters(self) -> None:
        check_cost(self)
        check_real(self, "epsilon", least=0)
        check_choice(self, "tube", ("l1", "l2"))
        check_optional_share(self, "nu")
        if self.nu is not None and not np.isfinite(self.C).all():
            refuse(self, "C", self.C, "be finite beside nu, which is a share of its sum")
        self._check_solving()
        refuse_squared_beside_nu(self, "tube")
        warn_unused_beside_nu(self, "epsilon")
