"""Decision values of coefficients that a program wrote into a fitted classifier itself."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.kernels import Precomputed
from mercer.points import to_dense


def altered_values(machine: Any, X: Points) -> Array:
    """Evaluate `_dual_coef_` and `_intercept_`, in LIBSVM's layout, with the sign of Mercer's.

    Coefficients of rows of class i against class j > i stand in row j - 1, those of j in row i.
    """
    inner = machine.machine_
    given = isinstance(inner.kernel_, Precomputed)
    K = to_dense(X[:, machine.support_] if given else inner.kernel_(X, machine.support_vectors_))
    coef, ends = to_dense(machine._dual_coef_), np.append(0, np.cumsum(machine._n_support))
    rows = [slice(ends[c], ends[c + 1]) for c in range(len(machine.classes_))]
    values = [
        K[:, rows[i]] @ coef[j - 1, rows[i]] + K[:, rows[j]] @ coef[i, rows[j]]
        for i, j in combinations(range(len(rows)), 2)
    ]
    return np.asarray(-(np.column_stack(values) + machine._intercept_))
