"""A learnt sum of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.certificates import Certificate
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.algebra import Product, Sum
from mercer.solvers import Solution

_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Combined:
    """What `combine` found.

    Attributes
    ----------
    kernels : tuple of Kernel
        What could be part of the sum.
    method : str
        What the weights are best for.
    weights : (m,) array
        Nonnegative, of sum 1: shares of the kernels on one scale.
    factors : (m,) array
        What each kernel, as it was given, is multiplied by: weights over variances.
    solution : Solution
        How the search ended.
    certificate : Certificate
        Optimality of the weights, recomputed from the data in float64.
    """

    kernels: tuple[Kernel, ...]
    method: str
    weights: Array
    factors: Array
    solution: Solution
    certificate: Certificate

    @property
    def used(self) -> Array:
        """Numbers of the kernels with a weight above zero, largest first."""
        order = np.argsort(-self.weights, kind="stable")
        return order[self.weights[order] > 0]

    @property
    def kernel(self) -> Kernel:
        """The weighted sum, a kernel as any other; kernels of weight zero are left out.

        For given matrices `Precomputed()`: `matrix` adds them up.
        """
        if isinstance(self.kernels[0], Precomputed):
            return Precomputed()
        parts = [Product((self.kernels[k],), float(self.factors[k])) for k in sorted(self.used)]
        return parts[0] if len(parts) == 1 else Sum(tuple(parts))

    def matrix(self, matrices: Sequence[npt.ArrayLike]) -> Array:
        """Add up given matrices: of training rows, or of new rows against them.

        Parameters
        ----------
        matrices : sequence of arrays
            One for each kernel, all of one shape.

        Returns
        -------
        array
            Their weighted sum.
        """
        if len(matrices) != len(self.weights):
            raise ValueError(
                f"matrix: {len(matrices)} matrices for {len(self.weights)} kernels; pass one each"
            )
        parts = (f * np.asarray(K) for f, K in zip(self.factors, matrices, strict=True) if f > 0)
        return np.asarray(sum(parts))

    def __str__(self) -> str:
        used = self.used
        lines = [f"{len(used)} of {len(self.weights)} kernels, best for {self.method}"]
        for k in used[:_SHOWN]:
            name = repr(self.kernels[k])
            shown = f"matrix {k}" if isinstance(self.kernels[k], Precomputed) else name
            lines.append(f"  {self.weights[k]:7.4f}  {shown}")
        if len(used) > _SHOWN:
            rest = float(self.weights[used[_SHOWN:]].sum())
            lines.append(f"  {rest:7.4f}  {len(used) - _SHOWN} others")
        lines.append(str(self.certificate).splitlines()[0])
        return "\n".join(lines)
