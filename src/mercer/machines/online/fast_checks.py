"""One example at a time: checks that cost a look at types and shapes, no more.

What they let through the compiled walk can refuse: rows that are not finite it finds by their
length, which it needs anyway. Everything else goes the careful way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.points import is_sparse


def fast_codes(machine: Any, X: Any, y: Any) -> Array | None:
    """Return class numbers where rows and labels are plainly as before; None where in doubt."""
    state = machine.__dict__
    if "feature_names_in_" in state or not _plain(X) or X.shape[1] != state["n_features_in_"]:
        return None
    kind = type(y)
    if (kind is not np.ndarray and kind is not list) or len(y) != X.shape[0] or not len(y):
        return None
    if len(y) == 1:
        label = y[0]
        if isinstance(label, np.generic):
            label = label.item()
        code = machine._numbers.get(label) if isinstance(label, str | int) else None
        return None if code is None else np.array([code])
    classes = machine.classes_
    if kind is list or y.ndim != 1 or y.dtype != classes.dtype:
        return None
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return codes if (classes[codes] == y).all() else None


def plain_rows(machine: Any, X: Any) -> bool:
    """Return whether new rows are plainly fine: of the right width, and finite."""
    state = machine.__dict__
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype == np.float64
        and len(X) > 0
        and X.shape[1] == state["n_features_in_"]
        and "feature_names_in_" not in state
        and bool(np.isfinite(X.sum()))
    )


def _plain(X: Any) -> bool:
    if type(X) is np.ndarray:
        return X.ndim == 2 and X.dtype == np.float64 and X.flags.c_contiguous
    return bool(
        is_sparse(X) and X.format == "csr" and X.dtype == np.float64 and X.has_canonical_format
    )
