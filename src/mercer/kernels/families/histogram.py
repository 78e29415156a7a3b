"""Kernels of histograms, counts and sets."""

from __future__ import annotations

from dataclasses import dataclass

from mercer import expression as ex
from mercer.arguments import also_named
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven


@also_named("scale", gamma=checks.reciprocal_each)
@proven
@dataclass(frozen=True, repr=False)
class ChiSquared(Kernel):
    """k(x, y) = exp(-sum_i (x_i - y_i)^2 / (x_i + y_i) / scale), 0/0 = 0, for nonnegative rows.

    Parameters
    ----------
    scale : float
        Positive.

    Examples
    --------
    >>> ChiSquared(scale=2.0)([[1.0, 3.0]], [[3.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        self._store(scale=checks.positive("ChiSquared", "scale", self.scale))

    def expression(self) -> Expression:
        """Write the exponential of the chi-squared distance."""
        return ex.Exp(-min(1.0 / self.scale, 1e290) * ex.ChiSq())  # as for radial kernels


@proven
@dataclass(frozen=True, repr=False)
class Intersection(Kernel):
    """k(x, y) = sum_i min(x_i, y_i), for nonnegative rows.

    Examples
    --------
    >>> Intersection()([[1.0, 3.0]], [[3.0, 1.0]]).tolist()
    [[2.0]]
    """

    def expression(self) -> Expression:
        """Write the sum of minima."""
        return ex.MinSum()


@proven
@dataclass(frozen=True, repr=False)
class Tanimoto(Kernel):
    """k(x, y) = x'y / (x'x + y'y - x'y), and 1 between two zero rows.

    On 0/1 rows: the size of the intersection of two sets over that of their union. It is positive
    semidefinite for all real rows, being the sum over p of (x'y)^p (x'x + y'y)^(-p).

    Examples
    --------
    >>> Tanimoto()([[1, 1, 0]], [[0, 1, 1]]).round(4).tolist()
    [[0.3333]]
    """

    def expression(self) -> Expression:
        """Write the quotient."""
        dot = ex.Dot((ex.Squarable("Tanimoto"),))
        return ex.Ratio(dot, ex.RowSum(ex.SelfValue(dot)) - dot)
