"""A machine that learns its kernel, a weighted sum of given ones, each time it is fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines import SVC, KernelRidge
from mercer.machines.base.inputs import training_rows
from mercer.machines.base.machine import all_or_nothing, is_precomputed
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import is_real
from mercer.machines.base.targets import refuse_mixed_labels, refuse_targets
from mercer.selection.inner_machine import InnerMachineMixin, inner_has
from mercer.selection.learning.combination import combine
from mercer.solvers import Callback

_METHOD_PARAMETERS: dict[str, tuple[str, ...]] = {  # what a method takes from the machine
    "margin": ("C", "slack", "multiclass", "class_weight"),
    "ridge": ("penalty", "bias"),
}


class MultipleKernel(InnerMachineMixin, Machine, BaseEstimator):
    """A machine whose kernel is a sum of given kernels, with weights learnt from the rows it fits.

    `fit` calls `combine`, sets the machine's kernel and fits it. In a cross-validation the weights
    are thus learnt anew from the rows of each fold, and scores are honest.

    Parameters
    ----------
    machine : classifier or regressor with a parameter `kernel`
        What is fitted with the sum.
    kernels : sequence of Kernel, str or callable
        What may be part of the sum.
    method : {"alignment", "margin", "ridge"} or None, default=None
        As in `combine`; "margin" is for classifiers, "ridge" for regressors. None takes "margin"
        for `SVC` with a finite C, "ridge" for `KernelRidge` with a penalty that is a positive
        number, and "alignment" for all other machines. C, slack, class weights, penalty and bias
        are those of the machine.
    normalize : bool, default=True
        Whether kernels are put on one scale first.
    tol : float, default=1e-4
        Duality gap of the weights, relative to the objective.
    max_iter : int, default=200
        Largest number of steps over the simplex.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` while weights are learnt; a true value stops that.
    time_limit : float or None, default=None
        Seconds after which the search for weights stops.

    Attributes
    ----------
    combined_ : Combined
        The weights, with solution and certificate.
    weights_ : (m,) array
        Shares of the kernels.
    kernel_ : Kernel
        Their weighted sum.
    n_iter_ : int
        Steps over the simplex; a look around counts as a step.
    machine_ : estimator
        The fitted machine.
    solution_, certificate_ : Solution, Certificate
        Those of the fitted machine; `combined_` has those of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import MultipleKernel, Tuned
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> parts = [Gaussian(1.0).on([0, 1]), Gaussian(1.0).on([1, 2]), Gaussian(1.0).on([2])]
    >>> machine = MultipleKernel(SVC(C=10.0), parts).fit(X, y)
    >>> machine.weights_.round(2)
    array([0.91, 0.09, 0.  ])
    >>> Tuned(machine, {"machine__C": [1.0, 10.0]}, cv=3).fit(X, y).best_score_ > 0.85
    True
    """

    _fitted_name = "machine_"

    def __init__(
        self,
        machine: Any,
        kernels: Sequence[Any],
        *,
        method: str | None = None,
        normalize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 200,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.machine = machine
        self.kernels = kernels
        self.method = method
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn the weights of the kernels, then fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels, or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        labels = self._refuse_others()
        if labels:
            refuse_mixed_labels(self, y)
            refuse_targets(training_rows(self, X, y, False)[1])
        else:
            training_rows(self, X, y, False, multi_output=True, y_numeric=True)
        self.combined_ = combine(
            self.kernels,
            X,
            y,
            normalize=self.normalize,
            target="labels" if labels else "numbers",
            sample_weight=sample_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            time_limit=self.time_limit,
            **self._loss(),
        )
        machine = clone(self.machine).set_params(kernel=self.combined_.kernel)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.machine_ = machine.fit(X, y, **weights)
        return self

    def _refuse_others(self) -> bool:
        """Refuse machines without a kernel or a target; tell whether the machine classifies."""
        if isinstance(self.machine, type) or not hasattr(self.machine, "get_params"):
            raise TypeError(
                f"MultipleKernel: machine={self.machine!r} must be a machine, such as SVC(C=10.0)"
            )
        if is_precomputed(self.kernels):
            raise ValueError(
                "MultipleKernel: kernels=Precomputed() cannot be fitted, since X is one table; use "
                "combine(Precomputed(), matrices, y), and fit the machine to its `matrix`"
            )
        if "kernel" not in self.machine.get_params(deep=False):
            raise TypeError(
                f"MultipleKernel: machine={self.machine!r} has no parameter kernel; use SVC, "
                "KernelRidge or another machine of a kernel"
            )
        if not is_classifier(self.machine) and not is_regressor(self.machine):
            raise TypeError(
                f"MultipleKernel: machine={self.machine!r} learns without a target, from which "
                "weights of kernels could be learnt; use a classifier or a regressor"
            )
        return bool(is_classifier(self.machine))

    def _loss(self) -> dict[str, Any]:
        """Return what the weights are best for, as the machine has it."""
        machine, method = self.machine, self.method
        if method is None:
            method = _own_method(machine)
        unfit = {"margin": is_regressor, "ridge": is_classifier}
        if isinstance(method, str) and method in unfit and unfit[method](machine):
            raise ValueError(
                f"MultipleKernel: method={method!r} does not suit machine={machine!r}: 'margin' is "
                "for classifiers and 'ridge' for regressors; use None or 'alignment'"
            )
        names = _METHOD_PARAMETERS.get(method, ()) if isinstance(method, str) else ()
        params = machine.get_params(deep=False)
        return {"method": method, **{name: params[name] for name in names if name in params}}

    @available_if(inner_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Score predictions, as the fitted machine does."""
        return float(self._fitted("score").score(X, y, sample_weight))

    @property
    def weights_(self) -> Array:
        """Shares of the kernels."""
        return self._learnt("combined_").weights  # type: ignore[no-any-return]

    @property
    def kernel_(self) -> Any:
        """The weighted sum."""
        return self._learnt("combined_").kernel

    @property
    def n_iter_(self) -> int:
        """Steps over the simplex."""
        return max(1, int(self._learnt("combined_").solution.iterations))

    def _learnt(self, name: str) -> Any:
        if name not in self.__dict__:
            raise AttributeError("MultipleKernel is not fitted yet; call fit first")
        return self.__dict__[name]

    def _inner(self, name: str) -> Any:
        return getattr(self._learnt("machine_"), name)

    def _fitted(self, what: str) -> Any:
        check_is_fitted(self)
        return self.machine_

    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in self.__dict__


def _own_method(machine: Any) -> str:
    """Return the method that suits a machine."""
    params = machine.get_params(deep=False)
    cost, penalty = params.get("C"), params.get("penalty")
    if isinstance(machine, SVC) and machine.nu is None and is_real(cost) and cost < math.inf:
        return "margin"
    if isinstance(machine, KernelRidge) and is_real(penalty) and penalty > 0:
        return "ridge"
    return "alignment"
