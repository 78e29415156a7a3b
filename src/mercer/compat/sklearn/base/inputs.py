"""Rows as scikit-learn's classes take them: numbers in float64, or anything a function compares."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, validate_data

from mercer.array_types import Array, Points
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.inputs import new_rows, read_rows, refuse_nonfinite
from mercer.points import is_sparse, to_dense

NOTHING = "no_validation"  # in place of y, for scikit-learn's validation


class Reader(ABC):
    """A way to read rows: at the fit, and the same way after it."""

    @abstractmethod
    def training(self, machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
        """Return rows, or their kernel matrix, and targets; y may be left out."""

    @abstractmethod
    def new(self, machine: Any, X: Any) -> Points:
        """Return new rows, or their kernel matrix with those of the fit."""

    @abstractmethod
    def fitted(self, X: Any) -> Reader:
        """Return what reads new rows after a fit to X."""


@dataclass(frozen=True, eq=False)
class Rows(Reader):
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

    def fitted(self, X: Any) -> Reader:
        """Remember nothing."""
        return self


@dataclass(frozen=True, eq=False)
class Compared(Reader):
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

    def fitted(self, X: Any) -> Reader:
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


def reader_of(kernel: Any) -> Reader:
    """Return the way to read rows that belongs to a kernel parameter."""
    if isinstance(kernel, str | Kernel):
        return Rows(is_matrix(kernel))
    return Compared(kernel)


def is_matrix(kernel: Any) -> bool:
    """Return whether X stands for a kernel matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
