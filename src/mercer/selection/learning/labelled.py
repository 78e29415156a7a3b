"""Rows with what is to be learnt from them, checked: where functions that learn kernels start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target

from mercer.array_types import Array, Points
from mercer.machines.base.inputs import training_rows
from mercer.machines.base.targets import (
    check_weights,
    classes_of,
    refuse_mixed_labels,
    refuse_targets,
)

_LABELS = ("binary", "multiclass")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows and targets.

    Attributes
    ----------
    points : Points
        Rows, or the matrix of a precomputed kernel.
    names : list of str or None
        Names of their columns.
    targets : (n, t) array or None
        Numbers; None for labels.
    codes : (n,) int array or None
        The number of each row's class; None for numbers.
    classes : array or None
        The labels.
    weights : (n,) array
        How often each row counts.
    """

    points: Points
    names: list[str] | None
    targets: Array | None
    codes: Array | None
    classes: Array | None
    weights: Array

    def ideal(self) -> Array:
        """Return Y for which Y Y' is the kernel that knows the answer: (n, t).

        For numbers these themselves. For k classes the corners of a regular simplex, so that Y Y'
        is 1 for rows of one class and -1/(k - 1) for rows of two: for two classes the product of
        labels -1 and 1.
        """
        if self.targets is not None:
            return self.targets
        assert self.codes is not None
        assert self.classes is not None
        k = len(self.classes)
        corners = np.sqrt(k / (k - 1.0)) * (np.eye(k) - 1.0 / k)
        return np.asarray(corners[self.codes])


def labelled(
    function: str, X: Any, y: Any, sample_weight: Any, target: str, precomputed: bool = False
) -> Labelled:
    """Check rows, targets and weights; errors name the function.

    Parameters
    ----------
    function : str
        Who asks.
    X : array-like
        Rows.
    y : array-like
        Labels or numbers.
    sample_weight : array-like or None
        How often each row counts.
    target : {"auto", "labels", "numbers"}
        What y holds.
    precomputed : bool
        Whether X is a matrix of kernel values.
    """
    if not isinstance(target, str) or target not in ("auto", "labels", "numbers"):
        raise ValueError(f"{function}: target={target!r} must be 'auto', 'labels' or 'numbers'")
    witness = type(function, (BaseEstimator,), {})()  # checks as machines do, under this name
    if y is None:
        raise ValueError(f"{function}: y is missing; a kernel is learnt from labels or targets")
    labels = target == "labels" or (target == "auto" and _are_labels(y))
    if not labels:
        points, y = training_rows(witness, X, y, precomputed, multi_output=True, y_numeric=True)
        weights = check_weights(witness, sample_weight, len(y))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return Labelled(points, _names(witness), targets, None, None, weights)
    refuse_mixed_labels(witness, y)
    points, y = training_rows(witness, X, y, precomputed)
    refuse_targets(y)
    weights = check_weights(witness, sample_weight, len(y))
    classes, codes = classes_of(witness, y, weights)
    return Labelled(points, _names(witness), None, codes, classes, weights)


def _are_labels(y: Any) -> bool:
    with np.errstate(invalid="ignore"):  # it compares with whole numbers, which may not hold y
        return type_of_target(y, "y") in _LABELS


def _names(witness: Any) -> list[str] | None:
    names = getattr(witness, "feature_names_in_", None)
    return None if names is None else list(names)
