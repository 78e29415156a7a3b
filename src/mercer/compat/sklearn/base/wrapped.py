"""What a drop-in class shows of the Mercer machine inside it."""

from __future__ import annotations

from typing import Any

from mercer.certificates import Certificate
from mercer.solvers import Solution


class WrappedMachine:
    """A class with a fitted Mercer machine inside."""

    machine_: Any

    @property
    def solution_(self) -> Solution:
        """How the solver ended."""
        found: Solution = self.machine_.solution_
        return found

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the fit, from the data, in float64; computed when first read."""
        if "machine_" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__} has no certificate_: it is not fitted, or its options made "
                "it run in scikit-learn"
            )
        found: Certificate = self.machine_.certificate_
        return found
