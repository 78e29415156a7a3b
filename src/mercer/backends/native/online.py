"""The perceptron in the compiled core: plain contiguous arrays in, weights changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _native
from mercer.array_types import Array
from mercer.backends.perceptron_state import LinearFunctions, PassCounts
from mercer.points import is_sparse


def perceptron_pass(
    X: Any,
    codes: Array,
    order: Array | None,
    rules: LinearFunctions,
    step: float,
    interruptible: bool,
) -> PassCounts:
    """Walk over dense or CSR rows."""
    after = (
        order,
        codes,
        rules.weights,
        rules.bias,
        rules.late,
        rules.late_bias,
        rules.tally,
        rules.has_bias,
        step,
        interruptible,
    )
    if not is_sparse(X):
        return PassCounts(*_native.perceptron_dense(X, *after))
    begin = np.ascontiguousarray(X.indptr, dtype=np.int64)
    columns = np.ascontiguousarray(X.indices, dtype=np.int32)
    return PassCounts(*_native.perceptron_sparse(begin, columns, X.data, X.shape[1], *after))
