"""One Gram for all folds: every fold reads its rows and columns from the same matrix.

A machine is refitted for each fold, but its kernel is evaluated once. This is possible where a fit
and its predictions need nothing but k(x_i, x_j); where they need more (the rows themselves, or
k(z, z) of new rows), or the matrix would not fit, each fold evaluates the kernel anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from mercer._points import take
from mercer._resources import within_budget
from mercer._types import Array
from mercer.expression import bind_columns
from mercer.gram import Source
from mercer.kernels import Precomputed, resolve
from mercer.machines import SVC, SVR, KernelRidge, OneClassSVM
from mercer.machines._inputs import training_rows_alone

_FROM_PRODUCTS = (SVC, SVR, KernelRidge, OneClassSVM)  # ask for nothing but k(x_i, x_j)
_COPIES = 4  # the matrix, that of a fold, and what its solver makes of it


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from, as a machine takes them, and how to choose among them.

    Attributes
    ----------
    machine : estimator
        What is fitted: the user's, or a copy that reads a given matrix.
    data : object
        Rows, or the matrix between all of them.
    square : bool
        Whether `data` is that matrix.
    """

    machine: Any
    data: Any
    square: bool

    def train(self, index: Array) -> Any:
        """Give what `fit` takes for some rows."""
        if self.square:
            return self.data[np.ix_(index, index)]
        return take_rows(self.data, index)

    def test(self, index: Array, train: Array) -> Any:
        """Give what `predict` takes for some rows after a fit to others."""
        if self.square:
            return self.data[np.ix_(index, train)]
        return take_rows(self.data, index)


def shared_rows(machine: Any, X: Any) -> Rows:
    """Evaluate the kernel on all rows at once if the machine can work from that.

    Kernels given by name take their scale from all rows, those of test folds included; pass a
    kernel object to fix it beforehand.
    """
    if get_tags(machine).input_tags.pairwise:
        return Rows(machine, X, True)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if type(machine) not in _FROM_PRODUCTS or not within_budget(8.0 * n * n * _COPIES):
        return Rows(machine, X, False)
    witness = clone(machine)  # checks the rows, and knows their columns, as the machine would
    points = training_rows_alone(witness, X, False)
    kernel = resolve(machine.kernel, points)
    names = getattr(witness, "feature_names_in_", None)
    bound = bind_columns(kernel.expression(), None if names is None else list(names))
    K = Source(bound, points).pairs().dense()
    return Rows(clone(machine).set_params(kernel=Precomputed()), K, True)


def take_rows(X: Any, index: Array) -> Any:
    """Choose rows of an array, a table, a sparse matrix or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if isinstance(X, list | tuple):
        return [X[i] for i in index.tolist()]
    return take(X, index)
