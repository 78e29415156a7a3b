"""What weights of kernels are learnt for: the loss of a machine, as programmes on a Gram."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._types import Array
from mercer.gram import Gram, ShiftedGram
from mercer.machines._labels import check_class_weight, class_weights
from mercer.machines._multiclass import Question, scheme_of
from mercer.machines._parameters import is_real
from mercer.machines._two_class import HingeBox, SquaredHingeBox
from mercer.machines._weights import DistinctRows
from mercer.problems import BoxQP, Many
from mercer.selection.learning.labelled import Labelled


class KernelLoss(ABC):
    """A machine, but for its kernel."""

    method: ClassVar[str]

    @abstractmethod
    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write the machine on a Gram of the rows."""


@dataclass(frozen=True, eq=False)
class Hinge(KernelLoss):
    """The support vector classifier."""

    C: float
    slack: str
    multiclass: str
    class_weight: Any
    method = "margin"

    @staticmethod
    def of(C: Any, slack: str, multiclass: str, class_weight: Any) -> Hinge:
        """Check the parameters."""
        one_of("combine", "slack", slack, ("l1", "l2"))
        one_of("combine", "multiclass", multiclass, ("ovo", "ovr"))
        holder = type("combine", (), {"class_weight": class_weight})()
        check_class_weight(holder)
        return Hinge(checked("combine", "C", C), slack, multiclass, class_weight)

    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write all pairs of classes, or each against the rest."""
        assert data.codes is not None
        assert data.classes is not None
        scheme = scheme_of(self.multiclass, data.codes[rows.first])
        amount = self.C * rows.weight
        totals = np.add.reduceat(rows.weight, scheme.ends[:-1])
        holder = type("combine", (), {})()
        factors = class_weights(holder, self.class_weight, data.classes, totals)
        if factors is not None:
            amount = amount * np.repeat(factors, np.diff(scheme.ends))
        box = {"l1": HingeBox, "l2": SquaredHingeBox}[self.slack](amount)
        return Question(scheme.parts(), box)


@dataclass(frozen=True, eq=False)
class Squares(KernelLoss):
    """Ridge regression: with a = b, its dual is (K + penalty S^-1) b + intercept = y."""

    penalty: float
    bias: bool
    method = "ridge"

    @staticmethod
    def of(penalty: Any, bias: Any) -> Squares:
        """Check the parameters."""
        if not isinstance(bias, bool | np.bool_):
            raise ValueError(f"combine: bias={bias!r} must be True or False")
        return Squares(checked("combine", "penalty", penalty), bool(bias))

    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write one programme without bounds for each target."""
        assert data.targets is not None
        targets = data.targets[rows.first]
        if len(targets) < 2:
            raise ValueError("combine needs two rows or more, but n_samples = 1")
        if not np.ptp(targets, axis=0).any():
            raise ValueError("combine: y is constant, so that all weights are equally good")
        return _Regression(targets, self.penalty / rows.weight, self.bias)


@dataclass(frozen=True, eq=False)
class _Regression:
    targets: Array
    shift: Array
    bias: bool

    def __call__(self, gram: Gram) -> BoxQP | Many:
        """Write the targets' programmes on a Gram."""
        shifted = ShiftedGram(gram, self.shift)
        free = np.full(len(self.shift), np.inf)
        group = None if self.bias else np.full(len(free), -1)
        total: Any = 0.0 if self.bias else np.empty(0)
        problems = [
            BoxQP(shifted, y, -free, free, total, 0.0, group)
            for y in np.ascontiguousarray(self.targets.T)
        ]
        return problems[0] if len(problems) == 1 else Many(tuple(problems))


def checked(function: str, name: str, value: Any) -> float:
    """Require a positive, finite number."""
    if not is_real(value) or not math.isfinite(value) or not value > 0:
        raise ValueError(f"{function}: {name}={value!r} must be a positive, finite number")
    return float(value)


def one_of(function: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of a few words."""
    if not isinstance(value, str) or value not in choices:
        shown = " or ".join(map(repr, choices))
        raise ValueError(f"{function}: {name}={value!r} must be {shown}")
