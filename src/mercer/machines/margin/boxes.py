"""What a row may cost in a programme of two classes: slack as it is, squared, or a share nu."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.problems import BoxQP, Dual
from mercer.problems.margin import svm


@dataclass(frozen=True, eq=False)
class TwoClassBox(ABC):
    """A two-class machine but for its rows.

    Attributes
    ----------
    amount : (n,) array
        Weight of each row: times C where there is one.
    """

    amount: Array

    @abstractmethod
    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Write the problem."""

    def decision(self, dual: Dual) -> Dual:
        """Return coefficients and constant of the function that has its margin at 1."""
        return dual

    def decided(self, dual: Dual) -> bool:
        """Return whether an answer has a margin: only in the nu form it may not."""
        return True

    def of(self, rows: Array | None) -> Self:
        """Return the same machine on some of the rows."""
        return self if rows is None else replace(self, amount=self.amount[rows])

    def feasible(self, signs: Array) -> Self:
        """Return a machine like this one that has an answer for these rows: only nu may not."""
        return self

    def counting(self, share: Array) -> Self:
        """Return the same machine with every row counting less."""
        return replace(self, amount=self.amount * share)


class HingeBox(TwoClassBox):
    """L1 slack."""

    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Bound the coefficients."""
        return svm.svc(gram, signs, self.amount)


class SquaredHingeBox(TwoClassBox):
    """L2 slack."""

    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Add to the diagonal."""
        return svm.svc_l2(gram, signs, self.amount)


@dataclass(frozen=True, eq=False)
class NuBox(TwoClassBox):
    """The nu form."""

    nu: float

    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Fix the sum over each class."""
        return svm.nu_svc(gram, signs, self.amount, self.nu)

    def decision(self, dual: Dual) -> Dual:
        """Scale to a margin of 1."""
        if self.decided(dual):
            return svm.nu_svc_margin(dual)[0]
        return Dual(dual.coef, float(np.mean(dual.intercept)))  # cut short: its sign is all it has

    def decided(self, dual: Dual) -> bool:
        """Return whether the classes are apart."""
        return svm.nu_svc_parts(dual)

    def feasible(self, signs: Array) -> Self:
        """Lower nu to what these rows allow."""
        of_class = [float(self.amount[signs * side > 0].sum()) for side in (-1, 1)]
        total = sum(of_class)
        if total == 0.0:  # a fold that leaves no rows has no answer, whatever nu is
            return self
        return replace(self, nu=min(self.nu, 2 * min(of_class) / total))
