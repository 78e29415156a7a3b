"""Labels of a batch: the classes are known from the first call on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from mercer.array_types import Array
from mercer.machines.base.labels import codes_of, refuse_mixed_labels, refuse_targets


def labels_of(machine: Any, y: Any, n: int) -> Array:
    """Return labels for n rows as an array; refuse measurements."""
    refuse_mixed_labels(machine, y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y", estimator_name=type(machine).__name__)
    refuse_targets(y)
    check_consistent_length(y, np.broadcast_to(0, (n,)))
    return np.asarray(y)


def classes_for(machine: Any, classes: Any, first: bool) -> Array:
    """Return the classes of a stream: named at the first call, the same ones later."""
    name = type(machine).__name__
    if classes is None:
        if first:
            raise ValueError(
                f"{name}: classes must be passed on the first call to partial_fit: a batch need "
                "not hold all of them"
            )
        return np.asarray(machine.classes_)
    refuse_mixed_labels(machine, classes)
    named = np.unique(column_or_1d(classes))
    if not first and not np.array_equal(named, machine.classes_):
        raise ValueError(
            f"{name}: classes={named.tolist()} are not those of the first call, "
            f"{machine.classes_.tolist()}"
        )
    if len(named) < 2:
        raise ValueError(f"{name} needs two classes, but classes has only one class")
    return named


def batch_codes(machine: Any, y: Array, weights: Array) -> Array:
    """Return the number of each label among the classes; rows of weight zero may have any."""
    codes = np.zeros(len(y), dtype=np.intp)
    kept = np.flatnonzero(weights)
    codes[kept] = codes_of(machine, y[kept], len(kept))
    return codes
