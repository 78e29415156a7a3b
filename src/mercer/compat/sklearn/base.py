"""Base of the drop-in classes: parameters, inputs, sample weights, and the inner estimator."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from mercer.array_types import Array, Points
from mercer.compat.sklearn.kernels import translate
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.inputs import new_rows, read_rows, refuse_nonfinite, refuse_overflown
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.base.sharing import Fold, FoldPath, Sharing
from mercer.machines.base.targets import check_weights
from mercer.machines.svm.machine import MarginMachine, path_sharing
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import Certificate

# --- wrapped -------------------------------------------------------------------------------------
#
# What a drop-in class shows of the Mercer machine inside it.


class CheckedEstimator(BaseEstimator):
    """A class of scikit-learn whose numbers have to be numbers of float64."""

    def _validate_params(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if type(value) is int and not is_real(value):
                refuse(self, name, value, "be a number that float64 reaches")
        super()._validate_params()


class WrappedMachine(CheckedEstimator):
    """A class with a fitted Mercer machine inside."""

    machine_: Any

    @property
    def solution_(self) -> Solution:
        """How the solver ended."""
        found: Solution = self._fitted().solution_
        return found

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the fit, from the data, in float64; computed when first read."""
        found: Certificate = self._fitted().certificate_
        return found

    def _fitted(self) -> Any:
        if "machine_" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__} has no such attribute: it is not fitted, or its options "
                "made it run in scikit-learn; call fit first, or choose options that run here"
            )
        return self.machine_


# --- parameters ----------------------------------------------------------------------------------
#
# Parameters of scikit-learn's classes, checked when `fit` starts, with its ranges.


def check_priors(machine: Any, name: str) -> None:
    """Require a list of numbers that are not negative, or None: scikit-learn takes other shapes."""
    given = getattr(machine, name)
    if given is None:
        return
    try:
        priors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        priors = np.full((), np.nan)
    if priors.ndim != 1 or np.isnan(priors).any():
        refuse(machine, name, given, "be None, or hold one probability for each class")
    if not (priors >= 0).all():  # in scikit-learn's words, which its own tests look for
        refuse(machine, name, given, "hold probabilities. Priors must be non-negative")


# --- masks ---------------------------------------------------------------------------------------
#
# Sample weights as LIBSVM and LIBLINEAR take them: negative ones leave the row out.


def masked_weights(machine: Any, sample_weight: Any, n: int) -> Array:
    """Return the weights of n rows, zero where they are negative; ones when none are given."""
    if sample_weight is None:
        return np.ones(n)
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return check_weights(machine, sample_weight, n)  # which says what is wrong with them
    weights = np.where(np.isfinite(given) & (given < 0), 0.0, given)
    if weights.size and not weights.any():
        raise ValueError(
            f"{type(machine).__name__}: sample_weight: Invalid input - all samples have zero or "
            "negative weights."
        )
    return check_weights(machine, weights, n)


def refuse_one_class_left(machine: Any, labels: Array, weights: Array, reason: str) -> None:
    """Raise where y has several classes, but the rows that count have one."""
    kept = weights > 0
    if kept.all() or len(np.unique(labels[kept])) > 1 or len(np.unique(labels)) < 2:
        return
    raise ValueError(f"{type(machine).__name__}: sample_weight: {reason}")


# --- overflow ------------------------------------------------------------------------------------
#
# Overflow in fits that run on scikit-learn, said in words.


@contextmanager
def in_words(name: str) -> Iterator[None]:
    """Let overflow be judged by what comes of it, as in all machines, and refuse huge integers."""
    try:
        with np.errstate(all="ignore"):
            yield
    except OverflowError as error:
        raise ValueError(f"{name}: X has an integer beyond float64; scale that column") from error


def refusing(method: Any) -> Any:
    """Let a method of scikit-learn refuse what all machines refuse, and say which entry is wrong.

    Its rows are dense: sparse ones are refused before scikit-learn relies on their indices.
    """

    @wraps(method)
    def called(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if is_sparse(X):
            read_rows(self, X, fitting=False)
        try:
            with np.errstate(all="ignore"):  # overflow is judged by what comes of it
                return method(self, X, *args, **options)
        except (OverflowError, ValueError):
            refuse_nonfinite(self, read_rows(self, X, fitting=False))
            raise

    return called


# --- inputs --------------------------------------------------------------------------------------
#
# Rows as scikit-learn's classes take them: numbers in float64, or anything a function compares.

NOTHING = "no_validation"  # in place of y, for scikit-learn's validation


class RowReader(ABC):
    """A way to read rows: at the fit, and the same way after it."""

    @abstractmethod
    def training(self, machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
        """Return rows, or their kernel matrix, and targets; y may be left out."""

    @abstractmethod
    def new(self, machine: Any, X: Any) -> Points:
        """Return new rows, or their kernel matrix with those of the fit."""

    @abstractmethod
    def fitted(self, X: Any) -> RowReader:
        """Return what reads new rows after a fit to X."""


@dataclass(frozen=True, eq=False)
class Rows(RowReader):
    """Rows of numbers; `matrix` says that they are those of a kernel matrix."""

    matrix: bool = False

    def training(self, machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
        """Check rows and targets, and let the machine remember the columns."""
        if self.matrix and is_sparse(X):
            raise TypeError(
                f"{type(machine).__name__}: Sparse precomputed kernels are not supported; pass "
                "X.toarray()"
            )
        found = read_rows(machine, X, y, accept_sparse="csr", dtype=np.float64, **target)
        rows, targets = found if isinstance(found, tuple) else (found, np.zeros(0))
        refuse_nonfinite(machine, rows)
        return rows, targets

    def new(self, machine: Any, X: Any) -> Points:
        """Check rows against the columns of the fit."""
        return new_rows(machine, X, self.matrix)

    def fitted(self, X: Any) -> RowReader:
        """Remember nothing."""
        return self


@dataclass(frozen=True, eq=False)
class Compared(RowReader):
    """Whatever a function of two collections of rows makes a matrix of; not looked into."""

    function: Callable[[Any, Any], Any]
    rows: Any = None

    def training(self, machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
        """Compare all rows with one another."""
        for name in ("n_features_in_", "feature_names_in_"):
            machine.__dict__.pop(name, None)
        targets = np.zeros(0)
        if y is not NOTHING:
            check_consistent_length(X, y)
            targets = validate_data(machine, NOTHING, y, **target)
        K = self._training_matrix(machine, X)
        return K, targets[: len(K)]

    def new(self, machine: Any, X: Any) -> Points:
        """Compare new rows with those of the fit."""
        return self._matrix(machine, X, self.rows)

    def fitted(self, X: Any) -> RowReader:
        """Remember the rows: the function needs them again."""
        return Compared(self.function, X)

    def _training_matrix(self, machine: Any, X: Any) -> Array:
        K = to_dense(self.function(X, X))
        few = K.ndim == 2 and 0 < K.shape[0] == K.shape[1] < _count(X)
        if not few:
            return self._checked(machine, K, X, X)
        warnings.warn(
            f"{type(machine).__name__}: kernel gave a matrix of shape {K.shape} for {_count(X)} "
            f"rows; as LIBSVM does, the first {len(K)} alone are learned from. Return one value "
            "for each pair of rows",
            UserWarning,
            stacklevel=6,
        )
        return K

    def _matrix(self, machine: Any, X: Any, Y: Any) -> Array:
        return self._checked(machine, to_dense(self.function(X, Y)), X, Y)

    def _checked(self, machine: Any, K: Array, X: Any, Y: Any) -> Array:
        expected = (_count(X), _count(Y))
        if K.shape != expected:
            raise ValueError(
                f"{type(machine).__name__}: kernel must give a matrix of shape {expected}, one "
                f"value for each pair of rows, but gave {K.shape}"
            )
        return K


def reader_of(kernel: Any) -> RowReader:
    """Return the way to read rows that belongs to a kernel parameter."""
    if isinstance(kernel, str | Kernel):
        return Rows(is_matrix(kernel))
    return Compared(kernel)


def is_matrix(kernel: Any) -> bool:
    """Return whether X stands for a kernel matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


# --- margin --------------------------------------------------------------------------------------
#
# What the drop-in kernel machines share: a Mercer machine inside, scikit-learn's names outside.

_FITTED_WELL = (Status.SOLVED, Status.NOT_CONVEX)  # LIBSVM does not notice the second


class DropIn(WrappedMachine):
    """Base of the drop-in kernel machines."""

    kernel: Any
    gamma: float | str
    tol: float
    max_iter: int
    machine_: MarginMachine
    _reader: RowReader

    @cached_property
    def n_support_(self) -> Array:
        """How many support vectors each class has, or the function; stored by `fit`."""
        raise AttributeError(f"{type(self).__name__} has no n_support_ before it is fitted")

    @abstractmethod
    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> MarginMachine:
        """Return the Mercer machine that the parameters describe for these rows."""

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

    def _sharing(self, parameters: tuple[str, ...]) -> Sharing | None:
        """Return how fits that differ in some parameters are solved together, where they can be.

        gamma="scale" goes by the rows of a fit, as in scikit-learn: every fold has its own kernel.
        """
        try:  # what a fit would refuse is fitted, so that it is refused
            self._validate_params()
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
