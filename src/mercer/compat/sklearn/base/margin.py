"""What the drop-in kernel machines share: a Mercer machine inside, scikit-learn's names outside."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.certificates import Certificate
from mercer.compat.sklearn.base.inputs import NOTHING, Compared, Reader, is_matrix, reader_of
from mercer.compat.sklearn.base.kernels import translate
from mercer.compat.sklearn.base.masks import masked_weights
from mercer.compat.sklearn.base.parameters import check_kernel, check_solving
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.inputs import refuse_overflown
from mercer.machines.base.sharing import Fold, FoldPath, Sharing
from mercer.machines.margin.margin_machine import MarginMachine, path_sharing
from mercer.points import is_sparse
from mercer.solvers import Solution, Status

_FITTED_WELL = (Status.SOLVED, Status.NOT_CONVEX)  # LIBSVM does not notice the second


class DropIn(BaseEstimator):
    """Base of the drop-in kernel machines."""

    kernel: Any
    gamma: float | str
    tol: float
    max_iter: int
    machine_: MarginMachine
    n_support_: Array
    _reader: Reader

    @abstractmethod
    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> MarginMachine:
        """Return the Mercer machine that the parameters describe for these rows."""

    @property
    def solution_(self) -> Solution:
        """How the solver ended."""
        return self._fitted().solution_

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the fit, from the data, in float64; computed when first read."""
        return self._fitted().certificate_

    @property
    def coef_(self) -> Any:
        """Weights of the columns, of shape (n_models, n_features); for kernel="linear" only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._sign() * np.atleast_2d(self._fitted().coef_)
        coef.setflags(write=False)
        return self._like_the_rows(coef)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_matrix(self.kernel)
        tags.input_tags.sparse = not is_matrix(self.kernel)
        return tags

    def _check_parameters(self) -> None:
        check_kernel(self)
        check_solving(self)

    def _sharing(self, parameters: tuple[str, ...]) -> Sharing | None:
        """Return how fits that differ in some parameters are solved together, where they can be.

        gamma="scale" goes by the rows of a fit, as in scikit-learn: every fold has its own kernel.
        """
        try:  # what a fit would refuse is fitted, so that it is refused
            self._check_parameters()
        except (TypeError, ValueError):
            return None
        if self.max_iter != -1 or not isinstance(self.kernel, str | Kernel):
            return None
        by_name = isinstance(self.kernel, str) and self.kernel not in ("linear", "precomputed")
        params = self.get_params(deep=False)
        return path_sharing(
            self,
            self._path,
            parameters,
            params.get("C", 1.0),
            params.get("nu"),
            kernel=lambda X, weights: translate(self, X, weights)[0],
            precomputed=is_matrix(self.kernel),
            kernel_parameters=("kernel", "gamma", "degree", "coef0"),
            kernel_of_fold=by_name and isinstance(self.gamma, str) and self.gamma == "scale",
        )

    def _path(self, fold: Fold, machines: Sequence[DropIn]) -> FoldPath:
        """Write the problem of the Mercer machines that the parameters describe on a fold."""
        inner: Any = self._machines_inside(fold, machines)
        found: FoldPath = inner[0]._path(fold, inner)
        return found

    @staticmethod
    def _machines_inside(fold: Fold, machines: Sequence[DropIn]) -> list[Any]:
        return [one._machine(Precomputed(), fold.targets, fold.weights) for one in machines]

    def _solving(self) -> dict[str, Any]:
        """Return tolerance and limit in Mercer's terms; a limit of 0 still makes one step.

        Their fits are exact, however many rows there are.
        """
        limit = None if self.max_iter == -1 else max(1, int(self.max_iter))
        return {"tol": float(self.tol), "max_iter": limit, "approximation": None}

    def _solve(self, X: Any, y: Any, sample_weight: Any, **target: Any) -> Array:
        """Fit the Mercer machine, keep what does not depend on its kind; return the targets."""
        reader = reader_of(self.kernel)
        points, targets = reader.training(self, X, y, **target)
        weights = masked_weights(self, sample_weight, points.shape[0])
        self._check_weights(targets, weights)
        kernel, self._gamma = translate(self, points, weights)
        machine = self._machine(kernel, targets, weights)
        with warnings.catch_warnings():  # told below, in LIBSVM's words
            warnings.filterwarnings("ignore", ".*the iteration limit", ConvergenceWarning)
            machine.fit(points, None if y is NOTHING else targets, weights)
        self.machine_ = machine
        if machine.solution_.status is Status.ITERATION_LIMIT:
            warnings.warn(
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing "
                "your data with StandardScaler or MinMaxScaler.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self._reader = reader.fitted(X)
        self._sparse = is_sparse(points)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else _shape(X, points, self.kernel)
        self.fit_status_ = int(machine.solution_.status not in _FITTED_WELL)
        return targets

    def _keep_support(self, order: Array) -> None:
        """Show the support vectors, in this order of those of the Mercer machine."""
        machine = self.machine_
        coef = machine.dual_coef_[order]
        coef = coef[:, None] if coef.ndim == 1 else coef
        self.support_ = machine.support_[order].astype(np.int32)
        self.dual_coef_ = self._like_the_rows(np.ascontiguousarray(self._sign() * coef.T))
        self.intercept_ = self._sign() * np.atleast_1d(machine.intercept_)
        vectors = machine.support_vectors_
        given = isinstance(machine.kernel_, Precomputed)  # there are no vectors then
        self.support_vectors_ = vectors if given else as_configured(vectors[order])

    def _check_weights(self, targets: Array, weights: Array) -> None:
        """Refuse weights that leave nothing to learn."""

    def _sign(self) -> float:
        """Return -1 where scikit-learn's functions are the negatives of ours."""
        return 1.0

    def _values(self, X: Any) -> Array:
        """Read new rows and give the values of all functions there: (n, functions)."""
        points, machine = self._new(X), self.machine_
        if isinstance(self._reader, Compared):
            return machine._values(points)
        # rows are read already
        return refuse_overflown(machine, lambda: machine._expansion(points))

    def _new(self, X: Any) -> Points:
        """Read new rows; as there, sparse ones only after a fit to sparse ones."""
        check_is_fitted(self)
        if is_sparse(X) and not self._sparse and not isinstance(self._reader, Compared):
            name = type(self).__name__
            raise ValueError(
                f"cannot use sparse input in {name!r} trained on dense data; pass X.toarray()"
            )
        return self._reader.new(self, X)

    def _fitted(self) -> MarginMachine:
        machine: MarginMachine | None = self.__dict__.get("machine_")
        if machine is None:
            raise AttributeError(
                f"{type(self).__name__} has no such attribute before it is fitted; call fit first"
            )
        return machine

    def _like_the_rows(self, table: Array) -> Any:
        """Return a table as a sparse matrix, zeros included, if the rows of the fit were sparse."""
        if not self._sparse:
            return table
        count, width = table.shape
        columns = np.tile(np.arange(width), count)
        starts = np.arange(count + 1) * width
        return as_configured(sparse.csr_array((table.ravel(), columns, starts), shape=table.shape))


def as_configured(X: Any) -> Any:
    """Return a sparse array the interface that scikit-learn is configured for."""
    if not is_sparse(X) or sklearn.get_config().get("sparse_interface") == "sparray":
        return X
    return sparse.csr_matrix(X)


def _shape(X: Any, points: Any, kernel: Any) -> tuple[int, ...]:
    return tuple(points.shape) if isinstance(kernel, str | Kernel) else (len(X),)
