"""What support vector machines ask of one fold: the same programmes, but for a few factors.

Settings of C, of the width of a tube and of nu change bounds, kinks, diagonal and sums of a box
programme by a factor each; all else is the same for all of them. A `FoldProgrammes` writes the
programmes of a setting over the Gram of all rows, and says by which factors they differ from those
of its base.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import Stage
from mercer.gram import Gram
from mercer.gram.transformed.part import restricted
from mercer.machines import SVC, SVR, OneClassSVM
from mercer.machines.base.targets import class_weights
from mercer.machines.margin.multiclass import (
    HingeBox,
    NuBox,
    Scheme,
    SquaredHingeBox,
    TwoClassBox,
    TwoClassProgramme,
    scheme_of,
)
from mercer.problems import BoxQP, Dual
from mercer.problems.margin import svm
from mercer.selection.sharing.known import KnownClassifier, KnownDetector, KnownRegressor

_SURE = 100.0  # tolerances: a margin of nu by which f may be divided


@dataclass(frozen=True, order=True)
class Setting:
    """What a grid changes in a programme; 1 where a machine has no such parameter."""

    epsilon: float = 1.0
    nu: float = 1.0
    C: float = 1.0


@dataclass(frozen=True, eq=False)
class Learnt:
    """The rows of a fold that are learnt from.

    Attributes
    ----------
    gram : Gram
        K of all rows.
    rows : (m,) int array
        Which of them, those of one class side by side, classes in order.
    targets : (m,) array
        Their labels, or what f should be.
    weight : (m,) array
        How often each counts.
    """

    gram: Gram
    rows: Array
    targets: Array
    weight: Array

    @cached_property
    def part(self) -> Gram:
        """Return K of these rows."""
        return restricted(self.gram, self.rows)


class FoldProgrammes(ABC):
    """The programmes of one machine on one fold, at any setting.

    Attributes
    ----------
    count : int
        How many programmes there are.
    base : Setting
        The one that factors refer to.
    """

    count: int = 1
    base: Setting

    @abstractmethod
    def problem(self, number: int, setting: Setting) -> BoxQP:
        """Write a programme; raises ValueError where it has no answer."""

    @abstractmethod
    def stage(self, setting: Setting) -> Stage:
        """Return the factors between the programmes of the base and those of a setting."""

    @abstractmethod
    def known(self, values: Array, offsets: Array, setting: Setting) -> Any:
        """Make a machine of the sums at some rows (programmes, rows) and the multipliers."""


class Classes(FoldProgrammes):
    """An `SVC`."""

    def __init__(self, learnt: Learnt, machine: SVC, settings: Sequence[Setting]) -> None:
        self.classes, codes = np.unique(learnt.targets, return_inverse=True)
        if len(self.classes) < 2:
            raise ValueError("there is only one class to learn from")
        self.learnt, self.machine = learnt, machine
        self.scheme: Scheme = scheme_of(machine.multiclass, codes)
        ends = self.scheme.ends
        totals = np.add.reduceat(learnt.weight, ends[:-1])
        factors = class_weights(machine, machine.class_weight, self.classes, totals)
        self.amount = learnt.weight
        if factors is not None:
            self.amount = learnt.weight * np.repeat(factors, np.diff(ends))
        self.parts: tuple[TwoClassProgramme, ...] = self.scheme.parts()
        self.count = len(self.parts)
        self.base = Setting(nu=min(setting.nu for setting in settings))

    def problem(self, number: int, setting: Setting) -> BoxQP:
        """Write a two-class programme."""
        return self.parts[number].problem(self._box(setting), self.learnt.part)

    def stage(self, setting: Setting) -> Stage:
        """Scale the bounds, the diagonal, or the sums of both classes."""
        if self.machine.nu is not None:
            return Stage(total=setting.nu / self.base.nu)
        return Stage(bound=setting.C) if self.machine.slack == "l1" else Stage(shift=1 / setting.C)

    def known(self, values: Array, offsets: Array, setting: Setting) -> KnownClassifier:
        """Let the two-class decisions vote."""
        found = values + offsets if self.machine.nu is None else self._scaled(values, offsets)
        if len(self.classes) == 2:
            decision = found[0]
            return KnownClassifier(self.classes, decision, self.classes[(decision > 0).astype(int)])
        decision = self.scheme.decide(found.T)
        return KnownClassifier(self.classes, decision, self.classes[np.argmax(decision, axis=1)])

    def _scaled(self, values: Array, offsets: Array) -> Array:
        """Return the decisions of the nu form, which have their margins at 1."""
        found = np.empty(values.shape)
        for row, value, offset in zip(found, values, offsets, strict=True):
            self._refuse_doubt(offset)
            dual, _ = svm.nu_svc_margin(Dual(value, offset))
            np.add(dual.coef, dual.intercept, out=row)
        return found

    def _refuse_doubt(self, offset: Array) -> None:
        """Leave margins of nu that are not far above the tolerance to fits.

        f is divided by the margin; where there is none, a fit says so.
        """
        if not abs(float(offset[1] - offset[0])) / 2 > _SURE * self.machine.tol:
            raise ValueError("the margin is of the size of its error")

    def _box(self, setting: Setting) -> TwoClassBox:
        if self.machine.nu is not None:
            return NuBox(self.amount, setting.nu)
        kind = HingeBox if self.machine.slack == "l1" else SquaredHingeBox
        return kind(setting.C * self.amount)


class Tube(FoldProgrammes):
    """An `SVR`."""

    def __init__(self, learnt: Learnt, machine: SVR, settings: Sequence[Setting]) -> None:
        self.learnt, self.machine = learnt, machine
        self.base = Setting(nu=min(setting.nu for setting in settings))

    def problem(self, number: int, setting: Setting) -> BoxQP:
        """Write the programme of the tube."""
        gram, targets = self.learnt.part, self.learnt.targets
        costs = setting.C * self.learnt.weight
        if self.machine.nu is not None:
            return svm.nu_svr(gram, targets, costs, setting.nu)
        write = svm.svr if self.machine.tube == "l1" else svm.svr_l2
        return write(gram, targets, costs, setting.epsilon)

    def stage(self, setting: Setting) -> Stage:
        """Scale the bounds or the diagonal, and the kink or the sums."""
        C = setting.C
        if self.machine.nu is not None:
            return Stage(bound=C, total=C * setting.nu / self.base.nu)
        if self.machine.tube == "l1":
            return Stage(bound=C, kink=setting.epsilon)
        return Stage(shift=1 / C, kink=setting.epsilon)

    def known(self, values: Array, offsets: Array, setting: Setting) -> KnownRegressor:
        """Add the constant: the middle of the two multipliers in the nu form."""
        return KnownRegressor(values[0] + offsets[0].mean())


class Inside(FoldProgrammes):
    """A `OneClassSVM`."""

    def __init__(self, learnt: Learnt, machine: OneClassSVM, settings: Sequence[Setting]) -> None:
        self.learnt = learnt
        self.base = Setting(nu=min(setting.nu for setting in settings))

    def problem(self, number: int, setting: Setting) -> BoxQP:
        """Write the programme of the half-space."""
        return svm.one_class(self.learnt.part, self.learnt.weight, setting.nu)

    def stage(self, setting: Setting) -> Stage:
        """Scale the sum."""
        return Stage(total=setting.nu / self.base.nu)

    def known(self, values: Array, offsets: Array, setting: Setting) -> KnownDetector:
        """Take the threshold off."""
        intercept = float(offsets[0, 0])
        return KnownDetector(values[0] + intercept, -intercept)


QUESTIONS: dict[type, type[Any]] = {SVC: Classes, SVR: Tube, OneClassSVM: Inside}


def setting_of(machine: Any) -> Setting:
    """Return what a grid changes; what a form of a machine does not look at stays 1."""
    nu, tube = machine.nu, isinstance(machine, SVR)
    if nu is None:
        return Setting(float(machine.epsilon) if tube else 1.0, 1.0, float(machine.C))
    return Setting(1.0, float(nu), float(machine.C) if tube else 1.0)


def same_question(machine: Any) -> dict[str, Any]:
    """Return the parameters that two settings must have in common to be one question."""
    varied = ("kernel", "C", "epsilon", "nu")
    params = {k: v for k, v in machine.get_params(deep=False).items() if k not in varied}
    return {**params, "nu": machine.nu is None}
