"""What weights of kernels are learnt for: the loss of a machine, as programmes on a Gram."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.gram.transformed.shifted import shifted
from mercer.machines.base.targets import DistinctRows, check_class_weight, class_weights
from mercer.machines.margin.boxes import HingeBox, SquaredHingeBox
from mercer.machines.margin.multiclass import Programmes, ends_of, scheme_of
from mercer.problems import BoxQP, Many
from mercer.problems.margin.svm import DEAREST
from mercer.selection.learning.labelled import Labelled
from mercer.selection.learning.parameters import check_flag, checked, one_of

_ORDINARY = 1e100  # targets up to here, and down to its inverse, are taken as they are


class KernelLoss(ABC):
    """A machine, but for its kernel."""

    method: ClassVar[str]
    copies: ClassVar[int]  # matrices held beside those of the kernels, in float64

    def refusal(self, largest: float, weights: Array) -> str | None:
        """Return what is wrong with parameters for rows of these weights and largest k(x, x)."""
        return None

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
    copies = 3  # the weighted sum, and what a descent works on

    @staticmethod
    def of(C: Any, slack: str, multiclass: str, class_weight: Any) -> Hinge:
        """Check the parameters."""
        one_of("combine", "slack", slack, ("l1", "l2"))
        one_of("combine", "multiclass", multiclass, ("ovo", "ovr"))
        holder = type("combine", (), {"class_weight": class_weight})()
        check_class_weight(holder)
        return Hinge(checked("combine", "C", C), slack, multiclass, class_weight)

    def refusal(self, largest: float, weights: Array) -> str | None:
        """Refuse hard margins: where slack is forbidden no gap can be computed."""
        most = self.C * float(weights.max())
        if min(most, most * largest) < DEAREST:
            return None
        return (
            f"C={self.C!r} forbids all slack where k(x, x) is {largest:.1e}; use a C that is "
            "smaller by some powers of ten, or method='alignment'"
        )

    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write all pairs of classes, or each against the rest."""
        assert data.codes is not None
        assert data.classes is not None
        scheme = scheme_of(self.multiclass, ends_of(data.codes[rows.first]))
        amount = self.C * rows.weight
        totals = np.add.reduceat(rows.weight, scheme.ends[:-1])
        holder = type("combine", (), {})()
        factors = class_weights(holder, self.class_weight, data.classes, totals)
        if factors is not None:
            amount = amount * np.repeat(factors, np.diff(scheme.ends))
        box = {"l1": HingeBox, "l2": SquaredHingeBox}[self.slack](amount)
        return Programmes(scheme.parts(), box)


@dataclass(frozen=True, eq=False)
class Squares(KernelLoss):
    """Ridge regression: with a = b, its dual is (K + penalty S^-1) b + intercept = y."""

    penalty: float
    bias: bool
    method = "ridge"
    copies = 6  # two weighted sums, with the shift, scaled, factored, and on the way there

    @staticmethod
    def of(penalty: Any, bias: Any) -> Squares:
        """Check the parameters."""
        check_flag("combine", "bias", bias)
        return Squares(checked("combine", "penalty", penalty), bool(bias))

    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write one programme without bounds for each target."""
        assert data.targets is not None
        targets = data.targets[rows.first]
        if len(targets) < 2:
            raise ValueError("combine needs two rows or more, but n_samples = 1")
        if not np.ptp(targets, axis=0).any():
            raise ValueError("combine: y is constant, so that all weights are equally good")
        if self.bias:  # which takes up any constant; rounding should not see it either
            targets = targets - np.average(targets, axis=0, weights=rows.weight)
        return _Regression(targets / _unit(targets), self.penalty / rows.weight, self.bias)


def _unit(targets: Array) -> float:
    """Return what targets are counted in; the weights of the kernels do not depend on it."""
    largest = float(np.abs(targets).max())
    return 1.0 if 1 / _ORDINARY < largest < _ORDINARY else 2.0 ** np.floor(np.log2(largest))


@dataclass(frozen=True, eq=False)
class _Regression:
    targets: Array
    shift: Array
    bias: bool

    def __call__(self, gram: Gram) -> BoxQP | Many:
        """Write the targets' programmes on a Gram."""
        K = shifted(gram, self.shift)
        free = np.full(len(self.shift), np.inf)
        group = None if self.bias else np.full(len(free), -1)
        total: Any = 0.0 if self.bias else np.empty(0)
        problems = [
            BoxQP(K, y, -free, free, total, 0.0, group)
            for y in np.ascontiguousarray(self.targets.T)
        ]
        return problems[0] if len(problems) == 1 else Many(tuple(problems))
