"""Labels: what they are, which number each class has, and what the classes weigh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.array_types import Array
from mercer.machines.base.parameters import is_real, refuse


def refuse_mixed_labels(machine: Any, y: Any) -> None:
    """Raise where NumPy would turn the label 1 into the label "1" because others are strings."""
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) == 2:
        raise ValueError(
            f"{type(machine).__name__}: y mixes strings with other labels, such as {y[0]!r}; "
            "give all labels as strings, or none"
        )


def refuse_targets(y: Array) -> None:
    """Raise, in scikit-learn's words, where y holds measurements rather than labels."""
    if y.dtype.kind not in "biuUS":  # these are labels always, and the look costs more than a fit
        check_classification_targets(y)


def check_class_weight(machine: Any) -> None:
    """Require None, "balanced", or a dictionary of positive numbers."""
    given = machine.class_weight
    if given is None or (isinstance(given, str) and given == "balanced"):
        return
    if isinstance(given, Mapping):
        if all(is_real(w) and 0 < w < np.inf for w in given.values()):
            return
        refuse(machine, "class_weight", given, "be positive and finite for every label")
    refuse(machine, "class_weight", given, "be None, 'balanced', or a dictionary by label")


def class_weights(machine: Any, given: Any, classes: Array, totals: Array) -> Array | None:
    """Return the weight of each class from the total sample weight of each; None for all alike."""
    if given is None:
        return None
    if isinstance(given, str):  # "balanced": every class has the same total
        return np.asarray(totals.sum() / (len(classes) * totals))
    weights = np.array([float(given.get(label, 1.0)) for label in classes.tolist()])
    known = {label for label in classes.tolist() if label in given}
    unknown = [label for label in given if label not in known]
    if unknown and len(known) < len(classes):  # a misspelt label, not one absent from this sample
        raise ValueError(
            f"{type(machine).__name__}: class_weight has the label {unknown[0]!r}, but the classes "
            f"of y are {', '.join(map(repr, classes.tolist()))}"
        )
    return weights


def classes_of(machine: Any, y: Array, weights: Array) -> tuple[Array, Array]:
    """Return the labels of rows that count, and the number of the class of each row.

    Rows of weight zero may carry a label that no other row has; their number means nothing.
    """
    some = weights.all()
    classes, codes = np.unique(y if some else y[weights > 0], return_inverse=True)
    if len(classes) < 2:
        reason = " once rows of weight zero are left out" if len(np.unique(y)) > 1 else ""
        only = classes.tolist()[0]
        raise ValueError(
            f"{type(machine).__name__} needs two classes, but y has only one class, {only!r}"
            f"{reason}"
        )
    if some:
        return classes, codes
    every = np.zeros(len(y), dtype=codes.dtype)
    every[weights > 0] = codes
    return classes, every


def codes_of(machine: Any, y: Array, n: int) -> Array:
    """Return the class numbers of labels that come after the fit."""
    if y.shape != (n,):
        raise ValueError(
            f"{type(machine).__name__}: y must hold one label for each of the {n} rows of X, "
            f"not shape {y.shape}"
        )
    classes = machine.classes_
    codes = np.searchsorted(classes, y)
    wrong = np.flatnonzero(classes[np.minimum(codes, len(classes) - 1)] != y)
    if len(wrong):
        raise ValueError(
            f"{type(machine).__name__}: {y.tolist()[wrong[0]]!r} in row {wrong[0]} of y is none "
            "of the classes of the fit"
        )
    return codes
