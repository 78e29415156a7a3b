"""Classifiers whose quality can be drawn."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from mercer.plots.fitted import fitted, inner_machine, wrong_machine

NORMAL = 1.96  # of 95 % intervals


def classifier(display: str, estimator: Any, two: bool) -> Any:
    """Return a fitted classifier, of two classes where only these can be drawn."""
    estimator = fitted(display, estimator)
    machine = inner_machine(estimator)
    if not is_classifier(machine):
        raise wrong_machine(display, "a classifier", machine)
    if two and len(machine.classes_) != 2:
        raise ValueError(
            f"{display}: two classes have a threshold, this {type(machine).__name__} has "
            f"{len(machine.classes_)}; ConfusionMatrixDisplay shows more"
        )
    return estimator
