"""Which parameters of a kernel are learnt, as one vector of logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.array_types import Array
from mercer.expression import Expression, bind_columns
from mercer.kernels import Kernel
from mercer.kernels.parameter_slopes import Parameter, ParameterSlope, parameters


@dataclass(frozen=True, eq=False)
class KernelParameters:
    """A kernel as a function of some of its parameters.

    Attributes
    ----------
    kernel : Kernel
        With the parameters to start from.
    names : tuple of str
        Those that are learnt.
    columns : list of str or None
        Names of the columns of the rows, for kernels that speak of them.
    """

    kernel: Kernel
    names: tuple[str, ...]
    columns: list[str] | None = None

    @cached_property
    def learnt(self) -> list[Parameter]:
        """Return the parameters that are learnt, at the start."""
        return [each for each in parameters(self.kernel) if each.name in self.names]

    @property
    def logs(self) -> Array:
        """Return their logarithms at the start."""
        values = [v for each in self.learnt for v in each.values]
        return np.asarray(np.log(np.array(values, dtype=np.float64)))

    @property
    def size(self) -> int:
        """Count the numbers that are learnt."""
        return sum(len(each.values) for each in self.learnt)

    def at(self, logs: Array) -> Kernel:
        """Return the kernel with these parameters."""
        values, first, settings = np.exp(logs), 0, {}
        for each in self.learnt:
            last = first + len(each.values)
            settings[each.name] = each.setting(values[first:last])
            first = last
        return self.kernel.with_params(**settings)

    def formula(self, logs: Array) -> Expression:
        """Return the formula of the kernel with these parameters."""
        return bind_columns(self.at(logs).expression(), self.columns)

    def slopes(self, logs: Array) -> list[ParameterSlope]:
        """Return how the kernel changes with the logarithm of each, there."""
        found = [each for each in parameters(self.at(logs)) if each.name in self.names]
        return [each.slope.rewritten(lambda e: bind_columns(e, self.columns)) for each in found]
